"""Middlewares: functions around every call of a toolkit. Included ones, and types for annotations."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from toolcrib._core import Session, ToolResponse, ToolStream

__all__ = ["Middleware", "NextHandler", "tap"]


class NextHandler(Protocol):
    """The handler of the next layer of a call: the next middleware, or the tool."""

    @property
    def caller(self) -> str | None:
        """The name of the caller."""

    @property
    def session(self) -> Session[Any] | None:
        """The session that the call is part of."""

    @property
    def deps(self) -> Any:
        """The dependencies of the session."""

    def __call__(self, **kwargs: Any) -> ToolStream:
        """Return the stream of the next layer, which runs when it is iterated.

        Args:
            **kwargs: `tool_call`, and further keywords for the inner middlewares.

        Raises:
            TypeError: If the tool is next, and a keyword other than `tool_call` is passed.
        """
        ...


Middleware: TypeAlias = Callable[
    [dict[str, Any], NextHandler], "AsyncIterator[Any] | Awaitable[AsyncIterator[Any] | ToolResponse] | ToolResponse"
]
"""A function of `{"tool_call": block}` and the next handler: an async generator function, or any callable that returns
a stream or a response, directly or when awaited."""


def tap(function: Callable[[ToolResponse], Any]) -> Middleware:
    """Make a middleware that calls a function with each response.

    Args:
        function: Called with each response, and awaited if it is asynchronous. Its result is ignored.

    Returns:
        The middleware.

    Raises:
        TypeError: If `function` is not callable.
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
