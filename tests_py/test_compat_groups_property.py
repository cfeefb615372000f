"""The eight properties of tool groups and the two of ours, through `toolcrib.compat.groups`."""

from collections.abc import Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.compat.groups import Org, Runtime, ToolGroupManager

many = settings(max_examples=1000)

RESERVED = ToolGroupManager().getAllGroupIds()
names = st.text(st.sampled_from("abсñ_é0"), min_size=1, max_size=3)
groups = st.sampled_from(["", "g", "h", "i", "ｇ", *RESERVED[:2]])
definitions = st.lists(names, max_size=5).map(
    lambda names: [
        {"type": "function", "function": {"name": name, "description": str(i)}} for i, name in enumerate(names)
    ]
)
group_definitions = st.fixed_dictionaries({"description": st.text(max_size=3), "tools": definitions})
changes = st.lists(
    st.one_of(
        st.tuples(st.just("registerGroup"), groups, group_definitions),
        st.tuples(st.just("unregisterGroup"), groups),
        st.tuples(st.just("updateGroupTools"), groups, definitions),
    ),
    max_size=8,
)


def played(steps: list[Any], builtins: bool = True) -> ToolGroupManager:
    manager = ToolGroupManager(registerBuiltins=builtins)
    for name, *arguments in steps:
        getattr(manager, name)(*arguments)
    return manager


def tools_of(definition: Any) -> set[str]:
    return {tool["function"]["name"] for tool in definition["tools"]}


def everything(manager: ToolGroupManager) -> Any:
    ids = manager.getAllGroupIds()
    return manager.listGroups(), [manager.getToolDefinitions([id]) for id in ids], sorted(manager.getAllToolNames())


@many
@given(changes, groups, group_definitions)
def test_1_a_registered_group_is_there_with_its_tools(steps: list[Any], id: str, definition: Any) -> None:
    manager = played(steps)

    if not manager.registerGroup(id, definition)["ok"]:
        return

    group = manager.getGroup(id)
    assert manager.hasGroup(id)
    assert all(manager.getToolGroup(name) == id for name in tools_of(definition))
    assert group is not None
    assert (group["description"], group["toolCount"]) == (definition["description"], len(tools_of(definition)))


@many
@given(changes, groups)
def test_2_an_unregistered_group_is_gone_with_what_it_alone_held(steps: list[Any], id: str) -> None:
    manager = played(steps)
    held = (manager.getGroup(id) or {"tools": []})["tools"]
    others = {name for group in manager.listGroups() if group["id"] != id for name in group["tools"]}

    if not manager.unregisterGroup(id)["ok"]:
        return

    assert not manager.hasGroup(id)
    assert all(manager.getToolGroup(name) != id for name in held)
    assert all((manager.getToolGroup(name) is None) == (name not in others) for name in held)


@many
@given(changes, st.sampled_from(RESERVED), st.one_of(group_definitions, st.none(), st.text(max_size=2)))
def test_3_a_reserved_group_cannot_be_registered_or_unregistered(steps: list[Any], id: str, definition: Any) -> None:
    manager = played(steps)
    before = everything(manager)

    assert manager.registerGroup(id, definition) == {"ok": False, "error": "reserved_group_id"}
    assert manager.unregisterGroup(id) == {"ok": False, "error": "cannot_unregister_reserved"}
    assert everything(manager) == before


@many
@given(changes, st.lists(groups, max_size=6))
def test_4_definitions_are_the_union_without_duplicates(steps: list[Any], ids: list[str]) -> None:
    manager = played(steps)

    shown = [definition["function"]["name"] for definition in manager.getToolDefinitions(ids)]

    assert len(shown) == len(set(shown))
    assert set(shown) == {name for id in ids for name in (manager.getGroup(id) or {"tools": []})["tools"]}


def finished(call: Coroutine[Any, Any, Any]) -> Any:
    """The result of a call that waits for nothing: an event loop of its own for each would be most of the work."""
    with pytest.raises(StopIteration) as stop:
        call.send(None)
    return stop.value.value


