"""Roles: what each lets see, how a view follows one, and the file they are kept in."""

import copy
import json
import pickle
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.toolkits import named_tool
from toolcrib import Role, Roles, Toolkit, ToolkitView, errors


def listed(view: ToolkitView) -> list[str]:
    return list(view.tools)


def workshop() -> Toolkit:
    toolkit = Toolkit()
    toolkit.register_tool_function(named_tool("look"))
    for group in ["org_management", "files", "web"]:
        toolkit.register_group(group, "", [named_tool(f"{group}_tool")])
    return toolkit


ALL = ["look", "org_management_tool", "files_tool", "web_tool"]


def roles(*given: Role, default: list[str] | None = None) -> Roles:
    made = Roles(default)
    for role in given:
        made.add(role)
    return made


@pytest.mark.parametrize(
    ("groups", "default", "expected"),
    [
        (None, None, ALL),
        (None, ["web"], ["web_tool"]),
        (None, [], []),
        ([], None, []),
        (["files", "nowhere", "basic"], ["web"], ["look", "files_tool"]),
    ],
)
def test_a_role_sees_its_groups_none_or_the_default(
    groups: list[str] | None, default: list[str] | None, expected: list[str]
) -> None:
    toolkit, role = workshop(), Role("agent", "Be kind.", groups)
    kept = roles(role, default=default)

    assert listed(toolkit.view_for("agent", kept)) == expected
    assert listed(toolkit.view_for(role, kept)) == expected
    assert toolkit.view_for("agent", kept).caller == "agent"
    assert toolkit.view_for("agent", kept, caller="agent-7").caller == "agent-7"


@pytest.mark.filterwarnings("ignore:role .* cannot be looked up", "ignore:unknown role")
@pytest.mark.parametrize("name", [None, "", "Reader", "reader ", "rеader", "reader\u200b", "basic", "\ud800"])
def test_who_has_no_role_sees_nothing(name: str | None) -> None:
    toolkit = workshop()

    assert listed(toolkit.view_for(name, roles(Role("reader")))) == []
    assert listed(toolkit.view_for(name)) == []


@pytest.mark.parametrize("wrong", [3, b"reader", ["reader"], object()])
def test_a_view_is_for_a_role_or_its_name(wrong: Any) -> None:
    with pytest.raises(TypeError, match="role must be a Role, its name or None"):
        workshop().view_for(wrong, Roles())


def test_the_root_role_has_exactly_one_group_and_cannot_be_changed() -> None:
    toolkit, kept = workshop(), Roles(default=["web"])

    for view in (
        toolkit.view_for("root"),
        toolkit.view_for("root", kept),
        toolkit.view_for(Role("root", "", ["web"]), kept),
    ):
        assert listed(view) == ["org_management_tool"]
    for change in (
        lambda: kept.add(Role("root")),
        lambda: kept.update("root", tool_groups=["web"]),
        lambda: kept.remove("root"),
    ):
        with pytest.raises(errors.SystemRoleError) as refused:
            change()
        assert refused.value.code == "cannot_modify_system_role"
    assert "root" not in kept
    assert kept.get("root") is None


def test_a_view_follows_its_role_until_that_is_removed() -> None:
    toolkit, kept = workshop(), roles(Role("reader", "", ["files"]))
    view = toolkit.view_for("reader", kept)
    narrowed = view.view(exclude=["look"])
    before = view.get_json_schemas_bytes()

    kept.update("reader", tool_groups=["web", "basic"])
    assert listed(view) == ["look", "web_tool"]
    assert listed(narrowed) == ["web_tool"]
    assert view.get_json_schemas_bytes() != before
    kept.update("reader", prompt="Read.")
    assert listed(view) == ["look", "web_tool"]
    kept.update("reader", tool_groups=None)
    assert listed(view) == ALL
    assert kept.remove("reader").prompt == "Read."
    assert listed(view) == []
    kept.add(Role("reader"))

    assert listed(view) == []
    assert listed(toolkit.view_for("reader", kept)) == ALL


