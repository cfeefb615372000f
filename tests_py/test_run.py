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
from contextlib import suppress
from typing import Any

import pytest

from support.streams import python
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


@pytest.mark.parametrize("place", [in_plain_code, in_a_running_loop])
def test_the_loop_of_a_call_is_used_again(place: Callable[[Callable[[], Any]], Any]) -> None:
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
    loop.call_soon(lambda: loop.call_soon(lambda: loop.call_soon(bool)))


def leaves_a_file(file: int) -> None:
    asyncio.get_running_loop().add_reader(file, bool)
    asyncio.get_running_loop().call_soon(asyncio.get_running_loop().remove_reader, file)


def leaves_a_thread(_: int) -> None:
    asyncio.get_running_loop().run_in_executor(None, bool)


def leaves_a_callback_of_a_thread(_: int) -> None:
    asyncio.get_running_loop().call_soon_threadsafe(bool)


def stops_the_loop(_: int) -> None:
    asyncio.get_running_loop().stop()


REMAINS = [
    leaves_a_task,
    leaves_a_timer,
    leaves_a_callback,
    leaves_a_callback_of_a_thread,
    leaves_a_file,
    leaves_a_thread,
    stops_the_loop,
]


@pytest.mark.parametrize("leaves", REMAINS)
def test_a_loop_with_remains_is_used_again(leaves: Callable[[int], None]) -> None:
    async def litter(file: int) -> None:
        leaves(file)

    toolkit = Toolkit(tools=[loop_of_the_call, litter])

    def calls() -> None:
        before = used_loop(toolkit)
        one, other = socket.socketpair()
        with one, other:
            assert toolkit.run("litter", file=one.fileno()).ok
            assert used_loop(toolkit) is before

    with ThreadPoolExecutor(1) as pool:
        pool.submit(calls).result()


def test_the_loop_of_another_policy_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Loop(asyncio.SelectorEventLoop):
        pass

    monkeypatch.setattr(asyncio, "new_event_loop", Loop)
    toolkit = Toolkit(tools=[loop_of_the_call])

    with ThreadPoolExecutor(1) as pool:
        first, second = pool.submit(lambda: [used_loop(toolkit), used_loop(toolkit)]).result()

    assert type(first) is Loop
    assert first is second


CALLS = 6


