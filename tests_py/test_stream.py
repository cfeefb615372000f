"""The protocol of `ToolStream`: an awaitable that gives itself, and an async generator in everything else."""

import asyncio
import collections.abc
import contextvars
import inspect
import traceback
from typing import Any

import anyio
import pytest

from support.loops import LoopFactory
from support.streams import Numbers, block, echo, read, texts, toolkit
from toolcrib import ToolResponse, ToolStream


async def test_awaiting_gives_the_stream_itself_and_runs_nothing(loop_factory: LoopFactory) -> None:
    tool = Numbers()
    stream = toolkit(tool.numbers).call_tool_function(block("numbers"))

    awaited = await stream

    assert awaited is stream
    assert tool.log == []


async def test_a_stream_can_be_iterated_with_and_without_awaiting_it(loop_factory: LoopFactory) -> None:
    kit = toolkit(Numbers().numbers)

    awaited = [response.text async for response in await kit.call_tool_function(block("numbers"))]
    direct = [response.text async for response in kit.call_tool_function(block("numbers"))]

    assert awaited == direct == ["0", "1", "2", "012"]


async def test_a_stream_is_what_the_abstract_classes_say() -> None:
    stream = toolkit(echo).call_tool_function(block("echo", text="x"))

    assert isinstance(stream, ToolStream)
    assert isinstance(stream, collections.abc.AsyncGenerator)
    assert isinstance(stream, collections.abc.AsyncIterator)
    assert isinstance(stream, collections.abc.Awaitable)
    assert inspect.isawaitable(stream)
    assert aiter(stream) is stream


async def test_a_stream_cannot_be_made_by_hand() -> None:
    with pytest.raises(TypeError):
        ToolStream()


async def test_awaiting_twice_is_refused() -> None:
    stream = await toolkit(echo).call_tool_function(block("echo", text="x"))

    with pytest.raises(RuntimeError, match="already awaited"):
        await stream

    assert await texts(stream) == ["x"]


async def test_the_await_can_be_a_task_and_be_gathered() -> None:
    kit = toolkit(echo)

    one: ToolStream
    two: ToolStream
    one, two = await asyncio.gather(
        kit.call_tool_function(block("echo", text="1")),
        asyncio.ensure_future(kit.call_tool_function(block("echo", text="2"))),
    )

    assert [*await texts(one), *await texts(two)] == ["1", "2"]


async def test_anext_steps_and_then_stops_for_good() -> None:
    stream = toolkit(echo).call_tool_function(block("echo", text="x"))

    assert (await anext(stream)).text == "x"
    for _ in range(3):
        with pytest.raises(StopAsyncIteration):
            await anext(stream)


async def test_anext_of_an_exhausted_stream_gives_the_default() -> None:
    stream = toolkit(echo).call_tool_function(block("echo", text="x"))
    await read(stream)

    assert await anext(stream, None) is None
    assert await anext(stream, None) is None


async def test_the_end_is_raised_where_the_step_is_awaited() -> None:
    stream = toolkit(echo).call_tool_function(block("echo", text="x"))
    await read(stream)

    step = asyncio.ensure_future(stream.__anext__())

    with pytest.raises(StopAsyncIteration):
        await step


async def test_a_second_reader_is_refused_while_the_first_waits() -> None:
    stream = toolkit(Numbers().endless).call_tool_function(block("endless"))
    await anext(stream)
    step = asyncio.ensure_future(stream.__anext__())
    await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="already running"):
        await anext(stream)
    with pytest.raises(RuntimeError, match="already running"):
        await anext(stream, None)
    with pytest.raises(RuntimeError, match="already running"):
        await read(stream)
    with pytest.raises(RuntimeError, match="already running"):
        await stream.aclose()

    step.cancel()
    assert (await step).is_interrupted


async def test_two_readers_may_take_turns() -> None:
    stream = toolkit(Numbers().numbers).call_tool_function(block("numbers"))

    async def take() -> str:
        return (await anext(stream)).text

    assert [await asyncio.create_task(take()) for _ in range(3)] == ["0", "1", "2"]


async def test_asend_reaches_the_generator() -> None:
    async def conversation() -> Any:
        answer = yield "question"
        yield f"you said {answer}"

    stream = toolkit(conversation).call_tool_function(block("conversation"))
    await stream.asend(None)

    response = await stream.asend("yes")

    assert response.text == "you said yes"


async def test_asend_of_a_value_before_the_first_step_is_refused() -> None:
    stream = toolkit(Numbers().numbers).call_tool_function(block("numbers"))

    with pytest.raises(TypeError, match="just-started"):
        await stream.asend("too early")


@pytest.mark.parametrize("kind", ["endless", "plain"])
async def test_athrow_reaches_the_generator(kind: str) -> None:
    tool = Numbers()
    stream = toolkit(getattr(tool, kind)).call_tool_function(block(kind))
    await anext(stream)

    response = await stream.athrow(ValueError("from outside"))

    assert response.text == "ValueError: from outside"
    assert tool.log == ["finalised"]


async def test_athrow_before_the_first_step_raises_and_ends_the_stream() -> None:
    tool = Numbers()
    stream = toolkit(tool.numbers).call_tool_function(block("numbers"))

    with pytest.raises(ValueError, match="early"):
        await stream.athrow(ValueError("early"))

    assert await read(stream) == []
    assert tool.log == []


async def test_a_task_shows_the_name_of_its_tool() -> None:
    stream = toolkit(Numbers().endless).call_tool_function(block("endless"))
    await anext(stream)

    step = asyncio.ensure_future(stream.__anext__())
    await asyncio.sleep(0)

    assert stream.__name__ == stream.__qualname__ == "endless"
    assert "endless" in repr(step)
    step.print_stack()
    step.cancel()
    await step


def test_the_debug_mode_of_asyncio_has_nothing_to_say() -> None:
    async def main() -> list[str]:
        kit = toolkit(Numbers().numbers, echo)
        return [
            *await texts(kit.call_tool_function(block("numbers"))),
            *await texts(await asyncio.create_task(kit.call_tool_function(block("echo", text="x")))),
            (await kit.call("echo", text="y")).text,
        ]

    assert asyncio.run(main(), debug=True) == ["0", "1", "2", "012", "x", "y"]


def test_anyio_on_asyncio_drives_it() -> None:
    tool = Numbers()
    got: list[str] = []

    async def main() -> None:
        kit = toolkit(tool.numbers)
        async with anyio.create_task_group() as group:

            async def one() -> None:
                got.extend(await texts(kit.call_tool_function(block("numbers"))))

            for _ in range(5):
                group.start_soon(one)

    anyio.run(main)

    assert sorted(got) == sorted(["0", "1", "2", "012"] * 5)


async def test_a_tool_shares_the_context_of_its_caller() -> None:
    variable = contextvars.ContextVar("variable", default="unset")

    async def change() -> str:
        seen = variable.get()
        variable.set("by the tool")
        return seen

    variable.set("by the caller")

    assert (await toolkit(change).call("change")).text == "by the caller"
    assert variable.get() == "by the tool"


async def test_a_traceback_shows_the_frame_of_the_tool() -> None:
    async def leave() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as raised:
        await texts(toolkit(leave).call_tool_function(block("leave")))

    assert "leave" in [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]


async def test_a_call_gives_the_whole_result_and_only_once() -> None:
    call = toolkit(Numbers().numbers).call("numbers")
    stream: Any = call

    response = await call

    assert isinstance(response, ToolResponse)
    assert response.text == "012"
    with pytest.raises(RuntimeError):
        await call
    with pytest.raises(RuntimeError):
        await anext(stream, None)
