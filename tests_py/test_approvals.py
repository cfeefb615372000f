"""Approvers: whom a call asks, what they see, what they can answer, and that anything but a clear yes is a no."""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from support.events import event_types, record_events
from support.policy import Shop, answering
from support.streams import block, last, read
from toolcrib import Toolkit
from toolcrib.errors import InvalidAnswerError
from toolcrib.policy import Approval, ApprovalRequest, Policy, Rule


async def test_an_approver_is_shown_what_will_run() -> None:
    approve, asked = answering("once")
    shop = Shop(approver=approve)

    response = await last(shop.kit.call_tool_function(block("remove", path="a", force="true")))

    assert (response.text, shop.ran) == ("removed a", [("remove", "a", True)])
    assert asked == [
        ApprovalRequest(
            tool="remove",
            arguments={"path": "a", "force": True},
            caller=None,
            rule=None,
            reason="the tool asks for confirmation",
            kind="delete",
            description="Remove a file.",
            call_id="call-1",
        )
    ]


async def test_an_approver_receives_the_rule_and_the_caller() -> None:
    approve, asked = answering(True)
    shop = Shop(approver=approve, policy=Policy([Rule("ask", tool="look", id="careful", reason="be careful")]))

    await shop.kit.view(caller="ann").call("look", path="a")

    assert (asked[0].rule, asked[0].reason, asked[0].caller) == ("careful", "be careful", "ann")


async def test_secrets_are_hidden_from_the_approver_and_given_to_the_tool() -> None:
    approve, asked = answering("once")
    shop = Shop(approver=approve)

    await shop.kit.call("login", user="ada", password="hunter2")

    assert asked[0].arguments == {"user": "ada", "password": "***"}
    assert shop.ran == [("login", "ada", "hunter2")]


async def test_a_synchronous_approver_does_not_hold_the_event_loop_up() -> None:
    release = threading.Event()
    threads: list[str] = []

    def approve(request: ApprovalRequest) -> bool:
        threads.append(threading.current_thread().name)
        release.wait(30)
        return True

    shop = Shop(approver=approve)

    call = asyncio.create_task(read(shop.kit.call_tool_function(block("remove", path="a"))))
    while not threads:
        await asyncio.sleep(0.001)
    await shop.kit.call("look", path="b")
    release.set()
    await call

    assert threads[0] != threading.current_thread().name
    assert shop.ran == [("look", "b"), ("remove", "a", False)]


class Person:
    """An approver that is an object."""

    async def __call__(self, request: ApprovalRequest) -> str:
        await asyncio.sleep(0)
        return "once"

    async def method(self, request: ApprovalRequest) -> str:
        return "once"


@pytest.mark.parametrize(
    "approver",
    [
        Person(),
        Person().method,
        functools.partial(Person.method, Person()),
        lambda request: True,
        lambda request: Person().method(request),
        lambda request: Approval(True),
    ],
    ids=["object", "method", "partial", "lambda", "lambda-of-coroutine", "approval"],
)
async def test_an_approver_may_be_anything_that_can_be_called(approver: Any, loop_factory: Any) -> None:
    shop = Shop(approver=approver)

    assert (await shop.kit.call("remove", path="a")).ok


async def test_once_is_for_one_call() -> None:
    approve, asked = answering("once")
    shop = Shop(approver=approve)

    await shop.kit.call("remove", path="a")
    await shop.kit.call("remove", path="b")

    assert len(asked) == 2


async def test_a_run_is_for_every_call_of_the_tool_until_it_ends() -> None:
    approve, asked = answering("run")
    shop = Shop(approver=approve)

    await shop.kit.call("remove", path="a")
    await shop.kit.call("remove", path="b")
    await shop.kit.view(caller="ann").call("remove", path="c")
    shop.kit.end_run()
    await shop.kit.call("remove", path="d")

    assert [request.arguments["path"] for request in asked] == ["a", "c", "d"]
    assert len(shop.ran) == 4


