"""One call in a child of process mode: its modules, its function, and the answers to all its requests."""

from __future__ import annotations

import collections.abc
import contextlib
import contextvars
import importlib
import inspect
import io
import os
import pickle
import runpy
import sys
import traceback
import types
from typing import TYPE_CHECKING, Any, NoReturn

from ._child_state import ProcessState
from ._messages import MAIN, Connection, Surroundings, failure

if TYPE_CHECKING:
    import asyncio


def is_loaded(name: str) -> bool:
    """Return True if a module of the host has been executed here."""
    return (MAIN if name == "__main__" else name) in sys.modules


def load(name: str, connection: Connection) -> None:
    """Execute a module of the host.

    The host's script gets another name, so that its `__main__` part does not run. The host refuses it if this would
    start the program a second time.
    """
    global _loading
    _loading = connection
    try:
        if name == "__main__":
            _load_main(connection.exchange("main", None))
        else:
            importlib.import_module(name)
    finally:
        _loading = None


_loading: Connection | None = None
"""The connection of the call for which a module is being executed."""


def refuse_while_loading(error: BaseException) -> None:
    """Answer the call with an error and exit, if this process is executing a module to run a tool of it."""
    if _loading is not None and _loading.pid == os.getpid():
        refuse(_loading, error)


def refuse(connection: Connection, error: BaseException) -> NoReturn:
    """Answer a call that cannot be made, and exit."""
    flush()
    connection.answer(pickle.dumps(failure(error), pickle.HIGHEST_PROTOCOL))
    os._exit(0)


def _load_main(main: tuple[str, str] | None) -> None:
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


class Unpickler(pickle.Unpickler):
    """Unpickler that finds definitions of the host's script, which it loads if the template has not."""

    connection: Connection

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Find a name in its module."""
        if module_name in ("__main__", MAIN):
            if not is_loaded("__main__"):
                load("__main__", self.connection)
            module_name = MAIN
        found = super().find_class(module_name, global_name)
        if module_name == "toolcrib.context":
            context = sys.modules[module_name]
            context.child_port = context.ChildPort(self.connection.exchange)  # type: ignore[attr-defined]
        return found


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
    """Serves one call."""

    def __init__(self, connection: Connection, state: ProcessState) -> None:
        self.connection = connection
        self.pid = os.getpid()
        self.state = state
        self.context = contextvars.Context()
        self.stream: Stream | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        # A process that a tool forks must neither answer nor read requests.
        os.register_at_fork(after_in_child=connection.wire.close)

    def rehearse(self) -> None:
        """Make a call without an effect, so that memory shared with the template is copied before the real call."""
        payload = pickle.dumps((int, (), {}), pickle.HIGHEST_PROTOCOL)
        pickle.dumps(contextvars.Context().run(self.call, None, [], payload), pickle.HIGHEST_PROTOCOL)
        flush()

    def serve(self, request: tuple[Any, ...]) -> None:
        """Answer a call, and the further requests of a generator until its end."""
        while True:
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
            self.connection.answer(message)
            if self.stream is None:
                return
            request = self.connection.receive()

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
        assert self.stream is not None, "only a generator has further requests"
        if request[0] == "close":
            stream, self.stream = self.stream, None
            stream.close()
            return ("end",)
        reply = self.stream.step()
        if reply[0] == "end":
            self.stream = None
        return reply

    def call(self, surroundings: Surroundings | None, modules: list[str], payload: bytes) -> tuple[Any, ...]:
        """Run a function to its end, or to the generator that it returns."""
        self.state.restore(surroundings)
        unpickler = Unpickler(io.BytesIO(payload))
        unpickler.connection = self.connection
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
        import asyncio  # here, because the memory of asyncio and OpenSSL doubles the time of a fork

        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        return self.loop

    def end_loop(self) -> None:
        """Cancel the remaining tasks of the call, as `asyncio.run` does."""
        loop, self.loop = self.loop, None
        if loop is None:
            return
        import asyncio

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


def flush() -> None:
    """Flush the outputs, unless the tool has closed or replaced them."""
    for output in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            output.flush()
