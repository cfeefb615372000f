"""Tasks in the background and event loops: ones that end, and ones in other threads."""

import asyncio
import gc
import logging
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from support.background import Slow, start, toolkit
from support.loops import LoopFactory, run_on
from support.waiting import turns


def test_the_end_of_the_loop_finalises_tasks(loop_factory: LoopFactory) -> None:
    slow = Slow()
    kit = toolkit(slow.wait, slow.chunks)

    async def main() -> None:
        await start(kit, "wait")
        await start(kit, "chunks")
        await turns()

    run_on(loop_factory, main())

    assert slow.log == ["began", "cancelled", "finalised", "finalised"]
    assert not kit._async_tasks
    assert not kit._async_results


@pytest.mark.skipif(sys.version_info < (3, 12), reason="tasks that start at once came with Python 3.12")
async def test_a_task_may_start_at_once() -> None:
    factory: Any = getattr(asyncio, "eager_task_factory", None)
    asyncio.get_running_loop().set_task_factory(factory)
    slow = Slow()
    kit = toolkit(slow.wait)

    cancelled = await start(kit, "wait")
    assert slow.log == ["began"]
    await kit.cancel_task(cancelled)
    await turns()
    slow.go.set()
    finished = await start(kit, "wait")

    assert slow.log == ["began", "cancelled", "finalised", "began", "finalised"]
    assert (await kit.view_task(finished)).text == "done"


def test_a_task_whose_loop_was_closed_is_reported_as_failed(caplog: pytest.LogCaptureFixture) -> None:
    slow = Slow()
    kit = toolkit(slow.wait)
    loop = asyncio.new_event_loop()
    task_id = loop.run_until_complete(start(kit, "wait"))
    loop.run_until_complete(turns())
    loop.close()

    with caplog.at_level(logging.CRITICAL, "asyncio"):  # asyncio says that the task was destroyed.
        answer = asyncio.run(kit.wait_task(task_id))
        del kit, slow
        gc.collect()

    assert answer.code == "failed"
    assert "event loop was closed" in answer.text


@pytest.fixture
def elsewhere() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop in another thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def far(loop: asyncio.AbstractEventLoop, work: Any) -> Any:
    """Do something on a loop in another thread, and wait for it here."""
    return asyncio.run_coroutine_threadsafe(work, loop).result()


async def test_a_task_of_another_loop_can_be_waited_for(elsewhere: asyncio.AbstractEventLoop) -> None:
    slow = Slow()
    kit = toolkit(slow.wait)
    task_id = far(elsewhere, start(kit, "wait"))

    early = await kit.wait_task(task_id, timeout=0.01)
    waiter = asyncio.ensure_future(kit.wait_task(task_id))
    await turns()
    elsewhere.call_soon_threadsafe(slow.go.set)

    assert early.code == "task_running"
    assert (await waiter).text == "done"


async def test_a_task_of_another_loop_can_be_cancelled_and_closed(elsewhere: asyncio.AbstractEventLoop) -> None:
    slow = Slow()
    kit = toolkit(slow.chunks)
    first, _ = (far(elsewhere, start(kit, "chunks")) for _ in range(2))
    far(elsewhere, turns())

    await kit.cancel_task(first)
    await kit.aclose()

    assert slow.log == ["finalised"] * 2
    assert not kit._async_tasks
