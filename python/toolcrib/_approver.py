"""Asking whoever may approve a call: in a thread or on the event loop, not longer than allowed, and whatever they do.

Anything that is not a clear yes is a no. asyncio is imported when it is first needed.
"""

from __future__ import annotations

import inspect
import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from toolcrib import _core
from toolcrib.policy import Approval

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    from toolcrib.policy import ApprovalRequest

_log = logging.getLogger("toolcrib")

_waiting: WeakKeyDictionary[_core.Desk, set[asyncio.Future[None]]] = WeakKeyDictionary()


class Reply(NamedTuple):
    """What came of a question."""

    answer: str
    arguments: Mapping[str, Any] | None = None
    by: str | None = None
    reason: str | None = None


async def ask(
    desk: _core.Desk, approver: Callable[[ApprovalRequest], Any], request: ApprovalRequest, timeout: float | None
) -> Reply:
    """Ask, and give one of the five answers, whatever becomes of the question.

    Args:
        desk: Where the call waits; who answers `"cancel"` there answers this question, too.
        approver: Who is asked.
        request: What about.
        timeout: After how many seconds no answer is a no.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    cancelled: asyncio.Future[None] = loop.create_future()
    question = loop.create_task(_question(approver, request), name=f"approval of {request.tool}")
    waiting = _waiting.setdefault(desk, set())
    waiting.add(cancelled)
    try:
        await asyncio.wait({question, cancelled}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.discard(cancelled)
        if not question.done():
            question.add_done_callback(_look_away)
            question.cancel()
    if cancelled.done():
        return Reply("cancel")
    if not question.done():
        _log.warning("nobody answered within %s seconds whether '%s' may run: it may not", timeout, request.tool)
        return Reply("no", reason="nobody answered in time")
    try:
        reply = read(question.result())
    except (Exception, asyncio.CancelledError) as error:
        # The question is a task of its own: this is its approver's doing, whoever else may be cancelled.
        _log.warning("who was asked whether '%s' may run failed: it may not", request.tool, exc_info=error)
        return Reply("no", reason="whoever was asked could not answer")
    if reply.answer == "cancel":
        cancel_all(desk)
    return reply


def _look_away(question: asyncio.Task[Any]) -> None:
    """Take note of what nobody asks for any more, so that asyncio does not complain about it."""
    if not question.cancelled():
        question.exception()


async def _question(approver: Callable[[ApprovalRequest], Any], request: ApprovalRequest) -> Any:
    is_asynchronous = inspect.iscoroutinefunction(approver) or inspect.iscoroutinefunction(
        getattr(approver, "__call__", None)  # noqa: B004 - not whether it can be called, but how
    )
    answer = approver(request) if is_asynchronous else await _core.AwaitableJob(approver, request)
    return await answer if inspect.isawaitable(answer) else answer


def cancel_all(desk: _core.Desk) -> None:
    """Answer every question that waits at a desk, from any thread.

    Args:
        desk: The desk.
    """
    for cancelled in list(_waiting.get(desk, ())):
        with suppress(RuntimeError):  # That loop was closed meanwhile.
            cancelled.get_loop().call_soon_threadsafe(partial(_resolve, cancelled))


def _resolve(cancelled: asyncio.Future[None]) -> None:
    if not cancelled.done():
        cancelled.set_result(None)


def read(answer: object) -> Reply:
    """Understand an answer.

    Args:
        answer: One of the five words, a boolean, or an `Approval`.

    Raises:
        InvalidAnswerError: If it is anything else.
        TypeError: If the edited arguments are no mapping, or who answered and why are no texts.
    """
    said = answer if isinstance(answer, Approval) else Approval(answer)  # type: ignore[arg-type]
    for name, text in (("by", said.by), ("reason", said.reason)):
        if text is not None and not isinstance(text, str):
            raise TypeError(f"an approval's `{name}` must be a string, not {type(text).__qualname__}")
    word, arguments = _core._read_answer(said.answer, said.arguments)
    return Reply(word, arguments, said.by, said.reason)


def reply_to_resume(answer: object, arguments: Mapping[str, Any] | None, by: str | None) -> Reply:
    """Understand the answer to a pending call.

    Args:
        answer: As for `read`.
        arguments: Edited arguments, unless the answer has its own.
        by: Who answered, unless the answer says so itself.

    Raises:
        InvalidAnswerError: If it is none.
        TypeError: If the edited arguments are no mapping, or come twice.
    """
    said = answer if isinstance(answer, Approval) else Approval(answer)  # type: ignore[arg-type]
    if arguments is not None and said.arguments is not None:
        raise TypeError("resume() got edited arguments twice: in the answer and beside it")
    return read(Approval(said.answer, said.arguments if arguments is None else arguments, said.by or by, said.reason))
