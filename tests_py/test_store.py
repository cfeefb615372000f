"""Saving to a file and loading from it: what is kept, and how damaged files are handled."""

import errno
import fcntl
import hashlib
import json
import os
import stat
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from toolcrib import ToolGroup, Toolkit, errors


@pytest.fixture
def toolkit() -> Toolkit:
    toolkit = Toolkit()
    toolkit.create_tool_group("web", "The web.", active=True, notes="Be polite.\n\nÜber alles: 🧰")
    toolkit.create_tool_group("files", "The disk.")
    return toolkit


@pytest.fixture
def saved(toolkit: Toolkit, tmp_path: Path) -> Path:
    path = tmp_path / "state.json"
    toolkit.save(path)
    return path


def look() -> str:
    return "seen"


def test_what_was_saved_comes_back(toolkit: Toolkit, saved: Path) -> None:
    other = Toolkit()

    other.load(str(saved))

    assert list(other.groups.items()) == list(toolkit.groups.items())


def test_groups_that_are_there_become_what_they_were_and_keep_their_tools(toolkit: Toolkit, saved: Path) -> None:
    toolkit.register_tool_function(look, group_name="web")
    before = repr(toolkit.groups["web"])
    web = toolkit.groups["web"]
    web.active, web.description, web.notes = False, "Changed.", None

    toolkit.load(saved)

    assert repr(web) == before
    assert [schema["function"]["name"] for schema in toolkit.get_json_schemas()] == ["look"]


def test_groups_that_are_not_in_the_file_are_switched_off_and_come_last(saved: Path) -> None:
    toolkit = Toolkit()
    toolkit.create_tool_group("new", "New.", active=True)
    toolkit.create_tool_group("files", "Other.", active=True)

    toolkit.load(saved)

    assert {name: group.active for name, group in toolkit.groups.items()} == {"web": True, "files": False, "new": False}
    assert list(toolkit.groups) == ["web", "files", "new"]


def test_the_file_is_json_with_its_format_its_version_and_a_checksum(saved: Path) -> None:
    file = json.loads(saved.read_text(encoding="utf-8"))

    assert list(file) == ["format", "version", "checksum", "state"]
    assert (file["format"], file["version"]) == ("toolcrib-state", 1)
    assert file["state"]["groups"][1] == {"name": "files", "description": "The disk.", "notes": None, "active": False}


def test_nothing_else_is_left_in_the_folder(toolkit: Toolkit, saved: Path) -> None:
    for _ in range(3):
        toolkit.save(saved)

    assert os.listdir(saved.parent) == [saved.name]


def test_a_new_file_is_for_its_owner_only(saved: Path) -> None:
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600


def test_a_file_that_is_there_keeps_its_permissions(toolkit: Toolkit, saved: Path) -> None:
    saved.chmod(0o664)

    toolkit.save(saved)

    assert stat.S_IMODE(saved.stat().st_mode) == 0o664


def test_a_link_is_written_through(toolkit: Toolkit, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "first").symlink_to("second")
    (tmp_path / "second").symlink_to("real/state.json")

    toolkit.save(tmp_path / "first")
    toolkit.save(tmp_path / "first")

    assert (tmp_path / "first").is_symlink()
    assert os.listdir(tmp_path / "real") == ["state.json"]
    assert sorted(os.listdir(tmp_path)) == ["first", "real", "second"]


def test_a_relative_path_is_a_path(toolkit: Toolkit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    toolkit.save("state.json")

    assert os.listdir(tmp_path) == ["state.json"]


def test_a_name_of_any_length_and_any_bytes_can_be_saved_to(toolkit: Toolkit, tmp_path: Path) -> None:
    for name in ("x" * 255, "\udcff", "ü 🧰"):
        toolkit.save(tmp_path / name)

        assert os.listdir(tmp_path) == [name]
        (tmp_path / name).unlink()


def temporary(path: Path, part: str) -> Path:
    """Name a file as one is named that is being written for `path`."""
    mark = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]
    return path.parent / f".toolcrib-{mark}-{part}.tmp"


def test_what_a_dead_writer_left_is_taken_away(toolkit: Toolkit, saved: Path) -> None:
    temporary(saved, "0123456789abcdef").write_text("half")
    other = temporary(saved.with_name("other.json"), "0123456789abcdef")
    other.write_text("half")

    toolkit.save(saved)

    assert sorted(os.listdir(saved.parent)) == sorted([saved.name, other.name])


def test_what_another_writer_is_at_is_left_alone(toolkit: Toolkit, saved: Path) -> None:
    theirs = temporary(saved, "0123456789abcdef")
    with open(theirs, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)

        toolkit.save(saved)

        assert theirs.exists()
    toolkit.save(saved)
    assert not theirs.exists()


def groups_of(toolkit: Toolkit) -> list[tuple[str, ToolGroup]]:
    return list(toolkit.groups.items())


def refused(toolkit: Toolkit, path: Path, error: type[Exception]) -> Exception:
    """Load a file that cannot be used, and see that nothing has changed."""
    before = [(name, repr(group)) for name, group in groups_of(toolkit)]

    with pytest.raises(error) as caught:
        toolkit.load(path)

    assert [(name, repr(group)) for name, group in groups_of(toolkit)] == before
    assert str(path) in str(caught.value)
    return caught.value


