"""The question to an approver: asked in a thread or on the event loop, with a timeout.

This module only waits for the answer; the core evaluates it. asyncio is imported when it is first needed.
"""

from __future__ import annotations

import inspect
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from toolcrib import _core
from toolcrib._background import resolve
from toolcrib.policy import Approval

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from toolcrib.policy import ApprovalRequest

_log = logging.getLogger("toolcrib")

_open_questions: WeakKeyDictionary[_core._Permissions, dict[asyncio.Future[None], str | None]] = WeakKeyDictionary()
"""For each question that waits for its answer, the future that cancels it, and the id of its session."""


async def ask(
    permissions: _core._Permissions,
    approver: Callable[[ApprovalRequest], Any],
    request: ApprovalRequest,
    timeout: float | None,
) -> object:
    """Ask the approver and return its answer; a timeout and an error count as a no.

    Args:
        permissions: The permissions that the question belongs to; `cancel_all` of them cancels it.
        approver: The approver.
        request: The question.
        timeout: The number of seconds to wait; None to wait without limit.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    cancelled: asyncio.Future[None] = loop.create_future()
    question = loop.create_task(answer_of(approver, request), name=f"approval of {request.tool}")
    open_questions = _open_questions.setdefault(permissions, {})
    open_questions[cancelled] = request.session
    try:
        await asyncio.wait({question, cancelled}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        open_questions.pop(cancelled, None)
        if not question.done():
            question.add_done_callback(_retrieve_outcome)
            question.cancel()
    if cancelled.done():
        return Approval("cancel")
    if not question.done():
        _log.warning("approver for '%s' did not answer within %s seconds; denying the call", request.tool, timeout)
        return Approval("no", reason="the approver did not answer in time")
    try:
        return question.result()
    except (Exception, asyncio.CancelledError) as error:
        # The question is a task of its own, so a `CancelledError` here comes from the approver and not from this call.
        _log.warning("approver for '%s' failed; denying the call", request.tool, exc_info=error)
        return Approval("no", reason="the approver failed")


def _retrieve_outcome(question: asyncio.Task[Any]) -> None:
    """Retrieve the outcome of a question that was given up, so that asyncio does not log it."""
    if not question.cancelled():
        question.exception()


async def answer_of(function: Callable[[Any], Any], question: object) -> Any:
    """Call a function of the program with a question; one that is not a coroutine function may block and gets a thread.

    Args:
        function: The approver of a toolkit, or its asker.
        question: What it is asked.
    """
    is_asynchronous = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - it is callable; this tests whether its method is async
    )
    answer = function(question) if is_asynchronous else await _core._AwaitableJob(function, question)
    return await answer if inspect.isawaitable(answer) else answer


def cancel_all(permissions: _core._Permissions, session: str | None) -> None:
    """Cancel every open question of a session, from any thread; the core has cancelled their calls before.

    Args:
        permissions: The permissions that the questions belong to.
        session: The id of the session; None for the questions outside of sessions.
    """
    for cancelled, asked_in in list(_open_questions.get(permissions, {}).items()):
        if asked_in != session:
            continue
        with suppress(RuntimeError):  # That loop was closed meanwhile.
            cancelled.get_loop().call_soon_threadsafe(resolve, cancelled)
