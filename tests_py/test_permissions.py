"""Reach of a model: presets and hidden parameters never, and tools only while their group is on."""

import functools
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeAlias

import pytest
from pydantic import Field

from toolcrib import Toolkit, ToolResponse

Mode: TypeAlias = Literal["coerce", "check", "pass"]
MODES: tuple[Mode, ...] = ("coerce", "check", "pass")

SECRET = "correct horse"


def spend(amount: int, account: str = "public", *, token: str = "none") -> dict[str, Any]:
    """Spend money."""
    return {"amount": amount, "account": account, "token": token}


def spend_openly(amount: int, account: str = "public", **more: Any) -> dict[str, Any]:
    """Spend money, with anything else noted."""
    return {"amount": amount, "account": account, "more": more}


def open_schema(**properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "additionalProperties": True}
    return {"type": "function", "function": {"name": "any", "parameters": parameters}}


async def by_block(toolkit: Toolkit, name: str, arguments: dict[str, Any]) -> ToolResponse:
    block = {"type": "tool_use", "id": "1", "name": name, "input": arguments}
    return [response async for response in toolkit.call_tool_function(block)][-1]


async def by_text(toolkit: Toolkit, name: str, arguments: dict[str, Any]) -> ToolResponse:
    block = {"type": "tool_use", "id": "1", "name": name, "input": json.dumps(arguments)}
    return [response async for response in toolkit.call_tool_function(block)][-1]


async def by_name(toolkit: Toolkit, name: str, arguments: dict[str, Any]) -> ToolResponse:
    return await toolkit.call(name, **arguments)


Way: TypeAlias = Callable[[Toolkit, str, dict[str, Any]], Any]
WAYS: tuple[Way, ...] = (by_block, by_text, by_name)


@pytest.fixture(params=MODES)
def toolkit(request: pytest.FixtureRequest) -> Toolkit:
    toolkit = Toolkit(arguments=request.param)
    toolkit.register_tool_function(spend, preset_kwargs={"account": SECRET, "token": SECRET})
    toolkit.register_tool_function(
        spend_openly, preset_kwargs={"account": SECRET, "purpose": SECRET}, include_var_keyword=True
    )
    return toolkit


def test_presets_are_in_no_schema_that_a_model_is_shown(toolkit: Toolkit) -> None:
    shown = json.dumps(toolkit.get_json_schemas()) + toolkit.get_json_schemas_bytes().decode()

    assert [word for word in (SECRET, "account", "token", "purpose") if word in shown] == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["account", "token"])
async def test_a_preset_that_is_named_is_refused(toolkit: Toolkit, way: Way, name: str) -> None:
    response = await way(toolkit, "spend", {"amount": 1, name: "mine"})

    assert response.code == "invalid_arguments"
    assert response.text.startswith("Error: Invalid arguments for tool 'spend':\n- ")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["account", "purpose", "amount"])
async def test_a_preset_that_is_named_inside_var_keyword_is_refused(toolkit: Toolkit, way: Way, name: str) -> None:
    response = await way(toolkit, "spend_openly", {"amount": 1, "more": {"colour": "red", name: "mine"}})

    assert response.code == "invalid_arguments"
    assert SECRET not in response.text


@pytest.mark.parametrize("way", WAYS)
async def test_presets_reach_the_tool_and_what_is_sent_beside_them_too(toolkit: Toolkit, way: Way) -> None:
    short = await way(toolkit, "spend", {"amount": 1})
    open_ = await way(toolkit, "spend_openly", {"amount": 1, "more": {"colour": "red"}})

    assert short.metadata == {"value": {"amount": 1, "account": SECRET, "token": SECRET}}
    more = {"colour": "red", "purpose": SECRET}
    assert open_.metadata == {"value": {"amount": 1, "account": SECRET, "more": more}}


@pytest.mark.parametrize("name", ["account", "acount", "Account", "accounts", "tokens", "purpose"])
@pytest.mark.parametrize("tool", ["spend", "spend_openly"])
async def test_a_refusal_does_not_help_to_guess(
    toolkit: Toolkit, request: pytest.FixtureRequest, tool: str, name: str
) -> None:
    response = await toolkit.call(tool, amount=1, **{name: "mine"})

    shown = response.text.replace(name, "")
    is_passed_on = request.node.callspec.params["toolkit"] == "pass" and tool == "spend_openly"
    if is_passed_on and name not in ("account", "purpose"):
        more = {name: "mine", "purpose": SECRET}
        assert response.metadata == {"value": {"amount": 1, "account": SECRET, "more": more}}
    else:
        assert not response.ok
        assert [word for word in (SECRET, "account", "token", "purpose") if word in shown] == []


