"""A store: values with versions, states, approvals, answers and the audit log in a database, the same on each kind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import time
import warnings
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from toolcrib import Approvals, Policy, Role, Roles, Store, Toolkit, errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.loops import LoopFactory
    from support.postgres import Server


ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere locks belong to the process")


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with Store.open(store_url) as store:
        yield store


async def test_a_value_has_a_version(store: Store, loop_factory: LoopFactory) -> None:
    assert await store.get("colours", "sky") is None

    first = await store.put("colours", "sky", {"name": "blue", "rgb": [0, 0, 255]}, version=0)
    second = await store.put("colours", "sky", "grey", version=first)

    assert (first, second) == (1, 2)
    assert await store.get("colours", "sky") == ("grey", 2)
    assert await store.keys("colours") == ["sky"]
    assert await store.keys("others") == []


async def test_a_writer_that_has_not_seen_the_version_is_refused(store: Store) -> None:
    await store.put("s", "k", 1, version=0)
    await store.put("s", "k", 2, version=None)

    for version in (0, 1, 3):
        with pytest.raises(errors.VersionConflictError) as conflict:
            await store.put("s", "k", "lost", version=version)

        assert conflict.value.version == 2
    assert str(conflict.value) == "version conflict: `k` has version 2, expected 3: load it again"
    assert await store.get("s", "k") == (2, 2)


async def test_a_removed_value_leaves_no_way_for_an_old_writer(store: Store) -> None:
    await store.put("s", "k", "old", version=0)

    assert await store.delete("s", "k", version=1)
    assert not await store.delete("s", "k", version=None)
    assert await store.get("s", "k") is None
    with pytest.raises(errors.VersionConflictError):
        await store.put("s", "k", "by an old writer", version=1)
    assert await store.put("s", "k", "new", version=0) == 3


async def test_concurrent_writers_of_one_store_lose_nothing(store: Store) -> None:
    conflicts = 0

    async def add_one() -> None:
        nonlocal conflicts
        while True:
            found = await store.get("s", "count")
            value, version = found or (0, 0)
            try:
                await store.put("s", "count", value + 1, version=version)
                return
            except errors.VersionConflictError:
                conflicts += 1

    await asyncio.gather(*(add_one() for _ in range(40)))

    assert await store.get("s", "count") == (40, 40)
    assert conflicts > 0


async def test_any_json_value_survives(store: Store) -> None:
    value = {
        "": [None, True, 1.5, 10**30, "ü\u0000\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")],
        "b": {},
    }

    await store.put("ß", "'; DROP TABLE toolcrib_entries; --", value, version=0)

    assert await store.get("ß", "'; DROP TABLE toolcrib_entries; --") == (value, 1)


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 1025, "a\ud800b"])
async def test_a_name_that_no_database_can_keep_is_refused(store: Store, name: str) -> None:
    with pytest.raises(errors.InvalidStoreError):
        await store.put(name, "k", 1, version=0)
    with pytest.raises(errors.InvalidStoreError):
        await store.get("s", name)
    with pytest.raises(errors.InvalidStoreError):
        await store.delete("s", name, version=None)
    with pytest.raises(errors.InvalidStoreError):
        await Toolkit().save(store, name)


async def test_a_lone_surrogate_is_refused_by_its_name(store: Store) -> None:
    with pytest.raises(errors.InvalidStoreError, match=r"invalid space `a.*` in a store: it contains a lone surrogate"):
        await store.keys("a\ud800")
    with pytest.raises(errors.InvalidStoreError, match=r"invalid key `.*` in a store: it contains a lone surrogate"):
        store.claim("\udfff", 1e10)


async def test_a_store_is_there_again_after_a_restart(store_url: str) -> None:
    async with Store.open(store_url) as store:
        await store.put("s", "k", "kept", version=0)

    assert store.closed
    with pytest.raises(errors.StoreError, match="it is closed"):
        await store.get("s", "k")
    async with Store.open(store_url) as again:
        assert await again.get("s", "k") == ("kept", 1)


async def test_an_operation_that_is_never_awaited_is_reported(store: Store) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")

        store.put("s", "k", 1, version=0)
        gc.collect()

    assert [str(warning.message) for warning in caught] == ["an operation of a store was never awaited"]
    assert await store.get("s", "k") is None


async def test_an_operation_is_awaited_once(store: Store) -> None:
    call = store.put("s", "k", 1, version=0)
    await call

    with pytest.raises(RuntimeError, match="awaited before"):
        await call


async def test_a_toolkit_is_saved_and_loaded(store: Store) -> None:
    kit = Toolkit()
    kit.create_tool_group("web", "The web.", active=True, notes="Be polite.")
    assert await kit.save(store, "main") == 1
    kit.create_tool_group("files", "The disk.")
    assert await kit.save(store, "main") == 2

    other = Toolkit()
    assert await other.load(store, "main") == 2

    assert [str(group) for group in other.groups.values()] == [str(group) for group in kit.groups.values()]
    with pytest.raises(errors.MissingEntryError) as missing:
        await other.load(store, "mian")
    assert str(missing.value) == f"store `{store.url}` has no toolcrib-state `mian`"


async def test_a_toolkit_that_has_not_loaded_the_last_state_does_not_replace_it(store: Store) -> None:
    one, other = Toolkit(), Toolkit()
    await one.save(store, "main")
    with pytest.raises(errors.VersionConflictError) as conflict:
        await other.save(store, "main")
    assert conflict.value.version == 1

    await other.load(store, "main")
    await other.save(store, "main")
    with pytest.raises(errors.VersionConflictError) as conflict:
        await one.save(store, "main")

    assert conflict.value.version == 2
    assert await one.save(store, "main", version=conflict.value.version) == 3


async def test_a_session_is_saved_under_its_id(store: Store) -> None:
    kit = Toolkit()
    kit.create_tool_group("web", "")
    session = kit.session(id="chat-7", caller="ann")
    session.update_tool_groups(["web"], True)
    session.state["language"] = "fr"
    assert await session.save(store) == 1

    again = await kit.load_session(store, "chat-7", deps="d")

    assert (again.id, again.state, again.deps, again.groups["web"].active) == ("chat-7", {"language": "fr"}, "d", True)
    assert await again.save(store) == 2
    with pytest.raises(errors.VersionConflictError):
        await session.save(store)
    with pytest.raises(errors.InvalidStateError, match="not of caller `bob`"):
        await kit.view(caller="bob").load_session(store, "chat-7")
    with pytest.raises(errors.MissingEntryError):
        await kit.load_session(store, "chat-8")


async def test_roles_are_saved_and_loaded_and_still_fit_into_the_seeds_file(store: Store, tmp_path: Path) -> None:
    roles = Roles()
    roles.add(Role("clerk", "Be exact.", ["files"]))
    await roles.save(store, "office")

    other = Roles()
    assert await other.load(store, "office") == []
    other.save(tmp_path / "roles.json")
    third = Roles()
    third.load(tmp_path / "roles.json")

    clerks = [found.get("clerk") for found in (other, third)]
    assert [clerk and clerk.tool_groups for clerk in clerks] == [["files"], ["files"]]


async def test_a_place_is_a_file_or_an_entry(store: Store, tmp_path: Path) -> None:
    kit: Any = Toolkit()

    with pytest.raises(TypeError, match="missing `key`"):
        kit.save(store)
    with pytest.raises(TypeError, match="unexpected `key`"):
        kit.save(tmp_path / "f", "key")
    with pytest.raises(TypeError, match="path must be a path or a `Store`, not int"):
        kit.load(3)
    with pytest.raises(TypeError, match="version must be an integer from 0, not str"):
        kit.save(store, "k", version="1")


def confirming(**options: Any) -> Toolkit:
    kit = Toolkit(run_in="inline", **options)

    @kit.tool(permission="confirm")
    def transfer(amount: int) -> str:
        """Transfer money."""
        return f"transferred {amount}"

    return kit


async def pending_transfer(kit: Toolkit, amount: int) -> Any:
    return ((await kit.call("transfer", amount=amount)).metadata or {})["pending"]


async def test_an_approval_in_a_store_is_used_once(store: Store, store_url: str) -> None:
    kit = confirming(approvals=Approvals(store=store))
    pending = await pending_transfer(kit, 1)
    with Store.open(store_url) as second:
        elsewhere = confirming(approvals=Approvals(store=second))

        answers = [response.text async for response in elsewhere.resume(pending, True)]

        assert answers == ["transferred 1"]
        for other in (kit, elsewhere):
            with pytest.raises(errors.UsedPendingError):
                await anext(other.resume(pending, True))


async def test_pending_calls_are_listed_for_every_process(store: Store, store_url: str) -> None:
    kit = confirming(approvals=Approvals(store=store))
    first = await pending_transfer(kit, 1)
    second = await pending_transfer(kit, 2)
    with Store.open(store_url) as other:
        approvals = Approvals(store=other)
        assert await approvals.pending() == [first, second]

        await anext(confirming(approvals=approvals).resume(first, False))

        assert await kit.approvals.pending() == [second]


async def test_pending_calls_of_the_same_millisecond_are_listed_in_their_order(store: Store) -> None:
    kit = confirming(approvals=Approvals(store=store))

    pending = [await pending_transfer(kit, amount) for amount in range(20)]

    assert await kit.approvals.pending() == pending


async def test_an_expired_pending_call_is_not_listed(store: Store) -> None:
    kit = confirming(approvals=Approvals(store=store, ttl=0.001))
    await kit.call("transfer", amount=1)
    await asyncio.sleep(0.01)

    assert await kit.approvals.pending() == []
    with pytest.raises(TypeError, match="only Approvals"):
        Approvals().pending()


async def test_a_store_that_fails_lets_nothing_run(store: Store) -> None:
    kit = confirming(approvals=Approvals(store=store))
    pending = await pending_transfer(kit, 1)
    store.close()

    with pytest.raises(errors.ApprovalStoreError, match="it is closed"):
        await anext(kit.resume(pending, True))
    with pytest.raises(errors.ApprovalStoreError):
        await kit.call("transfer", amount=1)


async def test_saved_answers_are_shared(store: Store, store_url: str) -> None:
    policy = Policy()
    policy.use_store(store)
    kit = confirming(policy=policy, approver=lambda request: "always")
    assert (await kit.call("transfer", amount=1)).text == "transferred 1"

    with Store.open(store_url) as other:
        again = Policy()
        again.use_store(other)
        later = confirming(policy=again, headless=True)

        assert (await later.call("transfer", amount=2)).text == "transferred 2"
        assert (await confirming(policy=Policy(), headless=True).call("transfer", amount=2)).code == "denied"


async def test_the_audit_log_is_in_the_store(store: Store) -> None:
    kit = confirming(audit=store, approver=lambda request: True)
    await kit.call("transfer", amount=1)
    await kit.call("transfer", amount=2)

    (first, record), (second, _) = await store.audit()

    assert (record["tool"], record["arguments"], record["outcome"]) == ("transfer", {"amount": 1}, "run")
    assert [number for number, _ in await store.audit(after=first)] == [second]
    assert len(await store.audit(limit=1)) == 1
    assert kit.audit is store


async def test_a_call_that_cannot_be_audited_does_not_run(store: Store) -> None:
    kit = confirming(audit=store, approver=lambda request: True)
    store.close()

    response = await kit.call("transfer", amount=1)

    assert response.code == "denied"


async def test_claims_are_made_once(store: Store, store_url: str) -> None:
    with Store.open(store_url) as other:
        claims = [place.claim("key", 4e9) for place in (store, other, store)]

    assert claims == [True, False, False]


async def test_a_long_forgotten_claim_is_never_made_again(store: Store) -> None:
    assert store.claim("old", 1000.0)
    assert store.claim("new", 4e9)

    assert not store.claim("old", 1000.0)
    assert not store.claim("older", 999.0)


async def test_no_record_of_the_audit_log_is_missed_by_a_reader_that_continues(store: Store, store_url: str) -> None:
    writers = [Store.open(store_url) for _ in range(3)]
    kits = [confirming(audit=writer, approver=lambda request: True) for writer in writers]
    read: list[int] = []

    def write(kit: Toolkit) -> None:
        asyncio.run(write_all(kit))

    async def write_all(kit: Toolkit) -> None:
        for amount in range(30):
            await kit.call("transfer", amount=amount)

    writing = [asyncio.create_task(asyncio.to_thread(write, kit)) for kit in kits]
    while not all(task.done() for task in writing) or not read or await store.audit(after=read[-1]):
        read += [number for number, _ in await store.audit(after=read[-1] if read else 0, limit=7)]
    await asyncio.gather(*writing)
    for writer in writers:
        writer.close()

    assert read == list(range(1, 91))


async def test_a_server_that_was_restarted_is_connected_again(postgres: Server) -> None:
    async with Store.open(postgres.new_database()) as store:
        await store.put("s", "k", 1, version=0)

        postgres.restart()

        assert await store.get("s", "k") == (1, 1)
        assert await store.put("s", "k", 2, version=1) == 2


async def test_groups_that_lock_each_other_are_repeated(postgres: Server) -> None:
    url, names = postgres.new_database(), [f"k{at}" for at in range(20)]
    with Store.open(url) as one, Store.open(url) as other:

        async def write(store: Store, keys: list[str]) -> None:
            await asyncio.gather(*(store.put("s", key, 1, version=None) for key in keys))

        for _ in range(5):
            await asyncio.gather(write(one, names), write(other, names[::-1]))

        found = [await one.get("s", name) for name in names]

    assert found == [(1, 10)] * 20


def test_a_connection_is_encrypted_and_verified_if_the_url_requires_it(postgres: Server) -> None:
    if not postgres.certificate.exists():
        pytest.skip("the test of TLS did NOT run: `openssl` made no certificate")
    url = postgres.new_database().replace("127.0.0.1", "localhost") + "?sslmode=require"
    program = """
        import asyncio, sys
        from toolcrib import Store

        async def main():
            async with Store.open(sys.argv[1]) as store:
                print(await store.put("s", "k", 1, version=0))

        asyncio.run(main())
    """

    def run(url: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", textwrap.dedent(program), url]
        env = {**os.environ, **environment}
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)

    trusted = run(url, SSL_CERT_FILE=str(postgres.certificate))
    untrusted = run(url)
    elsewhere = run(url.replace("localhost", "127.0.0.1"), SSL_CERT_FILE=str(postgres.certificate))

    assert trusted.stdout == "1\n", trusted.stderr
    assert "StoreError" in untrusted.stderr
    assert "certificate" in untrusted.stderr
    assert "StoreError" in elsewhere.stderr


async def test_an_operation_in_a_cycle_is_collected(store: Store) -> None:
    deps: dict[str, object] = {}
    session = Toolkit().session(id="s", deps=deps)
    deps["call"] = call = session.save(store)
    collected = weakref.ref(session)
    await call

    del session, call, deps
    gc.collect()

    assert collected() is None


def test_a_newer_database_is_refused(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "crib.db"
    Store.open(f"sqlite:{path}").close()
    with sqlite3.connect(path) as database:
        database.execute("UPDATE toolcrib_schema SET version = 99")
    database.close()

    with pytest.raises(errors.NewerFileError, match="unknown version 99: expected at most 2"):
        Store.open(f"sqlite:{path}")


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "crib.db"
    path.write_text("not a database, but a text that is long enough to be read as one" * 100)

    with pytest.raises(errors.ForeignFileError):
        Store.open(f"sqlite:{path}")
    with pytest.raises(errors.MissingFileError):
        Store.open(f"sqlite:{tmp_path / 'missing' / 'crib.db'}")
    with pytest.raises(errors.InvalidStoreError, match="expected `sqlite:path`"):
        Store.open("crib.db")


@pytest.mark.parametrize("lost", ["crib.db", "crib.db-wal", "crib.db-shm"])
@pytest.mark.parametrize("is_replaced", [False, True])
async def test_a_store_that_has_lost_its_file_refuses(tmp_path: Path, lost: str, is_replaced: bool) -> None:
    store = Store.open(f"sqlite:{tmp_path / 'crib.db'}")
    toolkit = Toolkit(store=store, tools=[str.upper])
    await store.put("s", "k", 1, version=0)

    (tmp_path / lost).rename(tmp_path / "moved")
    if is_replaced:
        (tmp_path / lost).write_bytes((tmp_path / "moved").read_bytes())

    for _ in range(2):
        with pytest.raises(errors.StoreError, match="was moved, removed or replaced while it was open"):
            await store.put("s", "k", 2, version=None)
        with pytest.raises(errors.StoreError, match="was moved, removed or replaced while it was open"):
            await store.get("s", "k")
    assert (await toolkit.call("upper", self="a")).code == "denied"
    store.close()


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a file that is open cannot be removed")
@pytest.mark.parametrize("is_linked", [False, True])
@pytest.mark.parametrize("way", ["removed", "renamed", "replaced"])
@pytest.mark.parametrize("lost", ["", "-wal", "-shm"])
async def test_a_store_that_has_lost_a_file_leaves_the_writes_of_others_alone(
    tmp_path: Path, lost: str, way: str, is_linked: bool
) -> None:
    (tmp_path / "real").mkdir()
    path = shown = tmp_path / "real" / "crib.db"
    if is_linked:
        Store.open(f"sqlite:{path}").close()
        shown = tmp_path / "link.db"
        shown.symlink_to(path)
    store = Store.open(f"sqlite:{shown}")
    kit = Toolkit(store=store)
    runs: list[int] = []

    @kit.tool(permission="confirm")
    async def pay(number: int) -> str:
        runs.append(number)
        return "paid"

    pending = ((await kit.call("pay", number=1)).metadata or {})["pending"]
    file = Path(f"{path}{lost}")
    moved = file.rename(tmp_path / "moved")
    if way == "removed":
        moved.unlink()
    elif way == "replaced":
        file.write_bytes(moved.read_bytes())

    writer = """
        import asyncio, sys
        from toolcrib import Store, errors

        async def main():
            store = Store.open(sys.argv[1])
            for number in range(15):
                await store.put("s", f"k{number}", number, version=0)
                print(number, flush=True)

        asyncio.run(main())
    """
    other = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(writer), f"sqlite:{shown}"], capture_output=True, text=True, check=False
    )
    for number in range(15):
        with pytest.raises(errors.StoreError, match="was moved, removed or replaced while it was open"):
            await store.put("s", f"h{number}", number, version=0)
    with pytest.raises(errors.ApprovalStoreError):
        _ = [response async for response in kit.resume(pending, True)]
    store.close()

    assert runs == []
    written = [f"k{number}" for number in other.stdout.split()]
    # Without the database or its journal the other process is refused as well, as long as this one has it open.
    assert len(written) == 15 or lost != "-shm", other.stderr
    with Store.open(f"sqlite:{path}") as again:
        assert sorted(await again.keys("s")) == sorted(written)


# The locks of open file descriptions of one file, as on a file system that has none.
NO_LOCKS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int control(const char *function, int fd, int command, void *argument) {
    char link[64], path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int is_description = command == F_OFD_GETLK || command == F_OFD_SETLK || command == F_OFD_SETLKW;
    if (is_description && readlink(link, path, sizeof path - 1) > 0 && strstr(path, "plain.db")) {
        errno = EINVAL;
        return -1;
    }
    int (*real)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, function);
    return real(fd, command, argument);
}

#define CONTROL(name) \\
    int name(int fd, int command, ...) { \\
        va_list arguments; \\
        va_start(arguments, command); \\
        void *argument = va_arg(arguments, void *); \\
        va_end(arguments); \\
        return control(#name, fd, command, argument); \\
    }
CONTROL(fcntl)
CONTROL(fcntl64)
"""


