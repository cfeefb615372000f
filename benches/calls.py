"""Calling a coroutine tool: through the stream, with and without a check of its arguments, and directly."""

from __future__ import annotations

from benches.figures import Row, at_least, at_most
from benches.measure import Bench, Loop
from benches.peers.agentscope import AgentScope
from benches.peers.toolcrib import Toolcrib
from benches.tools import PAIR, tools
from toolcrib import Toolkit


async def rows(bench: Bench) -> list[Row]:
    """Measure one call of a trivial coroutine tool, the ways there are.

    Args:
        bench: Runs the measurement.

    Returns:
        Four rows.
    """
    peer, own = AgentScope(), Toolcrib()
    add = tools(own.answer).add
    passing, coercing = Toolkit(arguments="pass"), Toolkit()
    checking = Toolkit(arguments="check")
    for kit in (passing, coercing, checking):
        kit.register_tool_function(add)
    there = await peer.filled([tools(peer.answer).add])

    async def bare(times: int) -> None:
        for _ in range(times):
            await add(**PAIR)

    timings = await bench.interleave(
        "call",
        {
            "BK": bare,
            "stream, pass": own.loop(passing, "add", PAIR),
            "stream, check": own.loop(checking, "add", PAIR),
            "stream, coerce": own.loop(coercing, "add", PAIR),
            "stream, one coerced": own.loop(coercing, "add", {"a": "1", "b": 2}),
            "call, pass": _direct(passing),
            "call, coerce": _direct(coercing),
            "call, coerce, keywords spelt out": _spelt(coercing),
            "AgentScope": peer.loop(there, "add", PAIR),
        },
    )
    return [
        Row(
            "call a coroutine tool through the stream, arguments passed",
            (
                at_most(timings.ratio("stream, pass", "BK"), 2.4, 1.7, "{} BK"),
                at_least(timings.ratio("AgentScope", "stream, pass"), 8, 12, "{}× faster than AgentScope"),
            ),
        ),
        Row(
            "the same with arguments coerced and checked",
            (
                at_most(timings.ratio("stream, coerce", "BK"), 3, 1.8, "{} BK"),
                at_least(
                    timings.ratio("AgentScope", "stream, coerce"),
                    6,
                    6,
                    "{}× faster than AgentScope, which checks nothing",
                ),
            ),
        ),
        Row(
            "the same with one of two numbers sent as text, with the repair in the metadata",
            (at_least(timings.ratio("AgentScope", "stream, one coerced"), 1.5, 2, "{}× faster than AgentScope"),),
        ),
        Row(
            "`await toolkit.call(...)`, one result",
            (at_most(timings.ratio("call, coerce", "BK"), 1.6, 1.0, "{} BK"),),
        ),
    ]


def _direct(kit: Toolkit) -> Loop:
    call = kit.call

    async def run(times: int) -> None:
        for _ in range(times):
            await call("add", **PAIR)

    return run


def _spelt(kit: Toolkit) -> Loop:
    call = kit.call

    async def run(times: int) -> None:
        for _ in range(times):
            await call("add", a=1, b=2)

    return run
