"""Many calls at once that suspend, as an agent makes them with `asyncio.gather`."""

from __future__ import annotations

import asyncio

from benches.figures import Row, at_most
from benches.measure import Bench, Loop, at_once
from benches.peers.agentscope import AgentScope
from benches.peers.toolcrib import Toolcrib
from benches.tools import tools

CALLS = 1_000


async def rows(bench: Bench) -> list[Row]:
    """Measure a thousand suspending calls at once against the bare coroutines.

    Args:
        bench: Runs the measurement.

    Returns:
        One row.
    """
    peer, own = AgentScope(), Toolcrib()
    wait = tools(own.answer).wait
    here, there = await own.filled([wait]), await peer.filled([tools(peer.answer).wait])
    arguments = {"a": 1}
    call = here.call

    async def bare(times: int) -> None:
        for _ in range(times):
            await asyncio.gather(*[wait(**arguments) for _ in range(CALLS)])

    async def calls(times: int) -> None:
        for _ in range(times):
            await asyncio.gather(*[call("wait", **arguments) for _ in range(CALLS)])

    loops: dict[str, Loop] = {
        "bare": bare,
        "streams": at_once(own.loop(here, "wait", arguments), CALLS),
        "calls": calls,
        "AgentScope": at_once(peer.loop(there, "wait", arguments), CALLS),
    }
    timings = await bench.interleave(f"gather of {CALLS}", loops)
    await bench.interleave(f"gather of {CALLS}, the collector running", loops, collector=True)
    return [
        Row(
            "1 000 calls at once that suspend",
            (
                at_most(timings.ratio("streams", "bare"), 1.3, 1.2, "{}× bare `gather` through streams"),
                at_most(timings.ratio("calls", "bare"), 1.3, 1.2, "{}× through `call`"),
            ),
        )
    ]
