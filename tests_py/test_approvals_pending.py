"""Pending calls: plain data that goes on once, where and as it was asked for, and nowhere else."""

from __future__ import annotations

import asyncio
import copy
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from support.events import event_types, record_events
from support.policy import Shop, answering
from support.streams import block, last, read, texts
from toolcrib import Approvals, Toolkit, ToolResponse
from toolcrib.errors import (
    AlteredPendingError,
    ApprovalError,
    ExpiredPendingError,
    InvalidAnswerError,
    InvalidPendingError,
    MisplacedPendingError,
    UsedPendingError,
)
from toolcrib.policy import Approval, Policy, Rule


async def pending(shop: Shop, name: str = "remove", **arguments: Any) -> Any:
    """The pending value of a call, as it comes out of a store."""
    response = await last(shop.kit.call_tool_function(block(name, **(arguments or {"path": "a"}))))
    assert response.code == "pending"
    assert response.metadata is not None
    return json.loads(json.dumps(response.metadata["pending"]))


async def test_without_an_approver_the_call_ends_with_what_it_takes_to_go_on() -> None:
    shop = Shop()

    responses = await read(shop.kit.call_tool_function(block("remove", path="a")))

    (response,) = responses
    assert (response.code, response.ok, shop.ran) == ("pending", False, [])
    assert "is waiting for approval" in response.text
    assert response.metadata is not None
    assert response.metadata["pending"]["tool"] == "remove"
    assert response.metadata["pending"]["arguments"] == {"path": "a"}
    assert response.metadata["pending"]["call_id"] == "call-1"


async def test_a_pending_call_goes_on_as_a_stream(loop_factory: Any) -> None:
    shop = Shop()
    value = await pending(shop, "count", to=3)

    stream = shop.kit.resume(value, "once")
    assert shop.ran == []

    assert await texts(await stream) == ["0", "1", "2", "012"]
    assert shop.ran == [("count", 3)]


async def test_its_json_text_does_as_well() -> None:
    shop = Shop()
    value = await pending(shop)

    assert (await last(shop.kit.resume(json.dumps(value), True))).ok


async def test_a_pending_call_goes_on_once() -> None:
    shop = Shop()
    value = await pending(shop)

    await read(shop.kit.resume(value, "once"))
    for answer in ("once", "no", "always"):
        with pytest.raises(UsedPendingError):
            await read(shop.kit.resume(value, answer))

    assert shop.ran == [("remove", "a", False)]


async def test_a_stream_that_is_never_read_uses_nothing_up() -> None:
    shop = Shop()
    value = await pending(shop)

    await shop.kit.resume(value, "once").aclose()

    assert (await last(shop.kit.resume(value, "once"))).ok


async def test_a_no_is_used_up_too() -> None:
    shop = Shop()
    value = await pending(shop)

    response = await last(shop.kit.resume(value, Approval("no", reason="never")))

    assert (response.code, shop.ran) == ("denied", [])
    assert "never" in response.text
    with pytest.raises(UsedPendingError):
        await read(shop.kit.resume(value, "once"))


async def test_cancel_ends_what_an_approver_is_asked_about_as_well() -> None:
    shop = Shop()
    value = await pending(shop)
    waiting = asyncio.Event()

    async def approve(request: Any) -> bool:
        waiting.set()
        await asyncio.sleep(60)
        return True

    shop.kit.approver = approve
    call = asyncio.create_task(read(shop.kit.call_tool_function(block("remove", path="b"))))
    await waiting.wait()
    response = await last(shop.kit.resume(value, "cancel"))

    assert (response.code, (await call)[-1].code, shop.ran) == ("cancelled", "cancelled", [])


async def test_a_second_call_that_needs_approval_is_pending_anew() -> None:
    shop = Shop()

    first = await pending(shop)
    await read(shop.kit.resume(first, "once"))
    second = await pending(shop)
    await read(shop.kit.resume(second, "once"))

    assert first["id"] != second["id"]
    assert len(shop.ran) == 2


async def test_run_and_always_hold_for_later_calls() -> None:
    shop = Shop()

    await read(shop.kit.resume(await pending(shop), "run"))
    assert (await shop.kit.call("remove", path="b")).ok
    shop.kit.end_run()
    await read(shop.kit.resume(await pending(shop), "always"))
    shop.kit.end_run()

    assert (await shop.kit.call("remove", path="c")).ok