LOOK_ALIKES = ["аccount", "account\u200b", "ａccount", "ACCOUNT", "account ", "account\u0301", "\ufeffaccount"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", LOOK_ALIKES)
async def test_a_name_that_looks_like_a_preset_is_another_name(toolkit: Toolkit, way: Way, name: str) -> None:
    refused = await way(toolkit, "spend", {"amount": 1, name: "mine"})
    noted = await way(toolkit, "spend_openly", {"amount": 1, "more": {name: "mine"}})

    assert not refused.ok
    more = {name: "mine", "purpose": SECRET}
    assert noted.metadata == {"value": {"amount": 1, "account": SECRET, "more": more}}


@pytest.mark.parametrize(
    "text",
    [
        '{"amount": 1, "\\u0061ccount": "mine"}',
        '{"amount": 1, "token": null}',
        '  {"amount": 1, "account": {"account": "mine"}}\n',
    ],
)
async def test_json_text_reaches_no_preset(toolkit: Toolkit, text: str) -> None:
    block = {"type": "tool_use", "id": "1", "name": "spend", "input": text}

    responses = [response async for response in toolkit.call_tool_function(block)]

    assert [response.code for response in responses] == ["invalid_arguments"]


@pytest.mark.parametrize(
    "text",
    ['{"amount": 1, "account": "mine", "account": "mine"}', '{"account": "mine", "amount": 1, "amount": 2}'],
)
async def test_json_text_with_a_key_twice_reaches_no_tool(toolkit: Toolkit, text: str) -> None:
    block = {"type": "tool_use", "id": "1", "name": "spend", "input": text}

    responses = [response async for response in toolkit.call_tool_function(block)]

    assert [response.code for response in responses] == ["bad_call"]


class Sly(str):
    """Text that claims to be another one."""

    claim: str

    def __new__(cls, text: str, claim: str) -> "Sly":
        sly = super().__new__(cls, text)
        sly.claim = claim
        return sly

    def __eq__(self, other: object) -> bool:
        return other == self.claim or super().__eq__(other)

    def __hash__(self) -> int:
        return hash(self.claim)


class SlyWithItsOwnHash(Sly):
    def __eq__(self, other: object) -> bool:
        return super().__eq__(other)

    def __hash__(self) -> int:
        return str.__hash__(self)


@pytest.mark.parametrize("sly", [Sly, SlyWithItsOwnHash])
@pytest.mark.parametrize("claim", ["account", "token", "purpose"])
@pytest.mark.parametrize("tool", ["spend", "spend_openly"])
async def test_text_of_another_class_reaches_no_preset(toolkit: Toolkit, sly: type[Sly], claim: str, tool: str) -> None:
    inputs: list[dict[str, Any]] = [
        {"amount": 1, sly("harmless", claim): "mine"},
        {"amount": 1, sly(claim, "harmless"): "mine"},
        {"amount": 1, "more": {sly("harmless", claim): "mine"}},
        {"amount": 1, "more": {sly(claim, "harmless"): "mine"}},
    ]

    for arguments in inputs:
        response = await by_block(toolkit, tool, arguments)
        reached = (response.metadata or {}).get("value", {})
        assert reached.get("account", SECRET) == SECRET
        assert reached.get("token", SECRET) == SECRET
        assert reached.get("more", {}).get("purpose", SECRET) == SECRET


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("key", [str, lambda name: Sly("x", name), lambda name: SlyWithItsOwnHash("x", name)])
async def test_an_open_schema_opens_no_preset_and_no_hidden_parameter(mode: Mode, key: Callable[[str], str]) -> None:
    toolkit = Toolkit(arguments=mode)
    toolkit.register_tool_function(
        spend_openly, preset_kwargs={"purpose": SECRET}, json_schema=open_schema(amount={"type": "integer"})
    )

    for name in ("account", "purpose"):
        response = await by_block(toolkit, "spend_openly", {"amount": 1, key(name): "mine"})
        reached = (response.metadata or {}).get("value", {"account": "public", "more": {"purpose": SECRET}})
        # Arguments that are passed on as they are reach every parameter that is not preset.
        is_passed_on = mode == "pass" and key is str and name == "account"
        assert (reached["account"], reached["more"]["purpose"]) == ("mine" if is_passed_on else "public", SECRET)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("run_in", ["inline", "thread"])
@pytest.mark.parametrize("sly", [Sly, SlyWithItsOwnHash])
async def test_text_of_another_class_reaches_no_parameter_that_the_schema_hides(
    mode: Mode, run_in: Literal["inline", "thread"], sly: type[Sly]
) -> None:
    toolkit = Toolkit(arguments=mode, run_in=run_in)
    schema = open_schema(amount={"type": "integer"})
    del schema["function"]["parameters"]["additionalProperties"]
    toolkit.register_tool_function(spend, json_schema=schema)

    response = await by_block(toolkit, "spend", {"amount": 1, sly("harmless", "account"): "mine"})

    assert not response.ok


@pytest.mark.parametrize("mode", MODES)
async def test_an_alias_opens_no_preset(mode: Mode) -> None:
    toolkit, reached = Toolkit(arguments=mode), []

    @toolkit.tool(preset_kwargs={"account": SECRET})
    async def transfer(amount: Annotated[int, Field(alias="account")] = 0, account: str = "public") -> None:
        reached.append(account)

    for arguments in ({"account": 7}, {"amount": 7}, {"amount": 7, "account": 7}):
        await toolkit.call("transfer", **arguments)

    assert set(reached) <= {SECRET}
    assert "account" not in toolkit.tools["transfer"].json_schema["function"]["parameters"]["properties"]


@pytest.mark.parametrize("mode", MODES)
async def test_what_a_partial_has_bound_is_as_safe_as_a_preset(mode: Mode) -> None:
    toolkit = Toolkit(arguments=mode)
    toolkit.register_tool_function(functools.partial(spend, account=SECRET))

    response = await toolkit.call("spend", amount=1, account="mine")

    assert response.code == "invalid_arguments"


@pytest.mark.parametrize("mode", MODES)
async def test_names_of_var_parameters_that_are_not_shown_are_no_parameters(mode: Mode) -> None:
    def collect(*rest: Any, **more: Any) -> list[Any]:
        return [rest, more]

    toolkit = Toolkit(arguments=mode)
    toolkit.register_tool_function(collect)

    for arguments in ({"rest": [1]}, {"more": {"a": 1}}, {"anything": 1}):
        response = await toolkit.call("collect", **arguments)
        if mode == "pass":
            assert response.metadata == {"value": [(), arguments]}
        else:
            assert response.code == "invalid_arguments"
    assert (await toolkit.call("collect")).metadata == {"value": [(), {}]}
