"""The stream of a call: stepped by hand, shared by mistake, left early, and given up by the garbage collector."""

import asyncio
import gc
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

import pytest
from agentscope.message import ToolCallBlock, ToolResultState
from agentscope.state import AgentState
from agentscope.tool import FunctionTool
from agentscope.tool import Toolkit as AgentScopeToolkit

from toolcrib.compat.agentscope2 import Toolkit

INTERRUPTED = "<system-reminder>The tool call has been interrupted by the user.</system-reminder>"


async def started(function: Callable[..., Any], input: str = "{}") -> AsyncGenerator[Any, None]:
    toolkit = Toolkit()
    toolkit.register_tool_function(function)
    return toolkit.call_tool(ToolCallBlock(id="c1", name=function.__name__, input=input), AgentState())


async def theirs(function: Callable[..., Any], input: str = "{}") -> AsyncGenerator[Any, None]:
    toolkit = AgentScopeToolkit(tools=[FunctionTool(function)])
    block = ToolCallBlock(id="c1", name=function.__name__, input=input)
    stream: AsyncGenerator[Any, None] = toolkit.call_tool(block, AgentState())
    return stream


def texts(item: Any) -> list[str]:
    return [block.text for block in item.content]


async def ping(word: str = "pong") -> str:
    """Ping."""
    await asyncio.sleep(0)
    return word


async def words() -> AsyncIterator[str]:
    """Say words."""
    for word in ("one ", "two ", "three"):
        yield word


async def nothing() -> AsyncIterator[str]:
    """Say nothing."""
    for word in list[str]():
        yield word


async def test_each_step_is_an_awaitable_that_a_task_takes() -> None:
    stream = await started(ping)

    chunk = await asyncio.create_task(stream.__anext__())
    result = await asyncio.wait_for(anext(stream), 5)

    assert (texts(chunk), texts(result), result.state) == (["pong"], ["pong"], ToolResultState.SUCCESS)
    assert chunk.content[0] is not result.content[0]
    assert chunk.content[0].id == result.content[0].id
    for _ in range(2):
        with pytest.raises(StopAsyncIteration):
            await anext(stream)


@pytest.mark.parametrize("function", [ping, words, nothing])
async def test_items_are_those_of_agentscope(function: Callable[..., Any]) -> None:
    ours = [item async for item in await started(function)]
    expected = [item async for item in await theirs(function)]

    assert [type(item) for item in ours] == [type(item) for item in expected]
    assert [texts(item) for item in ours] == [texts(item) for item in expected]
    assert [item.state for item in ours] == [item.state for item in expected]
    assert ours[-1].id == expected[-1].id == "c1"


async def test_a_change_of_a_chunk_is_not_a_change_of_the_result() -> None:
    stream = await started(words)
    async for item in stream:
        if item.id != "c1":
            item.content[0].text = "changed"
            item.metadata["a"] = 1
        else:
            assert (texts(item), item.metadata) == (["one two three"], {})


async def test_a_step_beside_a_step_is_refused() -> None:
    release = asyncio.Event()

    async def wait() -> str:
        """Wait."""
        await release.wait()
        return "done"

    stream = await started(wait)
    first = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)

    with pytest.raises(RuntimeError):
        await anext(stream)

    release.set()
    assert texts(await first) == ["done"]


async def test_a_cancelled_step_tells_of_it_and_the_result_follows() -> None:
    async def wait() -> str:
        """Wait."""
        await asyncio.Event().wait()
        return "never"

    stream = await started(wait)
    step = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    step.cancel()

    chunk, result = await step, await anext(stream)

    assert (texts(chunk), chunk.state) == ([INTERRUPTED], ToolResultState.INTERRUPTED)
    assert (texts(result), result.state) == ([INTERRUPTED], ToolResultState.INTERRUPTED)


@pytest.mark.parametrize("steps", [0, 1, 3, 5])
async def test_a_closed_stream_closes_the_tool_and_ends(steps: int) -> None:
    ended = []

    async def count() -> AsyncIterator[str]:
        """Count."""
        try:
            for number in range(3):
                yield str(number)
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    stream = await started(count)
    for _ in range(steps):
        await anext(stream, None)

    await stream.aclose()

    assert ended == ([True] if steps else [])
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


@pytest.mark.parametrize("steps", [0, 1, 2])
async def test_an_exception_that_is_thrown_in_closes_the_tool(steps: int) -> None:
    stream = await started(words)
    for _ in range(steps):
        await anext(stream)

    with pytest.raises(LookupError, match="thrown"):
        await stream.athrow(LookupError("thrown"))
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_a_step_that_was_never_awaited_can_be_closed() -> None:
    stream = await started(ping)

    stream.__anext__().close()

    assert [texts(item) async for item in stream] == [["pong"], ["pong"]]


async def test_arguments_are_parsed_in_the_first_step_and_mistakes_told() -> None:
    stream = await started(ping, "not json")

    items = [item async for item in stream]

    assert [item.state for item in items] == [item.state async for item in await theirs(ping, "not json")]
    assert items[-1].state == ToolResultState.ERROR


async def test_a_stream_in_a_cycle_is_collected() -> None:
    stream = await started(words)
    await anext(stream)
    cycle: list[Any] = [stream]
    cycle.append(cycle)
    gone = weakref.ref(stream)

    del stream, cycle
    gc.collect()

    assert gone() is None


async def test_it_is_an_async_generator_by_its_interface() -> None:
    stream = await started(ping)

    assert isinstance(stream, AsyncGenerator)
    assert texts(await stream.asend(None)) == ["pong"]
    await stream.aclose()