async def test_edited_arguments_run_instead_and_are_checked() -> None:
    shop = Shop(policy=Policy([Rule("deny", arguments={"path": "/etc"})]))

    assert (await last(shop.kit.resume(await pending(shop), "once", {"path": "b"}))).ok
    assert (await last(shop.kit.resume(await pending(shop), Approval("once", {"path": "/etc"})))).code == "denied"

    assert shop.ran == [("remove", "b", False)]


async def test_edited_arguments_that_do_not_fit_leave_the_call_pending() -> None:
    shop = Shop()
    value = await pending(shop)

    for arguments in ({"pfad": "b"}, {"path": ["b"]}, {}):
        with pytest.raises(InvalidAnswerError, match="fit the tool's schema"):
            await read(shop.kit.resume(value, "once", arguments=arguments))

    assert (await last(shop.kit.resume(value, "once", {"path": "b"}))).ok
    assert shop.ran == [("remove", "b", False)]


async def test_a_rule_that_denies_by_now_wins_over_the_answer() -> None:
    shop = Shop(policy=Policy())
    value = await pending(shop)
    assert shop.kit.policy is not None

    shop.kit.policy.add(Rule("deny", tool="remove"))

    assert (await last(shop.kit.resume(value, "once"))).code == "denied"
    assert shop.ran == []


async def test_a_call_that_needs_no_approval_any_more_goes_on_with_what_was_approved() -> None:
    shop = Shop(policy=Policy([Rule("ask", tool="look")]))
    value = await pending(shop, "look", path="a")

    shop.kit.policy = None

    assert (await last(shop.kit.resume(value, "once"))).text == "saw a"
    with pytest.raises(UsedPendingError):
        await read(shop.kit.resume(value, "once"))


async def test_every_field_is_bound() -> None:
    shop = Shop()
    value = await pending(shop)

    for field in value:
        altered = copy.deepcopy(value)
        altered[field] = {"arguments": {"path": "/"}, "caller": "ann", "session": "x", "tool": "look"}.get(
            field, "0" * len(str(altered[field]))
        )
        with pytest.raises(ApprovalError):
            await read(shop.kit.resume(altered, "once"))

    assert shop.ran == []
    assert (await last(shop.kit.resume(value, "once"))).ok


async def test_altered_arguments_are_refused() -> None:
    shop = Shop()
    value = await pending(shop)

    value["arguments"]["path"] = "/"

    with pytest.raises(AlteredPendingError):
        await read(shop.kit.resume(value, "once"))


@pytest.mark.parametrize("name", ["look", "unknown", ""])
async def test_an_altered_tool_is_refused(name: str) -> None:
    shop = Shop()
    value = await pending(shop)

    value["tool"] = name

    with pytest.raises(AlteredPendingError):
        await read(shop.kit.resume(value, "once"))
    with pytest.raises(AlteredPendingError):
        await read(shop.kit.session().resume(value, "once"))
    assert shop.ran == []


async def test_ten_thousand_replays_are_refused() -> None:
    shop = Shop()
    value = await pending(shop)
    await read(shop.kit.resume(value, "once"))

    refused = 0
    for _ in range(10_000):
        try:
            await anext(shop.kit.resume(value, "once"))
        except UsedPendingError:
            refused += 1

    assert (refused, len(shop.ran)) == (10_000, 1)


async def test_an_expired_call_is_refused() -> None:
    shop = Shop(approvals=Approvals(ttl=0.01))
    value = await pending(shop)

    await asyncio.sleep(0.05)

    with pytest.raises(ExpiredPendingError):
        await read(shop.kit.resume(value, "once"))
    assert shop.ran == []


async def test_another_caller_cannot_go_on_with_it() -> None:
    shop = Shop()
    view = shop.kit.view(caller="ann")
    response = await view.call("remove", path="a")
    assert response.metadata is not None
    value = response.metadata["pending"]

    for other in (shop.kit, shop.kit.view(caller="bob"), shop.kit.view()):
        with pytest.raises(MisplacedPendingError):
            await read(other.resume(value, "once"))

    assert (await last(view.resume(value, "once"))).ok


