"""Cancelling a call that goes through middlewares: at every point, it ends as it does without them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from support.cancellation import KINDS, cancelled_everywhere
from support.middleware import break_out, collecting, first_only, layered, passing, returning, waiting
from support.streams import Numbers, block, needs_counting, read, timeout
from toolcrib import ToolResponse
from toolcrib.middleware import NextHandler

AROUND: dict[str, tuple[Any, ...]] = {
    "passing": (passing,),
    "returning, waiting": (returning, waiting),
    "waiting, collecting": (waiting, collecting),
}


@pytest.mark.parametrize("tools", KINDS)
@pytest.mark.parametrize("around", AROUND)
async def test_every_point_of_a_layered_stream_can_be_cancelled(around: str, tools: str) -> None:
    await cancelled_everywhere(KINDS[tools], 1, around=AROUND[around])


@pytest.mark.parametrize("tools", KINDS)
@pytest.mark.parametrize("around", AROUND)
async def test_every_point_of_a_layered_stream_can_be_cancelled_twice(around: str, tools: str) -> None:
    await cancelled_everywhere(KINDS[tools], 2, around=AROUND[around])


@pytest.mark.parametrize("tools", KINDS)
@pytest.mark.parametrize("around", AROUND)
async def test_every_point_of_a_layered_short_call_can_be_cancelled(around: str, tools: str) -> None:
    await cancelled_everywhere(KINDS[tools], 1, short=True, around=AROUND[around])


async def forever() -> None:
    await asyncio.sleep(60)


@needs_counting
@pytest.mark.parametrize("middleware", [passing, first_only, break_out])
@pytest.mark.parametrize("short", [False, True])
async def test_the_interruption_is_reported_once_and_the_task_is_cancelled(middleware: Any, short: bool) -> None:
    got: list[ToolResponse] = []
    kit = layered(forever, middleware)

    async def consume() -> None:
        if short:
            await kit.call("forever")
        async for response in kit.call_tool_function(block("forever")):
            got.append(response)

    task = asyncio.create_task(consume())
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task], timeout=30)

    assert task.cancelled()
    assert [response.code for response in got] == ([] if short else ["interrupted"])


@needs_counting
async def test_a_timeout_around_a_layered_call_is_a_timeout() -> None:
    numbers = Numbers()
    kit = layered(numbers.endless, passing)

    with pytest.raises(TimeoutError):
        async with timeout(0.01):
            await read(kit.call_tool_function(block("endless")))

    assert numbers.log == ["finalised"]


async def test_the_timeout_of_a_tool_is_an_answer_that_middlewares_see() -> None:
    seen: list[str | None] = []

    async def looking(kwargs: dict[str, Any], next_handler: NextHandler) -> AsyncIterator[ToolResponse]:
        async for chunk in next_handler(**kwargs):
            seen.append(chunk.code)
            yield chunk

    kit = layered(forever, looking, timeout=0.01)

    got = await read(kit.call_tool_function(block("forever")))

    assert seen == ["timeout"]
    assert [response.code for response in got] == ["timeout"]


@needs_counting
async def test_a_middleware_may_take_a_cancellation_back() -> None:
    async def forgiving(kwargs: dict[str, Any], next_handler: NextHandler) -> AsyncIterator[ToolResponse | str]:
        async for _chunk in next_handler(**kwargs):
            task: Any = asyncio.current_task()
            task.uncancel()
            break
        yield "forgiven"

    kit = layered(forever, forgiving)
    task = asyncio.create_task(read(kit.call_tool_function(block("forever"))))
    await asyncio.sleep(0.01)

    task.cancel()

    assert [response.text for response in await task] == ["forgiven"]
