"""Child processes of process mode: start, calls, reuse, and the end together with all their descendants.

On Linux a child is a small tree: the supervisor, the executable that programs have as well (see
`src/process/supervisor.c`), the template that it starts, and the workers that the template forks, which run the tools
(`_child.py`). The supervisor runs no tool, so that a tool which holds the interpreter lock or crashes cannot stop it.
Elsewhere a child is a process that serves one call, and its process group is killed.
"""

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

from toolcrib._core import _supervisor
from toolcrib._host import is_safe_entry, surroundings, working_folder
from toolcrib._messages import StrayAnswer, Surroundings, WorkerEnded, receive, send

IDLE = 4
"""The number of idle children that are kept for further calls."""

GRACE = 10.0
"""Seconds that a supervisor has to kill its descendants before it is killed itself."""

_START = """
import sys
sys.path[:] = [entry for entry in sys.path if entry[:1] == "/"]
import os
folder = os.path.realpath(".")
sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != folder]
package = type(sys)("toolcrib_child")
package.__path__ = [sys.argv[1]]
sys.modules["toolcrib_child"] = package
from toolcrib_child._child import serve
serve(int(sys.argv[2]), sys.argv[3] == "fork")
"""
"""The program of a template.

With `-c` an interpreter without `-P` puts an empty entry, the working folder, on the import path. It does so after all
its own imports, and the program removes the entry before it imports anything. An absolute entry of the working folder,
which a `.pth` file may have added behind the standard library, is removed as well. `toolcrib` is not imported by its
name, which could find another module, and is not loaded at all unless a tool imports it.
"""


class Child:
    """A child, the socket to its template and workers, and the one to its supervisor."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended = False
        self._first = self._number = 0
        self._is_called = False
        self._surroundings: Surroundings | None = None
        self.wire, theirs = socket.socketpair()
        self._control, control = socket.socketpair()
        try:
            with theirs, control:
                self._is_supervised, self.process = _start(theirs, control)
        except BaseException:
            self.leave()
            raise

    def is_ready(self) -> bool:
        """Wait for the end of the last call's worker, and return True if the child can serve another call."""
        if not self._is_called:
            return True
        self._is_called = False
        try:
            receive(self.wire, self._first, self._first)
        except WorkerEnded:
            return True
        except (EOFError, OSError, StrayAnswer):
            pass
        return False

    def call(self, modules: list[str], payload: bytes) -> tuple[Any, ...]:
        """Call a function, and wait for the first answer."""
        current = surroundings()
        changed = None if current == self._surroundings else current
        self._first = self._number = int.from_bytes(os.urandom(7), "big")
        self._is_called = True
        reply = self._ask("call", changed, modules, payload)
        self._surroundings = current
        return reply

    def next(self) -> tuple[Any, ...]:
        """Request the next item of a generator."""
        self._number += 1
        return self._ask("next")

    def reply(self, is_answered: bool, value: Any) -> tuple[Any, ...]:
        """Answer an inquiry, and wait for the next answer."""
        self._number += 1
        return self._ask("reply", is_answered, value)

    def close(self) -> tuple[Any, ...]:
        """Close a generator, and wait until it has ended."""
        self._number += 1
        return self._ask("close")

    def _ask(self, *request: Any) -> tuple[Any, ...]:
        try:
            send(self.wire, self._number, pickle.dumps(request, pickle.HIGHEST_PROTOCOL))
            _, answer = receive(self.wire, self._number, self._first)
        except (EOFError, OSError):
            raise EOFError from None
        try:
            reply: tuple[Any, ...] = pickle.loads(answer)
        except BaseException as error:  # unpickling runs code of the result's class
            raise RuntimeError(f"cannot unpickle a result of the process: {error}") from error
        return reply

    def kill(self) -> None:
        """Wake the thread that waits for an answer, and make the supervisor kill all its descendants."""
        with self._lock:
            if not self._ended:
                self._hang_up()

    def end(self) -> int:
        """Kill all descendants, reap the supervisor, close the socket, and return the exit code."""
        with self._lock:
            first, self._ended = not self._ended, True
            if first:
                self._hang_up()
        try:
            code = self.process.wait(GRACE)
        except subprocess.TimeoutExpired:  # it was stopped, or a descendant cannot be killed
            self.process.kill()
            code = self.process.wait()
        if first:
            if self._is_supervised:
                code = _reported(self._control, code)
            self.leave()
        return code

    def leave(self) -> None:
        """Close this process's copies of the sockets."""
        self.wire.close()
        self._control.close()

    def _hang_up(self) -> None:
        for end, direction in ((self.wire, socket.SHUT_RDWR), (self._control, socket.SHUT_WR)):
            with contextlib.suppress(OSError):  # the other end may be closed already
                end.shutdown(direction)
        if not self._is_supervised:
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)


