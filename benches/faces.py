"""Calls through the compatibility layer of Agently, against Agently itself and against the plain toolkit.

Agently calls a function of the right kind directly; the figures are about calls that it has to shift or to connect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from agently.builtins.plugins.ToolManager.AgentlyToolManager import AgentlyToolManager
from agently.utils import Settings

from benches.figures import Row, at_least, at_most
from benches.mcp import ARGUMENTS, served
from benches.measure import Bench, Loop
from toolcrib import Toolkit, mcp
from toolcrib.compat.agently import ToolManager


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def add_async(a: int, b: int) -> int:
    """Add."""
    return a + b


async def rows(bench: Bench) -> list[Row]:
    """Measure calls of coroutines, of functions, and of the tools of an MCP server.

    Args:
        bench: Runs the measurement.

    Returns:
        Five rows.
    """
    face, theirs = ToolManager(), AgentlyToolManager(Settings())
    for manager in (face, theirs):
        manager.tool_func(add)
        manager.tool_func(add_async)
    plain = Toolkit(arguments="pass", errors="raise", tools=[add, add_async])
    awaited = await bench.interleave("a coroutine tool, awaited", _awaited(face, theirs, plain, "add_async"))
    threaded = await bench.interleave("a function, awaited", _awaited(face, theirs, plain, "add"), wall=True)
    calls: dict[str, Callable[[], object]] = {
        "face": lambda: face.call_tool("add_async", ARGUMENTS),
        "agently": lambda: theirs.call_tool("add_async", ARGUMENTS),
        "plain": lambda: plain.run("add_async", **ARGUMENTS),
    }
    blocking = await bench.interleave("a coroutine tool, in a loop", _each(_called, calls), wall=True)
    waiting = await bench.interleave("a coroutine tool, without a loop", _each(_called_in_thread, calls), wall=True)
    async with served("sdk") as url, mcp.connect(url) as client:
        plain = Toolkit()
        await plain.register_mcp_client(client, enable_funcs=["add"])
        face, theirs = ToolManager(), AgentlyToolManager(Settings())
        for manager in (face, theirs):
            await manager.async_use_mcp(url)
        remote = await bench.interleave("an MCP tool", _awaited(face, theirs, plain, "add"), wall=True)
        await face.aclose()
    return [
        Row(f"{work} through Agently's interface", _figures(timings))
        for work, timings in (
            ("await a coroutine tool", awaited),
            ("await a synchronous tool", threaded),
            ("call a coroutine tool from synchronous code", waiting),
            ("call a coroutine tool from synchronous code in a loop", blocking),
            ("await an MCP tool over HTTP", remote),
        )
    ]


def _figures(timings: Any) -> Any:
    faster, slower = timings.ratio("agently", "face"), timings.ratio("face", "plain")
    return (
        at_least(faster, None, 10, "{}× faster than Agently"),
        at_most(slower, None, 1.2, "{}× the plain toolkit's time"),
    )


def _awaited(face: ToolManager, theirs: Any, plain: Toolkit, name: str) -> dict[str, Loop]:
    def through(manager: Any) -> Loop:
        async def run(times: int) -> None:
            for _ in range(times):
                await manager.async_call_tool(name, ARGUMENTS)

        return run

    async def run(times: int) -> None:
        for _ in range(times):
            await plain.call(name, **ARGUMENTS)

    return {"face": through(face), "agently": through(theirs), "plain": run}


def _each(make: Callable[[Callable[[], object]], Loop], calls: dict[str, Callable[[], object]]) -> dict[str, Loop]:
    return {name: make(call) for name, call in calls.items()}


def _called(call: Callable[[], object]) -> Loop:
    def run(times: int) -> None:
        for _ in range(times):
            call()

    return run


def _called_in_thread(call: Callable[[], object]) -> Loop:
    async def run(times: int) -> None:
        await asyncio.to_thread(_called(call), times)

    return run
