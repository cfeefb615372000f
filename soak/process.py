"""Attacks on tools in child processes: programs that run twice, traces of other calls, endings without an answer."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from soak.attack import Outcome, attack
from toolcrib import Toolkit

SIDE_BY_SIDE = 2
"""The number of programs at once."""

DEADLINE = 60.0
"""Seconds after which a call or a program is taken to hang."""

SCRIPT = """
import asyncio, sys, threading
from toolcrib import Toolkit

toolkit = Toolkit()

@toolkit.tool(run_in="process")
def square(n: int) -> int:
    return n * n

def program():
    with open("runs", "a") as file:
        file.write("run\\n")
    print(toolkit.run("square", n=3).text)

async def later():
    program()

"""

STARTS = [
    "program()",
    "asyncio.run(later())",
    "thread = threading.Thread(target=program)\nthread.start()\nthread.join()",
    "threading.Thread(target=program).start()",
    "for _ in range(1):\n    program()",
    "if sys.argv:\n    program()",
    "if __name__ == '__main__':\n    pass\nprogram()",
]
"""Ways to start a program without a main guard."""

COMMANDS = [
    ["agent.py"],
    ["-m", "agent"],
    ["-c", "import runpy; runpy.run_path('agent.py', run_name='__main__')"],
]


@attack(
    row="k2",
    promise="a script without a main guard is not run a second time, and the call says so",
    unit="scripts",
    release=400,
    smallest=len(STARTS),
)
def scripts_without_a_guard(count: int) -> Outcome:
    """Run scripts that start themselves in many ways."""

    def run(number: int) -> str | None:
        start, command = STARTS[number % len(STARTS)], COMMANDS[number // len(STARTS) % len(COMMANDS)]
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "agent.py").write_text(SCRIPT + start + "\n")
            try:
                done = subprocess.run(
                    [sys.executable, *command],
                    cwd=folder,
                    capture_output=True,
                    text=True,
                    timeout=DEADLINE,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return f"{command} with {start!r} hung"
            runs = Path(folder, "runs").read_text().count("run")
        # After `runpy` has restored the main module, a thread finds no script at all.
        is_refused = "UnguardedProgramError" in done.stdout or "the main module is not a file" in done.stdout
        if runs != 1 or not is_refused or done.returncode:
            return f"{command} with {start!r} ran {runs} times and printed {done.stdout!r}"
        return None

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        return Outcome(count, [text for text in pool.map(run, range(count)) if text is not None])


KEPT: dict[str, int] = {}
"""A variable of this module that the tools below change."""


def leave_and_look(number: int) -> list[str]:
    """Return the traces that other calls have left, and leave as many."""
    folder = os.path.realpath(os.getcwd())
    found = [
        *(f"variable {name}" for name in KEPT),
        *(f"environment {name}" for name in os.environ if name.startswith("LEFT_")),
        *(f"module {name}" for name in sys.modules if name.startswith("left_")),
        *(["working folder"] if folder == "/" else []),
        *(["signal"] if signal.getsignal(signal.SIGUSR1) is not signal.SIG_DFL else []),
        *([f"threads {threading.active_count()}"] if threading.active_count() > 1 else []),
        *(["descriptors"] if len(os.listdir("/proc/self/fd")) > 40 else []),
    ]
    KEPT[f"call {number}"] = number
    os.environ[f"LEFT_{number}"] = "yes"
    sys.modules[f"left_{number}"] = sys
    os.chdir("/")
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    threading.Thread(target=time.sleep, args=(600,)).start()
    for _ in range(50):
        os.open(os.devnull, os.O_RDONLY)
    return found


@attack(
    row="k2",
    promise="a call in a process sees nothing that a call before it has left behind",
    unit="calls",
    release=20_000,
    smallest=200,
)
def traces_of_other_calls(count: int) -> Outcome:
    """Make calls that leave traces, four at a time."""
    toolkit = Toolkit()
    toolkit.register_tool_function(leave_and_look, run_in="process", timeout=DEADLINE)

    async def main() -> list[str]:
        limit = asyncio.Semaphore(4)

        async def call(number: int) -> str | None:
            async with limit:
                response = await toolkit.call("leave_and_look", number=number)
            return None if response.text == "[]" else f"call {number}: {response.text}"

        return [text for text in await asyncio.gather(*map(call, range(count))) if text is not None]

    return Outcome(count, asyncio.run(main()))


def recurse() -> Any:
    """Call itself without end."""
    return recurse()


def end_by(way: str) -> Any:
    """End without a proper answer."""
    match way:
        case "interrupt":
            raise KeyboardInterrupt
        case "exit":
            sys.exit(3)
        case "recursion":
            return recurse()
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "kill the parent":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(DEADLINE)
        case "quit":
            os._exit(0)
        case "close":
            os.closerange(0, 65536)
        case "exchange":
            os.closerange(0, 65536)
            return [socket.socketpair() for _ in range(20)] and "sent to another socket"
        case "garbage":
            os.write(1, b"\0" * 1000)
            os.write(2, b"")
            for descriptor in range(3, 64):
                try:
                    os.write(descriptor, b"garbage of more than sixteen bytes")
                except OSError:
                    continue
    return "done"


WAYS = ["interrupt", "exit", "recursion", "kill", "kill the parent", "quit", "close", "exchange", "garbage"]


@attack(
    row="g",
    promise="whatever way a tool in a process ends, its call has a response, and the program lives",
    unit="calls",
    release=2_000,
    smallest=3 * len(WAYS),
)
def endings_without_an_answer(count: int) -> Outcome:
    """Make calls that end in every way, each followed by one that must succeed."""
    toolkit = Toolkit()
    toolkit.register_tool_function(end_by, run_in="process", timeout=DEADLINE)

    async def main() -> list[str]:
        broken = []
        for number in range(count):
            way = WAYS[number % len(WAYS)]
            response = await toolkit.call("end_by", way=way)
            after = await toolkit.call("end_by", way="return")
            if response.code != "failed" or after.text != "done":
                broken.append(f"{way}: {response.code} {response.text!r}, then {after.text!r}")
        return broken

    return Outcome(count, asyncio.run(main()))
