"""Spans end, however the call ends."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from support.loops import LoopFactory
from support.streams import block, read, toolkit
from support.tracing import Traces, attributes, tools_with_spans
from toolcrib import Toolkit


@pytest.fixture
def kit(traces: Traces) -> Toolkit:
    return tools_with_spans(traces)


@pytest.mark.parametrize("name", ["coroutine", "async_generator", "thread", "thread_generator"])
async def test_a_cancelled_call_is_marked_as_cancelled(traces: Traces, name: str, loop_factory: LoopFactory) -> None:
    started, stopped = threading.Event(), threading.Event()

    async def coroutine() -> None:
        started.set()
        await asyncio.sleep(30)

    async def async_generator() -> AsyncIterator[str]:
        yield "one"
        started.set()
        await asyncio.sleep(30)

    def function() -> None:
        started.set()
        stopped.wait(30)

    def generator() -> Iterator[str]:
        yield "one"
        started.set()
        stopped.wait(30)

    kit = toolkit(coroutine, async_generator)
    kit.register_tool_function(function, func_name="thread", run_in="thread")
    kit.register_tool_function(generator, func_name="thread_generator", run_in="thread")
    task = asyncio.ensure_future(read(kit.call_tool_function(block(name))))
    while not started.is_set():
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)

    task.cancel()
    await asyncio.wait([task])
    stopped.set()

    span = traces.call()
    assert attributes(span)["error.type"] == "CancelledError"
    assert attributes(span)["toolcrib.cancelled"] is True
    assert span.status.status_code is StatusCode.ERROR


@pytest.mark.parametrize("name", ["async_generator", "generator", "thread_generator"])
@pytest.mark.parametrize("how", ["break", "aclose", "close", "collector"])
async def test_a_stream_that_is_left_early_ends_its_span(traces: Traces, name: str, how: str) -> None:
    def numbers() -> Iterator[str]:
        yield "one"
        yield "two"

    async def async_generator() -> AsyncIterator[str]:
        yield "one"
        yield "two"

    kit = toolkit(async_generator)
    kit.register_tool_function(numbers, func_name="generator")
    kit.register_tool_function(numbers, func_name="thread_generator", run_in="thread")
    stream: Any = kit.call_tool_function(block(name))
    await anext(stream)
    assert traces.names == []

    if how == "aclose":
        await stream.aclose()
    elif how == "close":
        stream.close()
    elif how == "collector":
        around = SimpleNamespace(stream=stream)
        around.itself = around
        del around
    del stream
    gc.collect()

    assert traces.names == [f"execute_tool {name}"]
    assert traces.call().status.status_code is StatusCode.UNSET


async def test_a_generator_that_is_closed_is_finalised_inside_the_span(traces: Traces) -> None:
    async def tool() -> AsyncIterator[str]:
        try:
            yield "one"
        finally:
            await asyncio.sleep(0)
            with traces.tracer.start_as_current_span("clean up"):
                await asyncio.sleep(0)

    kit = toolkit(tool)
    stream = kit.call_tool_function(block("tool"))
    await anext(stream)

    closing = stream.aclose()
    del stream
    await closing

    assert traces.names == ["clean up", "execute_tool tool"]
    assert traces.path("clean up") == ["clean up", "execute_tool tool"]
    assert trace.get_current_span() is trace.INVALID_SPAN


async def test_a_generator_that_is_abandoned_is_finalised_below_the_span(traces: Traces) -> None:
    async def tool() -> AsyncIterator[str]:
        try:
            yield "one"
        finally:
            with traces.tracer.start_as_current_span("clean up"):
                await asyncio.sleep(0)

    async for _ in toolkit(tool).call_tool_function(block("tool")):
        break
    while "clean up" not in traces.names:
        await asyncio.sleep(0)

    assert traces.path("clean up") == ["clean up", "execute_tool tool"]


async def test_a_generator_that_fails_to_close_is_an_error(traces: Traces) -> None:
    async def tool() -> AsyncIterator[str]:
        try:
            yield "one"
        finally:
            raise KeyError("lost")

    stream = toolkit(tool).call_tool_function(block("tool"))
    await anext(stream)

    with pytest.raises(KeyError):
        await stream.aclose()

    assert attributes(traces.call())["error.type"] == "KeyError"


async def test_a_cancellation_while_a_generator_is_closed_ends_the_span(traces: Traces) -> None:
    async def tool() -> AsyncIterator[str]:
        try:
            yield "one"
        finally:
            await asyncio.sleep(30)

    stream = toolkit(tool).call_tool_function(block("tool"))
    await anext(stream)
    task: asyncio.Task[None] = asyncio.create_task(stream.aclose())
    await asyncio.sleep(0)

    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert attributes(traces.call())["toolcrib.cancelled"] is True


async def test_an_aclose_that_is_never_awaited_ends_the_span(traces: Traces) -> None:
    async def tool() -> AsyncIterator[str]:
        yield "one"

    stream = toolkit(tool).call_tool_function(block("tool"))
    await anext(stream)

    closing = stream.aclose()
    closing.close()
    del closing

    assert traces.names == ["execute_tool tool"]


def test_a_loop_that_is_shut_down_leaves_no_span_open(traces: Traces) -> None:
    async def tool() -> AsyncIterator[str]:
        with traces.tracer.start_as_current_span("inside"):
            yield "one"
            await asyncio.sleep(30)

    kit = toolkit(tool)

    async def background() -> None:
        await read(kit.call_tool_function(block("tool")))

    async def main() -> None:
        task = asyncio.create_task(background())
        await asyncio.sleep(0.01)
        assert not task.done()

    asyncio.run(main())

    assert traces.path("inside") == ["inside", "execute_tool tool"]


async def test_a_stream_that_is_never_iterated_has_no_span(traces: Traces, kit: Toolkit) -> None:
    stream = await kit.call_tool_function(block("async_generator", word="hello"))
    calls = [stream, kit.call_tool_function(block("function", word="hello"))]
    unawaited = kit.call("function", word="hello")
    await stream.aclose()
    unawaited.close()

    calls.clear()
    gc.collect()

    assert traces.names == []


async def test_a_thrown_exception_is_recorded_once_and_ends_the_span(traces: Traces) -> None:
    async def tool() -> AsyncIterator[str]:
        yield "one"
        yield "two"

    stream = toolkit(tool, errors="raise").call_tool_function(block("tool"))
    await anext(stream)

    with pytest.raises(KeyError):
        await stream.athrow(KeyError("thrown"))
    await read(stream)

    assert attributes(traces.call())["error.type"] == "KeyError"
