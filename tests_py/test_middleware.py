"""Middlewares: an onion around every call."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from functools import partial
from typing import Any

import pytest

from support.middleware import collecting, layered, logging, passing, returning, waiting
from support.streams import Numbers, block, echo, read, text_response, texts
from toolcrib import Toolkit, ToolResponse, ToolStream
from toolcrib.middleware import NextHandler

Chunks = AsyncIterator[Any]


def ask(kit: Toolkit, words: str = "hello") -> ToolStream:
    return kit.call_tool_function(block("echo", text=words))


async def test_the_first_middleware_is_the_outermost() -> None:
    log: list[str] = []
    kit = layered(echo, logging(log, "1"), logging(log, "2"))

    await read(await ask(kit))

    assert log == ["1 in", "2 in", "2: hello", "1: hello", "2 out", "1 out"]


@pytest.mark.parametrize("way", ["stream", "call"])
async def test_a_middleware_is_given_the_block(way: str) -> None:
    given: list[Any] = []

    async def spy(kwargs: dict[str, Any], next_handler: NextHandler) -> Chunks:
        given.append(kwargs)
        async for chunk in next_handler(**kwargs):
            yield chunk

    kit = layered(echo, spy)
    asked = {**block("echo", text="hi"), "id": "call-1" if way == "stream" else ""}

    response = (await read(kit.call_tool_function(asked)))[0] if way == "stream" else await kit.call("echo", text="hi")

    assert response.text == "hi"
    assert given == [{"tool_call": asked}]
    assert way == "call" or given[0]["tool_call"] is asked


class Callable:
    def __call__(self, kwargs: dict[str, Any], next_handler: NextHandler) -> ToolStream:
        return next_handler(**kwargs)


class Iterator:
    """An async iterator that is no generator."""

    def __init__(self, stream: ToolStream) -> None:
        self.stream = stream

    def __aiter__(self) -> "Iterator":
        return self

    async def __anext__(self) -> ToolResponse:
        return await anext(self.stream)


async def awaited(kwargs: dict[str, Any], next_handler: NextHandler) -> AsyncGenerator[ToolResponse, None]:
    stream: Any = next_handler(**kwargs)
    return await stream  # type: ignore[no-any-return]


async def iterating(kwargs: dict[str, Any], next_handler: NextHandler) -> Iterator:
    return Iterator(next_handler(**kwargs))


def plain(kwargs: dict[str, Any], next_handler: NextHandler) -> Awaitable[ToolResponse]:
    return collecting(kwargs, next_handler)


MIDDLEWARES = [passing, waiting, returning, awaited, iterating, collecting, plain, Callable(), partial(passing)]


@pytest.mark.parametrize("inner", MIDDLEWARES)
@pytest.mark.parametrize("outer", MIDDLEWARES)
async def test_any_callable_that_gives_a_stream_or_a_response_is_a_middleware(outer: Any, inner: Any) -> None:
    kit = layered(Numbers().numbers, outer, inner)
    last_only = {collecting, plain} & {outer, inner}

    got = await texts(kit.call_tool_function(block("numbers")))
    last = await kit.call("numbers")

    assert got == (["012"] if last_only else ["0", "1", "2", "012"])
    assert last.text == "012"


def test_run_goes_through_middlewares() -> None:
    log: list[str] = []

    response = layered(echo, logging(log, "1")).run("echo", text="hi")

    assert response.text == "hi"
    assert log == ["1 in", "1: hi", "1 out"]


async def test_a_middleware_can_rewrite_the_call() -> None:
    async def redirect(kwargs: dict[str, Any], next_handler: NextHandler) -> Chunks:
        call = {**kwargs["tool_call"], "input": {"text": "changed"}}
        async for chunk in next_handler(tool_call=call):
            yield chunk

    assert await texts(ask(layered(echo, redirect))) == ["changed"]


async def test_a_middleware_can_skip_the_call() -> None:
    async def skip(kwargs: dict[str, Any], next_handler: NextHandler) -> Chunks:
        yield text_response("no")

    log: list[str] = []

    assert await texts(ask(layered(echo, skip, logging(log, "inner")))) == ["no"]
    assert log == []


async def test_a_middleware_can_try_again() -> None:
    tries: list[int] = []

    async def flaky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise ValueError("not yet")
        return "done"

    async def retry(kwargs: dict[str, Any], next_handler: NextHandler) -> Chunks:
        while True:
            chunks = await read(next_handler(**kwargs))
            if chunks[-1].ok:
                break
        for chunk in chunks:
            yield chunk

    kit = layered(flaky, retry)

    assert await texts(kit.call_tool_function(block("flaky"))) == ["done"]
    assert len(tries) == 3


async def test_what_a_middleware_gives_is_made_a_response() -> None:
    async def more(kwargs: dict[str, Any], next_handler: NextHandler) -> Chunks:
        yield "before"
        async for chunk in next_handler(**kwargs):
            yield text_response(chunk.text.upper())
        yield {"after": 1}

    got = await read(ask(layered(echo, more)))

    assert [type(chunk) for chunk in got] == [ToolResponse] * 3
    assert [chunk.text for chunk in got] == ["before", "HELLO", '{"after": 1}']


async def test_a_middleware_that_gives_nothing_fails() -> None:
    async def nothing(kwargs: dict[str, Any], next_handler: NextHandler) -> Chunks:
        for never in list[str]():
            yield never

    got = await read(ask(layered(echo, nothing)))

    assert [chunk.code for chunk in got] == ["failed"]


async def test_keys_reach_the_middlewares_further_in() -> None:
    seen: list[Any] = []

    async def giving(kwargs: dict[str, Any], next_handler: NextHandler) -> ToolStream:
        return next_handler(**kwargs, user="ann")

    async def taking(kwargs: dict[str, Any], next_handler: NextHandler) -> ToolStream:
        seen.append(kwargs.pop("user"))
        return next_handler(**kwargs)

    assert await texts(ask(layered(echo, giving, taking))) == ["hello"]
    assert seen == ["ann"]


async def test_the_list_is_read_once_for_the_whole_call() -> None:
    log: list[str] = []
    kit = layered(echo)

    async def adding(kwargs: dict[str, Any], next_handler: NextHandler) -> Chunks:
        kit._middlewares.clear()
        kit.register_middleware(logging(log, "late"))
        async for chunk in next_handler(**kwargs):
            yield chunk

    kit.register_middleware(adding)
    kit._middlewares.append(logging(log, "2"))
    stream = ask(kit)
    await read(stream)
    first = list(log)
    await read(ask(kit))

    assert first == ["2 in", "2: hello", "2 out"]
    assert log[3:] == ["late in", "late: hello", "late out"]


async def test_clear_keeps_the_middlewares() -> None:
    kit = layered(echo, passing)

    kit.clear()

    assert kit._middlewares == [passing]


async def test_each_layer_has_the_interface_of_an_async_generator() -> None:
    kinds: list[bool] = []

    async def look(kwargs: dict[str, Any], next_handler: NextHandler) -> ToolStream:
        stream = next_handler(**kwargs)
        kinds.append(isinstance(stream, AsyncGenerator))
        return stream

    await read(ask(layered(echo, look, look)))

    assert kinds == [True, True]


async def test_many_calls_go_through_middlewares_at_once() -> None:
    kit = layered(echo, waiting, passing)

    got = await asyncio.gather(*[kit.call("echo", text=str(number)) for number in range(100)])

    assert [response.text for response in got] == [str(number) for number in range(100)]