async def test_a_run_is_for_the_question_that_was_asked() -> None:
    approve, asked = answering("run")
    policy = Policy([Rule("ask", tool="remove", arguments={"path": {"prefix": "/"}}, id="careful")])
    shop = Shop(approver=approve, policy=policy)

    await shop.kit.call("remove", path="a")
    await shop.kit.call("remove", path="/etc")
    policy.add(Rule("ask", tool="remove", arguments={"path": "b"}, id="later"))
    for path in ("a", "/tmp", "b"):
        await shop.kit.call("remove", path=path)
    shop.kit.headless = True
    policy.add(Rule("ask", tool="remove", arguments={"path": "c"}, id="latest"))
    codes = [(await shop.kit.call("remove", path=path)).code for path in ("a", "/", "b", "c")]

    assert [request.rule for request in asked] == [None, "careful", "later"]
    assert codes == [None, None, None, "denied"]


async def test_what_is_allowed_for_a_run_is_the_tool_as_it_was() -> None:
    approve, asked = answering("run")
    shop = Shop(approver=approve)

    await shop.kit.call("remove", path="a")

    async def remove(path: str, everything: bool = True) -> str:
        return "other"

    shop.kit.register_tool_function(remove, permission="confirm", namesake_strategy="override")
    await shop.kit.call("remove", path="b")

    assert len(asked) == 2


async def test_always_adds_a_rule_and_saves_it_for_the_next_program(tmp_path: Path) -> None:
    approve, asked = answering("always")
    file = tmp_path / "user.toml"
    shop = Shop(approver=approve, policy=Policy.from_files(user=file, optional=True))

    await shop.kit.call("remove", path="a")
    shop.kit.end_run()
    await shop.kit.call("remove", path="b")

    assert len(asked) == 1
    again = Shop(policy=Policy.from_files(user=file))
    assert (await again.kit.call("remove", path="c")).ok
    assert (await again.kit.call("login", user="a", password="b")).code == "pending"


async def test_always_makes_a_policy_where_there_is_none() -> None:
    approve, asked = answering("always")
    shop = Shop(approver=approve)

    await shop.kit.call("remove", path="a")
    shop.kit.end_run()
    await shop.kit.call("remove", path="b")

    assert len(asked) == 1
    assert shop.kit.policy is not None
    assert shop.kit.policy.rules[0]["tool"] == "remove"


@pytest.mark.filterwarnings("ignore:model providers refuse")
async def test_always_is_about_that_name_and_that_caller_alone() -> None:
    approve, asked = answering("always")
    kit = Toolkit(run_in="inline", approver=approve)
    for name in ("x*", "xyz"):
        kit.register_tool_function(lambda: "ran", func_name=name, permission="confirm")

    await kit.view(caller="a*").call("x*")
    kit.end_run()
    for view, name in ((kit.view(caller="a*"), "x*"), (kit.view(caller="a*"), "xyz"), (kit.view(caller="ab"), "x*")):
        await view.call(name)

    assert [(request.tool, request.caller) for request in asked] == [("x*", "a*"), ("xyz", "a*"), ("x*", "ab")]


async def test_always_holds_for_calls_without_a_caller_if_it_was_given_for_one() -> None:
    approve, asked = answering("always")
    shop = Shop(approver=approve)

    await shop.kit.call("remove", path="a")
    await shop.kit.call("remove", path="b")
    await shop.kit.view(caller="eve").call("remove", path="c")

    assert [request.caller for request in asked] == [None, "eve"]


async def test_always_never_opens_what_is_denied(tmp_path: Path) -> None:
    approve, asked = answering("always")
    file = tmp_path / "user.toml"

    def start() -> Shop:
        policy = Policy.from_files(user=file, optional=True)
        for rule in (
            Rule("deny", tool="remove", arguments={"path": {"prefix": "/"}}),
            Rule("deny", tool="remove", arguments={"force": True}, tier="user"),
            Rule("ask", kind="delete"),
        ):
            policy.add(rule)
        return Shop(approver=approve, policy=policy)

    for _ in range(2):
        shop = start()
        codes = [(await shop.kit.call("remove", path=path)).code for path in ("a", "/", "b")]
        codes.append((await shop.kit.call("remove", path="a", force=True)).code)

        assert codes == [None, "denied", None, "denied"]
    assert len(asked) == 1


async def test_always_answers_one_question_and_no_other() -> None:
    approve, asked = answering("always")
    policy = Policy([Rule("ask", tool="remove")])
    shop = Shop(approver=approve, policy=policy)

    await shop.kit.call("remove", path="a")
    policy.add(Rule("ask", arguments={"path": "secret"}, id="careful", priority=1))
    await shop.kit.call("remove", path="b")
    await shop.kit.call("remove", path="secret")
    await shop.kit.call("remove", path="secret")

    assert [request.rule for request in asked] == ["rule-1", "careful"]


