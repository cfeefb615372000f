"""`mark_last`: the flag of the last response is true, that of every other false, and no response is changed."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from support.middleware import layered
from support.streams import block, read, text_response
from toolcrib import ToolResponse
from toolcrib.middleware import mark_last


@pytest.mark.parametrize("flags", [[True], [False], [True, True, True], [False, False], [False, True, False]])
async def test_only_the_last_response_is_last(flags: list[bool]) -> None:
    given = [text_response(str(number), is_last=flag) for number, flag in enumerate(flags)]

    async def tool() -> AsyncIterator[ToolResponse]:
        for response in given:
            yield response

    got = await read(layered(tool, mark_last).call_tool_function(block("tool")))

    assert [response.text for response in got] == [response.text for response in given]
    assert [response.is_last for response in got] == [False] * (len(flags) - 1) + [True]
    assert [response.is_last for response in given] == flags
    assert [response.id for response in got] == [response.id for response in given]


class Marked(ToolResponse):
    origin: str


async def test_a_copy_keeps_the_class_and_what_was_added() -> None:
    async def tool() -> AsyncIterator[ToolResponse]:
        response = Marked([], code="failed")
        response.origin = "here"
        yield response
        yield "end"  # type: ignore[misc]

    first, _ = await read(layered(tool, mark_last).call_tool_function(block("tool")))

    assert isinstance(first, Marked)
    assert (first.origin, first.code, first.is_last) == ("here", "failed", False)


async def test_what_was_held_back_is_delivered_before_an_exception() -> None:
    got: list[Any] = []

    async def tool() -> AsyncIterator[str]:
        yield "one"
        raise ValueError("broken")

    async def consume() -> None:
        async for response in layered(tool, mark_last, errors="raise").call_tool_function(block("tool")):
            got.append((response.text, response.is_last))

    with pytest.raises(ValueError, match="broken"):
        await consume()

    assert got == [("one", False)]


async def test_an_interruption_is_the_last_response_and_still_cancels() -> None:
    got: list[Any] = []

    async def tool() -> AsyncIterator[str]:
        yield "one"
        await asyncio.sleep(60)

    async def consume() -> None:
        async for response in layered(tool, mark_last).call_tool_function(block("tool")):
            got.append((response.is_interrupted, response.is_last))

    task = asyncio.create_task(consume())
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task], timeout=30)

    assert task.cancelled()
    assert got == [(False, False), (True, True)]
