"""The objects that the providers' own libraries give, where those are installed."""

import json
from typing import Any

import pytest

from support.streams import texts, toolkit
from toolcrib import ToolCall

TEXT = json.dumps({"city": "Bern"})


def weather(city: str) -> str:
    return f"sunny in {city}"


async def test_openai_chat() -> None:
    chat = pytest.importorskip("openai.types.chat")
    data = {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": TEXT}}
                    ],
                },
            }
        ],
    }
    completion: Any = chat.ChatCompletion.model_validate(data)
    [call] = completion.choices[0].message.tool_calls

    assert (ToolCall.read(call).id, ToolCall.read(call).format) == ("c1", "openai")
    assert ToolCall.read_all(completion) == ToolCall.read_all(completion.choices[0].message) == [ToolCall.read(call)]
    assert await texts(toolkit(weather).call_tool_function(call)) == ["sunny in Bern"]


async def test_openai_responses() -> None:
    responses = pytest.importorskip("openai.types.responses")
    item: Any = responses.ResponseFunctionToolCall.model_validate(
        {"type": "function_call", "id": "fc", "call_id": "c1", "name": "weather", "arguments": TEXT}
    )

    assert (ToolCall.read(item).id, ToolCall.read(item).format) == ("c1", "openai_responses")
    assert await texts(toolkit(weather).call_tool_function(item)) == ["sunny in Bern"]


async def test_anthropic() -> None:
    types = pytest.importorskip("anthropic.types")
    message: Any = types.Message.model_validate(
        {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
            "content": [
                {"type": "text", "text": "let me see"},
                {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Bern"}},
            ],
        }
    )

    [call] = ToolCall.read_all(message)

    assert (call.id, call.format) == ("c1", "anthropic")
    assert ToolCall.read(message.content[1]) == call
    assert await texts(toolkit(weather).call_tool_function(message.content[1])) == ["sunny in Bern"]


async def test_gemini() -> None:
    types = pytest.importorskip("google.genai.types")
    part: Any = types.Part(function_call=types.FunctionCall(id="c1", name="weather", args={"city": "Bern"}))
    content: Any = types.Content(role="model", parts=[types.Part(text="let me see"), part])

    [call] = ToolCall.read_all(content)

    assert (call.id, call.format) == ("c1", "gemini")
    assert ToolCall.read(part) == call
    assert ToolCall.read(part.function_call).name == "weather"
    assert await texts(toolkit(weather).call_tool_function(part)) == ["sunny in Bern"]


async def test_gemini_with_a_signature() -> None:
    types = pytest.importorskip("google.genai.types")
    function_call: Any = types.FunctionCall(id="c1", name="weather", args={"city": "Bern"})
    part: Any = types.Part(function_call=function_call, thought_signature=b"\xff\x00abc")
    candidate: Any = types.Candidate(content=types.Content(role="model", parts=[part]))
    response: Any = types.GenerateContentResponse(candidates=[candidate])

    read = [ToolCall.read_all(it) for it in (response, response.model_dump(), response.model_dump(mode="json"))]

    assert [(call.id, call.name, call.arguments) for [call] in read] == [("c1", "weather", {"city": "Bern"})] * 3
    assert await texts(toolkit(weather).call_tool_function(part)) == ["sunny in Bern"]


@pytest.mark.parametrize("key", ["input", "arguments", "args"])
def test_bytes_in_arguments_are_refused(key: str) -> None:
    call = ToolCall.read({"name": "weather", key: {"city": [b"Bern"]}})

    assert call.error == f"the call cannot be read: $.{key}.city[0]: bytes is not JSON"


async def test_results_are_what_the_libraries_take() -> None:
    chat = pytest.importorskip("openai.types.chat")
    genai = pytest.importorskip("google.genai.types")
    adapter = pytest.importorskip("pydantic").TypeAdapter
    anthropic = pytest.importorskip("anthropic.types")
    response = await toolkit(weather).call("weather", city="Bern")

    message = adapter(chat.ChatCompletionToolMessageParam).validate_python(response.to_openai("c1"))
    block = adapter(anthropic.ToolResultBlockParam).validate_python(response.to_anthropic("c1"))
    part = genai.Part.model_validate(response.to_gemini("c1", name="weather"))

    assert message["content"] == "sunny in Bern"
    assert block["tool_use_id"] == "c1"
    assert part.function_response.response == {"output": "sunny in Bern"}


async def test_the_pieces_of_a_stream_of_openai_never_run() -> None:
    chat = pytest.importorskip("openai.types.chat")
    piece = {"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    data = {
        "id": "x",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": None, "delta": {"tool_calls": [piece]}}],
    }
    chunk: Any = chat.ChatCompletionChunk.model_validate(data)
    delta = chunk.choices[0].delta

    for held in (chunk, chunk.choices[0], delta, delta.tool_calls, delta.tool_calls[0]):
        [call] = ToolCall.read_all(held)

        assert call.error is not None
        assert "a piece of a streamed call" in call.error


async def test_the_pieces_of_a_stream_of_gemini_never_run() -> None:
    genai = pytest.importorskip("google.genai.types")
    piece = genai.FunctionCall(
        name="weather",
        id="c1",
        will_continue=True,
        partial_args=[genai.PartialArg(json_path="$.city", string_value="B")],
    )
    content = genai.Content(role="model", parts=[genai.Part(function_call=piece)])

    for held in (piece, content, genai.GenerateContentResponse(candidates=[genai.Candidate(content=content)])):
        [call] = ToolCall.read_all(held)

        assert call.error is not None
        assert "a piece of a streamed call" in call.error


async def test_the_events_of_responses_are_read_when_they_are_whole() -> None:
    responses = pytest.importorskip("openai.types.responses")
    fields = {"type": "function_call", "id": "f", "call_id": "c1", "name": "weather", "arguments": TEXT}
    added = responses.ResponseOutputItemAddedEvent.model_validate(
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "sequence_number": 1,
            "item": {**fields, "arguments": "", "status": "in_progress"},
        }
    )
    done = responses.ResponseOutputItemDoneEvent.model_validate(
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "sequence_number": 2,
            "item": {**fields, "status": "completed"},
        }
    )

    assert [call.error is None for call in ToolCall.read_all(added)] == [False]
    assert await texts(toolkit(weather).call_tool_function(done)) == ["sunny in Bern"]
