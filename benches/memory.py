"""Keeping a tool: what one more adds to the memory of the process.

Runs in processes of its own (`python -m benches.memory <driver>`), one for each peer.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from functools import cache
from pathlib import Path

from benches.figures import Row, at_most
from benches.measure import Bench
from benches.peers import Peer, installed
from benches.tools import searches

TOOLS, WARM = 10_000, 50


async def rows(bench: Bench) -> list[Row]:
    """Measure ten thousand tools with five parameters.

    Args:
        bench: Keeps the measurement; nothing is timed.

    Returns:
        One row.
    """
    return [Row("memory of a registered tool", (at_most(kilobytes("toolcrib", TOOLS), None, 1.5, "{} KB"),))]


@cache
def kilobytes(driver: str, tools: int) -> float:
    """Measure the resident memory that a tool adds, in a fresh process.

    Args:
        driver: The module of `benches.peers` to use.
        tools: How many tools to register.

    Returns:
        Kilobytes for each tool.
    """
    command = [sys.executable, "-m", "benches.memory", driver, str(tools)]
    return float(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.split()[-1])


def _grow(peer: Peer, tools: int) -> float:
    functions = searches(tools + WARM, peer.answer)
    for function in functions[tools:]:
        peer.register(peer.kit(), function)
    kit = peer.kit()
    before = _resident()
    for function in functions[:tools]:
        peer.register(kit, function)
    return (_resident() - before) / tools / 1024


def _resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


if __name__ == "__main__":
    asyncio.run(asyncio.sleep(0))  # the parts of asyncio that a peer would otherwise be blamed for
    print(_grow(installed((sys.argv[1],))[0], int(sys.argv[2])))
