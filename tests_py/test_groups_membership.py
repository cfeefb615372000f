"""Groups that share tools: who holds what, what goes with a group, and what no group can take from another."""

import gc
import logging
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from support.toolkits import definition, listed
from toolcrib import RegisteredToolFunction, Toolkit, errors
from toolcrib._core import _ToolRoster


def look() -> str:
    """Look around."""
    return "a workshop"


def drill() -> str:
    """Drill a hole."""
    return "a hole"


def read_file() -> str:
    """Read a file."""
    return "text"


def workshop() -> Toolkit:
    """Make a toolkit with `look` in `basic`, `read_file` in `files`, and both in `desk`."""
    toolkit = Toolkit(run_in="inline")
    toolkit.register_tool_function(look)
    toolkit.register_group("files", "The disk.", [read_file])
    toolkit.register_group("desk", "What is at hand.", ["look", "read_file"])
    return toolkit


def test_a_tool_is_in_several_groups() -> None:
    toolkit = workshop()

    assert toolkit.tool_groups_of("read_file") == ["files", "desk"]
    assert toolkit.tool_group("read_file") == "desk"
    assert toolkit.tools["read_file"].group == "files"
    assert toolkit.tools["read_file"].groups == ["files", "desk"]
    assert toolkit.is_tool_in_groups("look", {"desk"})
    assert toolkit.is_tool_in_groups("look", ("basic",))
    assert not toolkit.is_tool_in_groups("look", ["files"])
    assert not toolkit.is_tool_in_groups("look", [])
    assert toolkit.tool_group("nothing") is None
    assert toolkit.tool_groups_of("nothing") == []


def test_all_groups_are_listed_with_their_tools() -> None:
    toolkit = workshop()

    assert toolkit.all_group_ids() == ["basic", "files", "desk"]
    assert toolkit.list_groups()[2] == {
        "id": "desk",
        "description": "What is at hand.",
        "tool_count": 2,
        "tools": ["look", "read_file"],
        "reserved": False,
        "active": True,
    }
    assert [group["reserved"] for group in toolkit.list_groups()] == [True, False, False]


def test_a_tool_may_be_called_while_any_of_its_groups_is_active() -> None:
    toolkit = workshop()

    toolkit.update_tool_groups(["files"], active=False)
    first = toolkit.run("read_file")
    toolkit.groups["desk"].active = False
    second = toolkit.run("read_file")

    assert (first.text, second.code) == ("text", "inactive_group")
    assert listed(toolkit) == ["look"]


def test_unregistering_takes_out_only_what_no_other_group_holds() -> None:
    toolkit = workshop()
    toolkit.register_group("machines", "Loud.", [drill, "read_file"])
    tool = toolkit.tools["read_file"]

    toolkit.unregister_group("machines")
    toolkit.unregister_group("files")

    assert list(toolkit.tools) == ["look", "read_file"]
    assert tool.group == "desk"
    assert toolkit.run("read_file").text == "text"
    assert toolkit.run("drill").code == "unknown_tool"


def test_registering_an_id_again_replaces_the_group_in_place_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    toolkit = workshop()
    toolkit.register_group("machines", "Loud.", [drill])
    group = toolkit.groups["files"]

    with caplog.at_level(logging.WARNING, "toolcrib"):
        toolkit.register_group("files", "Another disk.", [drill_again := renamed(drill)], notes="Mind it.")

    assert "duplicate_group_id" in caplog.text
    assert toolkit.all_group_ids() == ["basic", "files", "desk", "machines"]
    assert toolkit.tool_groups_of("read_file") == ["desk"]
    assert toolkit.tools["drill_again"].original_func is drill_again
    assert (group.description, group.notes) == ("Another disk.", "Mind it.")


def renamed(function: Any) -> Any:
    def drill_again() -> str:
        return str(function())

    return drill_again


def test_a_module_can_be_loaded_anew() -> None:
    toolkit = Toolkit(run_in="inline")
    toolkit.register_group("module", "", [lambda_named("act", 1)])

    toolkit.register_group("module", "", [lambda_named("act", 2)])

    assert toolkit.run("act").metadata == {"value": 2}


def lambda_named(name: str, value: int) -> Any:
    def function() -> int:
        return value

    function.__name__ = name
    return function


def test_no_group_takes_the_name_of_a_tool_that_another_holds() -> None:
    toolkit = workshop()

    with pytest.raises(errors.DuplicateToolError, match="read_file"):
        toolkit.register_group("evil", "", [drill, lambda_named("read_file", 0)])

    assert toolkit.run("read_file").text == "text"
    assert toolkit.tool_groups_of("read_file") == ["files", "desk"]
    assert "drill" not in toolkit.tools
    assert "evil" not in toolkit.groups


