"""Calls from synchronous code, on event loops that stay.

A client, a lock or a connection pool belongs to the event loop that it was first used on. So a thread keeps its loop
for its next call, with the tasks that are left on it, which go on then. Threads that run tools come and go: they use
the first loop that is free of a list that they share, and so do the threads of calls that are made inside of a
running loop.
"""

from __future__ import annotations

import atexit
import itertools
import os
import threading
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from toolcrib import _core

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Coroutine, Mapping
    from concurrent.futures import ThreadPoolExecutor

    from toolcrib._core import Toolkit, ToolkitView, ToolResponse

T = TypeVar("T")

# The most idle loops that threads of tools keep.
MOST_IDLE = 16

# The number of seconds that the end of a loop waits for its tasks to be cancelled.
END_TIMEOUT = 1.0

_numbers = itertools.count()


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


async def ending_tasks(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine and cancel the tasks that it leaves, as `asyncio.run` does."""
    import asyncio

    before = asyncio.all_tasks()
    try:
        return await main()
    finally:
        left = asyncio.all_tasks() - before
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)


def wait_for(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine on the event loop of this thread; in another thread, if this one has a loop that runs."""
    import asyncio

    return run_here(main) if asyncio._get_running_loop() is None else wait_in_thread(main)


def wait_in_thread(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine on an event loop in another thread, with the caller's context variables.

    Raises:
        RecursionError: If too many calls wait for one another in this way.
    """
    import contextvars

    depth, loop = _core._nesting() + 1, _shared.take()
    nested = partial(_core._call_nested, depth, partial(_shared.run, loop, main))
    try:
        future = _threads.executor().submit(contextvars.copy_context().run, nested)
    except BaseException:
        _shared.give_back(loop)
        raise
    try:
        result: T = _core._call_held(future.result)
    except BaseException:
        if not future.done():  # The caller is interrupted, by Ctrl-C.
            loop.interrupt()
        raise
    return result


def run_here(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine on an event loop in this thread, without changing the thread's event loop."""
    result: T
    if not _core._nesting():
        loop = _local.kept.loop()
        if threading.get_ident() == threading.main_thread().ident:
            return loop.run(main)
        # A tool may have started this thread and wait for it, so its calls do not queue up behind such tools.
        result = _core._call_nested(1, partial(loop.run, main))
        return result
    result = _core._call_held(lambda: _shared.run(_shared.take(), main))
    return result


class _Loop:
    """An event loop, which one thread at a time runs."""

    def __init__(self) -> None:
        import asyncio

        self.number = next(_numbers)
        self.loop: asyncio.AbstractEventLoop = asyncio.new_event_loop()
        self._task: asyncio.Task[Any] | None = None
        self._is_interrupted = False
        with _lock:
            _all.add(self)

    def run(self, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine; if that is interrupted, by Ctrl-C, all tasks are cancelled, as `asyncio.run` does."""
        task = self._task = self.loop.create_task(main())
        if self._is_interrupted:
            task.cancel()
        try:
            result: T = self.loop.run_until_complete(task)
            return result
        except BaseException as error:
            if not task.done():
                self.cancel_tasks(None)
            elif isinstance(error, (KeyboardInterrupt, SystemExit)):
                task.cancelled() or task.exception()  # It is raised here, and need not be reported.
                self.cancel_tasks(None)
            raise
        finally:
            self._task = None

    def interrupt(self) -> None:
        """Cancel the coroutine that runs, or is about to, from another thread."""
        self._is_interrupted = True
        if self._task is not None:
            self.loop.call_soon_threadsafe(self._task.cancel)

    def is_reusable(self) -> bool:
        """Return true unless the loop was closed, or its last coroutine was interrupted."""
        return not self.loop.is_closed() and not self._is_interrupted

    def is_empty(self) -> bool:
        """Return true if there is no task or async generator left."""
        import asyncio

        return not asyncio.all_tasks(self.loop) and not getattr(self.loop, "_asyncgens", None)

    def cancel_tasks(self, timeout: float | None) -> None:
        """Cancel all tasks, wait for their ends, and report their exceptions."""
        import asyncio

        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        pending = tasks
        while pending:
            _, pending = self.loop.run_until_complete(asyncio.wait(pending, timeout=timeout or END_TIMEOUT))
            # An interrupt may have hit the loop just before it resumed a task, which then waits for nothing, for ever.
            if timeout is not None or all(getattr(task, "_fut_waiter", None) is None for task in pending):
                break
        for task in tasks:
            if task is not self._task and task.done() and not task.cancelled() and task.exception() is not None:
                context = {
                    "message": "exception of a task that was cancelled",
                    "exception": task.exception(),
                    "task": task,
                }
                self.loop.call_exception_handler(context)

    def close(self) -> None:
        """Cancel the tasks and close the async generators that are left, and close the loop."""
        if self.loop.is_closed() or self.loop.is_running():
            return
        try:
            if not self.is_empty():
                self.cancel_tasks(END_TIMEOUT)
                self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.loop.close()


class _Kept:
    """The event loop of one thread, which ends with the thread."""

    def __init__(self) -> None:
        self._loop: _Loop | None = None

    def loop(self) -> _Loop:
        if self._loop is None or not self._loop.is_reusable():
            self._loop = _Loop()
            weakref.finalize(self, _end, self._loop).atexit = False
        if _ended:
            _close_ended()
        return self._loop


def _end(loop: _Loop) -> None:
    """Close the loop of a thread that has ended, or leave that to another thread: this one cannot run it any more."""
    if loop in _all and loop.is_empty():
        loop.close()
    elif loop in _all:
        _ended.append(loop)


def _close_ended() -> None:
    while _ended:
        _ended.pop().close()


class _Local(threading.local):
    """The event loop of each thread."""

    def __init__(self) -> None:
        self.kept = _Kept()


class _Shared:
    """The idle event loops of threads that run tools, and of calls inside of running loops."""

    def __init__(self) -> None:
        self._idle: list[_Loop] = []

    def take(self) -> _Loop:
        """Take the loop that was made first, so that calls one after the other use the same one."""
        with _lock:
            if self._idle:
                return self._idle.pop(self._idle.index(min(self._idle, key=lambda loop: loop.number)))
        return _Loop()

    def give_back(self, loop: _Loop) -> None:
        """Keep a loop for the next call, if there are not too many."""
        with _lock:
            if loop not in _all:
                return  # The call has forked, and this is the child.
            if loop.is_reusable() and len(self._idle) < MOST_IDLE:
                self._idle.append(loop)
                return
        loop.close()

    def run(self, loop: _Loop, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine on a loop that was taken, and give it back."""
        try:
            return loop.run(main)
        finally:
            self.give_back(loop)


class _Threads:
    """The threads of calls inside of running loops: as many as there are such calls at a time."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None

    def executor(self) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor

        if self._executor is None:
            self._executor = ThreadPoolExecutor(100_000, "toolcrib-run")
        return self._executor


def _reset() -> None:
    """Make the state of a process: there are no loops and no threads yet."""
    global _lock, _all, _ended, _local, _shared, _threads
    _lock = threading.Lock()
    _all = weakref.WeakSet()
    _ended = []
    _local, _shared, _threads = _Local(), _Shared(), _Threads()


def _forget() -> None:
    """Forget the loops of the other process after a fork: to close a copy would unregister files in that one."""
    for loop in tuple(_all):
        _core._keep_for_ever(loop.loop)
    _reset()


def _close_all() -> None:
    """Close the loops at the end of the program, unless a thread still runs them."""
    _close_ended()
    for loop in sorted(_all, key=lambda loop: loop.number):
        loop.close()


_lock: threading.Lock
_all: weakref.WeakSet[_Loop]
_ended: list[_Loop]
_local: _Local
_shared: _Shared
_threads: _Threads
_reset()
atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
