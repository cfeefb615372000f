"""The tools that are measured, the same for every peer but for the answer each gives."""

# Annotations stay objects here, not strings: resolving strings would be measured along with the work.

import asyncio
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

PAIR: dict[str, Any] = {"a": 1, "b": 2}
CHUNKS = 1_000


class Tools(NamedTuple):
    """One tool of each kind; each has the name of its field."""

    add: Callable[..., Any]
    add_sync: Callable[..., Any]
    count: Callable[..., Any]
    count_sync: Callable[..., Any]
    wait: Callable[..., Any]
    fail: Callable[..., Any]


def tools(answer: Any) -> Tools:
    """Make one tool of each kind.

    Args:
        answer: What they return or yield, made beforehand so that only the call is measured.

    Returns:
        The tools.
    """

    async def add(a: int, b: int):  # type: ignore[no-untyped-def]
        """Add.

        Args:
            a (int): First number.
            b (int): Second number.
        """
        return answer

    def add_sync(a: int, b: int):  # type: ignore[no-untyped-def]
        """Add.

        Args:
            a (int): First number.
            b (int): Second number.
        """
        return answer

    async def count(n: int):  # type: ignore[no-untyped-def]
        """Count.

        Args:
            n (int): How far.
        """
        for _ in range(n):
            yield answer

    def count_sync(n: int):  # type: ignore[no-untyped-def]
        """Count.

        Args:
            n (int): How far.
        """
        for _ in range(n):
            yield answer

    async def wait(a: int):  # type: ignore[no-untyped-def]
        """Wait for one turn of the event loop.

        Args:
            a (int): Any number.
        """
        await asyncio.sleep(0)
        return answer

    async def fail(a: int, b: int):  # type: ignore[no-untyped-def]
        """Fail.

        Args:
            a (int): First number.
            b (int): Second number.
        """
        raise ValueError("no such number")

    return Tools(add, add_sync, count, count_sync, wait, fail)


def searches(count: int, answer: Any) -> list[Callable[..., Any]]:
    """Make tools with five typed parameters and a Google docstring.

    They share one code object, so that what a registry adds to memory is all that grows.

    Args:
        count: How many.
        answer: What they return.

    Returns:
        Functions named `search_0`, `search_1` and so on.
    """

    async def search(  # type: ignore[no-untyped-def]
        query: str, limit: int = 10, ratio: float = 0.5, tags: list[str] | None = None, verbose: bool = False
    ):
        """Search the index for documents that match.

        This is the long description of the tool. It spans more than one line so that a parser
        has something to do.

        Args:
            query (str): The words to look for in the index.
            limit (int): How many documents to return at most.
            ratio (float): How alike the words must be, between zero and one.
            tags (list[str] | None): Only documents that carry all of these tags are
                considered.
            verbose (bool): Whether to tell about progress.

        Returns:
            The documents that match.
        """
        return answer

    return [_copy(search, f"search_{index}") for index in range(count)]


def _copy(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    assert isinstance(function, FunctionType)
    copy = FunctionType(function.__code__, function.__globals__, name, function.__defaults__, function.__closure__)
    copy.__annotations__ = dict(function.__annotations__)
    copy.__doc__ = function.__doc__
    copy.__qualname__ = name
    return copy


def block(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Make what a model sends to call a tool.

    Args:
        name: The tool.
        arguments: Its input.

    Returns:
        A tool-use block.
    """
    return {"type": "tool_use", "id": "1", "name": name, "input": arguments}
