"""Tools that block run in threads of toolcrib's own; the loop receives their results."""

import asyncio
import contextvars
import gc
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.streams import block, python, toolkit
from support.waiting import UNBOUNDED_HANG, until
from toolcrib import Toolkit, ToolResponse

DESCRIPTORS = Path("/proc/self/fd")


def kit(*tools: Callable[..., Any]) -> Toolkit:
    return toolkit(*tools, run_in="thread")


def echo(value: int) -> str:
    return f"<{value}>"


async def answers(toolkit: Toolkit, count: int) -> list[str]:
    responses = await asyncio.gather(*(toolkit.call("echo", value=value) for value in range(count)))
    return [response.text for response in responses]


# Where a tool runs


def test_a_sync_tool_runs_in_a_named_worker_thread() -> None:
    def whereabouts() -> str:
        thread = threading.current_thread()
        assert thread in threading.enumerate()
        assert thread is not threading.main_thread()
        return thread.name

    response = asyncio.run(kit(whereabouts).call("whereabouts"))

    assert response.text.startswith("toolcrib-worker-")


def test_the_loop_runs_on_while_a_tool_blocks() -> None:
    release = threading.Event()

    def block() -> str:
        return "released" if release.wait(UNBOUNDED_HANG) else "forgotten"

    async def main() -> str:
        call = asyncio.ensure_future(kit(block).call("block"))
        for _ in range(10):
            await asyncio.sleep(0.001)
        release.set()
        return (await call).text

    assert asyncio.run(main()) == "released"


def test_context_variables_are_seen_and_stay_as_they_were() -> None:
    user = contextvars.ContextVar("user", default="nobody")

    def who() -> str:
        name = user.get()
        user.set("the tool")
        return name

    async def main() -> tuple[str, str]:
        user.set("ada")
        return (await kit(who).call("who")).text, user.get()

    assert asyncio.run(main()) == ("ada", "ada")


def test_context_variables_are_seen_by_every_step_of_a_generator() -> None:
    user = contextvars.ContextVar("user", default="nobody")

    def who() -> Iterator[str]:
        for _ in range(3):
            yield user.get()

    async def main() -> list[str]:
        user.set("ada")
        return [response.text async for response in kit(who).call_tool_function(block("who"))]

    assert asyncio.run(main()) == ["ada", "ada", "ada", "adaadaada"]


def test_an_exception_comes_back_as_a_response() -> None:
    def fail() -> str:
        raise ValueError("no such luck")

    response = asyncio.run(kit(fail).call("fail"))

    assert response.code == "failed"
    assert "no such luck" in response.text


# Many at once


def test_two_hundred_concurrent_calls_get_their_own_answers() -> None:
    for _ in range(5):
        assert asyncio.run(answers(kit(echo), 200)) == [echo(value) for value in range(200)]


def test_eight_loops_in_eight_threads_share_the_workers() -> None:
    toolkit = kit(echo)
    wrong: list[Any] = []

    def one_loop() -> None:
        async def main() -> None:
            for _ in range(10):
                if await answers(toolkit, 50) != [echo(value) for value in range(50)]:
                    wrong.append("mixed up")

        try:
            asyncio.run(main())
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=one_loop) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(UNBOUNDED_HANG)

    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []


def test_tools_that_run_tools_do_not_wait_for_each_other_for_ever() -> None:
    toolkit = kit(echo)

    def outer(value: int) -> str:
        return toolkit.run("echo", value=value).text

    toolkit.register_tool_function(outer)

    async def main() -> list[ToolResponse]:
        calls = (toolkit.call("outer", value=value) for value in range(100))
        return await asyncio.wait_for(asyncio.gather(*calls), UNBOUNDED_HANG)

    assert [response.text for response in asyncio.run(main())] == [echo(value) for value in range(100)]


