"""Events of calls: their types, order and data; handlers never affect a call."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import threading
import weakref
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from support.events import event_types, record_events
from support.streams import Numbers, block, echo, read, toolkit
from toolcrib import Toolkit
from toolcrib.events import Event, EventStream


def _report(kit: Toolkit, event: Event) -> None:
    print(kit, event)


async def taken(events: EventStream, count: int) -> list[Event]:
    return [await anext(events) for _ in range(count)]


async def test_a_call_emits_events_from_its_start_to_its_end() -> None:
    kit = toolkit(Numbers().numbers)
    events = record_events(kit)

    await read(kit.call_tool_function(block("numbers")))

    assert event_types(events) == ["call_start", *["chunk"] * 4, "call_end"]
    assert {(event.call_id, event.tool, event.caller) for event in events} == {("call-1", "numbers", None)}
    assert [(event.data["response"].text, event.data["response"].mode) for event in events[1:5]] == [
        ("0", "addition"),
        ("1", "addition"),
        ("2", "addition"),
        ("012", "result"),
    ]
    assert (events[-1].data["outcome"], events[-1].data["code"], events[-1].data["chunks"]) == ("completed", None, 4)
    assert all(earlier.time <= later.time for earlier, later in itertools.pairwise(events))


async def test_a_call_without_an_id_is_given_one_that_no_other_has() -> None:
    kit = toolkit(echo)
    events = record_events(kit)

    await kit.call("echo", text="a")
    await kit.call("echo", text="b")

    first, second = {event.call_id for event in events[:3]}, {event.call_id for event in events[3:]}
    assert len(first) == len(second) == 1
    assert first != second


async def test_middlewares_do_not_multiply_events() -> None:
    kit = toolkit(echo)
    events = record_events(kit)

    async def around(kwargs: dict[str, Any], next_handler: Any) -> AsyncIterator[Any]:
        async for response in next_handler(**kwargs):
            yield response

    kit.register_middleware(around)
    kit.register_middleware(around)
    await read(kit.call_tool_function(block("echo", text="a")))

    assert event_types(events) == ["call_start", "chunk", "call_end"]


async def test_a_tool_that_is_called_directly_emits_events_too() -> None:
    kit = toolkit(echo)
    events = record_events(kit)

    await read(kit.tools["echo"].call(arguments={"text": "a"}))

    assert event_types(events) == ["call_start", "chunk", "call_end"]


async def test_an_exception_is_an_error_and_the_end() -> None:
    async def broken() -> str:
        raise OSError("no disk")

    kit = toolkit(broken)
    events = record_events(kit)

    await kit.call("broken")

    assert event_types(events) == ["call_start", "chunk", "error", "call_end"]
    assert events[2].data == {"error": "OSError", "message": "no disk"}
    assert (events[3].data["outcome"], events[3].data["code"]) == ("failed", "failed")


async def test_a_request_for_a_tool_that_is_not_there_is_an_error() -> None:
    kit = toolkit(echo)
    events = record_events(kit)

    await read(kit.call_tool_function(block("missing")))

    assert event_types(events) == ["call_start", "chunk", "error", "call_end"]
    assert (events[2].data["error"], events[3].data["code"]) == ("unknown_tool", "unknown_tool")
    assert events[2].data["message"] == events[1].data["response"].text


async def test_an_exception_behind_a_middleware_is_an_error_with_a_message() -> None:
    async def broken() -> str:
        raise OSError("no disk")

    async def around(kwargs: dict[str, Any], next_handler: Any) -> AsyncIterator[Any]:
        async for response in next_handler(**kwargs):
            yield response

    kit = toolkit(broken)
    kit.register_middleware(around)
    events = record_events(kit)

    await kit.call("broken")

    assert events[2].data == {"error": "failed", "message": "OSError: no disk"}


async def test_a_stream_that_is_left_early_has_its_end() -> None:
    kit = toolkit(Numbers().endless)
    events = record_events(kit)

    stream = kit.call_tool_function(block("endless"))
    await anext(stream)
    await stream.aclose()

    assert event_types(events) == ["call_start", "chunk", "call_end"]


async def test_a_stream_that_is_dropped_has_its_end() -> None:
    kit = toolkit(Numbers().endless)
    events = record_events(kit)

    stream = kit.call_tool_function(block("endless"))
    await anext(stream)
    del stream
    gc.collect()

    assert event_types(events) == ["call_start", "chunk", "call_end"]


async def test_a_cancelled_call_has_its_end() -> None:
    kit = toolkit(Numbers().endless)
    events = record_events(kit)

    task = asyncio.create_task(read(kit.call_tool_function(block("endless"))))
    while len(events) < 2:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert event_types(events) == ["call_start", "chunk", "chunk", "call_end"]
    assert events[-1].data["outcome"] == "cancelled"


async def test_secrets_are_not_in_events() -> None:
    kit = Toolkit(run_in="inline")

    def login(user: str, password: str) -> str:
        return user

    kit.register_tool_function(login, secrets=["password"])
    events = record_events(kit)

    await kit.call("login", user="ada", password="hunter2")
    await read(kit.call_tool_function({"name": "login", "input": '{"user": "ada", "password": "hunter2"}'}))

    assert events[0].data["arguments"] == {"user": "ada", "password": "***"}
    assert not any("hunter2" in repr(event.data) for event in events)


@pytest.mark.parametrize(
    "sent",
    [
        {"user": "ada", "Password": "HUNTER2"},
        {"user": "ada", "password": ["HUNTER2"]},
        {"user": "ada", "input": {"password": "HUNTER2"}},
        {"user": "ada", "password": "HUNTER2", "Pass": "HUNTER2"},
    ],
)
@pytest.mark.parametrize("permission", ["auto", "confirm"])
async def test_secrets_are_not_in_events_however_they_were_passed(sent: dict[str, Any], permission: Any) -> None:
    def login(user: str, password: str) -> str:
        return f"hello {user}"

    kit = Toolkit(run_in="inline")
    kit.register_tool_function(login, secrets=["password"], permission=permission)
    events = record_events(kit)

    responses = await read(kit.call_tool_function({"type": "tool_use", "id": "1", "name": "login", "input": sent}))

    reported = [(event.data, getattr(event.data.get("response"), "metadata", None)) for event in events]
    assert "HUNTER2" not in repr(reported)
    assert "HUNTER2" not in "".join(response.text for response in responses)
    assert events[0].data["arguments"]["user"] == "ada"


async def test_events_name_a_pending_call_and_the_response_holds_it() -> None:
    def pay(amount: int) -> str:
        return "paid"

    kit = Toolkit(run_in="inline")
    kit.register_tool_function(pay, permission="confirm")
    events = record_events(kit)

    (response,) = await read(kit.call_tool_function(block("pay", amount=3)))

    request, chunk = (next(event for event in events if event.type == kind) for kind in ("permission_request", "chunk"))
    assert response.metadata is not None
    assert response.metadata["pending"]["arguments"] == {"amount": 3}
    known = {"id": response.metadata["pending"]["id"]}
    assert request.data["pending"] == known
    assert chunk.data["response"].metadata == {"pending": known}


async def test_the_iterator_gives_the_types_that_were_asked_for() -> None:
    kit = toolkit(echo)

    async with kit.events(["call_end"]) as events:
        await kit.call("echo", text="a")
        await kit.call("echo", text="b")
        got = await taken(events, 2)

    assert event_types(got) == ["call_end", "call_end"]


async def test_the_iterator_waits_for_what_comes() -> None:
    kit = toolkit(echo)
    events = kit.events()

    waiting = asyncio.create_task(taken(events, 3))
    await asyncio.sleep(0)
    await kit.call("echo", text="a")

    assert event_types(await waiting) == ["call_start", "chunk", "call_end"]


async def test_the_oldest_events_make_room_and_are_counted() -> None:
    kit = toolkit(Numbers().numbers)
    events = kit.events(size=2)

    await read(kit.call_tool_function(block("numbers")))

    assert events.dropped == 4
    assert event_types(await taken(events, 2)) == ["chunk", "call_end"]


async def test_closing_ends_the_iterator_for_waiting_tasks() -> None:
    kit = toolkit(echo)
    events = kit.events()

    waiting = asyncio.create_task(read(events))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    await events.aclose()

    assert await waiting == []
    await kit.call("echo", text="a")
    with pytest.raises(StopAsyncIteration):
        await anext(events)


async def test_an_event_is_not_lost_when_a_waiting_task_is_cancelled() -> None:
    kit = toolkit(echo)
    events = kit.events(["call_start"])

    for _ in range(100):
        waiting = asyncio.create_task(taken(events, 1))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
    await kit.call("echo", text="a")

    assert event_types(await taken(events, 1)) == ["call_start"]


def test_events_reach_the_loop_of_another_thread() -> None:
    kit = toolkit(echo)
    events = kit.events()
    got: list[str] = []

    thread = threading.Thread(target=lambda: got.extend(event_types(asyncio.run(taken(events, 3)))))
    thread.start()
    asyncio.run(kit.call("echo", text="a"))
    thread.join()

    assert got == ["call_start", "chunk", "call_end"]


async def test_what_one_listener_does_to_an_event_no_other_sees() -> None:
    def spoil(event: Event) -> None:
        event.data["arguments"]["text"] = "spoilt"
        event.data.clear()

    kit = toolkit(echo)
    kit.subscribe("call_start", spoil)
    queues = [kit.events(["call_start"]), kit.events(["call_start"])]
    events = record_events(kit)

    response = await kit.call("echo", text="a")
    spoil((await taken(queues[0], 1))[0])

    assert response.text == "a"
    reported = [events[0], *(await taken(queues[1], 1))]
    assert [event.data["arguments"] for event in reported] == [{"text": "a"}, {"text": "a"}]


async def test_cyclic_arguments_stay_cyclic_in_events() -> None:
    kit = toolkit(echo)
    events = record_events(kit)
    endless: dict[str, Any] = {"text": "a"}
    endless["one"] = endless["other"] = [endless]

    await read(kit.call_tool_function(block("echo", **endless)))

    reported = events[0].data["arguments"]
    assert reported["one"] is reported["other"]
    assert reported["one"][0]["one"] is reported["one"] is not endless["one"]


async def test_taking_a_subscription_back_ends_it() -> None:
    kit = toolkit(echo)
    events: list[Event] = []
    unsubscribe = kit.subscribe("chunk", events.append)

    await kit.call("echo", text="a")
    unsubscribe()
    unsubscribe()
    await kit.call("echo", text="b")

    assert len(events) == 1


async def test_an_asynchronous_handler_runs_beside_the_call() -> None:
    kit = toolkit(echo)
    done: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def handle(event: Event) -> None:
        await asyncio.sleep(0)
        done.set_result(event.type)

    kit.subscribe("call_end", handle)
    await kit.call("echo", text="a")

    assert await done == "call_end"


async def test_handlers_that_fail_affect_neither_calls_nor_other_handlers(caplog: pytest.LogCaptureFixture) -> None:
    kit = toolkit(echo)

    def bad(event: Event) -> None:
        raise ZeroDivisionError

    async def worse(event: Event) -> None:
        raise KeyError(event.type)

    kit.subscribe("call_start", bad)
    kit.subscribe("chunk", worse)
    events = record_events(kit)
    with caplog.at_level(logging.ERROR, "toolcrib"):
        response = await kit.call("echo", text="a")
        await asyncio.sleep(0)

    assert (response.text, event_types(events)) == ("a", ["call_start", "chunk", "call_end"])
    assert [record.name for record in caplog.records] == ["toolcrib", "toolcrib"]


@pytest.mark.parametrize("word", ["", "chunks", "CHUNK"])
def test_a_type_that_does_not_exist_is_refused(word: Any) -> None:
    kit = Toolkit()

    with pytest.raises(ValueError, match="unknown event type"):
        kit.events([word])
    with pytest.raises(ValueError, match="unknown event type"):
        kit.subscribe(word, print)


def test_what_makes_no_sense_is_refused() -> None:
    kit = Toolkit()
    handler: Any = 3
    word: Any = "chunk"

    with pytest.raises(ValueError, match="size must be a positive"):
        kit.events(size=0)
    with pytest.raises(TypeError, match="list of event types"):
        kit.events(word)
    with pytest.raises(TypeError, match="must be callable"):
        kit.subscribe("chunk", handler)


def test_a_toolkit_whose_handler_knows_it_can_be_collected() -> None:
    kit = toolkit(echo)
    kit.subscribe("chunk", partial(_report, kit))
    queue = kit.events()
    gone = weakref.ref(kit)

    del kit, queue
    gc.collect()

    assert gone() is None


async def test_an_unreferenced_iterator_is_unsubscribed() -> None:
    kit = toolkit(echo)
    events: EventStream | None = kit.events()

    await kit.call("echo", text="a")
    del events
    gc.collect()

    assert not kit._permissions.unsubscribe(1)
    assert (await kit.call("echo", text="b")).text == "b"
