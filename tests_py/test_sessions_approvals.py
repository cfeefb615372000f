"""Approvals in sessions: a pending call belongs to its session, and so does an answer for the run; stores of uses."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING, Any

import pytest

from support.events import record_events
from support.policy import Shop, answering
from support.streams import block, last, read
from toolcrib import Approvals
from toolcrib.errors import (
    AlteredPendingError,
    ApprovalStoreError,
    InvalidPendingError,
    MisplacedPendingError,
    UsedPendingError,
)

if TYPE_CHECKING:
    from pathlib import Path


async def pending(origin: Any, id: str = "call_0", **arguments: Any) -> dict[str, Any]:
    """The pending value of a call of `remove`, as it comes out of a store."""
    call = {**block("remove", **(arguments or {"path": "a"})), "id": id}
    response = await last(origin.call_tool_function(call))
    assert response.code == "pending"
    assert response.metadata is not None
    value: dict[str, Any] = json.loads(json.dumps(response.metadata["pending"]))
    return value


async def test_two_calls_with_the_same_id_of_the_model_have_ids_of_their_own() -> None:
    shop = Shop()

    first, second = await pending(shop.kit), await pending(shop.kit)

    assert (first["call_id"], second["call_id"]) == ("call_0", "call_0")
    assert first["id"] != second["id"]
    assert len(first["id"]) == 32
    assert first["version"] == 2


async def test_a_value_of_the_first_version_is_refused() -> None:
    shop = Shop()
    value = await pending(shop.kit)

    with pytest.raises(InvalidPendingError, match="`version`: expected 2, the version that this toolcrib supports"):
        shop.kit.resume({**value, "version": 1}, True)


async def test_the_session_that_asked_resumes() -> None:
    shop = Shop()
    session = shop.kit.session(id="s1", caller="ann")

    value = await pending(session)
    response = await last(session.resume(value, True, by="the boss"))

    assert (value["session"], value["caller"], value["call_id"]) == ("s1", "ann", "call_0")
    assert response.ok
    assert shop.ran == [("remove", "a", False)]


async def test_a_session_of_the_same_id_resumes_after_a_restart(tmp_path: Path) -> None:
    before = Shop(approvals=Approvals(tmp_path / "approvals"))
    value = await pending(before.kit.session(id="s1", caller="ann"))

    after = Shop(approvals=Approvals(tmp_path / "approvals"))
    session = after.kit.session(id="s1", caller="ann")
    assert (await last(session.resume(value, True))).ok

    with pytest.raises(UsedPendingError):
        await read(session.resume(value, True))


async def test_anything_else_is_told_whose_it_is_and_how_to_resume() -> None:
    shop = Shop()
    value = await pending(shop.kit.session(id="s1", caller="ann"))
    strangers: list[Any] = [shop.kit, shop.kit.view(caller="ann"), shop.kit.session(id="s2", caller="ann")]

    for stranger in strangers:
        with pytest.raises(MisplacedPendingError) as refused:
            await read(stranger.resume(value, True))
        assert str(refused.value) == (
            "the pending call of tool `remove` belongs to session `s1`: resume it with `resume` of that session, "
            '`toolkit.session(id="s1", ...)`'
        )

    with pytest.raises(MisplacedPendingError, match="belongs to caller `ann`: resume it with"):
        await read(shop.kit.session(id="s1", caller="eve").resume(value, True))
    assert shop.ran == []
    assert (await last(shop.kit.session(id="s1", caller="ann").resume(value, True))).ok


async def test_a_call_outside_of_sessions_is_not_resumed_in_one() -> None:
    shop = Shop()
    value = await pending(shop.kit.view(caller="ann"))

    with pytest.raises(MisplacedPendingError, match="belongs to no session: resume it through the toolkit or view"):
        await read(shop.kit.session(caller="ann").resume(value, True))
    with pytest.raises(MisplacedPendingError, match=r'belongs to caller `ann`: .*toolkit.view\(caller="ann"\).resume'):
        await read(shop.kit.resume(value, True))


async def test_the_session_is_signed() -> None:
    shop = Shop()
    value = await pending(shop.kit.session(id="s1"))

    for change in ({"session": "s2"}, {"call_id": "other"}, {"id": "0" * 32}):
        with pytest.raises(AlteredPendingError):
            await read(shop.kit.session(id="s2").resume({**value, **change}, True))


async def test_an_approval_for_the_run_is_for_its_session() -> None:
    approve, asked = answering("run")
    shop = Shop(approver=approve)
    ann, bob = shop.kit.session(), shop.kit.session()

    for origin in (ann, ann, bob, shop.kit):
        assert (await origin.call("remove", path="a")).ok
    assert [request.session for request in asked] == [ann.id, bob.id, None]

    ann.end_run()
    for origin in (ann, bob, shop.kit):
        await origin.call("remove", path="b")
    assert [request.session for request in asked] == [ann.id, bob.id, None, ann.id]

    shop.kit.end_run()
    await bob.call("remove", path="c")
    await shop.kit.call("remove", path="c")
    assert [request.session for request in asked][4:] == [None]


async def test_cancelling_all_questions_is_for_the_session() -> None:
    answers: dict[str | None, asyncio.Future[str]] = {}

    async def approve(request: Any) -> str:
        answers[request.session] = asyncio.get_running_loop().create_future()
        return await answers[request.session]

    shop = Shop(approver=approve)
    sessions = [shop.kit.session(id="s1"), shop.kit.session(id="s1"), shop.kit.session(id="s2")]
    calls = [asyncio.ensure_future(session.call("remove", path="a")) for session in sessions[1:]]
    while len(answers) < 2:
        await asyncio.sleep(0)

    answers["s1"].set_result("cancel")
    first = await calls[0]
    answers["s2"].set_result("once")

    assert first.code == "cancelled"
    assert (await calls[1]).ok


async def test_callers_and_sessions_are_in_requests_events_and_the_audit() -> None:
    approve, asked = answering("once")
    audit: list[dict[str, Any]] = []
    shop = Shop(approver=approve, audit=audit.append)
    events = record_events(shop.kit)
    session = shop.kit.session(id="s1", caller="ann")

    await last(session.call_tool_function(block("remove", path="a")))

    where = ("call-1", "ann", "s1")
    assert [(request.call_id, request.caller, request.session) for request in asked] == [where]
    assert {(record["call_id"], record["caller"], record["session"]) for record in audit} == {where}
    assert {(event.call_id, event.caller, event.session) for event in events} == {where}


async def test_the_event_of_a_pending_call_has_its_id() -> None:
    shop = Shop()
    events = record_events(shop.kit)

    value = await pending(shop.kit.session())

    requests = [event for event in events if event.type == "permission_request"]
    assert [event.data["pending"] for event in requests] == [{"id": value["id"]}]


# Stores.

KEY = b"a secret that all processes know!"


class Store:
    """Answered calls in a dict."""

    def __init__(self) -> None:
        self.claimed: dict[str, float] = {}

    def claim(self, key: str, expires: float) -> bool:
        if key in self.claimed:
            return False
        self.claimed[key] = expires
        return True


async def test_a_store_lets_a_call_be_answered_once_wherever_it_is_opened() -> None:
    store = Store()
    shops = [Shop(approvals=Approvals(store=store, key=KEY, ttl=60)) for _ in range(2)]
    value = await pending(shops[0].kit)

    assert (await last(shops[1].kit.resume(value, True))).ok
    for shop in shops:
        with pytest.raises(UsedPendingError):
            await read(shop.kit.resume(value, True))

    ((key, expires),) = store.claimed.items()
    assert key == value["id"]
    assert 0 < expires - time.time() <= 60
    assert shops[0].kit.approvals.store is store


async def test_another_key_is_refused() -> None:
    store = Store()
    value = await pending(Shop(approvals=Approvals(store=store, key=KEY)).kit)

    with pytest.raises(MisplacedPendingError, match="signed with another key"):
        await read(Shop(approvals=Approvals(store=store, key=KEY[::-1])).kit.resume(value, True))
    assert store.claimed == {}


class Broken:
    """A store whose `claim` gives what it is told."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def claim(self, key: str, expires: float) -> Any:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (OSError("no connection"), "OSError: no connection"),
        (1, "`claim` must return True or False, not int"),
        (None, "`claim` must return True or False, not NoneType"),
    ],
)
async def test_a_store_that_fails_lets_nothing_run(result: Any, reason: str) -> None:
    shop = Shop(approvals=Approvals(store=Broken(result), key=KEY))
    value = await pending(shop.kit)

    with pytest.raises(ApprovalStoreError, match=reason):
        await read(shop.kit.resume(value, True))

    assert shop.ran == []


