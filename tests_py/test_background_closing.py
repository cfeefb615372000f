"""Tasks in the background that end early: cancelled, closed, with their loop, or with their toolkit."""

import asyncio
import gc
import threading
import weakref

import pytest

from support.background import Slow, start, toolkit
from support.loops import LoopFactory
from support.streams import python
from support.waiting import turns


async def test_a_task_that_has_not_begun_is_cancelled_without_a_trace(loop_factory: LoopFactory) -> None:
    slow = Slow()
    kit = toolkit(slow.wait)
    task_id = await start(kit, "wait")

    answer = await kit.cancel_task(task_id)
    await turns()

    assert (answer.text, answer.code) == (f"Task {task_id} has been cancelled.", None)
    assert slow.log == []
    assert (await kit.view_task(task_id)).code == "unknown_task"


@pytest.mark.parametrize(("tool", "log"), [("wait", ["began", "cancelled", "finalised"]), ("chunks", ["finalised"])])
async def test_a_running_task_is_finalised_and_leaves_nothing(
    tool: str, log: list[str], loop_factory: LoopFactory
) -> None:
    slow = Slow()
    kit = toolkit(slow.wait, slow.chunks)
    task_id = await start(kit, tool)
    await turns()

    await kit.cancel_task(task_id)
    await turns()

    assert slow.log == log
    assert not kit._async_tasks
    assert not kit._async_results
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert (await kit.cancel_task(task_id)).code == "unknown_task"


async def test_a_finished_task_cannot_be_cancelled_and_keeps_its_result() -> None:
    slow = Slow()
    slow.go.set()
    kit = toolkit(slow.wait)
    task_id = await start(kit, "wait")
    await turns()

    answer = await kit.cancel_task(task_id)

    text = f"Task {task_id} has already completed and cannot be cancelled."
    assert (answer.text, answer.code) == (text, "task_finished")
    assert (await kit.view_task(task_id)).text == "done"


async def test_a_waiting_caller_receives_the_cancellation() -> None:
    slow = Slow()
    kit = toolkit(slow.wait)
    task_id = await start(kit, "wait")
    waiter = asyncio.ensure_future(kit.wait_task(task_id))
    await turns()

    await kit.cancel_task(task_id)
    answer = await waiter

    assert (answer.text, answer.code) == (f"Task {task_id} has been cancelled.", "interrupted")
    assert not answer.is_interrupted


async def test_closing_waits_until_everything_is_finalised(loop_factory: LoopFactory) -> None:
    slow = Slow()
    async with toolkit(slow.wait, slow.chunks) as kit:
        cancelled = await start(kit, "chunks")
        for _ in range(3):
            await start(kit, "chunks")
        await turns()
        await kit.cancel_task(cancelled)

    assert slow.log == ["finalised"] * 4
    assert not kit._async_tasks
    assert not kit._async_results
    assert asyncio.all_tasks() == {asyncio.current_task()}
    await kit.aclose()


async def test_closing_waits_for_a_tool_that_takes_its_time_and_drops_its_result() -> None:
    slow = Slow()
    kit = toolkit(slow.stubborn)
    task_id = await start(kit, "stubborn")
    await turns()

    closings = [asyncio.ensure_future(kit.aclose()) for _ in range(2)]
    await turns()
    assert slow.log == ["ignored"]
    assert not any(closing.done() for closing in closings)
    slow.go.set()
    await asyncio.gather(*closings)

    assert slow.log == ["ignored", "finished"]
    assert (await kit.view_task(task_id)).code == "unknown_task"


async def test_closing_keeps_results_and_the_toolkit_usable() -> None:
    slow = Slow()
    slow.go.set()
    kit = toolkit(slow.wait)
    before = await start(kit, "wait")
    await turns()

    await kit.aclose()
    after = await start(kit, "wait")

    assert [(await kit.wait_task(task_id)).text for task_id in (before, after)] == ["done", "done"]


async def test_a_tool_may_close_its_own_toolkit() -> None:
    slow = Slow()
    kit = toolkit(slow.wait)

    async def close() -> str:
        await kit.aclose()
        return "closed"

    kit.register_tool_function(close, async_execution=True)
    await start(kit, "wait")
    await turns()

    assert (await kit.wait_task(await start(kit, "close"))).text == "closed"
    assert slow.log == ["began", "cancelled", "finalised"]


async def test_a_tool_in_a_thread_is_left_to_itself() -> None:
    began, go, done = threading.Event(), threading.Event(), threading.Event()

    def block_thread() -> None:
        began.set()
        go.wait()
        done.set()

    kit = toolkit(block_thread)
    task_id = await start(kit, "block_thread")
    # Work that no thread has begun would not be begun any more.
    await asyncio.to_thread(began.wait, 60)

    await kit.cancel_task(task_id)
    await kit.aclose()

    assert not done.is_set()
    go.set()
    assert done.wait(60)


async def test_a_toolkit_goes_when_its_tasks_are_over() -> None:
    slow = Slow()
    slow.go.set()
    kit = toolkit(slow.wait)
    kit.register_task_tools()
    await kit.wait_task(await start(kit, "wait"))
    await start(kit, "wait")
    await turns()
    gone = weakref.ref(kit)

    del kit
    gc.collect()

    assert gone() is None


def test_a_toolkit_that_is_collected_with_running_tasks_does_no_harm() -> None:
    program = """
        import asyncio, gc
        from toolcrib import Toolkit

        async def forever():
            await asyncio.get_running_loop().create_future()

        async def main():
            kit = Toolkit()
            kit.register_tool_function(forever, async_execution=True)
            for _ in range(100):
                await kit.call("forever")
            await asyncio.sleep(0)
            del kit
            gc.collect()
            print(len(asyncio.all_tasks()))

        asyncio.run(main())
    """

    done = python(program)

    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


async def test_a_task_that_other_code_cancels_before_its_first_step_is_listed_as_cancelled(
    loop_factory: LoopFactory,
) -> None:
    slow = Slow()
    kit = toolkit(slow.wait)
    task_id = await start(kit, "wait")
    task = kit._async_tasks[task_id]
    waiter = asyncio.ensure_future(kit.wait_task(task_id))

    task.cancel()
    await turns()

    assert not kit._async_tasks
    answer = await waiter
    assert (answer.text, answer.code) == (f"Task {task_id} has been cancelled.", "interrupted")


async def test_the_end_of_a_task_that_never_began_can_be_fetched() -> None:
    slow = Slow()
    kit = toolkit(slow.wait)
    task_id = await start(kit, "wait")
    kit._async_tasks[task_id].cancel()
    await turns()

    assert list(kit._async_results) == [task_id]
    assert (await kit.cancel_task(task_id)).code == "task_finished"
    assert (await kit.view_task(task_id)).code == "interrupted"
    assert (await kit.view_task(task_id)).code == "unknown_task"
