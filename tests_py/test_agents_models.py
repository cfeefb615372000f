"""Model functions over the libraries of providers, against a local server that speaks the format of each."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.agents import finder
from support.provider_server import provider
from toolcrib import AgentOutput, Toolkit, ToolResponse
from toolcrib.models import AnthropicModel, GeminiModel, OpenAIModel, client_model

NUMBER = AgentOutput("report", "The number of birds.", {"type": "integer"})


async def count(kind: str) -> ToolResponse:
    """Count birds."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    return ToolResponse([{"type": "text", "text": str(len(kind))}, image])  # type: ignore[list-item]


async def run(model: Any) -> ToolResponse:
    kit = Toolkit()
    kit.register_tool_function(count)
    kit.register_agent(finder(output=NUMBER), model=model)
    return await kit.call("finder", task="birds")


def chat(message: dict[str, Any], tokens: int) -> dict[str, Any]:
    """A response of OpenAI's chat completions."""
    return {
        "id": "r",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": None, **message}}
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": tokens - 1, "total_tokens": tokens},
    }


def chat_call(id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


OPENAI = (
    chat({"content": "I count.", "tool_calls": [chat_call("a", "count", kind="wren")]}, 30),
    chat({"tool_calls": [chat_call("b", "complete_task", report=4)]}, 12),
)


@pytest.mark.parametrize("client", ["AsyncOpenAI", "OpenAI"])
async def test_openai(client: str) -> None:
    openai = pytest.importorskip("openai")

    with provider(*OPENAI) as served:
        made = getattr(openai, client)(api_key="x", base_url=served.url, max_retries=0)
        response = await run(client_model(made, "gpt-bird", temperature=0))

    assert isinstance(client_model(made, "m"), OpenAIModel)
    assert response.metadata is not None
    assert (response.metadata["value"], response.metadata["agent"]["tokens"]) == (4, 42)
    (path, first), (_, second) = served.requests
    assert (path, first["model"], first["temperature"]) == ("/chat/completions", "gpt-bird", 0)
    assert first["messages"] == [{"role": "system", "content": "Find it."}, {"role": "user", "content": "birds"}]
    assert [tool["function"]["name"] for tool in first["tools"]] == ["count", "complete_task"]
    assert second["messages"][2:] == [
        {"role": "assistant", "content": "I count.", "tool_calls": [chat_call("a", "count", kind="wren")]},
        {"role": "tool", "tool_call_id": "a", "content": "4\n[image: image/png, 3 bytes]"},
    ]


def message(*content: dict[str, Any], tokens: int) -> dict[str, Any]:
    """A response of Anthropic's messages."""
    return {
        "id": "r",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(content),
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": tokens - 1},
    }


THINKING = {"type": "thinking", "thinking": "**Counting** birds", "signature": "s"}
ANTHROPIC = (
    message(
        THINKING,
        {"type": "text", "text": "I count."},
        {"type": "tool_use", "id": "a", "name": "count", "input": {"kind": "wren"}},
        tokens=30,
    ),
    message({"type": "tool_use", "id": "b", "name": "complete_task", "input": {"report": 4}}, tokens=12),
)


@pytest.mark.parametrize("client", ["AsyncAnthropic", "Anthropic"])
async def test_anthropic(client: str) -> None:
    anthropic = pytest.importorskip("anthropic")

    with provider(*ANTHROPIC) as served:
        made = getattr(anthropic, client)(api_key="x", base_url=served.url, max_retries=0)
        response = await run(client_model(made, "claude-bird", max_tokens=100))

    assert isinstance(client_model(made, "m"), AnthropicModel)
    assert response.metadata is not None
    assert (response.metadata["value"], response.metadata["agent"]["tokens"]) == (4, 42)
    (path, first), (_, second) = served.requests
    assert (path, first["model"], first["max_tokens"], first["system"]) == (
        "/v1/messages",
        "claude-bird",
        100,
        "Find it.",
    )
    assert first["messages"] == [{"role": "user", "content": [{"type": "text", "text": "birds"}]}]
    assert [tool["name"] for tool in first["tools"]] == ["count", "complete_task"]
    assistant, results = second["messages"][1:]
    assert assistant["content"][0] == THINKING
    assert assistant["content"][2]["id"] == "a"
    (result,) = results["content"]
    assert (results["role"], result["type"], result["tool_use_id"]) == ("user", "tool_result", "a")
    assert [block["type"] for block in result["content"]] == ["text", "image"]


def candidate(*parts: dict[str, Any], tokens: int) -> dict[str, Any]:
    """A response of Google's `generateContent`."""
    return {
        "candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": tokens - 1, "totalTokenCount": tokens},
        "modelVersion": "m",
    }


GEMINI = (
    candidate(
        {"text": "**Counting** birds", "thought": True},
        {"functionCall": {"name": "count", "args": {"kind": "wren"}}, "thoughtSignature": "c2ln"},
        tokens=30,
    ),
    candidate({"functionCall": {"name": "complete_task", "args": {"report": 4}}}, tokens=12),
)


async def test_gemini() -> None:
    genai = pytest.importorskip("google.genai")

    with provider(*GEMINI) as served:
        made = genai.Client(api_key="x", http_options={"base_url": served.url})
        response = await run(client_model(made, "gemini-bird", temperature=0))

    assert isinstance(client_model(made, "m"), GeminiModel)
    assert response.metadata is not None
    assert (response.metadata["value"], response.metadata["agent"]["tokens"]) == (4, 42)
    (path, first), (_, second) = served.requests
    assert path.endswith("/models/gemini-bird:generateContent")
    assert first["systemInstruction"]["parts"] == [{"text": "Find it."}]
    assert first["contents"] == [{"role": "user", "parts": [{"text": "birds"}]}]
    (declared,) = first["tools"]
    assert [tool["name"] for tool in declared["functionDeclarations"]] == ["count", "complete_task"]
    model, results = second["contents"][1:]
    assert model["parts"][1]["thoughtSignature"] == "c2ln"
    assert (results["role"], results["parts"][0]["functionResponse"]["name"]) == ("user", "count")


async def test_gemini_without_asynchronous_methods() -> None:
    genai = pytest.importorskip("google.genai")

    class Blocking:
        def __init__(self, client: Any) -> None:
            self.client, self.models = client, client.models

    with provider(*GEMINI) as served:
        made = Blocking(genai.Client(api_key="x", http_options={"base_url": served.url}))
        response = await run(client_model(made, "gemini-bird"))

    assert response.ok


async def test_the_error_of_a_provider_fails_the_run() -> None:
    openai = pytest.importorskip("openai")

    with provider({"error": "overloaded"}) as served:
        made = openai.AsyncOpenAI(api_key="x", base_url=served.url, max_retries=0)
        response = await run(client_model(made, "m"))

    assert response.code == "failed"
    assert response.text == "Subagent 'finder' failed. Error: the model gave no reply: its response has no `choices`"


def test_an_object_without_the_methods_of_a_client_is_refused() -> None:
    with pytest.raises(TypeError, match=r"invalid client: expected one with .*, got object"):
        client_model(object(), "m")
