"""The messages between the loop of a sub-agent and its model function."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolcrib import errors
from toolcrib._core import ToolCall, ToolResponse
from toolcrib._provider import dumped


@dataclass(frozen=True)
class ModelReply:
    """The reply of a model function.

    Args:
        text: The text for the user.
        calls: The tool calls, in any format that `ToolCall.read` accepts.
        thoughts: The thoughts, which are shown to people only.
        tokens: The tokens that the request and the reply have used.
        message: The provider's own message, which an adapter sends back in the next turn.
    """

    text: str = ""
    calls: Sequence[Any] = ()
    thoughts: Sequence[str] = ()
    tokens: int = 0
    message: Any = None


class ModelMessage(dict[str, Any]):
    """A message of the loop, in the form of OpenAI's chat completions.

    Attributes:
        message: For a reply of the model, the provider's own message.
        call: For a tool's result, the call.
        response: For a tool's result, the response, with blocks that the text does not have.
    """

    message: Any = None
    call: ToolCall | None = None
    response: ToolResponse | None = None


def assistant_message(reply: ModelReply, calls: Sequence[ToolCall], ids: Sequence[str]) -> ModelMessage:
    """Make the message of a reply, with these ids of its calls."""
    message = ModelMessage(role="assistant", content=reply.text or None)
    if calls:
        message["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
            for call, id in zip(calls, ids, strict=True)
        ]
    message.message = reply.message
    return message


def read_reply(reply: Any) -> ModelReply:
    """Read what a model function has returned."""
    if isinstance(reply, ModelReply):
        _check_reply(reply)
        return reply
    if isinstance(reply, str):
        return ModelReply(reply, ToolCall.read_all({"role": "assistant", "content": reply}))
    data = dumped(reply)
    if not isinstance(data, Mapping):
        raise errors.InvalidReplyError(_refusal(reply))
    if {"text", "calls", "thoughts", "tokens"} & data.keys():
        if unknown := data.keys() - {"text", "calls", "thoughts", "tokens", "message"}:
            raise errors.InvalidReplyError(f"the model function returned a reply with the unknown key `{min(unknown)}`")
        read = ModelReply(**{"text": "", **{key: value for key, value in data.items() if value is not None}})
        _check_reply(read)
        return read
    calls = ToolCall.read_all(data)
    text = _text_of(data)
    if not calls and text is None:
        raise errors.InvalidReplyError(_refusal(reply))
    return ModelReply(text or "", calls)


def _check_reply(reply: ModelReply) -> None:
    sent = (("text", str), ("calls", Sequence), ("thoughts", Sequence), ("tokens", int))
    for name, expected in sent:
        value = getattr(reply, name)
        if not isinstance(value, expected) or (expected is Sequence and isinstance(value, str)):
            raise errors.InvalidReplyError(
                f"the model function returned a reply with an invalid `{name}`: "
                f"expected {'a list' if expected is Sequence else expected.__name__}, got {type(value).__name__}"
            )
    if reply.tokens < 0:
        raise errors.InvalidReplyError("the model function returned a reply with negative `tokens`")


def _refusal(reply: Any) -> str:
    return (
        "the model function returned an invalid reply: expected a ModelReply, a text or a provider's message, "
        f"got {type(reply).__name__}"
    )


def _text_of(data: Mapping[str, Any]) -> str | None:
    """The text of a provider's message."""
    content: Any = data.get("content", data.get("text"))
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = [
            block["text"] for block in content if isinstance(block, Mapping) and isinstance(block.get("text"), str)
        ]
        return "\n".join(texts)
    for key in ("message", "choices"):
        inner = data.get(key)
        inner = inner[0] if isinstance(inner, list) and inner else inner
        if isinstance(inner, Mapping):
            return _text_of(inner)
    return "" if "content" in data else None
