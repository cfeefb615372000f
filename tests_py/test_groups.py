"""Groups: sets of tools that are switched on and off together."""

import copy
import logging
import pickle
from typing import Any

import pytest

from support.toolkits import listed
from toolcrib import ToolGroup, Toolkit, errors


def look() -> str:
    return "seen"


@pytest.fixture
def toolkit() -> Toolkit:
    toolkit = Toolkit()
    toolkit.create_tool_group("web", "The web.", active=True, notes="Be polite.")
    toolkit.create_tool_group("files", "The disk.")
    toolkit.register_tool_function(look, func_name="browse", group_name="web")
    toolkit.register_tool_function(look, func_name="read", group_name="files")
    toolkit.register_tool_function(look, func_name="think")
    return toolkit


def test_a_group_is_created_switched_off_and_without_notes() -> None:
    toolkit = Toolkit()

    toolkit.create_tool_group("web", "The web.")

    assert dict(toolkit.groups) == {"web": ToolGroup("web", False, "The web.", None)}


def test_a_group_takes_its_four_fields_in_order() -> None:
    toolkit = Toolkit()

    toolkit.create_tool_group("web", "The web.", True, "Be polite.")

    group = toolkit.groups["web"]
    assert (group.name, group.description, group.active, group.notes) == ("web", "The web.", True, "Be polite.")


@pytest.mark.parametrize("name", ["web", "basic"])
def test_a_name_that_is_taken_is_refused(toolkit: Toolkit, name: str) -> None:
    expected = rf"^Tool group '{name}' is already registered in the toolkit\.$"

    with pytest.raises(errors.DuplicateGroupError, match=expected):
        toolkit.create_tool_group(name, "Another one.", active=True)

    assert list(toolkit.groups) == ["web", "files"]
    assert toolkit.groups["web"].description == "The web."


@pytest.mark.parametrize("name", ["", " ", "two words", "_hidden", "网络", "Basic", "a'b\n"])
def test_any_other_text_is_a_name(name: str) -> None:
    toolkit = Toolkit()

    toolkit.create_tool_group(name, "Odd.", active=True)
    toolkit.register_tool_function(look, group_name=name)

    assert list(toolkit.groups) == [name]
    assert listed(toolkit) == ["look"]


def test_only_tools_of_active_groups_and_basic_ones_are_listed_in_the_order_they_came(toolkit: Toolkit) -> None:
    before = listed(toolkit)

    toolkit.update_tool_groups(["files"], True)

    assert before == ["browse", "think"]
    assert listed(toolkit) == ["browse", "read", "think"]


def test_switching_leaves_other_groups_as_they_are(toolkit: Toolkit) -> None:
    toolkit.update_tool_groups(["files"], active=True)
    toolkit.update_tool_groups(["web"], active=False)

    assert {name: group.active for name, group in toolkit.groups.items()} == {"web": False, "files": True}


def test_an_unknown_name_switches_nothing(toolkit: Toolkit) -> None:
    with pytest.raises(errors.UnknownGroupError, match="unknown group `nowhere`"):
        toolkit.update_tool_groups(["files", "nowhere"], True)

    assert not toolkit.groups["files"].active


@pytest.mark.parametrize("active", [True, False])
def test_basic_is_always_on_and_a_warning_says_so(
    toolkit: Toolkit, caplog: pytest.LogCaptureFixture, active: bool
) -> None:
    toolkit.update_tool_groups(["basic", "files"], active)

    assert ("think" in listed(toolkit), toolkit.groups["files"].active) == (True, active)
    assert [(record.name, record.levelno) for record in caplog.records] == [("toolcrib", logging.WARNING)]


def test_removing_a_group_removes_its_tools(toolkit: Toolkit) -> None:
    toolkit.remove_tool_groups("web")

    assert list(toolkit.groups) == ["files"]
    assert list(toolkit.tools) == ["read", "think"]


def test_several_groups_are_removed(toolkit: Toolkit) -> None:
    toolkit.remove_tool_groups(["files", "web", "web"])

    assert dict(toolkit.groups) == {}
    assert list(toolkit.tools) == ["think"]


@pytest.mark.parametrize("names", ["basic", ["basic"], ["web", "basic"]])
def test_basic_cannot_be_removed_and_then_nothing_is(toolkit: Toolkit, names: str | list[str]) -> None:
    with pytest.raises(errors.BasicGroupError, match=r"^Cannot remove the default 'basic' tool group\.$"):
        toolkit.remove_tool_groups(names)

    assert list(toolkit.groups) == ["web", "files"]
    assert list(toolkit.tools) == ["browse", "read", "think"]


@pytest.mark.parametrize("names", [None, 3, ("web",), {"web"}, b"web", ["web", 3], ["web", None]])
def test_names_of_groups_to_remove_are_text(toolkit: Toolkit, names: Any) -> None:
    with pytest.raises(TypeError) as caught:
        toolkit.remove_tool_groups(names)

    assert str(caught.value) == f"The group_names must be a list of strings, but got {type(names)}."
    assert list(toolkit.groups) == ["web", "files"]


