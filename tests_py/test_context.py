"""`ToolContext`: what a tool knows about its call, and what it says while it runs."""

import asyncio
import gc
import logging
import pickle
import threading
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal, Optional

import pytest

from support import context_tools
from toolcrib import Question, ToolContext, Toolkit, ToolResponse
from toolcrib.errors import NoAskerError, WrongAnswerError


@dataclass
class Deps:
    """What the tools of one user work with."""

    user: str


def block(name: str, **arguments: Any) -> dict[str, Any]:
    """A call as a model sends it."""
    return {"type": "tool_use", "id": "call_7", "name": name, "input": arguments}


async def chunks_of(stream: Any) -> list[ToolResponse]:
    """Read a stream to its end."""
    return [chunk async for chunk in stream]


def progress_of(chunks: list[ToolResponse]) -> list[str]:
    """The texts of the reports among responses."""
    return [chunk.text for chunk in chunks if chunk.mode == "progress"]


class TestParameter:
    """A parameter of this type is filled, and hidden from the model."""

    def test_the_model_does_not_see_it(self) -> None:
        toolkit = Toolkit()

        @toolkit.tool
        async def book(context: ToolContext[Deps], city: str) -> str:
            return city

        (schema,) = toolkit.get_json_schemas()
        assert schema["function"]["parameters"] == {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        }

    def test_the_model_cannot_send_it(self) -> None:
        toolkit = Toolkit()

        @toolkit.tool
        async def book(context: ToolContext[Deps], city: str) -> str:
            return context.tool_name

        assert toolkit.run("book", city="Rome").text == "book"
        assert toolkit.run("book", city="Rome", context={"caller": "root"}).code == "invalid_arguments"

    @pytest.mark.parametrize(
        "annotation",
        [ToolContext, ToolContext[Deps], Optional[ToolContext[Deps]], "ToolContext[Deps]", "ToolContext | None"],
        ids=str,
    )
    def test_it_may_be_written_in_any_way(self, annotation: Any) -> None:
        toolkit = Toolkit(run_in="inline")

        def tool(city, *, context=None):  # type: ignore[no-untyped-def]
            return context.call_id

        tool.__annotations__ = {"city": str, "context": annotation}
        toolkit.register_tool_function(tool)

        assert toolkit.run("tool", city="Rome").text.startswith("call_")

    def test_it_may_stand_beside_any_parameters(self) -> None:
        toolkit = Toolkit(run_in="inline")

        @toolkit.tool(include_var_positional=True, include_var_keyword=True)
        def tool(a: int, context: ToolContext, *more: int, b: int = 2, **rest: int) -> str:
            return f"{a} {context.tool_name} {more} {b} {rest}"

        assert toolkit.run("tool", a=1, more=[5], rest={"c": 3}).text == "1 tool (5,) 2 {'c': 3}"

    def test_a_preset_takes_its_place(self) -> None:
        toolkit = Toolkit(run_in="inline")

        def tool(context: ToolContext) -> str:
            return str(context)

        toolkit.register_tool_function(tool, preset_kwargs={"context": "mine"})

        assert toolkit.run("tool").text == "mine"


