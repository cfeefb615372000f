"""Child processes of tools, and the memory of this one."""

import os
import subprocess
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
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return state.strip() != "" and not state.startswith("Z")


async def pids(file: Path) -> list[int]:
    """The process ids that a tool writes into a file, once it has."""
    await until(file.exists)
    return [int(pid) for pid in file.read_text().split()]


def resident() -> int:
    """The resident memory of this process in bytes."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
