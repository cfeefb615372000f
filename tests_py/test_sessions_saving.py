"""Saved sessions: a conversation goes on in another process, as the same session and as no other."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from support.sessions import listed, service
from toolcrib import Limits, Session, Toolkit, errors

if TYPE_CHECKING:
    from pathlib import Path


class Deps:
    """Dependencies of tools."""


def used_session(toolkit: Toolkit) -> Session[None]:
    session = toolkit.session(id="chat-7", caller="ann", limits=Limits(calls=5))
    session.update_tool_groups(["web"], True)
    session.run("look")
    session.end_run()
    session.run("search")
    session.add_tokens(12)
    session.state["topic"] = {"birds": [1, 2.5, None, True, "é"]}
    return session


def test_the_state_of_a_session_is_plain_data() -> None:
    session = used_session(service())

    state = session.state_dict()

    assert (
        json.loads(json.dumps(state))
        == state
        == {
            "id": "chat-7",
            "caller": "ann",
            "groups": {"web": True},
            "usage": {"calls": 1, "tokens": 12, "total_calls": 2, "total_tokens": 12, "failures": {}},
            "state": {"topic": {"birds": [1, 2.5, None, True, "é"]}},
        }
    )


def test_a_session_goes_on_in_another_process(tmp_path: Path) -> None:
    used_session(service()).save(tmp_path / "chat-7.json")
    toolkit, deps = service(), Deps()

    session = toolkit.load_session(tmp_path / "chat-7.json", deps=deps, limits=Limits(calls=2))

    assert (session.id, session.caller, session.deps) == ("chat-7", "ann", deps)
    assert session.state == {"topic": {"birds": [1, 2.5, None, True, "é"]}}
    assert listed(session) == ["look", "search", "fetch", "reset_equipped_tools"]
    assert [group.active for group in toolkit.groups.values()] == [False, False]
    assert [session.run("look").code for _ in range(2)] == [None, "limit_exceeded"]
    assert (session.usage.calls, session.usage.total_calls) == (2, 3)


def test_a_state_is_loaded_into_its_own_session_only() -> None:
    toolkit = service()
    state = used_session(toolkit).state_dict()

    again = toolkit.session(id="chat-7", caller="ann")
    again.state["before"] = 1
    again.load_state_dict(state)

    assert again.state_dict() == state
    for other in (toolkit.session(id="chat-8", caller="ann"), toolkit.session(id="chat-7", caller="bob")):
        with pytest.raises(errors.InvalidStateError, match="the state is that of"):
            other.load_state_dict(state)
        assert (other.state, other.usage.total_calls, listed(other)) == ({}, 0, ["look", "reset_equipped_tools"])


def test_a_view_with_a_caller_continues_its_own_sessions_only(tmp_path: Path) -> None:
    toolkit = service()
    used_session(toolkit).save(tmp_path / "s.json")

    assert toolkit.view(caller="ann", names=["look"]).load_session(tmp_path / "s.json").caller == "ann"
    with pytest.raises(errors.InvalidStateError, match="that of caller `ann`, not of caller `eve`"):
        toolkit.view(caller="eve").load_session(tmp_path / "s.json")


def test_a_state_that_is_not_json_is_refused(tmp_path: Path) -> None:
    session = service().session(id="s1")
    session.state["lock"] = threading.Lock()

    with pytest.raises(errors.InvalidStateError, match="invalid state of session `s1`: expected JSON values only"):
        session.save(tmp_path / "s.json")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda text: text[: len(text) // 2], errors.DamagedFileError),
        (lambda text: text.replace('"ann"', '"eve"'), errors.DamagedFileError),
        (lambda text: text.replace("toolcrib-session", "toolcrib-state"), errors.ForeignFileError),
        (lambda text: text.replace('"version": 1', '"version": 9'), errors.NewerFileError),
        (lambda text: "", errors.DamagedFileError),
    ],
)
def test_a_file_that_is_not_whole_is_refused(change: Any, error: type[Exception], tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    used_session(service()).save(path)
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")

    with pytest.raises(error):
        service().load_session(path)


def test_a_missing_file_and_that_of_a_toolkit_are_refused(tmp_path: Path) -> None:
    toolkit = service()
    toolkit.save(tmp_path / "toolkit.json")

    with pytest.raises(errors.MissingFileError):
        toolkit.load_session(tmp_path / "nothing.json")
    with pytest.raises(errors.ForeignFileError):
        toolkit.load_session(tmp_path / "toolkit.json")


def test_the_state_of_the_toolkit_is_as_before() -> None:
    toolkit = service()
    used_session(toolkit)

    assert toolkit.state_dict() == {"active_groups": []}
