"""Calls from synchronous code, on an event loop of their own.

The loop of a thread is kept for its next call, if the call has left nothing on it: making one takes longer than most
calls. So are the threads of calls that are made inside of a running loop.
"""

from __future__ import annotations

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

    return _threads.executor().submit(contextvars.copy_context().run, run_here, main).result()


def run_here(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine as `asyncio.run` does, without changing the thread's event loop."""
    import asyncio

    if sys.version_info < (3, 11):
        return asyncio.run(main())
    runner, _local.runner = _local.runner, None
    if runner is None or runner.process != os.getpid():
        runner = _Runner()
    try:
        return runner.loop.run_until_complete(main())
    finally:
        if runner.is_clean():
            _local.runner = runner
        else:
            runner.close()


class _Runner:
    """An event loop, and the process that made it."""

    def __init__(self) -> None:
        import asyncio

        self.process = os.getpid()
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)  # type: ignore[attr-defined] # from 3.11
        self.loop = self._runner.get_loop()
        self._finalizer = weakref.finalize(self, _finalize, self.loop, self.process)

    def is_clean(self) -> bool:
        """Return true if a call has left no task, generator, thread, timer or file on the loop.

        A loop of another kind than asyncio's own cannot be asked, and is not clean.
        """
        import asyncio

        loop: Any = self.loop
        try:
            rest = loop._ready or loop._asyncgens or loop._default_executor or loop._signal_handlers
            timers = any(not timer.cancelled() for timer in loop._scheduled)
            files = len(loop._selector.get_map()) - 1  # without the loop's own
        except AttributeError:
            return False
        return not (rest or timers or files or asyncio.all_tasks(loop))

    def close(self) -> None:
        """Cancel the tasks that are left, and close the loop."""
        self._finalizer.detach()
        self._runner.close()


def _finalize(loop: asyncio.AbstractEventLoop, process: int) -> None:
    """Close the loop of a thread that has ended."""
    if process == os.getpid():
        loop.close()
    else:
        # A copy in a forked process: closing it would unregister files in the other process, too.
        loop._closed = True  # type: ignore[attr-defined]


class _Local(threading.local):
    """The event loop of each thread, while no call uses it."""

    runner: _Runner | None = None


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
_threads = _Threads()
