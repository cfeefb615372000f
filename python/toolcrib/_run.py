"""Calls from synchronous code, on an event loop of their own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

from toolcrib import _core

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

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
    from concurrent.futures import ThreadPoolExecutor

    context = contextvars.copy_context()
    with ThreadPoolExecutor(1, "toolcrib-run") as executor:
        return executor.submit(context.run, run_here, main).result()


def run_here(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine as `asyncio.run` does, without changing the thread's event loop."""
    import asyncio

    if sys.version_info < (3, 11):
        return asyncio.run(main())
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(main())
