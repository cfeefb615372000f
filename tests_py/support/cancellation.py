"""Tools that wait in every way a tool can wait, cancelled after each number of steps that their calls can take."""

import asyncio
import contextlib
import gc
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from support.streams import COUNTS_REQUESTS, TaskGroup, block, toolkit
from toolcrib import Toolkit, ToolResponse
from toolcrib.middleware import Middleware


class Log:
    """Counts the tools of one call: each enters when it begins and leaves in its `finally`."""

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

# More steps than any of the calls takes.
POINTS = 400


async def cancelled_after(steps: int, tools: Tools, times: int, *, short: bool, around: Sequence[Middleware]) -> bool:
    """Cancel a call after some steps of the loop and check what holds; true if the call ended before that."""
    log = Log()
    kit = tools(log)
    for middleware in around:
        kit.register_middleware(middleware)
    got: list[ToolResponse] = []
    others = asyncio.all_tasks()

    async def consume() -> None:
        if short:
            got.append(await kit.call("tool"))
            return
        async for response in kit.call_tool_function(block("tool")):
            got.append(response)

    task = asyncio.create_task(consume())
    for _ in range(steps):
        await asyncio.sleep(0)
    finished_first = task.done()
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    await asyncio.wait([task], timeout=30)

    where = f"{tools.__name__}, cancelled after {steps} steps"
    assert task.done(), f"{where}: hangs"
    swallowed = tools is swallowing and log.returned
    assert task.cancelled() or finished_first or swallowed, f"{where}: {task}"
    if task.cancelled() and log.entered and not short and times == 1:
        assert got[-1].is_interrupted, f"{where}: the interruption was not reported"
        assert got[-1].code == "interrupted"
    for _ in range(5000):
        if log.left == log.entered and asyncio.all_tasks() == others:
            break
        await asyncio.sleep(0.001 if tools in (thread, thread_generator) else 0)
    assert log.left == log.entered, f"{where}: {log.entered - log.left} `finally` did not run"
    assert asyncio.all_tasks() == others, f"{where}: {asyncio.all_tasks() - others} are left"
    return finished_first


async def cancelled_everywhere(
    tools: Tools, times: int, *, short: bool = False, around: Sequence[Middleware] = ()
) -> None:
    """Cancel a call after each number of steps that it can take."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for steps in range(POINTS):
            if await cancelled_after(steps, tools, times, short=short, around=around) and steps > 10:
                break
        gc.collect()