def test_a_group_that_lists_anothers_tool_does_not_own_it() -> None:
    toolkit = workshop()
    toolkit.register_group("evil", "", ["read_file"], active=False)

    assert toolkit.tool_group("read_file") == "evil"
    assert toolkit.is_tool_in_groups("read_file", ["files"])
    assert toolkit.run("read_file").text == "text"
    toolkit.unregister_group("evil")
    assert toolkit.run("read_file").text == "text"


BAD_TOOLS: list[tuple[Any, str]] = [
    ("look", "its tools must be a list, not str"),
    (b"look", "its tools must be a list, not bytes"),
    (3, "its tools must be a list, not int"),
    (["look", 3], "tool 1 is neither a name nor callable but int"),
    ([None], "tool 0 is neither a name nor callable but NoneType"),
    (["look", "missing"], "unknown tool `missing`"),
    (["lооk"], "unknown tool `lооk`"),
]


@pytest.mark.parametrize(("tools", "reason"), BAD_TOOLS)
def test_what_does_not_describe_a_group_is_refused_whole(tools: Any, reason: str) -> None:
    toolkit = workshop()
    before = toolkit.list_groups()

    with pytest.raises(errors.InvalidGroupError) as refused:
        toolkit.register_group("desk", "Another.", tools)

    assert str(refused.value) == f"invalid group `desk`: {reason}"
    assert refused.value.code == "invalid_group_def"
    assert toolkit.list_groups() == before


@pytest.mark.parametrize("group", ["vault", "basic"])
def test_a_reserved_group_is_neither_replaced_nor_taken_out(group: str) -> None:
    toolkit = workshop()
    toolkit.register_group("vault", "Locked.", ["look"], reserved=True)
    before = toolkit.list_groups()

    with pytest.raises(errors.ReservedGroupError) as taken:
        toolkit.register_group(group, "Mine.", 3)  # type: ignore[arg-type]
    with pytest.raises(errors.ReservedGroupError) as removed:
        toolkit.unregister_group(group)
    with pytest.raises((errors.ReservedGroupRemovalError, errors.BasicGroupError)):
        toolkit.remove_tool_groups(["files", group])

    assert (taken.value.code, removed.value.code) == ("reserved_group_id", "cannot_unregister_reserved")
    assert toolkit.list_groups() == before


def test_a_group_that_is_not_there_cannot_be_unregistered() -> None:
    with pytest.raises(errors.UnknownGroupError) as refused:
        Toolkit().unregister_group("nowhere")

    assert refused.value.code == "group_not_found"


@pytest.mark.parametrize("group", ["", " ", "g" * 1_000_000, "with\0nul", "\u202egroup", "näme", "na\u0308me"])
def test_any_text_is_an_id_and_no_two_texts_are_the_same(group: str) -> None:
    toolkit = workshop()

    toolkit.register_group(group, "Strange.", ["look"])

    assert toolkit.is_tool_in_groups("look", [group])
    assert toolkit.all_group_ids()[-1] == group
    toolkit.unregister_group(group)
    assert toolkit.tool_groups_of("look") == ["basic", "desk"]


@pytest.mark.parametrize("ids", [b"desk", 3, None, [3]])
def test_ids_are_a_list_of_strings(ids: Any) -> None:
    with pytest.raises(TypeError, match="ids must be a list of strings"):
        workshop().is_tool_in_groups("look", ids)


def test_an_extended_tool_stays_in_its_groups() -> None:
    toolkit = workshop()

    toolkit.set_extended_model("read_file", None)
    toolkit.unregister_group("files")

    assert toolkit.tools["read_file"].groups == ["desk"]


def test_a_replaced_tool_is_in_the_group_of_the_new_one_only() -> None:
    toolkit = workshop()

    toolkit.register_tool_function(lambda_named("read_file", 5), namesake_strategy="override")

    assert toolkit.tool_groups_of("read_file") == ["basic"]
    assert list(toolkit.tools) == ["look", "read_file"]


def test_clearing_takes_everything_and_frees_reserved_ids() -> None:
    toolkit = workshop()
    toolkit.register_group("vault", "Locked.", reserved=True)

    toolkit.clear()

    assert toolkit.all_group_ids() == ["basic"]
    toolkit.register_group("vault", "Open.")


def test_a_tool_whose_end_asks_the_toolkit_does_not_hang_it() -> None:
    toolkit = Toolkit()
    seen: list[list[str]] = []

    class Talkative:
        def __call__(self) -> None: ...

        def __del__(self) -> None:
            seen.append(toolkit.all_group_ids())

    def named(name: str) -> Talkative:
        tool = Talkative()
        tool.__name__ = name  # type: ignore[attr-defined]
        return tool

    toolkit.register_group("g", "", [named("a")])
    with pytest.raises(errors.InvalidGroupError):
        toolkit.register_group("h", "", [named("b"), "missing"])
    toolkit.unregister_group("g")
    gc.collect()

    assert seen == [["basic", "g"], ["basic"]]


