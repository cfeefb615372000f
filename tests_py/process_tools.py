"""Tools for `test_process.py`: a child process has to find them by name."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path


def whereabouts() -> str:
    return f"{os.getpid()} {os.getpgid(0)}"


def join(a: str, b: str = "b") -> str:
    return a + b


async def join_later(a: str) -> str:
    await asyncio.sleep(0.001)
    return a + "!"


def count(limit: int) -> Iterator[str]:
    for number in range(limit):
        yield str(number)


async def count_later(limit: int) -> AsyncIterator[str]:
    for number in range(limit):
        await asyncio.sleep(0)
        yield str(number)


def fail() -> str:
    raise LookupError("not there")


def fail_halfway() -> Iterator[str]:
    yield "half"
    raise LookupError("no more")


class NeedsTwo(Exception):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


def fail_oddly() -> str:
    raise NeedsTwo("one", "two")


def give_function() -> Callable[[], None]:
    return lambda: None


def crash() -> str:
    os._exit(7)


def large(size: int) -> str:
    return "x" * size


def chat() -> str:
    print("this is not an answer")
    sys.stdout.flush()
    os.system("echo nor is this")
    return f"read {sys.stdin.read()!r}"


def stay(file: str) -> str:
    """Leave the ids of this process and of one that it has started, and stay."""
    other = subprocess.Popen(["sleep", "600"])
    part = Path(file + ".part")
    part.write_text(f"{os.getpid()} {other.pid}")
    part.rename(file)
    time.sleep(600)
    return "left"


def stay_in_generator(file: str) -> Iterator[str]:
    yield "begun"
    yield stay(file)


class Counter:
    def __init__(self, start: int) -> None:
        self.start = start

    def add(self, value: int) -> str:
        return str(self.start + value)


class Unpicklable(Counter):
    def __reduce__(self) -> str:
        raise TypeError("this object stays here")


def decorated(function: Callable[[], str]) -> Callable[[], str]:
    return lambda: function()


def hidden() -> str:
    return "the one that was asked for"


original = hidden


def hidden() -> str:  # type: ignore[no-redef]
    return "another one of that name"
