"""`toolcrib.compat.gemini`: the policy engine, the message bus and confirmations; silence is never consent."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from typing import Any

import pytest

from support.gemini import CASES, ReadFileTool, ShellTool
from toolcrib.compat.gemini import (
    CancelSignal,
    MessageBus,
    MessageBusType,
    PolicyDecision,
    PolicyEngine,
    PolicyRule,
    ToolConfirmationDetails,
    ToolConfirmationOutcome,
    ToolConfirmationRequest,
    ToolConfirmationResponse,
    ToolExecutionSuccess,
    UpdatePolicy,
    create_policy_updater,
    tools,
)
from toolcrib.errors import InvalidRuleError, ToolDeniedError

REQUEST = MessageBusType.TOOL_CONFIRMATION_REQUEST
RESPONSE = MessageBusType.TOOL_CONFIRMATION_RESPONSE


def bus_of(decision: str = "ask_user", **config: Any) -> MessageBus:
    return MessageBus(PolicyEngine({"defaultDecision": decision, **config}))


def recorded(bus: MessageBus, *types: MessageBusType) -> list[Any]:
    seen: list[Any] = []
    for type in types:
        bus.subscribe(type, seen.append)
    return seen


@pytest.mark.parametrize("case", CASES["policy"], ids=lambda case: case["name"])
def test_calls_are_decided_as_in_the_cases(case: dict[str, Any]) -> None:
    engine = PolicyEngine(case["config"])

    for check in case["checks"]:
        decided = engine.check({"name": check["tool"], "args": check["args"]}, check["server"])

        assert decided.decision.value == check["decision"], check
        assert (decided.rule.priority if decided.rule else None) == check["matched_priority"], check


@pytest.mark.parametrize("case", CASES["stable"], ids=lambda case: case["result"])
def test_a_pattern_sees_the_arguments_as_in_the_cases(case: dict[str, Any]) -> None:
    if case["input_note"].startswith("object with a self reference"):
        args: Any = {"a": 1}
        args["self"] = args
    else:
        args = json.loads(case["input_note"])
    if not isinstance(args, dict):
        args, text = {"list": args}, f'{{"list":{case["result"]}}}'
    else:
        text = case["result"]
    engine = PolicyEngine({"rules": [{"decision": "allow", "argsPattern": f"^{re.escape(text)}$"}]})

    decided = engine.check({"name": "t", "args": args})

    assert decided.decision is PolicyDecision.ALLOW


@pytest.mark.parametrize(("number", "text"), [(2.0, "2"), (-0.0, "0"), (2.5, "2.5"), (2**53 * 1.0, str(2**53))])
def test_a_pattern_sees_numbers_as_javascript_writes_them(number: float, text: str) -> None:
    engine = PolicyEngine({"rules": [{"decision": "deny", "argsPattern": rf'"n":{re.escape(text)}\}}$'}]})

    decided = engine.check({"name": "t", "args": {"n": number}})

    assert decided.decision is PolicyDecision.DENY


def test_rules_of_equal_priority_keep_their_order() -> None:
    engine = PolicyEngine({"rules": [{"toolName": "a", "decision": "allow"}, {"toolName": "a", "decision": "deny"}]})

    engine.add_rule(PolicyRule("ask_user", "a"))

    assert engine.check({"name": "a"}).decision is PolicyDecision.ALLOW
    assert [rule.decision for rule in engine.get_rules()] == [
        PolicyDecision.ALLOW,
        PolicyDecision.DENY,
        PolicyDecision.ASK_USER,
    ]


def test_a_rule_is_added_by_its_priority_and_removed_by_its_tool() -> None:
    engine = PolicyEngine({"rules": [{"toolName": "a", "decision": "deny", "priority": 2.5}]})

    engine.add_rule({"tool_name": "a", "decision": "allow", "priority": 2.95})

    assert engine.check({"name": "a"}).decision is PolicyDecision.ALLOW
    engine.remove_rules_for_tool("a")
    assert engine.get_rules() == []
    assert engine.check({"name": "a"}) == (PolicyDecision.ASK_USER, None)


def test_a_trailing_star_is_a_wildcard() -> None:
    engine = PolicyEngine({"rules": [{"toolName": "discovered_*", "decision": "deny"}]})

    assert engine.check({"name": "discovered_x"}).decision is PolicyDecision.DENY
    assert engine.check({"name": "other"}).decision is PolicyDecision.ASK_USER


@pytest.mark.parametrize("args", [{"x": object()}, {1: 2}, [[[]]] * 3, "text", {"x": float("nan")}])
@pytest.mark.parametrize(("decision", "expected"), [("allow", "ask_user"), ("deny", "deny")])
def test_arguments_that_no_pattern_can_see_are_not_allowed_by_one(args: Any, decision: str, expected: str) -> None:
    engine = PolicyEngine({"rules": [{"decision": decision, "argsPattern": "."}]})

    assert engine.check({"name": "t", "args": args}).decision.value == expected


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({"rules": [{"decision": "maybe"}]}, ValueError),
        ({"rules": [{"decision": "allow", "argsPattern": "("}]}, InvalidRuleError),
        ({"rules": [{"decision": "allow", "tool": "a"}]}, TypeError),
        ({"rules": [{"decision": "allow", "priority": float("nan")}]}, ValueError),
        ({"rules": ["allow"]}, TypeError),
        ({"defaultDecision": "yes"}, ValueError),
        ({"default": "allow"}, TypeError),
    ],
)
def test_an_invalid_configuration_is_refused(config: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        PolicyEngine(config)


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        ("allow", [(RESPONSE, True, False)]),
        ("deny", [(MessageBusType.TOOL_POLICY_REJECTION, None, None), (RESPONSE, False, False)]),
        ("ask_user", [(RESPONSE, False, True)]),
    ],
)
def test_a_request_is_decided_by_the_policy_first(decision: str, expected: list[Any]) -> None:
    bus = bus_of(decision)
    seen = recorded(bus, RESPONSE, MessageBusType.TOOL_POLICY_REJECTION)

    bus.publish({"type": "tool-confirmation-request", "toolCall": {"name": "t"}, "correlationId": "1"})

    shown = [(m.type, getattr(m, "confirmed", None), getattr(m, "requires_user_confirmation", None)) for m in seen]
    assert shown == expected


def test_a_request_that_the_policy_asks_about_reaches_the_subscribers() -> None:
    bus = bus_of()
    requests = recorded(bus, REQUEST)
    responses = recorded(bus, RESPONSE)

    bus.publish(ToolConfirmationRequest({"name": "t", "args": {}}, "1", "srv"))

    assert requests == [ToolConfirmationRequest({"name": "t", "args": {}}, "1", "srv")]
    assert responses == []


@pytest.mark.parametrize(
    "message",
    [
        None,
        {},
        {"type": "no such type"},
        {"type": "error"},
        {"toolCall": {}, "correlationId": "1"},
        {"type": "tool-confirmation-request", "toolCall": {"name": "t"}},
        {"type": "tool-confirmation-request", "toolCall": {"name": "t"}, "correlationId": ""},
        {"type": "tool-confirmation-request", "toolCall": {"name": "t"}, "correlationId": 3},
        {"type": "tool-confirmation-response", "confirmed": True},
        {"type": "update-policy", "tool": "x"},
        ToolConfirmationRequest({"name": "t"}, ""),
    ],
)
def test_an_invalid_message_is_an_error_event_and_nothing_else(message: Any) -> None:
    bus = bus_of("allow")
    problems = recorded(bus, MessageBusType.ERROR)
    others = recorded(bus, *(set(MessageBusType) - {MessageBusType.ERROR}))

    bus.publish(message)

    assert len(problems) == 1
    assert str(problems[0]).startswith("invalid message: ")
    assert others == []


def test_other_messages_are_passed_on_and_a_subscription_can_be_undone() -> None:
    bus = bus_of()
    seen = recorded(bus, MessageBusType.TOOL_EXECUTION_SUCCESS)
    message = ToolExecutionSuccess({"name": "t"}, "done")

    bus.publish(message)
    bus.unsubscribe("tool-execution-success", seen.append)
    bus.publish(message)
    bus.unsubscribe("tool-execution-success", print)

    assert seen == [message]


def test_a_subscriber_that_fails_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    bus = bus_of("allow")

    def fail(message: object) -> None:
        raise RuntimeError("broken")

    bus.subscribe(RESPONSE, fail)
    seen = recorded(bus, RESPONSE)

    bus.publish(ToolConfirmationRequest({"name": "t"}, "1"))

    assert len(seen) == 1
    assert "broken" in caplog.text


async def test_a_subscriber_may_be_a_coroutine_function() -> None:
    bus = bus_of()

    async def answer(request: ToolConfirmationRequest) -> None:
        await asyncio.sleep(0)
        bus.publish(ToolConfirmationResponse("another", True))
        bus.publish(ToolConfirmationResponse(request.correlation_id, False))
        bus.publish(ToolConfirmationResponse(request.correlation_id, True))

    bus.subscribe(REQUEST, answer)

    response = await bus.request(ToolConfirmationRequest({"name": "t"}, "1"))

    assert response == ToolConfirmationResponse("1", False)


async def test_a_request_may_be_answered_in_another_thread() -> None:
    bus = bus_of()

    def answer(request: ToolConfirmationRequest) -> None:
        response = ToolConfirmationResponse(request.correlation_id, True)
        threading.Thread(target=bus.publish, args=[response]).start()

    bus.subscribe(REQUEST, answer)

    response = await bus.request(ToolConfirmationRequest({"name": "t"}, "1"))

    assert response == ToolConfirmationResponse("1", True)


async def test_a_request_without_an_answer_ends() -> None:
    bus = bus_of()
    bus.subscribe(REQUEST, lambda request: None)

    assert await bus.request(ToolConfirmationRequest({"name": "t"}), timeout=0.01) is None


async def test_without_a_bus_the_tool_decides() -> None:
    assert await ReadFileTool().build({"path": "a"}).should_confirm_execute() is False
    details = await ShellTool().build({"path": "a"}).should_confirm_execute()
    assert isinstance(details, ToolConfirmationDetails)
    assert (details.type, details.fields) == ("exec", {"command": "a"})


async def test_a_call_that_the_policy_allows_goes_ahead() -> None:
    assert await ShellTool(message_bus=bus_of("allow")).build({"path": "a"}).should_confirm_execute() is False


@pytest.mark.parametrize("config", [{"decision": "deny"}, {"decision": "ask_user", "nonInteractive": True}])
async def test_a_call_that_the_policy_denies_raises(config: dict[str, Any]) -> None:
    invocation = ReadFileTool(message_bus=bus_of(**config)).build({"path": "a"})

    with pytest.raises(ToolDeniedError, match='Tool execution for "Read File" denied by policy'):
        await invocation.should_confirm_execute()


async def test_a_request_without_subscribers_needs_the_user_at_once() -> None:
    details = await ReadFileTool(message_bus=bus_of()).build({"path": "a"}).should_confirm_execute()

    assert isinstance(details, ToolConfirmationDetails)
    assert (details.type, details.title) == ("info", "Confirm: Read File")
    assert details.fields == {"prompt": "Read File with { path: a }"}


async def test_silence_is_not_consent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "CONFIRMATION_TIMEOUT", 0.01)
    bus = bus_of()
    bus.subscribe(REQUEST, lambda request: None)

    details = await ReadFileTool(message_bus=bus).build({"path": "a"}).should_confirm_execute()

    assert isinstance(details, ToolConfirmationDetails)


@pytest.mark.parametrize("confirmed", ["yes", 1, None])
async def test_only_true_confirms(confirmed: Any) -> None:
    bus = bus_of()
    bus.subscribe(REQUEST, lambda request: bus.publish(ToolConfirmationResponse(request.correlation_id, confirmed)))

    with pytest.raises(ToolDeniedError):
        await ReadFileTool(message_bus=bus).build({"path": "a"}).should_confirm_execute()


@pytest.mark.parametrize(
    ("answer", "needs_user"),
    [({"confirmed": True}, False), ({"confirmed": False, "requiresUserConfirmation": True}, True)],
)
async def test_a_subscriber_confirms_or_hands_over_to_the_user(answer: dict[str, bool], needs_user: bool) -> None:
    bus = bus_of()

    def respond(request: ToolConfirmationRequest) -> None:
        bus.publish({"type": RESPONSE.value, "correlationId": request.correlation_id, **answer})

    bus.subscribe(REQUEST, respond)

    decided = await ReadFileTool(message_bus=bus).build({"path": "a"}).should_confirm_execute()

    assert isinstance(decided, ToolConfirmationDetails) is needs_user


async def test_the_policy_sees_the_name_of_the_tool_and_not_of_the_class() -> None:
    bus = bus_of("allow", rules=[{"toolName": "first", "decision": "deny"}])

    with pytest.raises(ToolDeniedError):
        await ReadFileTool("first", bus).build({"path": "a"}).should_confirm_execute()
    assert await ReadFileTool("second", bus).build({"path": "a"}).should_confirm_execute() is False


async def test_a_cancelled_confirmation_ends() -> None:
    bus, signal = bus_of(), CancelSignal()
    bus.subscribe(REQUEST, lambda request: signal.cancel())

    with pytest.raises(asyncio.CancelledError, match="Tool confirmation aborted"):
        await ReadFileTool(message_bus=bus).build({"path": "a"}).should_confirm_execute(signal)


async def test_a_signal_forgets_a_confirmation_that_is_over() -> None:
    bus, signal = bus_of("allow"), CancelSignal()

    for _ in range(3):
        assert await ReadFileTool(message_bus=bus).build({"path": "a"}).should_confirm_execute(signal) is False

    assert signal._callbacks == []


async def test_a_cancelled_call_is_not_confirmed() -> None:
    signal = CancelSignal()
    signal.cancel()

    with pytest.raises(asyncio.CancelledError, match="Tool confirmation aborted"):
        await ReadFileTool(message_bus=bus_of("allow")).build({"path": "a"}).should_confirm_execute(signal)


async def test_the_answer_always_changes_the_policy() -> None:
    engine = PolicyEngine()
    bus = MessageBus(engine)
    create_policy_updater(engine, bus)
    invocation = ReadFileTool(message_bus=bus).build({"path": "a"})
    details = await invocation.should_confirm_execute()
    assert isinstance(details, ToolConfirmationDetails)
    assert details.on_confirm is not None

    details.on_confirm(ToolConfirmationOutcome.PROCEED_ONCE, None)
    assert engine.get_rules() == []
    details.on_confirm(ToolConfirmationOutcome.PROCEED_ALWAYS, None)

    assert engine.get_rules() == [PolicyRule("allow", "read_file", priority=2.95)]
    assert await invocation.should_confirm_execute() is False


def test_an_update_does_not_overrule_a_denial_of_higher_priority() -> None:
    engine = PolicyEngine({"rules": [{"toolName": "t", "decision": "deny", "priority": 3}]})
    bus = MessageBus(engine)
    create_policy_updater(engine, bus)

    bus.publish(UpdatePolicy("t"))

    assert engine.check({"name": "t"}).decision is PolicyDecision.DENY