def test_roles_are_looked_up_like_in_a_dictionary() -> None:
    kept = roles(Role("b"), Role("a"))

    assert list(kept) == ["b", "a"]
    assert len(kept) == 2
    assert "a" in kept
    assert 3 not in kept
    assert "c" not in kept
    assert kept.get("\ud800") is None
    assert Roles()
    assert repr(kept) == "Roles(['b', 'a'])"
    assert kept.default is None


def test_a_role_that_is_added_has_a_record() -> None:
    kept = roles(Role("reader", "Read.", ["files"], details={"mood": {"today": [1, 2.5]}}))

    role = kept.get("reader")

    assert role is not None
    assert (role.name, role.prompt, role.tool_groups) == ("reader", "Read.", ["files"])
    assert role.details["mood"] == {"today": [1, 2.5]}
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", role.details["id"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", role.details["createdAt"])


def test_invalid_changes_of_roles_raise() -> None:
    kept = roles(Role("reader", "", []))

    with pytest.raises(errors.DuplicateRoleError):
        kept.add(Role("reader"))
    with pytest.raises(errors.InvalidRoleError):
        kept.add(Role(""))
    changes: list[Callable[[], object]] = [lambda: kept.update("nobody"), lambda: kept.remove("nobody")]
    for change in changes:
        with pytest.raises(errors.UnknownRoleError, match="nobody") as refused:
            change()
        assert refused.value.code == "role_not_found"
    with pytest.raises(TypeError, match="tool_groups must be a list of strings"):
        kept.update("reader", tool_groups=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="tool_groups must be a list of strings"):
        Role("a", "", 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="default must be a list of strings"):
        Roles(3)  # type: ignore[arg-type]
    role = kept.get("reader")
    assert role is not None
    assert role.tool_groups == []


def test_a_role_is_a_value() -> None:
    role = Role("reader", "Read.", ("files",), {"mood": 1})

    assert role == Role("reader", "Read.", ["files"], {"mood": 1}) != Role("reader", "Read.", None)
    assert pickle.loads(pickle.dumps(role)) == copy.deepcopy(role) == role
    assert repr(role) == "Role(name='reader', prompt='Read.', tool_groups=['files'])"
    role.details["mood"] = 2
    assert role.details == {"mood": 1}


def test_roles_come_back_from_their_file(tmp_path: Path) -> None:
    path = tmp_path / "roles.json"
    saved = roles(Role("a", "A.", ["z", "b", "z"]), Role("b", "", []), Role("ü", "\u2028", None))
    loaded = roles(Role("gone"))

    saved.save(path)
    assert loaded.load(path) == []

    assert [loaded.get(name) for name in loaded] == [saved.get(name) for name in saved]
    record = json.loads(path.read_text(encoding="utf-8"))["roles"][0]
    assert {
        key: record[key] for key in ("name", "rolePrompt", "toolGroups", "status", "createdBy", "llmServiceId")
    } == {
        "name": "a",
        "rolePrompt": "A.",
        "toolGroups": ["z", "b", "z"],
        "status": "active",
        "createdBy": None,
        "llmServiceId": None,
    }


def test_views_follow_what_is_loaded(tmp_path: Path) -> None:
    toolkit, kept, path = workshop(), roles(Role("a", "", ["web"]), Role("b")), tmp_path / "roles.json"
    views = [toolkit.view_for(name, kept) for name in ("a", "b")]
    path.write_text('{"roles": [{"name": "a", "toolGroups": ["files"]}]}')

    kept.load(path)

    assert [listed(view) for view in views] == [["files_tool"], []]


def test_a_file_keeps_what_it_has_beside_the_roles_in_use(tmp_path: Path) -> None:
    path = tmp_path / "org.json"
    gone = {"id": "1", "name": "gone", "rolePrompt": "", "toolGroups": None, "status": "deleted", "deleteReason": "old"}
    root = {"id": "root", "name": "root", "rolePrompt": "", "toolGroups": ["web"], "status": "active"}
    path.write_text(json.dumps({"roles": [gone, root], "agents": [{"id": "x"}], "terminations": []}))
    kept = Roles()

    kept.load(path)
    kept.add(Role("new"))
    kept.save(path)

    saved = json.loads(path.read_text())
    assert [record["name"] for record in saved["roles"]] == ["new", "gone"]
    assert saved["roles"][1] == gone
    assert (saved["agents"], saved["terminations"]) == ([{"id": "x"}], [])
    assert "gone" not in kept
    with pytest.warns(UserWarning, match="unknown role `gone`"):
        assert listed(workshop().view_for("gone", kept)) == []


