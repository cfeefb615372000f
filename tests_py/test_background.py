"""Tools that go on in the background: how they start, how they are asked for, and what they give."""

import asyncio
import contextvars
import functools
import re
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from support.background import Slow, start, toolkit
from support.loops import LoopFactory
from support.streams import block, read
from support.waiting import turns
from toolcrib import Toolkit, ToolResponse

REMINDER = re.compile(
    r"<system-reminder>Tool '(\w+)' is executing asynchronously\. Task ID: (\w{22})\. "
    r"Use view_task\('\2'\) to check status, wait_task\('\2'\) to wait for completion, "
    r"or cancel_task\('\2'\) to cancel the task\.</system-reminder>"
)


def function(number: int) -> str:
    return f"{number} in {threading.current_thread() is threading.main_thread()}"


async def coroutine(number: int) -> str:
    await asyncio.sleep(0)
    return str(number)


def generator(number: int) -> Iterator[str]:
    yield "first"
    yield f" {number}"


async def async_generator(number: int) -> AsyncIterator[ToolResponse]:
    for text in ("first", f"first {number}"):
        await asyncio.sleep(0)
        yield ToolResponse([{"type": "text", "text": text}], stream=True)


async def handing_on(number: int) -> AsyncIterator[ToolResponse]:
    return async_generator(number)


class Callable:
    async def __call__(self, number: int) -> int:
        return number


KINDS: dict[str, tuple[Any, str]] = {
    "function": (function, "7 in False"),
    "coroutine": (coroutine, "7"),
    "generator": (generator, "first 7"),
    "async generator": (async_generator, "first 7"),
    "coroutine that gives an async generator": (handing_on, "first 7"),
    "partial": (functools.partial(coroutine, 7), "7"),
    "callable object": (Callable(), "7"),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_the_last_response_of_any_tool_is_the_result(kind: str, loop_factory: LoopFactory) -> None:
    tool, text = KINDS[kind]
    kit = Toolkit()
    kit.register_tool_function(tool, func_name="tool", async_execution=True)
    arguments = {} if kind == "partial" else {"number": 7}

    task_id = await start(kit, "tool", **arguments)
    result = await kit.wait_task(task_id)

    assert (result.text, result.ok) == (text, True)
    assert len(kit._async_tasks) == len(kit._async_results) == 0


async def test_a_call_is_answered_at_once_with_the_id() -> None:
    slow = Slow()
    kit = toolkit(slow.wait)

    (answer,) = await read(kit.call_tool_function(block("wait")))

    match = REMINDER.fullmatch(answer.text)
    assert match
    assert match[1] == "wait"
    assert answer.metadata == {"task_id": match[2]}
    assert answer.ok
    assert answer.is_last
    assert slow.log == []


async def test_the_short_call_is_answered_with_the_id_too() -> None:
    kit = toolkit(coroutine)

    answer = await kit.call("coroutine", number=3)

    assert answer.metadata is not None
    assert (await kit.wait_task(answer.metadata["task_id"])).text == "3"


async def test_ids_are_new_and_of_the_letters_that_read_well() -> None:
    kit = toolkit(coroutine)

    ids = {await start(kit, "coroutine", number=1) for _ in range(200)}

    assert len(ids) == 200
    assert all(re.fullmatch("[2-9A-HJ-NP-Za-km-z]{22}", task_id) for task_id in ids)


async def test_a_wrong_argument_is_answered_at_once() -> None:
    kit = toolkit(coroutine)

    (answer,) = await read(kit.call_tool_function(block("coroutine", number="many")))

    assert answer.code == "invalid_arguments"
    assert not kit._async_tasks


async def test_arguments_are_read_by_type_and_kept_as_they_were() -> None:
    kit = toolkit(coroutine)
    call = block("coroutine", number="7")

    await read(kit.call_tool_function(call))
    call["input"]["number"] = 8
    (task_id,) = kit._async_tasks

    assert (await kit.wait_task(task_id)).text == "7"


async def test_a_tool_of_an_inactive_group_does_not_start() -> None:
    kit = Toolkit()
    kit.create_tool_group("web", "The web.")
    kit.register_tool_function(coroutine, group_name="web", async_execution=True)

    (answer,) = await read(kit.call_tool_function(block("coroutine", number=1)))

    assert answer.code == "inactive_group"
    assert not kit._async_tasks


async def test_view_says_that_it_runs_and_then_gives_the_result_once() -> None:
    slow = Slow()
    kit = toolkit(slow.wait)
    task_id = await start(kit, "wait")

    running = await kit.view_task(task_id)
    slow.go.set()
    await turns()
    finished = await kit.view_task(task_id)
    gone = await kit.view_task(task_id)

    assert (running.text, running.code) == (f"Task {task_id} is still running.", "task_running")
    assert (finished.text, finished.code) == ("done", None)
    unknown = f"InvalidTaskIdError: Cannot find async task with ID {task_id}."
    assert (gone.text, gone.code) == (unknown, "unknown_task")


async def test_a_wait_that_is_too_short_says_so_and_does_no_harm(loop_factory: LoopFactory) -> None:
    slow = Slow()
    kit = toolkit(slow.wait)
    task_id = await start(kit, "wait")

    early = await kit.wait_task(task_id, timeout=0.01)
    slow.go.set()
    result = await kit.wait_task(task_id)

    text = f"Task {task_id} is still running after waiting for 0.01 seconds."
    assert (early.text, early.code) == (text, "task_running")
    assert result.text == "done"


@pytest.mark.parametrize("timeout", [-1, float("nan")])
async def test_a_wait_of_less_than_no_time_is_refused(timeout: float) -> None:
    with pytest.raises(ValueError, match="non-negative"):
        await Toolkit().wait_task("anything", timeout)


async def test_unknown_ids_are_answered_by_all_three() -> None:
    kit = Toolkit()

    answers = [await kit.view_task("no"), await kit.wait_task("no"), await kit.cancel_task("no")]

    assert {answer.text for answer in answers} == {"InvalidTaskIdError: Cannot find async task with ID no."}
    assert {answer.code for answer in answers} == {"unknown_task"}


async def test_everyone_who_waits_gets_the_result(loop_factory: LoopFactory) -> None:
    slow = Slow()
    kit = toolkit(slow.wait)
    task_id = await start(kit, "wait")
    waiters = [asyncio.ensure_future(kit.wait_task(task_id)) for _ in range(3)]
    cancelled = asyncio.ensure_future(kit.wait_task(task_id))
    await turns()

    cancelled.cancel()
    await turns()
    slow.go.set()
    results = await asyncio.gather(*waiters)

    assert [result.text for result in results] == ["done"] * 3
    assert cancelled.cancelled()
    assert not kit._async_results


async def test_postprocess_sees_every_chunk_of_a_background_call() -> None:
    seen: list[tuple[str, str]] = []

    async def note(call: Any, response: ToolResponse) -> None:
        seen.append((call["name"], response.text))

    kit = Toolkit()
    kit.register_tool_function(async_generator, postprocess_func=note, async_execution=True)

    await kit.wait_task(await start(kit, "async_generator", number=2))

    assert seen == [("async_generator", text) for text in ("first", "first 2", "first 2")]


async def test_the_task_has_the_callers_context() -> None:
    variable = contextvars.ContextVar("variable", default="nobody")

    async def look() -> str:
        return variable.get()

    kit = toolkit(look)
    variable.set("caller")
    task_id = await start(kit, "look")
    variable.set("later")

    assert (await kit.wait_task(task_id)).text == "caller"
