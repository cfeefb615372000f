"""The blocks of messages: typed dictionaries with a `type`.

A block is a plain `dict` at run time. These two are equal:

    TextBlock(type="text", text="hello")
    {"type": "text", "text": "hello"}
"""

from typing import Any, Literal, TypedDict

__all__ = [
    "AudioBlock",
    "Base64Source",
    "ImageBlock",
    "TextBlock",
    "ThinkingBlock",
    "ToolResultBlock",
    "ToolUseBlock",
    "URLSource",
    "VideoBlock",
]


class TextBlock(TypedDict):
    """Text for the model or from it."""

    type: Literal["text"]
    text: str


class ThinkingBlock(TypedDict):
    """The reasoning of a model before its answer."""

    type: Literal["thinking"]
    thinking: str


class Base64Source(TypedDict):
    """Embedded media: `data` is base64, `media_type` is for example `image/png`."""

    type: Literal["base64"]
    media_type: str
    data: str


class URLSource(TypedDict):
    """Media at a URL; toolcrib never fetches it."""

    type: Literal["url"]
    url: str


class ImageBlock(TypedDict):
    """An image."""

    type: Literal["image"]
    source: Base64Source | URLSource


class AudioBlock(TypedDict):
    """Audio."""

    type: Literal["audio"]
    source: Base64Source | URLSource


class VideoBlock(TypedDict):
    """A video."""

    type: Literal["video"]
    source: Base64Source | URLSource


class _ToolUse(TypedDict):
    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, Any]


# The optional key needs a separate class: `NotRequired` is new in Python 3.11.
class ToolUseBlock(_ToolUse, total=False):
    """A tool call: the tool's `name`, its arguments in `input`, and the `id` that the result refers to.

    `raw_input` is the text that `input` was parsed from, if the model's client provides it.
    """

    raw_input: str


class ToolResultBlock(TypedDict):
    """The result of a call, with the `id` and `name` of the call's block."""

    type: Literal["tool_result"]
    id: str
    name: str
    output: str | list[TextBlock | ImageBlock | AudioBlock | VideoBlock]
