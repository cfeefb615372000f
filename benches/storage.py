"""Writing to a store: many durable writes at once, and one save of a state against a bare SQLite transaction."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
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
            bare = sqlite3.connect(f"{folder}/bare.db", isolation_level=None)
            state = json.dumps({"groups": [{"name": f"group-{at}", "notes": "How to use them."} for at in range(4)]})
            one = await bench.interleave(
                "one durable save", {"save": _save(kit, store), "bare": _bare(bare, state)}, wall=True
            )
            many = await bench.interleave(f"{WRITERS} durable writes at once", {"write": _many(store)}, wall=True)
            bare.close()
    return [
        Row(
            f"durable small writes to a SQLite store, {WRITERS} at once",
            (at_least(WRITERS / many["write"] * 1e9, 5_000, 5_000, "{} a second"),),
        ),
        Row(
            "save the state of a toolkit in a store",
            (at_most(one.ratio("save", "bare"), 1.2, 1.2, "{} of a bare SQLite transaction"),),
        ),
    ]


def _save(kit: Toolkit, store: Store) -> Loop:
    async def run(times: int) -> None:
        for _ in range(times):
            await kit.save(store, "main")

    return run


def _bare(database: sqlite3.Connection, state: str) -> Loop:
    database.execute("PRAGMA journal_mode = wal")
    database.execute("PRAGMA synchronous = full")
    database.execute("CREATE TABLE states (key TEXT PRIMARY KEY, version INTEGER, value TEXT)")
    database.execute("INSERT INTO states VALUES ('main', 1, '')")
    execute = database.execute

    def run(times: int) -> None:
        for _ in range(times):
            execute("BEGIN IMMEDIATE")
            execute("UPDATE states SET version = version + 1, value = ? WHERE key = ?", (state, "main"))
            execute("COMMIT")

    return run


def _many(store: Store) -> Loop:
    put = store.put

    async def run(times: int) -> None:
        for _ in range(times):
            await asyncio.gather(*(put("bench", f"key-{at}", {"at": at}, version=None) for at in range(WRITERS)))

    return run
