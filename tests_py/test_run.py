"""`Toolkit.run`: a call from synchronous code, wherever that is."""

import asyncio
import contextvars
import os
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from toolcrib import Toolkit, ToolResponse

user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")


async def who() -> str:
    await asyncio.sleep(0)
    return user.get()


def who_blocks() -> str:
    return user.get()


@pytest.fixture
def toolkit() -> Toolkit:
    toolkit = Toolkit()
    toolkit.register_tool_function(who)
    toolkit.register_tool_function(who_blocks)
    return toolkit


def test_run_works_in_plain_code(toolkit: Toolkit) -> None:
    response = toolkit.run("who")

    assert type(response) is ToolResponse
    assert response.text == "nobody"


async def test_run_works_inside_a_running_loop(toolkit: Toolkit) -> None:
    assert toolkit.run("who").text == "nobody"
    assert asyncio.get_running_loop().is_running()


async def test_run_works_in_a_worker_thread(toolkit: Toolkit) -> None:
    assert (await asyncio.to_thread(toolkit.run, "who")).text == "nobody"


def test_run_works_inside_a_tool(toolkit: Toolkit) -> None:
    @toolkit.tool
    def ask() -> str:
        return "asked: " + toolkit.run("who_blocks").text

    assert toolkit.run("ask").text == "asked: nobody"


def test_run_works_from_several_threads_at_once(toolkit: Toolkit) -> None:
    @toolkit.tool
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return number * 2

    with ThreadPoolExecutor(8) as pool:
        responses = list(pool.map(lambda number: toolkit.run("double", number=number).text, range(200)))

    assert responses == [str(number * 2) for number in range(200)]


def in_plain_code(call: Callable[[], ToolResponse]) -> ToolResponse:
    return call()


def in_a_running_loop(call: Callable[[], ToolResponse]) -> ToolResponse:
    async def main() -> ToolResponse:
        return call()

    return asyncio.run(main())


@pytest.mark.parametrize("place", [in_plain_code, in_a_running_loop])
@pytest.mark.parametrize("tool", ["who", "who_blocks"])
def test_a_tool_sees_the_callers_context(
    toolkit: Toolkit, place: Callable[[Callable[[], ToolResponse]], ToolResponse], tool: str
) -> None:
    def call() -> ToolResponse:
        user.set("ada")
        return place(lambda: toolkit.run(tool))

    assert contextvars.copy_context().run(call).text == "ada"


@pytest.mark.parametrize("place", [in_plain_code, in_a_running_loop])
def test_what_a_tool_sets_stays_with_it(
    toolkit: Toolkit, place: Callable[[Callable[[], ToolResponse]], ToolResponse]
) -> None:
    @toolkit.tool
    async def become() -> None:
        user.set("eve")

    assert place(lambda: toolkit.run("become")).ok
    assert user.get() == "nobody"


@pytest.mark.parametrize("place", [in_plain_code, in_a_running_loop])
def test_a_tool_that_raises_is_answered_or_lets_its_exception_through(
    place: Callable[[Callable[[], ToolResponse]], ToolResponse],
) -> None:
    answering, raising = Toolkit(), Toolkit(errors="raise")

    async def fail() -> None:
        raise LookupError("lost")

    for toolkit in (answering, raising):
        toolkit.register_tool_function(fail)

    assert place(lambda: answering.run("fail")).text == "LookupError: lost"
    with pytest.raises(LookupError, match="lost"):
        place(lambda: raising.run("fail"))


def test_arguments_may_have_any_name(toolkit: Toolkit) -> None:
    @toolkit.tool
    def odd(name: str, last: str, context: str) -> list[str]:
        return [name, last, context]

    assert toolkit.run("odd", name="a", last="b", context="c").metadata == {"value": ["a", "b", "c"]}


def test_the_name_is_passed_by_position(toolkit: Toolkit) -> None:
    run: Any = toolkit.run

    with pytest.raises(TypeError, match="positional"):
        run(name="who")


@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="asyncio.run of Python 3.10 sets the thread's event loop to None"
)
def test_run_leaves_the_threads_event_loop_as_it_was(toolkit: Toolkit) -> None:
    seen = []

    def work() -> None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        toolkit.run("who")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            seen.append(asyncio.get_event_loop() is loop)
        loop.close()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert seen == [True]


async def test_run_blocks_only_the_loop_that_calls_it(toolkit: Toolkit) -> None:
    main = threading.get_ident()

    @toolkit.tool
    async def where() -> int:
        return threading.get_ident()

    response = toolkit.run("where")

    assert response.metadata is not None
    assert response.metadata["value"] != main


async def loop_of_the_call() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def used_loop(toolkit: Toolkit) -> asyncio.AbstractEventLoop:
    response = toolkit.run("loop_of_the_call")
    assert response.metadata is not None
    loop: asyncio.AbstractEventLoop = response.metadata["value"]
    return loop


kept = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 makes a loop for each call")


@kept
@pytest.mark.parametrize("place", [in_plain_code, in_a_running_loop])
def test_a_clean_loop_is_used_again(place: Callable[[Callable[[], Any]], Any]) -> None:
    toolkit = Toolkit(tools=[loop_of_the_call])

    first, second = place(lambda: [used_loop(toolkit), used_loop(toolkit)])

    assert first is second
    assert not first.is_closed()


