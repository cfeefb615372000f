"""Answers to the questions of native tools, such as those of MCP servers, by functions of the program."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toolcrib import errors
from toolcrib.context import ToolContext
from toolcrib.policy import _answer_of
from toolcrib.sampling import sampled

if TYPE_CHECKING:
    from toolcrib._core import _Reply
    from toolcrib.context import Question

_log = logging.getLogger("toolcrib")


class _DeclinedError(Exception):
    """The user declined to answer."""


def start(
    reply: _Reply,
    function: Callable[[Any], Any] | None,
    text: str | None,
    schema: Any,
    call: tuple[str, str, str | None],
    session: Any,
) -> asyncio.Task[None] | None:
    """Start a task that answers a question on the running event loop.

    Args:
        reply: The receiver of the answer.
        function: The asker of the toolkit, or the sampler of the MCP client or the toolkit.
        text: The question to the user; None for a request to a model.
        schema: The JSON Schema of the answer, or the request to a model.
        call: The name of the tool, the id of the call and the caller.
        session: The session of the call.
    """
    return asyncio.get_running_loop().create_task(_answer(reply, function, text, schema, call, session))


async def _answer(
    reply: _Reply,
    function: Callable[[Any], Any] | None,
    text: str | None,
    schema: Any,
    call: tuple[str, str, str | None],
    session: Any,
) -> None:
    if function is None:
        return  # The reply is dropped, which reports that such questions are not supported.
    try:
        if text is None:
            answer = await sampled(function, schema)
        elif not isinstance(schema, dict):
            # Anything else would be read as a type, whose parts may be code.
            raise TypeError(f"invalid JSON Schema of an answer: expected a dictionary, got {type(schema).__name__}")
        else:
            context: ToolContext[Any] = ToolContext(None, *call, session, None, _asking(function))
            answer = await context.ask(text, schema)
        reply.answer(answer)
    except _DeclinedError:
        reply.decline()
    except errors.WrongAnswerError as error:
        reply.fail(str(error))
    except Exception as error:
        _log.warning("the question of tool '%s' was not answered", call[0], exc_info=error)
        reply.fail(f"the function that answers questions failed: {type(error).__name__}")


def _asking(function: Callable[[Any], Any]) -> Callable[[Question], Any]:
    """Make an asker that reads None as a refusal to answer."""

    async def ask(question: Question) -> Any:
        answer = await _answer_of(function, question)
        if answer is None:
            raise _DeclinedError
        return answer

    return ask
