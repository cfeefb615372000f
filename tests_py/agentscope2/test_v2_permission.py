"""Permission both ways: toolcrib's rules in AgentScope's engine, and the user's answers in toolcrib."""

import json
from typing import Any

import pytest
from agentscope.event import RequireUserConfirmEvent
from agentscope.middleware import MiddlewareBase
from agentscope.permission import (
    PermissionBehavior,
    PermissionContext,
    PermissionDecision,
    PermissionMode,
    PermissionRule,
)
from agentscope.state import AgentState

from support.agentscope2.scene import DESIGNS, Design, Scene, with_crib
from support.agentscope2.scripted import ScriptedModel, ask, say
from toolcrib import Policy, Toolkit
from toolcrib.compat.agentscope2 import tools
from toolcrib.policy import Rule

MODES = list(PermissionMode)


class Shop:
    """A toolkit whose tools record what ran, and what the audit said."""

    def __init__(self, *rules: Rule, **options: Any) -> None:
        self.ran: list[Any] = []
        self.audit: list[dict[str, Any]] = []
        policy = Policy(list(rules)) if rules else None
        self.kit = Toolkit(policy=policy, audit=self.audit.append, run_in="inline", **options)
        self.kit.register_tool_function(self.refund, permission="confirm")
        self.kit.register_tool_function(self.send, kind="edit")
        self.kit.register_tool_function(self.read, kind="read")

    def refund(self, order: int) -> str:
        """Refund an order."""
        self.ran.append(order)
        return f"refunded {order}"

    def send(self, to: str) -> str:
        """Send a message."""
        self.ran.append(to)
        return f"sent to {to}"

    def read(self, path: str) -> str:
        """Read a file."""
        self.ran.append(path)
        return f"text of {path}"

    def scene(
        self, design: Design, *turns: Any, mode: PermissionMode = PermissionMode.DEFAULT, **options: Any
    ) -> Scene:
        return Scene(with_crib(design, self.kit), ScriptedModel(*turns, say("done")), mode=mode, **options)


@pytest.mark.parametrize("design", DESIGNS)
async def test_a_call_that_needs_approval_asks_and_runs_once_after_a_yes(design: Design) -> None:
    shop = Shop()
    scene = shop.scene(design, ask(("refund", {"order": 4})))

    await scene.send()
    assert shop.ran == []
    assert scene.questions() == 1
    await scene.answer(True)

    assert shop.ran == [4]
    assert scene.texts() == ["refunded 4"]
    assert scene.states() == ["success"]
    assert [record["outcome"] for record in shop.audit] == ["pending", "run"]
    assert shop.audit[-1]["answered_by"] == ("user" if design == "B" else "agentscope")


@pytest.mark.parametrize("design", DESIGNS)
async def test_a_no_keeps_it_from_running(design: Design) -> None:
    shop = Shop()
    scene = shop.scene(design, ask(("refund", {"order": 4})))

    await scene.send()
    await scene.answer(False)

    assert shop.ran == []
    assert scene.states() == ["denied"]


@pytest.mark.parametrize("design", DESIGNS)
async def test_arguments_that_the_user_edited_are_those_that_run(design: Design) -> None:
    shop = Shop()
    scene = shop.scene(design, ask(("refund", {"order": 4})))

    await scene.send()
    await scene.answer(True, input=json.dumps({"order": 5}))

    assert shop.ran == [5]
    assert shop.audit[-1]["arguments"] == {"order": 5}


@pytest.mark.parametrize("design", DESIGNS)
async def test_two_calls_at_once_are_asked_about_each(design: Design) -> None:
    shop = Shop()
    scene = shop.scene(design, ask(("refund", {"order": 1}), ("refund", {"order": 2})))

    events = await scene.send()
    assert scene.questions() == 2
    for event in [it for it in events if isinstance(it, RequireUserConfirmEvent)]:
        scene.events.append(event)
        await scene.answer(True)

    assert sorted(shop.ran) == [1, 2]


@pytest.mark.parametrize("design", DESIGNS)
async def test_a_yes_after_a_restart_runs_the_call(design: Design) -> None:
    before = Shop().scene(design, ask(("refund", {"order": 4})))
    await before.send()
    saved = before.agent.state.model_dump_json()
    shop = Shop()
    after = shop.scene(design, state=AgentState.model_validate_json(saved))
    after.events = before.events

    await after.answer(True)

    assert shop.ran == [4]
    assert after.texts() == ["refunded 4"]


@pytest.mark.parametrize("design", DESIGNS)
async def test_it_asks_again_the_second_time_even_if_a_rule_was_accepted(design: Design) -> None:
    shop = Shop()
    scene = shop.scene(design, ask(("refund", {"order": 4})), ask(("refund", {"order": 4})))

    await scene.send()
    (block,) = scene.asked().tool_calls
    assert [json.loads(rule.rule_content) for rule in block.suggested_rules] == [{"order": 4}]
    anything = PermissionRule(
        tool_name="refund", rule_content=None, behavior=PermissionBehavior.ALLOW, source="suggested"
    )
    await scene.answer(True, rules=[anything])

    assert shop.ran == [4]
    assert scene.questions() == 2


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["send", "read"])
async def test_what_a_rule_denies_runs_in_no_mode(design: Design, mode: PermissionMode, name: str) -> None:
    shop = Shop(Rule("deny", tool="*", reason="closed for today"))
    given = {"to": "ann"} if name == "send" else {"path": "a"}
    scene = shop.scene(design, ask((name, given)), mode=mode)

    await scene.send()

    assert shop.ran == []
    assert scene.states() == ["denied"]
    if mode != PermissionMode.EXPLORE:
        assert scene.texts() == [(await shop.kit.call(name, **given)).text]


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", ["send", "read"])
async def test_a_question_of_a_rule_is_not_waved_through(design: Design, name: str) -> None:
    shop = Shop(Rule("ask", tool="*"))
    given = {"to": "ann"} if name == "send" else {"path": "a"}
    scene = shop.scene(design, ask((name, given)), mode=PermissionMode.BYPASS)

    await scene.send()

    assert shop.ran == []
    assert scene.states() == ["denied"]


