"""Many calls at once, on many loops and threads, with a registry that changes under them, and across a fork."""

import asyncio
import gc
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from support.processes import resident
from support.streams import block, python, read, texts, toolkit
from toolcrib import Toolkit, ToolResponse

LINUX = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


@LINUX
@pytest.mark.parametrize("kind", ["coroutine", "generator"])
async def test_ten_thousand_calls_in_flight_keep_apart_and_small(kind: str) -> None:
    count = 10_000
    arrived = 0
    all_arrived = asyncio.Event()

    async def meet() -> None:
        nonlocal arrived
        arrived += 1
        if arrived == count:
            all_arrived.set()
        await all_arrived.wait()

    async def coroutine(number: int) -> str:
        await meet()
        return str(number)

    async def generator(number: int) -> AsyncIterator[str]:
        await meet()
        yield str(number)

    kit = toolkit(coroutine, generator)
    answers: list[str] = [""] * count
    grown = 0

    async def one(number: int) -> None:
        nonlocal grown
        async for response in kit.call_tool_function(block(kind, number=number)):
            answers[number] = response.text
            grown = grown or resident() - before

    await read(kit.call_tool_function({"name": "nobody"}))
    gc.collect()
    before = resident()
    await asyncio.wait_for(asyncio.gather(*(one(number) for number in range(count))), 50)

    assert answers == [str(number) for number in range(count)]
    # The task that each call runs in, and the frames of consumer and tool, are part of this.
    assert grown <= count * 8 * 1024


async def test_ten_thousand_calls_of_threads_keep_apart() -> None:
    def square(number: int) -> int:
        return number * number

    kit = toolkit(square, run_in="thread")

    got = await asyncio.wait_for(asyncio.gather(*(kit.call("square", number=n) for n in range(10_000))), 55)

    assert [response.text for response in got] == [str(n * n) for n in range(10_000)]


async def test_an_inline_generator_never_runs_ahead() -> None:
    made = 0

    def generator() -> Iterator[int]:
        nonlocal made
        for number in range(1000):
            made += 1
            yield number

    seen = 0
    async for response in toolkit(generator).call_tool_function(block("generator")):
        seen += not response.is_last
        assert made == seen


async def test_a_generator_in_a_thread_runs_ahead_only_so_far() -> None:
    made = 0

    def generator() -> Iterator[int]:
        nonlocal made
        for number in range(2000):
            made += 1
            yield number

    furthest = 0
    got: list[str] = []
    async for response in toolkit(generator, run_in="thread").call_tool_function(block("generator")):
        if len(got) % 100 == 0:
            await asyncio.sleep(0.02)
        furthest = max(furthest, made - len(got))
        got.append(response.text)

    assert got == [*(str(number) for number in range(2000)), str(list(range(2000)))]
    assert furthest <= 64


def test_one_toolkit_serves_many_loops() -> None:
    async def coroutine(number: int) -> int:
        await asyncio.sleep(0)
        return number

    def function(number: int) -> int:
        return number

    kit = toolkit(coroutine, function, run_in="thread")
    wrong: list[Any] = []

    def serve(offset: int) -> None:
        async def main() -> None:
            for start in range(0, 500, 50):
                numbers = [offset + start + n for n in range(50)]
                names = ["coroutine" if n % 2 else "function" for n in numbers]
                got = await asyncio.gather(*(kit.call(name, number=n) for name, n in zip(names, numbers, strict=True)))
                if [response.text for response in got] != [str(n) for n in numbers]:
                    wrong.append(got)

        try:
            asyncio.run(main())
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=serve, args=(1000 * n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)

    assert wrong == []
    assert not any(thread.is_alive() for thread in threads)


def test_a_registry_may_change_while_it_is_called() -> None:
    kit = Toolkit(run_in="inline")
    kit.create_tool_group("shifting", "on and off")
    wrong: list[BaseException] = []
    codes: set[str | None] = set()
    until = time.monotonic() + 1

    async def tool() -> str:
        await asyncio.sleep(0)
        return "here"

    def change() -> None:
        while time.monotonic() < until:
            kit.register_tool_function(tool, "shifting", namesake_strategy="override")
            kit.update_tool_groups(["shifting"], active=True)
            kit.get_json_schemas()
            kit.update_tool_groups(["shifting"], active=False)
            kit.remove_tool_function("tool")

    def look() -> None:
        while time.monotonic() < until:
            list(kit.tools.items())
            list(kit.groups.values())
            kit.get_json_schemas_bytes()
            kit.get_json_schemas()

    def call() -> None:
        async def main() -> None:
            while time.monotonic() < until:
                for _ in range(20):
                    codes.update(r.code for r in await read(kit.call_tool_function(block("tool"))))

        asyncio.run(main())

    def safely(job: Any) -> None:
        try:
            job()
        except BaseException as error:
            wrong.append(error)

    logging.disable(logging.WARNING)
    try:
        threads = [threading.Thread(target=safely, args=(job,)) for job in (change, look, call, call)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(50)
    finally:
        logging.disable(logging.NOTSET)

    assert wrong == []
    assert not any(thread.is_alive() for thread in threads)
    assert codes <= {None, "unknown_tool", "inactive_group"}


@FORKS
def test_a_forked_process_can_call_tools_of_its_own() -> None:
    program = """
        import asyncio, os, sys, warnings
        from toolcrib import Toolkit

        warnings.simplefilter("ignore")  # Python warns about forking with threads
        kit = Toolkit()

        @kit.tool
        def blocking(number: int) -> int:
            return number

        @kit.tool
        async def waiting(number: int) -> int:
            await asyncio.sleep(0)
            return number

        async def both(number):
            return [(await kit.call(name, number=number)).text for name in ("blocking", "waiting")]

        assert asyncio.run(both(0)) == ["0", "0"]
        good = 0
        for number in range(20):
            pid = os.fork()
            if pid == 0:
                os._exit(0 if asyncio.run(both(number)) == [str(number)] * 2 else 1)
            good += os.waitpid(pid, 0)[1] == 0
            assert asyncio.run(both(number)) == [str(number)] * 2
        print(good)
    """

    result = python(program)

    assert (result.returncode, result.stdout) == (0, "20\n"), result.stderr


def test_the_program_ends_while_a_tool_is_running() -> None:
    program = """
        import asyncio, time
        from toolcrib import Toolkit

        kit = Toolkit()

        @kit.tool
        def blocking():
            time.sleep(60)

        async def main():
            task = asyncio.ensure_future(kit.call("blocking"))
            await asyncio.sleep(0.1)
            task.cancel()

        asyncio.run(main())
        print("over")
    """

    result = python(program, seconds=30)

    assert (result.returncode, result.stdout) == (0, "over\n"), result.stderr


async def test_calls_of_every_kind_may_be_mixed() -> None:
    async def coroutine(number: int) -> int:
        return number

    def function(number: int) -> int:
        return number

    async def async_generator(number: int) -> AsyncIterator[str]:
        yield str(number)

    def generator(number: int) -> Iterator[ToolResponse]:
        yield ToolResponse([{"type": "text", "text": str(number)}])

    kit = toolkit(coroutine, function, async_generator, generator, run_in="thread")
    calls = [(name, number) for number in range(250) for name in kit.tools]

    got = await asyncio.gather(*(texts(kit.call_tool_function(block(name, number=n))) for name, n in calls))

    assert got == [[str(number)] * (2 if "generator" in name else 1) for name, number in calls]
