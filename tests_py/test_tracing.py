"""Spans as an application sees them that uses the real SDK: where they hang, and what they say."""

import asyncio
import threading
from collections import UserDict
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from support.loops import LoopFactory
from support.streams import block, read, texts, toolkit
from support.tracing import Traces, attributes, tools_with_spans
from toolcrib import Toolkit, ToolResponse


@pytest.fixture
def kit(traces: Traces) -> Toolkit:
    return tools_with_spans(traces)


# Where a span hangs


@pytest.mark.parametrize(
    "name", ["coroutine", "function", "async_generator", "generator", "thread", "thread_generator"]
)
async def test_a_call_is_a_child_of_its_caller_and_the_parent_of_what_it_does(
    traces: Traces, kit: Toolkit, name: str, loop_factory: LoopFactory
) -> None:
    with traces.tracer.start_as_current_span("agent"):
        await read(kit.call_tool_function(block(name, word="hello")))

    assert traces.path("inside") == ["inside", f"execute_tool {name}", "agent"]
    assert traces.call().kind is SpanKind.INTERNAL


@pytest.mark.parametrize("name", ["async_generator", "generator", "thread_generator"])
async def test_a_span_that_a_generator_holds_open_is_current_again_when_it_goes_on(
    traces: Traces, kit: Toolkit, name: str
) -> None:
    await read(kit.call_tool_function(block(name, word="hello")))

    assert traces.path("deeper") == ["deeper", "inside", f"execute_tool {name}"]


@pytest.mark.parametrize("name", ["coroutine", "async_generator", "generator", "thread_generator"])
async def test_between_two_chunks_the_consumer_is_where_it_was(traces: Traces, kit: Toolkit, name: str) -> None:
    seen = []

    with traces.tracer.start_as_current_span("agent") as agent:
        async for _ in kit.call_tool_function(block(name, word="hello")):
            seen.append(trace.get_current_span())
            with traces.tracer.start_as_current_span("consumer"):
                pass

    assert set(seen) == {agent}
    consumers = [span for span in traces.spans if span.name == "consumer"]
    assert {span.parent and span.parent.span_id for span in consumers} == {agent.get_span_context().span_id}


async def test_while_a_tool_waits_other_tasks_are_where_they_were(traces: Traces) -> None:
    seen = []

    async def tool() -> str:
        await asyncio.sleep(0)
        return trace.get_current_span().name  # type: ignore[attr-defined, no-any-return]

    async def neighbour() -> None:
        for _ in range(4):
            seen.append(trace.get_current_span())
            await asyncio.sleep(0)

    response, _ = await asyncio.gather(toolkit(tool).call("tool"), neighbour())

    assert response.text == "execute_tool tool"
    assert set(seen) == {trace.INVALID_SPAN}


async def test_the_parent_is_the_span_that_is_current_at_the_first_step(traces: Traces, kit: Toolkit) -> None:
    with traces.tracer.start_as_current_span("made here"):
        stream = kit.call_tool_function(block("async_generator", word="hello"))
    with traces.tracer.start_as_current_span("begun here"):
        await anext(stream)

    await read(stream)

    assert traces.path("execute_tool async_generator") == ["execute_tool async_generator", "begun here"]


async def test_a_call_inside_a_tool_is_a_child_of_the_tool(traces: Traces, kit: Toolkit) -> None:
    async def outer() -> str:
        return (await kit.call("thread", word="hello")).text

    kit.register_tool_function(outer)

    await kit.call("outer")

    assert traces.path("inside") == ["inside", "execute_tool thread", "execute_tool outer"]


async def test_calls_at_the_same_time_keep_their_own_spans(traces: Traces, kit: Toolkit) -> None:
    names = ["coroutine", "async_generator", "thread", "thread_generator"] * 5

    await asyncio.gather(*(read(kit.call_tool_function(block(name, word="hello"))) for name in names))

    calls = {span.get_span_context().span_id for span in traces.spans if span.name.startswith("execute_tool")}  # type: ignore[union-attr]
    inside = [span.parent and span.parent.span_id for span in traces.spans if span.name == "inside"]
    assert len(calls) == len(names)
    assert sorted(map(str, inside)) == sorted(map(str, calls))


def test_several_loops_in_several_threads_keep_their_own_spans(traces: Traces, kit: Toolkit) -> None:
    def work(number: int) -> None:
        async def agent() -> None:
            with traces.tracer.start_as_current_span(f"agent {number}"):
                await read(kit.call_tool_function(block("thread_generator", word="hello")))

        asyncio.run(agent())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    agents = {span.get_span_context().span_id for span in traces.spans if span.name.startswith("agent")}  # type: ignore[union-attr]
    calls = [span.parent and span.parent.span_id for span in traces.spans if span.name.startswith("execute_tool")]
    assert len(agents) == 4
    assert set(calls) == agents


def test_a_call_from_sync_code_has_a_span(traces: Traces, kit: Toolkit) -> None:
    with traces.tracer.start_as_current_span("agent"):
        kit.run("thread", word="hello")

    assert traces.path("inside") == ["inside", "execute_tool thread", "agent"]


# What it says


