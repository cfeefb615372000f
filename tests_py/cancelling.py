"""Cancels calls after each number of steps that they can take, and checks what holds then."""

import asyncio
import gc
import warnings
from collections.abc import Sequence

from cancellable import Log, Tools, swallowing, thread, thread_generator
from streams import block
from toolcrib import ToolResponse
from toolcrib.middleware import Middleware

# More steps than any of the calls takes.
POINTS = 400


async def cancelled_after(steps: int, tools: Tools, times: int, *, short: bool, around: Sequence[Middleware]) -> bool:
    """Cancel a call after some steps of the loop and check what holds; tells whether the call ended before that."""
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
        assert got[-1].is_interrupted, f"{where}: the interruption was not told"
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