def test_a_missing_file_is_a_file_not_found(toolkit: Toolkit, tmp_path: Path) -> None:
    error: Any = refused(toolkit, tmp_path / "nowhere", FileNotFoundError)

    assert isinstance(error, errors.MissingFileError)
    assert (error.errno, error.filename) == (errno.ENOENT, str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    "text", [b"hello", b"{}", b"[]", b"\x00\xff", b'{"format": "other"}', b'{"active_groups": []}']
)
def test_a_file_of_something_else_is_foreign(toolkit: Toolkit, saved: Path, text: bytes) -> None:
    saved.write_bytes(text)

    refused(toolkit, saved, errors.ForeignFileError)


def test_a_file_that_is_cut_off_is_damaged(toolkit: Toolkit, saved: Path) -> None:
    whole = saved.read_bytes()

    for end in (0, 40, len(whole) // 2, len(whole) - 2):
        saved.write_bytes(whole[:end])

        refused(toolkit, saved, errors.DamagedFileError)


def test_a_file_that_was_changed_is_damaged(toolkit: Toolkit, saved: Path) -> None:
    saved.write_text(saved.read_text(encoding="utf-8").replace('"active": false', '"active": true'), encoding="utf-8")

    refused(toolkit, saved, errors.DamagedFileError)


def test_a_file_with_more_after_its_end_is_damaged(toolkit: Toolkit, saved: Path) -> None:
    saved.write_bytes(saved.read_bytes() + b"}")

    refused(toolkit, saved, errors.DamagedFileError)


def test_a_newer_file_says_so(toolkit: Toolkit, saved: Path) -> None:
    saved.write_text(saved.read_text(encoding="utf-8").replace('"version": 1', '"version": 2'), encoding="utf-8")

    error = refused(toolkit, saved, errors.NewerFileError)

    assert "version 2" in str(error)


def test_a_file_that_is_too_large_is_not_read(toolkit: Toolkit, saved: Path) -> None:
    with open(saved, "r+b") as file:
        file.truncate(1 << 40)

    refused(toolkit, saved, errors.FileTooLargeError)


def test_a_state_that_is_too_large_is_not_saved(toolkit: Toolkit, saved: Path) -> None:
    before = saved.read_bytes()
    toolkit.create_tool_group("large", "x" * (16 << 20))

    with pytest.raises(errors.FileTooLargeError):
        toolkit.save(saved)

    assert saved.read_bytes() == before


def test_json_that_is_nested_too_deep_is_damaged(toolkit: Toolkit, saved: Path) -> None:
    saved.write_text('{"format": "toolcrib-state", "version": 1, "state": ' + "[" * 100_000)

    refused(toolkit, saved, errors.DamagedFileError)


def test_a_path_that_is_not_a_file_is_neither_read_nor_replaced(toolkit: Toolkit, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    before = sorted(os.listdir(tmp_path))

    for path in (tmp_path / "pipe", tmp_path / "folder", Path("/dev/null")):
        refused(toolkit, path, errors.FileAccessError)
        with pytest.raises(errors.FileAccessError, match="not a regular file"):
            toolkit.save(path)

    assert sorted(os.listdir(tmp_path)) == before


def test_a_folder_that_is_not_there_is_a_file_not_found(toolkit: Toolkit, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        toolkit.save(tmp_path / "nowhere" / "state.json")


def test_a_circle_of_links_is_an_error(toolkit: Toolkit, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")

    for use in (toolkit.save, toolkit.load):
        with pytest.raises(errors.FileAccessError):
            use(tmp_path / "a")


@pytest.mark.parametrize("path", ["", "..", "/", "a\0b"])
def test_a_path_that_names_no_file_is_an_error(toolkit: Toolkit, path: str) -> None:
    for use in (toolkit.save, toolkit.load):
        with pytest.raises(errors.FileAccessError):
            use(path)


def test_a_folder_that_may_not_be_written_keeps_the_old_state(toolkit: Toolkit, saved: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("the superuser may write everything")
    before = saved.read_bytes()
    saved.parent.chmod(0o500)

    with pytest.raises(errors.FileAccessError) as caught:
        toolkit.save(saved)
    saved.parent.chmod(0o700)

    assert caught.value.errno == errno.EACCES
    assert saved.read_bytes() == before


def test_other_threads_run_while_a_state_is_saved(toolkit: Toolkit, saved: Path) -> None:
    ran = threading.Event()
    gate = threading.Lock()
    gate.acquire()

    def wait() -> None:
        gate.acquire()
        ran.set()

    thread = threading.Thread(target=wait)
    thread.start()
    interval = sys.getswitchinterval()
    # From here on the other thread runs only if this one lets it.
    sys.setswitchinterval(1000)
    try:
        gate.release()
        saves = 0
        while not ran.is_set() and saves < 10_000:
            toolkit.save(saved)
            saves += 1
        did_run = ran.is_set()
    finally:
        sys.setswitchinterval(interval)
        thread.join()

    assert did_run
