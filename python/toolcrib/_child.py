"""The worker process of process mode: reads calls from a socket, runs them and answers. It defines the protocol.

The worker is started by a supervisor and runs `serve`. This file is loaded by its path (see `_children.py`), while only
folders of the interpreter are on the import path.

A message is a header of sixteen bytes and a pickle. The header is the number of the message and the length of the
pickle, big-endian. The host draws a random number for each call. The first request of the call has this number, each
further request the next one, and an answer has the number of its request. If an answer has any other number, the host
discards the child: the answer belongs to another call, or was written by other code that has the socket.

    request                                                    answers
    ("call", surroundings, pickle of (function, args, kwargs)) ("value", result), ("stream",), ("raise", ...)
    ("next",), after ("stream",)                               ("chunk", item), ("end",), ("raise", ...)
    ("close",), after ("stream",)                              ("end",), ("raise", ...)

Before it answers, the worker may make inquiries for the tool's context: ("inquiry", kind, content). Each is answered by
a request ("reply", True, value) or ("reply", False, exception), which the next inquiry or the final answer follows.

`("raise", pickled exception or None, name of its type, text, traceback)` carries any exception of a tool. The
surroundings are `None` if they have not changed since the call before; the worker restores them before every call.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import asyncio
import collections.abc
import contextlib
import contextvars
import importlib
import importlib.machinery
import importlib.util
import inspect
import io
import os
import pickle
import runpy
import signal
import socket
import struct
import sys
import threading
import traceback
import types
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypedDict

MAIN = "__mp_main__"
"""The module name of the host's script in a child, the same as in `multiprocessing`."""

HEADER = struct.Struct(">QQ")
"""The number of a message and the length of its pickle."""


class Surroundings(TypedDict):
    """The state of the host that a call sees."""

    path: list[str]
    """`sys.path` without the working folder and relative entries."""
    modules: dict[str, tuple[str | None, list[str] | None]]
    """File and package folders of the modules that the host has loaded from other folders, found before all others."""
    names: dict[str, str]
    """The folders of modules that were in the working folder when the program began, found after all others."""
    folder: str | None
    environment: dict[bytes, bytes]
    main: tuple[str, str] | None
    """`("module", name)` or `("file", path)` of the host's script."""


class StrayAnswer(Exception):
    """An answer that does not belong to the last request."""


def send(wire: socket.socket, number: int, message: bytes) -> None:
    """Write one message."""
    header = HEADER.pack(number, len(message))
    if len(message) < 65536:
        wire.sendall(header + message)
    else:
        wire.sendall(header)
        wire.sendall(message)


def receive(wire: socket.socket, expected: int | None = None) -> tuple[int, bytearray]:
    """Read one message and its number.

    Args:
        wire: The socket.
        expected: The number that the message must have.

    Raises:
        EOFError: The connection has ended.
        StrayAnswer: The message has another number.
    """
    number, length = HEADER.unpack(_read(wire, HEADER.size))
    if expected is not None and number != expected:
        raise StrayAnswer
    return number, _read(wire, length)


