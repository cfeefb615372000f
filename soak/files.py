"""Many writers of one file through the file tools: in one process, in several that are killed, and of two users.

Each writer has a counter of its own in the file, and each edit adds one to it: the old text of an edit has the number
that the last answer promised. An edit that was lost, or was made although it was refused, is found by the next edit of
the same writer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from soak.attack import Outcome, attack
from toolcrib import Toolkit, tools
from toolcrib.files import FilePolicy

WRITERS: Final = 16
PROCESSES: Final = 8
USERS: Final = (64_001, 64_002)
MEMORY: Final = Path("/dev/shm")

HEAD, TAIL = "BEGIN\n" + "#" * 2000 + "\n", "END\n"


def line_of(writer: int, number: int) -> str:
    """Write the counter of one writer."""
    return f"writer {writer:02} has {number:010}\n"


def numbers_in(content: bytes) -> list[int] | None:
    """Read all counters; None if the file is torn."""
    text = content.decode("ascii", "replace")
    lines = text[len(HEAD) : -len(TAIL)].splitlines(keepends=True)
    numbers = [int(line[-11:]) if line[-11:-1].isdigit() else -1 for line in lines]
    whole = HEAD + "".join(line_of(writer, number) for writer, number in enumerate(numbers)) + TAIL
    return numbers if text == whole and len(numbers) == WRITERS else None


class Ledger:
    """The number that each writer was promised last, and the one it tried, in memory that outlives a killed process."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 16 * WRITERS)

    def promised(self, writer: int) -> int:
        """Return the number of the last edit that was answered as done."""
        return int(struct.unpack_from("<q", self._memory, 16 * writer)[0])

    def tried(self, writer: int) -> int:
        """Return the number of the edit that may have been made, because its answer is not known."""
        return int(struct.unpack_from("<q", self._memory, 16 * writer + 8)[0])

    def note(self, writer: int, promised: int, tried: int) -> None:
        """Record an answer, or the beginning of an edit."""
        # In this order, so that a kill between the two leaves a range that is too wide, and never one that is wrong.
        struct.pack_into("<q", self._memory, 16 * writer + 8, tried)
        struct.pack_into("<q", self._memory, 16 * writer, promised)

    def total(self) -> int:
        """Return the number of edits that were answered as done."""
        return sum(self.promised(writer) for writer in range(WRITERS))


class Arena:
    """A folder with the file that is attacked, its toolkit, and the promises that were broken."""

    def __init__(self, folder: Path, *, durable: bool) -> None:
        self.root = folder / "root"
        self.root.mkdir()
        self.root.chmod(0o777)
        self.file = self.root / "file"
        self.file.write_text(HEAD + "".join(line_of(writer, 0) for writer in range(WRITERS)) + TAIL)
        self.file.chmod(0o666)
        self.ledger = Ledger()
        self.kit = Toolkit()
        tools.register(self.kit, "files", root=self.root, write=True, policy=FilePolicy(durable=durable))
        self._broken = os.open(folder / "broken", os.O_CREAT | os.O_RDWR | os.O_APPEND)

    def breaks(self, text: str) -> None:
        """Record a broken promise, from any process."""
        os.write(self._broken, text.replace("\n", " ")[:500].encode() + b"\n")

    def broken(self) -> list[str]:
        """Return the promises that were broken."""
        return os.pread(self._broken, 1 << 20, 0).decode().splitlines()

    async def write(self, writer: int, goes_on: Callable[[], bool]) -> None:
        """Edit the counter of one writer until it is enough."""
        ledger, path = self.ledger, "/workspace/file"
        content = await self.kit.call("read_text_file", path=path, with_header=False, with_line_numbers=False)
        numbers = numbers_in((content.text + "\n").encode())
        number = numbers[writer] if numbers else -1
        if number not in (ledger.promised(writer), ledger.tried(writer)):
            self.breaks(
                f"writer {writer} was promised {ledger.promised(writer)}, and finds {number}: {content.text[:80]}"
            )
        ledger.note(writer, number, number)
        while goes_on():
            ledger.note(writer, number, number + 1)
            edit = {"oldText": line_of(writer, number), "newText": line_of(writer, number + 1)}
            answer = await self.kit.call("edit_file", path=path, edits=[edit])
            if answer.code is None:
                number += 1
            elif "does not occur" in answer.text:
                self.breaks(f"writer {writer} lost edit {number}, or one was made that was refused: {answer.text}")
                return
            ledger.note(writer, number, number)

    async def replace(self, letter: str, goes_on: Callable[[], bool]) -> None:
        """Write a second file again and again, each writer with another length."""
        content = letter * (1000 * (ord(letter) - ord("a") + 1))
        while goes_on():
            await self.kit.call("write_file", path="/workspace/blind", content=content)

    def look(self) -> None:
        """Read both files once, as another program does."""
        if numbers_in(self.file.read_bytes()) is None:
            self.breaks("a reader found a torn file")
        with contextlib.suppress(FileNotFoundError):
            content = (self.root / "blind").read_bytes()
            if not content or content != content[:1] * (1000 * (content[0] - ord("a") + 1)):
                self.breaks(f"a reader found a torn file of {len(content)} bytes")

    def look_while(self, goes_on: Callable[[], bool]) -> None:
        """Read both files again and again."""
        while goes_on():
            self.look()
            time.sleep(0.0005)

    def settle(self) -> None:
        """Compare the file with the answers, and look for what was left behind."""
        numbers = numbers_in(self.file.read_bytes())
        for writer, number in enumerate(numbers or [-1] * WRITERS):
            if number not in (self.ledger.promised(writer), self.ledger.tried(writer)):
                self.breaks(f"writer {writer} was promised {self.ledger.promised(writer)}, and {number} is in the file")
        for name in ("file", "blind"):
            answer = self.kit.run("write_file", path=f"/workspace/{name}", content="end")
            if answer.code is not None:
                self.breaks(f"the last write was refused: {answer.text}")
        left = sorted(os.listdir(self.root))
        if left != ["blind", "file"]:
            self.breaks(f"left behind: {left}")


