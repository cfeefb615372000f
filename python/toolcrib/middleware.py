"""Middlewares that are ready to use, and the types of those you write: functions around every call of a toolkit."""

from __future__ import annotations

import copy
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from toolcrib._core import ToolResponse, ToolStream

__all__ = ["Middleware", "NextHandler", "mark_last", "tap"]


class NextHandler(Protocol):
    """Lead to the next layer of a call: the next middleware, or the tool."""

    def __call__(self, **kwargs: Any) -> ToolStream:
        """Give the stream of the next layer, which runs when it is iterated.

        Args:
            **kwargs: `tool_call`, and whatever else a middleware further in knows.

        Raises:
            TypeError: If the tool is next, and anything but `tool_call` is passed.
        """
        ...


Middleware: TypeAlias = Callable[
    [dict[str, Any], NextHandler], "AsyncIterator[Any] | Awaitable[AsyncIterator[Any] | ToolResponse] | ToolResponse"
]
"""Is called with `{"tool_call": block}` and with what leads on: an async generator function, or anything that returns a
stream or a response, directly or when awaited."""


async def mark_last(kwargs: dict[str, Any], next_handler: NextHandler) -> AsyncIterator[ToolResponse]:
    """Say which response is the last: `is_last` is true for it and false for every other.

    To know that, each response is held back until the next one comes. One whose flag is wrong is delivered as a copy.

    Args:
        kwargs: The call.
        next_handler: What leads on.

    Yields:
        The responses of the call.
    """
    held: ToolResponse | None = None
    try:
        async for response in next_handler(**kwargs):
            if held is not None:
                yield _marked(held, is_last=False)
            held = response
            if held.is_interrupted:
                # It cannot be held back: what comes after it is the cancellation.
                held = None
                yield _marked(response, is_last=True)
    except Exception:
        if held is not None:
            yield _marked(held, is_last=False)
        raise
    if held is not None:
        yield _marked(held, is_last=True)


def _marked(response: ToolResponse, *, is_last: bool) -> ToolResponse:
    if response.is_last != is_last:
        response = copy.copy(response)
        response.is_last = is_last
    return response


def tap(function: Callable[[ToolResponse], Any]) -> Middleware:
    """Make a middleware that shows each response to a function as it passes.

    Args:
        function: Called with each response, and awaited if it is asynchronous. What it returns is ignored.

    Returns:
        The middleware.

    Raises:
        TypeError: If `function` cannot be called.
    """
    if not callable(function):
        raise TypeError(f"what is shown the responses must be callable, not {type(function).__qualname__}")

    async def show(kwargs: dict[str, Any], next_handler: NextHandler) -> AsyncIterator[ToolResponse]:
        async for response in next_handler(**kwargs):
            result = function(response)
            if inspect.isawaitable(result):
                await result
            yield response

    return show