def test_a_group_lets_go_of_what_it_held() -> None:
    toolkit = Toolkit()
    toolkit.register_group("g", "", [drill])
    held: weakref.ref[RegisteredToolFunction] = weakref.ref(toolkit.tools["drill"])

    toolkit.register_group("g", "", [])
    gc.collect()

    assert held() is None


@pytest.mark.filterwarnings("ignore:unknown group")
def test_groups_come_and_go_in_threads_while_others_look() -> None:
    toolkit = workshop()
    mistakes: list[object] = []
    stop = threading.Event()

    def change(index: int) -> None:
        for turn in range(60):
            toolkit.register_group(f"g{index}", "", ["look", lambda_named(f"own_{index}_{turn}", turn)])
            toolkit.unregister_group(f"g{index}")

    def watch() -> None:
        view = toolkit.view(groups=["g0", "g1", "desk"])
        while not stop.is_set():
            names = [schema["function"]["name"] for schema in view.get_json_schemas()]
            if names[:2] != ["look", "read_file"] or not toolkit.is_tool_in_groups("look", ["desk"]):
                mistakes.append(names)

    watcher = threading.Thread(target=watch)
    watcher.start()
    changers = [threading.Thread(target=change, args=(index,)) for index in range(3)]
    for changer in changers:
        changer.start()
    for changer in changers:
        changer.join()
    stop.set()
    watcher.join()

    assert mistakes == []
    assert toolkit.all_group_ids() == ["basic", "files", "desk"]
    assert list(toolkit.tools) == ["look", "read_file"]


def test_a_roster_copies_definitions_in_and_out() -> None:
    roster, given = _ToolRoster(), definition("a", "one")
    roster.register("g", {"description": "G", "tools": [given]})

    given["function"]["description"] = "changed"
    roster.definitions(["g"])[0]["function"]["description"] = "changed too"

    assert roster.definitions(["g"]) == [definition("a", "one")]


def test_a_roster_keeps_groups_that_share_names() -> None:
    roster = _ToolRoster()

    assert roster.register("g", {"tools": [definition("a"), definition("b", "g")]}) is False
    assert (
        roster.register("h", {"description": None, "tools": (definition("b", "h"), {}, None, {"function": {}})})
        is False
    )
    assert roster.holder("b") == "h"
    assert roster.holders("b") == ["g", "h"]
    assert roster.is_in("b", ["g"])
    assert not roster.is_in("b", [])
    assert roster.definitions(["h", "nowhere", "g"]) == [definition("b", "h"), definition("a")]
    roster.unregister("h")

    assert (roster.holder("b"), roster.ids(), roster.tool_names()) == ("g", ["g"], ["a", "b"])
    assert roster.get("g") == {"id": "g", "description": "", "tool_count": 2, "tools": ["a", "b"], "reserved": False}
    assert roster.list() == [roster.get("g")]
    assert len(roster) == 1
    assert "g" in roster
    assert roster.get("h") is None


@pytest.mark.parametrize("wrong", [None, "x", {}, {"tools": "x"}, {"tools": None}, {"tools": [], "description": 3}, []])
def test_a_roster_refuses_invalid_groups(wrong: Any) -> None:
    roster = _ToolRoster()
    roster.register("g", {"tools": [definition("a")]})

    with pytest.raises(errors.InvalidGroupError):
        roster.register("g", wrong)

    assert roster.tool_names() == ["a"]


def test_a_roster_refuses_invalid_json() -> None:
    broken = definition("a")
    broken["function"]["extra"] = object()

    with pytest.raises(errors.InvalidGroupError, match=r"tool 0 is not JSON: \$\.function\.extra"):
        _ToolRoster().register("g", {"tools": [broken]})


def test_a_reserved_id_of_a_roster_is_refused_before_its_definition_is_read() -> None:
    roster = _ToolRoster()
    roster.register("g", {"tools": []}, reserved=True)

    with pytest.raises(errors.ReservedGroupError) as taken:
        roster.register("g", None)
    with pytest.raises(errors.ReservedGroupRemovalError):
        roster.unregister("g")
    roster.update("g", [definition("a")])

    assert taken.value.code == "reserved_group_id"
    assert roster.tool_names() == ["a"]
    assert roster.is_reserved("g")


def test_a_group_that_is_not_in_a_roster_is_not_found() -> None:
    roster = _ToolRoster()
    changes: list[Callable[[], object]] = [
        lambda: roster.update("x", []),
        lambda: roster.unregister("x"),
        lambda: roster.reserve("x"),
    ]

    for change in changes:
        with pytest.raises(errors.UnknownGroupError, match="x"):
            change()