def _folder(where: Path | None) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(dir=where if where is not None and where.is_dir() else None)


@attack(
    row="f2",
    promise="no edit is lost, torn or made after a refusal: 16 writers of one file in one process",
    unit="edits",
    release=250_000,
    smallest=1_000,
)
def edits_in_one_process(amount: int) -> Outcome:
    """Let 16 tasks of one event loop edit one file, while others replace another."""
    with _folder(MEMORY) as folder:
        arena = Arena(Path(folder), durable=False)

        def goes_on() -> bool:
            return arena.ledger.total() < amount and not arena.broken()

        async def run() -> None:
            writers = [arena.write(writer, goes_on) for writer in range(WRITERS)]
            others = [arena.replace(letter, goes_on) for letter in "abc"]
            await asyncio.gather(*writers, *others, asyncio.to_thread(arena.look_while, goes_on))

        asyncio.run(run())
        arena.settle()
        return Outcome(arena.ledger.total(), arena.broken())


def _processes(amount: int, *, durable: bool, users: bool = False, where: Path | None = None) -> Outcome:
    """Attack from several processes, which a process of their own forks and kills."""
    options = {"amount": amount, "durable": durable, "users": users and os.getuid() == 0}
    with _folder(where) as folder:
        done = subprocess.run(
            [sys.executable, "-m", "soak.files", folder, json.dumps(options)],
            capture_output=True,
            text=True,
            cwd=Path(__file__).parents[1],
        )
    if done.returncode != 0:
        return Outcome(0, [f"the attack failed: {done.stderr[-2000:]}"])
    outcome = Outcome(**json.loads(done.stdout))
    if users and not options["users"]:
        outcome.note += ", one user, because only root can be several"
    return outcome


@attack(
    row="f2",
    promise="no edit is lost, torn or made after a refusal: writers in 8 processes that are killed at random",
    unit="edits",
    release=400_000,
    smallest=1_000,
)
def edits_in_processes(amount: int) -> Outcome:
    """Let 8 processes edit one file in memory."""
    return _processes(amount, durable=False, where=MEMORY)


@attack(
    row="f2",
    promise="the same with writes that wait for the disk",
    unit="edits",
    release=50_000,
    smallest=150,
)
def durable_edits_in_processes(amount: int) -> Outcome:
    """Let 8 processes edit one file on the disk."""
    return _processes(amount, durable=True)


@attack(
    row="f2",
    promise="the same with processes of two users, who cannot open the temporary files of each other",
    unit="edits",
    release=300_000,
    smallest=1_000,
)
def edits_of_two_users(amount: int) -> Outcome:
    """Let processes of two users edit one file in a folder that both may write."""
    return _processes(amount, durable=False, users=True, where=MEMORY)


def _fork(run: Callable[[], None]) -> int:
    """Run a function in a forked process."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            run()
            status = 0
        finally:
            os._exit(status)
    return child


def _main(folder: str, amount: int, durable: bool, users: bool) -> None:
    """Fork the writers and a reader, kill writers at random, and print the outcome."""
    arena = Arena(Path(folder), durable=durable)
    enough = mmap.mmap(-1, 1)

    def goes_on() -> bool:
        return enough[0] == 0

    def work(process: int) -> None:
        if users:
            os.setgroups([])
            os.setgid(USERS[process % 2])
            os.setuid(USERS[process % 2])
            os.umask(0o077)

        async def run() -> None:
            own = range(process, WRITERS, PROCESSES)
            # With several users, who cannot read the files of each other, only the common file is written.
            others = [] if users else [arena.replace("abcdefgh"[process], goes_on)]
            await asyncio.gather(*(arena.write(writer, goes_on) for writer in own), *others)

        asyncio.run(run())

    reader = _fork(lambda: arena.look_while(goes_on))
    children = {process: _fork(partial(work, process)) for process in range(PROCESSES)}
    kills = 0
    while arena.ledger.total() < amount and not arena.broken():
        time.sleep(random.uniform(0.005, 0.1))
        process = random.randrange(PROCESSES)
        os.kill(children[process], signal.SIGKILL)
        os.waitpid(children[process], 0)
        kills += 1
        children[process] = _fork(partial(work, process))
    enough[0] = 1
    for child in [reader, *children.values()]:
        _, status = os.waitpid(child, 0)
        if status != 0:
            arena.breaks(f"a process ended with {status}")
    arena.settle()
    print(json.dumps({"attempts": arena.ledger.total(), "broken": arena.broken(), "note": f"{kills:,} killed"}))


if __name__ == "__main__":
    _main(sys.argv[1], **json.loads(sys.argv[2]))
