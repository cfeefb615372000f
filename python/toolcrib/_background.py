"""Tools that go on in the background: their asyncio tasks, and the methods of `Toolkit` that ask for them.

What is known of the tasks, and what is said about them, is decided by the core's board; here they are started,
awaited and cancelled. asyncio is imported when it is first needed.
"""

from __future__ import annotations

import math
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


class BackgroundTasks(_core.Toolkit):
    """The part of `Toolkit` that is about tools registered with `async_execution=True`."""

    @property
    def _async_tasks(self) -> Mapping[str, _Task]:
        """The tasks that run, by their ids; live."""
        return LiveMapping(self._tasks.tasks, self._tasks.task)

    @property
    def _async_results(self) -> Mapping[str, ToolResponse]:
        """What the finished ones gave and nobody has fetched, by their ids; live."""
        return LiveMapping(self._tasks.outcomes, self._tasks.outcome)

    async def view_task(self, task_id: str) -> ToolResponse:
        """Fetch the result of a task that runs in the background, if it is over; a result can be fetched once.

        Args:
            task_id: The id that was given when the tool was called.
        """
        _catch_up(self._tasks, task_id)
        return _given(self._tasks.fetch(task_id))

    async def wait_task(self, task_id: str, timeout: float = 10) -> ToolResponse:
        """Wait until a task that runs in the background is over, and fetch its result.

        Args:
            task_id: The id that was given when the tool was called.
            timeout: How many seconds to wait at most. The task goes on if that is not enough.
        """
        if not timeout >= 0:
            raise ValueError("timeout must be a number of seconds that is not negative")
        board = self._tasks
        _catch_up(board, task_id)
        task = board.task(task_id)
        if task is None:
            return _given(board.fetch(task_id))
        await _end_of([task], None if timeout == math.inf else timeout)
        if not task.done():
            return board.still_running(task_id, str(timeout))
        # Others may have waited too and been quicker; the task still knows what it gave.
        _record(board, task_id, task)
        board.fetch(task_id)
        return board.cancelled(task_id) if task.cancelled() else task.result()

    async def cancel_task(self, task_id: str) -> ToolResponse:
        """Cancel a task that runs in the background. Nothing is kept of it.

        Args:
            task_id: The id that was given when the tool was called.
        """
        _catch_up(self._tasks, task_id)
        task, answer = self._tasks.cancel(task_id)
        if task is not None:
            _cancel(task)
        return answer

    def register_task_tools(self, group_name: str = "basic") -> None:
        """Offer `view_task`, `wait_task` and `cancel_task` to the model, which is told of them when a task starts.

        Args:
            group_name: The group they belong to, which must exist.

        Raises:
            UnknownGroupError: If there is no such group.
            DuplicateToolError: If one of the names is taken; then none is registered.
        """
        methods = (self.view_task, self.wait_task, self.cancel_task)
        for method in methods:
            if self._find_tool(method.__name__) is not None:
                # Raises what is to be raised.
                self.register_tool_function(method, group_name)
        for method in methods:
            self.register_tool_function(method, group_name)

    def limit_task_results(self, count: int = 1000, age: float = 3600.0) -> None:
        """Set how many results of background tasks are kept until somebody fetches them.

        Args:
            count: The most results; the oldest makes room for a new one.
            age: After how many seconds a result is given up.

        Raises:
            ValueError: If `age` is not a number that is at least zero.
        """
        self._tasks.limit(count, age)

    async def aclose(self) -> None:
        """Cancel everything that runs in the background, and wait until it has come to its end.

        The toolkit can still be used, and closed again. Results that are there stay there.
        """
        import asyncio

        board = self._tasks
        # A tool that closes its own toolkit goes on itself.
        current = asyncio.current_task()
        while True:
            for task_id, task in board.tasks().items():
                _catch_up(board, task_id)
                if task is not current and board.cancel(task_id)[0] is not None:
                    _cancel(task)
            for task_id, task in board.leaving().items():
                if task.get_loop().is_closed():
                    board.forget(task_id)
            # A task whose loop stands still is cancelled when that goes on, for which nobody can wait here.
            leaving = [task for task in board.leaving().values() if task.get_loop().is_running()]
            if all(task is current for task in leaving):
                return
            await _end_of([task for task in leaving if task is not current], None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


def begin(board: _core._TaskBoard, task_id: str, tool: str, work: Coroutine[Any, Any, ToolResponse]) -> None:
    """Run a call in a task of its own, with the context variables of the caller.

    Args:
        board: Where it is noted.
        task_id: The id of the task.
        tool: The tool's name, for the task's.
        work: The call.

    Raises:
        RuntimeError: If no asyncio event loop runs in this thread.
    """
    import asyncio

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        reason = f"tool `{tool}` runs in the background, for which an asyncio event loop has to run in this thread"
        raise RuntimeError(reason) from None
    task = loop.create_task(work, name=f"{tool} {task_id}")
    board.start(task_id, task)
    task.add_done_callback(partial(_record, board, task_id))


def _record(board: _core._TaskBoard, task_id: str, task: _Task) -> None:
    """Note what a task came to, if that is not noted yet."""
    error = None if task.cancelled() else task.exception()
    if task.cancelled() or (error is not None and not isinstance(error, Exception)):
        # What asks the program to stop has been told to the event loop, which stops.
        board.forget(task_id)
    else:
        board.finish(task_id, task.result() if error is None else error)


def _catch_up(board: _core._TaskBoard, task_id: str) -> None:
    """Note what the task's callback has not noted yet, or cannot note any more."""
    task = board.task(task_id)
    if task is not None and task.done():
        _record(board, task_id, task)
    elif task is not None and task.get_loop().is_closed():
        board.lose(task_id)


def _given(outcome: ToolResponse | Exception) -> ToolResponse:
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


async def _end_of(tasks: Sequence[_Task], timeout: float | None) -> None:
    """Wait for the end of tasks, of any event loop, but not longer than the timeout. Being cancelled does them no harm.

    Args:
        tasks: At least one.
        timeout: The number of seconds; None to wait as long as it takes.
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
        listener = partial(_tell, end)
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


def _tell(end: asyncio.Future[Any], task: _Task) -> None:
    """Tell another event loop that a task is over."""
    del task
    with suppress(RuntimeError):  # That loop was closed meanwhile.
        end.get_loop().call_soon_threadsafe(_resolve, end)


def _resolve(end: asyncio.Future[Any]) -> None:
    if not end.done():
        end.set_result(None)