class TestFacts:
    """The context names the call."""

    def test_it_names_caller_session_call_and_dependencies(self) -> None:
        toolkit = Toolkit()
        seen: list[ToolContext[Deps]] = []

        @toolkit.tool(timeout=60)
        async def book(context: ToolContext[Deps]) -> str:
            seen.append(context)
            return context.deps.user

        session = toolkit.session(id="s1", caller="ann", deps=Deps("Ann"))
        chunks = asyncio.run(chunks_of(session.call_tool_function(block("book"))))

        (context,) = seen
        assert chunks[-1].text == "Ann"
        assert (context.tool_name, context.call_id, context.caller) == ("book", "call_7", "ann")
        assert context.session is session
        assert context.session_id == "s1"
        assert context.deadline is not None
        assert 0 < context.deadline - time.monotonic() <= 60
        assert repr(context) == "ToolContext(tool_name='book', call_id='call_7', caller='ann', session='s1')"

    def test_a_narrowed_session_keeps_its_dependencies(self) -> None:
        toolkit = Toolkit()

        @toolkit.tool
        async def who(context: ToolContext[Deps]) -> str:
            return context.deps.user

        session = toolkit.session(deps=Deps("Ann"))

        assert session.view(names=["who"]).run("who").text == "Ann"

    def test_the_session_of_a_sub_agent_knows_its_parent(self) -> None:
        toolkit = Toolkit()

        @toolkit.tool
        async def inner(context: ToolContext[None]) -> str:
            assert context.parent is not None
            return f"{context.tool_name} of {context.parent.tool_name}"

        @toolkit.tool
        async def outer(context: ToolContext[None]) -> str:
            return (await toolkit.session(parent=context).call("inner")).text

        assert toolkit.run("outer").text == "inner of outer"

    def test_outside_of_a_session_there_are_none(self) -> None:
        toolkit = Toolkit()

        @toolkit.tool
        async def who(context: ToolContext[None]) -> str:
            return f"{context.caller} {context.session} {context.deps} {context.deadline} {context.time_left()}"

        assert toolkit.run("who").text == "None None None None None"
        assert toolkit.view(caller="ann").run("who").text == "ann None None None None"

    def test_middlewares_and_approvers_get_the_same(self) -> None:
        seen: list[Any] = []

        async def watch(kwargs: dict[str, Any], next_handler: Any) -> AsyncIterator[Any]:
            seen.append((next_handler.caller, next_handler.session.id, next_handler.deps))
            async for chunk in next_handler(**kwargs):
                yield chunk

        async def approver(request: Any) -> str:
            seen.append((request.caller, request.session, request.deps))
            return "once"

        toolkit = Toolkit(approver=approver)
        toolkit.register_middleware(watch)

        @toolkit.tool(permission="confirm")
        async def book(context: ToolContext[Deps]) -> str:
            seen.append((context.caller, context.session_id, context.deps))
            return "done"

        deps = Deps("Ann")
        assert toolkit.session(id="s1", caller="ann", deps=deps).run("book").text == "done"

        assert seen == [("ann", "s1", deps)] * 3


