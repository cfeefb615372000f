"""Deltas: the responses of a call as chunks that add up.

AgentScope's consumers add the chunks of a call, and nothing that was sent can be taken back. The responses of toolcrib
say how they relate to the result: they add to it, replace it, or are notices about the progress.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from agentscope.message import DataBlock, TextBlock, ToolResultState
from agentscope.tool import ToolChunk, ToolResponse

import toolcrib
from toolcrib.compat.agentscope2.blocks import (
    INTERRUPTED_TEXT,
    chunk_of,
    copy_of,
    json_metadata,
    response_of,
    state_of,
    to_block,
)

__all__ = ["Deltas"]

_Block: TypeAlias = dict[str, Any]

_RUNNING = ToolResultState.RUNNING
_SUCCESS = ToolResultState.SUCCESS
_ERROR = ToolResultState.ERROR


class Deltas:
    """Cut the responses of one call to deltas, and put its result together.

    A response that adds to the result is sent at once. A response that replaces it is held back until the next one
    shows whether it goes on from it. From then on those that go on are sent as they come.

    Args:
        shown: The text that was sent already.
    """

    __slots__ = (
        "_added",
        "_code",
        "_content",
        "_held",
        "_metadata",
        "_replacement",
        "_sent",
        "_state",
        "_sum",
        "_texts",
    )

    def __init__(self, shown: TextBlock | None = None) -> None:
        # The sum of the chunks, without the texts that its last block has not got yet.
        self._content: list[TextBlock | DataBlock] = [] if shown is None else [copy_of(shown)]
        self._texts: list[str] = []
        # The same as AgentScope adds it up, for tools that give its blocks ids of their own.
        self._sum: ToolResponse | None = None
        # The blocks that were sent, as toolcrib has them.
        self._sent: list[_Block] = [] if shown is None else [{"type": "text", "text": shown.text}]
        self._held: toolcrib.ToolResponse | None = None
        # The result where it is not the sum of the chunks.
        self._replacement: list[_Block] | None = None
        self._state = _SUCCESS
        self._metadata: dict[str, Any] = {}
        # The code of the result so far, and the texts of what was added to it.
        self._code: str | None = None
        self._added: list[str] = []

    def feed(self, response: toolcrib.ToolResponse) -> Iterator[ToolChunk]:
        """Give the chunks that a response adds."""
        mode, code = response.mode, response.code
        if mode == "addition":
            self._code = code or self._code
            self._added.append(response.text)
            yield from self.flush()
            yield self._append(response.content, state_of(code), json_metadata(response.metadata))
        elif mode == "progress":
            yield _progress(response)
        elif not response.is_last:
            self._code, self._added = code, []
            yield from self._replace(response)
        elif code is None or code == self._code:
            yield from self._end(response)
        else:
            # The call has failed, and this is not its result.
            yield from self.fail(response.text, state_of(code), json_metadata(response.metadata))

    def fail(self, text: str, state: ToolResultState, metadata: dict[str, Any]) -> Iterator[ToolChunk]:
        """Give the chunk of an error, which is added to what came before."""
        yield from self.flush()
        yield self._append([{"type": "text", "text": text}], state, metadata)

    def interrupt(self) -> Iterator[ToolChunk]:
        """Give the chunk of an interruption, in the words of AgentScope."""
        return self.fail(INTERRUPTED_TEXT, ToolResultState.INTERRUPTED, {})

    def flush(self) -> Iterator[ToolChunk]:
        """Give the result that was held back, because nothing will replace it."""
        held, self._held = self._held, None
        if held is not None:
            yield from self._show(held.content, _RUNNING, json_metadata(held.metadata))

    def response(self, id: str) -> ToolResponse:
        """Make the response of the call: its result, which need not be the sum of the chunks."""
        if self._sum is not None and self._replacement is None:
            content = self._sum.content
        elif self._replacement is None:
            self._close_text()
            content = self._content
        else:
            content = [to_block(block) for block in _joined(self._replacement)]
        return response_of(id, content, self._state, self._metadata)

    def _replace(self, response: toolcrib.ToolResponse) -> Iterator[ToolChunk]:
        # A result so far: sent if it goes on from the one before, otherwise held back.
        before = _joined(self._sent if self._held is None else self._held.content)
        if before and _rest(before, _joined(response.content)) is not None:
            self._held = None
            yield from self._show(response.content, _RUNNING, json_metadata(response.metadata))
        else:
            self._held = response

    def _end(self, response: toolcrib.ToolResponse) -> Iterator[ToolChunk]:
        # The whole result. Only the blocks of a tool that gave ids of its own are known better here.
        self._held = None
        metadata = json_metadata(response.metadata)
        if self._sum is not None:
            self._metadata.update(metadata)
        else:
            # toolcrib lists the values of a generator as JSON. AgentScope adds their texts up.
            is_list = bool(self._added) and response.text == f"[{', '.join(self._added)}]"
            yield from self._show(self._sent if is_list else response.content, state_of(response.code), metadata)
            self._metadata = metadata

    def _show(self, result: Sequence[Any], state: ToolResultState, metadata: dict[str, Any]) -> Iterator[ToolChunk]:
        # Sends what a result has beyond what was sent; a result that is something else is sent as a whole.
        content = _joined(result)
        rest = _rest(_joined(self._sent), content)
        if rest is None or self._replacement is not None:
            # From now on the sum is not the result.
            self._replacement = content
        if rest is None or rest or metadata or state not in (_RUNNING, self._state):
            yield self._add(content if rest is None else rest, state, metadata)
        # What follows is compared with what a reader takes for the result.
        self._sent = content

    def _append(self, content: Sequence[Any], state: ToolResultState, metadata: dict[str, Any]) -> ToolChunk:
        if self._replacement is not None:
            self._replacement = [*self._replacement, *content]
        return self._add(content, state, metadata)

    def _add(self, content: Sequence[Any], state: ToolResultState, metadata: dict[str, Any]) -> ToolChunk:
        blocks = [to_block(block) for block in content]
        chunk = chunk_of(blocks, state, metadata)
        if self._sum is not None or any("id" in block for block in content):
            self._add_up(chunk)
        else:
            for block in blocks:
                if type(block) is TextBlock and self._content and type(self._content[-1]) is TextBlock:
                    self._texts.append(block.text)
                else:
                    self._close_text()
                    self._content.append(copy_of(block))
            self._sent.extend(content)
        if state is _ERROR:
            self._state = _ERROR
        elif state is not _RUNNING and state is not _SUCCESS and self._state is not _ERROR:
            self._state = state
        if metadata:
            self._metadata.update(metadata)
        return chunk

    def _add_up(self, chunk: ToolChunk) -> None:
        if self._sum is None:
            self._close_text()
            self._sum = response_of("", self._content, _SUCCESS, {})
        self._sum.append_chunk(chunk)

    def _close_text(self) -> None:
        if self._texts:
            last = self._content[-1]
            last.text = "".join([last.text, *self._texts])
            self._texts.clear()


def _progress(response: toolcrib.ToolResponse) -> ToolChunk:
    # AgentScope has this key for the progress of MCP servers: where it knows it, the agent emits an event, and the
    # result does not have it.
    numbers = (response.metadata or {}).get("progress")
    numbers = numbers if isinstance(numbers, dict) else {}
    report = {"progress": numbers.get("done"), "total": numbers.get("total"), "message": response.text}
    return chunk_of([], _RUNNING, {"mcp_progress": json_metadata(report)})


def _joined(content: Sequence[Any]) -> list[_Block]:
    # The blocks with neighbouring texts joined, as AgentScope joins them.
    if len(content) < 2:
        return list(content)
    joined: list[_Block] = []
    _extend(joined, content)
    return joined


def _extend(blocks: list[_Block], content: Sequence[Any]) -> None:
    for block in content:
        if block["type"] == "text" and blocks and blocks[-1]["type"] == "text":
            blocks[-1] = {"type": "text", "text": blocks[-1]["text"] + block["text"]}
        else:
            blocks.append(block)


def _rest(before: list[_Block], after: list[_Block]) -> list[_Block] | None:
    # What the second has beyond the first; None if it does not begin with it.
    if len(after) < len(before):
        return None
    if not before:
        return after
    *same, last = before
    if after[: len(same)] != same:
        return None
    at = after[len(same)]
    rest = after[len(before) :]
    if at == last:
        return rest
    if at["type"] == last["type"] == "text" and at["text"].startswith(last["text"]):
        return [{"type": "text", "text": at["text"][len(last["text"]) :]}, *rest]
    return None
