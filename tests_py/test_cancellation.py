"""Cancellation wherever a call waits: the tool is finalised, the interruption reported, and the task cancelled."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest

from support.cancellation import KINDS, cancelled_everywhere
from support.loops import LoopFactory
from support.streams import NOTE, block, needs_counting, toolkit
from toolcrib import ToolResponse


@pytest.mark.parametrize("tools", KINDS)
async def test_every_point_of_a_stream_can_be_cancelled(tools: str, loop_factory: LoopFactory) -> None:
    await cancelled_everywhere(KINDS[tools], 1)


@pytest.mark.parametrize("tools", KINDS)
async def test_every_point_can_be_cancelled_twice(tools: str, loop_factory: LoopFactory) -> None:
    await cancelled_everywhere(KINDS[tools], 2)


@pytest.mark.parametrize("tools", KINDS)
async def test_every_point_of_a_short_call_can_be_cancelled(tools: str, loop_factory: LoopFactory) -> None:
    await cancelled_everywhere(KINDS[tools], 1, short=True)


async def forever() -> None:
    await asyncio.sleep(60)


def request(task: "asyncio.Task[Any] | None") -> None:
    assert task is not None
    task.cancel()


@needs_counting
@pytest.mark.parametrize("requester", ["the consumer", "the tool", "a caller before the call"])
async def test_a_request_that_waits_for_the_first_wait_is_kept(requester: str) -> None:
    async def tool() -> AsyncIterator[str]:
        if requester == "the tool":
            request(asyncio.current_task())
        yield "one"
        await forever()

    async def consume() -> None:
        if requester == "a caller before the call":
            request(asyncio.current_task())
        async for response in toolkit(tool).call_tool_function(block("tool")):
            if requester == "the consumer" and not response.is_interrupted:
                request(asyncio.current_task())

    task = asyncio.create_task(consume())
    await asyncio.wait([task], timeout=30)

    assert task.cancelled()


def running(awaitable: Awaitable[Any]) -> "asyncio.Task[Any]":
    async def wait() -> Any:
        return await awaitable

    return asyncio.create_task(wait())


async def test_a_short_call_that_is_cancelled_raises() -> None:
    task = running(toolkit(forever).call("forever"))
    await asyncio.sleep(0.01)

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


@contextlib.asynccontextmanager
async def failing_cleanup() -> AsyncIterator[None]:
    try:
        yield
    finally:
        raise ValueError("the cleanup failed")


async def fails_when_cancelled() -> None:
    async with failing_cleanup():
        await forever()


async def generator_fails_when_cancelled() -> AsyncIterator[str]:
    async with failing_cleanup():
        yield "one"
        await forever()


async def postprocess_fails_when_cancelled(call: Any, response: ToolResponse) -> None:
    await fails_when_cancelled()


async def one_chunk() -> AsyncIterator[str]:
    yield "one"


@pytest.mark.parametrize(
    ("tool", "postprocess"),
    [
        (fails_when_cancelled, None),
        (generator_fails_when_cancelled, None),
        (one_chunk, postprocess_fails_when_cancelled),
    ],
)
async def test_an_error_in_the_cleanup_does_not_undo_a_cancellation(tool: Any, postprocess: Any) -> None:
    kit = toolkit(tool, func_name="tool", postprocess_func=postprocess)
    got: list[ToolResponse] = []

    async def consume() -> None:
        async for response in kit.call_tool_function(block("tool")):
            got.append(response)

    stream, short = asyncio.create_task(consume()), running(kit.call("tool"))
    await asyncio.sleep(0.01)
    for task in (stream, short):
        task.cancel()
    await asyncio.wait([stream, short])

    assert (got[-1].code, got[-1].text) == ("failed", "ValueError: the cleanup failed")
    assert stream.cancelled()
    assert short.cancelled()


@needs_counting
async def test_a_tool_that_passes_a_call_on_reports_the_interruption_once() -> None:
    inner = toolkit(forever)
    got: list[str] = []

    async def outer() -> AsyncIterator[ToolResponse]:
        async for response in inner.call_tool_function(block("forever")):
            yield response

    async def consume() -> None:
        async for response in toolkit(outer).call_tool_function(block("outer")):
            got.append(response.text)

    task = asyncio.create_task(consume())
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task], timeout=30)

    assert task.cancelled()
    assert got == [NOTE]
