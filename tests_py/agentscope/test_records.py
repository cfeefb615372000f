"""`tools`, `groups` and `skills` are dictionaries of records, and every edit takes effect at the next use."""

from __future__ import annotations

import copy
import dataclasses
import json
import unittest
from pathlib import Path
from typing import Any

import pytest
from agentscope.tool import Toolkit as AgentScopeToolkit
from agentscope.tool import ToolResponse
from agentscope.tool._types import RegisteredToolFunction, ToolGroup
from pydantic import BaseModel

import toolcrib
from support.agentscope.pair import listed, on_both, responses, text
from toolcrib.compat.agentscope import Toolkit


def t1(a: int = 1) -> ToolResponse:
    """T1.

    Args:
        a (int): A number.
    """
    return ToolResponse(content=[{"type": "text", "text": f"t1 {a}"}])


def t2(b: str = "x") -> ToolResponse:
    """T2."""
    return ToolResponse(content=[{"type": "text", "text": f"t2 {b}"}])


def keep(**kwargs: Any) -> ToolResponse:
    """Keep."""
    return ToolResponse(content=[{"type": "text", "text": json.dumps(kwargs)}])


class Reason(BaseModel):
    """Why."""

    reason: str


def with_tools(make: Any) -> Any:
    toolkit = make()
    toolkit.create_tool_group("g", "About g", notes="Mind the gap.")
    toolkit.register_tool_function(t1)
    toolkit.register_tool_function(t2, group_name="g")
    return toolkit


@on_both
def test_the_mappings_are_dictionaries(make: Any) -> None:
    toolkit = with_tools(make)

    assert isinstance(toolkit.tools, dict)
    assert isinstance(toolkit.groups, dict)
    assert isinstance(toolkit.skills, dict)
    assert list(dict(toolkit.tools)) == list({**toolkit.tools}) == ["t1", "t2"]
    assert toolkit.tools.copy() == dict(toolkit.tools.items())
    assert (toolkit.tools | {"x": 1}).keys() == {"t1", "t2", "x"}
    assert json.loads(json.dumps({n: r.json_schema for n, r in toolkit.tools.items()})).keys() == {"t1", "t2"}
    assert list(reversed(toolkit.tools)) == ["t2", "t1"]
    assert copy.copy(toolkit.groups) == toolkit.groups == {"g": ToolGroup("g", False, "About g", "Mind the gap.")}
    unittest.TestCase().assertDictEqual(toolkit.skills, {})  # noqa: PT009 as AgentScope's users write it


@on_both
async def test_removals_from_the_dictionary_remove_tools(make: Any) -> None:
    toolkit = with_tools(make)

    assert toolkit.tools.pop("t1").original_func is t1
    assert toolkit.tools.pop("t1", None) is None
    with pytest.raises(KeyError):
        toolkit.tools.pop("t1")
    assert "t1" not in listed(toolkit)
    assert (await text(toolkit, "t1")).startswith("FunctionNotFoundError")

    del toolkit.tools["t2"]
    unittest.TestCase().assertDictEqual(toolkit.tools, {})  # noqa: PT009 as AgentScope's users write it
    with pytest.raises(KeyError):
        del toolkit.tools["t2"]
    toolkit.register_tool_function(t1)
    assert toolkit.tools.popitem()[0] == "t1"
    toolkit.register_tool_function(t1)
    toolkit.tools.clear()
    assert toolkit.get_json_schemas() == []
    toolkit.register_tool_function(t1)
    toolkit.tools = {}
    assert toolkit.tools == {}
    assert toolkit.get_json_schemas() == []


@on_both
def test_an_assignment_sets_the_order(make: Any) -> None:
    toolkit = make()
    for tool in (t1, t2, keep):
        toolkit.register_tool_function(tool)

    toolkit.tools = {name: toolkit.tools[name] for name in ("keep", "t1", "t2")}

    assert list(toolkit.tools) == list(listed(toolkit)) == ["keep", "t1", "t2"]


@on_both
async def test_a_held_dictionary_follows_the_toolkit(make: Any) -> None:
    toolkit = with_tools(make)
    tools, groups = toolkit.tools, toolkit.groups

    toolkit.register_tool_function(keep)
    toolkit.remove_tool_function("t1")
    toolkit.remove_tool_groups("g")

    assert list(tools) == list(dict(tools)) == ["keep"]
    assert groups == {}


@on_both
async def test_records_of_another_toolkit_are_shared(make: Any) -> None:
    other, toolkit = with_tools(make), make()

    toolkit.tools["t1"] = other.tools["t1"]
    toolkit.tools.update({"second": other.tools["t1"]})
    assert await text(toolkit, "t1", a=3) == await text(toolkit, "second", a=3) == "t1 3"

    other.tools["t1"].preset_kwargs["a"] = 5
    assert toolkit.tools["t1"] is other.tools["t1"]
    assert await text(toolkit, "t1") == await text(other, "t1") == "t1 5"


