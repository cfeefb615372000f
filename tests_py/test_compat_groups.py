"""`toolcrib.compat.groups.ToolGroupManager`: the recorded scenarios, and what was a trap and is none any more."""

import copy
import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from support.toolkits import definition
from toolcrib.compat.groups import BUILTIN_TOOL_GROUPS, ToolGroupManager

CASES = json.loads((Path(__file__).parent.parent / "tests" / "data" / "toolgroup_cases.json").read_text("utf-8"))


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


@pytest.mark.parametrize("spell", [str, snake], ids=["camelCase", "snake_case"])
@pytest.mark.parametrize("scenario", CASES["scenarios"], ids=lambda scenario: scenario["name"])
def test_a_scenario_goes_as_it_was_recorded(scenario: dict[str, Any], spell: Any) -> None:
    manager = ToolGroupManager(registerBuiltins=scenario["builtins"])

    results = [getattr(manager, spell(step["call"]))(*copy.deepcopy(step["args"])) for step in scenario["steps"]]

    assert results == [step["result"] for step in scenario["steps"]]


def test_the_builtin_groups_are_there_with_their_tools() -> None:
    manager = ToolGroupManager()

    groups = manager.listGroups()

    assert {group["id"]: group["tools"] for group in groups} == CASES["builtin_groups"]
    assert all(group["isReserved"] and group["description"] for group in groups)
    assert {id: group["tools"] for id, group in BUILTIN_TOOL_GROUPS.items()} == CASES["builtin_groups"]
    assert {group["description"] for group in groups} == {
        group["description"] for group in BUILTIN_TOOL_GROUPS.values()
    }


def test_a_placeholder_is_a_definition_with_parameters() -> None:
    manager = ToolGroupManager()

    definitions = manager.getToolDefinitions(manager.getAllGroupIds())

    assert len(definitions) == 18
    assert all(each["function"]["parameters"] == {"type": "object", "properties": {}} for each in definitions)


def test_the_groups_are_described_as_they_are_now() -> None:
    manager = ToolGroupManager(registerBuiltins=False)
    manager.registerGroup("g", {"description": "Group G.", "tools": [definition("a"), definition("b")]})

    before = manager.describeGroups()
    manager.registerGroup("h", {"description": "Group H.", "tools": []})

    assert before == "- g: Group G. (a, b)"
    assert manager.describeGroups() == "- g: Group G. (a, b)\n- h: Group H. ()"
    schema = manager.getToolGroupsSchema()
    assert schema["items"] == {"type": "string", "enum": ["g", "h"]}
    assert schema["description"].endswith("\n- g: Group G.\n- h: Group H.")


def test_every_method_has_a_twin() -> None:
    methods = {name for name in vars(ToolGroupManager) if not name.startswith("_")}
    camel = {name for name in methods if name != name.lower()}

    assert {snake(name) for name in camel} == methods - camel
    assert all(vars(ToolGroupManager)[name] is vars(ToolGroupManager)[snake(name)] for name in camel)


def test_a_group_that_is_replaced_is_ok_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    manager = ToolGroupManager(registerBuiltins=False)
    first = manager.registerGroup("g", {"tools": [definition("a")]})

    with caplog.at_level(logging.WARNING, "toolcrib"):
        again = manager.registerGroup("g", {"tools": [definition("b")]})

    assert (first, first.warning) == ({"ok": True}, None)
    assert (again, again.warning) == ({"ok": True}, "duplicate_group_id")
    assert "'g'" in caplog.text


def test_a_group_may_be_reserved_when_it_is_registered() -> None:
    manager = ToolGroupManager(registerBuiltins=False)

    manager.registerGroup("mine", {"tools": [definition("a")]}, True)

    assert manager.isReservedGroup("mine")
    assert manager.registerGroup("mine", {"tools": []}) == {"ok": False, "error": "reserved_group_id"}
    assert manager.unregisterGroup("mine") == {"ok": False, "error": "cannot_unregister_reserved"}
    assert manager.updateGroupTools("mine", [definition("b")]) == {"ok": True}


def test_what_a_group_shows_it_allows_also_when_another_group_has_the_tool() -> None:
    manager = ToolGroupManager(registerBuiltins=False)
    manager.registerGroup("g", {"tools": [definition("a", "of g")]})
    manager.registerGroup("h", {"tools": [definition("a", "of h")]})

    shown = manager.getToolDefinitions(["g"])

    assert shown == [definition("a", "of g")]
    assert manager.isToolInGroups("a", ["g"])
    assert manager.getToolGroup("a") == "h"
    assert manager.getToolDefinitions(["h", "g"]) == [definition("a", "of h")]


def test_a_tool_outlives_a_group_that_tried_to_steal_it() -> None:
    manager = ToolGroupManager()
    manager.registerGroup("thief", {"tools": [definition("read_file", "stolen")]})

    manager.unregisterGroup("thief")

    assert manager.getToolGroup("read_file") == "workspace"
    assert manager.isToolInGroups("read_file", ["workspace"])


@pytest.mark.parametrize("tools", [None, "x", 3, {"a": 1}])
def test_tools_that_are_not_a_list_leave_the_group_unchanged(tools: Any) -> None:
    manager = ToolGroupManager()
    before = manager.getGroup("workspace")

    assert manager.updateGroupTools("workspace", tools) == {"ok": False, "error": "invalid_group_def"}
    assert manager.getGroup("workspace") == before


def test_what_is_handed_out_is_a_copy() -> None:
    manager = ToolGroupManager(registerBuiltins=False)
    given = definition("a", "1")
    manager.registerGroup("g", {"tools": [given]})

    given["function"]["description"] = "changed"
    manager.getToolDefinitions(["g"])[0]["function"]["description"] = "changed"
    manager.listGroups()[0]["tools"].append("b")

    assert manager.getToolDefinitions(["g"]) == [definition("a", "1")]
    assert manager.getAllToolNames() == ["a"]


def test_an_unknown_group_is_passed_over_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    manager = ToolGroupManager(registerBuiltins=False)
    manager.registerGroup("g", {"tools": [definition("a")]})

    with caplog.at_level(logging.WARNING, "toolcrib"):
        shown = manager.getToolDefinitions(["nobody", "g", "g"])

    assert shown == [definition("a")]
    assert "'nobody'" in caplog.text


def test_warnings_go_to_the_logger_of_the_manager(caplog: pytest.LogCaptureFixture) -> None:
    manager = ToolGroupManager(logger=logging.getLogger("program"))

    with caplog.at_level(logging.WARNING):
        manager.getToolDefinitions(["nobody"])

    assert [record.name for record in caplog.records] == ["program"]
