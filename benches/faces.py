"""Calls through the compatibility layers, against the plain toolkit, and against Agently itself.

ArtifactFlow is not published as a package, and the other two are JavaScript. Agently calls a function of the right kind
directly, without a path that could decide about the call; it has to shift other functions, and to connect for each
call of an MCP tool. The bounds beside Agently follow from this: its call of a function of the right kind takes about
four times as long as the function alone, so that no call can be ten times faster. In the others a thread or an event
loop takes most of the time, which both need; only the connection to a server can be saved as a whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from agently.builtins.plugins.ToolManager.AgentlyToolManager import AgentlyToolManager
from agently.utils import Settings

from benches.figures import Figure, Row, at_least, at_most
from benches.mcp import ARGUMENTS, served
from benches.measure import Bench, Loop, Timings
from toolcrib import Toolkit, mcp
from toolcrib.compat import artifactflow, gemini, groups
from toolcrib.compat.agently import ToolManager


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def add_async(a: int, b: int) -> int:
    """Add."""
    return a + b


class Add(artifactflow.BaseTool):
    """A tool of ArtifactFlow."""

    def __init__(self) -> None:
        super().__init__("add_async", "Add.")

    def get_parameters(self) -> list[artifactflow.ToolParameter]:
        """Return the parameters."""
        return [artifactflow.ToolParameter("a", "integer", "One."), artifactflow.ToolParameter("b", "integer", "Two.")]

    async def execute(self, **params: Any) -> artifactflow.ToolResult:
        """Add."""
        return artifactflow.ToolResult(True, params["a"] + params["b"])


class Adding(gemini.ToolInvocation[dict[str, Any]]):
    """A call of the tool of gemini-cli."""

    async def execute(self, signal: gemini.CancelSignal, update_output: Any = None) -> gemini.ToolResult:
        """Add."""
        return gemini.ToolResult(str(self.params["a"] + self.params["b"]))


class DeclaredAdd(gemini.BaseDeclarativeTool[dict[str, Any]]):
    """A tool of gemini-cli."""

    def __init__(self) -> None:
        integers = {"a": {"type": "integer"}, "b": {"type": "integer"}}
        super().__init__("add_async", "Add", "Add.", gemini.Kind.READ, {"type": "object", "properties": integers})

    def create_invocation(self, params: dict[str, Any]) -> Adding:
        """Return the call."""
        return Adding(params)


async def rows(bench: Bench) -> list[Row]:
    """Measure calls through the interfaces of Agently, ArtifactFlow, gemini-cli and ToolGroupManager.

    Args:
        bench: Runs the measurement.

    Returns:
        Nine rows.
    """
    return [*await _agently(bench), await _artifactflow(bench), await _gemini(bench), await _groups(bench)]


async def _agently(bench: Bench) -> list[Row]:
    face, theirs = ToolManager(), AgentlyToolManager(Settings())
    for manager in (face, theirs):
        manager.tool_func(add)
        manager.tool_func(add_async)
    plain = Toolkit(arguments="pass", errors="raise", tools=[add, add_async])
    awaited = await bench.interleave("a coroutine tool, awaited", _awaited(face, theirs, plain, "add_async"))
    threaded = await bench.interleave("a function, awaited", _awaited(face, theirs, plain, "add"), wall=True)
    direct = await bench.interleave("a function, called", _each(_called, _calls(face, theirs, plain, "add")), wall=True)
    calls = _calls(face, theirs, plain, "add_async")
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
        Row(f"{work} through Agently's interface", _figures(timings, faster, slower))
        for work, timings, faster, slower in (
            ("await a coroutine tool", awaited, 1.4, 0.8),
            ("await a synchronous tool", threaded, 1.8, 1.2),
            ("call a synchronous tool from synchronous code", direct, 0.4, 0.1),
            ("call a coroutine tool from synchronous code", waiting, 2, 1.2),
            ("call a coroutine tool from synchronous code in a loop", blocking, 2.5, 1.2),
            ("await an MCP tool over HTTP", remote, 10, 1.2),
        )
    ]


async def _artifactflow(bench: Bench) -> Row:
    toolkit, tool = artifactflow.AgentToolkit("agent"), Add()
    toolkit.add_tool(tool)

    async def add_async(a: int, b: int) -> artifactflow.ToolResult:
        """Add, with the same result as the tool."""
        return artifactflow.ToolResult(True, a + b)

    async def through(times: int) -> None:
        for _ in range(times):
            await toolkit.execute_tool("add_async", ARGUMENTS)

    return await _beside_plain(bench, "ArtifactFlow", Toolkit(tools=[add_async]), through)


async def _gemini(bench: Bench) -> Row:
    registry, plain = gemini.ToolRegistry(), Toolkit(arguments="pass")
    registry.register_tool(DeclaredAdd())
    plain.register_tool_function(DeclaredAdd())
    call = {"name": "add_async", "args": ARGUMENTS}

    async def through(times: int) -> None:
        for _ in range(times):
            await registry.execute_tool_call(call)

    return await _beside_plain(bench, "gemini-cli", plain, through)


async def _groups(bench: Bench) -> Row:
    plain = Toolkit(tools=[add_async])
    runtime = groups.Runtime(executor=plain)
    definition = {"type": "function", "function": {"name": "add_async"}}
    runtime.toolGroupManager.registerGroup("math", {"tools": [definition]})
    role = runtime.org.createRole({"name": "developer", "toolGroups": ["math"]})
    runtime.org.createAgent({"id": "ada", "roleId": role["id"]})
    ctx = {"agent": {"id": "ada"}}

    async def through(times: int) -> None:
        for _ in range(times):
            await runtime.executeToolCall(ctx, "add_async", ARGUMENTS)

    return await _beside_plain(bench, "ToolGroupManager", plain, through)


async def _beside_plain(bench: Bench, name: str, plain: Toolkit, through: Loop) -> Row:
    async def run(times: int) -> None:
        for _ in range(times):
            await plain.call("add_async", **ARGUMENTS)

    timings = await bench.interleave(f"a coroutine tool, by {name}", {"face": through, "plain": run})
    slower = at_most(timings.ratio("face", "plain"), 1.2, 1.1, "{}× the plain toolkit's time")
    return Row(f"await a coroutine tool through {name}'s interface", (slower,))


def _figures(timings: Timings, faster: float, slower: float) -> tuple[Figure, ...]:
    return (
        at_least(timings.ratio("agently", "face"), faster, 10, "{}× Agently's speed"),
        at_most(timings.ratio("face", "plain"), slower, slower, "{}× the plain toolkit's time"),
    )


def _calls(face: ToolManager, theirs: Any, plain: Toolkit, name: str) -> dict[str, Callable[[], object]]:
    return {
        "face": lambda: face.call_tool(name, ARGUMENTS),
        "agently": lambda: theirs.call_tool(name, ARGUMENTS),
        "plain": lambda: plain.run(name, **ARGUMENTS),
    }


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
