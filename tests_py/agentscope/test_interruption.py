"""An interrupted response is AgentScope's, it is postprocessed before it is delivered, and the cancellation goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from agentscope.tool import ToolResponse

from support.agentscope.pair import call, on_both
from toolcrib.compat.agentscope import Toolkit

STARTED = "started"


def response(text: str) -> ToolResponse:
    return ToolResponse(content=[{"type": "text", "text": text}])


async def slow() -> ToolResponse:
    """Wait."""
    await asyncio.sleep(60)
    return response("late")


async def slow_stream() -> AsyncGenerator[ToolResponse, None]:
    """Give one, and wait."""
    yield response("first")
    await asyncio.sleep(60)


async def gives_up() -> ToolResponse:
    """Raise a cancellation that was not asked for."""
    raise asyncio.CancelledError


async def cancelled(toolkit: Any, name: str) -> list[Any]:
    """Cancel the task of a call once its tool waits."""
    got: list[Any] = []

    async def consume() -> None:
        async for chunk in await toolkit.call_tool_function(call(name)):
            got.append(chunk)

    task = asyncio.create_task(consume())
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return got


async def fails_on_the_way_out() -> ToolResponse:
    """Answer a cancellation with an error."""
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        raise ValueError("half done") from None
    return response("late")


@on_both
async def test_the_response_of_an_interrupted_call_is_agentscopes(make: Any) -> None:
    for tool in (slow, slow_stream, fails_on_the_way_out):
        toolkit = make()
        toolkit.register_tool_function(tool)

        got = await cancelled(toolkit, tool.__name__)

        assert type(got[-1]) is ToolResponse
        assert "code=" not in repr(got[-1])


@on_both
async def test_postprocessing_sees_the_interruption(make: Any) -> None:
    for tool, expected in ((slow, [True]), (slow_stream, [False, True]), (gives_up, [True])):
        toolkit = make()
        seen: list[bool] = []

        def note(tool_call: Any, chunk: Any, seen: list[bool] = seen) -> None:
            assert isinstance(chunk, ToolResponse)
            seen.append(chunk.is_interrupted)

        toolkit.register_tool_function(tool, postprocess_func=note)

        got = await cancelled(toolkit, tool.__name__)

        assert seen == expected
        assert got[-1].is_interrupted


@on_both
async def test_the_function_can_replace_it(make: Any) -> None:
    async def replace(tool_call: Any, chunk: Any) -> ToolResponse:
        await asyncio.sleep(0)
        return response(f"{tool_call['name']} stopped")

    toolkit = make()
    toolkit.register_tool_function(slow, postprocess_func=replace)

    got = await cancelled(toolkit, "slow")

    assert [chunk.content[0]["text"] for chunk in got] == ["slow stopped"]


async def test_the_cancellation_goes_on_whatever_the_function_does() -> None:
    def fail(tool_call: Any, chunk: Any) -> None:
        raise ValueError("no")

    async def wait(tool_call: Any, chunk: Any) -> None:
        await asyncio.sleep(0)

    for function in (fail, wait):
        toolkit = Toolkit()
        got: list[Any] = []
        toolkit.register_tool_function(slow, postprocess_func=function)

        async def consume(toolkit: Any = toolkit, got: list[Any] = got) -> None:
            async for chunk in await toolkit.call_tool_function(call("slow")):
                got.append(chunk)

        task = asyncio.create_task(consume())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)

        assert isinstance(outcome, asyncio.CancelledError)
        assert [chunk.is_interrupted for chunk in got] == [True]
