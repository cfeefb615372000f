"""`aclose()` of a stream whose generator runs in a thread is done when the generator's `finally` has run there."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from support.middleware import layered, passing, returning, waiting
from support.streams import block, read
from support.waiting import UNBOUNDED_HANG, turns, until
from toolcrib import Toolkit


def stream_of(tool: Callable[..., Any], run_in: Any = "thread") -> Any:
    toolkit = Toolkit()
    toolkit.register_tool_function(tool, func_name="tool", run_in=run_in)
    return toolkit.call_tool_function({"type": "tool_use", "id": "1", "name": "tool", "input": {}})


@pytest.mark.parametrize("count", [1, 40])
def test_the_finally_block_has_run_when_aclose_returns(count: int) -> None:
    async def main() -> None:
        for _ in range(200):
            ended: list[bool] = []

            def forever(ended: list[bool] = ended) -> Iterator[str]:
                try:
                    while True:
                        yield "more"
                finally:
                    ended.append(threading.current_thread() is not threading.main_thread())

            stream = stream_of(lambda forever=forever: forever())
            for _ in range(count):
                await stream.__anext__()

            await stream.aclose()

            assert ended == [True]

    asyncio.run(main())


class SlowEnd:
    """Tools whose generators block until they are released: in the `finally`, or before the second chunk."""

    def __init__(self) -> None:
        self.entered, self.release, self.ended = threading.Event(), threading.Event(), threading.Event()

    def chunks(self) -> Iterator[str]:
        try:
            while True:
                yield "more"
        finally:
            self.entered.set()
            self.release.wait(UNBOUNDED_HANG)
            self.ended.set()

    def second_chunk(self) -> Iterator[str]:
        """Block before the second chunk until it is released."""
        yield "first"
        try:
            self.entered.set()
            self.release.wait(UNBOUNDED_HANG)
            yield "second"
        finally:
            self.ended.set()

    async def start_closing(self) -> asyncio.Future[None]:
        """Read one chunk, and close the stream up to the point where the `finally` blocks."""
        stream = stream_of(self.chunks)
        await stream.__anext__()
        closing: asyncio.Future[None] = asyncio.ensure_future(stream.aclose())
        await until(self.entered.is_set)
        return closing


@pytest.fixture
def slow() -> Iterator[SlowEnd]:
    tool = SlowEnd()
    yield tool
    tool.release.set()


async def test_aclose_waits_for_a_finally_block_that_blocks(slow: SlowEnd) -> None:
    closing = await slow.start_closing()
    await turns(20, pause=0.001)
    assert not closing.done()

    slow.release.set()
    await asyncio.wait_for(closing, UNBOUNDED_HANG)

    assert slow.ended.is_set()


def test_aclose_waits_for_a_generator_that_is_busy() -> None:
    release, ended = threading.Event(), threading.Event()

    def busy() -> Iterator[str]:
        try:
            yield "first"
            release.wait(UNBOUNDED_HANG)
            yield "second"
        finally:
            ended.set()

    async def main() -> None:
        stream = stream_of(busy)
        await stream.__anext__()
        closing = asyncio.ensure_future(stream.aclose())
        await turns(20, pause=0.001)
        assert not closing.done()

        release.set()
        await asyncio.wait_for(closing, UNBOUNDED_HANG)

        assert ended.is_set()
        with pytest.raises(StopAsyncIteration):
            await stream.__anext__()

    try:
        asyncio.run(main())
    finally:
        release.set()


def test_a_busy_generator_that_fails_before_it_is_closed_has_ended() -> None:
    release = threading.Event()

    def busy() -> Iterator[str]:
        yield "first"
        release.wait(UNBOUNDED_HANG)
        raise ValueError("too late for an answer")

    async def main() -> None:
        stream = stream_of(busy)
        await stream.__anext__()
        closing = asyncio.ensure_future(stream.aclose())
        await turns(3, pause=0.001)

        release.set()

        assert await asyncio.wait_for(closing, UNBOUNDED_HANG) is None

    asyncio.run(main())


@pytest.mark.parametrize("run_in", ["thread", "inline"])
def test_a_generator_that_was_never_read_never_starts(run_in: str) -> None:
    ran: list[bool] = []

    def tool() -> Iterator[str]:
        ran.append(True)
        yield "more"

    async def main() -> None:
        stream = stream_of(tool, run_in)

        await stream.aclose()
        await turns(3, pause=0.001)

    asyncio.run(main())
    assert ran == []


@pytest.mark.parametrize("run_in", ["thread", "inline"])
def test_a_generator_that_yields_while_it_is_closed_is_reported_to_aclose(run_in: str) -> None:
    def stubborn() -> Iterator[str]:
        try:
            while True:
                yield "more"
        finally:
            yield "one more"

    async def main() -> None:
        stream = stream_of(stubborn, run_in)
        await stream.__anext__()

        with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
            await stream.aclose()

    asyncio.run(main())


@pytest.mark.parametrize("run_in", ["thread", "inline"])
def test_what_a_finally_block_raises_is_raised_by_aclose(run_in: str) -> None:
    def broken() -> Iterator[str]:
        try:
            while True:
                yield "more"
        finally:
            raise LookupError("no cleaning here")

    async def main() -> None:
        stream = stream_of(broken, run_in)
        await stream.__anext__()

        with pytest.raises(LookupError, match="no cleaning here"):
            await stream.aclose()

    asyncio.run(main())


async def test_aclose_waits_for_a_generator_whose_step_was_cancelled(slow: SlowEnd) -> None:
    stream = stream_of(slow.second_chunk)
    await stream.__anext__()
    step = asyncio.ensure_future(stream.__anext__())
    await until(slow.entered.is_set)
    step.cancel()
    interrupted = await step

    closing = asyncio.ensure_future(stream.aclose())
    await turns()

    assert interrupted.is_interrupted
    assert not closing.done()
    slow.release.set()
    await closing
    assert slow.ended.is_set()


@pytest.mark.parametrize(
    ("layers", "has_begun"),
    [
        ((passing,), False),
        ((returning,), False),
        ((passing, returning), False),
        ((returning, passing), False),
        ((returning, returning), False),
        ((waiting, passing), False),
        ((passing,), True),
        ((returning,), True),
        ((passing, returning), True),
        ((waiting, passing), True),
    ],
)
async def test_aclose_waits_behind_a_middleware_for_a_generator_whose_step_was_cancelled(
    slow: SlowEnd, layers: Any, has_begun: bool
) -> None:
    stream = layered(slow.second_chunk, *layers, run_in="thread").call_tool_function(block("second_chunk"))
    await stream.__anext__()
    await until(slow.entered.is_set)
    step = asyncio.ensure_future(stream.__anext__())
    if has_begun:
        await turns()
    step.cancel()
    interrupted = await step

    closing = asyncio.ensure_future(stream.aclose())
    await turns()

    assert interrupted.is_interrupted
    assert not closing.done()
    slow.release.set()
    await closing
    assert slow.ended.is_set()
    assert await read(stream) == []


@pytest.mark.parametrize("layers", [(passing,), (returning,), (passing, returning), (waiting, passing)])
async def test_aclose_waits_behind_a_middleware_after_the_task_was_cancelled(slow: SlowEnd, layers: Any) -> None:
    stream = layered(slow.second_chunk, *layers, run_in="thread").call_tool_function(block("second_chunk"))
    consumer = asyncio.ensure_future(read(stream))
    await until(slow.entered.is_set)
    await turns()
    consumer.cancel()
    await asyncio.wait([consumer])

    closing = asyncio.ensure_future(stream.aclose())
    await turns()

    assert consumer.cancelled()
    assert not closing.done()
    slow.release.set()
    await closing
    assert slow.ended.is_set()


async def test_aclosing_under_a_cancellation_waits_for_the_generator() -> None:
    ended, reading = threading.Event(), asyncio.Event()

    def forever() -> Iterator[str]:
        try:
            while True:
                yield "more"
        finally:
            ended.set()

    async def consume() -> bool:
        try:
            async with contextlib.aclosing(stream_of(forever)) as stream:
                async for _ in stream:
                    reading.set()
                    await asyncio.sleep(UNBOUNDED_HANG)
        finally:
            has_ended.append(ended.is_set())
        return True

    has_ended: list[bool] = []
    task = asyncio.create_task(consume())
    await reading.wait()
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert has_ended == [True]


async def test_aclose_finalises_an_async_generator_that_a_thread_has_made() -> None:
    log: list[str] = []

    async def chunks() -> AsyncIterator[str]:
        try:
            yield "first"
            yield "second"
        finally:
            log.append("finalised")

    def make() -> Any:
        return chunks()

    stream = stream_of(make)
    await stream.__anext__()

    await stream.aclose()

    assert log == ["finalised"]


async def test_aclose_does_not_wait_for_a_function() -> None:
    started, release = threading.Event(), threading.Event()

    def blocks() -> str:
        started.set()
        release.wait(UNBOUNDED_HANG)
        return "late"

    stream = stream_of(blocks)
    step = asyncio.ensure_future(stream.__anext__())
    await until(started.is_set)
    step.cancel()
    await step

    await stream.aclose()

    assert not release.is_set()
    release.set()


async def test_a_task_that_waits_in_aclose_can_be_cancelled(slow: SlowEnd) -> None:
    closing = await slow.start_closing()

    closing.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(closing, UNBOUNDED_HANG)
    assert not slow.ended.is_set()
    slow.release.set()
    await until(slow.ended.is_set)


def test_aclose_that_is_not_awaited_closes_the_generator_all_the_same() -> None:
    ended = threading.Event()

    def forever() -> Iterator[str]:
        try:
            while True:
                yield "more"
        finally:
            ended.set()

    async def main() -> None:
        stream = stream_of(forever)
        await stream.__anext__()

        stream.aclose()

        await until(ended.is_set)

    asyncio.run(main())


def test_a_closed_stream_can_be_closed_again() -> None:
    def forever() -> Iterator[str]:
        while True:
            yield "more"

    async def main() -> None:
        stream = stream_of(forever)
        await stream.__anext__()
        await stream.aclose()

        await stream.aclose()

        assert [response async for response in stream] == []

    asyncio.run(main())
