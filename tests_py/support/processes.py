"""Child processes of tools, and the memory of this one."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.waiting import until
from toolcrib import Toolkit

TESTS = str(Path(__file__).parent.parent)
"""The folder that a program puts on its path to import `support`."""


def process_toolkit(*tools: Callable[..., Any], **options: Any) -> Toolkit:
    """A toolkit whose tools run in child processes."""
    kit = Toolkit()
    for tool in tools:
        kit.register_tool_function(tool, run_in="process", **options)
    return kit


def is_running(pid: int) -> bool:
    """True if a process exists and is not a zombie that its new parent has yet to reap."""
    return _status(pid)[0] not in "ZX"


def parent_of(pid: int) -> int:
    """The process that has started another one, or has adopted it."""
    return int(_status(pid)[1])


def zombies() -> list[str]:
    """The names of the children of this process that have ended and that it has not reaped."""
    every = [_status(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    return [name for state, parent, name in every if state == "Z" and int(parent) == os.getpid()]


def _status(pid: int) -> tuple[str, str, str]:
    """The state, the parent and the name of a process; the state `X` if it has ended. This needs no program `ps`."""
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition(" (")[2].rpartition(")")
    except (FileNotFoundError, ProcessLookupError):
        return "X", "0", ""
    state, parent = rest.split()[:2]
    return state, parent, name


async def pids(file: Path) -> list[int]:
    """The process ids that a tool writes into a file, once it has."""
    await until(file.exists)
    return [int(pid) for pid in file.read_text().split()]


def resident() -> int:
    """The resident memory of this process in bytes."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