async def test_always_does_not_silence_an_administrator(caplog: pytest.LogCaptureFixture) -> None:
    approve, asked = answering("always")
    policy = Policy([Rule("ask", tool="remove", tier="admin", id="each-time")])
    shop = Shop(approver=approve, policy=policy)

    with caplog.at_level(logging.WARNING, "toolcrib"):
        await shop.kit.call("remove", path="a")
        await shop.kit.call("remove", path="b")

    assert (len(asked), len(policy.rules)) == (2, 1)
    assert "'remove' runs this once, not always: `each-time` asks each time" in caplog.text


async def test_what_was_answered_is_explained_and_can_be_taken_back() -> None:
    approve, asked = answering("always")
    shop = Shop(approver=approve)
    await shop.kit.call("remove", path="a")
    policy = shop.kit.policy
    assert policy is not None

    explanation = policy.explain({"name": "remove", "input": {"path": "b"}}, toolkit=shop.kit)

    assert (explanation.decision, explanation.rule) == ("allow", policy.rules[0]["id"])
    assert "then the tool's own permission: asks, and is answered" in str(explanation)
    policy.remove(policy.rules[0]["id"])
    await shop.kit.call("remove", path="b")
    assert len(asked) == 2


async def test_always_that_cannot_be_saved_runs_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    approve, _ = answering("always")
    file = tmp_path / "gone" / "user.toml"
    shop = Shop(approver=approve, policy=Policy.from_files(user=file, optional=True))

    with caplog.at_level(logging.WARNING, "toolcrib"):
        response = await shop.kit.call("remove", path="a")

    assert response.ok
    assert "cannot be saved" in caplog.text


async def test_a_denial_is_reported_to_the_model() -> None:
    approve, _ = answering(Approval("no", reason="not on a Friday"))
    shop = Shop(approver=approve)

    response = await shop.kit.call("remove", path="a")

    assert (response.code, shop.ran) == ("denied", [])
    assert "not on a Friday" in response.text


async def test_cancel_ends_everything_that_waits() -> None:
    asked: list[str] = []
    decided = asyncio.Event()

    async def approve(request: ApprovalRequest) -> str:
        asked.append(request.arguments["path"])
        if len(asked) == 3:
            return "cancel"
        await decided.wait()
        return "once"

    shop = Shop(approver=approve)

    responses = await asyncio.gather(*(shop.kit.call("remove", path=path) for path in "abc"))

    assert [response.code for response in responses] == ["cancelled"] * 3
    assert shop.ran == []
    decided.set()
    assert (await shop.kit.call("look", path="d")).ok


async def test_cancel_ends_what_waits_on_another_loop() -> None:
    waiting = threading.Event()
    codes: list[str | None] = []

    def approve(request: ApprovalRequest) -> str:
        if request.arguments["path"] == "a":
            waiting.set()
            threading.Event().wait(0.2)
            return "once"
        return "cancel"

    shop = Shop(approver=approve)
    thread = threading.Thread(target=lambda: codes.append(shop.kit.run("remove", path="a").code))
    thread.start()
    await asyncio.to_thread(waiting.wait)
    response = await shop.kit.call("remove", path="b")
    await asyncio.to_thread(thread.join)

    assert (response.code, codes, shop.ran) == ("cancelled", ["cancelled"], [])


async def test_edited_arguments_run_instead() -> None:
    async def approve(request: ApprovalRequest) -> Approval:
        return Approval("once", arguments={**request.arguments, "path": "b", "force": "true"})

    shop = Shop(approver=approve)

    assert (await shop.kit.call("remove", path="a")).ok
    assert shop.ran == [("remove", "b", True)]


async def test_a_secret_that_was_not_edited_is_what_it_was() -> None:
    async def approve(request: ApprovalRequest) -> Approval:
        return Approval("once", arguments={**request.arguments, "user": "bob"})

    shop = Shop(approver=approve)

    await shop.kit.call("login", user="ada", password="hunter2")

    assert shop.ran == [("login", "bob", "hunter2")]


@pytest.mark.parametrize(
    ("edited", "code"),
    [({"path": 3, "extra": 1}, "denied"), ({}, "denied"), ({"path": "/etc"}, "denied"), ({"path": "b"}, None)],
)
async def test_edited_arguments_are_checked_against_schema_and_rules(edited: dict[str, Any], code: str | None) -> None:
    approve, _ = answering(Approval("once", arguments=edited))
    shop = Shop(approver=approve, policy=Policy([Rule("deny", arguments={"path": "/etc"})]))

    assert (await shop.kit.call("remove", path="a")).code == code
    assert len(shop.ran) == (code is None)


