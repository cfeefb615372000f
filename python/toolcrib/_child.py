"""The processes of a child in process mode: a template, and the workers that it forks to serve one call each.

The supervisor starts the template, which runs `serve`. The template loads the modules of the tools and forks a worker
for each call. The worker answers the host itself and exits, so that no call sees what another one has left behind. A
fork takes longer than a short call, so the next worker is forked as soon as one has ended. It reads the next call, and
passes it back if the template has to load a module first.

This file and those that it imports are loaded by their paths (see `_children.py`), while only folders of the
interpreter are on the import path.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import resource
import signal
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from ._child_call import Server, flush, is_loaded, load, refuse
from ._child_state import ProcessState
from ._messages import Connection, receive, send


class Worker:
    """A process that is forked from the template and serves one call, the given one or else the next one."""

    def __init__(self, template: Template, request: tuple[Any, ...] | None = None) -> None:
        self._report, report = socket.socketpair()
        flush()  # what a module has printed would be written by both
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about threads of libraries: those of Python are not there, see `Template`
            self._pid = os.fork()
        if self._pid == 0:
            self._report.close()
            template.become_worker(report, request)
        report.close()

    def report(self) -> tuple[int, bytearray]:
        """Wait for the next call, and return its number, and its request if the worker cannot serve it."""
        with self._report:
            return receive(self._report)

    def wait(self) -> int:
        """Wait for its end, and return the exit code."""
        self._report.close()
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


class Template:
    """The process that loads the modules of tools, and forks the workers that run them.

    If a module has started threads, a fork would lack them. The template then serves the call itself and exits, as it
    does on systems whose libraries do not survive a fork.
    """

    def __init__(self, wire: socket.socket, *, can_fork: bool) -> None:
        self.connection = Connection(wire)
        self.state = ProcessState()
        self.can_fork = can_fork
        self.end_with_parent = _end_with_parent() if can_fork else None

    def serve(self) -> None:
        """Serve calls until the host closes the socket, or until a call has to be served here."""
        first, content = receive(self.connection.wire)
        while True:
            if content:
                self.connection.number = first
                request = self.prepare(content)
                if not self.can_fork:
                    Server(self.connection, self.state).serve(request)
                    return
                try:
                    worker = Worker(self, request)
                except OSError as error:
                    refuse(self.connection, error)
            code = worker.wait()
            if code != 0:
                end_with(code)
            send(self.connection.wire, first, b"")
            try:
                worker = Worker(self)
            except OSError:  # there are too many processes now
                first, content = receive(self.connection.wire)
                continue
            try:
                first, content = worker.report()
            except EOFError:  # there was no call
                end_with(worker.wait())

    def can_serve(self, request: tuple[Any, ...]) -> bool:
        """Return True if a worker that was forked before a call can serve it."""
        _, surroundings, modules, _ = request
        return surroundings is None and all(map(is_loaded, modules))

    def prepare(self, content: bytearray) -> tuple[Any, ...]:
        """Load the modules that a call needs, in the surroundings of the host, and return the request."""
        request: tuple[Any, ...] = pickle.loads(content)
        _, surroundings, modules, _ = request
        missing = [name for name in modules if not is_loaded(name)]
        try:
            self.state.restore(surroundings)
            for name in missing:
                load(name, self.connection)
            self.state.restore(None)  # a module may have changed it; if it ignores SIGCHLD, no end would be noticed
        except BaseException as error:  # a module that was executed in part is not used for another call
            refuse(self.connection, error)
        self.can_fork = self.can_fork and threading.active_count() == 1
        if missing:
            gc.collect()
            gc.freeze()  # a collection in a worker would copy every page that has objects
        return request

    def become_worker(self, report: socket.socket, request: tuple[Any, ...] | None) -> NoReturn:
        """Serve a call in a forked process, and exit."""
        try:
            os.setsid()
            if self.end_with_parent is not None:
                self.end_with_parent()
            if os.getppid() != self.connection.pid:
                os._exit(1)
            reseed()
            connection = Connection(self.connection.wire, self.connection.number)
            server = Server(connection, self.state)
            if request is None:
                server.rehearse()
                connection.number, content = receive(connection.wire)
                request = pickle.loads(content)
                if not self.can_serve(request):
                    send(report, connection.number, content)
                    os._exit(0)
                send(report, connection.number, b"")
            report.close()
            server.serve(request)
        except (EOFError, OSError):
            os._exit(0)  # the host has hung up, or the tool has closed the socket
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)


def _end_with_parent() -> Callable[[], object] | None:
    """Return a function that lets the kernel kill this process when its parent ends; None if there is none."""
    try:
        import ctypes

        control = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None
    return lambda: control(1, int(signal.SIGKILL))  # PR_SET_PDEATHSIG


def reseed() -> None:
    """Give a fork other random numbers than its siblings have, where the library does not do that itself."""
    for name in ("numpy.random", "torch"):
        seed = getattr(sys.modules.get(name), "seed", None)
        if seed is not None:
            with contextlib.suppress(Exception):
                seed()


def end_with(code: int) -> NoReturn:
    """End in the way in which a worker has, which the supervisor reports to the host."""
    if code >= 0:
        os._exit(code)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the worker has written one
    with contextlib.suppress(OSError, ValueError):
        signal.signal(-code, signal.SIG_DFL)  # SIGKILL has no other action
    os.kill(os.getpid(), -code)
    os._exit(1)


def serve(descriptor: int, can_fork: bool) -> NoReturn:
    """Serve the host at the other end of a socket until it closes the socket."""
    os.set_inheritable(descriptor, False)
    sys.argv[:] = [""]
    try:
        Template(socket.socket(fileno=descriptor), can_fork=can_fork).serve()
    except (EOFError, OSError):
        pass
    finally:
        flush()
        os._exit(0)
