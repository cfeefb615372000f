"""Background tasks: starting one, and tools that log how they end."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from support.streams import block, read
from toolcrib import Toolkit


async def start(kit: Toolkit, name: str, /, **arguments: Any) -> str:
    """Call a tool that runs in the background, and return the id of its task."""
    (answer,) = await read(kit.call_tool_function(block(name, **arguments)))
    assert answer.ok, answer
    return answer.text.split("Task ID: ")[1].split(".")[0]


class Slow:
    """Tools that wait for `go`, and log when they begin and how they end."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.go = asyncio.Event()

    async def wait(self) -> str:
        self.log.append("began")
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.log.append("cancelled")
            raise
        finally:
            self.log.append("finalised")
        return "done"

    async def chunks(self) -> AsyncIterator[str]:
        try:
            yield "one"
            await self.go.wait()
            yield "one two"
        finally:
            await asyncio.sleep(0)
            self.log.append("finalised")

    async def stubborn(self) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.log.append("ignored")
        await self.go.wait()
        self.log.append("finished")
        return "late"


def toolkit(*tools: Any, **options: Any) -> Toolkit:
    """A toolkit whose tools all run in the background."""
    kit = Toolkit(**options)
    for tool in tools:
        kit.register_tool_function(tool, async_execution=True)
    return kit
