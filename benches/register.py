"""Registering a tool: signature, docstring and schema, from nothing to ready."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import agentscope.tool

import toolcrib
from benches.figures import Row, at_least
from benches.measure import Bench, Loop
from benches.tools import searches


async def rows(bench: Bench) -> list[Row]:
    """Measure registration of a tool with five typed parameters and a Google docstring.

    Args:
        bench: Runs the measurement.

    Returns:
        One row.
    """
    timings = await bench.interleave(
        "register",
        {"toolcrib": _registers(toolcrib.Toolkit), "AgentScope": _registers(agentscope.tool.Toolkit)},
    )
    times = timings.ratio("AgentScope", "toolcrib")
    return [
        Row(
            "register a tool: 5 typed parameters, Google docstring",
            (at_least(times, 150, 250, "{}× faster than AgentScope"),),
        )
    ]


def _registers(kit: Callable[[], Any]) -> Loop:
    def run(times: int) -> Generator[None, None, None]:
        # New functions each time: nothing that a registry remembers of the last turn may help.
        functions = searches(times, None)
        register = kit().register_tool_function
        yield
        for function in functions:
            register(function)
        yield

    return run
