"""Calls that wait for an answer: cancelled at every point, closed, dropped, left to themselves."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest

from support.events import event_types, record_events
from support.policy import Shop, answering
from support.streams import COUNTS_REQUESTS, block, last, read, timeout
from support.waiting import turns
from toolcrib.policy import ApprovalRequest


class Slow:
    """An approver that takes some steps of the event loop, and says whether it was finalised."""

    def __init__(self, steps: int = 4) -> None:
        self.steps = steps
        self.entered = 0
        self.left = 0

    async def __call__(self, request: ApprovalRequest) -> str:
        self.entered += 1
        try:
            for _ in range(self.steps):
                await asyncio.sleep(0)
            return "once"
        finally:
            self.left += 1


def layered(shop: Shop) -> None:
    async def around(kwargs: dict[str, Any], next_handler: Any) -> Any:
        async for response in next_handler(**kwargs):
            yield response

    shop.kit.register_middleware(around)


def plain(shop: Shop) -> None:
    pass


@pytest.mark.parametrize("form", [plain, layered])
@pytest.mark.parametrize("steps", range(12))
async def test_a_call_is_cancelled_at_every_point_of_the_question(
    form: Callable[[Shop], None], steps: int, loop_factory: Any
) -> None:
    approver = Slow()
    shop = Shop(approver=approver)
    form(shop)
    responses: list[Any] = []

    async def consume() -> None:
        async for response in shop.kit.call_tool_function(block("remove", path="a")):
            responses.append(response)

    task = asyncio.create_task(consume())
    for _ in range(steps):
        await asyncio.sleep(0)
    was_done = task.done()
    task.cancel()
    await asyncio.wait([task])
    for _ in range(3):
        await asyncio.sleep(0)

    assert task.cancelled() is not was_done
    assert approver.entered == approver.left
    ended_well = [response for response in responses if response.ok]
    assert len(ended_well) == len(shop.ran) == was_done
    assert [task for task in asyncio.all_tasks() if "approval" in task.get_name()] == []


@pytest.mark.skipif(not COUNTS_REQUESTS, reason="asyncio.timeout came with Python 3.11")
async def test_a_timeout_around_the_call_fires(loop_factory: Any) -> None:
    approver = Slow(10**9)
    shop = Shop(approver=approver)

    with pytest.raises(TimeoutError):
        async with timeout(0.02):
            await shop.kit.call("remove", path="a")
    await asyncio.sleep(0)

    assert (shop.ran, approver.left) == ([], 1)


async def test_waiting_with_a_limit_leaves_nothing_behind() -> None:
    approver = Slow(10**9)
    shop = Shop(approver=approver)

    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(shop.kit.call("remove", path="a"), 0.02)
    await asyncio.sleep(0)

    assert (shop.ran, approver.left) == ([], 1)


@pytest.mark.parametrize("end", ["closed by synchronous code", "dropped"])
async def test_a_stream_that_ends_while_it_waits_gives_the_question_up(end: str) -> None:
    approver = Slow(10**9)
    shop = Shop(approver=approver)
    stream = shop.kit.call_tool_function(block("remove", path="a"))
    step = stream.__anext__()
    step.send(None)
    await turns(2)

    if end == "dropped":
        del stream, step
        gc.collect()
    else:
        stream.close()
    await turns(3)

    assert (approver.entered, approver.left, shop.ran) == (1, 1, [])


async def test_a_stream_that_a_task_waits_for_cannot_be_closed() -> None:
    approver = Slow(10**9)
    shop = Shop(approver=approver)
    stream = shop.kit.call_tool_function(block("remove", path="a"))
    task = asyncio.create_task(read(stream))
    while not approver.entered:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="already running"):
        await stream.aclose()
    task.cancel()
    await asyncio.wait([task])

    assert shop.ran == []


async def test_an_exception_that_is_thrown_in_ends_the_question() -> None:
    approver = Slow(10**9)
    shop = Shop(approver=approver)
    stream = shop.kit.call_tool_function(block("remove", path="a"))
    step: Any = stream.__anext__()
    step.send(None)

    with pytest.raises(StopIteration) as caught:
        step.throw(ValueError("enough"))
    for _ in range(3):
        await asyncio.sleep(0)

    assert (caught.value.value.code, shop.ran) == ("failed", [])


async def test_a_cancelled_question_is_emitted_and_has_no_result() -> None:
    shop = Shop(approver=Slow(10**9))
    events = record_events(shop.kit)

    task = asyncio.create_task(read(shop.kit.call_tool_function(block("remove", path="a"))))
    while len(events) < 2:
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])

    assert event_types(events) == ["call_start", "permission_request", "chunk", "call_end"]
    assert events[-1].data["outcome"] == "cancelled"


async def test_a_call_that_waits_is_interrupted_like_any_other() -> None:
    shop = Shop(approver=Slow(10**9))
    stream = shop.kit.call_tool_function(block("remove", path="a"))
    seen: list[Any] = []

    async def consume() -> None:
        async for response in stream:
            seen.append(response)

    task = asyncio.create_task(consume())
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert [response.is_interrupted for response in seen] == [True]


async def test_a_thousand_calls_wait_and_go_on_together(loop_factory: Any) -> None:
    release = asyncio.Event()

    async def approve(request: ApprovalRequest) -> bool:
        await release.wait()
        return bool(request.arguments["path"] != "13")

    shop = Shop(approver=approve)
    calls = [asyncio.ensure_future(shop.kit.call("remove", path=str(number))) for number in range(1000)]
    await asyncio.sleep(0.01)
    release.set()
    responses = await asyncio.gather(*calls)

    assert [response.text for response in responses if response.ok] == [
        f"removed {number}" for number in range(1000) if number != 13
    ]
    assert len(shop.ran) == 999


async def test_objects_of_a_question_are_let_go() -> None:
    approve, asked = answering("once")
    shop = Shop(approver=approve)
    await shop.kit.call("remove", path="a")
    gc.collect()
    before = len(gc.get_objects())

    for number in range(300):
        await shop.kit.call("remove", path=str(number))
        asked.clear()
        shop.ran.clear()
    gc.collect()

    assert len(gc.get_objects()) - before < 50


async def test_objects_of_a_pending_call_are_let_go() -> None:
    shop = Shop()
    await shop.kit.call("remove", path="a")
    gc.collect()
    before = len(gc.get_objects())

    for number in range(300):
        response = await shop.kit.call("remove", path=str(number))
        assert response.metadata is not None
        await last(shop.kit.resume(response.metadata["pending"], "once"))
        del response
        shop.ran.clear()
    gc.collect()

    assert len(gc.get_objects()) - before < 50


def test_a_program_that_ends_while_a_call_waits_just_ends() -> None:
    from support.streams import python

    done = python(
        """
        import asyncio, threading
        from toolcrib import Toolkit

        def approve(request):
            threading.Event().wait(60)

        async def main():
            kit = Toolkit(approver=approve)
            kit.register_tool_function(lambda: 1, func_name="f", permission="confirm")
            asyncio.ensure_future(kit.call("f"))
            await asyncio.sleep(0.1)
            print("bye")

        asyncio.run(main())
        """,
        seconds=30,
    )

    assert (done.returncode, done.stdout) == (0, "bye\n"), done.stderr
