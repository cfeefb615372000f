"""The child process of process mode: reads calls from a socket, runs them, answers.

Started as `python -m toolcrib._child <descriptor>`. A message is its length (eight bytes, big-endian) and a pickle.
Requests are `("call", path, directory, main, pickle of (function, args, kwargs))`, `("next",)` and `("close",)`;
answers are `("value", result)`, `("stream",)`, `("chunk", item)`, `("end",)` and
`("raise", pickled exception or None, name of its type, text, traceback)`.
"""

from __future__ import annotations

import asyncio
import collections.abc
import importlib
import inspect
import io
import os
import pickle
import runpy
import select
import signal
import socket
import sys
import threading
import traceback
import types
from typing import Any

MAIN = "__mp_main__"
"""The name that the parent's script gets here, the one `multiprocessing` uses too."""


def send(wire: socket.socket, message: bytes) -> None:
    """Write one message."""
    wire.sendall(len(message).to_bytes(8, "big"))
    wire.sendall(message)


def receive(wire: socket.socket) -> bytes:
    """Read one message; an ended connection is an `EOFError`."""
    return bytes(_read(wire, int.from_bytes(_read(wire, 8), "big")))


def _read(wire: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = wire.recv_into(view)
        if not count:
            raise EOFError("the other process has gone")
        view = view[count:]
    return data


class Unpickler(pickle.Unpickler):
    """Finds what the parent's script defines, loading the script when it is first asked for."""

    main: tuple[str, str] | None = None

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Look a name up in its module."""
        if module_name in ("__main__", MAIN):
            if MAIN not in sys.modules:
                load_main(self.main)
            module_name = MAIN
        return super().find_class(module_name, global_name)


def load_main(main: tuple[str, str] | None) -> None:
    """Run the parent's script as a module under another name, so that its `__main__` part is not run."""
    if main is None:
        raise ImportError("the main module of the parent process is not a file")
    module = types.ModuleType(MAIN)
    kind, where = main
    if kind == "module":
        content = runpy.run_module(where, run_name=MAIN, alter_sys=True)
    else:
        content = runpy.run_path(where, run_name=MAIN)
    module.__dict__.update(content)
    sys.modules[MAIN] = sys.modules["__main__"] = module


class Stream:
    """The items of a generator or an asynchronous one, taken one at a time."""

    def __init__(self, source: Any, loop: asyncio.AbstractEventLoop | None) -> None:
        self.source = source
        self.loop = loop

    def step(self) -> tuple[Any, ...]:
        """Make the next item."""
        try:
            if self.loop is None:
                return ("chunk", next(self.source))
            return ("chunk", self.loop.run_until_complete(self.source.__anext__()))
        except (StopIteration, StopAsyncIteration):
            return ("end",)

    def close(self) -> tuple[Any, ...]:
        """End the generator before its time."""
        if self.loop is None:
            self.source.close()
        else:
            self.loop.run_until_complete(self.source.aclose())
        return ("end",)


class Server:
    """Serves one parent, one call at a time."""

    def __init__(self, wire: socket.socket) -> None:
        self.wire = wire
        self.stream: Stream | None = None
        self.loop: asyncio.AbstractEventLoop | None = None

    def serve(self) -> None:
        """Answer until the parent goes."""
        while True:
            request = pickle.loads(receive(self.wire))
            try:
                reply = self.answer(request)
            except BaseException as error:  # whatever the function raises is the parent's to judge
                self.stream = None
                reply = failure(error)
            try:
                message = pickle.dumps(reply, pickle.HIGHEST_PROTOCOL)
            except Exception as error:
                self.stream = None
                problem = RuntimeError(f"a `{type(reply[1]).__name__}` cannot be sent back from the process: {error}")
                message = pickle.dumps(failure(problem), pickle.HIGHEST_PROTOCOL)
            if self.stream is None:
                self.end_loop()
            for output in (sys.stdout, sys.stderr):
                if output is not None:
                    output.flush()
            send(self.wire, message)

    def answer(self, request: tuple[Any, ...]) -> tuple[Any, ...]:
        """Do what the parent asks for."""
        if request[0] == "call":
            return self.call(*request[1:])
        if self.stream is None:
            return ("end",)
        reply = self.stream.step() if request[0] == "next" else self.stream.close()
        if reply[0] == "end":
            self.stream = None
        return reply

    def call(self, path: list[str], directory: str, main: tuple[str, str] | None, payload: bytes) -> tuple[Any, ...]:
        """Run a function to its end, or to the generator that it gives."""
        if sys.path != path:
            sys.path[:] = path
            importlib.invalidate_caches()
        if os.getcwd() != directory:
            os.chdir(directory)
        unpickler = Unpickler(io.BytesIO(payload))
        unpickler.main = main
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
        """Give the call an event loop."""
        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        return self.loop

    def end_loop(self) -> None:
        """Stop what the call has left running, as `asyncio.run` does."""
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
        except BaseException:  # the call has its answer; what its remains do cannot change it
            traceback.print_exc()
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def failure(error: BaseException) -> tuple[Any, ...]:
    """Put an exception into words, and into a pickle where it survives that."""
    frames = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        text = str(error)
    except Exception:
        text = f"<{type(error).__name__} without a text>"
    pickled: bytes | None
    try:
        pickled = pickle.dumps(error, pickle.HIGHEST_PROTOCOL)
        if type(pickle.loads(pickled)) is not type(error):
            pickled = None
    except Exception:
        pickled = None
    return ("raise", pickled, type(error).__name__, text, frames)


def watch(descriptor: int) -> None:
    """End this process, and what it has started, when the parent is gone in the middle of a call."""
    poll = select.poll()
    poll.register(descriptor, 0)
    while not any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poll.poll()):
        pass
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    """Serve the parent at the other end of the descriptor that the command line names."""
    wire = socket.socket(fileno=int(sys.argv[1]))
    wire.set_inheritable(False)
    sys.argv[:] = [""]
    # The parent put the package's folder in front; programs that a tool starts are not to see it.
    _, _, path = os.environ.pop("PYTHONPATH", "").partition(os.pathsep)
    if path:
        os.environ["PYTHONPATH"] = path
    threading.Thread(target=watch, args=(wire.fileno(),), daemon=True, name="toolcrib-parent").start()
    try:
        Server(wire).serve()
    except (EOFError, OSError):
        pass
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
