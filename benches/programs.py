"""A shell command through a toolkit, against a bare subprocess of asyncio."""

from __future__ import annotations

import asyncio

from benches.figures import Row, at_most
from benches.measure import Bench
from benches.tools import block
from toolcrib import Toolkit, tools

COMMAND = "echo hello"


async def rows(bench: Bench) -> list[Row]:
    """Measure one command from the call to its result.

    Args:
        bench: Runs the measurement.

    Returns:
        One row.
    """
    kit = Toolkit(tools=[tools.execute_shell_command])
    call = block("execute_shell_command", {"command": COMMAND})

    async def bare(times: int) -> None:
        for _ in range(times):
            process = await asyncio.create_subprocess_shell(
                COMMAND, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
            )
            await process.communicate()

    async def toolkit(times: int) -> None:
        for _ in range(times):
            async for _response in kit.call_tool_function(call):
                pass

    timings = await bench.interleave("a shell command", {"asyncio": bare, "toolcrib": toolkit}, wall=True)
    unit = "{}× `create_subprocess_shell` and `communicate`"
    return [Row("shell command, supervised", (at_most(timings.ratio("toolcrib", "asyncio"), 1.2, 1.2, unit),))]
