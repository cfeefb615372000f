"""Who may do what: rules, requests for approval and the answers to them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from toolcrib._core import Approvals, Explanation, Policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Approval", "ApprovalRequest", "Approvals", "Explanation", "Policy", "Rule"]


@dataclass(frozen=True)
class Rule:
    """Say what becomes of the calls that all conditions fit.

    Args:
        decision: `"allow"`, `"ask"` or `"deny"`.
        tool: The name of the tool, a glob such as `"file_*"`, or a list of these.
        server: The same for the MCP server it comes from.
        group: The same for the groups that hold it, of which one has to fit.
        tag: The same for its tags.
        kind: What it does to the world, or a list of these.
        caller: The same as `tool` for who calls; `""` is a call that nobody is named for.
        arguments: Conditions on arguments, by their names or paths.
        args_pattern: A regular expression that is looked for in the arguments as JSON text.
        priority: Which rules of its tier it goes before, from 0 to 999.
        tier: Whose rule it is: `"default"`, `"project"`, `"user"` or `"admin"`; the later go first.
        id: Its name; one is made if it has none.
        reason: Why, in words for the model and for whoever is asked.
        shadow: Whether it only records what it would do.
        answers: What makes it a lasting yes, which counts only where somebody would be asked: `"ask"` for every
            question about the calls that it is about, or one question as an answer `"always"` has saved it.
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
        """Give what was said, as it would stand in a file."""
        given = ((entry.name, getattr(self, entry.name)) for entry in fields(self))
        return {name: value for name, value in given if value is not None}


@dataclass(frozen=True)
class ApprovalRequest:
    """Say what somebody is asked to approve.

    Attributes:
        tool: The tool's name.
        arguments: What it will run with: a copy, in which secrets are shown as `***`.
        caller: Who calls, if the call came through a view that has a caller.
        rule: The id of the rule that asks; None if the tool itself or the policy's default does.
        reason: Why.
        kind: What the tool does to the world.
        description: What the model is told about the tool.
        call_id: The id of the call.
    """

    tool: str
    arguments: dict[str, Any]
    caller: str | None
    rule: str | None
    reason: str
    kind: str
    description: str | None
    call_id: str


@dataclass(frozen=True)
class Approval:
    """Answer a request for approval in more than one word.

    Args:
        answer: `"once"`, `"run"` for every such call of this run, `"always"` to remember it, `"no"`, or `"cancel"` to
            deny everything that waits; True is `"once"` and False is `"no"`.
        arguments: What to run it with instead; checked against the schema and the rules again.
        by: Who answered, for the audit.
        reason: Why, for the model.
    """

    answer: Literal["once", "run", "always", "no", "cancel"] | bool
    arguments: Mapping[str, Any] | None = None
    by: str | None = None
    reason: str | None = None
