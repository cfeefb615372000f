"""Synchronous tools that wait for tools, or whose threads were given up: no number of them stops the others."""

import asyncio
import json
import logging
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from support.streams import python, toolkit
from support.waiting import UNBOUNDED_HANG, until
from toolcrib import ToolContext, Toolkit


def kit(*tools: Any) -> Toolkit:
    return toolkit(*tools, run_in="thread")


def answered(toolkit: Toolkit, name: str, count: int) -> list[str]:
    async def main() -> list[str]:
        calls = (toolkit.call(name, value=value) for value in range(count))
        return [response.text for response in await asyncio.wait_for(asyncio.gather(*calls), UNBOUNDED_HANG)]

    return asyncio.run(main())


def nested(way: str) -> Toolkit:
    """A toolkit whose tool `outer` calls the synchronous tool `inner` and waits for it."""

    def inner(value: int) -> str:
        return f"<{value}>"

    made = kit(inner)

    def call(value: int) -> str:
        if way == "session":
            return made.session().run("inner", value=value).text
        if way == "view":
            return made.view().run("inner", value=value).text
        if way == "own loop":
            return asyncio.run(made.call("inner", value=value)).text
        if way == "value":
            return str(asyncio.run(made.value("inner", value=value)))
        if way == "thread":

            async def main() -> str:
                return (await asyncio.to_thread(made.run, "inner", value=value)).text

            return asyncio.run(main())
        if way == "own thread":
            texts: list[str] = []
            thread = threading.Thread(target=lambda: texts.append(made.run("inner", value=value).text))
            thread.start()
            thread.join()
            return texts[0]
        if way == "running loop":

            async def blocking() -> str:
                return made.run("inner", value=value).text

            return asyncio.run(blocking())
        return made.run("inner", value=value).text

    def outer(value: int) -> str:
        return call(value)

    def outer_generator(value: int) -> Iterator[str]:
        yield call(value)

    if way == "generator":
        made.register_tool_function(outer_generator, name="outer")
    else:
        made.register_tool_function(outer)
    if way == "middleware":

        async def through(kwargs: Any, next_handler: Any) -> AsyncIterator[Any]:
            async for response in next_handler(**kwargs):
                yield response

        made.register_middleware(through)
    return made


WAYS = [
    "run",
    "session",
    "view",
    "middleware",
    "generator",
    "own loop",
    "value",
    "thread",
    "own thread",
    "running loop",
]


@pytest.mark.parametrize("way", WAYS)
def test_any_number_of_tools_may_wait_for_tools(way: str) -> None:
    assert answered(nested(way), "outer", 300) == [f"<{value}>" for value in range(300)]


@pytest.mark.parametrize("way", ["run", "own thread"])
def test_more_tools_than_threads_may_wait_for_tools(way: str) -> None:
    assert answered(nested(way), "outer", 1500) == [f"<{value}>" for value in range(1500)]


def test_tools_may_be_nested_to_any_depth() -> None:
    made = Toolkit()

    @made.tool
    def down(value: int) -> str:
        return made.run("down", value=value - 1).text + "." if value else "end"

    assert made.run("down", value=300).text == "end" + "." * 300


def test_many_tools_may_be_nested_deeply() -> None:
    made = Toolkit()

    @made.tool
    def down(depth: int, value: int) -> str:
        return made.run("down", depth=depth - 1, value=value).text if depth else f"<{value}>"

    @made.tool
    def start(value: int) -> str:
        return made.run("down", depth=4, value=value).text

    assert answered(made, "start", 300) == [f"<{value}>" for value in range(300)]


def test_endless_nesting_is_answered() -> None:
    program = """
        from toolcrib import Toolkit
        toolkit = Toolkit(run_in=RUN_IN)

        @toolkit.tool
        def again() -> str:
            return toolkit.run("again").text

        @toolkit.tool
        def quick() -> str:
            return "quick"

        print(toolkit.run("again").text[:200])
        print(toolkit.run("quick").text)
    """

    for run_in in ("thread", "inline"):
        finished = python(program.replace("RUN_IN", repr(run_in)), seconds=120)

        assert finished.returncode == 0, finished.stderr[-2000:]
        assert "RecursionError" in finished.stdout
        assert finished.stdout.endswith("quick\n")


def test_a_call_that_has_timed_out_leaves_its_place_to_others() -> None:
    release = threading.Event()

    def hang() -> None:
        release.wait(UNBOUNDED_HANG)

    def quick() -> str:
        return "quick"

    made = kit(quick)
    made.register_tool_function(hang, timeout=0.2)

    async def main() -> tuple[set[str | None], str]:
        hanging = await asyncio.gather(*(made.call("hang") for _ in range(300)))
        quick = await asyncio.wait_for(made.call("quick"), UNBOUNDED_HANG)
        return {response.code for response in hanging}, quick.text

    try:
        assert asyncio.run(main()) == ({"timeout"}, "quick")
    finally:
        release.set()


