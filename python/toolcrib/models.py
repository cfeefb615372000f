"""Model functions for the ready-made loop of sub-agents, over the clients of OpenAI, Anthropic and Google.

The client is an object of the provider's own library, or any object with the same methods; this module imports none of
them. A client without `async` methods is called in a thread.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolcrib import errors
from toolcrib._core import ToolCall
from toolcrib._model_message import ModelMessage, ModelReply
from toolcrib._provider import dumped
from toolcrib._worker import in_thread

if TYPE_CHECKING:
    from toolcrib._core import _Dialect

__all__ = ["AnthropicModel", "GeminiModel", "OpenAIModel", "client_model"]


def client_model(client: Any, model: str, **settings: Any) -> OpenAIModel | AnthropicModel | GeminiModel:
    """Make a model function of a client, by the methods that it has.

    Args:
        client: A client of `openai`, `anthropic` or `google-genai`, asynchronous or not.
        model: The name of the model.
        **settings: Further arguments of each request, such as `temperature`.

    Raises:
        TypeError: If the client has none of the methods.
    """
    if _has(client, "chat", "completions", "create"):
        return OpenAIModel(client, model, **settings)
    if _has(client, "messages", "create"):
        return AnthropicModel(client, model, **settings)
    if _has(client, "models", "generate_content") or _has(client, "aio", "models", "generate_content"):
        return GeminiModel(client, model, **settings)
    raise TypeError(
        "invalid client: expected one with `chat.completions.create`, `messages.create` or `models.generate_content`, "
        f"got {type(client).__name__}"
    )


class _ClientModel:
    """A model function over a client."""

    dialect: _Dialect

    def __init__(self, client: Any, model: str, **settings: Any) -> None:
        self.client = client
        self.model = model
        self.settings = settings

    def __repr__(self) -> str:
        """Name the model."""
        return f"{type(self).__name__}(model={self.model!r})"


class OpenAIModel(_ClientModel):
    """A model function over OpenAI's chat completions, and compatible services.

    Args:
        client: An `openai.AsyncOpenAI` or `openai.OpenAI`.
        model: The name of the model.
        **settings: Further arguments of each request, such as `temperature`.
    """

    dialect: _Dialect = "openai"

    async def __call__(
        self, messages: Sequence[ModelMessage], schemas: list[dict[str, Any]], **settings: Any
    ) -> ModelReply:
        """Send one request."""
        sent = [dict(message.message or message) for message in messages]
        request = {"model": self.model, "messages": sent, "tools": schemas, **self.settings, **settings}
        answer = _plain(await _request(self.client.chat.completions.create, request))
        choices = answer.get("choices")
        if not isinstance(choices, list) or not choices:
            raise errors.InvalidReplyError("the model gave no reply: its response has no `choices`")
        message = choices[0]["message"]
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        usage = answer.get("usage") or {}
        return ModelReply(
            text=message.get("content") or message.get("refusal") or "",
            calls=ToolCall.read_all(choices[0]),
            thoughts=[reasoning] if isinstance(reasoning, str) else [],
            tokens=usage.get("total_tokens") or 0,
            message={key: value for key, value in message.items() if value is not None},
        )


class AnthropicModel(_ClientModel):
    """A model function over Anthropic's messages.

    Args:
        client: An `anthropic.AsyncAnthropic` or `anthropic.Anthropic`.
        model: The name of the model.
        **settings: Further arguments of each request; `max_tokens` is 4096 by default.
    """

    dialect: _Dialect = "anthropic"

    async def __call__(
        self, messages: Sequence[ModelMessage], schemas: list[dict[str, Any]], **settings: Any
    ) -> ModelReply:
        """Send one request."""
        request: dict[str, Any] = {"model": self.model, "max_tokens": 4096, **self.settings, **settings}
        request |= {"messages": _anthropic_messages(messages), "tools": schemas}
        if system := _system(messages):
            request["system"] = system
        answer = _plain(await _request(self.client.messages.create, request))
        content = answer.get("content")
        if not isinstance(content, list):
            raise errors.InvalidReplyError("the model gave no reply: its response has no `content`")
        blocks = [{key: value for key, value in block.items() if value is not None} for block in content]
        usage = answer.get("usage") or {}
        counted = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        return ModelReply(
            text="".join(block["text"] for block in blocks if block.get("type") == "text"),
            calls=ToolCall.read_all(answer),
            thoughts=[block["thinking"] for block in blocks if block.get("type") == "thinking"],
            tokens=sum(usage.get(key) or 0 for key in counted),
            message=blocks,
        )


class GeminiModel(_ClientModel):
    """A model function over Google's `generate_content`.

    Args:
        client: A `google.genai.Client`.
        model: The name of the model.
        **settings: Further entries of `config`, such as `temperature`.
    """

    dialect: _Dialect = "gemini"

    async def __call__(
        self, messages: Sequence[ModelMessage], schemas: list[dict[str, Any]], **settings: Any
    ) -> ModelReply:
        """Send one request."""
        model = settings.pop("model", self.model)
        config = {**self.settings, **settings, "tools": [{"function_declarations": schemas}]}
        config["automatic_function_calling"] = {"disable": True}
        if system := _system(messages):
            config["system_instruction"] = system
        models = self.client.aio.models if _has(self.client, "aio", "models") else self.client.models
        request = {"model": model, "contents": _gemini_contents(messages), "config": config}
        response = await _request(models.generate_content, request)
        answer = _plain(response)
        candidates = answer.get("candidates") or [{}]
        content = candidates[0].get("content")
        if not isinstance(content, Mapping):
            raise errors.InvalidReplyError("the model gave no reply: its response has no `candidates`")
        parts = [part for part in content.get("parts") or () if isinstance(part, Mapping)]
        usage = answer.get("usage_metadata") or answer.get("usageMetadata") or {}
        texts = [(part["text"], part.get("thought")) for part in parts if isinstance(part.get("text"), str)]
        own = response.candidates[0].content if hasattr(response, "candidates") else content
        return ModelReply(
            text="".join(text for text, is_thought in texts if not is_thought),
            calls=ToolCall.read_all(candidates[0]),
            thoughts=[text for text, is_thought in texts if is_thought],
            tokens=usage.get("total_token_count") or usage.get("totalTokenCount") or 0,
            message=own,
        )


def _system(messages: Sequence[ModelMessage]) -> str:
    """The system prompt, which these providers take beside the messages."""
    return "\n\n".join(str(message["content"]) for message in messages if message.get("role") == "system")


def _anthropic_messages(messages: Sequence[ModelMessage]) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []
    for message in messages:
        role = message.get("role")
        if role == "system":
            continue
        if role == "tool" and message.response is not None:
            blocks: Any = [message.response.to_anthropic(message["tool_call_id"])]
        elif role == "assistant":
            blocks = message.message or _anthropic_blocks(message)
        else:
            role, content = "user" if role != "model" else "assistant", message.get("content")
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        role = "assistant" if role == "assistant" else "user"
        if sent and sent[-1]["role"] == role == "user" and isinstance(blocks, list):
            sent[-1]["content"] = [*sent[-1]["content"], *blocks]  # the results of one turn are one message
        else:
            sent.append({"role": role, "content": blocks})
    return sent


def _anthropic_blocks(message: ModelMessage) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if message.get("content"):
        blocks.append({"type": "text", "text": message["content"]})
    for call in message.get("tool_calls", ()):
        function = call["function"]
        given = json.loads(function["arguments"])
        blocks.append({"type": "tool_use", "id": call["id"], "name": function["name"], "input": given})
    return blocks


def _gemini_contents(messages: Sequence[ModelMessage]) -> list[Any]:
    sent: list[Any] = []
    results: list[Any] | None = None
    for message in messages:
        role = message.get("role")
        if role == "system":
            continue
        if role == "tool" and message.response is not None:
            if results is None:
                results = []
                sent.append({"role": "user", "parts": results})
            results.append(message.response.to_gemini(message.call))
            continue
        results = None
        if role == "assistant":
            sent.append(message.message or {"role": "model", "parts": _gemini_parts(message)})
        elif "parts" in message:
            sent.append(dict(message))
        else:
            sent.append({"role": "model" if role == "model" else "user", "parts": [{"text": message.get("content")}]})
    return sent


def _gemini_parts(message: ModelMessage) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"text": message["content"]}] if message.get("content") else []
    for call in message.get("tool_calls", ()):
        function = call["function"]
        parts.append({"function_call": {"name": function["name"], "args": json.loads(function["arguments"])}})
    return parts


async def _request(method: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Call a method of a client: one that blocks in a thread, so that the event loop goes on."""
    if inspect.iscoroutinefunction(inspect.unwrap(method)):
        return await method(**arguments)
    answer = await in_thread(method, **arguments)
    return await answer if inspect.isawaitable(answer) else answer


def _plain(answer: Any) -> dict[str, Any]:
    """The response of a client as dictionaries and lists."""
    data = dumped(answer)
    if not isinstance(data, dict):
        raise errors.InvalidReplyError(f"the client returned an invalid response: got {type(answer).__name__}")
    return data


def _has(client: Any, *names: str) -> bool:
    for name in names:
        client = getattr(client, name, None)
        if client is None:
            return False
    return True
