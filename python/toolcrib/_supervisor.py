"""The supervisor process of process mode: kills all processes that a tool has started, however the tool ends.

A child of process mode is two processes: the supervisor, which the host starts, and the worker that it forks, which
runs the tools (`_child.py`). The supervisor runs no tool, so that a tool which holds the interpreter lock or crashes
cannot stop it. It kills all its descendants when the host closes the socket, when the host dies, and when the worker
ends; in the last case it exits the way the worker did, so that the host reads the worker's exit code.

On Linux no descendant escapes: a process whose parent has died becomes a child of the supervisor
(`PR_SET_CHILD_SUBREAPER`), also if it has a session of its own. Elsewhere only the worker's process group is killed.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from typing import NoReturn

SWEEP = 5.0
"""Seconds after which the supervisor stops waiting for descendants that it cannot kill (those of another user)."""

_SET_PDEATHSIG = 1
_SET_CHILD_SUBREAPER = 36


def main(descriptor: int, host: int) -> NoReturn:
    """Fork the worker, wait until it or the host has ended, and kill all descendants.

    Args:
        descriptor: The worker's end of the socket to the host.
        host: The process id of the host.
    """
    status = 0
    try:
        os.set_inheritable(descriptor, False)
        _prctl(_SET_CHILD_SUBREAPER, 1)
        wakeup = _wakeup_on(signal.SIGCHLD, signal.SIGTERM)
        poll = _watch(descriptor, host, wakeup)
        if os.getppid() == host and not poll.poll(0):
            supervisor = os.getpid()
            worker = os.fork()
            if worker == 0:
                _work(descriptor, supervisor)
            status = _wait(worker, poll, wakeup)
            _sweep(worker)
    finally:
        _end_with(status)


def _work(descriptor: int, supervisor: int) -> NoReturn:
    """Become the worker, in a session and process group of its own."""
    try:
        os.setsid()
        _prctl(_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == supervisor:
            os.close(signal.set_wakeup_fd(-1))
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

            from ._child import serve  # only the worker needs what this imports

            serve(descriptor)
    finally:
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    """Set an attribute of this process, on Linux."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(ImportError, OSError, AttributeError):  # an interpreter without ctypes
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _wakeup_on(*signals: signal.Signals) -> int:
    """Return a descriptor that becomes readable when one of these signals arrives."""
    wakeup, write = os.pipe()
    for end in (wakeup, write):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in signals:
        signal.signal(number, lambda *_: None)
    return wakeup


def _watch(descriptor: int, host: int, wakeup: int) -> select.poll:
    """Watch the socket for its end, the host for its death, and the wakeup descriptor for signals."""
    poll = select.poll()
    poll.register(descriptor, 0)
    poll.register(wakeup, select.POLLIN)
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # an old kernel; the socket ends with the host as well
            poll.register(os.pidfd_open(host), select.POLLIN)
    return poll


def _wait(worker: int, poll: select.poll, wakeup: int) -> int:
    """Wait until the worker has ended or must be killed; return its status, or 0."""
    while True:
        for pid, status in _reap():
            if pid == worker:
                return status
        if any(descriptor != wakeup for descriptor, _ in poll.poll()):
            return 0
        with contextlib.suppress(BlockingIOError):
            if signal.SIGTERM in os.read(wakeup, 512):
                return 0


def _reap() -> Iterator[tuple[int, int]]:
    """Reap the children that have ended, adopted ones included."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            yield pid, status


def _sweep(worker: int) -> None:
    """Kill all descendants until none is left."""
    with contextlib.suppress(OSError):
        os.killpg(worker, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):  # it may have been reaped already
        os.waitpid(worker, 0)
    deadline = time.monotonic() + SWEEP
    pause = 0.0005
    while time.monotonic() < deadline:
        for _ in _reap():
            pass
        left = _descendants()
        if not left:
            return
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(pause)
        pause = min(2 * pause, 0.02)


def _descendants() -> list[int]:
    """List the descendants of this process, on systems with `/proc`."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return []  # without children there are no descendants: orphans are adopted
    children: dict[int, list[int]] = {}
    with contextlib.suppress(OSError):
        for entry in os.listdir("/proc"):
            if entry.isdecimal():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    parent = _parent(entry)
                    children.setdefault(parent, []).append(int(entry))
    found = children.get(os.getpid(), [])
    for pid in found:  # grows while it is read
        found.extend(children.get(pid, ()))
    return found


def _parent(pid: str) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:
        # The name in the second field may contain spaces and parentheses.
        return int(file.read().rpartition(b")")[2].split()[1])


def _end_with(status: int) -> NoReturn:
    """End this process with the same wait status."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with contextlib.suppress(Exception):
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the worker has made its core dump already
        with contextlib.suppress(OSError, ValueError):  # SIGKILL has no handler to reset
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        time.sleep(SWEEP)  # the signal is on its way
    os._exit(os.WEXITSTATUS(status))
