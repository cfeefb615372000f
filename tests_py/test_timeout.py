"""`timeout=`: the time a tool may spend; its effect on the tool, on the task and on a cancellation at the same time."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from support.loops import LoopFactory
from support.streams import COUNTS_REQUESTS, block, read, requests, texts, timeout, toolkit

LIMIT = 0.05


class Slow:
    """Tools that take too long, and say when they are finalised."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.released = threading.Event()

    async def coroutine(self) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            self.log.append("finalised")

    async def generator(self) -> AsyncIterator[str]:
        try:
            yield "one"
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            self.log.append("finalised")

    def thread(self) -> None:
        self.released.wait(30)
        self.log.append("finalised")

    def thread_generator(self) -> Iterator[str]:
        try:
            yield "one"
            self.released.wait(30)
            yield "two"
            self.log.append("went on")
        finally:
            self.log.append("finalised")


@pytest.mark.parametrize("name", ["coroutine", "generator", "thread", "thread_generator"])
async def test_a_tool_that_takes_too_long_is_stopped(name: str, loop_factory: LoopFactory) -> None:
    slow = Slow()
    kit = toolkit(getattr(slow, name), run_in="thread", timeout=LIMIT)
    chunks = ["one"] if "generator" in name else []

    responses = await asyncio.wait_for(read(kit.call_tool_function(block(name))), 30)
    slow.released.set()
    for _ in range(3000):
        if slow.log:
            break
        await asyncio.sleep(0.01)

    assert [response.text for response in responses[:-1]] == chunks
    assert (responses[-1].code, responses[-1].ok, responses[-1].is_interrupted) == ("timeout", False, False)
    assert name in responses[-1].text
    assert slow.log == ["finalised"]


async def test_a_short_call_that_takes_too_long_is_answered() -> None:
    response = await asyncio.wait_for(toolkit(Slow().coroutine, timeout=LIMIT).call("coroutine"), 30)

    assert response.code == "timeout"


async def test_a_tool_within_its_time_is_left_alone(loop_factory: LoopFactory) -> None:
    async def quick() -> str:
        await asyncio.sleep(0.001)
        return "in time"

    async def quick_generator() -> AsyncIterator[str]:
        yield "in"
        await asyncio.sleep(0.001)
        yield "time"

    def quick_thread() -> str:
        return "in time"

    kit = toolkit(quick, quick_generator, quick_thread, run_in="thread", timeout=30)

    assert await texts(kit.call_tool_function(block("quick"))) == ["in time"]
    assert await texts(kit.call_tool_function(block("quick_generator"))) == ["in", "time", "intime"]
    assert await texts(kit.call_tool_function(block("quick_thread"))) == ["in time"]


@pytest.mark.parametrize("run_in", ["inline", "thread"])
async def test_the_time_of_a_slow_consumer_does_not_count(run_in: str, loop_factory: LoopFactory) -> None:
    async def generator() -> AsyncIterator[str]:
        for number in range(4):
            await asyncio.sleep(0.001)
            yield str(number)

    def thread_generator() -> Iterator[str]:
        for number in range(4):
            time.sleep(0.001)
            yield str(number)

    tool: Any = generator if run_in == "inline" else thread_generator
    kit = toolkit(tool, func_name="tool", run_in=run_in, timeout=0.5)
    got = []

    async for response in kit.call_tool_function(block("tool")):
        got.append(response.text)
        await asyncio.sleep(0.25)

    assert got == ["0", "1", "2", "3", "0123"]


async def test_a_stream_that_several_tasks_read_is_stopped_too() -> None:
    async def generator() -> AsyncIterator[str]:
        yield "one"
        await asyncio.sleep(0.001)
        yield "two"
        await asyncio.sleep(60)

    stream = toolkit(generator, timeout=LIMIT).call_tool_function(block("generator"))

    got = [await asyncio.wait_for(asyncio.ensure_future(stream.__anext__()), 30) for _ in range(3)]

    assert [response.code for response in got] == [None, None, "timeout"]


async def test_a_timeout_leaves_nothing_behind(loop_factory: LoopFactory) -> None:
    kit = toolkit(Slow().coroutine, timeout=LIMIT)
    others = asyncio.all_tasks()

    for _ in range(3):
        await asyncio.wait_for(read(kit.call_tool_function(block("coroutine"))), 30)
    await asyncio.sleep(LIMIT * 2)

    assert asyncio.all_tasks() == others
    assert requests() == 0


async def test_a_call_that_ends_in_time_is_not_cancelled_later() -> None:
    async def quick() -> str:
        await asyncio.sleep(0)
        return "in time"

    kit = toolkit(quick, timeout=LIMIT)

    streamed = await texts(kit.call_tool_function(block("quick")))
    called = await kit.call("quick")
    await asyncio.sleep(LIMIT * 3)

    assert (streamed, called.text) == (["in time"], "in time")
    assert requests() == 0


@pytest.mark.skipif(not COUNTS_REQUESTS, reason="before 3.11 the two requests cannot be distinguished")
@pytest.mark.parametrize("first", ["the deadline", "the caller"])
async def test_a_cancellation_from_outside_wins_over_the_deadline(first: str) -> None:
    seen = asyncio.Event()

    async def stubborn() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            seen.set()
            # Long enough for the other request to come as well.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(LIMIT * 4)

    kit = toolkit(stubborn, timeout=LIMIT)
    task = asyncio.create_task(read(kit.call_tool_function(block("stubborn"))))

    if first == "the deadline":
        await seen.wait()
    else:
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=30)

    assert task.cancelled()


@pytest.mark.skipif(not COUNTS_REQUESTS, reason="asyncio.timeout came with 3.11")
async def test_the_deadline_inside_a_timeout_does_not_disturb_it() -> None:
    kit = toolkit(Slow().coroutine, timeout=LIMIT)

    async with timeout(30) as outer:
        [response] = await read(kit.call_tool_function(block("coroutine")))

    assert response.code == "timeout"
    assert not outer.expired()


async def test_a_tool_that_survives_its_deadline_may_still_answer() -> None:
    async def tenacious() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "what I had"
        return "everything"

    [response] = await read(toolkit(tenacious, timeout=LIMIT).call_tool_function(block("tenacious")))
    await asyncio.sleep(0)

    assert response.text == "what I had"
    assert requests() == 0


def test_inline_synchronous_code_cannot_have_a_timeout() -> None:
    def function() -> None: ...

    def generator() -> Iterator[str]:
        yield ""

    for tool in (function, generator):
        with pytest.raises(ValueError, match="timeout"):
            toolkit(tool, run_in="inline", timeout=1)


@pytest.mark.parametrize("seconds", [0, -1, -0.0, float("nan"), float("inf")])
def test_a_timeout_must_be_a_positive_time(seconds: float) -> None:
    with pytest.raises(ValueError, match="timeout"):
        toolkit(Slow().coroutine, timeout=seconds)