def test_more_tools_block_at_once_than_there_are_core_threads() -> None:
    all_running = threading.Barrier(60)

    def meet() -> str:
        all_running.wait(UNBOUNDED_HANG)
        return "met"

    async def main() -> list[ToolResponse]:
        toolkit = kit(meet)
        return await asyncio.gather(*(toolkit.call("meet") for _ in range(60)))

    assert {response.text for response in asyncio.run(main())} == {"met"}


# Generators


def test_chunks_arrive_in_order() -> None:
    def count() -> Iterator[str]:
        yield from map(str, range(500))

    async def main() -> list[str]:
        return [response.text async for response in kit(count).call_tool_function(block("count"))]

    numbers = [str(number) for number in range(500)]
    assert asyncio.run(main()) == [*numbers, "".join(numbers)]


def test_a_generator_is_never_far_ahead_of_its_reader() -> None:
    made = 0

    def count() -> Iterator[str]:
        nonlocal made
        for number in range(300):
            made += 1
            yield str(number)

    async def main() -> int:
        read = ahead = 0
        async for _ in kit(count).call_tool_function(block("count")):
            read += 1
            if read % 50 == 1:
                await asyncio.sleep(0.02)  # time for the generator to run ahead, if it does
            ahead = max(ahead, made - read)
        return ahead

    # 32 in the buffer, one in the making, and one that the stream may hold back to mark the last.
    assert asyncio.run(main()) <= 34


def test_a_generator_that_is_given_up_is_closed_in_its_own_thread() -> None:
    ends: list[tuple[int, int]] = []

    def forever() -> Iterator[str]:
        thread = threading.get_ident()
        try:
            while True:
                yield "more"
        finally:
            ends.append((thread, threading.get_ident()))

    async def main() -> None:
        toolkit = kit(forever)
        for _ in range(20):
            stream = toolkit.call_tool_function(block("forever"))
            async for _ in stream:
                break
            await stream.aclose()
        await until(lambda: len(ends) == 20)

    asyncio.run(main())
    assert all(began == ended for began, ended in ends)


def test_an_unreferenced_generator_is_closed_too() -> None:
    ended = threading.Event()

    def forever() -> Iterator[str]:
        try:
            while True:
                yield "more"
        finally:
            ended.set()

    async def main() -> None:
        stream = kit(forever).call_tool_function(block("forever"))
        await stream.__anext__()
        del stream
        gc.collect()
        await until(ended.is_set)

    asyncio.run(main())


# Cancellation


def test_a_call_is_cancelled_while_its_tool_blocks() -> None:
    started, release = threading.Event(), threading.Event()

    def block() -> str:
        started.set()
        release.wait(UNBOUNDED_HANG)
        return "done"

    async def main() -> None:
        call = asyncio.ensure_future(kit(block).call("block"))
        await until(started.is_set)
        call.cancel()
        done, _ = await asyncio.wait([call], timeout=UNBOUNDED_HANG / 2)
        assert done, "the cancellation waited for the tool"
        assert not release.is_set()

    try:
        asyncio.run(main())
    finally:
        release.set()


# Loops


def test_uvloop_receives_results() -> None:
    uvloop = pytest.importorskip("uvloop")
    loop = uvloop.new_event_loop()
    try:
        assert loop.run_until_complete(answers(kit(echo), 200)) == [echo(value) for value in range(200)]
    finally:
        loop.close()


class Readerless(asyncio.SelectorEventLoop):
    """A loop that cannot watch descriptors for others, as the one of Windows."""

    def add_reader(self, *args: Any) -> None:  # type: ignore[override]
        raise NotImplementedError


