"""Databases that do not answer for a while.

A SQLite file that another process locks, a PostgreSQL server behind a proxy that holds back what it should forward.
"""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

LOCKER = """
import sqlite3, sys
file = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
for line in sys.stdin:
    file.execute("BEGIN IMMEDIATE" if line == "stop\\n" else "COMMIT")
    print("done", flush=True)
"""


class Stalled(Protocol):
    """A database that can be stopped."""

    url: str

    def stop(self) -> None:
        """Let the database answer no more."""

    def go_on(self) -> None:
        """Let it answer again."""


class LockedFile:
    """A SQLite file that another process locks."""

    def __init__(self, path: Path) -> None:
        self.url = f"sqlite:{path}"
        self.process = subprocess.Popen(
            [sys.executable, "-c", LOCKER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def stop(self) -> None:
        self._order("stop")

    def go_on(self) -> None:
        self._order("go on")

    def _order(self, order: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{order}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def close(self) -> None:
        self.process.communicate()


class Proxy:
    """A proxy before a server, which can hold back what it should forward."""

    def __init__(self, url: str) -> None:
        address, _, database = url.rpartition("/")
        head, _, port = address.rpartition(":")
        self.target = int(port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"{head}:{self.listener.getsockname()[1]}/{database}"
        self.forwards = threading.Event()
        self.forwards.set()
        self.over = False
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        self.forwards.clear()

    def go_on(self) -> None:
        self.forwards.set()

    def _accept(self) -> None:
        while not self.over:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self.target)) as server:
            while not self.over:
                for ready in select.select([client, server], [], [], 0.1)[0]:
                    received = ready.recv(65536)
                    self.forwards.wait()
                    if not received:
                        return
                    (server if ready is client else client).sendall(received)

    def close(self) -> None:
        self.over = True
        self.forwards.set()
        self.listener.close()


@contextmanager
def locked_file(path: Path) -> Iterator[Stalled]:
    file = LockedFile(path)
    try:
        yield file
    finally:
        file.close()


@contextmanager
def proxied(url: str) -> Iterator[Stalled]:
    proxy = Proxy(url)
    try:
        yield proxy
    finally:
        proxy.close()
