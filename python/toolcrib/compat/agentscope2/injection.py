"""Functions that take the state of the agent, which AgentScope passes as `_agent_state`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any

from agentscope.state import AgentState

__all__ = ["injected", "is_injected", "take_state"]

_NAME = "_agent_state"
_STATE: ContextVar[AgentState | None] = ContextVar("agent_state", default=None)


def take_state(state: AgentState) -> None:
    """Let the tools that this task calls next take a state. Their threads have a copy of its context."""
    _STATE.set(state)


def injected(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a callable without its parameter `_agent_state`, which the toolkit fills; any other one unchanged."""
    if isinstance(function, partial):
        inner = injected(function.func)
        is_bound = inner is function.func or _NAME in function.keywords
        return function if is_bound else partial(inner, *function.args, **function.keywords)
    code = getattr(function, "__code__", None)
    if code is None:
        # An object, which is named and described by its class.
        called = getattr(function, "__call__", None)  # noqa: B004
        if not inspect.ismethod(called) or (wrapper := injected(called)) is called:
            return function
        wrapper.__name__, wrapper.__doc__ = type(function).__name__, type(function).__doc__
        return wrapper
    if _NAME not in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        return function
    wrapper = _wrapper(function)
    signature = inspect.signature(function, eval_str=False)
    kept = [parameter for name, parameter in signature.parameters.items() if name != _NAME]
    wrapper.__agent_state__ = True  # type: ignore[attr-defined]
    wrapper.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return wrapper


def is_injected(function: object) -> bool:
    """Return True for a callable that takes the state."""
    while isinstance(function, partial):
        function = function.func
    return hasattr(function, "__agent_state__")


def _wrapper(function: Callable[..., Any]) -> Callable[..., Any]:
    # One of the same kind, because toolcrib runs each kind in its own way.
    def passed(kwargs: dict[str, Any]) -> dict[str, Any]:
        return {**kwargs, _NAME: _STATE.get()}

    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def stream(**kwargs: Any) -> AsyncIterator[Any]:
            async for item in function(**passed(kwargs)):
                yield item

        return stream
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generate(**kwargs: Any) -> Iterator[Any]:
            yield from function(**passed(kwargs))

        return generate
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def run(**kwargs: Any) -> Any:
            return await function(**passed(kwargs))

        return run

    @functools.wraps(function)
    def call(**kwargs: Any) -> Any:
        return function(**passed(kwargs))

    return call