def test_a_loop_without_readers_receives_results() -> None:
    loop = Readerless()
    try:
        assert loop.run_until_complete(answers(kit(echo), 200)) == [echo(value) for value in range(200)]
    finally:
        loop.close()


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, Readerless])
def test_no_loop_is_kept_alive(factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    loops = []
    for _ in range(20):
        loop = factory()
        loop.run_until_complete(answers(kit(echo), 5))
        loop.close()
        loops.append(weakref.ref(loop))
        del loop
    gc.collect()

    assert [ref for ref in loops if ref() is not None] == []


@pytest.mark.skipif(not DESCRIPTORS.exists(), reason="counts descriptors through /proc")
def test_two_thousand_loops_leave_no_descriptor_behind() -> None:
    toolkit = kit(echo)
    asyncio.run(answers(toolkit, 2))
    before = len(os.listdir(DESCRIPTORS))

    for _ in range(2_000):
        asyncio.run(answers(toolkit, 1))

    assert len(os.listdir(DESCRIPTORS)) == before


@pytest.mark.skipif(not DESCRIPTORS.exists(), reason="counts descriptors through /proc")
def test_a_loop_may_be_closed_while_a_tool_runs() -> None:
    ended = threading.Event()

    def nap() -> str:
        time.sleep(0.05)
        ended.set()
        return "rested"

    toolkit = kit(nap, echo)
    asyncio.run(answers(toolkit, 1))
    before = len(os.listdir(DESCRIPTORS))

    async def leave() -> None:
        call = asyncio.ensure_future(toolkit.call("nap"))
        await asyncio.sleep(0.01)
        call.cancel()

    asyncio.run(leave())

    assert ended.wait(UNBOUNDED_HANG)
    assert asyncio.run(answers(toolkit, 20)) == [echo(value) for value in range(20)]
    assert len(os.listdir(DESCRIPTORS)) == before


# The end of the process, and its doubles

PRELUDE = """
import asyncio, os, sys, threading, time
from toolcrib import Toolkit
tk = Toolkit()
"""

BLOCKED = {
    "asleep": "time.sleep(60)",
    "napping": "while True: time.sleep(0.0005)",
    "spinning": "while True: pass",
    "locked": "threading.Event().wait()",
}


@pytest.mark.parametrize("body", BLOCKED.values(), ids=BLOCKED.keys())
def test_the_process_ends_in_silence_while_a_tool_blocks(body: str) -> None:
    done = python(f"""{PRELUDE}
def block():
    {body}
tk.register_tool_function(block)
async def main():
    calls = [asyncio.ensure_future(tk.call("block")) for _ in range(3)]
    await asyncio.sleep(0.1)
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)
asyncio.run(main())
""")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_process_ends_in_silence_with_an_open_generator() -> None:
    done = python(f"""{PRELUDE}
def forever():
    while True:
        yield "more"
tk.register_tool_function(forever)
block = {{"type": "tool_use", "id": "1", "name": "forever", "input": {{}}}}
async def main():
    global stream
    stream = tk.call_tool_function(block)
    await stream.__anext__()
asyncio.run(main())
""")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_has_workers_of_its_own() -> None:
    done = python(f"""
import warnings
warnings.simplefilter("ignore")  # threads and fork: that is the point
{PRELUDE}
def echo(value: int) -> str:
    return str(value)
tk.register_tool_function(echo)
async def main():
    responses = await asyncio.gather(*(tk.call("echo", value=value) for value in range(50)))
    return [response.text for response in responses] == [str(value) for value in range(50)]
assert asyncio.run(main())
failed = 0
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if asyncio.run(main()) and asyncio.run(main()) else 1)
    failed += os.waitpid(pid, 0)[1] != 0
assert asyncio.run(main())
print(failed)
""")

    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


def test_results_that_refer_to_their_stream_are_collected() -> None:
    class Node:
        stream: Any = None

    nodes: list[weakref.ref[Node]] = []

    def make() -> Iterator[Any]:
        node = Node()
        nodes.append(weakref.ref(node))
        yield ToolResponse([], metadata={"node": node})

    async def main() -> None:
        for _ in range(20):
            stream = kit(make).call_tool_function(block("make"))
            async for response in stream:
                assert response.metadata is not None
                response.metadata["node"].stream = stream
            del stream, response
        gc.collect()
        await until(lambda: gc.collect() >= 0 and all(node() is None for node in nodes))

    asyncio.run(main())