@pytest.mark.parametrize("design", DESIGNS)
async def test_the_default_of_a_policy_is_not_waved_through_either(design: Design) -> None:
    shop = Shop()
    shop.kit.policy = Policy([], default="ask")
    scene = shop.scene(design, ask(("send", {"to": "ann"})), mode=PermissionMode.BYPASS)

    await scene.send()

    assert shop.ran == []
    assert scene.states() == ["denied"]


@pytest.mark.parametrize("design", DESIGNS)
async def test_a_question_of_the_tool_alone_follows_the_mode(design: Design) -> None:
    shop = Shop()
    scene = shop.scene(design, ask(("refund", {"order": 4})), mode=PermissionMode.BYPASS)

    await scene.send()

    assert shop.ran == [4]
    assert scene.questions() == 0


@pytest.mark.parametrize("design", DESIGNS)
async def test_reading_tools_run_and_others_ask_as_in_agentscope(design: Design) -> None:
    shop = Shop()
    scene = shop.scene(design, ask(("read", {"path": "a"})), ask(("send", {"to": "ann"})))

    await scene.send()

    assert shop.ran == ["a"]
    assert scene.questions() == 1


@pytest.mark.parametrize("design", DESIGNS)
async def test_a_rule_that_allows_needs_no_question(design: Design) -> None:
    shop = Shop(Rule("allow", tool="send"))
    scene = shop.scene(design, ask(("send", {"to": "ann"})))

    await scene.send()

    assert shop.ran == ["ann"]
    assert scene.questions() == 0


@pytest.mark.parametrize("design", DESIGNS)
async def test_the_approver_is_asked_instead_of_the_user_and_only_once(design: Design) -> None:
    asked: list[Any] = []

    def approve(request: Any) -> str:
        asked.append(request.arguments)
        return "once"

    shop = Shop(Rule("ask", tool="*"), approver=approve)
    scene = shop.scene(design, ask(("send", {"to": "ann"})))

    await scene.send()

    assert asked == [{"to": "ann"}]
    assert shop.ran == ["ann"]
    assert scene.questions() == 0


@pytest.mark.parametrize("design", DESIGNS)
async def test_without_an_approver_a_headless_toolkit_denies(design: Design) -> None:
    shop = Shop(headless=True)
    scene = shop.scene(design, ask(("refund", {"order": 4})))

    await scene.send()

    assert scene.states() == ["denied"]
    assert scene.questions() == 0


@pytest.mark.parametrize("design", DESIGNS)
async def test_a_middleware_of_the_agent_may_decide_about_a_question_of_the_tool(design: Design) -> None:
    class Trusting(MiddlewareBase):  # type: ignore[misc]
        async def on_check_permission(self, agent: Any, input_kwargs: Any, next_handler: Any) -> PermissionDecision:
            return PermissionDecision(behavior=PermissionBehavior.ALLOW, message="trusted")

    shop = Shop()
    scene = shop.scene(design, ask(("refund", {"order": 4})), options={"middlewares": [Trusting()]})

    await scene.send()

    assert shop.ran == [4]


async def test_a_middleware_of_the_agent_does_not_answer_a_rule_of_toolcrib() -> None:
    class Trusting(MiddlewareBase):  # type: ignore[misc]
        async def on_check_permission(self, agent: Any, input_kwargs: Any, next_handler: Any) -> PermissionDecision:
            return PermissionDecision(behavior=PermissionBehavior.ALLOW, message="trusted")

    shop = Shop(Rule("ask", tool="refund"))
    scene = shop.scene("B", ask(("refund", {"order": 4})), options={"middlewares": [Trusting()]})

    await scene.send()

    assert shop.ran == []
    assert scene.states() == ["denied"]


async def test_nothing_is_raised_where_agentscope_asks() -> None:
    shop = Shop()
    (refund, _, _) = tools(shop.kit)
    shop.kit.remove_tool_function("refund")

    decision = await refund.check_permissions({"order": 4}, PermissionContext())

    assert decision.behavior == PermissionBehavior.ALLOW
    assert not await refund.check_read_only({"order": 4})


@pytest.mark.parametrize(
    ("content", "fits"),
    [
        (None, True),
        ("", True),
        ("to=ann", True),
        ("to=bob", False),
        ('{"to": "ann"}', True),
        ("{}", False),
        ("x", False),
    ],
)
async def test_rules_of_agentscope_match_arguments(content: str | None, fits: bool) -> None:
    send = tools(Shop().kit)[1]

    assert await send.match_rule(content, {"to": "ann"}) is fits


@pytest.mark.parametrize("design", DESIGNS)
async def test_rules_of_the_user_decide_where_toolcrib_has_none(design: Design) -> None:
    shop = Shop()
    context = PermissionContext(
        deny_rules={
            "send": [
                PermissionRule(tool_name="send", rule_content="to=bob", behavior=PermissionBehavior.DENY, source="user")
            ]
        },
        allow_rules={
            "send": [
                PermissionRule(tool_name="send", rule_content=None, behavior=PermissionBehavior.ALLOW, source="user")
            ]
        },
    )
    scene = shop.scene(
        design,
        ask(("send", {"to": "ann"})),
        ask(("send", {"to": "bob"})),
        state=AgentState(permission_context=context),
    )

    await scene.send()

    assert shop.ran == ["ann"]
    assert scene.states() == ["success", "denied"]
