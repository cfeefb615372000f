"""Rules in the path of a call: what runs, what does not, and that there is no way around them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from support.policy import Shop
from support.streams import block, last, read
from toolcrib import ToolCall, Toolkit, ToolResponse
from toolcrib.errors import DuplicateRuleError, InvalidRuleError, MissingFileError
from toolcrib.policy import Policy, Rule


async def test_what_no_rule_is_against_runs() -> None:
    shop = Shop(policy=Policy())

    response = await shop.kit.call("look", path="a")

    assert (response.ok, shop.ran) == (True, [("look", "a")])


async def test_a_denied_call_is_answered_and_does_not_run() -> None:
    shop = Shop(policy=Policy([Rule("deny", tool="look", reason="the files are not yours")]))

    response = await last(shop.kit.call_tool_function(block("look", path="a")))

    assert (response.code, shop.ran) == ("denied", [])
    assert "'look'" in response.text
    assert "the files are not yours" in response.text


async def test_a_rule_without_a_reason_is_not_named_to_the_model() -> None:
    shop = Shop(policy=Policy([Rule("deny", tool="look", id="secret-rule")]))

    response = await shop.kit.call("look", path="a")

    assert "secret-rule" not in response.text


@pytest.mark.parametrize(
    "rule",
    [
        Rule("deny", tool="lo*"),
        Rule("deny", tool=["x", "look"]),
        Rule("deny", kind="read"),
        Rule("deny", group="basic"),
        Rule("deny", arguments={"path": "a"}),
        Rule("deny", args_pattern='"path":"a"'),
    ],
)
async def test_a_rule_may_be_about_anything_that_is_known_of_a_call(rule: Rule) -> None:
    shop = Shop(policy=Policy([rule]))

    assert (await shop.kit.call("look", path="a")).code == "denied"
    assert shop.ran == []


async def test_a_rule_about_tags_and_groups_knows_those_of_the_tool() -> None:
    shop = Shop(policy=Policy([Rule("deny", tag="danger")]))

    assert (await shop.kit.call("remove", path="a")).code == "denied"
    assert (await shop.kit.call("look", path="a")).ok


@pytest.mark.filterwarnings("ignore:model providers refuse")
async def test_a_name_that_only_looks_alike_is_not_allowed_by_a_rule() -> None:
    kit = Toolkit(run_in="inline", policy=Policy([Rule("allow", tool="look")], default="deny"))

    async def look() -> str:
        return "ran"

    kit.register_tool_function(look, func_name="lооk")  # with two Cyrillic letters

    assert (await kit.call("lооk")).code == "denied"
    assert (await kit.call("look")).code == "unknown_tool"


async def test_conditions_are_about_the_arguments_that_will_run() -> None:
    policy = Policy([Rule("deny", tool="count", arguments={"to": {"gt": 5}}), Rule("allow", tool="count")])
    shop = Shop(policy=policy)

    assert (await shop.kit.call("count", to="9")).code == "denied"
    assert (await shop.kit.call("count", to="5")).ok
    assert shop.ran == [("count", 5)]


async def test_a_default_that_was_not_sent_is_evaluated_too() -> None:
    shop = Shop(policy=Policy([Rule("deny", arguments={"force": False}), Rule("allow", tool="*")]))

    assert (await shop.kit.call("remove", path="a")).code == "denied"
    assert (await shop.kit.call("remove", path="a", force=True)).ok


async def test_invalid_arguments_are_reported_before_rules_are_evaluated() -> None:
    shop = Shop(policy=Policy([Rule("deny", arguments={"to": 1})]))

    assert (await shop.kit.call("count", to="many")).code == "invalid_arguments"


async def test_a_denial_of_every_call_reveals_nothing_about_its_arguments() -> None:
    shop = Shop(policy=Policy([Rule("deny", tool="count")]))

    assert (await shop.kit.call("count", nonsense=1)).code == "denied"


async def test_arguments_that_no_rule_could_see_are_denied() -> None:
    async def take(value: Any) -> str:
        return "ran"

    kit = Toolkit(run_in="inline", arguments="pass", policy=Policy([Rule("deny", arguments={"value": 1})]))
    kit.register_tool_function(take)

    response = await kit.call("take", value=object())

    assert response.code == "denied"
    assert "JSON" in response.text


async def test_a_rule_that_is_added_or_taken_away_holds_from_the_next_call_on() -> None:
    shop = Shop(policy=Policy())
    policy = shop.kit.policy
    assert policy is not None

    codes = [(await shop.kit.call("look", path="a")).code]
    number = policy.add(Rule("deny", tool="look"))
    codes.append((await shop.kit.call("look", path="a")).code)
    policy.remove(number)
    codes.append((await shop.kit.call("look", path="a")).code)
    policy.default = "deny"
    codes.append((await shop.kit.call("look", path="a")).code)
    shop.kit.policy = Policy()
    codes.append((await shop.kit.call("look", path="a")).code)
    shop.kit.policy = None
    codes.append((await shop.kit.call("look", path="a")).code)

    assert codes == [None, "denied", None, "denied", None, None]


async def test_a_rule_about_a_group_follows_the_groups_of_the_tool() -> None:
    shop = Shop(policy=Policy([Rule("deny", group="closed")]))

    first = await shop.kit.call("look", path="a")
    shop.kit.register_group("closed", tools=["look"])
    second = await shop.kit.call("look", path="a")

    assert (first.code, second.code) == (None, "denied")


async def test_a_denied_call_reaches_no_middleware() -> None:
    shop = Shop(policy=Policy([Rule("deny", tool="look")]))
    seen: list[str] = []

    async def watch(kwargs: dict[str, Any], next_handler: Any) -> AsyncIterator[ToolResponse]:
        seen.append(kwargs["tool_call"]["name"])
        async for response in next_handler(**kwargs):
            yield response

    shop.kit.register_middleware(watch)

    assert (await last(shop.kit.call_tool_function(block("look", path="a")))).code == "denied"
    assert (await shop.kit.call("look", path="a")).code == "denied"
    assert (seen, shop.ran) == ([], [])


async def test_rules_evaluate_the_call_that_a_middleware_passes_on() -> None:
    shop = Shop(policy=Policy([Rule("deny", arguments={"path": "/etc/passwd"})]))

    async def rewrite(kwargs: dict[str, Any], next_handler: Any) -> AsyncIterator[ToolResponse]:
        kwargs["tool_call"]["input"]["path"] = "/etc/passwd"
        async for response in next_handler(**kwargs):
            yield response

    shop.kit.register_middleware(rewrite)

    assert (await last(shop.kit.call_tool_function(block("look", path="a")))).code == "denied"
    assert shop.ran == []


async def test_a_middleware_cannot_go_on_to_a_tool_that_is_denied() -> None:
    shop = Shop(policy=Policy([Rule("deny", tool="remove")]))

    async def reroute(kwargs: dict[str, Any], next_handler: Any) -> AsyncIterator[ToolResponse]:
        async for response in next_handler(tool_call=block("remove", path="a")):
            yield response

    shop.kit.register_middleware(reroute)

    assert (await last(shop.kit.call_tool_function(block("look", path="a")))).code == "denied"
    assert shop.ran == []


async def test_no_way_of_calling_bypasses_a_rule() -> None:
    shop = Shop(policy=Policy([Rule("deny", tool=["look", "behind"])]))
    shop.kit.register_tool_function(shop.look, func_name="behind", async_execution=True)
    view = shop.kit.view()

    responses = [
        await shop.kit.call("look", path="a"),
        await last(shop.kit.call_tool_function(block("look", path="a"))),
        await last(shop.kit.call_tool_function({"name": "look", "input": '{"path": "a"}'})),
        await last(shop.kit.tools["look"].call(arguments={"path": "a"})),
        await last(shop.kit.tools["look"].call(arguments={"path": "a"}, stream_print=lambda response: None)),
        await view.call("look", path="a"),
        await last(view.call_tool_function(block("look", path="a"))),
        await shop.kit.call("behind", path="a"),
    ]

    assert [response.code for response in responses] == ["denied"] * len(responses)
    assert shop.ran == []


def test_running_from_synchronous_code_does_not_bypass_a_rule() -> None:
    shop = Shop(policy=Policy([Rule("deny", tool="look")]))

    assert shop.kit.run("look", path="a").code == "denied"
    assert shop.kit.view().run("look", path="a").code == "denied"


async def test_a_dry_run_says_what_would_happen_and_does_nothing() -> None:
    asked: list[Any] = []
    noted: list[Any] = []
    shop = Shop(policy=Policy([Rule("deny", tool="look", arguments={"path": "b"}, id="not-b", reason="no b")]))
    shop.kit.audit = noted.append

    outlooks = [
        shop.kit.check(block("look", path="a")),
        shop.kit.check(block("look", path="b")),
        shop.kit.check(block("remove", path="a")),
        shop.kit.check(block("look")),
        shop.kit.check(block("missing")),
        shop.kit.check({}),
    ]
    shop.kit.approver = asked.append
    outlooks.append(shop.kit.check(block("remove", path="a")))
    shop.kit.headless = True
    outlooks.append(shop.kit.check(block("remove", path="a")))

    would = [outlook["would"] for outlook in outlooks]
    assert would == ["run", "deny", "pending", "refuse", "refuse", "refuse", "ask", "deny"]
    assert (outlooks[1]["rule"], outlooks[1]["reason"]) == ("not-b", "no b")
    assert "path" in outlooks[3]["problems"]
    causes = ["default", "rule", "permission", None, None, None, "permission", "permission"]
    assert [outlook["cause"] for outlook in outlooks] == causes
    denied = "Error: The call of 'look' was denied and did not run: no b"
    assert [outlook["text"] for outlook in outlooks[:3]] == [None, denied, None]
    assert [outlook["code"] for outlook in outlooks[3:6]] == ["invalid_arguments", "unknown_tool", "bad_call"]
    assert (shop.ran, asked, noted) == ([], [], [])


async def test_rules_in_shadow_mode_only_record_what_they_would_do() -> None:
    shop = Shop(policy=Policy([Rule("deny", tool="look", shadow=True, id="later")]))
    assert shop.kit.policy is not None

    response = await shop.kit.call("look", path="a")

    (shadowed,) = shop.kit.policy.shadowed
    assert response.ok
    assert {**shadowed, "time": ""} == {
        "time": "",
        "tool": "look",
        "caller": None,
        "decision": "deny",
        "rule": "later",
        "reason": "rule `later` denies it",
        "instead": "allow",
    }


async def test_a_policy_in_shadow_mode_denies_nothing_but_lets_tools_ask() -> None:
    shop = Shop(policy=Policy(default="deny", shadow=True))
    assert shop.kit.policy is not None

    assert (await shop.kit.call("look", path="a")).ok
    assert (await shop.kit.call("remove", path="a")).code == "pending"
    assert [record["decision"] for record in shop.kit.policy.shadowed] == ["deny", "deny"]


def test_an_explanation_shows_every_rule_and_why() -> None:
    shop = Shop()
    policy = Policy([Rule("deny", tool="remove", id="no"), Rule("allow", kind="read", id="reading")], default="ask")

    explanation = policy.explain(block("look", path="a"), toolkit=shop.kit)

    assert (explanation.decision, explanation.rule) == ("allow", "reading")
    assert [(tried["rule"], tried["outcome"]) for tried in explanation.tried] == [
        ("no", "fails"),
        ("reading", "decides"),
    ]
    assert explanation.tried[0]["condition"] == "tool"
    assert "allow by `reading`" in str(explanation)
    assert policy.explain(block("look", path="a")).decision == "ask"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({"decision": "perhaps"}, "perhaps"),
        ({"decision": "deny", "tol": "x"}, "tol"),
        ({"tool": "x"}, "decision"),
        (Rule("deny", priority=1000), "priority"),
        (Rule("deny", args_pattern="("), "args_pattern"),
    ],
)
def test_a_malformed_rule_is_refused_and_leaves_the_policy_as_it_was(rule: Any, text: str) -> None:
    policy = Policy([Rule("deny", tool="x", id="kept")])

    with pytest.raises(InvalidRuleError, match=text):
        policy.add(rule)

    assert [entry["id"] for entry in policy.rules] == ["kept"]


def test_invalid_rules_are_refused() -> None:
    policy = Policy([Rule("deny", tool="x", id="one")])
    number: Any = 3
    one: Any = Rule("deny", tool="x")

    with pytest.raises(TypeError, match="a rule must be a mapping"):
        policy.add(number)
    with pytest.raises(TypeError):
        Policy(one)
    with pytest.raises(DuplicateRuleError):
        policy.add(Rule("allow", tool="x", id="one"))
    with pytest.raises(ValueError, match="'allow', 'ask' or 'deny'"):
        policy.default = "yes"  # type: ignore[assignment]
    assert (len(policy.rules), policy.default) == (1, "allow")


async def test_rules_come_from_files_and_the_stronger_tier_wins(tmp_path: Path) -> None:
    (tmp_path / "project.toml").write_text('[[rule]]\ntool = "look"\ndecision = "deny"\npriority = 999\n')
    (tmp_path / "user.toml").write_text('[[rule]]\ntool = "look"\ndecision = "allow"\n')
    policy = Policy.from_files(project=tmp_path / "project.toml", user=tmp_path / "user.toml")
    shop = Shop(policy=policy)

    assert policy.problems == []
    assert (await shop.kit.call("look", path="a")).ok


async def test_a_file_that_is_wrong_opens_nothing_and_says_where(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('[[rule]]\ntool = "look"\ndecision = "deney"\n')
    policy = Policy.from_files(default=file, otherwise="allow")
    shop = Shop(policy=policy)

    (problem,) = policy.problems
    assert "rules.toml" in problem
    assert "deney" in problem
    assert (await shop.kit.call("look", path="a")).code == "denied"

    file.write_text('[[rule]]\ntool = "look"\ndecision = "allow"\n')
    assert policy.reload()
    assert (await shop.kit.call("look", path="a")).ok
    file.write_text("nonsense")
    assert not policy.reload()
    assert (await shop.kit.call("look", path="a")).ok


async def test_a_missing_file_is_refused_unless_it_may_be_missing(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"none\.toml"):
        Policy.from_files(user=tmp_path / "none.toml")
    opened = Shop(policy=Policy.from_files(user=tmp_path / "none.toml", optional=True))

    assert (await opened.kit.call("look", path="a")).ok


async def test_one_policy_serves_two_toolkits() -> None:
    policy = Policy()
    first, second = Shop(policy=policy), Shop(policy=policy)

    policy.add(Rule("deny", tool="look"))

    assert [(await shop.kit.call("look", path="a")).code for shop in (first, second)] == ["denied", "denied"]


async def test_a_model_cannot_name_a_preset_to_get_past_a_rule() -> None:
    ran: list[str] = []

    async def send(to: str, sender: str) -> str:
        ran.append(sender)
        return "sent"

    policy = Policy([Rule("deny", arguments={"sender": "root"})])
    kit = Toolkit(run_in="inline", policy=policy)
    kit.register_tool_function(send, preset_kwargs={"sender": "robot"})

    response = await kit.call("send", to="a", sender="root")

    assert (response.code, ran) == ("invalid_arguments", [])


async def test_a_stream_that_is_denied_has_one_response() -> None:
    shop = Shop(policy=Policy([Rule("deny", tool="count")]))

    responses = await read(shop.kit.call_tool_function(block("count", to=3)))

    assert [response.code for response in responses] == ["denied"]


def test_what_is_explained_may_come_in_any_form_and_hides_secrets() -> None:
    shop = Shop()
    policy = Policy([Rule("deny", tool="login", arguments={"password": "hunter3"})])
    arguments = {"user": "ada", "password": "hunter2"}
    forms: list[Any] = [
        block("login", **arguments),
        {"type": "function", "function": {"name": "login", "arguments": json.dumps(arguments)}},
        ToolCall.read(block("login", **arguments)),
        json.dumps(block("login", **arguments)),
    ]

    explanations = [policy.explain(form, toolkit=shop.kit) for form in forms]

    for explanation in explanations:
        assert explanation.decision == "ask"
        assert "***" in str(explanation)
        assert "hunter2" not in str(explanation)
    with pytest.raises(ValueError, match="cannot be read as a call"):
        policy.explain({"nothing": 1})