def _read(wire: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = wire.recv_into(view)
        if not count:
            raise EOFError("the other process has ended")
        view = view[count:]
    return data


class HostModules:
    """Finder for modules that the host has loaded from folders outside of the import path, by their files."""

    def __init__(self) -> None:
        self.modules: dict[str, tuple[str | None, list[str] | None]] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Find a top-level module."""
        if path is not None or name not in self.modules:
            return None
        file, folders = self.modules[name]
        if file is not None:
            return importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = folders
        return spec


class ProgramModules:
    """Finder for modules of the program in the working folder that were there before a tool could write to it."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Find a top-level module."""
        if path is not None or name not in self.names:
            return None
        return importlib.machinery.PathFinder.find_spec(name, [self.names[name]])


class ProcessState:
    """Restores the surroundings before each call, so that no call sees the changes of an earlier one."""

    def __init__(self) -> None:
        self.surroundings: Surroundings | None = None
        self.host_modules = HostModules()
        self.program_modules = ProgramModules()
        sys.meta_path.insert(0, self.host_modules)
        sys.meta_path.append(self.program_modules)
        # `signal.getsignal` converts to enumerations, which is too slow for every signal in every call.
        self.handlers = {int(number): _signal.getsignal(number) for number in signal.valid_signals()}
        self.mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self.streams = (sys.stdin, sys.stdout, sys.stderr)
        self.umask = os.umask(0o077)
        os.umask(self.umask)

    def restore(self, surroundings: Surroundings | None) -> Surroundings:
        """Restore these surroundings, or the last ones."""
        if surroundings is not None:
            self.surroundings = surroundings
            self.host_modules.modules = surroundings["modules"]
            self.program_modules.names = surroundings["names"]
        else:
            surroundings = self.surroundings
        assert surroundings is not None, "the first call has surroundings"
        if sys.path != surroundings["path"]:
            sys.path[:] = surroundings["path"]
            importlib.invalidate_caches()
        if environment() != surroundings["environment"]:
            os.environb.clear()
            os.environb.update(surroundings["environment"])
        self._reset_signals()
        sys.stdin, sys.stdout, sys.stderr = self.streams
        os.umask(self.umask)
        folder = surroundings["folder"]
        if folder is not None and _working_folder() != folder:
            os.chdir(folder)
        return surroundings

    def _reset_signals(self) -> None:
        for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
            signal.setitimer(timer, 0)
        for number, handler in self.handlers.items():
            if handler is not None and _signal.getsignal(number) is not handler:
                signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)


def environment() -> Mapping[bytes, bytes]:
    """Return the environment of this process in a form that is quick to compare and to copy.

    `os.environb` encodes and checks every item, which would take a large part of the time of a call.
    """
    data: Mapping[bytes, bytes] = getattr(os.environb, "_data", os.environb)
    return data


def _working_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None  # it was removed


class Unpickler(pickle.Unpickler):
    """Unpickler that finds definitions of the host's script, which it loads when it is first needed."""

    main: tuple[str, str] | None = None
    exchange: Callable[[str, Any], Any]

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Find a name in its module."""
        if module_name in ("__main__", MAIN):
            if MAIN not in sys.modules:
                load_main(self.main)
            module_name = MAIN
        found = super().find_class(module_name, global_name)
        if module_name == "toolcrib.context":
            context = sys.modules[module_name]
            context.child_port = context.ChildPort(self.exchange)  # type: ignore[attr-defined]
        return found


def load_main(main: tuple[str, str] | None) -> None:
    """Run the host's script as a module of another name, so that its `__main__` part does not run."""
    if main is None:
        raise ImportError("the main module of the host is not a file")
    module = types.ModuleType(MAIN)
    kind, where = main
    if kind == "module":
        content = runpy.run_module(where, run_name=MAIN, alter_sys=True)
    else:
        content = runpy.run_path(where, run_name=MAIN)
    module.__dict__.update(content)
    sys.modules[MAIN] = sys.modules["__main__"] = module


class Stream:
    """The items of a generator or an async generator, one at a time."""

    def __init__(self, source: Any, loop: asyncio.AbstractEventLoop | None) -> None:
        self.source = source
        self.loop = loop

    def step(self) -> tuple[Any, ...]:
        """Produce the next item."""
        try:
            if self.loop is None:
                return ("chunk", next(self.source))
            return ("chunk", self.loop.run_until_complete(self.source.__anext__()))
        except (StopIteration, StopAsyncIteration):
            return ("end",)

    def close(self) -> None:
        """Run the `finally` blocks of the generator."""
        if self.loop is None:
            self.source.close()
        elif hasattr(self.source, "aclose"):
            self.loop.run_until_complete(self.source.aclose())


