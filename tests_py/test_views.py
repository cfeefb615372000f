"""Views: exactly what one lists can be called through it, and the rest looks as if it were not there."""

import gc
import json
import random
import weakref
from typing import Any

import pytest

from support.toolkits import named_tool
from toolcrib import Policy, Toolkit, ToolkitView, ToolResponse
from toolcrib.errors import UnknownToolError
from toolcrib.policy import Rule

pytestmark = [
    pytest.mark.filterwarnings("ignore:unknown .* in a view"),
    pytest.mark.filterwarnings("ignore:model providers refuse"),
]


def listed(view: ToolkitView) -> list[str]:
    names = [schema["function"]["name"] for schema in view.get_json_schemas()]
    assert names == list(view.tools)
    assert json.loads(view.get_json_schemas_bytes()) == view.get_json_schemas()
    assert all(name in view for name in names)
    return names


def refusal(view: ToolkitView, name: str) -> str | None:
    """The code with which a call of this tool is refused, None if it runs."""
    response = view.run(name)
    assert response.code is not None or response.text == name
    return response.code


def workshop() -> Toolkit:
    """Make `look` in `basic`, `drill` and `saw` in `machines`, `drill` in `metal`, `plan` in an inactive one."""
    toolkit = Toolkit(run_in="inline")
    toolkit.register_tool_function(named_tool("look"))
    toolkit.register_group("machines", "Loud.", [named_tool("drill"), named_tool("saw")], notes="Wear goggles.")
    toolkit.register_group("metal", "Hard.", ["drill"], notes="Mind the sparks.")
    toolkit.register_group("office", "Quiet.", [named_tool("plan")], active=False)
    return toolkit


CHOICES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["look", "drill", "saw"]),
    ({"groups": ["metal", "machines"]}, ["drill", "saw"]),
    ({"groups": ("metal", "basic")}, ["look", "drill"]),
    ({"groups": []}, []),
    ({"groups": ["nowhere", "Machines", "machines "]}, []),
    ({"groups": ["office"]}, []),
    ({"names": {"saw", "look", "plan"}}, ["look", "saw"]),
    ({"names": []}, []),
    ({"names": ["saw"], "groups": ["metal"]}, []),
    ({"exclude": ["drill"]}, ["look", "saw"]),
    ({"groups": ["machines"], "exclude": iter(["drill"])}, ["saw"]),
    ({"tags": ["machines"]}, []),
    ({"tags": []}, []),
]


@pytest.mark.parametrize(("choice", "expected"), CHOICES)
def test_a_view_lists_what_is_chosen_in_the_order_of_registration(choice: dict[str, Any], expected: list[str]) -> None:
    view = workshop().view(**choice)

    assert listed(view) == expected
    assert {name for name in ["look", "drill", "saw", "plan", "x"] if refusal(view, name) is None} == set(expected)


HIDDEN = ["look", "plan", "nothing", "", "Drill", "drill ", "drіll", "ｄrill", "drill\u200b", "dri\u0308ll", "drill\0"]


@pytest.mark.parametrize("name", HIDDEN)
def test_what_a_view_does_not_show_looks_as_if_it_were_not_there(name: str) -> None:
    view = workshop().view(groups=["machines"])

    response = view.run(name)

    text, suggestion = f"Error: The tool '{name}' is not available.", " Did you mean 'drill'?"
    assert (response.code, response.text.removesuffix(suggestion)) == ("tool_not_available", text)
    assert name not in view
    assert name not in view.tools


@pytest.mark.parametrize("name", [3, None, b"drill", "\ud800", ["drill"]])
def test_an_invalid_name_is_not_in_a_view(name: Any) -> None:
    assert name not in workshop().view()


def test_a_view_reaches_a_tool_only_through_groups_it_names_that_are_active() -> None:
    toolkit = workshop()
    metal, machines = toolkit.view(groups=["metal"]), toolkit.view(groups=["machines"])

    toolkit.update_tool_groups(["metal"], active=False)
    response = metal.run("drill")

    assert (listed(metal), listed(machines)) == ([], ["drill", "saw"])
    assert response.code == "inactive_group"
    assert "'metal'" in response.text


def test_a_view_follows_the_toolkit() -> None:
    toolkit = workshop()
    view = toolkit.view(groups=["garden"], caller="gardener")
    assert listed(view) == []

    toolkit.register_group("garden", "Outside.", [named_tool("rake"), "look"])
    assert listed(view) == ["look", "rake"]
    toolkit.remove_tool_function("rake")
    assert listed(view) == ["look"]
    toolkit.groups["garden"].active = False
    assert listed(view) == []
    toolkit.unregister_group("garden")

    assert listed(view) == []
    assert list(toolkit.tools) == ["look", "drill", "saw", "plan"]