async def test_a_view_that_does_not_show_the_tool_cannot_go_on_with_it() -> None:
    shop = Shop()
    value = await pending(shop)

    response = await last(shop.kit.view(exclude=["remove"]).resume(value, "once"))

    assert (response.code, shop.ran) == ("tool_not_available", [])
    assert (await last(shop.kit.resume(value, "once"))).ok


async def test_another_toolkit_cannot_go_on_with_it() -> None:
    shop, other = Shop(), Shop()
    value = await pending(shop)

    with pytest.raises(MisplacedPendingError):
        await read(other.kit.resume(value, "once"))


async def test_a_toolkit_that_shares_the_approvals_can() -> None:
    approvals = Approvals()
    shop, other = Shop(approvals=approvals), Shop(approvals=approvals)
    value = await pending(shop)

    assert (await last(other.kit.resume(value, "once"))).ok
    with pytest.raises(UsedPendingError):
        await read(shop.kit.resume(value, "once"))


async def test_a_tool_that_has_changed_is_not_the_one_that_was_approved() -> None:
    shop = Shop()
    value = await pending(shop)

    async def remove(path: str, everywhere: bool = True) -> str:
        raise AssertionError

    shop.kit.register_tool_function(remove, namesake_strategy="override", permission="confirm")

    with pytest.raises(MisplacedPendingError):
        await read(shop.kit.resume(value, "once"))


async def test_presets_take_part_in_what_is_approved() -> None:
    async def send(to: str, host: str) -> str:
        return host

    approvals = Approvals()
    kits = []
    for host in ("a", "b"):
        kit = Toolkit(approvals=approvals)
        kit.register_tool_function(send, preset_kwargs={"host": host}, permission="confirm")
        kits.append(kit)
    response = await kits[0].call("send", to="x")
    assert response.metadata is not None
    value = response.metadata["pending"]

    with pytest.raises(MisplacedPendingError):
        await read(kits[1].resume(value, "once"))
    assert (await last(kits[0].resume(value, "once"))).text == "a"


@pytest.mark.parametrize(
    "value",
    [
        *(
            None,
            3,
            "",
            "null",
            "[]",
            "{",
            [],
            {},
            "\ud800",
            "[" * 500,
            {1: 2},
            {"type": object()},
            {"type": float("nan")},
        ),
        *({"type": "toolcrib.pending"}, {"type": "x", "version": 1}),
    ],
)
def test_an_invalid_pending_call_is_refused_at_once(value: Any) -> None:
    shop = Shop()

    with pytest.raises(InvalidPendingError, match="invalid pending call"):
        shop.kit.resume(value, "once")


@pytest.mark.parametrize("answer", [None, 1, "yes", "ONCE", "", [], {"answer": "once"}, Approval("maybe")])  # type: ignore[arg-type]
async def test_an_invalid_answer_is_refused_at_once_and_claims_nothing(answer: Any) -> None:
    shop = Shop()
    value = await pending(shop)

    with pytest.raises(InvalidAnswerError):
        shop.kit.resume(value, answer)

    assert (await last(shop.kit.resume(value, "once"))).ok


async def test_random_changes_of_the_text_never_run_anything_else() -> None:
    shop = Shop()
    text = json.dumps(await pending(shop))
    dice = random.Random(7)

    for _ in range(2000):
        place = dice.randrange(len(text))
        altered = text[:place] + dice.choice('abc0159"{}[]:, \\\u0430') + text[place + dice.randrange(2) :]
        if means_the_same(altered, text):
            continue
        try:
            response = await last(shop.kit.resume(altered, "once"))
        except ApprovalError:
            continue
        assert response.code == "unknown_tool"

    assert shop.ran == []


def means_the_same(one: str, other: str) -> bool:
    """True if two texts are of the same value; times are in milliseconds."""
    try:
        values = [json.loads(text) for text in (one, other)]
    except ValueError:
        return False
    for value in values:
        for field in ("created", "expires"):
            if isinstance(value, dict) and field in value:
                value[field] = str(value[field])[: len("2026-01-31T09:30:00.000")]
    return bool(values[0] == values[1])


async def test_of_many_that_go_on_at_once_one_wins() -> None:
    shop = Shop()
    value = await pending(shop)

    async def attempt() -> str:
        try:
            return (await last(shop.kit.resume(value, "once"))).text
        except UsedPendingError:
            return "used"

    outcomes = await asyncio.gather(*(attempt() for _ in range(50)))

    assert sorted(outcomes) == ["removed a"] + ["used"] * 49
    assert len(shop.ran) == 1


