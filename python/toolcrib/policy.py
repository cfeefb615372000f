"""Permissions: rules, approval requests and their answers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, Protocol

from toolcrib._core import Approvals, Explanation, Policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Approval", "ApprovalRequest", "ApprovalStore", "Approvals", "Explanation", "Policy", "Rule"]


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