class TestProgress:
    """Reports join the stream as they come, and never the result."""

    def test_a_coroutine_reports_between_its_waits(self) -> None:
        toolkit = Toolkit()

        @toolkit.tool
        async def load(context: ToolContext) -> str:
            context.progress(0, 2)
            await asyncio.sleep(0)
            context.progress(1, 2, "half")
            await asyncio.sleep(0)
            return "loaded"

        chunks = asyncio.run(chunks_of(toolkit.call_tool_function(block("load"))))

        assert progress_of(chunks) == ["0 of 2", "half"]
        assert chunks[1].metadata == {"progress": {"done": 1, "total": 2, "text": "half"}}
        assert [chunk.is_last for chunk in chunks] == [False, False, True]
        assert chunks[-1].text == "loaded"

    @pytest.mark.parametrize(
        ("done", "total", "text"),
        [
            (1234567, 2000000, "1234567 of 2000000"),
            (2**60, None, str(2**60)),
            (10**400, None, str(10**400)),
            (0.1 + 0.2, 1, "0.3 of 1"),
            (1234567.0, 2e6, "1234567 of 2000000"),
            (True, 2, "1 of 2"),
        ],
    )
    def test_numbers_are_written_in_full(self, done: float, total: float | None, text: str) -> None:
        toolkit = Toolkit()

        @toolkit.tool
        async def load(context: ToolContext) -> str:
            context.progress(done, total)
            return "loaded"

        assert progress_of(asyncio.run(chunks_of(toolkit.call_tool_function(block("load"))))) == [text]

    def test_progress_is_a_number(self) -> None:
        toolkit = Toolkit()

        @toolkit.tool
        async def load(context: ToolContext) -> str:
            context.progress("half")  # type: ignore[arg-type]
            return "loaded"

        assert toolkit.run("load").text == "TypeError: progress is reported in numbers, not str"

    def test_a_report_arrives_while_the_tool_waits(self) -> None:
        toolkit = Toolkit()

        async def scenario() -> list[str]:
            go = asyncio.Event()

            @toolkit.tool
            async def load(context: ToolContext) -> str:
                context.progress(1, text="waiting")
                await go.wait()
                return "loaded"

            texts = []
            async for chunk in toolkit.call_tool_function(block("load")):
                texts.append(chunk.text)
                go.set()
            return texts

        assert asyncio.run(asyncio.wait_for(scenario(), 30)) == ["waiting", "loaded"]

    def test_other_tasks_of_the_tool_report_in_time(self) -> None:
        toolkit = Toolkit()

        async def scenario() -> list[str]:
            steps = [asyncio.Event() for _ in range(3)]

            @toolkit.tool
            async def load(context: ToolContext) -> str:
                async def part(number: int) -> None:
                    context.progress(number, 3)
                    await steps[number].wait()

                for number in range(3):
                    await asyncio.gather(part(number))
                return "loaded"

            texts = []
            async for chunk in toolkit.call_tool_function(block("load")):
                texts.append(chunk.text)
                if chunk.mode == "progress":
                    steps[len(texts) - 1].set()
            return texts

        assert asyncio.run(asyncio.wait_for(scenario(), 30)) == ["0 of 3", "1 of 3", "2 of 3", "loaded"]

    @pytest.mark.parametrize("run_in", ["thread", "process"])
    def test_a_blocking_tool_reports_in_time(self, run_in: Literal["thread", "process"]) -> None:
        toolkit = Toolkit()
        toolkit.register_tool_function(context_tools.count, run_in=run_in)

        async def scenario() -> list[str]:
            return [chunk.text async for chunk in toolkit.call_tool_function(block("count", to=3))]

        assert asyncio.run(asyncio.wait_for(scenario(), 60)) == ["1 of 3", "2 of 3", "3 of 3", "counted to 3"]

    def test_a_thread_is_heard_while_it_works(self) -> None:
        toolkit = Toolkit()
        go = threading.Event()

        @toolkit.tool
        def load(context: ToolContext) -> str:
            context.progress(1, text="started")
            assert go.wait(30)
            return "loaded"

        async def scenario() -> list[str]:
            texts = []
            async for chunk in toolkit.call_tool_function(block("load")):
                texts.append(chunk.text)
                go.set()
            return texts

        assert asyncio.run(asyncio.wait_for(scenario(), 30)) == ["started", "loaded"]

    def test_generators_of_all_kinds_report(self) -> None:
        toolkit = Toolkit()

        @toolkit.tool
        async def on_loop(context: ToolContext) -> AsyncIterator[str]:
            context.progress(1, text="p1")
            yield "a"
            context.progress(2, text="p2")
            yield "b"
            context.progress(3, text="p3")

        @toolkit.tool
        def in_thread(context: ToolContext) -> Iterator[str]:
            context.progress(1, text="p1")
            yield "a"
            context.progress(2, text="p2")
            yield "b"
            context.progress(3, text="p3")

        toolkit.register_tool_function(in_thread, func_name="inline", run_in="inline")

        for name in ("on_loop", "in_thread", "inline"):
            chunks = asyncio.run(chunks_of(toolkit.call_tool_function(block(name))))
            assert progress_of(chunks) == ["p1", "p2", "p3"], name
            assert [chunk.text for chunk in chunks if chunk.mode == "addition"] == ["a", "b"], name
            assert chunks[-1].text == "ab", name

    def test_call_and_run_give_the_result(self) -> None:
        toolkit = Toolkit()

        @toolkit.tool
        async def load(context: ToolContext) -> str:
            context.progress(1, 2)
            await asyncio.sleep(0)
            context.progress(2, 2)
            return "loaded"

        assert toolkit.run("load").text == "loaded"

    def test_an_exception_comes_after_the_reports(self) -> None:
        toolkit = Toolkit()

        @toolkit.tool
        async def load(context: ToolContext) -> str:
            context.progress(1, 2)
            raise ValueError("no more")

        chunks = asyncio.run(chunks_of(toolkit.call_tool_function(block("load"))))

        assert [chunk.mode for chunk in chunks] == ["progress", "result"]
        assert chunks[-1].code == "failed"

    def test_a_report_after_the_end_is_dropped(self) -> None:
        toolkit = Toolkit()
        kept: list[ToolContext] = []

        @toolkit.tool
        async def load(context: ToolContext) -> str:
            kept.append(context)
            return "loaded"

        toolkit.run("load")
        kept[0].progress(1)

    def test_cancellation_reaches_what_the_tool_waits_for(self) -> None:
        toolkit = Toolkit()
        seen: list[str] = []

        async def scenario() -> list[ToolResponse]:
            @toolkit.tool
            async def load(context: ToolContext) -> str:
                async def part() -> None:
                    try:
                        await asyncio.sleep(3600)
                    except asyncio.CancelledError:
                        seen.append("part cancelled")
                        raise

                context.progress(1, 2)
                try:
                    await asyncio.create_task(part())
                finally:
                    seen.append("tool finalised")
                return "loaded"

            chunks: list[ToolResponse] = []

            async def read() -> None:
                async for chunk in toolkit.call_tool_function(block("load")):
                    chunks.append(chunk)

            task = asyncio.create_task(read())
            while not chunks:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return chunks

        chunks = asyncio.run(asyncio.wait_for(scenario(), 30))

        assert seen == ["part cancelled", "tool finalised"]
        assert chunks[-1].is_interrupted

    def test_a_timeout_inside_of_the_tool_works(self) -> None:
        toolkit = Toolkit()

        @toolkit.tool
        async def load(context: ToolContext) -> str:
            context.progress(1, 2)
            try:
                await asyncio.wait_for(asyncio.sleep(3600), 0.01)
            except asyncio.TimeoutError:
                return "timed out"
            return "loaded"

        assert toolkit.run("load").text == "timed out"

    def test_a_tool_with_a_context_times_out(self) -> None:
        toolkit = Toolkit()

        @toolkit.tool(timeout=0.05)
        async def load(context: ToolContext) -> str:
            context.progress(1, 2)
            await asyncio.sleep(3600)
            return "loaded"

        assert toolkit.run("load").code == "timeout"

    def test_closing_the_stream_ends_the_tool(self) -> None:
        toolkit = Toolkit()
        seen: list[str] = []

        @toolkit.tool
        async def load(context: ToolContext) -> AsyncIterator[str]:
            try:
                context.progress(1, 2)
                await asyncio.sleep(3600)
                yield "never"
            finally:
                seen.append("finalised")

        async def scenario() -> None:
            async with aclosing(toolkit.call_tool_function(block("load"))) as stream:
                async for _ in stream:
                    break

        asyncio.run(asyncio.wait_for(scenario(), 30))

        assert seen == ["finalised"]

    def test_many_reports_are_bounded(self) -> None:
        toolkit = Toolkit()

        @toolkit.tool
        async def load(context: ToolContext) -> str:
            for number in range(10_000):
                context.progress(number)
            return "loaded"

        texts = progress_of(asyncio.run(chunks_of(toolkit.call_tool_function(block("load")))))

        assert len(texts) == 256
        assert texts[-1] == "9999"


