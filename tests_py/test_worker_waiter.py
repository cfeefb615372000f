"""The object that a task waits on while a tool runs in a thread behaves like a future."""

import asyncio
import contextvars
import gc
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from toolcrib import Toolkit, ToolResponse


def echo(value: int) -> str:
    return f"<{value}>"


class Gate:
    """Holds a tool up until it is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.kit = Toolkit()
        self.kit.register_tool_function(self.wait)

    def wait(self) -> str:
        """Wait for the gate to open."""
        self.opened.wait(30)
        return "open"

    def call(self) -> tuple[Coroutine[Any, Any, ToolResponse], Any]:
        """Start a call by hand, as a task would."""
        call = self.kit.call("wait")
        return call, call.send(None)


@pytest.fixture
def toolkit() -> Toolkit:
    toolkit = Toolkit()
    toolkit.register_tool_function(echo)
    return toolkit


def test_a_call_is_not_a_future_itself(toolkit: Toolkit) -> None:
    async def main() -> None:
        call = toolkit.call("echo", value=1)

        assert not asyncio.isfuture(call)
        assert asyncio.iscoroutine(call)
        assert (await call).text == "<1>"

    asyncio.run(main())


def test_what_a_call_waits_on_can_be_awaited_by_its_driver() -> None:
    async def main() -> None:
        gate = Gate()
        call, waiter = gate.call()
        assert asyncio.isfuture(waiter)
        assert waiter.get_loop() is asyncio.get_running_loop()
        assert not waiter.done()
        with pytest.raises(asyncio.InvalidStateError):
            waiter.result()

        gate.opened.set()
        waiter._asyncio_future_blocking = False
        await waiter
        with pytest.raises(StopIteration) as stop:
            call.send(None)

        assert stop.value.value.text == "open"
        assert waiter.done()
        assert not waiter.cancelled()
        assert waiter.result() is None
        assert waiter.exception() is None
        assert not waiter.cancel()

    asyncio.run(main())


def test_callbacks_are_called_with_the_waiter_in_their_context_unless_removed() -> None:
    async def main() -> None:
        gate, seen = Gate(), list[tuple[str, object, str]]()
        place = contextvars.ContextVar("place", default="nowhere")
        context = contextvars.copy_context()
        context.run(place.set, "there")
        call, waiter = gate.call()

        def note(name: str) -> Callable[[object], None]:
            return lambda which: seen.append((name, which, place.get()))

        removed = note("removed")
        waiter.add_done_callback(note("first"), context=context)
        waiter.add_done_callback(removed)
        waiter.add_done_callback(note("second"))
        waiter.add_done_callback(removed)
        assert waiter.remove_done_callback(removed) == 2
        gate.opened.set()
        waiter._asyncio_future_blocking = False
        await waiter
        waiter.add_done_callback(note("late"))
        await asyncio.sleep(0)

        assert seen == [("first", waiter, "there"), ("second", waiter, "nowhere"), ("late", waiter, "nowhere")]
        call.close()

    asyncio.run(main())


def test_a_cancelled_waiter_says_why() -> None:
    async def main() -> None:
        gate = Gate()
        call, waiter = gate.call()
        notified = list[object]()
        waiter.add_done_callback(notified.append)

        assert waiter.cancel("enough")
        assert not waiter.cancel()
        assert notified == []
        await asyncio.sleep(0)

        assert notified == [waiter]
        assert waiter.cancelled()
        with pytest.raises(asyncio.CancelledError, match="enough"):
            await waiter
        gate.opened.set()
        call.close()

    asyncio.run(main())


def test_a_task_that_stops_the_loop_does_not_take_the_results_of_others_with_it(toolkit: Toolkit) -> None:
    async def call(value: int) -> str:
        text = (await toolkit.call("echo", value=value)).text
        if value == 0:
            raise KeyboardInterrupt
        return text

    loop = asyncio.new_event_loop()
    try:
        tasks = [loop.create_task(call(value)) for value in range(50)]
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(asyncio.wait(tasks))
        rest = loop.run_until_complete(asyncio.wait_for(asyncio.gather(*tasks[1:]), 30))
    finally:
        loop.close()

    assert isinstance(tasks[0].exception(), KeyboardInterrupt)
    assert rest == [echo(value) for value in range(1, 50)]


def test_tasks_written_in_python_can_wait_too(toolkit: Toolkit) -> None:
    task = asyncio.tasks._PyTask  # type: ignore[attr-defined]

    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(lambda loop, coroutine, **options: task(coroutine, loop=loop, **options))
        return [it.text for it in await asyncio.gather(*(toolkit.call("echo", value=value) for value in range(20)))]

    assert asyncio.run(main()) == [echo(value) for value in range(20)]


def test_a_loop_in_debug_mode_receives_results(toolkit: Toolkit) -> None:
    async def main() -> list[str]:
        return [it.text for it in await asyncio.gather(*(toolkit.call("echo", value=value) for value in range(20)))]

    assert asyncio.run(main(), debug=True) == [echo(value) for value in range(20)]


def test_a_task_goes_on_in_its_own_context(toolkit: Toolkit) -> None:
    number = contextvars.ContextVar("number", default=-1)

    async def call(value: int) -> int:
        number.set(value)
        await toolkit.call("echo", value=value)
        assert asyncio.current_task() is not None
        return number.get()

    async def main() -> list[int]:
        return await asyncio.gather(*(call(value) for value in range(50)))

    assert asyncio.run(main()) == list(range(50))


def test_a_waiter_that_refers_to_itself_is_collected() -> None:
    class Callback:
        def __call__(self, waiter: object) -> None: ...

    async def main() -> "weakref.ref[Callback]":
        gate = Gate()
        call, waiter = gate.call()
        callback = Callback()
        callback.waiter = waiter  # type: ignore[attr-defined]
        waiter.add_done_callback(callback)
        gate.opened.set()
        call.close()
        return weakref.ref(callback)

    callback = asyncio.run(main())
    gc.collect()

    assert callback() is None


def test_a_future_that_is_kept_is_resolved() -> None:
    async def main() -> None:
        gate = Gate()
        task = asyncio.ensure_future(gate.kit.call("wait"))
        while task._fut_waiter is None:  # type: ignore[attr-defined]
            await asyncio.sleep(0)
        waiter = task._fut_waiter  # type: ignore[attr-defined]

        gate.opened.set()
        await task

        assert waiter.done()
        assert waiter.result() is None

    asyncio.run(main())


def test_calls_wait_on_the_futures_of_calls_before_them(toolkit: Toolkit) -> None:
    async def main() -> set[int]:
        seen = set()
        for value in range(50):
            call = toolkit.call("echo", value=value)
            task = asyncio.ensure_future(call)
            await asyncio.sleep(0)
            seen.add(id(task._fut_waiter))  # type: ignore[attr-defined]
            assert (await task).text == echo(value)
        return seen

    assert len(asyncio.run(main())) < 10


def test_cancelled_calls_leave_nothing_behind_for_later_ones(toolkit: Toolkit) -> None:
    async def main() -> None:
        for turn in range(50):
            tasks = [asyncio.ensure_future(toolkit.call("echo", value=value)) for value in range(20)]
            for _ in range(turn % 4):
                await asyncio.sleep(0)
            for task in tasks[::3]:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)

            for value, result in enumerate(results):
                if isinstance(result, BaseException):
                    assert isinstance(result, asyncio.CancelledError)
                    assert value % 3 == 0
                else:
                    assert result.text == echo(value)

    asyncio.run(main())


def test_loops_that_take_turns_in_a_thread_receive_their_own_results(toolkit: Toolkit) -> None:
    async def main(values: range) -> list[str]:
        return [it.text for it in await asyncio.gather(*(toolkit.call("echo", value=value) for value in values))]

    loops = [asyncio.new_event_loop() for _ in range(3)]
    try:
        received = [loops[turn % 3].run_until_complete(main(range(turn, turn + 5))) for turn in range(30)]
    finally:
        for loop in loops:
            loop.close()

    assert received == [[echo(value) for value in range(turn, turn + 5)] for turn in range(30)]


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_loop_that_is_dropped_open_is_not_kept_alive(toolkit: Toolkit) -> None:
    loop = asyncio.SelectorEventLoop()
    loop.run_until_complete(toolkit.call("echo", value=1))
    gone = weakref.ref(loop)

    del loop
    gc.collect()

    assert gone() is None