MALFORMED: list[tuple[str, str]] = [
    ("", "invalid JSON"),
    ("[]", "expected an object, got a list"),
    ('{"role": []}', "missing list `roles`"),
    ('{"roles": [{"name": "ok"}, {"name": 3}]}', r"roles\[1\]\.name: expected a string, got a number"),
    ('{"roles": [{"name": "a", "toolGroups": "web"}]}', r"roles\[0\]\.toolGroups: expected a list of ids or null"),
    ('{"roles": [{"name": "a", "toolGroups": [1]}]}', r"roles\[0\]\.toolGroups: expected an id at 0, got a number"),
    ('{"roles": [{"name": "a"}, {"name": "a"}]}', r"roles\[1\]\.name: the name `a` is taken by an earlier record"),
    ('{"roles": [{"name": "a", "status": "up"}]}', r"roles\[0\]\.status: expected `active` or `deleted`"),
    ("[" * 100_000, "invalid JSON"),
    ('{"roles": [' + '{"name": 1},' * 50 + '{"name": "a"}]}', "and 42 more"),
]


@pytest.mark.parametrize(("content", "reason"), MALFORMED)
def test_a_malformed_file_is_refused_and_changes_nothing(tmp_path: Path, content: str, reason: str) -> None:
    toolkit, kept, path = workshop(), roles(Role("reader", "", ["files"])), tmp_path / "roles.json"
    view = toolkit.view_for("reader", kept)
    path.write_text(content)

    with pytest.raises(errors.RoleFileError, match=reason) as refused:
        kept.load(path)

    assert str(path) in str(refused.value)
    assert list(kept) == ["reader"]
    assert listed(view) == ["files_tool"]


def test_the_records_that_are_roles_can_be_had_without_the_others(tmp_path: Path) -> None:
    kept, path = Roles(), tmp_path / "roles.json"
    path.write_text('{"roles": [{"name": 1}, {"name": "a", "toolGroups": ["web"]}, 7]}')

    problems = kept.load(path, strict=False)

    assert problems == ["roles[0].name: expected a string, got a number", "roles[2]: expected an object, got a number"]
    assert list(kept) == ["a"]


def test_a_missing_file_and_a_missing_folder_are_reported(tmp_path: Path) -> None:
    with pytest.raises(errors.MissingFileError):
        Roles().load(tmp_path / "none.json")
    with pytest.raises(errors.MissingFileError):
        Roles().save(tmp_path / "no" / "folder.json")


def test_of_ten_thousand_tools_a_role_sees_its_ten() -> None:
    toolkit = Toolkit()
    toolkit.register_group("many", "", [named_tool(f"many_{index}") for index in range(9_990)])
    toolkit.register_group("few", "", [named_tool(f"few_{index}") for index in range(10)])

    view = toolkit.view_for("agent", roles(Role("agent", "", ["few"])))

    assert listed(view) == [f"few_{index}" for index in range(10)]
    assert "many_0" not in view


def test_roles_change_in_threads_while_others_look(tmp_path: Path) -> None:
    toolkit, kept = workshop(), roles(Role("reader", "", ["files"]))
    view, wrong = toolkit.view_for("reader", kept), []
    stop = threading.Event()

    def change() -> None:
        for turn in range(200):
            kept.update("reader", tool_groups=[["files"], ["web"]][turn % 2])

    def keep() -> None:
        for turn in range(20):
            kept.save(tmp_path / "roles.json")
            kept.add(Role(f"r{threading.get_ident()}-{turn}"))

    def look() -> None:
        while not stop.is_set():
            if (seen := listed(view)) not in (["files_tool"], ["web_tool"]):
                wrong.append(seen)

    workers = [threading.Thread(target=target) for target in (change, keep, keep)]
    watcher = threading.Thread(target=look)
    for thread in (watcher, *workers):
        thread.start()
    for worker in workers:
        worker.join()
    stop.set()
    watcher.join()

    assert wrong == []
    assert len(kept) == 41
    assert Roles().load(tmp_path / "roles.json") == []