async def test_a_rule_that_comes_to_deny_meanwhile_wins_over_a_yes() -> None:
    policy = Policy()

    async def approve(request: ApprovalRequest) -> str:
        policy.add(Rule("deny", tool="remove"))
        return "once"

    shop = Shop(approver=approve, policy=policy)

    assert (await shop.kit.call("remove", path="a")).code == "denied"
    assert shop.ran == []


@pytest.mark.parametrize("change", ["removed", "replaced", "switched off"])
async def test_a_tool_that_has_left_meanwhile_does_not_run(change: str) -> None:
    noted: list[dict[str, Any]] = []
    shop = Shop(audit=noted.append)
    events = record_events(shop.kit)

    async def approve(request: ApprovalRequest) -> str:
        if change == "removed":
            shop.kit.remove_tool_function("remove")
        elif change == "replaced":
            shop.kit.register_tool_function(shop.look, func_name="remove", namesake_strategy="override")
        else:
            shop.kit.update_tool_groups(["files"], active=False)
        return "once"

    shop.kit.approver = approve

    response = await shop.kit.call("remove", path="a")

    codes = {"removed": "unknown_tool", "replaced": "denied", "switched off": "inactive_group"}
    assert (response.code, shop.ran) == (codes[change], [])
    assert [(line["answer"], line["outcome"]) for line in noted] == [("once", "denied")]
    assert [event.data["decision"] for event in events if event.type == "permission_result"] == ["deny"]


async def test_what_is_approved_cannot_be_changed_meanwhile() -> None:
    request_block = block("remove", path="a")

    async def approve(request: ApprovalRequest) -> str:
        request_block["input"]["path"] = "b"
        request.arguments["path"] = "c"
        return "once"

    shop = Shop(approver=approve)

    await read(shop.kit.call_tool_function(request_block))

    assert shop.ran == [("remove", "a", False)]


def raising(request: ApprovalRequest) -> bool:
    raise ValueError("not today")


async def cancelling(request: ApprovalRequest) -> bool:
    raise asyncio.CancelledError


def yielding(request: ApprovalRequest) -> Any:
    yield True


@pytest.mark.parametrize(
    "approver",
    [
        raising,
        cancelling,
        yielding,
        lambda request: None,
        lambda request: 1,
        lambda request: "yes",
        lambda request: "Once",
        lambda request: "оnce",
        lambda request: ["once"],
        lambda request: Approval("perhaps"),  # type: ignore[arg-type]
        lambda request: Approval("once", arguments=3),  # type: ignore[arg-type]
        lambda request: Approval("no", arguments={}),
        lambda request: Approval("once", by=5),  # type: ignore[arg-type]
        lambda request: Approval("once", reason=["because"]),  # type: ignore[arg-type]
        lambda request: Approval("once", by="\ud800"),
        lambda: True,
    ],
)
async def test_an_approver_that_fails_or_answers_nonsense_has_said_no(
    approver: Any, caplog: pytest.LogCaptureFixture
) -> None:
    noted: list[dict[str, Any]] = []
    shop = Shop(approver=approver, audit=noted.append)
    events = record_events(shop.kit)

    with caplog.at_level(logging.WARNING, "toolcrib"):
        response = await shop.kit.call("remove", path="a")

    assert (response.code, shop.ran) == ("denied", [])
    assert "denying the call" in caplog.text
    assert [line["outcome"] for line in noted] == ["denied"]
    assert "permission_result" in event_types(events)