agents = st.sampled_from(["root", "one", "nobody", "roleless"])


def runtime_of(steps: list[Any], tool_groups: Any) -> tuple[Runtime, list[str]]:
    ran: list[str] = []
    runtime = Runtime(played(steps), executor=lambda _, name, __: ran.append(name))
    role = runtime.org.createRole({"name": "role", "toolGroups": tool_groups})
    runtime.org.createAgent({"id": "one", "roleId": role["id"]})
    runtime.org.createAgent({"id": "roleless", "roleId": "no such role"})
    return runtime, ran


@many
@given(changes, st.none() | st.lists(groups, max_size=3), agents, names)
def test_5_a_tool_outside_of_the_role_is_refused_by_name_and_does_not_run(
    steps: list[Any], tool_groups: Any, agent: str, name: str
) -> None:
    runtime, ran = runtime_of(steps, tool_groups)
    allowed = {definition["function"]["name"] for definition in runtime.getToolDefinitionsForAgent(agent)}

    answer = finished(runtime.executeToolCall({"agent": {"id": agent}}, name, {}))

    if name in allowed:
        assert (answer, ran) == (None, [name])
    else:
        assert answer["error"] in ("tool_not_available", "unknown_tool")
        assert (name in answer["message"], answer["toolName"], ran) == (True, name, [])


@many
@given(changes)
def test_6_every_group_is_listed_as_it_is(steps: list[Any]) -> None:
    manager = played(steps)

    listed = manager.listGroups()

    assert [group["id"] for group in listed] == manager.getAllGroupIds()
    assert len(listed) == manager.getGroupCount()
    assert all(group["toolCount"] == len(group["tools"]) == len(set(group["tools"])) for group in listed)
    assert all(group == manager.getGroup(group["id"]) for group in listed)


role_names = st.text(min_size=1, max_size=5).filter(lambda name: name != "root" and name.isprintable())


@many
@given(st.dictionaries(role_names, st.none() | st.lists(groups, max_size=4), max_size=5))
def test_7_saved_roles_are_loaded_with_the_same_groups(roles: dict[str, Any]) -> None:
    org = Org()
    for name, tool_groups in roles.items():
        org.createRole({"name": name, "toolGroups": tool_groups})
    again = Org()

    with TemporaryDirectory() as folder:
        org.save(Path(folder) / "org.json")
        report = again.load(Path(folder) / "org.json")

    assert report == {"loaded": True, "errors": []}
    assert {role["name"]: role["toolGroups"] for role in again.listRoles()} == roles


@many
@given(changes)
def test_8_a_role_without_groups_sees_all_and_root_its_own(steps: list[Any]) -> None:
    runtime, _ = runtime_of(steps, None)
    manager = runtime.toolGroupManager

    assert runtime.getToolDefinitionsForAgent("one") == manager.getToolDefinitions(manager.getAllGroupIds())
    assert runtime.getToolDefinitionsForAgent("root") == manager.getToolDefinitions(["org_management"])


@many
@given(changes, st.none() | st.lists(groups, max_size=3), agents)
def test_9_sight_equals_permission(steps: list[Any], tool_groups: Any, agent: str) -> None:
    runtime, ran = runtime_of(steps, tool_groups)
    shown = {definition["function"]["name"] for definition in runtime.getToolDefinitionsForAgent(agent)}

    for name in runtime.toolGroupManager.getAllToolNames():
        finished(runtime.executeToolCall({"agent": {"id": agent}}, name, {}))

    assert set(ran) == shown


@many
@given(changes, groups)
def test_10_unregistering_a_group_leaves_the_tools_of_the_others_callable(steps: list[Any], id: str) -> None:
    manager = played(steps)
    others = {group["id"]: group["tools"] for group in manager.listGroups() if group["id"] != id}

    manager.unregisterGroup(id)

    assert all(manager.isToolInGroups(name, [other]) for other, held in others.items() for name in held)
    assert all((manager.getGroup(other) or {})["tools"] == held for other, held in others.items())