class Server:
    """Serves one host, one call at a time."""

    def __init__(self, wire: socket.socket) -> None:
        self.wire = wire
        self.pid = os.getpid()
        self.state = ProcessState()
        self.context = contextvars.Context()
        self.stream: Stream | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.number = 0
        self.lock = threading.Lock()

    def serve(self) -> None:
        """Answer requests until the host closes the socket."""
        while True:
            self.number, content = receive(self.wire)
            request = pickle.loads(content)
            if request[0] == "call":
                self.context = contextvars.Context()
            try:
                reply = self.context.run(self.answer, request)
            except BaseException as error:  # the host handles it
                self.leave_if_forked(error)
                self.stream = None
                reply = failure(error)
            self.leave_if_forked(None)
            try:
                message = pickle.dumps(reply, pickle.HIGHEST_PROTOCOL)
            except BaseException as error:
                self.stream = None
                problem = RuntimeError(f"a `{type(reply[1]).__name__}` cannot be sent back from the process: {error}")
                message = pickle.dumps(failure(problem), pickle.HIGHEST_PROTOCOL)
            if self.stream is None:
                self.context.run(self.end_loop)
            flush()
            self.leave_if_forked(None)
            with self.lock:
                send(self.wire, self.number, message)

    def exchange(self, kind: str, content: Any) -> Any:
        """Make an inquiry of the host, from any thread of the tool."""
        if os.getpid() != self.pid:
            raise RuntimeError("the context of a call is of no use in a process that the tool has forked")
        message = pickle.dumps(("inquiry", kind, content), pickle.HIGHEST_PROTOCOL)
        with self.lock:
            send(self.wire, self.number, message)
            self.number, reply = receive(self.wire, self.number + 1)
        _, is_answered, value = pickle.loads(reply)
        if not is_answered:
            raise value
        return value

    def leave_if_forked(self, error: BaseException | None) -> None:
        """Exit in a process that the tool has forked and that returned to here: only the worker itself answers."""
        if os.getpid() == self.pid:
            return
        code = 0
        if isinstance(error, SystemExit):
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
        elif error is not None:
            traceback.print_exception(type(error), error, error.__traceback__)
            code = 1
        flush()
        os._exit(code & 0xFF)

    def answer(self, request: tuple[Any, ...]) -> tuple[Any, ...]:
        """Answer one request."""
        if request[0] == "call":
            return self.call(*request[1:])
        if self.stream is None:
            return ("end",)
        if request[0] == "close":
            stream, self.stream = self.stream, None
            stream.close()
            return ("end",)
        reply = self.stream.step()
        if reply[0] == "end":
            self.stream = None
        return reply

    def call(self, surroundings: Surroundings | None, payload: bytes) -> tuple[Any, ...]:
        """Run a function to its end, or to the generator that it returns."""
        self.stream = None
        surroundings = self.state.restore(surroundings)
        unpickler = Unpickler(io.BytesIO(payload))
        unpickler.main = surroundings["main"]
        unpickler.exchange = self.exchange
        function, args, kwargs = unpickler.load()
        result = function(*args, **kwargs)
        if inspect.isawaitable(result):
            result = self.run(result)
        if inspect.isasyncgen(result) or isinstance(result, collections.abc.AsyncIterator):
            self.stream = Stream(result, self.begin_loop())
            return ("stream",)
        if inspect.isgenerator(result):
            self.stream = Stream(result, None)
            return ("stream",)
        return ("value", result)

    def run(self, awaitable: Any) -> Any:
        """Wait for a coroutine."""

        async def wait() -> Any:
            return await awaitable

        return self.begin_loop().run_until_complete(wait())

    def begin_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop of the call, a new one if it has none."""
        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        return self.loop

    def end_loop(self) -> None:
        """Cancel the remaining tasks of the call, as `asyncio.run` does."""
        loop, self.loop = self.loop, None
        if loop is None:
            return
        try:
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        except BaseException:  # the call has its answer, which the remaining tasks cannot change
            traceback.print_exc()
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def failure(error: BaseException) -> tuple[Any, ...]:
    """Return the answer for an exception: its text, and its pickle if it can be restored from that."""
    frames = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        text = str(error)
    except BaseException:
        text = f"<{type(error).__name__} without a text>"
    pickled: bytes | None
    try:
        pickled = pickle.dumps(error, pickle.HIGHEST_PROTOCOL)
        if type(pickle.loads(pickled)) is not type(error):
            pickled = None
    except BaseException:
        pickled = None
    return ("raise", pickled, type(error).__name__, text, frames)


def flush() -> None:
    """Flush the outputs, unless the tool has closed or replaced them."""
    for output in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            output.flush()


def serve(descriptor: int) -> NoReturn:
    """Serve the host at the other end of a socket until it closes the socket."""
    os.set_inheritable(descriptor, False)
    wire = socket.socket(fileno=descriptor)
    sys.argv[:] = [""]
    # A process that a tool forks must neither answer nor read requests.
    os.register_at_fork(after_in_child=wire.close)
    try:
        Server(wire).serve()
    except (EOFError, OSError):
        pass
    finally:
        os._exit(0)