class Client:
    """A client that belongs to the event loop of its first use, as those of HTTP and databases do."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def echo(self, port: int, text: str) -> str:
        async with self.lock:
            if self.streams is None:
                self.streams = await asyncio.open_connection("127.0.0.1", port)
            reader, writer = self.streams
            writer.write(text.encode() + b"\n")
            await writer.drain()
            answer = (await reader.readline()).decode().strip()
            if text == str(CALLS - 1):
                writer.close()
                await writer.wait_closed()
            return answer


@pytest.fixture
def port() -> Any:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    def answer(connection: socket.socket) -> None:
        with connection, connection.makefile("rwb", 0) as file:
            for line in file:
                file.write(line)

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def from_plain_code(toolkit: Toolkit, port: int) -> list[str]:
    return [toolkit.run("echo", port=port, text=str(number)).text for number in range(CALLS)]


def from_a_running_loop(toolkit: Toolkit, port: int) -> list[str]:
    async def main() -> list[str]:
        return from_plain_code(toolkit, port)

    return asyncio.run(main())


def from_several_running_loops(toolkit: Toolkit, port: int) -> list[str]:
    async def main(number: int) -> str:
        return toolkit.run("echo", port=port, text=str(number)).text

    return [asyncio.run(main(number)) for number in range(CALLS)]


def from_a_thread(toolkit: Toolkit, port: int) -> list[str]:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(from_plain_code, toolkit, port).result()


def from_a_tool(toolkit: Toolkit, port: int) -> list[str]:
    @toolkit.tool
    def ask(number: int) -> str:
        return toolkit.run("echo", port=port, text=str(number)).text

    return [toolkit.run("ask", number=number).text for number in range(CALLS)]


def from_tools_of_another_loop(toolkit: Toolkit, port: int) -> list[str]:
    @toolkit.tool
    def ask(number: int) -> str:
        return toolkit.run("echo", port=port, text=str(number)).text

    return [asyncio.run(toolkit.call("ask", number=number)).text for number in range(CALLS)]


def after_a_fork(toolkit: Toolkit, port: int) -> list[str]:
    before = [toolkit.run("echo", port=port, text=str(number)).text for number in range(3)]
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    return before + [toolkit.run("echo", port=port, text=str(number)).text for number in range(3, CALLS)]


PLACES = [from_plain_code, from_a_running_loop, from_several_running_loops, from_a_thread, from_a_tool]


@pytest.mark.parametrize("place", [*PLACES, from_tools_of_another_loop, after_a_fork])
def test_a_client_can_be_used_by_one_call_after_the_other(
    port: int, place: Callable[[Toolkit, int], list[str]]
) -> None:
    client = Client()

    assert place(Toolkit(tools=[client.echo]), port) == [str(number) for number in range(CALLS)]


def test_a_task_that_a_tool_leaves_goes_on_with_the_next_call() -> None:
    done = []

    async def leave() -> None:
        async def later() -> None:
            await asyncio.sleep(0)
            await asyncio.sleep(0.01)
            done.append(True)

        left.append(asyncio.ensure_future(later()))

    async def wait() -> str:
        await left[0]
        return "waited"

    left: list[asyncio.Future[None]] = []
    toolkit = Toolkit(tools=[leave, wait])

    toolkit.run("leave")
    assert toolkit.run("wait").text == "waited"
    assert done == [True]


def test_a_background_task_is_waited_for_by_a_later_call() -> None:
    toolkit = Toolkit()
    toolkit.register_task_tools()

    @toolkit.tool(async_execution=True)
    async def survey() -> str:
        await asyncio.sleep(0.01)
        return "surveyed"

    started = toolkit.run("survey")
    assert started.metadata is not None

    assert toolkit.run("wait_task", task_id=started.metadata["task_id"]).text == "surveyed"


def test_tasks_and_generators_that_are_left_end_with_the_program() -> None:
    finished = python(
        """
        import asyncio, threading
        from toolcrib import Toolkit

        async def numbers():
            try:
                yield 1
                yield 2
            finally:
                print("generator finalised", flush=True)

        kept = []
        async def leave(name: str):
            async def forever():
                try:
                    await asyncio.sleep(3600)
                finally:
                    await asyncio.sleep(0)
                    print(name, "task finalised", flush=True)
            kept.append(asyncio.ensure_future(forever()))
            kept.append(numbers())
            await anext(kept[-1])
            await asyncio.sleep(0)

        toolkit = Toolkit(tools=[leave])
        toolkit.run("leave", name="main")
        async def inside(): toolkit.run("leave", name="inside")
        asyncio.run(inside())
        thread = threading.Thread(target=toolkit.run, args=["leave"], kwargs={"name": "thread"})
        thread.start(); thread.join()
        print("end", flush=True)
        """,
        "-W",
        "error",
        "-X",
        "dev",
    )

    assert finished.returncode == 0
    assert finished.stderr == ""
    lines = finished.stdout.splitlines()
    assert lines[0] == "end"
    assert sorted(lines[1:]) == [
        *["generator finalised"] * 3,
        *(f"{name} task finalised" for name in ["inside", "main", "thread"]),
    ]


@pytest.mark.parametrize("where", ["main", "task", "select", "thread", "inside"])
def test_ctrl_c_ends_a_call_and_cleans_up(where: str) -> None:
    finished = python(
        f"""
        import asyncio, os, signal, threading, time
        from toolcrib import Toolkit

        def interrupt():
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGINT)

        async def work():
            threading.Thread(target=interrupt).start()
            try:
                if {where!r} == "task":
                    await asyncio.gather(asyncio.sleep(20), busy())
                elif {where!r} == "main":
                    time.sleep(20)
                else:
                    await asyncio.sleep(20)
            finally:
                print("finalised", flush=True)

        async def busy():
            while True:
                await asyncio.sleep(0)

        def block():
            threading.Thread(target=interrupt).start()
            time.sleep(2)

        async def loop(): return asyncio.get_running_loop()

        toolkit = Toolkit(tools=[work, block, loop])
        async def inside(): toolkit.run("work")
        before = toolkit.run("loop").metadata["value"]
        began = time.monotonic()
        try:
            if {where!r} == "inside":
                asyncio.new_event_loop().run_until_complete(inside())
            else:
                toolkit.run("block" if {where!r} == "thread" else "work")
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        assert time.monotonic() - began < 10
        assert toolkit.run("loop").metadata["value"] is before
        """,
    )

    assert finished.returncode == 0, finished.stderr
    assert "interrupted" in finished.stdout
    assert ("finalised" in finished.stdout) is (where != "thread")


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
