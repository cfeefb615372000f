"""Scripts of `FunctionShifter`, with the transcripts of toolcrib. Agently's are compared where it is installed."""

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import AsyncGenerator
from typing import Any

from support.agently.script import Script

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


class Countdown:
    def __init__(self) -> None:
        self.left = 3

    def __aiter__(self) -> "Countdown":
        return self

    async def __anext__(self) -> int:
        if not self.left:
            raise StopAsyncIteration
        self.left -= 1
        return self.left


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
    "run_async_func_in_thread: thread": lambda classes: classes.shifter.run_async_func_in_thread(thread),
    "generator": lambda classes: list(classes.shifter.syncify_async_generator(letters())),
    "generator in a loop": in_loop(lambda classes: list(classes.shifter.syncify_async_generator(letters()))),
    "generator that fails": lambda classes: list(classes.shifter.syncify_async_generator(breaks())),
    "generator: async iterator": lambda classes: list(classes.shifter.syncify_async_generator(Countdown())),
    "options": lambda classes: classes.shifter.auto_options_func(subtract)(5, b=1, c=2),
    "options: every kind": lambda classes: classes.shifter.auto_options_func(either)(1, 2, 3, c=4, a=5, args=6, d=7),
    "options: all": lambda classes: classes.shifter.auto_options_func(lambda **all: all)(a=1, b=2),
    "options: too many": lambda classes: classes.shifter.auto_options_func(subtract)(1, 2),
    "options: coroutine": in_loop(lambda classes: classes.shifter.auto_options_func(add)(1, z=3)),
    "options: name": lambda classes: classes.shifter.auto_options_func(subtract).__name__,
}

TRANSCRIPTS: dict[str, str] = {
    "syncify": "6",
    "syncify in a loop": "3",
    "syncify: thread": "True",
    "syncify: thread in a loop": "False",
    "syncify: context": "'unset'",
    "syncify: context in a loop": "'ann'",
    "syncify: same": "True",
    "syncify: name": "'add'",
    "syncify: signature": "<Signature (a: int, b: int = 2) -> int>",
    "syncify: wrong arguments": "TypeError: add() takes from 1 to 2 positional arguments but 3 were given",
    "syncify: partial": "8",
    "syncify: method": "3",
    "syncify: object": "3",
    "asyncify": "-4",
    "asyncify: context": "'ann'",
    "asyncify: same": "True",
    "asyncify: is one": "True",
    "asyncify: object": "3",
    "asyncify: no function": "TypeError: invalid function: expected a callable, got int",
    "future in a loop": "('Task', 3, -1)",
    "run_async_func_in_thread": "4",
    "run_async_func_in_thread: thread": "False",
    "generator": "['a', 'b', 'c']",
    "generator in a loop": "['a', 'b', 'c']",
    "generator that fails": "KeyError: 'k'",
    "generator: async iterator": "[2, 1, 0]",
    "options": "4",
    "options: every kind": "(1, 2, (3,), 4)",
    "options: all": "{'a': 1, 'b': 2}",
    "options: too many": "TypeError: subtract() takes 1 positional argument but 2 were given",
    "options: coroutine": "3",
    "options: name": "'subtract'",
}