def test_a_view_shows_its_groups_and_their_notes() -> None:
    view = workshop().view(groups=["office", "machines", "nowhere", "basic"])

    assert list(view.groups) == ["machines", "office"]
    assert "metal" not in view.groups
    assert "basic" not in view.groups
    assert view.get_activated_notes() == "## About Tool Group 'machines'\nWear goggles."


def test_narrowing_shows_what_both_show() -> None:
    toolkit = workshop()
    machines = toolkit.view(groups=["machines"], caller="smith")
    narrowed = machines.view(groups=["metal"])

    assert listed(narrowed) == ["drill"]
    assert (narrowed.caller, machines.view(caller="other").caller) == ("smith", "other")
    assert narrowed.toolkit is toolkit
    assert listed(machines.view(groups=["basic"])) == []
    assert listed(machines.view(names=["look"])) == []
    assert listed(toolkit.view(groups=[]).view()) == []
    assert listed(machines.view()) == ["drill", "saw"]
    assert list(narrowed.groups) == []


@pytest.mark.parametrize("option", ["groups", "names", "exclude", "tags"])
@pytest.mark.parametrize("value", [b"machines", 3, [3], [None], ["machines", 3]])
def test_a_choice_is_a_list_of_strings(option: str, value: Any) -> None:
    toolkit = workshop()

    with pytest.raises(TypeError, match=f"{option} must be a list of strings"):
        toolkit.view(**{option: value})
    with pytest.raises(TypeError, match=f"{option} must be a list of strings"):
        toolkit.view().view(**{option: value})


def test_schemas_are_copies() -> None:
    view = workshop().view(groups=["machines"])

    view.get_json_schemas()[0]["function"]["name"] = "changed"

    assert listed(view) == ["drill", "saw"]


def test_the_text_is_kept_until_something_changes() -> None:
    toolkit = workshop()
    view = toolkit.view(groups=["machines"])
    first = view.get_json_schemas_bytes()

    assert view.get_json_schemas_bytes() is first
    toolkit.register_group("other", "")
    assert view.get_json_schemas_bytes() == first
    toolkit.remove_tool_function("saw")
    assert view.get_json_schemas_bytes() != first


def test_a_view_is_true_and_shows_itself() -> None:
    toolkit = workshop()

    assert toolkit.view(groups=[])
    assert repr(toolkit.view(caller="smith")) == 'ToolkitView(caller="smith")'
    with pytest.raises(TypeError):
        ToolkitView()


async def test_through_a_view_the_meta_tool_knows_only_the_groups_of_the_view() -> None:
    toolkit = workshop()
    toolkit.register_tool_function(toolkit.reset_equipped_tools)
    view = toolkit.view(groups=["basic", "metal", "office"])

    schema = next(it for it in view.get_json_schemas() if it["function"]["name"] == "reset_equipped_tools")
    refused = view.run("reset_equipped_tools", machines=False, metal=True)
    machines_were_active = toolkit.groups["machines"].active
    chosen = view.run("reset_equipped_tools", office=True)

    assert list(schema["function"]["parameters"]["properties"]) == ["metal", "office"]
    assert refused.code == "invalid_arguments"
    assert "machines" not in refused.text.partition("changed.")[2]
    assert machines_were_active
    assert chosen.text == "Now tool groups 'office' are activated."
    assert {name: group.active for name, group in toolkit.groups.items()} == {
        "machines": True,
        "metal": False,
        "office": True,
    }


@pytest.mark.parametrize("choice", [{"names": ["reset_equipped_tools", "saw", "look"]}, {"tags": ["switch", "wood"]}])
async def test_a_view_that_picks_tools_switches_only_the_groups_that_hold_them(choice: dict[str, Any]) -> None:
    toolkit = workshop()
    toolkit.register_tool_function(named_tool("plane"), "machines", tags=["wood"])
    toolkit.register_tool_function(toolkit.reset_equipped_tools, tags=["switch"])
    view = toolkit.view(**choice)
    schemas = {it["function"]["name"]: it["function"]["parameters"] for it in view.get_json_schemas()}

    refused = await view.call("reset_equipped_tools", office=True)
    chosen = await view.call("reset_equipped_tools")

    assert list(schemas["reset_equipped_tools"]["properties"]) == ["machines"]
    assert (refused.code, chosen.code) == ("invalid_arguments", None)
    assert {name: group.active for name, group in toolkit.groups.items()} == {
        "machines": False,
        "metal": True,
        "office": False,
    }


