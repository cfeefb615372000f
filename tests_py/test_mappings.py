"""`Toolkit.tools` and `Toolkit.groups`: live mappings."""

from collections.abc import Mapping
from typing import Any

import pytest

from support.toolkits import add, arithmetic
from toolcrib import RegisteredToolFunction, ToolGroup, Toolkit


@pytest.fixture
def toolkit() -> Toolkit:
    return arithmetic()


def test_tools_and_groups_are_mappings_in_order(toolkit: Toolkit) -> None:
    assert isinstance(toolkit.tools, Mapping)
    assert isinstance(toolkit.groups, Mapping)
    assert (list(toolkit.tools), len(toolkit.tools)) == (["add", "multiply"], 2)
    assert (list(toolkit.groups), len(toolkit.groups)) == (["maths"], 1)
    assert [tool.name for tool in toolkit.tools.values()] == list(toolkit.tools.keys())
    assert all(isinstance(tool, RegisteredToolFunction) for tool in toolkit.tools.values())
    assert all(isinstance(group, ToolGroup) for group in toolkit.groups.values())


def test_a_mapping_is_asked_by_name(toolkit: Toolkit) -> None:
    assert ("add" in toolkit.tools, "subtract" in toolkit.tools) == (True, False)
    assert ("maths" in toolkit.groups, "basic" in toolkit.groups) == (True, False)
    assert toolkit.tools.get("subtract") is None
    assert toolkit.tools.get("add") is toolkit.tools["add"]
    with pytest.raises(KeyError, match="subtract"):
        toolkit.tools["subtract"]
    with pytest.raises(KeyError, match="basic"):
        toolkit.groups["basic"]


@pytest.mark.parametrize("key", [None, 3, b"add", ("add",), "\ud800", "add\0", "ADD"])
def test_a_mapping_does_not_contain_invalid_names(toolkit: Toolkit, key: Any) -> None:
    assert key not in toolkit.tools
    assert key not in toolkit.groups
    assert toolkit.tools.get(key, "nothing") == "nothing"


def test_a_mapping_equals_a_dictionary_of_the_same(toolkit: Toolkit) -> None:
    assert toolkit.tools == dict(toolkit.tools)
    assert dict(toolkit.tools) == toolkit.tools
    assert toolkit.groups == {"maths": ToolGroup("maths", True, "Numbers.")}
    assert toolkit.tools != {}
    assert toolkit.tools.__eq__(["add", "multiply"]) is NotImplemented


def test_a_mapping_shows_what_changes_later(toolkit: Toolkit) -> None:
    tools, groups = toolkit.tools, toolkit.groups

    toolkit.remove_tool_function("add")
    toolkit.register_tool_function(add, func_name="plus")
    toolkit.create_tool_group("text", "Words.")

    assert list(tools) == ["multiply", "plus"]
    assert list(groups) == ["maths", "text"]


def test_a_mapping_may_be_changed_while_it_is_looped_over(toolkit: Toolkit) -> None:
    for name in toolkit.tools:
        toolkit.remove_tool_function(name)
    for name in toolkit.groups:
        toolkit.remove_tool_groups(name)

    assert (dict(toolkit.tools), dict(toolkit.groups)) == ({}, {})


def test_a_mapping_cannot_be_written_to(toolkit: Toolkit) -> None:
    tools: Any = toolkit.tools

    with pytest.raises(TypeError):
        tools["other"] = tools["add"]
    with pytest.raises(TypeError):
        del tools["add"]
    with pytest.raises(AttributeError):
        tools.clear()


def test_a_mapping_shows_itself_like_a_dictionary(toolkit: Toolkit) -> None:
    assert repr(toolkit.tools) == repr(dict(toolkit.tools))
    assert repr(toolkit.groups) == repr(dict(toolkit.groups))
