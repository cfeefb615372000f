"""The meta tool: the model chooses its groups, and the schema follows them."""

import gc
import json
import threading
import weakref
from typing import Any

import pytest
from pydantic import BaseModel

from toolcrib import Toolkit, ToolResponse
from toolcrib.errors import UnknownGroupError

META = "reset_equipped_tools"


def drill() -> str:
    """Drill."""
    return "a hole"


def look() -> str:
    """Look."""
    return "a workshop"


def workshop(**options: Any) -> Toolkit:
    toolkit = Toolkit(**options)
    toolkit.create_tool_group("machines", "Machines that need care.", notes="Wear goggles.")
    toolkit.create_tool_group("_paint-shop", "Colours and brushes.", active=True)
    toolkit.register_tool_function(toolkit.reset_equipped_tools)
    toolkit.register_tool_function(drill, "machines")
    toolkit.register_tool_function(look)
    return toolkit


def switches(toolkit: Toolkit, name: str = META) -> dict[str, Any]:
    (schema,) = [schema for schema in toolkit.get_json_schemas() if schema["function"]["name"] == name]
    listed = json.loads(toolkit.get_json_schemas_bytes())
    assert schema in listed
    properties: dict[str, Any] = schema["function"]["parameters"]["properties"]
    return properties


def active(toolkit: Toolkit) -> list[str]:
    return [name for name, group in toolkit.groups.items() if group.active]


def names(schemas: list[dict[str, Any]]) -> list[str]:
    return [schema["function"]["name"] for schema in schemas]


def test_the_method_is_named_as_the_tool() -> None:
    assert Toolkit().reset_equipped_tools.__name__ == META


def test_every_group_is_a_switch() -> None:
    toolkit = workshop()

    assert switches(toolkit) == {
        "machines": {"default": False, "description": "Machines that need care.", "type": "boolean"},
        "_paint-shop": {"default": False, "description": "Colours and brushes.", "type": "boolean"},
    }
    assert list(switches(toolkit)) == ["machines", "_paint-shop"]


def test_the_tool_describes_itself() -> None:
    schema = workshop().get_json_schemas()[0]["function"]

    assert schema["description"].startswith("Choose the tool groups to work with from now on.\n")
    assert "required" not in schema["parameters"]


def test_the_schema_follows_the_groups() -> None:
    toolkit = workshop()
    seen = [list(switches(toolkit))]

    toolkit.create_tool_group("garden", "Outside.")
    seen.append(list(switches(toolkit)))
    toolkit.remove_tool_groups("machines")
    seen.append(list(switches(toolkit)))
    toolkit.groups["garden"].description = "In the rain."

    assert seen == [["machines", "_paint-shop"], ["machines", "_paint-shop", "garden"], ["_paint-shop", "garden"]]
    assert switches(toolkit)["garden"]["description"] == "In the rain."


def test_schemas_are_copies() -> None:
    toolkit = workshop()

    switches(toolkit).clear()

    assert list(switches(toolkit)) == ["machines", "_paint-shop"]


def test_without_groups_there_is_nothing_to_choose() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(toolkit.reset_equipped_tools)

    assert switches(toolkit) == {}
    assert toolkit.run(META).text == "All tool groups are now deactivated currently."


@pytest.mark.parametrize("arguments", ["coerce", "check", "pass"])
def test_a_choice_is_complete(arguments: str) -> None:
    toolkit = workshop(arguments=arguments)

    response = toolkit.run(META, machines=True)

    assert response.text == (
        "Now tool groups 'machines' are activated. You MUST follow these notes to use these tools:\n"
        "<notes>## About Tool Group 'machines'\nWear goggles.</notes>"
    )
    assert response.ok
    assert active(toolkit) == ["machines"]
    assert toolkit.run("drill").text == "a hole"


def test_no_choice_puts_everything_away() -> None:
    toolkit = workshop()

    response = toolkit.reset_equipped_tools(**{"_paint-shop": False})

    assert isinstance(response, ToolResponse)
    assert response.text == "All tool groups are now deactivated currently."
    assert active(toolkit) == []


@pytest.mark.parametrize("arguments", ["coerce", "check", "pass"])
@pytest.mark.parametrize("name", ["ghost", "basic"])
@pytest.mark.parametrize("value", [True, False])
def test_an_unknown_group_is_named_and_nothing_changes(arguments: str, name: str, value: bool) -> None:
    toolkit = workshop(arguments=arguments)

    response = toolkit.run(META, machines=True, **{name: value})

    assert response.code == "invalid_arguments"
    assert response.text == (
        f"Invalid arguments: unknown tool group '{name}', nothing was changed. "
        "The tool groups are 'machines', '_paint-shop'."
    )
    assert active(toolkit) == ["_paint-shop"]


def test_a_value_that_is_not_a_boolean_is_refused_and_nothing_changes() -> None:
    toolkit = workshop(arguments="pass")

    response = toolkit.run(META, **{"machines": True, "_paint-shop": "yes"})

    assert response.code == "invalid_arguments"
    assert response.text == (
        "Invalid arguments: the argument _paint-shop should be a bool value, but got <class 'str'>."
    )
    assert active(toolkit) == ["_paint-shop"]


def test_values_are_read_as_the_toolkit_reads_arguments() -> None:
    toolkit = workshop()

    assert toolkit.run(META, machines="true").ok
    assert active(toolkit) == ["machines"]
    assert toolkit.run(META, machines="perhaps").code == "invalid_arguments"
    assert workshop(arguments="check").run(META, machines="true").code == "invalid_arguments"
    assert active(toolkit) == ["machines"]


