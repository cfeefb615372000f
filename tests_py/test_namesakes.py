"""Registration under a name that another tool has: every strategy."""

import logging
import re
from typing import Any

import pytest

from toolcrib import Toolkit, errors


def first() -> str:
    return "first"


def greet() -> str:
    return "old"


def last() -> str:
    return "last"


def other_greet() -> str:
    return "new"


@pytest.fixture
def toolkit() -> Toolkit:
    toolkit = Toolkit()
    for function in (first, greet, last):
        toolkit.register_tool_function(function)
    return toolkit


def test_raise_is_the_default_and_keeps_the_old_one(toolkit: Toolkit) -> None:
    expected = r"^A function with name 'greet' is already registered in the toolkit\.$"

    with pytest.raises(errors.DuplicateToolError, match=expected):
        toolkit.register_tool_function(other_greet, func_name="greet")

    assert list(toolkit.tools) == ["first", "greet", "last"]
    assert toolkit.run("greet").text == "old"


def test_skip_keeps_the_old_one_and_warns(toolkit: Toolkit, caplog: pytest.LogCaptureFixture) -> None:
    old = toolkit.tools["greet"]

    toolkit.register_tool_function(other_greet, func_name="greet", namesake_strategy="skip")

    assert toolkit.tools["greet"] is old
    assert list(toolkit.tools) == ["first", "greet", "last"]
    assert [(record.name, record.levelno) for record in caplog.records] == [("toolcrib", logging.WARNING)]
    assert "'greet'" in caplog.text


def test_override_takes_the_place_of_the_old_one_and_warns(toolkit: Toolkit, caplog: pytest.LogCaptureFixture) -> None:
    toolkit.register_tool_function(other_greet, func_name="greet", namesake_strategy="override")

    assert list(toolkit.tools) == ["first", "greet", "last"]
    assert [schema["function"]["name"] for schema in toolkit.get_json_schemas()] == ["first", "greet", "last"]
    assert toolkit.run("greet").text == "new"
    assert [(record.name, record.levelno) for record in caplog.records] == [("toolcrib", logging.WARNING)]
    assert "'greet'" in caplog.text


def test_override_moves_a_tool_to_its_new_group(toolkit: Toolkit) -> None:
    toolkit.create_tool_group("manners", "Politeness.")

    toolkit.register_tool_function(greet, "manners", namesake_strategy="override")

    assert toolkit.tools["greet"].group == "manners"
    assert [schema["function"]["name"] for schema in toolkit.get_json_schemas()] == ["first", "last"]


def test_rename_adds_five_characters(toolkit: Toolkit) -> None:
    toolkit.register_tool_function(greet, namesake_strategy="rename")

    *old, new = toolkit.tools
    assert old == ["first", "greet", "last"]
    assert re.fullmatch(r"greet_[0-9A-Za-z]{5}", new)
    assert toolkit.tools[new].name == new
    assert toolkit.tools[new].json_schema["function"]["name"] == new
    assert toolkit.tools[new].original_name == "greet"
    assert toolkit.tools["greet"].original_name is None
    assert toolkit.run(new).text == "old"


def test_rename_of_a_tool_with_a_name_of_its_own_remembers_the_function(toolkit: Toolkit) -> None:
    toolkit.register_tool_function(other_greet, func_name="greet", namesake_strategy="rename")

    *_, new = toolkit.tools
    assert new.startswith("greet_")
    assert toolkit.tools[new].original_name == "other_greet"


def test_rename_finds_a_new_name_every_time() -> None:
    toolkit = Toolkit()

    for _ in range(1000):
        toolkit.register_tool_function(greet, namesake_strategy="rename")

    assert len(toolkit.tools) == 1000
    assert [schema["function"]["name"] for schema in toolkit.get_json_schemas()] == list(toolkit.tools)


@pytest.mark.parametrize("strategy", ["raise", "skip", "override", "rename"])
def test_no_strategy_changes_a_name_that_is_free(strategy: Any, caplog: pytest.LogCaptureFixture) -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(greet, namesake_strategy=strategy)

    assert list(toolkit.tools) == ["greet"]
    assert caplog.records == []


def test_an_unknown_strategy_is_noticed_only_when_it_is_needed() -> None:
    toolkit, unknown = Toolkit(), "replace"
    strategy: Any = unknown

    toolkit.register_tool_function(greet, namesake_strategy=strategy)

    with pytest.raises(ValueError, match=r"^Invalid namesake_strategy: replace\."):
        toolkit.register_tool_function(other_greet, func_name="greet", namesake_strategy=strategy)
    assert toolkit.run("greet").text == "old"


def test_a_removed_name_is_free_again(toolkit: Toolkit) -> None:
    toolkit.remove_tool_function("greet")

    toolkit.register_tool_function(other_greet, func_name="greet")

    assert list(toolkit.tools) == ["first", "last", "greet"]
    assert toolkit.run("greet").text == "new"


@pytest.mark.filterwarnings("ignore:model providers refuse")
def test_names_that_only_look_alike_are_different_names(toolkit: Toolkit) -> None:
    for name in ("Greet", "greet ", "greеt", "gre\u0301et", "gréet"):
        toolkit.register_tool_function(other_greet, func_name=name)

    assert toolkit.run("greet").text == "old"
    assert len(toolkit.tools) == 8
