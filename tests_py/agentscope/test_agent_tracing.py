"""An agent of AgentScope's is traced: the spans of its tools hang where they should, and say what AgentScope's say."""

import contextlib
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from agentscope.tool import Toolkit as AgentScopeToolkit
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import toolcrib.compat.agentscope
from support.agentscope.scripted import ScriptedModel, ask, say
from support.agentscope.tools import add, greet, spell
from support.agentscope.transcript import MakeToolkit, Scene, Transcript, both
from toolcrib.compat.agentscope import Toolkit

# By its name: for mypy, `agentscope` is the folder of these tests.
config = import_module("agentscope")._config

SHARED = ["gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.tool.description"]


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    """The provider of the whole process, which can be set only once."""
    provider = TracerProvider(shutdown_on_exit=False)
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Iterator[InMemorySpanExporter]:
    """Tracing as `agentscope.init` switches it on, and off again."""
    config.trace_enabled = True
    yield exporter
    config.trace_enabled = False
    exporter.clear()


def names_above(span: ReadableSpan, all_spans: dict[int, ReadableSpan]) -> list[str]:
    above = []
    while span.parent and span.parent.span_id in all_spans:
        span = all_spans[span.parent.span_id]
        above.append(span.name)
    return above


async def test_tool_spans_hang_below_the_agent_and_say_the_same(spans: InMemorySpanExporter) -> None:
    async def scenario(make: MakeToolkit) -> Transcript:
        spans.clear()
        toolkit = make()
        for tool in (add, greet, spell):
            toolkit.register_tool_function(tool)
        model = ScriptedModel(
            ask(("add", {"a": 1, "b": 2}), ("greet", {"name": "Ada"}), ("spell", {"word": "ab"})), say("done")
        )
        scene = Scene(toolkit, model)
        await scene.send("work")
        finished = {span.context.span_id: span for span in spans.get_finished_spans() if span.context}
        for span in finished.values():
            if span.name.startswith("execute_tool"):
                said: dict[str, Any] = dict(span.attributes or {})
                shared = [said.get(key) for key in SHARED]
                scene.transcript.notes.append((span.name, span.kind.name, shared, names_above(span, finished)))
        return await scene.finish()

    theirs, ours = await both(scenario)

    assert ours == theirs
    assert [note[0] for note in ours.notes] == ["execute_tool add", "execute_tool greet", "execute_tool spell"]


async def test_a_failing_tool_is_an_error_in_its_span(spans: InMemorySpanExporter) -> None:
    from support.agentscope.tools import fail

    toolkit = Toolkit()
    toolkit.register_tool_function(fail)
    scene = Scene(toolkit, ScriptedModel(ask(("fail", {"reason": "so it is"})), say("done")))

    await scene.send("fail")

    (span,) = [span for span in spans.get_finished_spans() if span.name == "execute_tool fail"]
    assert not span.status.is_ok
    assert (span.attributes or {})["error.type"] == "ValueError"


async def traced(make: MakeToolkit, spans: InMemorySpanExporter, name: str, **arguments: Any) -> ReadableSpan:
    spans.clear()
    toolkit = make()
    toolkit.register_tool_function(add)
    toolkit.register_tool_function(spell)
    toolkit.register_tool_function(breaks)
    stream = await toolkit.call_tool_function({"type": "tool_use", "id": "7", "name": name, "input": arguments})
    with contextlib.suppress(ZeroDivisionError):
        async for _ in stream:
            pass
    (span,) = spans.get_finished_spans()
    return span


async def breaks() -> Any:
    """Break in mid-stream."""
    yield toolcrib.compat.agentscope.ToolResponse(content=[])
    raise ZeroDivisionError


def said_by(span: ReadableSpan) -> dict[str, Any]:
    """The attributes, without the ids of responses and toolcrib's own."""
    own = {"error.type", "toolcrib.cancelled"}
    return {key: settled(value) for key, value in (span.attributes or {}).items() if key not in own}


def settled(value: Any) -> Any:
    return re.sub(r"id='[^']*'", "id", value) if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("add", {"a": 1, "b": 2}), ("spell", {"word": "äb"}), ("no_such_tool", {"x": "ü"}), ("add", {}), ("breaks", {})],
)
async def test_a_span_says_what_agentscopes_says(
    spans: InMemorySpanExporter, name: str, arguments: dict[str, Any]
) -> None:
    theirs = await traced(AgentScopeToolkit, spans, name, **arguments)
    ours = await traced(Toolkit, spans, name, **arguments)

    assert said_by(ours) == said_by(theirs)
    assert ours.name == theirs.name
    assert ours.kind == theirs.kind
    assert ours.instrumentation_scope == theirs.instrumentation_scope
    if name in ("spell", "breaks") or arguments == {"a": 1, "b": 2}:
        assert ours.status.status_code == theirs.status.status_code
    assert [event.name for event in theirs.events] == [event.name for event in ours.events] or arguments == {}


async def test_nothing_is_traced_while_agentscope_does_not_trace(exporter: InMemorySpanExporter) -> None:
    exporter.clear()
    toolkit = Toolkit()
    toolkit.register_tool_function(add)

    await toolkit.call("add", a=1, b=2)
    await toolkit.call("no_such_tool")

    assert not exporter.get_finished_spans()


async def test_secrets_are_redacted_in_spans(spans: InMemorySpanExporter) -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(greet, secrets=["name"])

    async for _ in await toolkit.call_tool_function({"id": "1", "name": "greet", "input": {"name": "hidden"}}):
        pass

    (span,) = spans.get_finished_spans()
    arguments = str((span.attributes or {})["gen_ai.tool.call.arguments"])
    assert "hidden" not in arguments
    assert "***" in arguments
    assert not toolkit.tools._seen
