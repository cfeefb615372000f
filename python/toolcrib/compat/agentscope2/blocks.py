"""Blocks, chunks and metadata: toolcrib's dictionaries as AgentScope's models, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from mimetypes import guess_type
from os import register_at_fork
from pathlib import Path
from typing import Any, Final

from agentscope.message import Base64Source, DataBlock, TextBlock, ToolResultState, URLSource
from agentscope.tool import ToolChunk, ToolResponse
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

import toolcrib
from toolcrib import _core

__all__ = [
    "INTERRUPTED_TEXT",
    "MODELS",
    "chunk_of",
    "copy_of",
    "from_chunk",
    "json_metadata",
    "response_of",
    "state_of",
    "text_block",
    "to_block",
]

INTERRUPTED_TEXT: Final = "<system-reminder>The tool call has been interrupted by the user.</system-reminder>"

# The codes that are not errors of the call; all others are.
_STATES: Final[dict[str | None, ToolResultState]] = {
    None: ToolResultState.RUNNING,
    "denied": ToolResultState.DENIED,
    "cancelled": ToolResultState.DENIED,
    "interrupted": ToolResultState.INTERRUPTED,
}
_CODES: Final[dict[ToolResultState, str]] = {
    ToolResultState.ERROR: "failed",
    ToolResultState.DENIED: "denied",
    ToolResultState.INTERRUPTED: "interrupted",
}
_MEDIA: Final = ("image", "audio", "video")

# Blocks, chunks and responses are made as copies of these, without their validators, which take longer than a call. The
# fields that are set are those that AgentScope sets. The factories of ids and times can be replaced
# (`agentscope.set_id_factory`), and are called then.
MODELS: Final = _core._ResponseModels(
    TextBlock(text=""),
    ToolChunk(content=[], state=ToolResultState.RUNNING),
    ToolResponse(id="", content=[]),
    (TextBlock.model_fields["id"].default_factory, "_id_factory"),
    (TextBlock.model_fields["created_at"].default_factory, "_timestamp_factory"),
)
register_at_fork(after_in_child=MODELS.renew_ids)


def state_of(code: str | None) -> ToolResultState:
    """Return the state of a chunk for the code of a response."""
    return _STATES.get(code, ToolResultState.ERROR)


def text_block(text: str) -> TextBlock:
    """Make a block of text."""
    block: TextBlock = MODELS.text(text)
    return block


def chunk_of(
    content: list[TextBlock | DataBlock],
    state: ToolResultState = ToolResultState.RUNNING,
    metadata: dict[str, Any] | None = None,
) -> ToolChunk:
    """Make a chunk of blocks."""
    chunk: ToolChunk = MODELS.chunk(content)
    if state is not ToolResultState.RUNNING:
        chunk.state = state
    if metadata:
        chunk.metadata = metadata
    return chunk


def response_of(
    id: str, content: list[TextBlock | DataBlock], state: ToolResultState, metadata: dict[str, Any]
) -> ToolResponse:
    """Make the response of a call."""
    response: ToolResponse = MODELS.response(id, content)
    if state is not ToolResultState.SUCCESS:
        response.state = state
    if metadata:
        response.metadata = metadata
    return response


def copy_of(block: TextBlock | DataBlock) -> TextBlock | DataBlock:
    """Copy a block, so that a change of the one does not show in the other."""
    return block.model_copy(deep=type(block) is not TextBlock)


def to_block(block: Mapping[str, Any]) -> TextBlock | DataBlock:
    """Convert a block of toolcrib; what is neither text nor media becomes JSON text."""
    kind = block["type"]
    if kind == "text":
        converted = text_block(block["text"])
    else:
        source = block.get("source")
        converted = _to_data(kind, source, block.get("name")) if isinstance(source, Mapping) else None
        if converted is None:
            converted = text_block(json.dumps(dict(block), ensure_ascii=False, default=str))
    if "id" in block:
        # The tool gave its own id, to send a payload in several pieces.
        converted.id = block["id"]
    return converted


def _to_data(kind: str, source: Mapping[str, Any], name: str | None) -> DataBlock | None:
    media_type = source.get("media_type")
    if source.get("type") == "base64":
        return DataBlock(source=Base64Source(data=source["data"], media_type=media_type or f"{kind}/*"), name=name)
    url = source.get("url")
    if not isinstance(url, str):
        return None
    if "://" not in url and not url.startswith("data:"):
        url = Path(url).absolute().as_uri()
    media_type = media_type or guess_type(url)[0] or f"{kind}/*"
    try:
        return DataBlock(source=URLSource(url=url, media_type=media_type), name=name)
    except ValidationError:
        return None


def from_chunk(chunk: ToolChunk) -> toolcrib.ToolResponse:
    """Convert a chunk that a tool returned or yielded: it adds to the result, as AgentScope's chunks do."""
    blocks = [_from_block(block) for block in chunk.content]
    code = _CODES.get(chunk.state)
    return toolcrib.ToolResponse(
        blocks,
        dict(chunk.metadata),
        is_interrupted=code == "interrupted",
        code=code,
        mode="addition",
    )


def _from_block(block: TextBlock | DataBlock) -> Any:
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text, "id": block.id}
    source = block.source
    kind = source.media_type.partition("/")[0]
    plain = {"type": kind if kind in _MEDIA else "data", "source": source.model_dump(), "id": block.id}
    return plain if block.name is None else {**plain, "name": block.name}


# The values of a state are nested at this depth at most, which counts for the limit of the serialiser.
_DEPTH_OF_STATE: Final = 16


def json_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a copy of the metadata that JSON can hold.

    It becomes a part of the agent's state, and one value without a JSON form would keep the state from being saved. A
    pending value is left out, because it grants the call.
    """
    if not metadata:
        return {}
    kept = {}
    for name, value in metadata.items():
        if name == "pending" or not isinstance(name, str):
            continue
        nested = value
        for _ in range(_DEPTH_OF_STATE):
            nested = [nested]
        try:
            copied = from_json(to_json({name: nested}, inf_nan_mode="null"))
        except (PydanticSerializationError, ValueError, RecursionError):
            continue
        for _ in range(_DEPTH_OF_STATE):
            copied = {name: copied[name][0]}
        kept[name] = copied[name]
    return kept


# The core converts what a tool returns by this method. AgentScope's functions return chunks.
ToolChunk.__tool_response__ = from_chunk
