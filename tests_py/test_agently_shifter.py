"""`FunctionShifter` of `toolcrib.compat.agently`: from synchronous to asynchronous functions, and back."""

import asyncio
import functools
import inspect
import json
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from support.agently.script import OURS, transcript
from support.agently.shifting import SCRIPTS, TRANSCRIPTS, Adder, add, blocks, breaks, letters, reads, user
from toolcrib.compat.agently import FunctionShifter

CASES: dict[str, Any] = json.loads((Path(__file__).parents[1] / "tests/data/agently_cases.json").read_text())


class AsyncAdder:
    async def __call__(self, a: int) -> int:
        return a + 1


async def runs_in_another_thread() -> bool:
    async def thread() -> threading.Thread:
        return threading.current_thread()

    return FunctionShifter.syncify(thread)() is not threading.current_thread()


async def leaves_the_loop_live() -> bool:
    loop, ticked = asyncio.get_running_loop(), threading.Event()

    def wait() -> bool:
        loop.call_soon_threadsafe(ticked.set)
        return ticked.wait(30)

    return await FunctionShifter.asyncify(wait)()


async def context_inside_a_loop() -> str:
    user.set("ann")
    return FunctionShifter.syncify(reads)()


async def coroutine_of_a_function() -> bool:
    start: Callable[[], Any] = lambda: add(1)  # noqa: E731 - a plain function, also for type checkers
    coroutine = await FunctionShifter.asyncify(start)()
    assert await coroutine == 3
    return inspect.iscoroutine(coroutine)


async def started_future() -> tuple[str, int]:
    future = FunctionShifter.future(add)(1)
    assert isinstance(future, asyncio.Future)
    return type(future).__name__, await future


USES: dict[str, Callable[[], Any]] = {
    "syncify(async) inside a loop runs in another thread": lambda: asyncio.run(runs_in_another_thread()),
    "asyncify(sync) runs in a worker thread, loop stays live": lambda: asyncio.run(leaves_the_loop_live()),
    "contextvars seen by syncify(async) inside a loop": lambda: asyncio.run(context_inside_a_loop()),
    "syncify(callable object)": lambda: FunctionShifter.syncify(Adder())(1),
    "asyncify(async) identity": lambda: FunctionShifter.asyncify(add) is add,
    "asyncify of a sync function returning a coroutine: awaits it?": lambda: asyncio.run(coroutine_of_a_function()),
    "syncify_async_generator re-raises": lambda: list(FunctionShifter.syncify_async_generator(breaks())),
    "auto_options_func drops unknown kwargs": lambda: FunctionShifter.auto_options_func(lambda a: a)(a=1, b=2),
    "future(async fn) called inside a running loop: (type, awaited result)": lambda: asyncio.run(started_future()),
}

# Where Agently loses the context, or fails because it accepts only functions.
FIXED = {"contextvars seen by syncify(async) inside a loop": "'ann'", "syncify(callable object)": "3"}


@pytest.mark.parametrize("case", CASES["shifter"], ids=lambda case: case["do"])
def test_the_shifter_gives_what_agently_gives(case: dict[str, Any]) -> None:
    use = USES[case["do"]]

    if "raises" in case and case["do"] not in FIXED:
        with pytest.raises(KeyError) as raised:
            use()
        assert f"{type(raised.value).__name__}: {raised.value}" == case["raises"]
    else:
        assert repr(use()) == FIXED.get(case["do"], case.get("result_repr"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_has_its_transcript(name: str) -> None:
    assert transcript(SCRIPTS[name], OURS) == TRANSCRIPTS[name]


@pytest.mark.parametrize("function", [functools.partial(add, 1), AsyncAdder().__call__, AsyncAdder()])
async def test_every_async_callable_is_shifted(function: Callable[..., Coroutine[Any, Any, int]]) -> None:
    arguments = () if isinstance(function, functools.partial) else (2,)

    assert FunctionShifter.syncify(function)(*arguments) == 3
    assert await FunctionShifter.asyncify(function)(*arguments) == 3


@pytest.mark.parametrize("shift", [FunctionShifter.syncify, FunctionShifter.asyncify, FunctionShifter.future])
def test_only_callables_are_shifted(shift: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="expected a callable, got int"):
        shift(3)


async def test_syncify_inside_syncify_inside_a_loop_does_not_block_for_ever() -> None:
    async def nested(depth: int) -> int:
        return 1 + FunctionShifter.syncify(nested)(depth - 1) if depth else 0

    assert FunctionShifter.syncify(nested)(20) == 20


def test_many_threads_may_syncify_at_once() -> None:
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(FunctionShifter.syncify(add), range(100))) == [number + 2 for number in range(100)]


async def test_asyncify_raises_what_the_function_raises() -> None:
    def jam() -> None:
        raise ValueError("stuck")

    with pytest.raises(ValueError, match="stuck"):
        await FunctionShifter.asyncify(jam)()


def test_tasks_of_a_shifted_function_end_with_it() -> None:
    tasks: list[asyncio.Task[None]] = []

    async def leave() -> None:
        tasks.append(asyncio.create_task(asyncio.sleep(3600)))
        await asyncio.sleep(0)

    FunctionShifter.syncify(leave)()

    assert tasks[0].cancelled()


def test_a_future_without_a_loop_runs_in_the_background() -> None:
    user.set("ann")

    future = FunctionShifter.future(reads)()
    failed = FunctionShifter.future(add)("a")  # type: ignore[arg-type]

    assert not isinstance(future, asyncio.Future)
    assert not isinstance(failed, asyncio.Future)
    assert future.result(timeout=30) == "ann"
    with pytest.raises(TypeError):
        failed.result(timeout=30)


def test_a_synchronous_function_has_a_future_too() -> None:
    future = FunctionShifter.future(blocks)()

    assert not isinstance(future, asyncio.Future)
    assert future.result(timeout=30) == user.get()


def test_a_program_ends_while_a_future_runs() -> None:
    program = """
from toolcrib.compat.agently import FunctionShifter
import asyncio
future = FunctionShifter.future(asyncio.sleep)(3600)
print("started")
"""

    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert (finished.returncode, finished.stdout) == (0, "started\n")


async def test_an_async_generator_can_be_iterated_inside_a_loop() -> None:
    async def names() -> AsyncGenerator[str, None]:
        yield user.get()
        for letter in FunctionShifter.syncify_async_generator(letters()):
            yield letter

    user.set("ann")

    assert list(FunctionShifter.syncify_async_generator(names())) == ["ann", "a", "b", "c"]


def test_an_async_generator_runs_only_a_few_items_ahead_and_is_closed() -> None:
    produced, closed = 0, threading.Event()

    async def numbers() -> AsyncGenerator[int, None]:
        nonlocal produced
        try:
            while True:
                produced += 1
                yield produced
        finally:
            await asyncio.sleep(0)
            closed.set()

    items = FunctionShifter.syncify_async_generator(numbers())
    assert [next(items), next(items)] == [1, 2]
    time.sleep(0.05)
    items.close()

    assert closed.is_set()
    assert produced < 100


def test_a_long_async_generator_is_read_to_its_end() -> None:
    async def numbers() -> AsyncGenerator[int, None]:
        for number in range(1000):
            yield number

    assert list(FunctionShifter.syncify_async_generator(numbers())) == list(range(1000))