def test_through_a_view_of_all_groups_the_meta_tool_switches_every_group() -> None:
    toolkit = workshop()
    toolkit.register_tool_function(toolkit.reset_equipped_tools)

    view = toolkit.view(exclude=["saw"])

    assert view.run("reset_equipped_tools", machines=True, office=True).ok
    assert {name: group.active for name, group in toolkit.groups.items()} == {
        "machines": True,
        "metal": False,
        "office": True,
    }
    assert view.get_json_schemas() == [it for it in toolkit.get_json_schemas() if it["function"]["name"] != "saw"]


def test_a_meta_tool_that_cannot_be_held_to_the_view_is_not_in_it() -> None:
    class Own(Toolkit):
        def reset_equipped_tools(self, **kwargs: bool) -> ToolResponse:
            return super().reset_equipped_tools(**kwargs)

    toolkit = Own()
    toolkit.register_tool_function(toolkit.reset_equipped_tools)
    view = toolkit.view(groups=["basic"])

    assert listed(view) == []
    assert "reset_equipped_tools" not in view
    assert refusal(view, "reset_equipped_tools") == "tool_not_available"
    assert listed(toolkit.view()) == ["reset_equipped_tools"]


def test_of_ten_thousand_tools_a_view_lists_its_ten() -> None:
    toolkit = Toolkit()
    toolkit.register_group("many", "", [named_tool(f"many_{index}") for index in range(9_990)])
    toolkit.register_group("few", "", [named_tool(f"few_{index}") for index in range(10)])

    view = toolkit.view(groups=["few"])

    assert listed(view) == [f"few_{index}" for index in range(10)]
    assert listed(view.view(exclude=[f"few_{index}" for index in range(9)])) == ["few_9"]
    assert refusal(view, "many_1") == "tool_not_available"


def test_deeply_narrowed_views_hold_and_end() -> None:
    view = workshop().view()
    for index in range(2_000):
        view = view.view(exclude=[f"name_{index}"])

    assert listed(view) == ["look", "drill", "saw"]
    assert listed(view.view(groups=["metal"])) == ["drill"]


def test_views_and_toolkits_that_hold_each_other_are_collected() -> None:
    toolkit = workshop()
    view = toolkit.view()
    toolkit.register_tool_function(view.reset_equipped_tools, func_name="switch")
    ends: list[weakref.ref[Any]] = [weakref.ref(toolkit), weakref.ref(view)]

    del toolkit, view
    gc.collect()

    assert [end() for end in ends] == [None, None]


@pytest.mark.parametrize("seed", range(40))
def test_what_any_view_lists_is_what_it_runs(seed: int) -> None:
    chance = random.Random(seed)
    toolkit = Toolkit(run_in="inline")
    groups, names = ["g", "h", "i", "basic", "nowhere"], [f"t{index}" for index in range(8)]
    for name in names:
        toolkit.register_tool_function(named_tool(name))
    for group in groups[:3]:
        toolkit.register_group(group, "", chance.sample(names, chance.randint(0, 6)), active=chance.random() < 0.7)

    for _ in range(25):
        first: dict[str, Any] = {"groups": chance.choice([None, chance.sample(groups, chance.randint(0, 4))])}
        second: dict[str, Any] = {
            "names": chance.choice([None, chance.sample(names, 5)]),
            "exclude": chance.sample(names, chance.randint(0, 2)),
        }
        outer, inner = toolkit.view(**first), toolkit.view(**second)
        both = outer.view(**second)

        assert set(listed(both)) == set(listed(outer)) & set(listed(inner))
        assert {name for name in [*names, "x"] if refusal(both, name) is None} == set(listed(both))


def test_tags_choose_tools_and_are_not_groups() -> None:
    toolkit = workshop()
    toolkit.register_tool_function(named_tool("cut"), tags=["sharp", "machines"])
    toolkit.register_tool_function(named_tool("scan"), "metal", groups=["office"], tags=["sharp"])

    assert listed(toolkit.view(tags=["sharp"])) == ["cut", "scan"]
    assert listed(toolkit.view(groups=["metal"], tags=["sharp"])) == ["scan"]
    assert listed(toolkit.view(groups=["machines"])) == ["drill", "saw"]
    assert listed(toolkit.view(groups=["sharp"])) == []
    toolkit.register_tool_function(named_tool("cut"), namesake_strategy="override")
    assert listed(toolkit.view(tags=["sharp", "machines"])) == ["scan"]