@ON_LINUX
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_file_without_locks_of_descriptions_does_not_change_those_of_others(tmp_path: Path) -> None:
    (tmp_path / "locks.c").write_text(NO_LOCKS)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "locks.so", "locks.c", "-ldl"], cwd=tmp_path, check=True)
    program = """
        import fcntl
        from toolcrib import Store

        stores = [Store.open(f"sqlite:{name}") for name in ("plain.db", "other.db")]
        for name in ("plain.db", "other.db"):
            with open(name, "r+b") as file:
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    print(name, "is locked by the process")
                except OSError:
                    print(name, "is locked by a description")
    """

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        env={**os.environ, "LD_PRELOAD": str(tmp_path / "locks.so")},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines() == ["plain.db is locked by the process", "other.db is locked by a description"]


@ON_LINUX
async def test_another_copy_of_sqlite_in_the_process_takes_part(tmp_path: Path) -> None:
    path = tmp_path / "crib.db"
    with Store.open(f"sqlite:{path}", timeout=0.3) as store:
        own = sqlite3.connect(path, timeout=0.1, isolation_level=None)
        own.execute("CREATE TABLE mine (x)")
        own.execute("BEGIN IMMEDIATE")

        with pytest.raises(errors.StoreError, match=r"did not answer|database is locked"):
            await store.put("s", "k", 1, version=0)
        own.execute("COMMIT")
        deadline = time.monotonic() + 20
        while await store.get("s", "k") is None and time.monotonic() < deadline:
            with contextlib.suppress(errors.StoreError):
                await store.put("s", "k", 1, version=0)
        own.close()
        assert (tmp_path / "crib.db-wal").exists()
        await store.put("s", "k", 2, version=1)

        other = subprocess.run(
            [
                sys.executable,
                "-c",
                "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone())",
                str(path),
                "SELECT version FROM toolcrib_entries WHERE space = 's'",
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        assert other.stdout == "(2,)\n"


@ON_LINUX
async def test_the_locks_of_another_copy_survive_the_end_of_a_store(tmp_path: Path) -> None:
    path = tmp_path / "crib.db"
    Store.open(f"sqlite:{path}").close()
    own = sqlite3.connect(path, isolation_level=None)
    own.execute("CREATE TABLE mine (x)")
    own.execute("BEGIN IMMEDIATE")

    with Store.open(f"sqlite:{path}") as store:
        assert await store.get("s", "k") is None

    locked = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')",
            str(path),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "database is locked" in locked.stderr
    own.execute("COMMIT")
    own.close()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are counted in /proc")
def test_stores_that_are_closed_leave_no_descriptor(tmp_path: Path) -> None:
    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))

    def use(number: int) -> None:
        with Store.open(f"sqlite:{tmp_path / str(number)}.db"), Store.open(f"sqlite:{tmp_path / str(number)}.db"):
            pass

    use(0)
    before = opened()
    for number in range(20):
        use(number)
    assert opened() <= before


def test_a_new_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    Store.open(f"sqlite:{tmp_path / 'crib.db'}").close()

    assert (tmp_path / "crib.db").stat().st_mode & 0o777 == 0o600


def test_a_server_that_does_not_answer_is_an_error_without_the_password() -> None:
    with pytest.raises(errors.StoreError) as failed:
        Store.open("postgresql://ann:secret@127.0.0.1:1/crib")

    assert "secret" not in str(failed.value)
    assert "127.0.0.1:1/crib" in str(failed.value)


async def test_a_store_in_memory_is_a_store() -> None:
    async with Store.open("sqlite::memory:") as store:
        await store.put("s", "k", 1, version=0)

        assert await store.get("s", "k") == (1, 1)
        assert repr(store) == "Store('sqlite::memory:')"
