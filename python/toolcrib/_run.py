"""Calls from synchronous code, on an event loop of their own.

The loop of a thread is kept for its next call, if the call has left nothing on it: making one takes longer than most
calls. So are the threads of calls that are made inside of a running loop.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, TypeVar

from toolcrib import _core

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Coroutine, Mapping
    from concurrent.futures import ThreadPoolExecutor
    from types import AsyncGeneratorType

    from toolcrib._core import Toolkit, ToolkitView, ToolResponse

T = TypeVar("T")


def run(
    toolkit: Toolkit | ToolkitView, name: str, misplaced: tuple[Any, ...], arguments: Mapping[str, Any]
) -> ToolResponse:
    """Call a tool and return its last response.

    Args:
        toolkit: The toolkit, or a view of one.
        name: The tool's name.
        misplaced: Arguments that were not passed by keyword.
        arguments: The arguments, as a model would send them.

    Raises:
        TypeError: If an argument is misplaced, or `name` is not a string.
    """
    _core._check_call("run", name, misplaced)

    async def last() -> ToolResponse:
        return await toolkit.call(name, **arguments)

    return wait_for(last)


def finished(awaitable: Awaitable[T]) -> T:
    """Wait for the result of an awaitable that belongs to no event loop."""

    async def result() -> T:
        return await awaitable

    return wait_for(result)


def wait_for(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine on an event loop of its own; in a thread of its own, if this one has a loop that runs."""
    import asyncio

    return run_here(main) if asyncio._get_running_loop() is None else wait_in_thread(main)


def wait_in_thread(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine on an event loop in a thread of its own, with the caller's context variables."""
    import contextvars

    return _threads.executor().submit(contextvars.copy_context().run, _run_on, _shared.runners, main).result()


def run_here(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine as `asyncio.run` does, without changing the thread's event loop."""
    return _run_on(_local.idle.runners, main)


def _run_on(idle: list[_Runner], main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine on one of the idle loops, or on a new one."""
    import asyncio

    if sys.version_info < (3, 11):
        return asyncio.run(main())
    try:
        runner = idle.pop()
    except IndexError:
        runner = _Runner()
    try:
        return runner.run(main)
    finally:
        if runner.process != os.getpid():
            pass  # The call has forked, and this is the child.
        elif runner.is_clean():
            idle.append(runner)
        else:
            runner.close()


class _Runner:
    """An event loop, and the process that made it."""

    def __init__(self) -> None:
        import asyncio

        from toolcrib._watched_loop import new_loop

        self.process = os.getpid()
        self._runner = asyncio.Runner(loop_factory=new_loop)  # type: ignore[attr-defined] # from 3.11
        self._loop: asyncio.AbstractEventLoop = self._runner.get_loop()
        self._first_iteration: Callable[[Any], object] | None = None
        self._generators: weakref.WeakSet[AsyncGeneratorType[Any, Any]] = weakref.WeakSet()
        self._scheduled = 0
        self._finalizer = weakref.finalize(self, _finalize, self._loop, self.process)

    def run(self, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine, and the callbacks that it has scheduled when it ends."""
        return self._loop.run_until_complete(self._watched(main))

    async def _watched(self, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine and note its async generators; the loop takes the hook back when it stops."""
        self._first_iteration = sys.get_asyncgen_hooks().firstiter
        sys.set_asyncgen_hooks(firstiter=self._note)
        try:
            return await main()
        finally:
            # The next callback is the one that stops the loop. Those before it run; those after it would be left.
            self._scheduled = getattr(self._loop, "scheduled", 0) + 1

    def _note(self, generator: Any) -> None:
        self._generators.add(generator)
        if self._first_iteration is not None:
            self._first_iteration(generator)

    def is_clean(self) -> bool:
        """Return true if a call has left nothing on the loop: no task, callback, timer, generator, thread or file.

        A loop of another kind than asyncio's own cannot be watched, and is not clean.
        """
        import asyncio

        from toolcrib._watched_loop import WatchedLoop

        loop = self._loop
        if not isinstance(loop, WatchedLoop) or loop.is_touched or loop.scheduled != self._scheduled:
            return False
        if asyncio.all_tasks(loop):
            return False
        loop.forget_timers()
        return not loop.timers and all(generator.ag_frame is None for generator in self._generators)

    def close(self) -> None:
        """Cancel the tasks that are left, and close the loop."""
        self._finalizer.detach()
        self._runner.close()


def _finalize(loop: asyncio.AbstractEventLoop, process: int) -> None:
    """Close the loop of a thread that has ended."""
    if process == os.getpid():
        loop.close()


class _Idle:
    """Event loops that no call uses: that of a thread, or those of the threads inside of running loops."""

    def __init__(self) -> None:
        self.runners: list[_Runner] = []
        with _lock:
            _all_idle.add(self)


class _Local(threading.local):
    """The idle event loop of each thread."""

    def __init__(self) -> None:
        self.idle = _Idle()


def _close_idle() -> None:
    """Close the idle loops before a fork: a child could not close its copies without disturbing this process."""
    with _lock:
        for idle in tuple(_all_idle):
            with contextlib.suppress(IndexError):  # There are none left, also because a call has taken one meanwhile.
                while True:
                    idle.runners.pop().close()


def _renew_lock() -> None:
    """Make the lock of a forked process, which may have been held by another thread."""
    global _lock
    _lock = threading.Lock()


_lock = threading.Lock()
_all_idle: weakref.WeakSet[_Idle] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_idle, after_in_child=_renew_lock)


class _Threads:
    """The threads of calls inside of running loops: as many as there are such calls at a time."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None
        self._process = 0

    def executor(self) -> ThreadPoolExecutor:
        """Return the executor of this process. A forked one has no threads."""
        from concurrent.futures import ThreadPoolExecutor

        if self._executor is None or self._process != os.getpid():
            self._executor, self._process = ThreadPoolExecutor(100_000, "toolcrib-run"), os.getpid()
        return self._executor


_local = _Local()
_shared = _Idle()
_threads = _Threads()
