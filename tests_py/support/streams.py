"""Calls and their streams: blocks, reading to the end, small tools, and programs in a process of their own."""

import asyncio
import os
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from toolcrib import Toolkit, ToolResponse

NOTE = "<system-info>The tool call has been interrupted by the user.</system-info>"

# `asyncio.Task` counts the requests to cancel since 3.11; `asyncio.timeout` and `TaskGroup` came with that.
COUNTS_REQUESTS = sys.version_info >= (3, 11)
needs_counting = pytest.mark.skipif(not COUNTS_REQUESTS, reason="before 3.11 a task does not count requests to cancel")
TaskGroup: Any = getattr(asyncio, "TaskGroup", None)
timeout: Any = getattr(asyncio, "timeout", None)


def requests() -> int:
    """The number of requests to cancel the current task; 0 where tasks do not count them."""
    task: Any = asyncio.current_task()
    return int(task.cancelling()) if COUNTS_REQUESTS else 0


def block(name: Any, /, **arguments: Any) -> dict[str, Any]:
    """A call as a model sends it."""
    return {"type": "tool_use", "id": "call-1", "name": name, "input": arguments}


async def read(stream: AsyncIterable[ToolResponse]) -> list[ToolResponse]:
    """Every response of a stream."""
    return [response async for response in stream]


async def texts(stream: AsyncIterable[ToolResponse]) -> list[str]:
    """The text of every response of a stream."""
    return [response.text async for response in stream]


async def last(stream: AsyncIterable[ToolResponse]) -> ToolResponse:
    """The last response of a stream."""
    return (await read(stream))[-1]


def text_response(words: str, *, is_last: bool = True) -> ToolResponse:
    """A response of one text block."""
    return ToolResponse([{"type": "text", "text": words}], is_last=is_last)


def toolkit(*tools: Any, errors: Any = "respond", run_in: Any = "inline", **options: Any) -> Toolkit:
    """A toolkit with tools that are all registered with the same options."""
    kit = Toolkit(errors=errors, run_in=run_in)
    for tool in tools:
        kit.register_tool_function(tool, **options)
    return kit


def python(program: str, *options: str, seconds: float = 50, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in an interpreter of its own, which may die."""
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", *options, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        env={**os.environ, **environment},
    )


class Numbers:
    """A tool of three chunks that says when it begins and when it is finalised."""

    def __init__(self) -> None:
        self.log: list[str] = []

    async def numbers(self) -> AsyncIterator[str]:
        self.log.append("began")
        try:
            for number in range(3):
                await asyncio.sleep(0)
                yield str(number)
        finally:
            self.log.append("finalised")

    async def endless(self) -> AsyncIterator[str]:
        try:
            yield "first"
            await asyncio.sleep(60)
        finally:
            self.log.append("finalised")

    def plain(self) -> Iterator[str]:
        try:
            yield "0"
            yield "1"
        finally:
            self.log.append("finalised")


async def echo(text: str) -> str:
    await asyncio.sleep(0)
    return text


def run_file(path: Path) -> str:
    """The output of a program in a file."""
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
