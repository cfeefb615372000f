"""Callables that can be tools; each gives the same answer inline and in a thread."""

import asyncio
import functools
import operator
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import pytest

from support.loops import LoopFactory
from support.streams import block, read, texts, toolkit


def function(a: int, b: int = 2) -> int:
    return a + b


async def coroutine(a: int, b: int = 2) -> int:
    await asyncio.sleep(0)
    return a + b


def generator(a: int, b: int = 2) -> Iterator[int]:
    yield a
    yield a + b


async def async_generator(a: int, b: int = 2) -> AsyncIterator[int]:
    yield a
    await asyncio.sleep(0)
    yield a + b


async def coroutine_of_generator(a: int, b: int = 2) -> Iterator[int]:
    await asyncio.sleep(0)
    return generator(a, b)


async def coroutine_of_async_generator(a: int, b: int = 2) -> AsyncIterator[int]:
    await asyncio.sleep(0)
    return async_generator(a, b)


def function_of_coroutine(a: int, b: int = 2) -> Coroutine[Any, Any, int]:
    return coroutine(a, b)


def function_of_generator(a: int, b: int = 2) -> Iterator[int]:
    return generator(a, b)


def function_of_async_generator(a: int, b: int = 2) -> AsyncIterator[int]:
    return async_generator(a, b)


def function_of_future(a: int, b: int = 2) -> Any:
    class Later:
        def __await__(self) -> Any:
            return coroutine(a, b).__await__()

    return Later()


def function_of_async_iterator(a: int, b: int = 2) -> Any:
    class Countdown:
        left = [a + b, a]

        def __aiter__(self) -> Any:
            return self

        async def __anext__(self) -> int:
            await asyncio.sleep(0)
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop()

    return Countdown()


@functools.wraps(function)
def wrapper(*args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


@functools.wraps(async_generator)
def wrapper_of_async_generator(*args: Any, **kwargs: Any) -> Any:
    return async_generator(*args, **kwargs)


class Methods:
    base = 0

    def bound(self, a: int, b: int = 2) -> int:
        return self.base + a + b

    async def async_bound(self, a: int, b: int = 2) -> int:
        return self.base + a + b

    async def stream_bound(self, a: int, b: int = 2) -> AsyncIterator[int]:
        yield a
        yield self.base + a + b

    @classmethod
    def of_class(cls, a: int, b: int = 2) -> int:
        return cls.base + a + b

    @staticmethod
    def static(a: int, b: int = 2) -> int:
        return a + b


class Callable_:
    def __call__(self, a: int, b: int = 2) -> int:
        return a + b


class AsyncCallable:
    async def __call__(self, a: int, b: int = 2) -> int:
        await asyncio.sleep(0)
        return a + b


class AsyncGeneratorCallable:
    async def __call__(self, a: int, b: int = 2) -> AsyncIterator[int]:
        yield a
        yield a + b


class Pair:
    def __init__(self, a: int, b: int = 2) -> None:
        self.sum = a + b

    def __str__(self) -> str:
        return str(self.sum)


ONE = ["3"]
TWO = ["1", "3", "[1, 3]"]
KINDS: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "function": (function, ONE),
    "coroutine": (coroutine, ONE),
    "generator": (generator, TWO),
    "async generator": (async_generator, TWO),
    "coroutine of a generator": (coroutine_of_generator, TWO),
    "coroutine of an async generator": (coroutine_of_async_generator, TWO),
    "function of a coroutine": (function_of_coroutine, ONE),
    "function of a generator": (function_of_generator, TWO),
    "function of an async generator": (function_of_async_generator, TWO),
    "function of an awaitable": (function_of_future, ONE),
    "function of an async iterator": (function_of_async_iterator, TWO),
    "wrapper": (wrapper, ONE),
    "wrapper of an async generator": (wrapper_of_async_generator, TWO),
    "bound method": (Methods().bound, ONE),
    "async method": (Methods().async_bound, ONE),
    "async generator method": (Methods().stream_bound, TWO),
    "class method": (Methods.of_class, ONE),
    "static method": (Methods.static, ONE),
    "callable object": (Callable_(), ONE),
    "async callable object": (AsyncCallable(), ONE),
    "async generator object": (AsyncGeneratorCallable(), TWO),
    "lambda": (lambda a, b=2: a + b, ONE),
    "class": (Pair, ['"3"']),
    "builtin": (operator.add, ONE),
    "partial of a keyword": (functools.partial(function, b=2), ONE),
    "partial of a coroutine": (functools.partial(coroutine, b=2), ONE),
    "partial of an async generator": (functools.partial(async_generator, b=2), TWO),
    "nested partial": (functools.partial(functools.partial(function, b=7), b=2), ONE),
    "partial of a method": (functools.partial(Methods().bound, b=2), ONE),
}


