"""Calls of tools that are AgentScope's own, or written for it."""

from __future__ import annotations

import inspect
from asyncio import CancelledError
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

from agentscope.exception import DeveloperOrientedException
from agentscope.message import ToolResultState
from agentscope.tool import ToolBase, ToolChunk, ToolResponse

from toolcrib.compat.agentscope2.blocks import INTERRUPTED_TEXT, chunk_of, text_block
from toolcrib.compat.agentscope2.call import exception_text

__all__ = ["error_chunk", "run"]


def error_chunk(text: str) -> ToolChunk:
    """Make the chunk of an error."""
    return chunk_of([text_block(text)], ToolResultState.ERROR)


async def run(
    tool: ToolBase,
    arguments: Callable[[], dict[str, Any]],
    id: str,
    finish: Callable[[list[ToolChunk], ToolResponse], ToolResponse] | None = None,
) -> AsyncGenerator[ToolChunk | ToolResponse, None]:
    """Call a tool as AgentScope's toolkit does; a stream that is closed early closes the tool.

    Args:
        tool: The tool.
        arguments: Parses the arguments.
        id: The id of the call.
        finish: Replaces the sum of the chunks by the result.
    """
    response, chunks = ToolResponse(id=id), []
    opened: AsyncGenerator[ToolChunk, None] | Generator[ToolChunk, None, None] | None = None
    failure: DeveloperOrientedException | None = None
    try:
        given = arguments()
        result = await tool(**given) if inspect.iscoroutinefunction(tool.__call__) else tool(**given)
        if isinstance(result, ToolChunk):
            yield result
            response.append_chunk(result)
        elif isinstance(result, AsyncGenerator):
            opened = result
            async for chunk in result:
                yield chunk
                chunks.append(chunk)
                response.append_chunk(chunk)
        elif isinstance(result, Generator):
            opened = result
            for chunk in result:
                yield chunk
                response.append_chunk(chunk)
        else:
            failure = DeveloperOrientedException(
                "The tool function must return a ToolChunk object, or an AsyncGenerator/Generator of ToolChunk "
                f"objects, but got {type(result)}."
            )
    except GeneratorExit:
        await _close(opened)
        raise
    except DeveloperOrientedException as error:
        failure = error
    except (Exception, CancelledError) as error:
        await _close(opened)
        is_interrupted = isinstance(error, CancelledError)
        text = INTERRUPTED_TEXT if is_interrupted else exception_text(error)
        state = ToolResultState.INTERRUPTED if is_interrupted else ToolResultState.ERROR
        chunk = chunk_of([text_block(text)], state)
        yield chunk
        chunks.append(chunk)
        response.append_chunk(chunk)
    yield response if finish is None else finish(chunks, response)
    if failure is not None:
        raise failure


async def _close(opened: AsyncGenerator[Any, None] | Generator[Any, None, None] | None) -> None:
    if isinstance(opened, AsyncGenerator):
        await opened.aclose()
    elif opened is not None:
        opened.close()