def test_a_store_and_its_key_go_together(tmp_path: Path) -> None:
    wrong: Any = Approvals
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"store": Store()}, TypeError, "needs a `key`"),
        ({"key": KEY}, TypeError, "only together with a `store`"),
        ({"store": Store(), "key": b"short"}, ValueError, "key must have at least 32 bytes, not 5"),
        ({"store": Store(), "key": KEY, "path": tmp_path}, TypeError, "a `path` or a `store`, not both"),
        (
            {"store": object(), "key": KEY},
            TypeError,
            r"must have a method `claim\(key, expires\)`, and object has none",
        ),
    ]
    for options, kind, text in cases:
        with pytest.raises(kind, match=text):
            wrong(**options)


PROGRAM = """
import asyncio, json, sqlite3, sys
from toolcrib import Approvals, Toolkit, errors

class Ledger:
    def __init__(self, path):
        self.database = sqlite3.connect(path, isolation_level=None, timeout=30, check_same_thread=False)
        self.database.execute("CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, expires REAL)")

    def claim(self, key, expires):
        cursor = self.database.execute("INSERT OR IGNORE INTO claims VALUES (?, ?)", (key, expires))
        return cursor.rowcount == 1

toolkit = Toolkit(approvals=Approvals(store=Ledger(sys.argv[1]), key=b"a secret that all processes know!"))

@toolkit.tool(permission="confirm")
async def remove(path: str, force: bool = False) -> str:
    return f"removed {path}"

async def main():
    session = toolkit.session(id="s1", caller="ann")
    if len(sys.argv) == 2:
        return json.dumps((await session.call("remove", path="a")).metadata["pending"])
    try:
        return [response.text async for response in session.resume(sys.argv[2], True)][-1]
    except errors.UsedPendingError:
        return "used"

print(asyncio.run(main()))
"""


def test_of_many_processes_on_a_database_one_resumes(tmp_path: Path) -> None:
    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path / "claims.db"), *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    value = start().communicate(timeout=60)[0].strip()
    answers = [process.communicate(timeout=60)[0].strip() for process in [start(value) for _ in range(4)]]

    assert sorted(answers) == ["removed a", "used", "used", "used"]
    with contextlib.closing(sqlite3.connect(tmp_path / "claims.db")) as database:
        assert database.execute("SELECT key FROM claims").fetchall() == [(json.loads(value)["id"],)]
