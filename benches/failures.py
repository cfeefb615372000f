"""A tool that raises: the exception becomes a response."""

from __future__ import annotations

import logging

from benches.figures import Row, at_least
from benches.measure import Bench
from benches.peers.agentscope import AgentScope
from benches.peers.toolcrib import Toolcrib
from benches.tools import PAIR, tools


async def rows(bench: Bench) -> list[Row]:
    """Measure a failing coroutine tool against AgentScope's answer and a bare `try`.

    AgentScope logs nothing. So the records with the traceback, which handlers would format, are switched off.

    Args:
        bench: Runs the measurement.

    Returns:
        One row.
    """
    logging.getLogger("toolcrib").setLevel(logging.ERROR)
    peer, own = AgentScope(), Toolcrib()
    fail = tools(own.answer).fail
    here, there = await own.filled([fail]), await peer.filled([tools(peer.answer).fail])

    async def bare(times: int) -> None:
        for _ in range(times):
            try:  # noqa: SIM105 - the bare form is what is measured
                await fail(**PAIR)
            except ValueError:
                pass

    timings = await bench.interleave(
        "a tool that raises",
        {"bare try": bare, "toolcrib": own.loop(here, "fail", PAIR), "AgentScope": peer.loop(there, "fail", PAIR)},
    )
    return [
        Row(
            "a tool that raises, answered as a response",
            (at_least(timings.ratio("AgentScope", "toolcrib"), 8, 10, "{}× faster than AgentScope"),),
        )
    ]
