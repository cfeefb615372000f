"""One call of a toolcrib tool: its chunks for AgentScope, and its result."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncGenerator, Coroutine, Iterable
from typing import Any, Literal, NoReturn

import mcp
from agentscope.exception import DeveloperOrientedException
from agentscope.message import TextBlock, ToolResultState
from agentscope.tool import ToolChunk, ToolResponse

import toolcrib
from toolcrib import ToolkitView, ToolStream, _core
from toolcrib.compat.agentscope2.blocks import copy_of, json_metadata, response_of
from toolcrib.compat.agentscope2.deltas import Deltas
from toolcrib.compat.agentscope2.permission import asks_by_policy

__all__ = ["Call", "CallStream", "exception_text"]

# The class was renamed with version 2 of the MCP package.
_MCP_ERROR: type[Exception] = getattr(mcp, "MCPError", None) or mcp.McpError


def exception_text(error: BaseException) -> str:
    """Return the text of an exception for the model, as AgentScope's toolkit has it."""
    return f"Error occurred when calling MCP tool: {error}" if isinstance(error, _MCP_ERROR) else str(error)


class Call:
    """A call that the agent has let through.

    Args:
        view: The toolkit, view or session to call through.
        request: The block of the call.
        is_confirmed: True if the user has approved this call, False if the user was not asked, None if it is not known.
        in_their_words: True to describe exceptions as AgentScope does: by their text alone.
    """

    # The chunks that were made and not given yet, and those that were given, added up: as one text, while it is one.
    _ready: list[ToolChunk] | None = None
    _only: TextBlock | None = None
    _deltas: Deltas | None = None
    _stream: ToolStream | None = None
    _pending: dict[str, Any] | None = None
    _is_interrupted = False
    _is_over = False

    def __init__(
        self,
        view: _core.Toolkit | ToolkitView,
        request: dict[str, Any],
        is_confirmed: bool | None,
        in_their_words: bool,
    ) -> None:
        self.request = request
        self._view = view
        self._is_confirmed = is_confirmed
        self._in_their_words = in_their_words

    async def next(self) -> ToolChunk | None:
        """Give the next chunk; None at the end.

        Raises:
            CancelledError: If the task is cancelled. The chunk about the interruption is the caller's to add.
            DeveloperOrientedException: If the tool raises it.
        """
        while not self._ready:
            if self._is_over:
                return None
            if (stream := self._stream) is None:
                self._stream = stream = self._view.call_tool_function(self.request)
            try:
                response = await stream.__anext__()
            except StopAsyncIteration:
                if self._pending is not None:
                    self._stream = self._resumed(self._pending)
                    self._pending = None
                elif self._is_interrupted:
                    # The tool has raised the cancellation itself.
                    self.interrupt()
                else:
                    self._is_over = True
            else:
                self._take(response)
        return self._ready.pop(0)

    def interrupt(self) -> None:
        """End the call with the chunk about an interruption."""
        self._end(self._summed().interrupt())

    def fail(self, error: BaseException) -> None:
        """End the call with the chunk about an exception."""
        self._end(self._summed().fail(exception_text(error), ToolResultState.ERROR, {}))

    def result(self, id: str) -> ToolResponse:
        """Make the response of the call."""
        if self._deltas is None and self._only is not None:
            return response_of(id, [copy_of(self._only)], ToolResultState.SUCCESS, {})
        return self._summed().response(id)

    async def aclose(self) -> None:
        """Close the tool."""
        self._is_over = True
        if self._stream is not None:
            await self._stream.aclose()

    def _take(self, response: toolcrib.ToolResponse) -> None:
        # Makes chunks of a response.
        deltas = self._summed()
        if response.is_interrupted and response.mode == "result":
            # It repeats the result and has a note of its own. If the task was cancelled, the exception follows.
            self._is_interrupted = True
            chunks = deltas.flush()
        elif response.code == "pending":
            self._pending = (response.metadata or {})["pending"]
            return
        elif (error := response.exception) is not None and response.code is not None:
            if isinstance(error, DeveloperOrientedException):
                raise error
            text = exception_text(error) if self._in_their_words else response.text
            chunks = deltas.fail(text, ToolResultState.ERROR, json_metadata(response.metadata))
        else:
            chunks = deltas.feed(response)
        self._ready = [*(self._ready or ()), *chunks]

    def _end(self, chunks: Iterable[ToolChunk]) -> None:
        self._is_over = True
        self._ready = [*(self._ready or ()), *chunks]

    def _summed(self) -> Deltas:
        if self._deltas is None:
            self._deltas = Deltas(self._only)
        return self._deltas

    def _resumed(self, pending: dict[str, Any]) -> ToolStream:
        # The agent has let the call through: the user approved it, or a mode or a middleware of the agent did. No mode
        # answers a question that the policy asks.
        answer: Literal["once", "no"] = "once"
        if self._is_confirmed is False and asks_by_policy(self._view, self.request):
            answer = "no"
        return self._view.resume(pending, answer, by="user" if self._is_confirmed else "agentscope")


class CallStream(Call, AsyncGenerator[ToolChunk | ToolResponse, None]):
    """The chunks of a call, and then its result; of a call that is more than a text.

    It is not the generator of a function: the event loop registers each of these, which takes longer than the call
    itself.

    Args:
        view: The toolkit, view or session to call through.
        request: The block of the call.
        is_confirmed: See `Call`.
        in_their_words: See `Call`.
        stream: The responses of the call, if it has begun.
        shown: The text that was sent already.
        response: The next response.
        error: The exception with which the call has ended.
    """

    _has_result = False

    def __init__(
        self,
        view: _core.Toolkit | ToolkitView,
        request: dict[str, Any],
        is_confirmed: bool | None,
        in_their_words: bool,
        stream: ToolStream | None,
        shown: TextBlock | None,
        response: toolcrib.ToolResponse | None,
        error: BaseException | None,
    ) -> None:
        super().__init__(view, request, is_confirmed, in_their_words)
        self._stream = stream
        self._only = shown
        self._response = response
        self._error = error

    def __anext__(self) -> Coroutine[Any, Any, ToolChunk | ToolResponse]:
        """Give the next chunk, or the result."""
        return self._step()

    async def _step(self) -> ToolChunk | ToolResponse:
        response, self._response = self._response, None
        error, self._error = self._error, None
        if self._has_result:
            raise error or StopAsyncIteration
        try:
            if error is not None:
                raise error
            if response is not None:
                self._take(response)
            chunk = await self.next()
        except DeveloperOrientedException as raised:
            # After the result.
            self._error, chunk = raised, None
        except CancelledError:
            self.interrupt()
            chunk = await self.next()
        except Exception as raised:
            self.fail(raised)
            chunk = await self.next()
        if chunk is not None:
            return chunk
        self._has_result = True
        return self.result(self.request["id"])

    async def asend(self, value: None) -> ToolChunk | ToolResponse:
        """Do as `__anext__`."""
        return await self._step()

    async def athrow(self, *error: Any) -> NoReturn:
        """Close the tool, and raise the exception."""
        await self.aclose()
        raise error[0] if len(error) < 2 or error[1] is None else error[1]

    async def aclose(self) -> None:
        """Close the tool."""
        self._has_result = True
        await super().aclose()