def leaves_a_task(_: int) -> None:
    asyncio.get_running_loop().create_task(asyncio.sleep(3600))


def leaves_a_timer(_: int) -> None:
    asyncio.get_running_loop().call_later(3600, print)


def leaves_a_callback(_: int) -> None:
    loop = asyncio.get_running_loop()
    loop.call_soon(lambda: loop.call_soon(lambda: loop.call_soon(print)))


def leaves_a_file(file: int) -> None:
    asyncio.get_running_loop().add_reader(file, print)


def leaves_a_setting(_: int) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)


def leaves_a_thread(_: int) -> None:
    asyncio.get_running_loop().run_in_executor(None, print)


def leaves_a_callback_of_a_thread(_: int) -> None:
    asyncio.get_running_loop().call_soon_threadsafe(print)


def leaves_many_timers(_: int) -> None:
    for _ in range(1000):
        asyncio.get_running_loop().call_later(3600, print)


REMAINS = [
    leaves_a_task,
    leaves_a_timer,
    leaves_many_timers,
    leaves_a_callback,
    leaves_a_callback_of_a_thread,
    leaves_a_file,
    leaves_a_setting,
    leaves_a_thread,
]


@kept
@pytest.mark.parametrize("leaves", REMAINS)
def test_a_loop_with_remains_is_closed(leaves: Callable[[int], None]) -> None:
    async def litter(file: int) -> None:
        leaves(file)

    toolkit = Toolkit(tools=[loop_of_the_call, litter])

    before = used_loop(toolkit)
    one, other = socket.socketpair()
    with one, other:
        assert toolkit.run("litter", file=one.fileno()).ok

    assert before.is_closed()
    assert used_loop(toolkit) is not before


@kept
def test_a_call_that_tidies_up_leaves_the_loop_clean() -> None:
    called: list[Any] = []
    threaded = threading.Event()

    async def tidy() -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(called.append, 1)
        for _ in range(1000):
            loop.call_later(3600, print).cancel()
        async with asyncio.timeout(3600):  # type: ignore[attr-defined] # from 3.11
            await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0.001))
        async for _ in numbers():
            pass
        future = loop.create_future()
        future.add_done_callback(called.append)
        future.set_result(None)

    async def numbers() -> Any:
        yield 1

    toolkit = Toolkit(tools=[loop_of_the_call, tidy])
    toolkit.register_tool_function(threaded.set, name="threaded", run_in="thread")
    before = used_loop(toolkit)

    assert toolkit.run("tidy").ok
    assert toolkit.run("threaded").ok

    assert used_loop(toolkit) is before
    assert threaded.is_set()
    assert len(called) == 2


@kept
def test_the_loop_of_another_policy_is_used_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Loop(asyncio.SelectorEventLoop):
        pass

    monkeypatch.setattr(asyncio, "new_event_loop", Loop)
    toolkit = Toolkit(tools=[loop_of_the_call])

    def loops() -> list[asyncio.AbstractEventLoop]:
        return [used_loop(toolkit), used_loop(toolkit)]

    with ThreadPoolExecutor(1) as pool:
        first, second = pool.submit(loops).result()

    assert (type(first), type(second), first.is_closed(), second.is_closed()) == (Loop, Loop, True, True)
    assert first is not second


def test_an_async_generator_that_a_tool_leaves_is_closed() -> None:
    closed = []

    async def numbers() -> Any:
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    left = []

    async def leave() -> None:
        left.append(numbers())
        await anext(left[0])

    Toolkit(tools=[leave]).run("leave")

    assert closed == [True]


@kept
def test_the_loop_of_a_thread_ends_with_it() -> None:
    toolkit = Toolkit(tools=[loop_of_the_call])
    loops = []

    thread = threading.Thread(target=lambda: loops.append(used_loop(toolkit)))
    thread.start()
    thread.join()

    assert loops[0].is_closed()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_does_not_disturb_the_loops_of_its_parent() -> None:
    program = """
import asyncio, os, sys, threading, time
from toolcrib import Toolkit

async def suspends(): await asyncio.sleep(0.001); return "suspended"
def blocks(): return "blocked"
toolkit = Toolkit(tools=[suspends, blocks])

async def inside(): return toolkit.run("suspends").text, toolkit.run("blocks").text
def outside(): return toolkit.run("suspends").text, toolkit.run("blocks").text

ready, forked = threading.Event(), threading.Event()
def other():
    outside(); ready.set(); forked.wait(); print("other", outside(), flush=True)
thread = threading.Thread(target=other); thread.start(); ready.wait()
outside(); asyncio.run(inside())
child = os.fork()
if not child:
    print("child", outside(), asyncio.run(inside()), flush=True)
    sys.exit(7)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 7
forked.set(); thread.join()
print("parent", outside(), asyncio.run(inside()))
"""

    finished = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-X", "dev", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    both = "('suspended', 'blocked')"
    assert finished.stdout == f"child {both} {both}\nother {both}\nparent {both} {both}\n", finished.stderr
    assert finished.returncode == 0
    assert "Warning" not in finished.stderr
