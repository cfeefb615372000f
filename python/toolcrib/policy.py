"""Permissions: rules, approval requests and their answers, and the question to an approver.

An approver is asked in a thread or on the event loop, with a timeout; the core evaluates its answer. asyncio is
imported when it is first needed.
"""

from __future__ import annotations

import inspect
import logging
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, Protocol
from weakref import WeakKeyDictionary

from toolcrib import _core
from toolcrib._background import resolve
from toolcrib._core import Approvals, Explanation, Policy

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Approval", "ApprovalRequest", "ApprovalStore", "Approvals", "Explanation", "Policy", "Rule"]

_log = logging.getLogger("toolcrib")

_open_questions: WeakKeyDictionary[_core._Permissions, dict[asyncio.Future[None], str | None]] = WeakKeyDictionary()
"""For each question that waits for its answer, the future that cancels it, and the id of its session."""


@dataclass(frozen=True)
class Rule:
    """A rule of a policy: the decision for all calls that match its conditions.

    Args:
        decision: `"allow"`, `"ask"` or `"deny"`.
        tool: The name of the tool, a glob such as `"file_*"`, or a list of these.
        server: The same for the tool's MCP server.
        group: The same for the tool's groups, of which one must match.
        tag: The same for the tool's tags.
        kind: The kind of the tool, or a list of kinds.
        caller: The same as `tool` for the caller; `""` matches calls without a caller.
        arguments: Conditions on arguments, by their names or paths.
        args_pattern: A regular expression that is searched in the arguments as JSON text.
        priority: The priority in its tier, from 0 to 999; higher ones go first.
        tier: `"admin"`, `"user"`, `"project"` or `"default"`, in the order in which they are tried.
        id: Its name; generated if it has none.
        reason: The reason, for the model and the approver.
        shadow: If true, the rule only records its decision.
        answers: Makes the rule a saved approval, which applies only if all other rules ask: `"ask"` for every
            question about the matching calls, or one question as saved by the answer `"always"`.
    """

    decision: Literal["allow", "ask", "deny"]
    tool: str | Sequence[str] | None = None
    server: str | Sequence[str] | None = None
    group: str | Sequence[str] | None = None
    tag: str | Sequence[str] | None = None
    kind: str | Sequence[str] | None = None
    caller: str | Sequence[str] | None = None
    arguments: Mapping[str, Any] | None = None
    args_pattern: str | None = None
    priority: int | None = None
    tier: Literal["default", "project", "user", "admin"] | None = None
    id: str | None = None
    reason: str | None = None
    shadow: bool | None = None
    answers: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are set, as in a rule file."""
        given = ((entry.name, getattr(self, entry.name)) for entry in fields(self))
        return {name: value for name, value in given if value is not None}


@dataclass(frozen=True)
class ApprovalRequest:
    """A request for approval: the argument of an approver.

    Attributes:
        tool: The tool's name.
        arguments: A copy of the arguments, with secrets redacted (`***`).
        caller: The caller of the view, if there is one.
        rule: The id of the rule that asks; None if the tool's permission or the policy's default asks.
        reason: The reason for the request.
        kind: The kind of the tool.
        description: The tool's description.
        call_id: The id of the call.
        session: The id of the session, if the call is part of one.
        deps: The dependencies of the session.
        path: The names of the agents that called each other until this call, from the outermost one; empty outside of
            sub-agents.
        summary: The description of this call by a declared tool, `describe()` of its invocation.
        locations: The places that this call of a declared tool affects, `locations()` of its invocation.
        details: The details that `should_confirm()` of a declared tool returns, such as a diff.
    """

    tool: str
    arguments: dict[str, Any]
    caller: str | None
    rule: str | None
    reason: str
    kind: str
    description: str | None
    call_id: str
    session: str | None = None
    deps: Any = None
    path: tuple[str, ...] = ()
    summary: str | None = None
    locations: tuple[Any, ...] = ()
    details: Any = None


@dataclass(frozen=True)
class Approval:
    """An answer to an approval request, with details.

    Args:
        answer: `"once"`, `"run"` for every such call of this run, `"always"` to save it, `"no"`, or `"cancel"` to deny
            all waiting calls; True is `"once"` and False is `"no"`.
        arguments: Arguments to run instead; they are validated and checked against the rules again.
        by: The person who answered, for the audit log.
        reason: The reason, for the model.
    """

    answer: Literal["once", "run", "always", "no", "cancel"] | bool
    arguments: Mapping[str, Any] | None = None
    by: str | None = None
    reason: str | None = None


class ApprovalStore(Protocol):
    """A store of answered calls for `Approvals`, which several processes share, such as a database."""

    def claim(self, key: str, expires: float, /) -> bool:
        """Record a key, atomically and durably.

        Args:
            key: The id of the pending call.
            expires: The time in seconds since 1970 from which the key may be forgotten.

        Returns:
            True for the first claim of this key by any process, False for all others.
        """


async def _ask(
    permissions: _core._Permissions,
    approver: Callable[[ApprovalRequest], Any],
    request: ApprovalRequest,
    timeout: float | None,
) -> object:
    """Ask the approver and return its answer; a timeout and an error count as a no.

    Args:
        permissions: The permissions that the question belongs to; `_cancel_all` of them cancels it.
        approver: The approver.
        request: The question.
        timeout: The number of seconds to wait; None to wait without limit.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    cancelled: asyncio.Future[None] = loop.create_future()
    question = loop.create_task(_answer_of(approver, request), name=f"approval of {request.tool}")
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


async def _answer_of(function: Callable[[Any], Any], question: object) -> Any:
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


def _cancel_all(permissions: _core._Permissions, session: str | None) -> None:
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