class TestAsk:
    """A tool asks the user while it runs."""

    def toolkit(self, asker: Any) -> Toolkit:
        """A toolkit with a tool that asks."""
        toolkit = Toolkit(asker=asker)

        @toolkit.tool
        async def book(context: ToolContext[Deps]) -> str:
            room = await context.ask("Which room?", Literal["single", "double"])
            return f"booked a {room} room"

        return toolkit

    def test_an_async_asker_answers(self) -> None:
        asked: list[Question] = []

        async def asker(question: Question) -> str:
            asked.append(question)
            return "double"

        session = self.toolkit(asker).session(id="s1", caller="ann", deps=Deps("Ann"))

        assert session.run("book").text == "booked a double room"
        (question,) = asked
        assert question.text == "Which room?"
        assert question.schema == {"enum": ["single", "double"], "type": "string"}
        assert (question.tool, question.caller, question.session, question.deps) == ("book", "ann", "s1", Deps("Ann"))

    def test_a_question_that_is_never_awaited_warns(self) -> None:
        toolkit = Toolkit(asker=lambda question: "double")

        @toolkit.tool
        async def book(context: ToolContext) -> str:
            context.ask("Which room?")
            return "booked"

        with pytest.warns(RuntimeWarning, match="a question of a tool was never asked: use `await`"):
            assert toolkit.run("book").text == "booked"

    def test_a_sync_asker_gets_a_thread(self) -> None:
        threads: list[threading.Thread] = []

        def asker(question: Question) -> str:
            threads.append(threading.current_thread())
            return "single"

        assert self.toolkit(asker).run("book").text == "booked a single room"
        assert threads[0] is not threading.main_thread()

    def test_an_answer_is_built_as_an_argument_is(self) -> None:
        from datetime import date

        async def asker(question: Question) -> str:
            return "2026-01-31"

        toolkit = Toolkit(asker=asker)

        @toolkit.tool
        async def when(context: ToolContext) -> str:
            day = await context.ask("When?", date)
            return type(day).__name__

        assert toolkit.run("when").text == "date"

    def test_a_wrong_answer_is_an_exception_in_the_tool(self) -> None:
        caught: list[BaseException] = []

        async def asker(question: Question) -> str:
            return "suite"

        toolkit = Toolkit(asker=asker)

        @toolkit.tool
        async def book(context: ToolContext) -> str:
            try:
                await context.ask("Which room?", {"enum": ["single", "double"]})
            except WrongAnswerError as error:
                caught.append(error)
            return "done"

        toolkit.run("book")

        assert 'answer: expected one of "single", "double", got "suite"' in str(caught[0])

    def test_text_is_no_schema_and_is_not_evaluated(self) -> None:
        async def asker(question: Question) -> str:
            return "yes"

        toolkit = Toolkit(asker=asker)

        @toolkit.tool
        async def book(context: ToolContext) -> str:
            return str(await context.ask("Which room?", "bool"))

        response = toolkit.run("book")

        assert isinstance(response.exception, TypeError)
        assert "expected a type or a JSON Schema" in response.text

    def test_without_an_asker_the_tool_learns_so(self) -> None:
        toolkit = self.toolkit(None)

        response = toolkit.run("book")

        assert response.code == "failed"
        assert isinstance(response.exception, NoAskerError)

    @pytest.mark.parametrize("run_in", ["thread", "process"])
    @pytest.mark.parametrize("kind", ["sync", "async"])
    def test_a_blocking_tool_waits_for_the_answer(self, run_in: Literal["thread", "process"], kind: str) -> None:
        async def slowly(question: Question) -> str:
            await asyncio.sleep(0)
            return "double"

        def at_once(question: Question) -> str:
            return "double"

        toolkit = Toolkit(asker=slowly if kind == "async" else at_once)
        toolkit.register_tool_function(context_tools.book, run_in=run_in)

        assert toolkit.run("book").text == "booked a double room"

    def test_an_asker_must_be_callable(self) -> None:
        with pytest.raises(TypeError, match="asker must be callable, not str"):
            Toolkit(asker="me")  # type: ignore[arg-type]


