"""Writing to a store: many durable writes at once, and one save against a bare SQLite transaction."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from benches.figures import Row, at_least, at_most
from benches.measure import Bench, Loop
from toolcrib import Store, Toolkit

WRITERS = 256


async def rows(bench: Bench) -> list[Row]:
    """Measure writes that survive a loss of power.

    Args:
        bench: Runs the measurement.

    Returns:
        Two rows.
    """
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        async with Store.open(f"sqlite:{folder}/crib.db") as store:
            kit = Toolkit()
            for at in range(4):
                kit.create_tool_group(f"group-{at}", "A group of tools.", notes="How to use them.")
            await kit.save(store, "main")
            bare = sqlite3.connect(f"{folder}/bare.db", isolation_level=None, check_same_thread=False)
            with ThreadPoolExecutor(1) as thread:
                write = _bare(bare, f"{folder}/crib.db")
                loops: dict[str, Loop] = {
                    "save": _save(kit, store),
                    "bare": _on_the_loop(write),
                    "thread": _in(thread, write),
                }
                one = await bench.interleave("one durable save", loops, wall=True)
            many = await bench.interleave(f"{WRITERS} durable writes at once", {"write": _many(store)}, wall=True)
            bare.close()
    return [
        Row(
            f"durable small writes to a SQLite store, {WRITERS} at once",
            (at_least(WRITERS / many["write"] * 1e9, 5_000, 5_000, "{} a second"),),
        ),
        Row(
            "save the state of a toolkit in a store",
            (
                at_most(one.ratio("save", "bare"), 1.2, 1.2, "{} of a bare SQLite transaction"),
                at_most(one.ratio("save", "thread"), 1.2, 1.2, "{} of one in a worker thread"),
            ),
        ),
    ]


def _save(kit: Toolkit, store: Store) -> Loop:
    async def run(times: int) -> None:
        for _ in range(times):
            await kit.save(store, "main")

    return run


def _bare(database: sqlite3.Connection, store: str) -> Callable[[], None]:
    """Write the same entry to the same table, as durably."""
    with closing(sqlite3.connect(store)) as other:
        (table,) = other.execute("SELECT sql FROM sqlite_master WHERE name = 'toolcrib_entries'").fetchone()
        entry = other.execute("SELECT * FROM toolcrib_entries WHERE key = 'main'").fetchone()
    database.execute("PRAGMA journal_mode = wal")
    database.execute("PRAGMA synchronous = full")
    database.execute(table)
    database.execute("INSERT INTO toolcrib_entries VALUES (?, ?, ?, ?, ?)", entry)
    execute, (space, key, _, value, changed) = database.execute, entry

    def write() -> None:
        execute("BEGIN IMMEDIATE")
        execute(
            "UPDATE toolcrib_entries SET version = version + 1, value = ?, changed = ? WHERE space = ? AND key = ?",
            (value, changed, space, key),
        )
        execute("COMMIT")

    return write


def _on_the_loop(write: Callable[[], None]) -> Loop:
    def run(times: int) -> None:
        for _ in range(times):
            write()

    return run


def _in(thread: ThreadPoolExecutor, write: Callable[[], None]) -> Loop:
    async def run(times: int) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(times):
            await loop.run_in_executor(thread, write)

    return run


def _many(store: Store) -> Loop:
    put = store.put

    async def run(times: int) -> None:
        for _ in range(times):
            await asyncio.gather(*(put("bench", f"key-{at}", {"at": at}, version=None) for at in range(WRITERS)))

    return run
