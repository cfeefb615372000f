"""Tools that wait in every way a tool can wait, for cancelling them at each of those points."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from streams import COUNTS_REQUESTS, TaskGroup, block, toolkit
from toolcrib import Toolkit, ToolResponse


class Log:
    """What the tools of one call did: each enters when it begins and leaves in its `finally`."""

    def __init__(self) -> None:
        self.entered = 0
        self.left = 0
        self.returned = False

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        self.entered += 1
        try:
            yield
        finally:
            self.left += 1


Tools = Callable[[Log], Toolkit]


def coroutine(log: Log) -> Toolkit:
    async def tool() -> str:
        with log.inside():
            for _ in range(4):
                await asyncio.sleep(0)
            await asyncio.sleep(0.001)
        log.returned = True
        return "done"

    return toolkit(tool)


def async_generator(log: Log) -> Toolkit:
    async def tool() -> AsyncIterator[str]:
        with log.inside():
            for number in range(3):
                yield str(number)
                await asyncio.sleep(0)
                await asyncio.sleep(0)
        log.returned = True

    return toolkit(tool)


def async_finally(log: Log) -> Toolkit:
    async def tool() -> AsyncIterator[str]:
        with log.inside():
            try:
                yield "one"
                await asyncio.sleep(0)
                yield "two"
            finally:
                await asyncio.sleep(0)
                await asyncio.sleep(0)
        log.returned = True

    return toolkit(tool)


async def slow_postprocess(call: Any, response: ToolResponse) -> None:
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def postprocessed(log: Log) -> Toolkit:
    async def tool() -> AsyncIterator[str]:
        with log.inside():
            yield "one"
            await asyncio.sleep(0)
            yield "two"
        log.returned = True

    return toolkit(tool, postprocess_func=slow_postprocess)


def postprocessed_coroutine(log: Log) -> Toolkit:
    async def tool() -> str:
        with log.inside():
            await asyncio.sleep(0)
        return "done"

    return toolkit(tool, postprocess_func=slow_postprocess)


def thread(log: Log) -> Toolkit:
    wait = threading.Event()

    def tool() -> str:
        with log.inside():
            wait.wait(0.002)
        log.returned = True
        return "done"

    return toolkit(tool, run_in="thread")


def thread_generator(log: Log) -> Toolkit:
    wait = threading.Event()

    def tool() -> Iterator[str]:
        with log.inside():
            for number in range(3):
                wait.wait(0.001)
                yield str(number)
        log.returned = True

    return toolkit(tool, run_in="thread")


def nested(log: Log) -> Toolkit:
    kit = async_finally(log)

    async def outer() -> AsyncIterator[ToolResponse]:
        with log.inside():
            async with contextlib.aclosing(kit.call_tool_function(block("tool"))) as stream:
                async for response in stream:
                    yield response

    return toolkit(outer, func_name="tool")


def nested_call(log: Log) -> Toolkit:
    kit = coroutine(log)

    async def outer() -> ToolResponse:
        with log.inside():
            return await kit.call("tool")

    return toolkit(outer, func_name="tool")


async def part(log: Log) -> None:
    with log.inside():
        await asyncio.sleep(0)
        await asyncio.sleep(0.001)


def gathering(log: Log) -> Toolkit:
    async def tool() -> str:
        await asyncio.gather(part(log), part(log))
        log.returned = True
        return "done"

    return toolkit(tool)


def grouping(log: Log) -> Toolkit:
    async def tool() -> str:
        async with TaskGroup() as group:
            group.create_task(part(log))
            group.create_task(part(log))
        log.returned = True
        return "done"

    return toolkit(tool)


def shielded(log: Log) -> Toolkit:
    async def tool() -> str:
        inner = asyncio.ensure_future(part(log))
        try:
            await asyncio.shield(inner)
        finally:
            await inner
        return "done"

    return toolkit(tool)


def swallowing(log: Log) -> Toolkit:
    async def tool() -> str:
        with log.inside():
            for _ in range(2):
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.001)
        log.returned = True
        return "done"

    return toolkit(tool)


KINDS: dict[str, Tools] = {
    tools.__name__: tools
    for tools in (
        coroutine,
        async_generator,
        async_finally,
        postprocessed,
        postprocessed_coroutine,
        thread,
        thread_generator,
        nested,
        nested_call,
        gathering,
        shielded,
        swallowing,
        *([grouping] if COUNTS_REQUESTS else []),
    )
}