class TestLog:
    """A tool logs with the facts of its call."""

    @pytest.mark.parametrize("run_in", ["inline", "thread", "process"])
    def test_records_have_the_facts_of_the_call(
        self, run_in: Literal["inline", "thread", "process"], caplog: pytest.LogCaptureFixture
    ) -> None:
        toolkit = Toolkit()
        toolkit.register_tool_function(context_tools.note, run_in=run_in)

        with caplog.at_level(logging.INFO, "toolcrib.tool"):
            toolkit.session(id="s1", caller="ann").run("note", text="hello")

        (record,) = [record for record in caplog.records if record.name == "toolcrib.tool.note"]
        assert record.getMessage() == "noted hello"
        facts = vars(record)
        assert (facts["tool"], facts["caller"], facts["session"]) == ("note", "ann", "s1")
        assert facts["call_id"].startswith("call_")


class TestProcess:
    """In a process of its own a tool has the same context."""

    def test_the_facts_travel(self) -> None:
        toolkit = Toolkit()
        toolkit.register_tool_function(context_tools.facts, run_in="process")

        session = toolkit.session(id="s1", caller="ann", deps={"user": "Ann"})

        assert session.run("facts").text == "facts ann s1 {'user': 'Ann'} None"

    def test_dependencies_that_cannot_travel_are_an_error(self) -> None:
        toolkit = Toolkit()
        toolkit.register_tool_function(context_tools.facts, run_in="process")

        response = toolkit.session(deps=threading.Lock()).run("facts")

        assert response.code == "failed"
        assert "cannot pickle" in response.text


def test_a_context_can_be_pickled_outside_of_a_call_too() -> None:
    toolkit = Toolkit(run_in="inline")
    kept: list[ToolContext] = []

    @toolkit.tool
    def tool(context: ToolContext) -> str:
        kept.append(context)
        return "done"

    toolkit.session(caller="ann").run("tool")

    assert pickle.loads(pickle.dumps(kept[0])).caller == "ann"


def test_a_call_with_a_context_leaves_nothing_behind() -> None:
    class Thing:
        pass

    toolkit = Toolkit()
    seen: list[weakref.ref[Any]] = []

    @toolkit.tool
    async def tool(context: ToolContext) -> str:
        thing = Thing()
        thing.context = context  # type: ignore[attr-defined]
        seen.append(weakref.ref(thing))
        seen.append(weakref.ref(context)) if hasattr(context, "__weakref__") else None
        context.progress(1)
        await asyncio.sleep(0)
        return "done"

    asyncio.run(chunks_of(toolkit.call_tool_function(block("tool"))))
    gc.collect()

    assert [ref() for ref in seen] == [None] * len(seen)