@on_both
async def test_the_key_is_the_name_for_calls(make: Any) -> None:
    """As agentscope-runtime adapts its tools."""
    toolkit = make()
    schema = {
        "type": "function",
        "function": {"name": "inner", "description": "D.", "parameters": {"type": "object", "properties": {}}},
    }
    record = RegisteredToolFunction(
        name="inner", group="basic", source="function", original_func=t1, json_schema=schema
    )

    toolkit.tools["outer"] = record

    assert toolkit.tools["outer"] is record
    assert toolkit.tools["outer"].name == "inner"
    assert "outer" in toolkit.tools
    assert "inner" not in toolkit.tools
    assert toolkit.get_json_schemas() == [schema]
    assert await text(toolkit, "outer", a=7) == "t1 7"
    assert (await text(toolkit, "inner")).startswith("FunctionNotFoundError")


@on_both
async def test_fields_of_a_record_can_be_edited(make: Any) -> None:
    toolkit = with_tools(make)
    record = toolkit.tools["t1"]

    record.json_schema["function"]["description"] = "New."
    assert listed(toolkit)["t1"]["description"] == "New."
    record.json_schema["function"]["parameters"]["properties"]["a"]["description"] = "Other."
    assert listed(toolkit)["t1"]["parameters"]["properties"]["a"]["description"] == "Other."

    record.preset_kwargs["a"] = 42
    assert await text(toolkit, "t1") == "t1 42"
    record.preset_kwargs = {}

    record.postprocess_func = lambda call, response: ToolResponse(content=[{"type": "text", "text": "post"}])
    assert await text(toolkit, "t1") == "post"
    record.postprocess_func = None

    record.original_func = t2
    assert await text(toolkit, "t1") == "t2 x"
    record.original_func = t1

    record.extended_model = Reason
    assert "reason" in listed(toolkit)["t1"]["parameters"]["properties"]
    record.extended_model = None
    assert "reason" not in listed(toolkit)["t1"]["parameters"]["properties"]

    record.group = "g"
    assert "t1" not in listed(toolkit)
    assert (await text(toolkit, "t1")).startswith("FunctionInactiveError")
    toolkit.update_tool_groups(["g"], True)
    assert await text(toolkit, "t1", a=2) == "t1 2"

    record.async_execution = True
    assert "is executing asynchronously" in await text(toolkit, "t1")


@on_both
async def test_methods_change_records_that_were_handed_out(make: Any) -> None:
    toolkit = with_tools(make)
    record, group = toolkit.tools["t1"], toolkit.groups["g"]

    toolkit.set_extended_model("t1", Reason)
    assert record.extended_model is Reason
    toolkit.update_tool_groups(["g"], True)
    assert group.active is True
    toolkit.reset_equipped_tools()
    assert group.active is False
    toolkit.load_state_dict({"active_groups": ["g"]})
    assert group.active is True
    assert toolkit.tools["t1"] is record
    assert toolkit.groups["g"] is group


@on_both
async def test_groups_can_be_edited(make: Any) -> None:
    toolkit = with_tools(make)
    toolkit.register_tool_function(toolkit.reset_equipped_tools)
    group = toolkit.groups["g"]

    group.active = True
    assert "t2" in listed(toolkit)
    assert toolkit.state_dict() == {"active_groups": ["g"]}
    group.notes = "New notes."
    assert toolkit.get_activated_notes() == "## About Tool Group 'g'\nNew notes."
    group.description = "New description."
    parameters = listed(toolkit)["reset_equipped_tools"]["parameters"]
    assert parameters["properties"]["g"]["description"] == "New description."

    toolkit.groups["h"] = ToolGroup(name="h", active=True, description="About h")
    toolkit.register_tool_function(keep, group_name="h")
    assert await text(toolkit, "keep") == "{}"
    toolkit.groups["h"].active = False
    assert (await text(toolkit, "keep")).startswith("FunctionInactiveError")


@on_both
async def test_a_group_that_is_popped_leaves_tools_that_cannot_be_listed(make: Any) -> None:
    toolkit = with_tools(make)

    group = toolkit.groups.pop("g")
    assert list(toolkit.tools) == ["t1", "t2"]
    with pytest.raises((KeyError, ValueError)):
        toolkit.get_json_schemas()

    toolkit.groups["g"] = group
    group.active = True
    assert list(listed(toolkit)) == ["t1", "t2"]
    assert await text(toolkit, "t2") == "t2 x"


