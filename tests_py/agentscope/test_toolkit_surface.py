"""The toolkit itself, without an agent: each use gives what AgentScope's gives, or an exception its users catch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from agentscope.module import StateModule
from agentscope.tool import Toolkit as AgentScopeToolkit
from pydantic import BaseModel

from support.agentscope.tools import Counter, add, count, greet, spell
from toolcrib.compat.agentscope import Toolkit

Use = Callable[[Any], Any]


class Extra(BaseModel):
    """More to say."""

    reason: str
    weight: int = 3


class Clash(BaseModel):
    """Says what the tool says already."""

    a: int


def schema(**function: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": "x", "parameters": {"type": "object", "properties": {}}, **function},
    }


def grouped(toolkit: Any) -> Any:
    toolkit.create_tool_group("words", "About words", notes="Slowly.")
    toolkit.create_tool_group("sums", "About sums", active=True, notes="Exactly.")
    toolkit.create_tool_group("plain", "No notes", active=True)
    toolkit.register_tool_function(spell, group_name="words")
    toolkit.register_tool_function(add, group_name="sums")
    toolkit.register_tool_function(greet)
    return toolkit


def then(*uses: Use) -> Use:
    def use(toolkit: Any) -> Any:
        return [each(toolkit) for each in uses]

    return use


def registered(tool: Any, **options: Any) -> Use:
    def use(toolkit: Any) -> Any:
        toolkit.register_tool_function(tool, **options)
        return toolkit.get_json_schemas(), list(toolkit.tools), [tool.original_name for tool in toolkit.tools.values()]

    return use


def extended(name: str, model: Any) -> Use:
    def use(toolkit: Any) -> Any:
        toolkit.register_tool_function(add)
        toolkit.register_tool_function(greet)
        toolkit.set_extended_model(name, model)
        return toolkit.get_json_schemas(), toolkit.tools[name].extended_json_schema

    return use


USES: dict[str, Use] = {
    "a function": registered(add),
    "a generator": registered(count),
    "a method": registered(Counter().increase),
    "a partial": registered(partial(greet, "Ada")),
    "presets": registered(add, preset_kwargs={"a": 1}),
    "all preset": registered(add, preset_kwargs={"a": 1, "b": 2}),
    "a name and a description": registered(add, func_name="plus", func_description="Sum"),
    "an empty description": registered(add, func_description=""),
    "a schema": registered(add, json_schema=schema(description="Supplied")),
    "an empty schema": registered(add, json_schema={}),
    "no such group": registered(add, group_name="nowhere"),
    "twice": then(registered(add), registered(add)),
    "twice, skipped": then(registered(add), registered(greet, func_name="add", namesake_strategy="skip")),
    "twice, replaced": then(registered(add), registered(greet, func_name="add", namesake_strategy="override")),
    "twice, no such strategy": then(registered(add), registered(add, namesake_strategy="?")),
    "once, no such strategy": registered(add, namesake_strategy="?"),
    "a schema that is a list": registered(add, json_schema=[1]),
    "a schema of another type": registered(add, json_schema={"type": "object", "function": {}}),
    "a schema without function": registered(add, json_schema={"type": "function"}),
    "a function that is no object": registered(add, json_schema={"type": "function", "function": "f"}),
    "a schema without parameters": registered(add, json_schema={"type": "function", "function": {"name": "f"}}),
    "remove": then(registered(add), lambda kit: kit.remove_tool_function("add"), lambda kit: list(kit.tools)),
    "remove nothing": lambda kit: kit.remove_tool_function("add"),
    "remove nothing, strictly": lambda kit: kit.remove_tool_function("add", allow_not_exist=False),
    "basic again": lambda kit: kit.create_tool_group("basic", "?"),
    "a group twice": then(lambda kit: kit.create_tool_group("g", "?"), lambda kit: kit.create_tool_group("g", "?")),
    "groups": lambda kit: grouped(kit).get_json_schemas(),
    "groups by name": lambda kit: [(name, g.active, g.description, g.notes) for name, g in grouped(kit).groups.items()],
    "notes": lambda kit: grouped(kit).get_activated_notes(),
    "no notes": lambda kit: kit.get_activated_notes(),
    "switch on": lambda kit: (grouped(kit).update_tool_groups(["words", "?"], True), kit.get_json_schemas()),
    "switch basic": lambda kit: (grouped(kit).update_tool_groups(["basic"], False), kit.get_json_schemas()),
    "remove a group": lambda kit: (grouped(kit).remove_tool_groups("sums"), list(kit.tools), list(kit.groups)),
    "remove groups": lambda kit: (grouped(kit).remove_tool_groups(["sums", "?"]), list(kit.tools), list(kit.groups)),
    "remove basic": lambda kit: kit.remove_tool_groups(["basic"]),
    "remove no list": lambda kit: kit.remove_tool_groups(7),
    "remove no names": lambda kit: kit.remove_tool_groups([1]),
    "clear": lambda kit: (grouped(kit).clear(), list(kit.tools), list(kit.groups)),
    "extend": extended("add", Extra),
    "extend, in the way": extended("add", Clash),
    "extend nothing": extended("nothing", Extra),
    "extend by no model": extended("add", dict),
    "extend and take back": then(
        extended("add", Extra), lambda kit: (kit.set_extended_model("add", None), kit.get_json_schemas())
    ),
    "state": lambda kit: grouped(kit).state_dict(),
    "load": lambda kit: (grouped(kit).load_state_dict({"active_groups": ["words", "?"]}), kit.state_dict()),
    "load nothing": lambda kit: kit.load_state_dict({}),
    "load no list": lambda kit: kit.load_state_dict({"active_groups": "words"}),
    "load no state": lambda kit: kit.load_state_dict([]),
    "load too much": lambda kit: kit.load_state_dict({"active_groups": [], "more": 1}),
    "load too much, gladly": lambda kit: kit.load_state_dict({"active_groups": [], "more": 1}, strict=False),
    "no skills": lambda kit: (kit.get_agent_skill_prompt(), dict(kit.skills), kit.remove_agent_skill("?")),
}

# Where the same kind of exception says it in other words: AgentScope's are those of a dictionary.
OWN_WORDS = {"a schema without parameters"}


def outcome(use: Use, toolkit: Any) -> tuple[Any, Exception | None]:
    try:
        return use(toolkit), None
    except Exception as error:
        return None, error


@pytest.mark.parametrize("name", USES)
def test_a_use_gives_what_theirs_gives(name: str) -> None:
    theirs, their_error = outcome(USES[name], AgentScopeToolkit())
    ours, our_error = outcome(USES[name], Toolkit())

    assert ours == theirs
    assert (our_error is None) == (their_error is None), our_error or their_error
    if our_error and their_error:
        assert isinstance(our_error, type(their_error))
        assert name in OWN_WORDS or str(our_error).startswith(str(their_error))


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"nothing": ""},
        {"here/SKILL.md": "no front matter"},
        {"here/SKILL.md": "---\nname: x\n---\n"},
        {"here/SKILL.md": "---\nname: x\ndescription: y\n---\n"},
    ],
    ids=["no folder", "no file", "no front matter", "no description", "twice"],
)
def test_a_broken_skill_is_refused_in_the_same_words(tmp_path: Path, files: dict[str, str]) -> None:
    folder = tmp_path / "here"
    for name, text in files.items():
        folder.mkdir()
        (tmp_path / name).write_text(text)

    def register_twice(toolkit: Any) -> None:
        toolkit.register_agent_skill(str(folder))
        toolkit.register_agent_skill(str(folder))

    _, their_error = outcome(register_twice, AgentScopeToolkit())
    _, our_error = outcome(register_twice, Toolkit())

    assert isinstance(our_error, ValueError)
    assert str(our_error) == str(their_error)


def test_a_toolkit_is_a_state_module_and_always_true() -> None:
    toolkit = Toolkit()

    assert isinstance(toolkit, StateModule)
    assert toolkit


def test_what_only_agentscope_has_is_handed_through() -> None:
    import agentscope.tool

    from toolcrib.compat import agentscope as face

    for name in agentscope.tool.__all__:
        assert getattr(face, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = face.no_such_name
