"""A hundred thousand calls of each kind: what memory and objects they leave behind.

Runs in a process of its own (`python -m benches.leaks`), so that nothing else moves the numbers.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

from benches.figures import Row, at_most
from benches.measure import Bench, Loop, at_once
from benches.peers.toolcrib import AgentScopesAnswers, Toolcrib
from benches.tools import PAIR, tools

WARM, CALLS, AT_ONCE, ROUNDS = 20_000, 100_000, 100, 2
MIB = 1 << 20


async def rows(bench: Bench) -> list[Row]:
    """Count what calls leave behind, in a fresh process.

    Args:
        bench: Keeps the measurement; nothing is timed.

    Returns:
        One row.
    """
    done = subprocess.run([sys.executable, "-m", "benches.leaks"], stdout=subprocess.PIPE, check=True, text=True)
    left: dict[str, dict[str, int]] = json.loads(done.stdout)
    for kind, growth in left.items():
        print(f"  {kind}: {growth['bytes'] / MIB:+.2f} MiB, {growth['objects']:+d} objects", file=sys.stderr)
    memory = max(growth["bytes"] for growth in left.values()) / MIB
    objects = max(growth["objects"] for growth in left.values())
    return [
        Row(
            "100 000 calls of each kind, after warm-up",
            (
                at_most(memory, 4, 4, "{} MiB RSS"),
                at_most(objects, 0, 0, "{} objects left behind"),
            ),
        )
    ]


async def _kinds() -> dict[str, Loop]:
    logging.getLogger("toolcrib").setLevel(logging.ERROR)
    threaded, inline = Toolcrib(), AgentScopesAnswers()
    made = tools(threaded.answer)
    thread, here = await threaded.filled(made), await inline.filled(made)
    one = threaded.loop(thread, "add_sync", PAIR)
    together = at_once(one, AT_ONCE)
    return {
        "coroutine": threaded.loop(thread, "add", PAIR),
        "async generator": threaded.loop(thread, "count", {"n": 3}),
        "sync, inline": inline.loop(here, "add_sync", PAIR),
        "sync generator, inline": inline.loop(here, "count_sync", {"n": 3}),
        "sync, thread": lambda times: together(times // AT_ONCE),
        "sync generator, thread": threaded.loop(thread, "count_sync", {"n": 3}),
        "raising": threaded.loop(thread, "fail", PAIR),
        "invalid arguments": threaded.loop(thread, "add", {"a": "one"}),
        "unknown tool": threaded.loop(thread, "nobody", PAIR),
    }


async def _run(loop: Loop, times: int) -> None:
    pending = loop(times)
    if inspect.isawaitable(pending):
        await pending


def _state() -> tuple[int, int]:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096, len(gc.get_objects())


async def _growth(loop: Loop, times: int) -> tuple[int, int]:
    before = _state()
    await _run(loop, times)
    after = _state()
    return after[0] - before[0], after[1] - before[1]


async def _main() -> None:
    left: dict[str, Any] = {}
    for kind, loop in (await _kinds()).items():
        # A chunk of a generator in a thread costs a wake-up: a tenth of the calls says as much.
        share = 10 if kind == "sync generator, thread" else 1
        await _run(loop, WARM // share)
        _state()
        # What grows once is warming up, such as one more worker thread; what leaks grows every time.
        grown = [await _growth(loop, CALLS // share) for _ in range(ROUNDS)]
        left[kind] = {"bytes": min(growth[0] for growth in grown), "objects": min(growth[1] for growth in grown)}
    print(json.dumps(left))


if __name__ == "__main__":
    asyncio.run(_main())