def test_a_group_made_after_the_tool_may_be_chosen() -> None:
    toolkit = workshop()
    toolkit.create_tool_group("kwargs", "An odd name.")

    assert toolkit.run(META, kwargs=True).text == "Now tool groups 'kwargs' are activated."


def test_the_tool_shows_its_groups_in_its_extended_schema() -> None:
    toolkit = workshop()
    tool = toolkit.tools[META]

    assert tool.json_schema["function"]["parameters"]["properties"] == {}
    assert tool.extended_json_schema["function"]["parameters"]["properties"] == switches(toolkit)
    assert tool.run_in == "inline"


def test_another_name_is_the_same_tool() -> None:
    toolkit = workshop()
    toolkit.register_tool_function(toolkit.reset_equipped_tools, func_name="equip")

    assert switches(toolkit, "equip") == switches(toolkit)
    assert toolkit.run("equip", machines=True).ok


def test_a_subclass_may_say_more() -> None:
    class Talking(Toolkit):
        def reset_equipped_tools(self, **kwargs: bool) -> ToolResponse:
            """Choose your tools."""
            response = super().reset_equipped_tools(**kwargs)
            response.metadata = {"chosen": kwargs}
            return response

    toolkit = Talking()
    toolkit.create_tool_group("machines", "Machines.")
    toolkit.register_tool_function(toolkit.reset_equipped_tools)

    assert list(switches(toolkit)) == ["machines"]
    assert toolkit.tools[META].run_in == "thread"
    assert toolkit.run(META, machines=True).metadata == {"chosen": {"machines": True}}


def test_a_schema_of_ones_own_is_extended_too() -> None:
    parameters = {"type": "object", "properties": {"why": {"type": "string"}}, "additionalProperties": False}
    toolkit = Toolkit()
    toolkit.create_tool_group("machines", "Machines.")
    toolkit.register_tool_function(
        toolkit.reset_equipped_tools,
        json_schema={
            "type": "function",
            "function": {"name": META, "description": "Choose.", "parameters": parameters},
        },
    )

    assert list(switches(toolkit)) == ["why", "machines"]
    assert toolkit.run(META, machines=True).ok


def test_another_function_of_that_name_is_a_tool_like_any_other() -> None:
    def reset_equipped_tools(level: int) -> str:
        """Reset."""
        return str(level)

    toolkit, other = Toolkit(), Toolkit()
    toolkit.create_tool_group("machines", "Machines.")
    toolkit.register_tool_function(reset_equipped_tools)
    toolkit.register_tool_function(other.reset_equipped_tools, func_name="theirs")

    assert list(switches(toolkit)) == ["level"]
    assert switches(toolkit, "theirs") == {}


def test_a_model_and_the_groups_are_both_shown() -> None:
    class Reason(BaseModel):
        reason: str

    toolkit = workshop()

    toolkit.set_extended_model(META, Reason)

    assert list(switches(toolkit)) == ["reason", "machines", "_paint-shop"]


def test_a_switch_is_seen_whole() -> None:
    toolkit = Toolkit()
    for name in ("a", "b"):
        toolkit.create_tool_group(name, name)
        toolkit.register_tool_function(look, name, func_name=f"in_{name}")
    toolkit.reset_equipped_tools(a=True)
    halves: list[list[str]] = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            seen = names(toolkit.get_json_schemas())
            if len(seen) != 1:
                halves.append(seen)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(300):
        toolkit.reset_equipped_tools(b=True)
        toolkit.reset_equipped_tools(a=True)
    done.set()
    watcher.join()

    assert halves == []


def test_a_toolkit_with_its_meta_tool_is_collected() -> None:
    toolkit = workshop()
    toolkit.get_json_schemas()
    gone = weakref.ref(toolkit)

    del toolkit
    gc.collect()

    assert gone() is None


def test_schemas_of_named_groups_are_listed_whether_they_are_active_or_not() -> None:
    toolkit = workshop()

    assert names(toolkit.get_json_schemas()) == [META, "look"]
    assert names(toolkit.get_json_schemas(["machines"])) == [META, "drill", "look"]
    assert names(toolkit.get_json_schemas(group_names=["basic"])) == [META, "look"]
    assert names(toolkit.get_json_schemas([])) == [META, "look"]
    assert active(toolkit) == ["_paint-shop"]


def test_notes_of_named_groups_are_given_whether_they_are_active_or_not() -> None:
    toolkit = workshop()

    assert toolkit.get_tool_group_notes() == toolkit.get_activated_notes() == ""
    assert toolkit.get_tool_group_notes(["machines"]) == "## About Tool Group 'machines'\nWear goggles."
    toolkit.update_tool_groups(["machines"], active=True)
    assert toolkit.get_tool_group_notes() == toolkit.get_activated_notes() != ""
    assert toolkit.get_tool_group_notes(["_paint-shop", "basic"]) == ""


def test_groups_that_do_not_exist_cannot_be_listed() -> None:
    toolkit = workshop()

    with pytest.raises(UnknownGroupError, match=r"^Tool group 'ghost' not found\.$"):
        toolkit.get_json_schemas(["machines", "ghost"])
    with pytest.raises(UnknownGroupError):
        toolkit.get_tool_group_notes(["ghost"])
    with pytest.raises(TypeError):
        toolkit.get_json_schemas(3)  # type: ignore[arg-type]
