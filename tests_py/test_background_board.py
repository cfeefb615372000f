"""The list of background tasks of a toolkit, and the tools to manage them."""

import asyncio
import inspect

import pytest

from support.background import Slow, start, toolkit
from support.streams import block, read
from support.waiting import turns
from toolcrib import Toolkit, errors


async def double(number: int) -> int:
    return 2 * number


async def test_running_and_finished_can_be_read_like_dictionaries() -> None:
    slow = Slow()
    kit = toolkit(slow.wait, double)
    running = await start(kit, "wait")
    finished = await start(kit, "double", number=1)
    await turns()

    assert running in kit._async_tasks
    assert finished not in kit._async_tasks
    assert list(kit._async_tasks) == [running]
    assert len(kit._async_tasks) == 1
    assert isinstance(kit._async_tasks[running], asyncio.Task)
    assert {task_id: result.text for task_id, result in kit._async_results.items()} == {finished: "2"}
    with pytest.raises(KeyError):
        kit._async_results[running]


async def test_the_task_tools_are_offered_and_work() -> None:
    kit = toolkit(double)
    kit.create_tool_group("tasks", "Tasks.", active=True)

    kit.register_task_tools("tasks")
    task_id = await start(kit, "double", number=5)
    (result,) = await read(kit.call_tool_function(block("wait_task", task_id=task_id, timeout="5")))

    assert [name for name, tool in kit.tools.items() if tool.group == "tasks"] == [
        "view_task",
        "wait_task",
        "cancel_task",
    ]
    assert all(tool.json_schema["function"]["description"] for tool in kit.tools.values() if tool.group == "tasks")
    assert kit.tools["wait_task"].json_schema["function"]["parameters"]["required"] == ["task_id"]
    assert result.text == "10"


def test_the_task_tools_are_registered_together_or_not_at_all() -> None:
    kit = Toolkit()
    kit.register_tool_function(double, func_name="cancel_task")

    with pytest.raises(errors.DuplicateToolError):
        kit.register_task_tools()

    assert list(kit.tools) == ["cancel_task"]


def test_async_execution_is_where_agentscope_has_it_and_can_be_read() -> None:
    kit = Toolkit()

    kit.tool(async_execution=True)(double)
    kit.tool(func_name="other")(double)
    kit.register_tool_function(Slow().wait, "basic", None, None, None, None, True, False, False, None, "raise", True)

    assert [tool.async_execution for tool in kit.tools.values()] == [True, False, True]
    assert list(inspect.signature(kit.register_tool_function).parameters)[11] == "async_execution"


async def test_ten_thousand_results_are_bounded_in_number() -> None:
    async def number(value: int) -> int:
        return value

    kit = toolkit(number)
    for value in range(10_000):
        await kit.call("number", value=value)
    await turns()

    assert len(kit._async_tasks) == 0
    assert [result.text for result in kit._async_results.values()] == [str(value) for value in range(9_000, 10_000)]


async def test_the_bounds_of_results_can_be_set() -> None:
    slow = Slow()
    slow.go.set()
    kit = toolkit(slow.wait)
    ids = [await start(kit, "wait") for _ in range(3)]
    await turns()

    kit.limit_task_results(count=2)
    assert list(kit._async_results) == ids[1:]
    kit.limit_task_results(age=0)
    assert list(kit._async_results) == []
    with pytest.raises(ValueError, match="age"):
        kit.limit_task_results(age=-1)