@pytest.mark.parametrize("kind", ["coroutine", "thread", "stubborn"])
async def test_an_approver_that_hangs_has_said_no(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    release = threading.Event()

    async def coroutine(request: ApprovalRequest) -> bool:
        await asyncio.sleep(60)
        return True

    async def stubborn(request: ApprovalRequest) -> bool:
        while not release.is_set():
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue
        return True

    def thread(request: ApprovalRequest) -> bool:
        release.wait(30)
        return True

    approver: Any = {"coroutine": coroutine, "stubborn": stubborn, "thread": thread}[kind]
    shop = Shop(approver=approver, approver_timeout=0.05)

    with caplog.at_level(logging.WARNING, "toolcrib"):
        response = await shop.kit.call("remove", path="a")
    release.set()
    await asyncio.sleep(0.1)

    assert (response.code, shop.ran) == ("denied", [])
    assert "did not answer" in caplog.text


async def test_the_time_of_a_person_is_not_the_tools() -> None:
    async def approve(request: ApprovalRequest) -> bool:
        await asyncio.sleep(0.1)
        return True

    async def slow() -> str:
        await asyncio.sleep(60)
        return "done"

    async def quick() -> str:
        await asyncio.sleep(0)
        return "done"

    kit = Toolkit(approver=approve)
    kit.register_tool_function(quick, permission="confirm", timeout=0.05)
    kit.register_tool_function(slow, permission="confirm", timeout=0.05)

    assert (await kit.call("quick")).text == "done"
    assert (await kit.call("slow")).code == "timeout"


async def test_headless_is_a_no_at_once() -> None:
    approve, asked = answering("once")
    shop = Shop(approver=approve, headless=True)

    response = await shop.kit.call("remove", path="a")

    assert (response.code, asked, shop.ran) == ("denied", [], [])


async def test_events_report_the_question_and_the_answer() -> None:
    approve, _ = answering(Approval("once", by="ada"))
    shop = Shop(approver=approve)
    events = record_events(shop.kit)

    await shop.kit.call("login", user="ada", password="hunter2")

    assert event_types(events) == ["call_start", "permission_request", "permission_result", "chunk", "call_end"]
    assert len({event.call_id for event in events}) == 1
    assert events[1].data["arguments"] == {"user": "ada", "password": "***"}
    assert (events[2].data["decision"], events[2].data["answer"], events[2].data["by"]) == ("allow", "once", "ada")


async def test_events_report_a_denial_by_a_rule_without_a_question() -> None:
    shop = Shop(policy=Policy([Rule("deny", tool="look", id="no")]))
    events = record_events(shop.kit)

    await shop.kit.call("look", path="a")

    assert event_types(events) == ["call_start", "permission_result", "chunk", "call_end"]
    assert (events[1].data["decision"], events[1].data["rule"]) == ("deny", "no")
    assert events[-1].data["code"] == "denied"


async def test_a_question_below_middlewares_belongs_to_the_same_call() -> None:
    approve, asked = answering("once")
    shop = Shop(approver=approve)
    events = record_events(shop.kit)

    async def passing(kwargs: dict[str, Any], next_handler: Any) -> Any:
        return await next_handler(**kwargs)

    shop.kit.register_middleware(passing)
    await shop.kit.call("remove", path="a")

    assert event_types(events) == ["call_start", "permission_request", "permission_result", "chunk", "call_end"]
    assert {event.call_id for event in events} == {asked[0].call_id}


async def test_the_tool_runs_in_the_background_once_it_is_approved() -> None:
    approve, asked = answering("once")
    shop = Shop(approver=approve)
    shop.kit.register_tool_function(shop.look, func_name="behind", permission="confirm", async_execution=True)

    response = await shop.kit.call("behind", path="a")
    assert response.metadata is not None
    result = await shop.kit.wait_task(response.metadata["task_id"])

    assert (result.text, len(asked)) == ("saw a", 1)


def test_what_makes_no_sense_is_refused() -> None:
    kit = Toolkit()
    approver: Any = 3

    with pytest.raises(TypeError, match="an approver must be callable"):
        kit.approver = approver
    with pytest.raises(TypeError, match="an approver must be callable"):
        Toolkit(approver=approver)
    with pytest.raises(ValueError, match="approver_timeout"):
        kit.approver_timeout = 0
    assert (kit.approver, kit.approver_timeout) == (None, None)


@pytest.mark.parametrize(
    ("answer", "found"),
    [(None, ", got None"), (3, ", got an object of type int"), ("cancel_all", ', got "cancel_all"')],
)
async def test_an_invalid_answer_is_reported_as_invalid(answer: Any, found: str) -> None:
    shop = Shop()
    metadata = (await shop.kit.call("remove", path="a")).metadata
    assert metadata is not None
    pending = metadata["pending"]

    with pytest.raises(InvalidAnswerError) as raised:
        shop.kit.resume(pending, answer)

    assert found in str(raised.value)
    assert "`no`" in str(raised.value)
    assert "`cancel`" in str(raised.value)
