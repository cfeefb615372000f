"""The span of a call that goes through middlewares, and of a tool that is called by itself."""

from collections.abc import AsyncIterator
from typing import Any

from opentelemetry.trace import StatusCode

from support.streams import block, texts
from support.tracing import Traces, attributes, tools_with_spans
from toolcrib import ToolResponse
from toolcrib.middleware import NextHandler, tap


async def test_middlewares_are_inside_the_one_span_of_their_call(traces: Traces) -> None:
    kit = tools_with_spans(traces)

    async def layer(kwargs: dict[str, Any], next_handler: NextHandler) -> AsyncIterator[ToolResponse]:
        with traces.tracer.start_as_current_span("layer"):
            async for response in next_handler(**kwargs):
                yield response

    kit.register_middleware(layer)
    kit.register_middleware(tap(bool))

    assert await texts(kit.call_tool_function(block("coroutine", word="hello"))) == ["hello"]
    assert traces.path("inside") == ["inside", "layer", "execute_tool coroutine"]
    assert traces.names.count("execute_tool coroutine") == 1


async def test_a_layered_call_that_is_left_ends_its_span(traces: Traces) -> None:
    kit = tools_with_spans(traces)
    kit.register_middleware(tap(bool))

    stream = kit.call_tool_function(block("async_generator", word="hello"))
    await anext(stream)
    await stream.aclose()

    assert traces.call().status.status_code is StatusCode.UNSET
    assert traces.path("inside") == ["inside", "execute_tool async_generator"]


async def test_a_failure_inside_a_layer_is_traced_by_its_code(traces: Traces) -> None:
    kit = tools_with_spans(traces)
    kit.register_middleware(tap(bool))

    await texts(kit.call_tool_function(block("nothing")))

    assert attributes(traces.call())["error.type"] == "unknown_tool"


async def test_a_tool_that_is_called_by_itself_has_its_span(traces: Traces) -> None:
    kit = tools_with_spans(traces)
    heard: list[str] = []

    async for _ in kit.tools["coroutine"].call(arguments={"word": "a"}, stream_print=lambda it: heard.append(it.text)):
        pass

    assert heard == ["a"]
    assert attributes(traces.call())["gen_ai.tool.description"] == "Say a word."
