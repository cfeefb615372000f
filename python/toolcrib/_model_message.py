"""The messages between the loop of a sub-agent and its model function."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
    """Read what a model function has returned; its calls are read, too."""
    if isinstance(reply, ModelReply):
        return _checked(reply)
    if isinstance(reply, str):
        return ModelReply(reply, ToolCall.read_all({"role": "assistant", "content": reply}))
    data = dumped(reply)
    if not isinstance(data, Mapping):
        raise errors.InvalidReplyError(_refusal(reply))
    if {"text", "calls", "thoughts", "tokens"} & data.keys():
        if unknown := data.keys() - {"text", "calls", "thoughts", "tokens", "message"}:
            raise errors.InvalidReplyError(f"the model function returned a reply with the unknown key `{min(unknown)}`")
        return _checked(ModelReply(**{key: value for key, value in data.items() if value is not None}))
    calls, text = ToolCall.read_all(data), _text_of(data)
    if not calls and text is None:
        raise errors.InvalidReplyError(_refusal(reply))
    return ModelReply(text or "", calls)


def _checked(reply: ModelReply) -> ModelReply:
    """Check the types of a reply, and read its calls."""
    fields = (("text", str), ("calls", Sequence), ("thoughts", Sequence), ("tokens", int))
    for name, expected in fields:
        value = getattr(reply, name)
        if not isinstance(value, expected) or (expected is Sequence and isinstance(value, str)):
            raise errors.InvalidReplyError(
                f"the model function returned a reply with an invalid `{name}`: "
                f"expected {'a list' if expected is Sequence else expected.__name__}, got {type(value).__name__}"
            )
    if reply.tokens < 0:
        raise errors.InvalidReplyError("the model function returned a reply with negative `tokens`")
    if not all(isinstance(thought, str) for thought in reply.thoughts):
        raise errors.InvalidReplyError("the model function returned a reply with a thought that is not text")
    try:
        return replace(reply, calls=[ToolCall.read(call) for call in reply.calls])
    except TypeError as error:
        raise errors.InvalidReplyError(f"the model function returned a reply with an invalid call: {error}") from None


def _refusal(reply: Any) -> str:
    return (
        "the model function returned an invalid reply: expected a ModelReply, a text or a provider's message, "
        f"got {type(reply).__name__}"
    )


def _text_of(data: Any, depth: int = 8) -> str | None:
    """The text of a provider's message or response; None if it is none."""
    if isinstance(data, str) or depth == 0:
        return data if isinstance(data, str) else None
    if isinstance(data, list):
        texts = [_text_of(item, depth - 1) for item in data]
        return "".join(text for text in texts if text is not None)
    if not isinstance(data, Mapping):
        return None
    known = [key for key in ("text", "content", "parts", "message", "choices", "candidates", "output") if key in data]
    return (_text_of(data[known[0]], depth - 1) or "") if known else None
