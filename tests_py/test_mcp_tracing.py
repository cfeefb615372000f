"""Traces that go on in another program: the span of a call in the `_meta` of MCP, out of a client and into a server."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import baggage, context
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    TraceState,
    format_span_id,
    format_trace_id,
    set_span_in_context,
)

from support.mcp.peers import connected
from support.tracing import Traces, id_of
from toolcrib import ToolContext, Toolkit, mcp, tracing

SCRIPTED = str(Path(__file__).parents[1] / "tests" / "data" / "mcp" / "scripted_server.py")
TRACE, SPAN = 0x0AF7651916CD43DD8448EB211C80319C, 0x00F067AA0BA902B7
PARENT = f"00-{format_trace_id(TRACE)}-{format_span_id(SPAN)}-01"


async def sent(toolkit: Toolkit, version: str = "2025-11-25") -> dict[str, Any]:
    """Return the `_meta` of a request that a client sends."""
    async with mcp.connect([sys.executable, SCRIPTED, "--protocol", version], name="scripted") as client:
        await toolkit.register_mcp_client(client)
        response = await toolkit.call("events")
    return dict((response.metadata or {})["structured_content"]["meta"])


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25", "2026-07-28"])
async def test_a_call_carries_its_own_span(traces: Traces, version: str) -> None:
    meta = await sent(Toolkit(), version)

    span = traces.call()
    found = span.get_span_context()
    assert found is not None
    ids = f"{format_trace_id(found.trace_id)}-{format_span_id(found.span_id)}"
    assert meta["traceparent"] == f"00-{ids}-{found.trace_flags:02x}"
    assert found.trace_flags & TraceFlags.SAMPLED
    assert "tracestate" not in meta
    assert "progressToken" in meta


async def test_the_state_of_vendors_is_carried_and_baggage_is_not(traces: Traces) -> None:
    state = TraceState([("vendor", "1")])
    remote = SpanContext(TRACE, SPAN, is_remote=True, trace_flags=TraceFlags(1), trace_state=state)
    outer = baggage.set_baggage("user", "ann", set_span_in_context(NonRecordingSpan(remote)))
    token = context.attach(outer)
    try:
        meta = await sent(Toolkit())
    finally:
        context.detach(token)

    assert meta["traceparent"].startswith(f"00-{format_trace_id(TRACE)}-")
    assert meta["tracestate"] == "vendor=1"
    assert "baggage" not in meta


async def test_a_span_that_is_not_sampled_says_so() -> None:
    traces = Traces(ALWAYS_OFF)
    tracing.configure(tracer_provider=traces.provider)
    try:
        meta = await sent(Toolkit())
    finally:
        tracing.configure()

    assert not int(meta["traceparent"][-2:], 16) & TraceFlags.SAMPLED


async def test_nothing_is_carried_without_tracing(traces: Traces) -> None:
    tracing.configure(enabled=False)

    with traces.tracer.start_as_current_span("agent"):
        meta = await sent(Toolkit())

    assert set(meta) == {"progressToken"}


async def test_a_tool_that_is_called_without_a_toolkit_carries_the_current_span(traces: Traces) -> None:
    async with mcp.connect([sys.executable, SCRIPTED], name="scripted") as client:
        events = await client.get_callable_function("events")
        with traces.tracer.start_as_current_span("agent") as agent:
            responses = [response async for response in events()]

    meta = responses[-1].metadata["structured_content"]["meta"]
    assert format_span_id(agent.get_span_context().span_id) in meta["traceparent"]


def workshop(traces: Traces) -> Toolkit:
    """Make a toolkit whose tool opens a span."""
    toolkit = Toolkit()

    @toolkit.tool
    async def saw(length: int) -> str:
        with traces.tracer.start_as_current_span("inside"):
            return f"{length} cm"

    return toolkit


async def call_with(server: Any, meta: dict[str, Any]) -> Any:
    """Call the tool of a server with a `_meta`."""
    peer = await connected(server)
    params = {"name": "saw", "arguments": {"length": 3}, "_meta": meta}
    return await asyncio.to_thread(peer.ask, "tools/call", params)


async def test_a_served_call_is_a_child_of_the_span_of_the_client(traces: Traces) -> None:
    async with workshop(traces).serve_mcp("http") as server:
        answer = await call_with(server, {"traceparent": PARENT, "tracestate": "vendor=1"})

    span = traces.call()
    assert answer["result"]["content"][0]["text"] == "3 cm"
    assert span.parent is not None
    assert (span.parent.trace_id, span.parent.span_id, span.parent.is_remote) == (TRACE, SPAN, True)
    assert span.parent.trace_state.to_header() == "vendor=1"
    assert traces.path("inside") == ["inside", "execute_tool saw"]


@pytest.mark.parametrize(
    "meta",
    [
        {},
        {"traceparent": "nonsense"},
        {"traceparent": PARENT.upper()},
        {"traceparent": PARENT.replace(format_trace_id(TRACE), "0" * 32)},
        {"traceparent": ["00"]},
        {"traceparent": PARENT + "0" * 100_000},
        {"tracestate": "vendor=1"},
    ],
)
async def test_a_served_call_without_a_valid_span_begins_a_trace(traces: Traces, meta: dict[str, Any]) -> None:
    async with workshop(traces).serve_mcp("http") as server:
        answer = await call_with(server, meta)

    assert "result" in answer
    assert traces.call().parent is None


async def test_calls_of_several_clients_keep_their_own_parents(traces: Traces) -> None:
    parents = [PARENT.replace(format_span_id(SPAN), format_span_id(SPAN + number)) for number in range(8)]

    async with workshop(traces).serve_mcp("http") as server:
        await asyncio.gather(*(call_with(server, {"traceparent": parent}) for parent in parents))

    found = {span.parent.span_id for span in traces.spans if span.name == "execute_tool saw" and span.parent}
    assert found == {SPAN + number for number in range(8)}


async def test_a_trace_goes_through_a_client_and_a_server(traces: Traces) -> None:
    toolkit = Toolkit()
    async with (
        workshop(traces).serve_mcp("http") as server,
        mcp.connect(server.url, name="workshop", token=server.token) as client,
    ):
        await toolkit.register_mcp_client(client)
        with traces.tracer.start_as_current_span("agent"):
            response = await toolkit.call("saw", length=3)

    assert response.text == "3 cm"
    inner, outer = (span for span in traces.spans if span.name == "execute_tool saw")
    assert inner.parent is not None
    assert inner.parent.span_id == id_of(outer)
    assert {span.context.trace_id for span in traces.spans if span.context} == {inner.parent.trace_id}


async def test_a_server_whose_tools_use_other_servers_passes_the_trace_on(traces: Traces) -> None:
    gateway, agent = Toolkit(), Toolkit()
    seen: list[Any] = []

    def see(request: Any, response: Any) -> None:
        seen.append(response.metadata["structured_content"]["meta"]["traceparent"])

    async with mcp.connect([sys.executable, SCRIPTED], name="scripted") as inner:
        await gateway.register_mcp_client(inner, enable_funcs=["events"], postprocess_func=see)
        async with (
            gateway.serve_mcp("http") as server,
            mcp.connect(server.url, name="gateway", token=server.token) as outer,
        ):
            await agent.register_mcp_client(outer)
            with traces.tracer.start_as_current_span("agent") as span:
                await agent.call("events")

    assert [parent.split("-")[1] for parent in seen] == [format_trace_id(span.get_span_context().trace_id)]


async def test_the_context_of_the_server_is_not_changed_by_a_call(traces: Traces) -> None:
    toolkit = Toolkit()

    @toolkit.tool
    async def saw(length: int, context: ToolContext) -> str:
        return str(length)

    before = context.get_current()
    async with toolkit.serve_mcp("http") as server:
        await call_with(server, {"traceparent": PARENT})
        after = context.get_current()

    assert after == before