def test_a_call_that_was_cancelled_leaves_its_place_to_others() -> None:
    release = threading.Event()
    started = threading.Semaphore(0)

    def hang() -> None:
        started.release()
        release.wait(UNBOUNDED_HANG)

    def quick() -> str:
        return "quick"

    made = kit(hang, quick)

    async def main() -> str:
        calls = [asyncio.ensure_future(made.call("hang")) for _ in range(256)]
        for _ in calls:
            await asyncio.to_thread(started.acquire)
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
        return (await asyncio.wait_for(made.call("quick"), UNBOUNDED_HANG)).text

    try:
        assert asyncio.run(main()) == "quick"
    finally:
        release.set()


def test_a_tool_that_asks_a_person_leaves_its_place_to_others() -> None:
    async def asker(question: Any) -> str:
        asked.append(question)
        await answer.wait()
        return "yes"

    def ask(context: ToolContext[Any]) -> str:
        return context.ask("really?", str).result()

    def quick() -> str:
        return "quick"

    asked: list[Any] = []
    answer = asyncio.Event()
    made = Toolkit(asker=asker, tools=[ask, quick])

    async def main() -> tuple[str, set[str]]:
        calls = [asyncio.ensure_future(made.call("ask")) for _ in range(300)]
        await until(lambda: len(asked) == 300)
        text = (await asyncio.wait_for(made.call("quick"), UNBOUNDED_HANG)).text
        answer.set()
        return text, {response.text for response in await asyncio.gather(*calls)}

    assert asyncio.run(main()) == ("quick", {"yes"})


def test_a_full_pool_is_reported_with_the_names_of_its_tools(caplog: pytest.LogCaptureFixture) -> None:
    release = threading.Event()

    def hog() -> None:
        release.wait(UNBOUNDED_HANG)

    def quick() -> str:
        return "quick"

    made = kit(hog, quick)

    async def main() -> str:
        calls = [asyncio.ensure_future(made.call("hog")) for _ in range(256)]
        waiting = asyncio.ensure_future(made.call("quick"))
        deadline = time.monotonic() + UNBOUNDED_HANG
        while not caplog.records and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        release.set()
        await asyncio.gather(*calls)
        return (await waiting).text

    with caplog.at_level(logging.WARNING, "toolcrib"):
        assert asyncio.run(main()) == "quick"

    (record,) = caplog.records
    assert "`hog` (256)" in record.getMessage()
    assert "1 calls of synchronous tools wait for a thread" in record.getMessage()


def test_a_pool_without_a_thread_that_can_end_is_answered_as_busy() -> None:
    program = """
        import asyncio, json, logging, threading
        from toolcrib import Toolkit
        from toolcrib.errors import BusyError, ToolCallError

        records = []
        handler = logging.Handler()
        handler.emit = lambda record: records.append(record.getMessage())
        logging.getLogger("toolcrib").addHandler(handler)
        release = threading.Event()
        toolkit, raising = Toolkit(), Toolkit(errors="raise")

        @toolkit.tool(timeout=5)
        def hang() -> None:
            release.wait()

        @raising.tool
        @toolkit.tool
        def quick() -> str:
            return "quick"

        async def main():
            while (busy := await asyncio.wait_for(toolkit.call("quick"), 30)).ok:
                calls = [asyncio.ensure_future(toolkit.call("hang")) for _ in range(256)]
                await asyncio.sleep(0.4)
                for call in calls: call.cancel()
                await asyncio.wait(calls)
            try:
                await asyncio.wait_for(toolkit.value("quick"), 30)
            except ToolCallError as error:
                value = error.code
            try:
                await asyncio.wait_for(raising.call("quick"), 30)
            except BusyError as error:
                raised = str(error)
            seen = list(records)
            release.set()
            for _ in range(200):
                again = await toolkit.call("quick")
                if again.ok: break
            return [busy.code, busy.text, value, raised, seen, again.text]

        print(json.dumps(asyncio.run(main())))
    """

    finished = python(program, seconds=120)

    assert finished.returncode == 0, finished.stderr[-2000:]
    code, text, value, raised, records, again = json.loads(finished.stdout)
    assert (code, value, again) == ("busy", "busy", "quick")
    assert "'quick' did not run" in text
    assert "1024 tools" in raised
    assert len(records) == 1
    assert "`hang` (1024)" in records[0]


def test_generators_that_wait_for_their_readers_leave_their_places_to_others() -> None:
    def endless() -> Iterator[int]:
        number = 0
        while True:
            yield (number := number + 1)

    def quick() -> str:
        return "quick"

    made = kit(endless, quick)

    async def main() -> str:
        streams = [made.call_tool_function({"name": "endless", "input": {}}) for _ in range(600)]
        for stream in streams:
            await anext(stream)
        text = (await asyncio.wait_for(made.call("quick"), UNBOUNDED_HANG)).text
        for stream in streams:
            await stream.aclose()
        return text

    assert asyncio.run(main()) == "quick"
