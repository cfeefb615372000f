"""Calls that a model wrote into its text as XML, read the way ArtifactFlow reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import toolcrib

__all__ = ["ToolCall", "XMLToolCallParser", "parse_tool_calls"]


@dataclass
class ToolCall:
    """A call: the tool's name, the parameters, and the block that they were read from."""

    name: str
    params: dict[str, Any]
    raw_text: str = ""


class XMLToolCallParser:
    """Find calls in text.

    Values are guessed: `true` and `false` become booleans, what looks like a number becomes one, also a postal code.
    Use `toolcrib.TextParser` to have them read by the declared type of each parameter.
    """

    @staticmethod
    def parse_tool_calls(text: str, *, fallback: bool = True) -> list[ToolCall]:
        """Find the calls in a text, whatever stands around them; a block without a name is no call.

        Args:
            text: What the model wrote.
            fallback: Whether a block that is not XML is searched for what looks like parameters, as ArtifactFlow does.
                A call may then lack some: one with an attribute, say, or all of them if `</params>` is missing. Without
                it such a block is no call.
        """
        calls = toolcrib.parse_tool_calls(text, compat=True, fallback=fallback)
        return [ToolCall(call.name, call.arguments, call.raw or "") for call in calls]


def parse_tool_calls(text: str, *, fallback: bool = True) -> list[ToolCall]:
    """Find the calls in a text; see `XMLToolCallParser.parse_tool_calls`."""
    return XMLToolCallParser.parse_tool_calls(text, fallback=fallback)