async def test_the_attributes_of_a_call_that_went_well(traces: Traces, kit: Toolkit) -> None:
    await read(kit.call_tool_function(block("coroutine", word="hello")))

    span = traces.call()
    assert attributes(span) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "coroutine",
        "gen_ai.tool.call.id": "call-1",
        "gen_ai.tool.description": "Say a word.",
        "gen_ai.tool.type": "function",
    }
    assert span.status.status_code is StatusCode.UNSET
    assert span.events == ()
    scope = span.instrumentation_scope
    assert scope is not None
    assert (scope.name, bool(scope.version)) == ("toolcrib", True)


async def test_attributes_missing_from_the_request_are_left_out(traces: Traces, kit: Toolkit) -> None:
    await kit.call("function", word="hello")

    assert attributes(traces.call()) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "function",
        "gen_ai.tool.type": "function",
    }


async def test_a_request_that_behaves_like_a_dict_is_traced_like_one(traces: Traces, kit: Toolkit) -> None:
    request: Any = UserDict(block("coroutine", word="hello"))

    responses = await texts(kit.call_tool_function(request))

    assert responses == ["hello"]
    assert attributes(traces.call())["gen_ai.tool.call.id"] == "call-1"


def refused() -> Toolkit:
    def add(a: int, b: int) -> int:
        return a + b

    async def slow() -> None:
        await asyncio.sleep(30)

    kit = toolkit(add)
    kit.register_tool_function(slow, timeout=0.01)
    kit.create_tool_group("off", "Tools that are off.")
    kit.register_tool_function(add, func_name="hidden", group_name="off")
    return kit


@pytest.mark.parametrize(
    ("request_", "name", "error"),
    [
        (block("nobody"), "execute_tool nobody", "unknown_tool"),
        (block("hidden", a=1, b=2), "execute_tool hidden", "inactive_group"),
        (block("add", a="secret", b=2), "execute_tool add", "invalid_arguments"),
        (block("slow"), "execute_tool slow", "timeout"),
        ({"input": {}}, "execute_tool", "bad_call"),
        (block(7), "execute_tool", "bad_call"),
        (block("\ud800"), "execute_tool \ufffd\ufffd\ufffd", "bad_call"),
        (block("n" * 1000), "execute_tool " + "n" * 255 + "…", "unknown_tool"),
    ],
)
async def test_a_call_that_is_refused_is_an_error_with_its_code(
    traces: Traces, request_: Any, name: str, error: str
) -> None:
    responses = await read(refused().call_tool_function(request_))

    span = traces.call()
    assert [response.code for response in responses] == [error]
    assert (span.name, attributes(span)["error.type"]) == (name, error)
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
    assert "secret" not in span.to_json()


def failing(kind: str) -> Toolkit:
    def function() -> None:
        raise KeyError("lost")

    async def coroutine() -> None:
        await asyncio.sleep(0)
        raise KeyError("lost")

    async def async_generator() -> AsyncIterator[str]:
        yield "one"
        raise KeyError("lost")

    def generator() -> Iterator[str]:
        yield "one"
        raise KeyError("lost")

    def fine() -> str:
        return "fine"

    def postprocess(call: Any, response: Any) -> None:
        raise KeyError("lost")

    kit = toolkit(function, coroutine, async_generator, generator, errors=kind)
    kit.register_tool_function(function, func_name="thread", run_in="thread")
    kit.register_tool_function(generator, func_name="thread_generator", run_in="thread")
    kit.register_tool_function(fine, postprocess_func=postprocess)
    return kit


@pytest.mark.parametrize("errors", ["respond", "raise", "compat"])
@pytest.mark.parametrize(
    "name", ["function", "coroutine", "async_generator", "generator", "thread", "thread_generator", "fine"]
)
async def test_a_failing_tool_is_an_error_of_the_span(traces: Traces, name: str, errors: str) -> None:
    try:
        responses = await read(failing(errors).call_tool_function(block(name)))
        assert responses[-1].code == "failed"
    except KeyError:
        assert errors != "respond"

    span = traces.call()
    (event,) = span.events
    assert attributes(span)["error.type"] == "KeyError"
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "KeyError: 'lost'")
    assert (event.name, (event.attributes or {})["exception.type"]) == ("exception", "KeyError")


async def test_a_tool_that_says_itself_that_it_failed_is_an_error(traces: Traces) -> None:
    async def tool() -> ToolResponse:
        return ToolResponse([], code="quota_exceeded")

    await toolkit(tool).call("tool")

    assert attributes(traces.call())["error.type"] == "quota_exceeded"


async def test_an_exception_that_cannot_say_what_it_is_does_no_harm(traces: Traces) -> None:
    class Hostile(Exception):
        def __str__(self) -> str:
            raise RuntimeError("not even that")

    async def tool() -> None:
        raise Hostile

    response = await toolkit(tool).call("tool")

    assert response.code == "failed"
    assert attributes(traces.call())["error.type"] == "Hostile"


async def test_a_span_has_the_caller_and_the_session(traces: Traces, kit: Toolkit) -> None:
    session = kit.session(id="s1", caller="ann")

    await read(session.call_tool_function(block("coroutine", word="hello")))

    shown = attributes(traces.call())
    assert (shown["toolcrib.caller"], shown["toolcrib.session.id"]) == ("ann", "s1")
