"""Ten thousand tasks in the background whose results nobody fetches: what they leave behind.

Runs in a process of its own (`python -m benches.background`), so that nothing else moves the numbers.
"""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
from pathlib import Path

from benches.figures import Row, at_most
from benches.measure import Bench
from toolcrib import Toolkit

TASKS, AT_ONCE, ROUNDS = 10_000, 500, 2
MIB = 1 << 20


async def rows(bench: Bench) -> list[Row]:
    """Count what tasks leave behind, in a fresh process.

    Args:
        bench: Keeps the measurement; nothing is timed.

    Returns:
        One row.
    """
    done = subprocess.run([sys.executable, "-m", "benches.background"], stdout=subprocess.PIPE, check=True, text=True)
    left: dict[str, int] = json.loads(done.stdout)
    return [
        Row(
            "10 000 background tasks, none fetched, after as many",
            (
                at_most(max(left["bytes"], 0) / MIB, 4, 4, "{} MiB RSS"),
                at_most(left["objects"], 0, 0, "{} objects left behind"),
                at_most(left["results"], 1_000, 1_000, "{} results kept"),
            ),
        )
    ]


async def add(a: int, b: int) -> int:
    """Add two numbers, later."""
    await asyncio.sleep(0)
    return a + b


async def _finish(kit: Toolkit) -> None:
    for _ in range(TASKS // AT_ONCE):
        for number in range(AT_ONCE):
            await kit.call("add", a=number, b=1)
        while kit._async_tasks:
            await asyncio.sleep(0)


def _state() -> tuple[int, int]:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096, len(gc.get_objects())


async def _main() -> None:
    kit = Toolkit()
    kit.register_tool_function(add, async_execution=True)
    await _finish(kit)
    grown = []
    for _ in range(ROUNDS):
        before = _state()
        await _finish(kit)
        after = _state()
        grown.append((after[0] - before[0], after[1] - before[1]))
    left = {"bytes": min(memory for memory, _ in grown), "objects": min(objects for _, objects in grown)}
    print(json.dumps({**left, "results": len(kit._async_results)}))


if __name__ == "__main__":
    asyncio.run(_main())