async def test_views_and_rules_follow_the_tags_of_a_tool(caplog: pytest.LogCaptureFixture) -> None:
    toolkit = workshop()
    toolkit.policy = Policy([Rule("deny", tag="locked")], default="allow")
    saw, sharp = toolkit.tools["saw"], toolkit.view(tags=["sharp"])
    assert (await toolkit.call("saw")).ok
    assert ["unknown tag `locked`" in record.getMessage() for record in caplog.records] == [True]
    caplog.clear()

    toolkit.set_tags("saw", ["sharp", "locked", "sharp"])

    assert (listed(sharp), saw.tags, toolkit.tools["saw"] is saw) == (["saw"], ["sharp", "locked"], True)
    assert (await toolkit.call("saw")).code == "denied"
    toolkit.set_tags("saw", "loud")
    assert (listed(sharp), saw.tags) == ([], ["loud"])
    assert (await toolkit.call("saw")).ok
    assert not caplog.records


def test_tags_of_unknown_tools_and_empty_tags_are_refused() -> None:
    toolkit = workshop()

    with pytest.raises(UnknownToolError, match="chisel"):
        toolkit.set_tags("chisel", ["sharp"])
    with pytest.raises(ValueError, match="a tag must not be empty"):
        toolkit.set_tags("saw", ["sharp", ""])
    with pytest.raises(TypeError, match="tags must be a list of strings"):
        toolkit.set_tags("saw", 3)  # type: ignore[arg-type]
    assert toolkit.tools["saw"].tags == []


async def test_what_a_view_lists_runs_and_what_it_does_not_list_never_does() -> None:
    ran: list[str] = []
    toolkit = Toolkit(run_in="inline")
    names = ["read", "reаd", "Read", "write"]
    for name in names:

        def function(name: str = name) -> str:
            ran.append(name)
            return name

        function.__name__ = name
        toolkit.register_tool_function(function)
    toolkit.register_group("mine", "", ["read"])
    view = toolkit.view(groups=["mine"])

    codes = {name: (await view.call(name)).code for name in [*names, "nothing"]}

    assert codes == {name: None if name == "read" else "tool_not_available" for name in codes}
    assert ran == ["read"]


async def test_through_a_view_a_model_switches_only_what_the_view_shows() -> None:
    toolkit = workshop()
    toolkit.register_tool_function(toolkit.reset_equipped_tools)
    view = toolkit.view(groups=["basic", "metal", "office"])

    refused = await view.call("reset_equipped_tools", machines=False)
    chosen = await view.call("reset_equipped_tools", office=True)

    assert (refused.code, chosen.code) == ("invalid_arguments", None)
    assert list(toolkit.state_dict()["active_groups"]) == ["machines", "office"]
    assert listed(view) == ["look", "plan", "reset_equipped_tools"]


def test_the_meta_tool_that_a_view_hands_out_names_only_the_groups_of_the_view() -> None:
    toolkit = workshop()
    toolkit.register_tool_function(toolkit.reset_equipped_tools)
    view = toolkit.view(groups=["basic", "metal", "office"])

    handed_out = [view.tools["reset_equipped_tools"], dict(view.tools)["reset_equipped_tools"]]

    for meta in handed_out:
        assert list(meta.extended_json_schema["function"]["parameters"]["properties"]) == ["metal", "office"]
        assert "machines" not in str(meta.extended_json_schema)
        assert "machines" not in str(meta.json_schema)
    assert "machines" in str(toolkit.tools["reset_equipped_tools"].extended_json_schema)


def test_a_tool_of_a_view_has_the_schema_that_the_view_lists() -> None:
    toolkit = workshop()
    view = toolkit.view(groups=["basic", "metal"])

    schemas = [tool.extended_json_schema for tool in view.tools.values()]

    assert schemas == view.get_json_schemas()


def test_a_view_with_inactive_groups_shows_and_calls_them_without_touching_the_switches() -> None:
    toolkit = workshop()

    view = toolkit.view(inactive=True)
    narrowed = view.view(exclude=["look"])
    session = view.session(id="s")
    session.update_tool_groups(["machines"], False)

    everything = ["look", "drill", "saw", "plan"]
    assert listed(view) == listed(session) == everything
    assert listed(narrowed) == everything[1:]
    assert [refusal(view, name) for name in everything] == [None] * 4
    assert refusal(session, "plan") is None
    assert session.usage.calls == 1
    assert listed(toolkit.view()) == everything[:3]
    assert refusal(toolkit.view(), "plan") == "inactive_group"


def test_a_session_can_be_looked_at_with_its_inactive_groups() -> None:
    session = workshop().session(caller="ann")
    session.update_tool_groups(["machines", "metal"], False)

    view = session.view(inactive=True)

    assert "drill" not in session
    assert refusal(view, "drill") is None
    assert (view.caller, session.usage.calls) == ("ann", 1)


def test_the_revision_of_a_view_changes_with_its_listing() -> None:
    toolkit = workshop()
    view = toolkit.view(inactive=True)
    before = view._revision

    assert view._revision == before
    toolkit.register_tool_function(named_tool("sand"))
    assert view._revision != before