@on_both
def test_skills_can_be_edited(make: Any, tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("---\nname: s\ndescription: Old.\n---\n")
    toolkit = make(agent_skill_instruction="I", agent_skill_template="{name}: {description} {dir}")
    toolkit.register_agent_skill(str(tmp_path))

    toolkit.skills["s"]["description"] = "New."
    assert toolkit.get_agent_skill_prompt() == f"I\ns: New. {tmp_path}"
    toolkit._agent_skill_instruction = "J"
    toolkit._agent_skill_template = "<{name}>"
    assert toolkit.get_agent_skill_prompt() == "J\n<s>"
    toolkit.skills["t"] = {"name": "t", "description": "T.", "dir": "/t"}
    assert toolkit.get_agent_skill_prompt() == "J\n<s>\n<t>"
    assert toolkit.skills.pop("s")["name"] == "s"
    assert toolkit.get_agent_skill_prompt() == "J\n<t>"
    toolkit.skills = {}
    assert toolkit.get_agent_skill_prompt() is None


@on_both
def test_a_subclass_has_texts_of_its_own(make: Any, tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("---\nname: s\ndescription: D.\n---\n")

    class Own(make):  # type: ignore[misc]
        _DEFAULT_AGENT_SKILL_INSTRUCTION = "Mine."
        _DEFAULT_AGENT_SKILL_TEMPLATE = "({name})"

    toolkit = Own()
    toolkit.register_agent_skill(str(tmp_path))

    assert toolkit.get_agent_skill_prompt() == "Mine.\n(s)"


def test_records_are_equal_to_those_of_agentscope() -> None:
    theirs, ours = with_tools(AgentScopeToolkit), with_tools(Toolkit)

    assert ours.tools == theirs.tools
    assert theirs.tools == ours.tools
    assert ours.groups == theirs.groups
    assert repr(ours.tools["t1"]) == repr(theirs.tools["t1"])
    assert dataclasses.asdict(ours.tools["t1"]) == dataclasses.asdict(theirs.tools["t1"])
    assert isinstance(ours.tools["t1"], RegisteredToolFunction)
    assert type(ours.groups["g"]) is ToolGroup
    assert dataclasses.replace(ours.tools["t1"], name="z").name == "z"


async def test_presets_stay_out_of_reach_however_they_came_in() -> None:
    toolkit = with_tools(Toolkit)

    toolkit.tools["t1"].preset_kwargs["a"] = 42
    toolkit.register_tool_function(keep)
    toolkit.tools["keep"].preset_kwargs = {"secret": 1}

    assert "a" not in listed(toolkit)["t1"]["parameters"]["properties"]
    assert "expected no such argument" in await text(toolkit, "t1", a=1)
    assert "expected no such argument" in await text(toolkit, "keep", secret=2)
    assert await text(toolkit, "keep", other=3) == '{"other": 3, "secret": 1}'


async def test_an_edited_tool_keeps_the_options_that_only_toolcrib_has() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(t1, tags=["x"], timeout=5, run_in="thread", kind="read")

    toolkit.tools["t1"].json_schema["function"]["description"] = "New."
    toolkit.get_json_schemas()

    tool = toolcrib.Toolkit.tools.fget(toolkit)["t1"]  # type: ignore[attr-defined]
    assert (tool.tags, tool.timeout, tool.run_in, tool.kind) == (["x"], 5.0, "thread", "read")
    assert toolkit.tools["t1"].tags == ["x"]


def test_what_is_not_a_record_is_refused() -> None:
    toolkit = Toolkit()

    with pytest.raises(TypeError, match="RegisteredToolFunction"):
        toolkit.tools["x"] = t1
    with pytest.raises(TypeError, match="ToolGroup"):
        toolkit.groups["x"] = "x"


def test_the_strict_toolkit_stays_strict() -> None:
    toolkit = toolcrib.Toolkit(tools=[t1])

    with pytest.raises(TypeError):
        toolkit.tools["x"] = toolkit.tools["t1"]  # type: ignore[index]
    with pytest.raises(AttributeError):
        toolkit.tools["t1"].group = "g"  # type: ignore[misc]


async def test_a_view_sees_edits_too() -> None:
    toolkit = with_tools(Toolkit)
    view = toolkit.view()

    toolkit.tools["t1"].json_schema["function"]["description"] = "New."

    assert view.get_json_schemas()[0]["function"]["description"] == "New."


@on_both
async def test_in_and_len_do_not_hand_out(make: Any) -> None:
    toolkit = with_tools(make)

    assert "t1" in toolkit.tools
    assert len(toolkit.tools) == 2
    assert [name for name in toolkit.tools] == ["t1", "t2"]  # noqa: C416
    assert (await responses(toolkit, "t1"))[0].content[0]["text"] == "t1 1"
    if isinstance(toolkit, Toolkit):
        assert not toolkit.tools._seen
