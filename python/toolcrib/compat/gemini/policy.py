"""`PolicyEngine`: rules that allow or deny tool calls, or ask the user about them."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

from toolcrib.compat.gemini.spelling import read_fields, snake_keys
from toolcrib.policy import Policy, Rule

__all__ = ["PolicyCheck", "PolicyDecision", "PolicyEngine", "PolicyRule", "SafetyChecker"]

_log = logging.getLogger("toolcrib")


class PolicyDecision(Enum):
    """The decision about a call."""

    ALLOW = "allow"
    DENY = "deny"
    ASK_USER = "ask_user"


@dataclass(frozen=True)
class PolicyRule:
    """The decision for all calls that match.

    Args:
        decision: `"allow"`, `"deny"` or `"ask_user"`, or a `PolicyDecision`.
        tool_name: The name of a tool, `"SERVER__*"` for all tools of an MCP server, another name that ends with `*` for
            all tools whose names begin so, or None for every tool.
        args_pattern: A regular expression that is searched in the arguments as compact JSON with sorted keys; it
            matches no call without arguments.
        priority: The number by which rules are tried, the highest first.

    Raises:
        ValueError: If the decision is unknown, or the priority not a number.
        InvalidRuleError: If the regular expression is invalid; look-around and backreferences are.
    """

    decision: PolicyDecision | str
    tool_name: str | None = None
    args_pattern: str | None = None
    priority: float = 0

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "decision", PolicyDecision(self.decision))
        if math.isnan(self.priority):
            raise ValueError("invalid `priority`: expected a number, got nan")
        _ = self._pattern

    @cached_property
    def _pattern(self) -> Policy | None:
        """The pattern, as the only rule of a policy of the core."""
        if self.args_pattern is None:
            return None
        return Policy([Rule("deny", args_pattern=self.args_pattern)], default="allow")

    def matches(self, name: str | None, args: Any, server_name: str | None) -> bool:
        """Return true if the rule decides about a call."""
        return self._names(name, server_name) and (self._pattern is None or self._finds(args))

    def _names(self, name: str | None, server_name: str | None) -> bool:
        rule = self.tool_name
        if rule is None:
            return True
        if name is None or not rule.endswith("*"):
            return name == rule
        if rule.endswith("__*") and server_name is not None and server_name != rule[:-3]:
            return False  # A server cannot pass for another by the names of its tools.
        return name.startswith(rule[:-1])

    def _finds(self, args: Any) -> bool:
        assert self._pattern is not None
        if args is None:
            return False
        try:
            return self._pattern.explain({"name": "call", "args": _acyclic(args, ())}).decision == "deny"
        except ValueError:
            # Arguments that are not JSON: no pattern can be searched in them, so none allows them.
            return self.decision is not PolicyDecision.ALLOW


@dataclass(frozen=True)
class SafetyChecker:
    """A function that looks at calls which the rules do not deny, and may make the decision stricter.

    Args:
        check: Called with the call: a mapping or an object with `name` and `args`. Returns a decision: `"deny"` is
            final, `"ask_user"` asks the user, and `"allow"` changes nothing. An exception denies the call.
        tool_name: As in a `PolicyRule`.
        args_pattern: As in a `PolicyRule`.
        priority: The number by which checkers run, the highest first.
    """

    check: Callable[[Any], PolicyDecision | str]
    tool_name: str | None = None
    args_pattern: str | None = None
    priority: float = 0

    def __post_init__(self) -> None:
        """Check the fields."""
        _ = self._rule

    @cached_property
    def _rule(self) -> PolicyRule:
        # A rule that denies matches arguments that no pattern can be searched in.
        return PolicyRule(PolicyDecision.DENY, self.tool_name, self.args_pattern, self.priority)

    def decide(self, tool_call: Any, server_name: str | None) -> PolicyDecision:
        """Return the decision about a call: `ALLOW` if the checker is about other calls."""
        if not self._rule.matches(_field(tool_call, "name"), _field(tool_call, "args"), server_name):
            return PolicyDecision.ALLOW
        try:
            return PolicyDecision(self.check(tool_call))
        except Exception:
            _log.exception("a safety checker failed, and the call is denied")
            return PolicyDecision.DENY


class PolicyCheck(NamedTuple):
    """The decision about a call, and the rule that decided; None for the default decision."""

    decision: PolicyDecision
    rule: PolicyRule | None


class PolicyEngine:
    """Rules in the order of their priority: the first that matches decides.

    Args:
        config: `rules`, a list of `PolicyRule` or mappings of their fields; `checkers`, the same of `SafetyChecker`;
            `defaultDecision`, by default `"ask_user"`; and `nonInteractive`, which turns every `"ask_user"` into
            `"deny"`. Fields are spelled as here or in `snake_case`.
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        """Read the rules."""
        fields = snake_keys(config or {})
        self._rules: list[PolicyRule] = []
        self._checkers: list[SafetyChecker] = []
        self._default = PolicyDecision(fields.pop("default_decision", PolicyDecision.ASK_USER))
        self._is_interactive = not fields.pop("non_interactive", False)
        for rule in fields.pop("rules", ()):
            self.add_rule(rule)
        for checker in fields.pop("checkers", ()):
            self.add_checker(checker)
        if fields:
            raise TypeError(f"unknown fields of a policy engine: {', '.join(fields)}")

    def check(self, tool_call: Any, server_name: str | None = None) -> PolicyCheck:
        """Decide about a call.

        Args:
            tool_call: The call: a mapping or an object with `name` and `args`.
            server_name: The MCP server that the tool belongs to.
        """
        name, args = _field(tool_call, "name"), _field(tool_call, "args")
        rule = next((rule for rule in self._rules if rule.matches(name, args, server_name)), None)
        decision = self._default if rule is None else PolicyDecision(rule.decision)
        for checker in self._checkers if decision is not PolicyDecision.DENY else ():
            found = checker.decide(tool_call, server_name)
            if found is PolicyDecision.DENY:
                return PolicyCheck(found, rule)
            decision = decision if found is PolicyDecision.ALLOW else found
        if decision is PolicyDecision.ASK_USER and not self._is_interactive:
            decision = PolicyDecision.DENY
        return PolicyCheck(decision, rule)

    def add_rule(self, rule: PolicyRule | Mapping[str, Any]) -> None:
        """Add a rule, behind those of the same priority."""
        rules = [*self._rules, read_fields(PolicyRule, rule)]
        self._rules = sorted(rules, key=lambda rule: -rule.priority)

    def add_checker(self, checker: SafetyChecker | Mapping[str, Any]) -> None:
        """Add a safety checker, behind those of the same priority."""
        checkers = [*self._checkers, read_fields(SafetyChecker, checker)]
        self._checkers = sorted(checkers, key=lambda checker: -checker.priority)

    def get_checkers(self) -> list[SafetyChecker]:
        """Return the safety checkers in the order in which they run."""
        return list(self._checkers)

    def remove_rules_for_tool(self, tool_name: str) -> None:
        """Remove the rules that name this tool."""
        self._rules = [rule for rule in self._rules if rule.tool_name != tool_name]

    def get_rules(self) -> list[PolicyRule]:
        """Return the rules in the order in which they are tried."""
        return list(self._rules)


def _field(tool_call: Any, name: str) -> Any:
    return tool_call.get(name) if isinstance(tool_call, Mapping) else getattr(tool_call, name, None)


def _acyclic(value: Any, above: tuple[int, ...]) -> Any:
    """Copy a value, with a text in place of each container that contains itself, and numbers as JavaScript has them."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, (Mapping, list, tuple)):
        return value
    if id(value) in above:
        return "[Circular]"
    if len(above) > 128:
        raise ValueError("the arguments are nested too deeply")
    above = (*above, id(value))
    if isinstance(value, Mapping):
        return {key: _acyclic(item, above) for key, item in value.items()}
    return [_acyclic(item, above) for item in value]
