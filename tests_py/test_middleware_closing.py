"""Middlewares that stop early or are stopped: nothing further in is left open."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from support.middleware import break_out, collecting, first_only, layered, logging, passing, returning, waiting
from support.streams import block, read, texts
from toolcrib import Toolkit, ToolResponse, ToolStream
from toolcrib.middleware import NextHandler

Chunks = AsyncIterator[Any]


class Source:
    """A tool whose clean-up takes time and says which task it ran in."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.tasks: list[Any] = []

    async def numbers(self) -> AsyncIterator[str]:
        try:
            for number in range(100):
                yield str(number)
        finally:
            await asyncio.sleep(0)
            self.log.append("tool out")
            self.tasks.append(asyncio.current_task())


def ask(kit: Toolkit) -> ToolStream:
    return kit.call_tool_function(block("numbers"))


@pytest.mark.parametrize("middlewares", [(passing,), (returning,), (waiting, passing), (passing, returning, waiting)])
async def test_aclose_closes_every_layer_and_the_tool_in_the_same_task(middlewares: Any) -> None:
    source = Source()
    stream = ask(layered(source.numbers, *middlewares))
    await anext(stream)

    await stream.aclose()

    assert source.tasks == [asyncio.current_task()]
    assert await texts(stream) == []


async def test_aclose_goes_from_the_outside_in() -> None:
    source = Source()
    kit = layered(source.numbers, logging(source.log, "1"), logging(source.log, "2"))
    async with contextlib.aclosing(ask(kit)) as stream:
        await anext(stream)

    assert source.log == ["1 in", "2 in", "2: 0", "1: 0", "1 out", "2 out", "tool out"]


@pytest.mark.parametrize("started", [False, True])
async def test_aclose_before_the_first_step_runs_nothing(started: bool) -> None:
    source = Source()
    stream = ask(layered(source.numbers, logging(source.log, "1")))
    if started:
        await stream

    await stream.aclose()

    assert source.log == []
    assert await texts(stream) == []


async def raising(kwargs: dict[str, Any], next_handler: NextHandler) -> Chunks:
    async for chunk in next_handler(**kwargs):
        yield chunk
        raise ValueError("enough")


async def opening_many(kwargs: dict[str, Any], next_handler: NextHandler) -> Chunks:
    streams = [next_handler(**kwargs) for _ in range(50)]
    for stream in streams[:25]:
        await anext(stream)
    yield "0"


def plain_generator(kwargs: dict[str, Any], next_handler: NextHandler) -> Any:
    next_handler(**kwargs)
    yield "0"


STOPPING = [break_out, first_only, raising, opening_many, plain_generator]


@pytest.mark.parametrize("way", ["stream", "call"])
@pytest.mark.parametrize("around", [(), (passing,), (returning,), (waiting, collecting)])
@pytest.mark.parametrize("middleware", STOPPING)
async def test_a_middleware_that_stops_early_leaves_nothing_open(middleware: Any, around: Any, way: str) -> None:
    source = Source()
    kit = layered(source.numbers, *around, middleware, passing)

    if way == "stream":
        got = await read(ask(kit))
    else:
        got = [await kit.call("numbers")]

    opened = {opening_many: 25, plain_generator: 0}.get(middleware, 1)
    assert source.tasks == [asyncio.current_task()] * opened
    assert got[-1].text == ("ValueError: enough" if middleware is raising else "0")


async def test_a_stream_that_another_task_reads_is_left_to_it() -> None:
    source = Source()
    tasks: list[asyncio.Task[ToolResponse]] = []

    async def handing_over(kwargs: dict[str, Any], next_handler: NextHandler) -> Chunks:
        stream = next_handler(**kwargs)

        async def first() -> ToolResponse:
            return await anext(stream)

        tasks.append(asyncio.create_task(first()))
        await asyncio.sleep(0)
        yield "elsewhere"

    got = await texts(ask(layered(source.numbers, handing_over, waiting)))

    assert got == ["elsewhere"]
    assert (await tasks[0]).text == "0"


async def test_an_exception_thrown_in_reaches_the_middleware() -> None:
    source = Source()

    async def replacing(kwargs: dict[str, Any], next_handler: NextHandler) -> Chunks:
        try:
            async for chunk in next_handler(**kwargs):
                yield chunk
        except KeyError:
            yield "replaced"

    stream = ask(layered(source.numbers, replacing, passing))
    await anext(stream)

    assert (await stream.athrow(KeyError("x"))).text == "replaced"
    assert await texts(stream) == []
    assert source.tasks == [asyncio.current_task()]


class Broken:
    def __init__(self) -> None:
        self.source = Source()

    async def numbers(self) -> AsyncIterator[str]:
        try:
            yield "0"
        finally:
            raise ValueError("the clean-up failed")


async def failing_cleanup(kwargs: dict[str, Any], next_handler: NextHandler) -> Chunks:
    try:
        async for chunk in next_handler(**kwargs):
            yield chunk
    finally:
        raise ValueError("the layer's clean-up failed")


async def test_aclose_raises_the_error_and_closes_the_rest() -> None:
    source = Source()
    stream = ask(layered(source.numbers, passing, failing_cleanup, passing))
    await anext(stream)

    with pytest.raises(ValueError, match="the layer's clean-up failed"):
        await stream.aclose()

    assert source.tasks == [asyncio.current_task()]


async def test_aclose_raises_the_error_of_a_tool_that_could_not_be_closed() -> None:
    stream = ask(layered(Broken().numbers, passing))
    await anext(stream)

    with pytest.raises(ValueError, match="the clean-up failed"):
        await stream.aclose()
