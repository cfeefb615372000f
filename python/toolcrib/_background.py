"""Tools that run in the background: their asyncio tasks, and the methods of `Toolkit` about them.

The core's board keeps the tasks and words the responses; here tasks are started, awaited and cancelled. asyncio is
imported when it is first needed.
"""

from __future__ import annotations

import math
from _weakrefset import WeakSet
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from toolcrib import _core
from toolcrib._core import ToolResponse
from toolcrib._mapping import LiveMapping

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from types import TracebackType

    from typing_extensions import Self

    _Task = asyncio.Task[ToolResponse]


# The tasks that were cancelled before their first steps.
_never_begun: WeakSet[Any] = WeakSet()


class BackgroundTasks(_core.Toolkit):
    """The methods of `Toolkit` about tools that are registered with `async_execution=True`."""

    @property
    def _async_tasks(self) -> Mapping[str, _Task]:
        """The running tasks by their ids; live."""
        return LiveMapping(self._tasks.tasks, self._tasks.task)

    @property
    def _async_results(self) -> Mapping[str, ToolResponse]:
        """The results of finished tasks that were not fetched yet, by their ids; live."""
        return LiveMapping(self._tasks.outcomes, self._tasks.outcome)

    async def view_task(self, task_id: str) -> ToolResponse:
        """Fetch the result of a background task, if it has finished; a result can be fetched once.

        Args:
            task_id: The id in the response that announced the task.
        """
        _update(self._tasks, task_id)
        return _value(self._tasks.fetch(task_id))

    async def wait_task(self, task_id: str, timeout: float = 10) -> ToolResponse:
        """Wait until a background task has finished, and fetch its result.

        Args:
            task_id: The id in the response that announced the task.
            timeout: The maximum number of seconds to wait. The task goes on after that.
        """
        if not timeout >= 0:
            raise ValueError("timeout must be a non-negative number of seconds")
        board = self._tasks
        _update(board, task_id)
        task = board.task(task_id)
        if task is None:
            return _value(board.fetch(task_id))
        await _wait_for([task], None if timeout == math.inf else timeout)
        if not task.done():
            return board.still_running(task_id, str(timeout))
        # Another waiter may have fetched the result; the task still has it.
        _record(board, task_id, task)
        board.fetch(task_id)
        return board.cancelled(task_id) if task.cancelled() else task.result()

    async def cancel_task(self, task_id: str) -> ToolResponse:
        """Cancel a background task. Its result is not kept.

        Args:
            task_id: The id in the response that announced the task.
        """
        _update(self._tasks, task_id)
        task, answer = self._tasks.cancel(task_id)
        if task is not None:
            _cancel(task)
        return answer

    def register_task_tools(self, group_name: str = "basic") -> None:
        """Register `view_task`, `wait_task` and `cancel_task` as tools; the response that announces a task names them.

        Args:
            group_name: The group they belong to, which must exist.

        Raises:
            UnknownGroupError: If the group does not exist.
            DuplicateToolError: If one of the names is taken; then none is registered.
        """
        methods = (self.view_task, self.wait_task, self.cancel_task)
        for method in methods:
            if self._find_tool(method.__name__) is not None:
                # Raises the exception for the name that is taken.
                self.register_tool_function(method, group_name)
        for method in methods:
            self.register_tool_function(method, group_name)

    def limit_task_results(self, count: int = 1000, age: float = 3600.0) -> None:
        """Limit the results of background tasks that are kept until they are fetched.

        Args:
            count: The maximum number of results; the oldest is dropped for a new one.
            age: The number of seconds after which a result is dropped.

        Raises:
            ValueError: If `age` is not a number that is at least zero.
        """
        self._tasks.limit(count, age)

    async def aclose(self) -> None:
        """Cancel all background tasks, and wait until they have ended.

        The toolkit can still be used, and closed again. Results that were not fetched are kept.
        """
        import asyncio

        board = self._tasks
        # A tool that closes its own toolkit is not cancelled.
        current = asyncio.current_task()
        while True:
            for task_id, task in board.tasks().items():
                _update(board, task_id)
                if task is not current and board.cancel(task_id)[0] is not None:
                    _cancel(task)
            for task_id, task in board.leaving().items():
                if task.get_loop().is_closed():
                    board.forget(task_id)
            # A task whose loop does not run is cancelled when the loop runs again, which cannot be awaited here.
            leaving = [task for task in board.leaving().values() if task.get_loop().is_running()]
            if all(task is current for task in leaving):
                return
            await _wait_for([task for task in leaving if task is not current], None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


def begin(board: _core._TaskBoard, task_id: str, tool: str, work: Coroutine[Any, Any, ToolResponse]) -> None:
    """Run a call in a task of its own, with the context variables of the caller.

    Args:
        board: The board to record it on.
        task_id: The id of the task.
        tool: The tool's name, which becomes part of the task's name.
        work: The call.

    Raises:
        RuntimeError: If no asyncio event loop runs in this thread.
    """
    import asyncio

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        reason = f"tool `{tool}` runs in the background, which needs a running asyncio event loop in this thread"
        raise RuntimeError(reason) from None
    tasks: list[_Task] = []
    loop.call_soon(_note_cancelled, tasks)  # It runs right before the first step of the task.
    task = loop.create_task(work, name=f"{tool} {task_id}")
    tasks.append(task)
    board.start(task_id, task)
    task.add_done_callback(partial(_record, board, task_id))


def _note_cancelled(tasks: list[_Task]) -> None:
    """Note that a task is cancelled before its first step."""
    _never_begun.update(task for task in tasks if getattr(task, "_must_cancel", False))


def _record(board: _core._TaskBoard, task_id: str, task: _Task) -> None:
    """Record the outcome of a task, unless that was done before."""
    error = None if task.cancelled() else task.exception()
    if task in _never_begun and board.task(task_id) is not None:
        # Not by `cancel_task`, whose task is not running any more: its caller has had no answer.
        board.finish(task_id, board.cancelled(task_id))
    elif task.cancelled() or (error is not None and not isinstance(error, Exception)):
        # An exception that stops the program has reached the event loop, which stops.
        board.forget(task_id)
    else:
        board.finish(task_id, task.result() if error is None else error)


def _update(board: _core._TaskBoard, task_id: str) -> None:
    """Record the end of a task whose callback has not run yet, or never will."""
    task = board.task(task_id) or board.leaving().get(task_id)
    if task is not None and task.done():
        _record(board, task_id, task)
    elif task is not None and task.get_loop().is_closed():
        board.lose(task_id)


def _value(outcome: ToolResponse | Exception) -> ToolResponse:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _cancel(task: _Task) -> None:
    """Cancel a task from any event loop."""
    import asyncio

    loop = task.get_loop()
    if loop is asyncio.get_running_loop():
        task.cancel()
    else:
        with suppress(RuntimeError):  # That loop was closed meanwhile.
            loop.call_soon_threadsafe(task.cancel)


async def _wait_for(tasks: Sequence[_Task], timeout: float | None) -> None:
    """Wait for the end of tasks, of any event loop, up to a timeout. Cancelling the wait does not cancel them.

    Args:
        tasks: At least one.
        timeout: The number of seconds; None to wait without limit.
    """
    import asyncio

    here = asyncio.get_running_loop()
    ends: set[asyncio.Future[Any]] = set()
    listeners: list[tuple[_Task, Callable[[_Task], None]]] = []
    for task in tasks:
        if task.get_loop() is here:
            ends.add(task)
            continue
        end: asyncio.Future[Any] = here.create_future()
        listener = partial(_notify, end)
        ends.add(end)
        listeners.append((task, listener))
        with suppress(RuntimeError):  # That loop was closed meanwhile.
            task.get_loop().call_soon_threadsafe(task.add_done_callback, listener)
    try:
        await asyncio.wait(ends, timeout=timeout)
    finally:
        for task, listening in listeners:
            with suppress(RuntimeError):
                task.get_loop().call_soon_threadsafe(task.remove_done_callback, listening)


def _notify(end: asyncio.Future[Any], task: _Task) -> None:
    """Notify the event loop of a future that a task has ended."""
    del task
    with suppress(RuntimeError):  # That loop was closed meanwhile.
        end.get_loop().call_soon_threadsafe(resolve, end)


def resolve(future: asyncio.Future[Any]) -> None:
    """Set the result of a future, unless it is done.

    Args:
        future: The future, of the running event loop.
    """
    if not future.done():
        future.set_result(None)
