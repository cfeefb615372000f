"""Requests of tools and MCP servers to a model, and the functions that answer them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from toolcrib import _core, errors
from toolcrib.policy import _answer_of

__all__ = ["Sampler", "SamplingRequest", "SamplingResult"]


@dataclass(frozen=True)
class SamplingRequest:
    """A request to a model, which the `sampler` of a toolkit or of an MCP client answers.

    Attributes:
        messages: The messages, each with `role` and `content`.
        max_tokens: The most tokens that the answer may have.
        system_prompt: The system prompt that the tool or the server proposes.
        temperature: The temperature that it proposes.
        stop_sequences: Texts that end the answer.
        model_preferences: The model that it would like, as MCP describes it.
        tools: Tools that the model may call, as MCP defines them.
        raw: The whole request, in the form of MCP.
    """

    messages: list[dict[str, Any]]
    max_tokens: int | None = None
    system_prompt: str | None = None
    temperature: float | None = None
    stop_sequences: list[str] = field(default_factory=list)
    model_preferences: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    raw: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def _read(cls, request: dict[str, Any]) -> SamplingRequest:
        """Read a request in the form of MCP."""
        return cls(
            messages=request.get("messages", []),
            max_tokens=request.get("maxTokens"),
            system_prompt=request.get("systemPrompt"),
            temperature=request.get("temperature"),
            stop_sequences=request.get("stopSequences") or [],
            model_preferences=request.get("modelPreferences"),
            tools=request.get("tools"),
            raw=request,
        )


@dataclass(frozen=True)
class SamplingResult:
    """The answer of a model.

    Attributes:
        text: The text of the answer; the texts of all its blocks, if it has several.
        content: The blocks of the answer, in the form of MCP.
        model: The name of the model.
        stop_reason: The reason why the answer ended, such as `"endTurn"` or `"maxTokens"`; None if it is not known.
        raw: The whole answer, in the form of MCP.
    """

    text: str
    content: list[dict[str, Any]]
    model: str
    stop_reason: str | None
    raw: dict[str, Any]

    def __str__(self) -> str:
        """Return the text."""
        return self.text

    @classmethod
    def _read(cls, result: dict[str, Any]) -> SamplingResult:
        """Read an answer in the form of MCP."""
        content = result.get("content")
        several = content if isinstance(content, list) else [content]
        blocks: list[dict[str, Any]] = [dict(block) for block in several if isinstance(block, Mapping)]
        texts = [str(block["text"]) for block in blocks if block.get("type") == "text" and "text" in block]
        model, reason = result.get("model"), result.get("stopReason")
        return cls("".join(texts), blocks, str(model or "unknown"), None if reason is None else str(reason), result)


Sampler: TypeAlias = Callable[[SamplingRequest], Any]
"""A function that answers a request with text, or with a `CreateMessageResult` of MCP as a dictionary."""


def written(
    messages: str | Sequence[Mapping[str, Any]],
    *,
    max_tokens: int,
    system_prompt: str | None,
    temperature: float | None,
    stop_sequences: Sequence[str],
    model_preferences: Mapping[str, Any] | None,
    tools: Sequence[Mapping[str, Any]] | None,
) -> dict[str, Any]:
    """Write a request in the form of MCP."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    request: dict[str, Any] = {"messages": [_message(message) for message in messages], "maxTokens": max_tokens}
    optional = {
        "systemPrompt": system_prompt,
        "temperature": temperature,
        "stopSequences": _core._name_list("stop_sequences", stop_sequences) or None,
        "modelPreferences": None if model_preferences is None else dict(model_preferences),
        "tools": None if tools is None else [dict(tool) for tool in tools],
    }
    request.update((name, value) for name, value in optional.items() if value is not None)
    return request


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Write a message, whose content may be text."""
    if not isinstance(message, Mapping) or "role" not in message or "content" not in message:
        raise TypeError(f"a message must be a dictionary with `role` and `content`, not {message!r}")
    content = message["content"]
    if isinstance(content, str):
        content = {"type": "text", "text": content}
    return {**message, "content": content}


async def sampled(sampler: Sampler, request: dict[str, Any]) -> dict[str, Any]:
    """Have a function answer a request in the form of MCP; the answer is in that form, too."""
    answer = await _answer_of(sampler, SamplingRequest._read(request))
    if isinstance(answer, Mapping):
        return dict(answer)
    if not isinstance(answer, str):
        raise errors.InvalidReplyError(f"invalid answer of the sampler: expected text, got {type(answer).__name__}")
    model = getattr(sampler, "model", None)
    return {
        "role": "assistant",
        "content": {"type": "text", "text": answer},
        "model": model if isinstance(model, str) else "unknown",
        "stopReason": "endTurn",
    }
