"""Background tasks: their tools read as AgentScope's to a model, and their responses are the same."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

from agentscope.tool import Toolkit as AgentScopeToolkit
from agentscope.tool import ToolResponse

from support.agentscope.pair import on_both, responses
from toolcrib.compat.agentscope import Toolkit


async def slow() -> ToolResponse:
    """Wait."""
    await asyncio.sleep(60)
    return ToolResponse(content=[])


async def quick() -> ToolResponse:
    """Do not wait."""
    return ToolResponse(content=[{"type": "text", "text": "done"}])


async def started(toolkit: Any, tool: Any) -> str:
    toolkit.register_tool_function(tool, async_execution=True)
    (announced,) = await responses(toolkit, tool.__name__)
    assert type(announced) is ToolResponse
    assert announced.metadata is None
    found = re.search(r"Task ID: (\S+)\. ", announced.content[0]["text"])
    assert found
    return found[1]


def test_models_read_the_same_descriptions() -> None:
    theirs, ours = AgentScopeToolkit(), Toolkit()
    for toolkit in (theirs, ours):
        for method in (toolkit.view_task, toolkit.wait_task, toolkit.cancel_task, toolkit.reset_equipped_tools):
            toolkit.register_tool_function(method)

    assert ours.get_json_schemas() == theirs.get_json_schemas()


@on_both
async def test_the_interrupted_result_can_be_fetched_once(make: Any) -> None:
    toolkit = make()
    task = await started(toolkit, slow)
    await asyncio.sleep(0)

    answer = await toolkit.cancel_task(task)
    await asyncio.sleep(0.01)
    result = await toolkit.view_task(task)
    again = await toolkit.view_task(task)

    assert answer.content[0]["text"] == f"Task {task} has been cancelled."
    assert result.is_interrupted
    assert "interrupted by the user" in result.content[0]["text"]
    assert again.content[0]["text"].startswith("InvalidTaskIdError")


@on_both
async def test_a_task_that_never_began_leaves_no_result(make: Any) -> None:
    toolkit = make()
    task = await started(toolkit, slow)

    await toolkit.cancel_task(task)
    at_once = await toolkit.view_task(task)
    await asyncio.sleep(0.01)
    later = await toolkit.view_task(task)

    assert at_once.content[0]["text"].startswith("InvalidTaskIdError")
    assert later.content[0]["text"].startswith("InvalidTaskIdError")


@on_both
async def test_the_interrupted_result_comes_when_the_task_has_ended(make: Any) -> None:
    toolkit = make()
    task = await started(toolkit, slow)
    await asyncio.sleep(0)

    await toolkit.cancel_task(task)
    at_once = await toolkit.cancel_task(task)
    await asyncio.sleep(0)
    result = await toolkit.wait_task(task)

    assert at_once.content[0]["text"].startswith("InvalidTaskIdError")
    assert result.is_interrupted


@on_both
async def test_a_task_that_is_cancelled_by_itself_has_the_result_too(make: Any) -> None:
    toolkit = make()
    task = await started(toolkit, slow)
    await asyncio.sleep(0)

    running = toolkit._async_tasks[task]
    running.cancel()
    await asyncio.sleep(0.01)
    result = await toolkit.view_task(task)

    assert not running.cancelled()
    assert type(result) is ToolResponse
    assert result.is_interrupted


@on_both
async def test_the_last_words_of_a_cancelled_tool_can_be_fetched(make: Any) -> None:
    async def tidy() -> ToolResponse:
        """Wait, and tidy up."""
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        return ToolResponse(content=[{"type": "text", "text": "tidy"}])

    async def break_down() -> ToolResponse:
        """Wait, and fail."""
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ValueError("broken") from None
        return ToolResponse(content=[])

    async def stream() -> AsyncGenerator[ToolResponse, None]:
        """Give one, and wait."""
        yield ToolResponse(content=[{"type": "text", "text": "first"}])
        await asyncio.sleep(60)

    toolkit = make()
    said = []
    for tool in (tidy, break_down, stream):
        task = await started(toolkit, tool)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await toolkit.cancel_task(task)
        await asyncio.sleep(0.01)
        said.append([block["text"] for block in (await toolkit.view_task(task)).content])

    cancelled = "<system-info>The tool call has been cancelled by the user.</system-info>"
    assert said == [["tidy"], ["Error: broken"], [cancelled]]


@on_both
async def test_a_model_may_send_a_number_or_null(make: Any) -> None:
    toolkit = make()
    task = await started(toolkit, quick)
    toolkit.register_tool_function(toolkit.wait_task)
    toolkit.register_tool_function(toolkit.view_task)

    (waited,) = await responses(toolkit, "wait_task", task_id=task, timeout=None)
    (viewed,) = await responses(toolkit, "view_task", task_id=7)

    assert waited.content[0]["text"] == "done"
    assert viewed.content[0]["text"] == "InvalidTaskIdError: Cannot find async task with ID 7."


@on_both
async def test_a_task_without_a_result_is_a_mistake(make: Any) -> None:
    async def forget() -> None:
        """Return nothing."""

    toolkit = make()
    task = await started(toolkit, forget)

    result = await toolkit.wait_task(task)

    assert result.content[0]["text"].startswith("Error during async execution: The tool function must return")


@on_both
async def test_a_result_can_be_waited_for(make: Any) -> None:
    toolkit = make()
    task = await started(toolkit, quick)

    result = await toolkit.wait_task(task)

    assert type(result) is ToolResponse
    assert result.content[0]["text"] == "done"
    assert toolkit._async_results == {}
    answer = await toolkit.cancel_task(task)
    assert answer.content[0]["text"].startswith("InvalidTaskIdError")
