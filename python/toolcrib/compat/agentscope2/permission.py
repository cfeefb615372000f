"""Permission: the decisions of toolcrib's policy in the words of AgentScope's permission engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentscope.permission import (
    PermissionBehavior,
    PermissionContext,
    PermissionDecision,
    PermissionMode,
    PermissionRule,
)

from toolcrib import ToolkitView, _core

__all__ = ["asks_by_policy", "decide", "matches", "suggestions", "would_run"]

_ALLOW = PermissionBehavior.ALLOW
_ASK = PermissionBehavior.ASK
_DENY = PermissionBehavior.DENY
_PASSTHROUGH = PermissionBehavior.PASSTHROUGH


def decide(view: ToolkitView, request: Mapping[str, Any], context: PermissionContext) -> PermissionDecision:
    """Decide about a call before it runs. Nothing is raised: an exception would end the reply of the agent."""
    try:
        outlook = view.check(request)
    except Exception as error:
        return PermissionDecision(behavior=_DENY, message=f"The permission of the call cannot be decided: {error}")
    reason = outlook["reason"] or ""
    match outlook["would"]:
        case "deny":
            return PermissionDecision(behavior=_DENY, message=outlook["text"] or reason, decision_reason=reason)
        case "pending" if context.mode == PermissionMode.BYPASS and outlook["cause"] != "permission":
            # The mode lets every question pass, and silence is not an approval.
            message = f"Permission denied for {request['name']}: {reason} (the mode bypass asks no questions)"
            return PermissionDecision(behavior=_DENY, message=message, decision_reason=reason)
        case "pending":
            # Otherwise a rule that the user once accepted would answer every later question.
            return PermissionDecision(behavior=_ASK, message=reason, decision_reason=reason, bypass_immune=True)
        case "run" if outlook["cause"] != "rule" and outlook["decision"] == "allow":
            # No rule said anything: the mode and the rules of the user decide, as about AgentScope's own tools.
            return PermissionDecision(behavior=_PASSTHROUGH, message=reason, decision_reason=reason)
        case _:
            # A rule or an approval allows it, or the approver is asked in the call, or the call answers what is wrong.
            return PermissionDecision(behavior=_ALLOW, message=reason, decision_reason=reason)


def would_run(view: ToolkitView, request: Mapping[str, Any]) -> bool:
    """Return True if a call would run without a question."""
    try:
        return bool(view.check(request)["would"] == "run")
    except Exception:
        return False


def asks_by_policy(view: _core.Toolkit | ToolkitView, request: Mapping[str, Any]) -> bool:
    """Return True if the policy asks about a call, and not only the tool itself."""
    try:
        return bool(view.check(request)["cause"] != "permission")
    except Exception:
        return True


def suggestions(view: ToolkitView, name: str, tool_input: Mapping[str, Any]) -> list[PermissionRule] | None:
    """Suggest a rule for these arguments only, if toolcrib asks; None for AgentScope's suggestion of any arguments."""
    if would_run(view, {"name": name, "input": tool_input}):
        return None
    content = json.dumps(tool_input, ensure_ascii=False, sort_keys=True, default=str)
    return [PermissionRule(tool_name=name, rule_content=content, behavior=_ALLOW, source="suggested")]


def matches(content: str | None, tool_input: Mapping[str, Any]) -> bool:
    """Return True if the content of a rule fits the arguments of a call.

    Args:
        content: None or an empty text for any arguments, `argument=value` for one of them, or a JSON object for all.
        tool_input: The arguments.
    """
    if not content:
        return True
    if content.startswith("{"):
        try:
            return bool(json.loads(content) == tool_input)
        except ValueError:
            return False
    name, equals, value = content.partition("=")
    if not equals or name not in tool_input:
        return False
    given = tool_input[name]
    return value == (given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str))
