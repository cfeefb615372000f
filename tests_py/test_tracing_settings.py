"""Settings of tracing: providers, what is recorded of a call, and what is left behind."""

import gc
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

import toolcrib
from support.streams import block, python, read, texts, toolkit
from support.tracing import Traces, attributes, tools_with_spans
from toolcrib import Toolkit, ToolResponse, tracing


@pytest.fixture
def kit(traces: Traces) -> Toolkit:
    return tools_with_spans(traces)


# What is recorded


async def test_arguments_and_results_are_recorded_when_asked_for(traces: Traces) -> None:
    tracing.configure(tracer_provider=traces.provider, record_arguments=True, record_results=True)

    async def tool(word: str, key: str) -> AsyncIterator[str]:
        yield "first: "
        yield f"grüß dich, {word}"

    kit = Toolkit()
    kit.register_tool_function(tool, preset_kwargs={"key": "secret"})

    await read(kit.call_tool_function(block("tool", word="Wörld")))

    span = attributes(traces.call())
    assert span["gen_ai.tool.call.arguments"] == '{"word": "Wörld"}'
    assert json.loads(span["gen_ai.tool.call.result"]) == [{"type": "text", "text": "first: grüß dich, Wörld"}]
    assert "grüß" in span["gen_ai.tool.call.result"]
    assert "secret" not in traces.call().to_json()


async def test_arguments_of_a_short_call_and_in_json_text_are_recorded(traces: Traces, kit: Toolkit) -> None:
    tracing.configure(tracer_provider=traces.provider, record_arguments=True)

    await kit.call("function", word="hello")
    await read(kit.call_tool_function({"name": "generator", "input": '{"word": "hello"}'}))

    recorded = {s.name: attributes(s)["gen_ai.tool.call.arguments"] for s in traces.spans if "execute" in s.name}
    assert set(recorded.values()) == {'{"word": "hello"}'}


async def test_what_is_recorded_is_cut(traces: Traces, kit: Toolkit) -> None:
    tracing.configure(tracer_provider=traces.provider, record_arguments=True, record_results=True, limit=20)

    await kit.call("function", word="ä" * 1000)

    span = attributes(traces.call())
    assert span["gen_ai.tool.call.arguments"] == '{"word": "' + "ä" * 9 + "…"
    assert len(span["gen_ai.tool.call.result"]) == 20


async def test_what_cannot_be_recorded_does_no_harm(traces: Traces) -> None:
    tracing.configure(tracer_provider=traces.provider, record_arguments=True, record_results=True)

    class Hostile:
        def __str__(self) -> str:
            raise RuntimeError("no")

    async def tool(value: Any) -> ToolResponse:
        circle: list[Any] = []
        circle += [circle, circle]
        return ToolResponse(circle)

    response = await toolkit(tool).call("tool", value=Hostile())

    span = attributes(traces.call())
    assert response.ok
    assert span["gen_ai.tool.call.arguments"] == "<dict that cannot be written: RuntimeError>"
    assert span["gen_ai.tool.call.result"] == "<list that cannot be written: ValueError>"


async def test_text_that_is_not_unicode_is_made_so(traces: Traces, kit: Toolkit) -> None:
    tracing.configure(tracer_provider=traces.provider, record_arguments=True)
    request = {**block("function", word="\ud800"), "id": "\ud800"}

    await read(kit.call_tool_function(request))

    span = attributes(traces.call())
    assert span["gen_ai.tool.call.arguments"] == '{"word": "?"}'
    assert span["gen_ai.tool.call.id"].encode()


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="limit must be a positive number"):
        tracing.configure(limit=0)


# Who is asked


async def test_a_sampler_that_says_no_is_obeyed(kit: Toolkit) -> None:
    traces = Traces(ALWAYS_OFF)
    tracing.configure(tracer_provider=traces.provider, record_arguments=True, record_results=True)

    responses = await texts(kit.call_tool_function(block("async_generator", word="hello")))

    assert responses == ["hello", "hello", "hellohello"]
    assert traces.names == []


