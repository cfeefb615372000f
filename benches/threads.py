"""Sync tools in worker threads against `asyncio.to_thread`."""

from __future__ import annotations

import asyncio

from benches.figures import Row, at_most
from benches.measure import Bench, at_once
from benches.peers.toolcrib import Toolcrib
from benches.tools import PAIR, tools

CALLS = 200


async def rows(bench: Bench) -> list[Row]:
    """Measure two hundred trivial sync calls at once; the standard library keeps its default executor.

    Args:
        bench: Runs the measurement.

    Returns:
        One row.
    """
    own = Toolcrib()
    add = tools(own.answer).add_sync
    kit = await own.filled([add])
    one, call = own.loop(kit, "add_sync", PAIR), kit.call

    async def to_thread(times: int) -> None:
        for _ in range(times):
            await asyncio.gather(*[asyncio.to_thread(add, **PAIR) for _ in range(CALLS)])

    async def calls(times: int) -> None:
        for _ in range(times):
            await asyncio.gather(*[call("add_sync", **PAIR) for _ in range(CALLS)])

    timings = await bench.interleave(
        f"{CALLS} sync calls in threads",
        {"to_thread": to_thread, "streams": at_once(one, CALLS), "calls": calls},
        wall=True,
    )

    async def to_thread_alone(times: int) -> None:
        for _ in range(times):
            await asyncio.to_thread(add, **PAIR)

    await bench.interleave("one sync call in a thread", {"to_thread": to_thread_alone, "stream": one}, wall=True)
    return [
        Row(
            "200 concurrent trivial sync calls in threads",
            (
                at_most(
                    timings.ratio("streams", "to_thread"), 0.25, 0.143, "{} of `asyncio.to_thread` through streams"
                ),
                at_most(timings.ratio("calls", "to_thread"), 0.25, 0.143, "{} through `call`"),
            ),
        )
    ]