@pytest.mark.parametrize("names", [None, 3, b"web", ["web", 3]])
def test_names_of_groups_to_switch_are_text(toolkit: Toolkit, names: Any) -> None:
    with pytest.raises(TypeError):
        toolkit.update_tool_groups(names, False)

    assert toolkit.groups["web"].active


@pytest.mark.parametrize("arguments", [("g",), (3, "d"), ("g", None), ("g", "d", "yes"), ("g", "d", True, 3)])
def test_a_group_of_the_wrong_types_is_refused(arguments: tuple[Any, ...]) -> None:
    toolkit = Toolkit()

    with pytest.raises(TypeError):
        toolkit.create_tool_group(*arguments)

    assert dict(toolkit.groups) == {}


def test_a_group_made_anew_does_not_bring_its_old_tools_back(toolkit: Toolkit) -> None:
    toolkit.remove_tool_groups("web")

    toolkit.create_tool_group("web", "Another web.", active=True)

    assert listed(toolkit) == ["think"]
    assert toolkit.run("browse").code == "unknown_tool"


def test_the_notes_of_active_groups_are_joined_in_the_order_of_creation() -> None:
    toolkit = Toolkit()
    toolkit.create_tool_group("a", "", active=True, notes="First.\nSecond.")
    toolkit.create_tool_group("b", "", active=False, notes="Hidden.")
    toolkit.create_tool_group("c", "", active=True, notes="")
    toolkit.create_tool_group("d", "", active=True)
    toolkit.create_tool_group("e", "", active=True, notes="Last.")

    notes = toolkit.get_activated_notes()

    assert notes == "## About Tool Group 'a'\nFirst.\nSecond.\n## About Tool Group 'e'\nLast."


def test_without_active_groups_there_are_no_notes() -> None:
    toolkit = Toolkit()
    toolkit.create_tool_group("a", "", notes="Hidden.")

    assert toolkit.get_activated_notes() == ""


def test_a_group_object_switches_its_toolkit(toolkit: Toolkit) -> None:
    group, before = toolkit.groups["files"], toolkit.get_json_schemas_bytes()

    group.active = True

    assert listed(toolkit) == ["browse", "read", "think"]
    assert toolkit.get_json_schemas_bytes() != before
    assert toolkit.run("read").ok


def test_a_group_object_shows_what_is_switched_elsewhere(toolkit: Toolkit) -> None:
    group = toolkit.groups["files"]

    toolkit.update_tool_groups(["files"], True)

    assert group.active


def test_notes_and_descriptions_may_be_changed(toolkit: Toolkit) -> None:
    group = toolkit.groups["web"]

    group.notes, group.description = "Be quick.", "The net."

    assert toolkit.get_activated_notes() == "## About Tool Group 'web'\nBe quick."
    assert toolkit.groups["web"] == ToolGroup("web", True, "The net.", "Be quick.")


def test_the_name_of_a_group_cannot_be_changed(toolkit: Toolkit) -> None:
    group: Any = toolkit.groups["web"]

    with pytest.raises(AttributeError):
        group.name = "basic"


@pytest.mark.parametrize(("field", "value"), [("active", "yes"), ("active", None), ("description", None), ("notes", 3)])
def test_the_fields_of_a_group_keep_their_types(toolkit: Toolkit, field: str, value: Any) -> None:
    group = toolkit.groups["web"]

    with pytest.raises(TypeError):
        setattr(group, field, value)

    assert group == ToolGroup("web", True, "The web.", "Be polite.")


def test_a_group_of_ones_own_is_a_plain_value() -> None:
    group = ToolGroup("web", True, "The web.")

    assert (group.name, group.active, group.description, group.notes) == ("web", True, "The web.", None)
    assert group == ToolGroup(name="web", active=True, description="The web.", notes=None)
    assert group != ToolGroup("web", False, "The web.")
    assert (group == "web") is False
    assert repr(group) == "ToolGroup(name='web', active=True, description='The web.', notes=None)"
    with pytest.raises(TypeError, match="unhashable"):
        hash(group)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda group: pickle.loads(pickle.dumps(group))])
def test_a_copy_of_a_group_belongs_to_no_toolkit(toolkit: Toolkit, duplicate: Any) -> None:
    twin = duplicate(toolkit.groups["web"])

    twin.active = False

    assert twin == ToolGroup("web", False, "The web.", "Be polite.")
    assert toolkit.groups["web"].active


def test_a_removed_group_no_longer_switches_anything(toolkit: Toolkit) -> None:
    group = toolkit.groups["web"]
    toolkit.remove_tool_groups("web")
    toolkit.create_tool_group("web", "Another web.")

    group.active = True

    assert not toolkit.groups["web"].active
