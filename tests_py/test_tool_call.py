"""`RegisteredToolFunction.call`: one tool as a stream, without its toolkit."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest

from support.middleware import layered, logging
from support.streams import Numbers, echo, read, texts, toolkit
from toolcrib import ToolResponse


def add(a: int, b: int) -> int:
    return a + b


@pytest.mark.parametrize("run_in", ["thread", "inline"])
async def test_a_tool_is_called_with_arguments_that_are_read_and_presets(run_in: str) -> None:
    tool = toolkit(add, run_in=run_in, preset_kwargs={"b": 2}).tools["add"]

    stream = tool.call(arguments={"a": "40"})

    assert isinstance(stream, AsyncGenerator)
    assert [(response.text, response.is_last) for response in await read(await stream)] == [("42", True)]


async def test_wrong_arguments_are_an_answer() -> None:
    tool = toolkit(add, preset_kwargs={"b": 2}).tools["add"]

    codes = [
        (await read(tool.call(arguments=arguments)))[0].code
        for arguments in ({"a": 1, "b": 3}, {}, {"a": "x"}, "no object")
    ]

    assert codes == ["invalid_arguments", "invalid_arguments", "invalid_arguments", "bad_call"]


async def test_neither_the_group_nor_middlewares_take_part() -> None:
    log: list[str] = []
    kit = layered(add, logging(log, "1"))
    kit.create_tool_group("off", "Nothing.")
    kit.register_tool_function(echo, "off")

    got = await texts(kit.tools["echo"].call(arguments={"text": "hi"}))

    assert got == ["hi"]
    assert log == []


async def test_a_tool_that_was_removed_can_still_be_called() -> None:
    kit = toolkit(echo)
    tool = kit.tools["echo"]
    kit.clear()

    assert await texts(tool.call(arguments='{"text": "hi"}')) == ["hi"]


async def test_each_response_is_shown_as_it_passes() -> None:
    shown: list[str] = []

    async def show_later(response: ToolResponse) -> None:
        await asyncio.sleep(0)
        shown.append(response.text)

    tool = toolkit(Numbers().numbers).tools["numbers"]

    got = await texts(tool.call(arguments={}, stream_print=lambda response: shown.append(response.text)))
    got += await texts(await tool.call(arguments={}, stream_print=show_later))

    assert got == ["0", "1", "2", "012"] * 2
    assert shown == got


@pytest.mark.parametrize("errors", ["respond", "raise", "compat"])
async def test_what_goes_wrong_while_showing_is_treated_as_the_tool_says(errors: str) -> None:
    def fail(response: ToolResponse) -> None:
        raise ValueError("no paper")

    stream = toolkit(echo, errors=errors).tools["echo"].call(arguments={"text": "hi"}, stream_print=fail)

    if errors == "respond":
        assert [response.text for response in await read(stream)] == ["ValueError: no paper"]
    else:
        with pytest.raises(ValueError, match="no paper"):
            await read(stream)


async def test_closing_the_stream_closes_the_tool() -> None:
    numbers = Numbers()
    stream = toolkit(numbers.numbers).tools["numbers"].call(arguments={}, stream_print=print)
    await anext(stream)

    await stream.aclose()

    assert numbers.log == ["began", "finalised"]


def test_what_is_shown_the_responses_must_be_callable() -> None:
    wrong: Any = 5

    with pytest.raises(TypeError, match="must be callable, not int"):
        toolkit(echo).tools["echo"].call(arguments={}, stream_print=wrong)


async def test_many_calls_of_one_tool_are_independent() -> None:
    tool = toolkit(echo).tools["echo"]

    async def one(number: int) -> AsyncIterator[str]:
        for text in await texts(tool.call(arguments={"text": str(number)})):
            yield text

    got = await asyncio.gather(*[anext(one(number)) for number in range(50)])

    assert got == [str(number) for number in range(50)]
