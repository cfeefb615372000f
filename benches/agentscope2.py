"""Calls through the compatibility layer of AgentScope 2, against AgentScope 2 itself.

It cannot be installed beside AgentScope 1, so the loops run in an environment of their own, with the same release
wheel: `python -m benches.agentscope2` measures there and prints the timings as JSON.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Generator
from pathlib import Path
from typing import Any

from benches.figures import Row, at_least
from benches.measure import Bench, Loop, Timings
from benches.tools import searches

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venvs" / "bench-agentscope2" / "bin" / "python"
CHUNKS = 100
TOOLS = 10


async def rows(bench: Bench) -> list[Row]:
    """Measure registration, a call, a chunk and a listing, each beside AgentScope's own toolkit.

    Args:
        bench: Gives the number of rounds, and keeps the timings.

    Returns:
        Four rows; none if the environment is missing.
    """
    if not PYTHON.is_file():
        print(f"left out: AgentScope 2 ({PYTHON} is missing; `make bench` makes it)", file=sys.stderr)
        return []
    command = [str(PYTHON), "-m", "benches.agentscope2", str(bench.rounds)]
    finished = await asyncio.to_thread(subprocess.run, command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    measured = [Timings(title, best) for title, best in json.loads(finished.stdout)]
    bench.kept.extend(measured)
    registered, called, streamed, listed = measured
    chunk = (streamed["theirs, 100"] - streamed["theirs, 0"]) / (streamed["ours, 100"] - streamed["ours, 0"])
    unit = "{}× faster than AgentScope 2"
    return [
        Row(
            "register a tool in AgentScope 2's interface: 5 typed parameters",
            (at_least(registered.ratio("theirs", "ours"), 100, 150, unit),),
        ),
        Row(
            "call a coroutine tool in AgentScope 2's interface",
            (at_least(called.ratio("theirs", "ours"), 20, 30, unit),),
        ),
        Row("each chunk of a stream in AgentScope 2's interface", (at_least(chunk, 3, 5, unit),)),
        Row("list 10 tools in AgentScope 2's interface", (at_least(listed.ratio("theirs", "ours"), 5, 15, unit),)),
    ]


async def add(a: int, b: int) -> str:
    """Add two numbers.

    Args:
        a: The first one.
        b: The second one.
    """
    return "3"


async def count(limit: int) -> AsyncIterator[str]:
    """Count."""
    for _ in range(limit):
        yield "3"


def _registers(make: Callable[[], Callable[[Any], object]]) -> Loop:
    def run(times: int) -> Generator[None, None, None]:
        # New functions each time: nothing that a registry remembers of the last turn may help.
        functions, register = searches(times, None), make()
        yield
        for function in functions:
            register(function)
        yield

    return run


async def _measure(rounds: int) -> list[Timings]:
    # Here, because the parent process has another AgentScope.
    from agentscope.message import ToolCallBlock
    from agentscope.state import AgentState
    from agentscope.tool import FunctionTool
    from agentscope.tool import Toolkit as Theirs

    from toolcrib.compat.agentscope2 import Toolkit as Ours

    bench = Bench(rounds=rounds)
    ours, theirs = Ours(), Theirs()

    def register_theirs() -> Callable[[Any], object]:
        tools = Theirs().tool_groups[0].tools
        # As by `add_tool`, without its search for namesakes, which grows with their number.
        return lambda function: tools.append(FunctionTool(function))

    registered = await bench.interleave(
        "register a tool",
        {"ours": _registers(lambda: Ours().register_tool_function), "theirs": _registers(register_theirs)},
    )
    for number in range(TOOLS - 2):
        ours.register_tool_function(add, name=f"tool_{number}")
        await theirs.add_tool(FunctionTool(add, name=f"tool_{number}"))
    for function in (add, count):
        ours.register_tool_function(function)
        await theirs.add_tool(FunctionTool(function))
    state = AgentState()

    def calls(toolkit: Any, name: str, arguments: dict[str, Any]) -> Loop:
        block = ToolCallBlock(id="call", name=name, input=json.dumps(arguments))

        async def run(times: int) -> None:
            for _ in range(times):
                async for _item in toolkit.call_tool(block, state):
                    pass

        return run

    def lists(toolkit: Any) -> Loop:
        async def run(times: int) -> None:
            for _ in range(times):
                await toolkit.get_tool_schemas([])

        return run

    pair = {"a": 1, "b": 2}
    called = await bench.interleave(
        "call a coroutine tool", {"ours": calls(ours, "add", pair), "theirs": calls(theirs, "add", pair)}
    )
    streamed = await bench.interleave(
        "a stream",
        {
            f"{name}, {limit}": calls(toolkit, "count", {"limit": limit})
            for name, toolkit in (("ours", ours), ("theirs", theirs))
            for limit in (0, CHUNKS)
        },
    )
    listed = await bench.interleave("list tools", {"ours": lists(ours), "theirs": lists(theirs)})
    return [registered, called, streamed, listed]


if __name__ == "__main__":
    timings = asyncio.run(_measure(int(sys.argv[1])))
    print(json.dumps([(timing.title, dict(timing.best)) for timing in timings]))