class Children:
    """All children of this process, idle or at work."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start with none, as after a fork."""
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._all: set[Child] = set()

    def take(self) -> Child:
        """Return an idle child, or a new one."""
        while True:
            with self._lock:
                child = self._idle.pop() if self._idle else None
            if child is None:
                break
            if child.is_ready():
                return child
            self.drop(child)
        child = Child()
        with self._lock:
            self._all.add(child)
        return child

    def put_back(self, child: Child) -> None:
        """Keep a child without open requests for the next call."""
        with self._lock:
            room = len(self._idle) < IDLE
            if room:
                self._idle.append(child)
        if not room:
            self.drop(child)

    def drop(self, child: Child) -> int:
        """End a child."""
        code = child.end()
        with self._lock:
            self._all.discard(child)
        return code

    def close(self) -> None:
        """End all children."""
        with self._lock:
            children, self._all, self._idle = list(self._all), set(), []
        for child in children:
            child.kill()
        for child in children:
            child.end()

    def leave_to_parent(self) -> None:
        """Close this process's copies of the sockets after a fork: the children belong to the parent."""
        children = list(self._all)
        self.forget()
        for child in children:
            child.leave()
            child.process.returncode = 0  # not ours to wait for


children = Children()
atexit.register(children.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=children.leave_to_parent)


def _start(wire: socket.socket, control: socket.socket) -> tuple[bool, subprocess.Popen[bytes]]:
    """Start a template, under a supervisor where there is one, which is returned as True."""
    descriptor = wire.fileno()
    supervisor = _supervisor()
    mode = "fork" if supervisor else "once"
    command = [sys.executable, *_flags(), "-c", _START, _package(), str(descriptor), mode]
    kept = [descriptor]
    if supervisor is not None:
        command = ["toolcrib-supervisor", str(os.getpid()), f"keep={descriptor}", "--", *command]
        kept.append(supervisor[0])
    process = subprocess.Popen(
        command,
        executable=supervisor and supervisor[1],
        stdin=control.fileno() if supervisor else subprocess.DEVNULL,
        stdout=_output(),  # prints of a tool must reach neither the protocol nor the program's output
        pass_fds=kept,
        env=_environment(),
        start_new_session=True,
    )
    return supervisor is not None, process


def _reported(control: socket.socket, code: int) -> int:
    """Return the exit code of the template that its supervisor reports; that of the supervisor if it does not."""
    try:
        report = control.recv(128, socket.MSG_DONTWAIT).split()
    except OSError:
        return code
    match report:
        case [b"exit", number]:
            return int(number)
        case [b"signal", number]:
            return -int(number)
        case [b"failed", *_]:
            return 127
    return code


def _package() -> str:
    return str(Path(__file__).absolute().parent)


def _environment() -> dict[str, str]:
    """Return the environment to start the interpreter with, without import folders inside the working folder.

    Tools see the whole environment of this process, which is sent with the calls.
    """
    environment = dict(os.environ)
    folder = working_folder()
    path = environment.pop("PYTHONPATH", "").split(os.pathsep)
    path = [entry for entry in path if is_safe_entry(entry, folder)]
    if path:
        environment["PYTHONPATH"] = os.pathsep.join(path)
    for name in ("PYTHONUSERBASE", "PYTHONPYCACHEPREFIX"):
        if not is_safe_entry(environment.get(name), folder):
            environment.pop(name, None)
    return environment


def _flags() -> list[str]:
    """Return the options of this interpreter, isolation included, and `-P` where it exists."""
    flags: list[str] = getattr(subprocess, "_args_from_interpreter_flags", list)()
    if sys.version_info >= (3, 11) and not {"-I", "-P"} & set(flags):
        flags.append("-P")
    if "-S" not in flags and _site_would_import_from_working_folder():
        flags.append("-S")
    return flags


def _site_would_import_from_working_folder() -> bool:
    """Return True if the interpreter might import `sitecustomize` or `usercustomize` from the working folder.

    This happens with a `.pth` file that adds the working folder, as an editable installation has.
    """
    folder = working_folder()
    if folder is None or all(is_safe_entry(entry, folder) for entry in sys.path if os.path.isabs(entry)):
        return False
    try:
        return any(name.startswith(("sitecustomize", "usercustomize")) for name in os.listdir(folder))
    except OSError:
        return False


def _output() -> int:
    """Return the descriptor for prints of a tool: standard error, if there is one."""
    try:
        os.fstat(2)
    except OSError:
        return subprocess.DEVNULL
    return 2