async def test_tracing_can_be_switched_off(traces: Traces, kit: Toolkit) -> None:
    tracing.configure(enabled=False, tracer_provider=traces.provider)

    await kit.call("coroutine", word="hello")

    assert traces.names == ["inside"]


async def test_a_provider_that_misbehaves_does_not_come_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    unraisable: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", unraisable.append)

    class Broken:
        def get_tracer(self, *arguments: Any) -> Any:
            return self

        def start_span(self, *arguments: Any) -> Any:
            raise RuntimeError("broken")

    async def add(a: int, b: int) -> int:
        return a + b

    tracing.configure(tracer_provider=Broken())  # type: ignore[arg-type]
    try:
        response = await toolkit(add).call("add", a=1, b=2)
    finally:
        tracing.configure()

    assert response.text == "3"
    assert [str(report.exc_value) for report in unraisable] == ["broken"]


GLOBAL = """
    import asyncio, sys
    from toolcrib import Toolkit
    kit = Toolkit(run_in="inline")
    @kit.tool
    def add(a: int, b: int) -> int: return a + b
    def call(): assert asyncio.run(kit.call("add", a=1, b=2)).text == "3"
    call()
"""


def run(program: str, **environment: Any) -> str:
    finished = python(GLOBAL + program, **environment)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.strip()


def test_without_opentelemetry_nothing_of_it_is_imported() -> None:
    assert (
        run("""
    call()
    print([name for name in sys.modules if name.startswith("opentelemetry")])
    """)
        == "[]"
    )


def test_a_provider_that_is_set_late_is_noticed_at_the_next_call() -> None:
    assert (
        run(
            """
    from opentelemetry import trace
    call()
    from support.tracing import Traces
    traces = Traces()
    call()
    trace.set_tracer_provider(traces.provider)
    call()
    print(traces.names)
    """,
            PYTHONPATH="tests_py",
        )
        == "['execute_tool add']"
    )


def test_a_provider_that_does_nothing_is_left_alone() -> None:
    assert (
        run("""
    from opentelemetry import trace
    class Counting(trace.NoOpTracerProvider):
        asked = 0
        def get_tracer(self, *arguments, **options):
            Counting.asked += 1
            return super().get_tracer(*arguments, **options)
    trace.set_tracer_provider(Counting())
    call()
    print(Counting.asked)
    """)
        == "0"
    )


def test_a_disabled_sdk_is_left_alone() -> None:
    assert (
        run(
            """
    from opentelemetry import trace
    from support.tracing import Traces
    traces = Traces()
    trace.set_tracer_provider(traces.provider)
    call()
    print(traces.names)
    """,
            PYTHONPATH="tests_py",
            OTEL_SDK_DISABLED="true",
        )
        == "[]"
    )


def test_the_provider_that_the_environment_names_is_used() -> None:
    assert (
        run(
            """
    from opentelemetry import trace
    call()
    print(type(trace._TRACER_PROVIDER).__module__)
    """,
            OTEL_PYTHON_TRACER_PROVIDER="sdk_tracer_provider",
        )
        == "opentelemetry.sdk.trace"
    )


# What is left behind


async def test_very_many_traced_calls_leave_nothing_behind(kit: Toolkit, traces: Traces) -> None:
    async def calls(times: int) -> None:
        for _ in range(times):
            await read(kit.call_tool_function(block("coroutine", word="hello")))
            stream = kit.call_tool_function(block("async_generator", word="hello"))
            await anext(stream)
            await stream.aclose()
            await kit.call("nobody")
        traces.exporter.clear()
        gc.collect()

    await calls(200)
    before = len(gc.get_objects())
    await calls(3400)

    assert abs(len(gc.get_objects()) - before) < 200


def test_the_settings_are_where_the_package_says() -> None:
    assert toolcrib.tracing.configure is tracing.configure
