"""Importing: what a fresh process pays, against the standard library alone."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Collection

from benches.figures import Row, at_most
from benches.measure import Bench

BASE = "import asyncio, inspect, json, typing"
OFTEN, SELDOM = 15, 3


async def rows(bench: Bench) -> list[Row]:
    """Measure `import toolcrib` in fresh processes.

    Args:
        bench: Keeps the measurement; processes are not interleaved by it.

    Returns:
        One row.
    """
    own = "import toolcrib"
    best = startups({"", own}, OFTEN)
    return [
        Row(
            "import, fresh process",
            (
                at_most((best[own] - best[""]) * 1e3, 50, 50, "{} ms more"),
                at_most(best[own] / best[""], None, 1.1, "{}× the standard library"),
            ),
        )
    ]


def startups(statements: Collection[str], rounds: int = SELDOM) -> dict[str, float]:
    """Time fresh processes that import the standard library's part and then something more.

    Args:
        statements: What more to run.
        rounds: How often each.

    Returns:
        The least processor time of each in seconds.
    """
    best = dict.fromkeys(statements, float("inf"))
    for _ in range(rounds):
        for statement in statements:
            start = _spent()
            subprocess.run([sys.executable, "-I", "-c", f"{BASE}\n{statement}"], check=True, capture_output=True)
            best[statement] = min(best[statement], _spent() - start)
    return best


def _spent() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime
