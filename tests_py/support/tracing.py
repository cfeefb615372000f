"""A tracer provider whose spans can be read, and tools that open spans."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler

from support.streams import toolkit
from toolcrib import Toolkit


class Traces:
    """Keep the spans that ended, in the order they did."""

    def __init__(self, sampler: Sampler = ALWAYS_ON) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("tests")

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self.exporter.get_finished_spans()

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.spans]

    def span(self, name: str) -> ReadableSpan:
        """The one span of that name."""
        (span,) = [span for span in self.spans if span.name == name]
        return span

    def call(self) -> ReadableSpan:
        """The one span of a tool call."""
        (span,) = [span for span in self.spans if span.name.startswith("execute_tool")]
        return span

    def path(self, name: str) -> list[str]:
        """The names from a span up to its root."""
        span: ReadableSpan | None = self.span(name)
        found = []
        while span is not None:
            found.append(span.name)
            parent = span.parent
            above = [other for other in self.spans if parent and id_of(other) == parent.span_id]
            span = above[0] if above else None
        return found


def id_of(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def tools_with_spans(traces: Traces) -> Toolkit:
    """Tools of every kind that open a span of their own."""

    async def coroutine(word: str) -> str:
        """Say a word."""
        with traces.tracer.start_as_current_span("inside"):
            await asyncio.sleep(0)
        return word

    def function(word: str) -> str:
        with traces.tracer.start_as_current_span("inside"):
            return word

    async def async_generator(word: str) -> AsyncIterator[str]:
        with traces.tracer.start_as_current_span("inside"):
            yield word
            await asyncio.sleep(0)
            with traces.tracer.start_as_current_span("deeper"):
                yield word

    def generator(word: str) -> Iterator[str]:
        with traces.tracer.start_as_current_span("inside"):
            yield word
            with traces.tracer.start_as_current_span("deeper"):
                yield word

    kit = toolkit(coroutine, function, async_generator, generator)
    kit.register_tool_function(function, func_name="thread", run_in="thread")
    kit.register_tool_function(generator, func_name="thread_generator", run_in="thread")
    return kit
