"""Making what a tool returns: a response with one text block."""

from __future__ import annotations

import agentscope.message
import agentscope.tool

import toolcrib
from benches.figures import Row, at_least
from benches.measure import Bench, Loop


async def rows(bench: Bench) -> list[Row]:
    """Measure the creation of a response against AgentScope's class of the same name.

    Args:
        bench: Runs the measurement.

    Returns:
        One row.
    """
    timings = await bench.interleave("create a response", {"toolcrib": _ours(), "AgentScope": _theirs()})
    return [
        Row(
            "create a `ToolResponse` with one text block",
            (at_least(timings.ratio("AgentScope", "toolcrib"), 10, 15, "{}× faster than AgentScope's"),),
        )
    ]


def _ours() -> Loop:
    response, text = toolcrib.ToolResponse, toolcrib.TextBlock

    def run(times: int) -> None:
        for _ in range(times):
            response(content=[text(type="text", text="3")])

    return run


def _theirs() -> Loop:
    response, text = agentscope.tool.ToolResponse, agentscope.message.TextBlock

    def run(times: int) -> None:
        for _ in range(times):
            response(content=[text(type="text", text="3")])

    return run
