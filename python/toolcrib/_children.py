"""Child processes: started, asked, kept for the next call, and killed with all that they started."""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from toolcrib._child import receive, send

IDLE = 4
"""How many children are kept for the next calls."""


class Child:
    """A child process and the socket to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended = False
        self.wire, theirs = socket.socketpair()
        try:
            with theirs:
                self.process = subprocess.Popen(
                    [sys.executable, *_flags(), "-m", "toolcrib._child", str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=_outlet(),  # what a tool prints must reach neither the protocol nor the program's output
                    pass_fds=(theirs.fileno(),),
                    env=_environment(),
                    start_new_session=True,
                )
        except BaseException:
            self.wire.close()
            raise

    def ask(self, *request: Any) -> tuple[Any, ...]:
        """Send a request and wait for its answer."""
        try:
            send(self.wire, pickle.dumps(request, pickle.HIGHEST_PROTOCOL))
            answer = receive(self.wire)
        except (EOFError, OSError):
            raise EOFError from None
        try:
            reply: tuple[Any, ...] = pickle.loads(answer)
        except Exception as error:
            raise RuntimeError(f"a result cannot be read from its process: {error}") from error
        return reply

    def kill(self) -> None:
        """Kill the process group and wake whoever waits for an answer; `end` does the rest."""
        with self._lock:
            if not self._ended:
                _kill_group(self.process.pid)
                with contextlib.suppress(OSError):  # the other end may have gone already
                    self.wire.shutdown(socket.SHUT_RDWR)

    def end(self) -> int:
        """Kill what is left of it, reap it, close the socket; give the exit code."""
        with self._lock:
            first, self._ended = not self._ended, True
            if first:
                _kill_group(self.process.pid)
        code = self.process.wait()
        if first:
            self.wire.close()
        return code

    def answers(self) -> bool:
        """Tell whether an idle child is still there."""
        try:
            self.wire.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False


class Children:
    """All children of this process: those that wait for work, and those at work."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start with none, as after a fork."""
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._all: set[Child] = set()

    def take(self) -> Child:
        """Give an idle child, or a new one."""
        while True:
            with self._lock:
                child = self._idle.pop() if self._idle else None
            if child is None:
                break
            if child.answers():
                return child
            self.drop(child)
        child = Child()
        with self._lock:
            self._all.add(child)
        return child

    def put_back(self, child: Child) -> None:
        """Keep a child that has answered all it was asked for the next call."""
        with self._lock:
            room = len(self._idle) < IDLE
            if room:
                self._idle.append(child)
        if not room:
            self.drop(child)

    def drop(self, child: Child) -> int:
        """Bring a child to its end."""
        code = child.end()
        with self._lock:
            self._all.discard(child)
        return code

    def close(self) -> None:
        """Bring all of them to their end."""
        with self._lock:
            everyone, self._all, self._idle = list(self._all), set(), []
        for child in everyone:
            child.kill()
        for child in everyone:
            child.end()

    def leave_to_parent(self) -> None:
        """Close this process's copies of the sockets after a fork, for the children are the parent's."""
        everyone = list(self._all)
        self.forget()
        for child in everyone:
            child.wire.close()
            child.process.returncode = 0  # not ours to wait for


children = Children()
atexit.register(children.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=children.leave_to_parent)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(OSError):  # all of them may have gone already
        os.killpg(pid, signal.SIGKILL)


def _environment() -> dict[str, str]:
    """Let the child find this very package, wherever it was imported from."""
    root = str(Path(__file__).absolute().parent.parent)
    there = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{there}" if there else root}


def _flags() -> list[str]:
    """Repeat the interpreter's own options, but for those that would hide this package."""
    flags: list[str] = getattr(subprocess, "_args_from_interpreter_flags", list)()
    return [flag for flag in flags if flag not in ("-I", "-E", "-s", "-P")]


def _outlet() -> int:
    """Give the descriptor for what a tool prints: standard error, if there is one."""
    try:
        os.fstat(2)
    except OSError:
        return subprocess.DEVNULL
    return 2