async def test_the_question_is_emitted_once_and_the_answer_when_it_comes() -> None:
    shop = Shop()
    events = record_events(shop.kit)

    value = await pending(shop)
    asked = event_types(events)
    events.clear()
    await read(shop.kit.resume(value, Approval("once", by="ada")))

    assert asked == ["call_start", "permission_request", "chunk", "call_end"]
    assert event_types(events) == ["call_start", "permission_result", "chunk", "call_end"]
    assert {event.call_id for event in events} == {"call-1"}
    assert (events[0].data["resumed"], events[1].data["by"]) == (True, "ada")


async def test_middlewares_are_around_it_and_cannot_change_what_was_approved() -> None:
    shop = Shop()
    value = await pending(shop)

    async def meddle(kwargs: dict[str, Any], next_handler: Any) -> AsyncIterator[ToolResponse]:
        kwargs["tool_call"]["input"]["path"] = "/"
        async for response in next_handler(**kwargs):
            response.content[0]["text"] += "!"
            yield response

    shop.kit.register_middleware(meddle)

    assert (await last(shop.kit.resume(value, "once"))).text == "removed a!"
    assert shop.ran == [("remove", "a", False)]


async def test_a_middleware_that_tries_twice_is_approved_once() -> None:
    shop = Shop()
    value = await pending(shop)
    codes: list[str | None] = []

    async def twice(kwargs: dict[str, Any], next_handler: Any) -> AsyncIterator[ToolResponse]:
        for _ in range(2):
            async for response in next_handler(**kwargs):
                codes.append(response.code)
                yield response

    shop.kit.register_middleware(twice)
    await read(shop.kit.resume(value, "once"))

    assert codes == [None, "pending"]
    assert len(shop.ran) == 1


async def test_a_middleware_cannot_spend_the_approval_on_another_tool() -> None:
    shop = Shop()
    value = await pending(shop)

    async def reroute(kwargs: dict[str, Any], next_handler: Any) -> AsyncIterator[ToolResponse]:
        async for response in next_handler(tool_call=block("login", user="a", password="b")):
            yield response

    shop.kit.register_middleware(reroute)

    assert (await last(shop.kit.resume(value, "once"))).code == "pending"
    assert shop.ran == []


async def test_a_tool_in_the_background_starts_when_it_is_approved() -> None:
    shop = Shop()
    shop.kit.register_tool_function(shop.look, func_name="behind", permission="confirm", async_execution=True)
    value = await pending(shop, "behind", path="a")

    response = await last(shop.kit.resume(value, "once"))
    assert response.metadata is not None

    assert (await shop.kit.wait_task(response.metadata["task_id"])).text == "saw a"


async def test_an_approver_does_not_stand_in_the_way_of_a_pending_call() -> None:
    approve, asked = answering("no")
    shop = Shop()
    value = await pending(shop)

    shop.kit.approver = approve

    assert (await last(shop.kit.resume(value, "once"))).ok
    assert asked == []


async def test_arguments_of_every_json_type_come_back_as_they_were() -> None:
    got: list[Any] = []

    async def take(value: Any) -> str:
        got.append(value)
        return "took"

    kit = Toolkit()
    kit.register_tool_function(take, permission="confirm")
    value = {"a": [1, -2.5, True, None, "é\u2028", {"b": 10**30}], "": {}}
    response = await kit.call("take", value=value)
    assert response.metadata is not None

    await read(kit.resume(json.loads(json.dumps(response.metadata["pending"])), "once"))

    assert got == [value]


def test_approvals_say_what_they_are(tmp_path: Path) -> None:
    kept = Approvals(tmp_path / "approvals", ttl=60)

    assert (kept.path, kept.ttl, Approvals().path) == (tmp_path / "approvals", 60, None)
    for ttl in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="ttl must be a positive"):
            Approvals(ttl=ttl)
    with pytest.raises(TypeError, match="ttl must be a number of seconds, not bool"):
        Approvals(ttl=True)
    with pytest.raises(OSError, match="approvals"):
        Approvals(tmp_path / "missing" / "approvals")