@pytest.mark.parametrize("run_in", ["inline", "thread"])
@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_of_callable_can_be_a_tool(kind: str, run_in: str, loop_factory: LoopFactory) -> None:
    tool, expected = KINDS[kind]
    kit = toolkit(tool, run_in=run_in, func_name="tool")
    arguments = {"a": 1, "b": 2} if kind == "builtin" else {"a": 1}

    got = await texts(kit.call_tool_function(block("tool", **arguments)))
    last = await kit.call("tool", **arguments)

    assert got == expected
    assert last.text == expected[-1]


@pytest.mark.parametrize("run_in", ["inline", "thread"])
async def test_what_a_partial_binds_by_position_is_passed(run_in: str) -> None:
    partial = functools.partial(function, 1)
    twice = functools.partial(functools.partial(function, 1), 2)
    kit = toolkit(partial, run_in=run_in, func_name="once")
    kit.register_tool_function(twice, func_name="twice")

    once = await kit.call("once", b=4)
    both = await kit.call("twice")

    assert (once.text, both.text) == ("5", "3")


async def test_a_partial_is_never_changed() -> None:
    partial = functools.partial(function, 1, b=5)
    kit = toolkit(partial, func_name="tool")

    await kit.call("tool")

    assert (partial.args, partial.keywords, partial()) == ((1,), {"b": 5}, 6)


@pytest.mark.parametrize("run_in", ["inline", "thread"])
async def test_synchronous_code_runs_where_run_in_says(run_in: str) -> None:
    def whereabouts() -> bool:
        return threading.current_thread() is threading.main_thread()

    def whereabouts_of_chunks() -> Iterator[bool]:
        yield threading.current_thread() is threading.main_thread()

    kit = toolkit(whereabouts, whereabouts_of_chunks, run_in=run_in)

    got = [
        *await texts(kit.call_tool_function(block("whereabouts"))),
        *await texts(kit.call_tool_function(block("whereabouts_of_chunks"))),
    ]

    assert got == (["true", "true", "[true]"] if run_in == "inline" else ["false", "false", "[false]"])


async def test_a_tool_in_a_thread_leaves_the_loop_free() -> None:
    released = threading.Event()

    def wait() -> str:
        return "released" if released.wait(30) else "stuck"

    kit = toolkit(wait, run_in="thread")
    call = asyncio.create_task(texts(kit.call_tool_function(block("wait"))))
    await asyncio.sleep(0.01)

    released.set()

    assert await call == ["released"]


@pytest.mark.parametrize("is_awaited", [False, True])
async def test_a_tool_may_return_the_stream_of_another_call(is_awaited: bool) -> None:
    async def numbers() -> AsyncIterator[str]:
        yield "0"
        yield "1"

    inner = toolkit(numbers)

    async def outer() -> Any:
        stream: Any = inner.call_tool_function(block("numbers"))
        return await stream if is_awaited else stream

    responses = await read(toolkit(outer).call_tool_function(block("outer")))

    assert [(response.text, response.is_last) for response in responses] == [("0", False), ("1", False), ("01", True)]
