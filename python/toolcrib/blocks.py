"""The blocks that messages are made of: plain dictionaries with a `type`, described for editors and type checkers.

A block is a `dict` at run time, so it goes into JSON, into a message and through `copy.deepcopy` as it is. Write one
either way:

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
    """What a model thought before it answered."""

    type: Literal["thinking"]
    thinking: str


class Base64Source(TypedDict):
    """Media carried inside the block: `data` is base64, `media_type` for example `image/png`."""

    type: Literal["base64"]
    media_type: str
    data: str


class URLSource(TypedDict):
    """Media that lies elsewhere; toolcrib never fetches it."""

    type: Literal["url"]
    url: str


class ImageBlock(TypedDict):
    """A picture."""

    type: Literal["image"]
    source: Base64Source | URLSource


class AudioBlock(TypedDict):
    """A sound."""

    type: Literal["audio"]
    source: Base64Source | URLSource


class VideoBlock(TypedDict):
    """A film."""

    type: Literal["video"]
    source: Base64Source | URLSource


class _ToolUse(TypedDict):
    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, Any]


# The optional key needs a class of its own: `NotRequired` came with Python 3.11.
class ToolUseBlock(_ToolUse, total=False):
    """A call that a model asks for: the tool's `name`, its arguments in `input`, and an `id` to match the result by.

    `raw_input` keeps the text that `input` was parsed from, where a model's client has it.
    """

    raw_input: str


class ToolResultBlock(TypedDict):
    """What a call gave, under the `id` and `name` of the block that asked for it."""

    type: Literal["tool_result"]
    id: str
    name: str
    output: str | list[TextBlock | ImageBlock | AudioBlock | VideoBlock]
