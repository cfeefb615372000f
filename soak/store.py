"""Attacks on the store: another copy of SQLite in the same process, and in another one, on the store's own file."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from soak.attack import Outcome, attack
from toolcrib import Store, Toolkit
from toolcrib.errors import UsedPendingError

# The other process: opens the file, writes a row, and closes it, until its input ends.
OTHER_PROCESS = """
import sqlite3, sys, threading
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
rows = 0
while not over.is_set():
    own = sqlite3.connect(sys.argv[1], timeout=60)
    own.execute("CREATE TABLE IF NOT EXISTS mine (x)")
    own.execute("INSERT INTO mine VALUES (1)")
    own.commit()
    own.close()
    rows += 1
print(rows)
"""

# A process that has nothing to do with the attack, and counts what is in the file.
COUNT = """
import sqlite3, sys
file = sqlite3.connect(sys.argv[1])
for query in sys.argv[2:]:
    print(*file.execute(query).fetchone())
"""


@attack(
    row="d2",
    promise="Another copy of SQLite may open and close the file of a store at any moment, in the same process too.",
    unit="connections of another copy",
    release=20_000,
    smallest=200,
)
def another_copy_of_sqlite(attempts: int) -> Outcome:
    """Write through stores that are opened and closed, and approve calls, while threads and a process use the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "app.db"
        outcome = Outcome(0)
        over, counting = threading.Event(), threading.Lock()

        def use_file(keeps_reading: bool) -> None:
            while not over.is_set():
                try:
                    own = sqlite3.connect(path, timeout=60)
                    own.execute("CREATE TABLE IF NOT EXISTS mine (x)")
                    own.execute("INSERT INTO mine VALUES (1)")
                    own.commit()
                    if keeps_reading:
                        own.execute("SELECT count(*) FROM mine").fetchone()
                    own.close()
                except sqlite3.Error as error:
                    outcome.broken.append(f"the other copy failed: {error}")
                with counting:
                    outcome.attempts += 1
                    if outcome.attempts >= attempts:
                        over.set()

        threads = [threading.Thread(target=use_file, args=(number % 2 == 0,)) for number in range(3)]
        process = subprocess.Popen(
            [sys.executable, "-c", OTHER_PROCESS, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            for thread in threads:
                thread.start()
            written, runs = asyncio.run(_use_stores(f"sqlite:{path}", over, outcome))
        finally:
            over.set()
            for thread in threads:
                thread.join()
            rows = int(process.communicate()[0])
        queries = (
            "SELECT count(*) FROM toolcrib_entries WHERE space = 'attack'",
            "SELECT count(*) FROM mine",
            "SELECT count(*) FROM toolcrib_claims",
            "PRAGMA integrity_check",
        )
        counted = subprocess.run(
            [sys.executable, "-c", COUNT, str(path), *queries], capture_output=True, text=True, check=True
        ).stdout.split()
        expected = [str(written), str(outcome.attempts + rows), str(runs), "ok"]
        if counted != expected:
            outcome.broken.append(f"the file has {counted}, expected {expected}")
        outcome.note = f"{written} awaited writes, {runs} approvals, {rows} connections of another process"
        return outcome


async def _use_stores(url: str, over: threading.Event, outcome: Outcome) -> tuple[int, int]:
    """Write and approve until the attack is over; count the writes and the runs."""
    written = runs = 0

    def start(store: Store) -> Toolkit:
        toolkit = Toolkit(store=store)

        @toolkit.tool(permission="confirm", run_in="inline")
        def pay(number: int) -> str:
            nonlocal runs
            runs += 1
            return f"paid {number}"

        return toolkit

    while not over.is_set():
        async with Store.open(url) as one, Store.open(url) as other:
            toolkit, second = start(one), start(other)
            for _ in range(10):
                keys = [f"k{written + number}" for number in range(6)]
                stores = (one, other) * 3
                await asyncio.gather(
                    *(store.put("attack", key, 1, version=0) for key, store in zip(keys, stores, strict=True))
                )
                written += len(keys)
                before = runs
                response = await toolkit.call("pay", number=written)
                pending: dict[str, Any] = (response.metadata or {})["pending"]
                answers = await asyncio.gather(
                    *(_resume(kit, pending) for kit in (toolkit, second)), return_exceptions=True
                )
                refused = [answer for answer in answers if isinstance(answer, UsedPendingError)]
                if runs - before != 1 or len(refused) != 1:
                    outcome.broken.append(f"one approval: {runs - before} runs, {answers}")
    return written, runs


async def _resume(toolkit: Toolkit, pending: dict[str, Any]) -> list[str]:
    return [response.text async for response in toolkit.resume(pending, True)]
