"""Asking an approver: in a thread or on the event loop, and not longer than allowed.

This is the half that waits; what an answer means is decided in the core. asyncio is imported when it is first needed.
"""

from __future__ import annotations

import inspect
import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from toolcrib import _core
from toolcrib.policy import Approval

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from toolcrib.policy import ApprovalRequest

_log = logging.getLogger("toolcrib")

_waiting: WeakKeyDictionary[_core._Permissions, set[asyncio.Future[None]]] = WeakKeyDictionary()


async def ask(
    permissions: _core._Permissions,
    approver: Callable[[ApprovalRequest], Any],
    request: ApprovalRequest,
    timeout: float | None,
) -> object:
    """Ask, and return what the approver answered; silence and errors are a no.

    Args:
        permissions: Where the call waits; `wake_all` of them ends this question, too.
        approver: The function to ask.
        request: The question.
        timeout: After how many seconds no answer is a no.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    cancelled: asyncio.Future[None] = loop.create_future()
    question = loop.create_task(_question(approver, request), name=f"approval of {request.tool}")
    waiting = _waiting.setdefault(permissions, set())
    waiting.add(cancelled)
    try:
        await asyncio.wait({question, cancelled}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.discard(cancelled)
        if not question.done():
            question.add_done_callback(_look_away)
            question.cancel()
    if cancelled.done():
        return Approval("cancel")
    if not question.done():
        _log.warning("approver for '%s' did not answer within %s seconds; denying the call", request.tool, timeout)
        return Approval("no", reason="nobody answered in time")
    try:
        return question.result()
    except (Exception, asyncio.CancelledError) as error:
        # The question is a task of its own: this is its approver's doing, whoever else may be cancelled.
        _log.warning("approver for '%s' failed; denying the call", request.tool, exc_info=error)
        return Approval("no", reason="whoever was asked could not answer")


def _look_away(question: asyncio.Task[Any]) -> None:
    """Retrieve the outcome of a question that is not waited for any more, so that asyncio does not log it."""
    if not question.cancelled():
        question.exception()


async def _question(approver: Callable[[ApprovalRequest], Any], request: ApprovalRequest) -> Any:
    is_asynchronous = inspect.iscoroutinefunction(approver) or inspect.iscoroutinefunction(
        getattr(approver, "__call__", None)  # noqa: B004 - not whether it can be called, but how
    )
    answer = approver(request) if is_asynchronous else await _core._AwaitableJob(approver, request)
    return await answer if inspect.isawaitable(answer) else answer


def wake_all(permissions: _core._Permissions) -> None:
    """End every question that waits, from any thread; the core has cancelled them before.

    Args:
        permissions: Where they wait.
    """
    for cancelled in list(_waiting.get(permissions, ())):
        with suppress(RuntimeError):  # That loop was closed meanwhile.
            cancelled.get_loop().call_soon_threadsafe(partial(_resolve, cancelled))


def _resolve(cancelled: asyncio.Future[None]) -> None:
    if not cancelled.done():
        cancelled.set_result(None)
