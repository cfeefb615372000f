"""`FunctionShifter`, side by side with Agently's."""

import asyncio
import contextvars
import functools
import inspect
import threading
import time
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from support.agently.transcript import THEIRS, Difference, Script, compare

user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="unset")


async def add(a: int, b: int = 2) -> int:
    await asyncio.sleep(0)
    return a + b


async def reads() -> str:
    await asyncio.sleep(0)
    return user.get()


def blocks() -> str:
    return user.get()


def subtract(a: int, *, b: int = 2) -> int:
    return a - b


def either(a: int, /, b: int = 2, *args: int, c: int = 3) -> Any:
    return a, b, args, c


async def thread() -> bool:
    return threading.current_thread() is threading.main_thread()


async def letters() -> AsyncGenerator[str, None]:
    for letter in "abc":
        await asyncio.sleep(0)
        yield letter


async def breaks() -> AsyncGenerator[str, None]:
    yield "a"
    raise KeyError("k")


class Adder:
    def __call__(self, a: int) -> int:
        return a + 2

    async def method(self, a: int) -> int:
        return a + 2


def in_loop(script: Script) -> Script:
    async def main(classes: Any) -> Any:
        user.set("ann")
        result = script(classes)
        return await result if inspect.isawaitable(result) else result

    return lambda classes: contextvars.copy_context().run(asyncio.run, main(classes))


async def future(classes: Any) -> Any:
    first, second = classes.shifter.future(add)(1), classes.shifter.future(subtract)(1)
    return type(first).__name__, await first, await second


SCRIPTS: dict[str, Script] = {
    "syncify": lambda classes: classes.shifter.syncify(add)(1, b=5),
    "syncify in a loop": in_loop(lambda classes: classes.shifter.syncify(add)(1)),
    "syncify: thread": lambda classes: classes.shifter.syncify(thread)(),
    "syncify: thread in a loop": in_loop(lambda classes: classes.shifter.syncify(thread)()),
    "syncify: context": lambda classes: classes.shifter.syncify(reads)(),
    "syncify: context in a loop": in_loop(lambda classes: classes.shifter.syncify(reads)()),
    "syncify: same": lambda classes: classes.shifter.syncify(subtract) is subtract,
    "syncify: name": lambda classes: classes.shifter.syncify(add).__name__,
    "syncify: signature": lambda classes: inspect.signature(classes.shifter.syncify(add)),
    "syncify: wrong arguments": lambda classes: classes.shifter.syncify(add)(1, 2, 3),
    "syncify: partial": lambda classes: classes.shifter.syncify(functools.partial(add, 1))(b=7),
    "syncify: method": lambda classes: classes.shifter.syncify(Adder().method)(1),
    "syncify: object": lambda classes: classes.shifter.syncify(Adder())(1),
    "asyncify": in_loop(lambda classes: classes.shifter.asyncify(subtract)(1, b=5)),
    "asyncify: context": in_loop(lambda classes: classes.shifter.asyncify(blocks)()),
    "asyncify: same": lambda classes: classes.shifter.asyncify(add) is add,
    "asyncify: is one": lambda classes: inspect.iscoroutinefunction(classes.shifter.asyncify(subtract)),
    "asyncify: object": in_loop(lambda classes: classes.shifter.asyncify(Adder())(1)),
    "asyncify: no function": lambda classes: asyncio.run(classes.shifter.asyncify(3)()),
    "future in a loop": in_loop(future),
    "run_async_func_in_thread": lambda classes: classes.shifter.run_async_func_in_thread(add, 1, b=3),
    "generator": lambda classes: list(classes.shifter.syncify_async_generator(letters())),
    "generator in a loop": in_loop(lambda classes: list(classes.shifter.syncify_async_generator(letters()))),
    "generator that fails": lambda classes: list(classes.shifter.syncify_async_generator(breaks())),
    "options": lambda classes: classes.shifter.auto_options_func(subtract)(5, b=1, c=2),
    "options: every kind": lambda classes: classes.shifter.auto_options_func(either)(1, 2, 3, c=4, a=5, args=6, d=7),
    "options: all": lambda classes: classes.shifter.auto_options_func(lambda **all: all)(a=1, b=2),
    "options: too many": lambda classes: classes.shifter.auto_options_func(subtract)(1, 2),
    "options: coroutine": in_loop(lambda classes: classes.shifter.auto_options_func(add)(1, z=3)),
    "options: name": lambda classes: classes.shifter.auto_options_func(subtract).__name__,
}

DIFFERENCES = {
    "syncify: context in a loop": Difference("'unset'", "'ann'", "context variables are carried over"),
    "syncify: object": Difference("AssertionError: ", "3", "any callable is accepted"),
    "asyncify: no function": Difference(
        "TypeError: Expected a callable, got <class 'int'>",
        "TypeError: invalid function: expected a callable, got int",
        "the text is in the style of toolcrib's other messages",
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_functions_are_shifted_equally(name: str) -> None:
    compare(SCRIPTS[name], DIFFERENCES.get(name))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_future_without_a_loop_is_done() -> None:
    from toolcrib.compat.agently import FunctionShifter

    theirs = THEIRS.shifter.future(add)(1)
    ours: Any = FunctionShifter.future(add)(1)

    assert ours.result(timeout=30) == 3
    # Agently's task waits until something else wakes up its loop.
    time.sleep(0.2)
    assert not theirs.done()
    theirs.get_loop().call_soon_threadsafe(lambda: None)
