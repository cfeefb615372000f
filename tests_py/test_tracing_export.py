"""Spans on their way out: a real OTLP receiver gets them, and one that is down affects no call."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.streams import python

PROGRAM = """
    import asyncio, os, time
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from toolcrib import Toolkit

    calls = int(os.environ["CALLS"])
    provider = TracerProvider(shutdown_on_exit=False)
    exporter = OTLPSpanExporter(os.environ["ENDPOINT"], timeout=60)
    batch = BatchSpanProcessor(exporter, max_queue_size=64, max_export_batch_size=64, schedule_delay_millis=50)
    provider.add_span_processor(batch)
    trace.set_tracer_provider(provider)
    kit = Toolkit()

    @kit.tool
    async def add(a: int, b: int) -> int:
        with provider.get_tracer("tests").start_as_current_span("inside"):
            await asyncio.sleep(0)
        return a + b

    @kit.tool
    def fail() -> None:
        raise ValueError("no")

    async def main():
        with provider.get_tracer("tests").start_as_current_span("agent"):
            for number in range(calls):
                block = {"type": "tool_use", "id": f"call-{number}", "name": "add", "input": {"a": number, "b": 1}}
                async for response in kit.call_tool_function(block):
                    assert response.text == str(number + 1), response
            response = await kit.call("fail")
            assert (response.code, response.text) == ("failed", "ValueError: no"), response

    asyncio.run(main())
"""
SEND_THE_REST = """
    provider.shutdown()
"""
SAY_DONE = """
    print(time.time(), flush=True)
"""


class Receiver(ThreadingHTTPServer):
    """Collects what is exported to it."""

    def __init__(self, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = status
        self.requests: list[ExportTraceServiceRequest] = []

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1/traces"

    def spans(self) -> list[tuple[str, Any]]:
        """Every span that came, with the scope it belongs to."""
        scopes = [
            scope for request in self.requests for resource in request.resource_spans for scope in resource.scope_spans
        ]
        return [(scope.scope.name, span) for scope in scopes for span in scope.spans]


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.status == 200:
            self.server.requests.append(ExportTraceServiceRequest.FromString(body))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@contextmanager
def receiving(status: int = 200) -> Iterator[Receiver]:
    with Receiver(status) as receiver:
        thread = threading.Thread(target=receiver.serve_forever, daemon=True)
        thread.start()
        yield receiver
        receiver.shutdown()
        thread.join()


def run(program: str, endpoint: str, calls: int) -> float:
    """Run a program, and return the seconds from its last line to its end."""
    finished = python(program + SAY_DONE, ENDPOINT=endpoint, CALLS=str(calls))
    ended = time.time()
    assert finished.returncode == 0, finished.stderr
    return ended - float(finished.stdout)


def test_a_real_receiver_gets_calls_nested_between_the_spans_around_and_inside_them() -> None:
    with receiving() as receiver:
        run(PROGRAM + SEND_THE_REST, receiver.endpoint, calls=2)

    spans = receiver.spans()
    (agent,) = [span for _, span in spans if span.name == "agent"]
    calls = [(scope, span) for scope, span in spans if span.name == "execute_tool add"]
    inside = [span for _, span in spans if span.name == "inside"]
    assert {scope for scope, _ in calls} == {"toolcrib"}
    assert {span.parent_span_id for _, span in calls} == {agent.span_id}
    assert {span.parent_span_id for span in inside} == {span.span_id for _, span in calls}
    assert {entry.key: entry.value.string_value for entry in calls[0][1].attributes} == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.call.id": "call-0",
        "gen_ai.tool.type": "function",
    }


def test_a_real_receiver_gets_the_span_of_a_failure() -> None:
    with receiving() as receiver:
        run(PROGRAM + SEND_THE_REST, receiver.endpoint, calls=0)

    (failed,) = [span for _, span in receiver.spans() if span.name == "execute_tool fail"]
    assert (failed.status.code, failed.status.message) == (2, "ValueError: no")
    assert ("error.type", "ValueError") in {(entry.key, entry.value.string_value) for entry in failed.attributes}
    assert [event.name for event in failed.events] == ["exception"]


@contextmanager
def refusing() -> Iterator[str]:
    """An address without a listener."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1/traces"


@contextmanager
def silent() -> Iterator[str]:
    """An address that takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1/traces"


@contextmanager
def failing() -> Iterator[str]:
    """A receiver that answers with an error of its own."""
    with receiving(status=500) as receiver:
        yield receiver.endpoint


@pytest.mark.parametrize("down", [refusing, silent, failing])
def test_an_exporter_that_is_down_changes_no_result_and_holds_up_no_exit(down: Any) -> None:
    # Spans wait in the application's processor, whose thread ends with the process; nothing else is left to wait for.
    bound = 15.0

    with down() as endpoint:
        delay = run(PROGRAM, endpoint, calls=500)

    assert delay < bound
