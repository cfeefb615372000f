"""Policy files of gemini-cli: TOML with a `[[rule]]` for each rule, and the rules that its settings stand for."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from toolcrib._core import _name_list, _read_toml
from toolcrib.compat.gemini.bus import ALWAYS_ALLOW_PRIORITY
from toolcrib.compat.gemini.policy import PolicyDecision, PolicyRule
from toolcrib.compat.gemini.spelling import snake_keys
from toolcrib.errors import InvalidRuleError

__all__ = ["LoadedPolicies", "PolicyFileError", "PolicyTier", "load_policies", "rules_of_settings"]

SHELL = "run_shell_command"
"""The tool whose commands `commandPrefix` and `commandRegex` are about."""

# The beginning of the command in the arguments; a zero byte is in no argument, so that no other one passes for it.
COMMAND = r'\0"command":"'

# The end of a prefix: what follows begins a new word, so that `git` is not `gitk`.
WORD_END = r'(?:[\s"\\]|$)'

# The same, where nothing follows but the arguments of one command: no other command, redirection or substitution.
PLAIN_END = r'(?:(?: |\\t)(?:[^;&|<>`$"\\]|\\["t])*)?"\0'

MOST_PRIORITY = 999

FIELDS = frozenset(
    (
        "tool_name",
        "mcp_name",
        "args_pattern",
        "command_prefix",
        "command_regex",
        "decision",
        "priority",
        "modes",
    )
)


class PolicyTier(IntEnum):
    """The origin of rules: those of a higher tier decide before those of a lower one, whatever their priorities."""

    DEFAULT = 1
    USER = 2
    ADMIN = 3


@dataclass(frozen=True)
class PolicyFileError:
    """A policy file or a rule in it that was skipped.

    Args:
        file: The file.
        tier: The tier of the file.
        kind: `"file_read"`, `"toml_parse"`, `"rule_validation"` or `"regex_compilation"`.
        details: The reason.
        suggestion: The way to repair it.
    """

    file: Path
    tier: PolicyTier
    kind: str
    details: str
    suggestion: str


class LoadedPolicies(NamedTuple):
    """The rules of policy files, and the files that were skipped."""

    rules: list[PolicyRule]
    errors: list[PolicyFileError]


def load_policies(
    files: Mapping[PolicyTier, Iterable[str | os.PathLike[str]]], mode: str = "default"
) -> LoadedPolicies:
    """Load the policy files of each tier.

    The priority of a rule in a file is a whole number from 0 to 999; that of the `PolicyRule` is the tier plus a
    thousandth of it. An invalid file is skipped as a whole, and is an error in the result.

    Args:
        files: The files, or directories of `.toml` files, by tier.
        mode: The approval mode, such as `"default"`, `"autoEdit"` or `"yolo"`; a rule with `modes` holds in those only.

    Example:
        ```python
        loaded = load_policies({PolicyTier.USER: ["policies"]})
        engine = PolicyEngine({"rules": loaded.rules})
        ```
    """
    loaded = LoadedPolicies([], [])
    for tier, paths in files.items():
        for path in _toml_files(paths):
            try:
                loaded.rules.extend(_read(path, PolicyTier(tier), mode))
            except _InvalidFile as error:
                loaded.errors.append(PolicyFileError(path, PolicyTier(tier), *error.args))
    return loaded


def rules_of_settings(
    *,
    allowed_tools: Iterable[str] = (),
    exclude_tools: Iterable[str] = (),
    always_allowed_tools: Iterable[str] = (),
    allowed_servers: Iterable[str] = (),
    excluded_servers: Iterable[str] = (),
    trusted_servers: Iterable[str] = (),
) -> list[PolicyRule]:
    """Return the rules of the user's tier that settings stand for.

    Args:
        allowed_tools: Tools that need no confirmation.
        exclude_tools: Tools that are denied.
        always_allowed_tools: Tools that the user has allowed for ever.
        allowed_servers: MCP servers whose tools are allowed.
        excluded_servers: MCP servers whose tools are denied.
        trusted_servers: MCP servers whose tools need no confirmation.
    """
    user = int(PolicyTier.USER)
    settings: list[tuple[Iterable[str], PolicyDecision, float, str]] = [
        (always_allowed_tools, PolicyDecision.ALLOW, ALWAYS_ALLOW_PRIORITY, ""),
        (excluded_servers, PolicyDecision.DENY, user + 0.9, "__*"),
        (exclude_tools, PolicyDecision.DENY, user + 0.4, ""),
        (allowed_tools, PolicyDecision.ALLOW, user + 0.3, ""),
        (trusted_servers, PolicyDecision.ALLOW, user + 0.2, "__*"),
        (allowed_servers, PolicyDecision.ALLOW, user + 0.1, "__*"),
    ]
    return [
        PolicyRule(decision, name + suffix, priority=priority)
        for names, decision, priority, suffix in settings
        for name in _name_list("names of tools and servers", names)
    ]


class _InvalidFile(Exception):
    """The kind, the details and the suggestion of a `PolicyFileError`."""


def _toml_files(paths: Iterable[str | os.PathLike[str]]) -> Iterator[Path]:
    for path in map(Path, [paths] if isinstance(paths, str | os.PathLike) else paths):
        if path.is_dir():
            yield from sorted(path.glob("*.toml"))
        else:
            yield path


def _read(path: Path, tier: PolicyTier, mode: str) -> list[PolicyRule]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _InvalidFile("file_read", str(error), "Check that the file exists and is UTF-8 text.") from error
    try:
        document = _read_toml(text)
    except ValueError as error:
        raise _InvalidFile("toml_parse", str(error), "Check the TOML syntax: quotes, brackets, [[rule]].") from error
    entries = document.get("rule", [])
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise _InvalidFile("rule_validation", "`rule` is not a list of tables", "Begin each rule with [[rule]].")
    rules: list[PolicyRule] = []
    for number, entry in enumerate(entries, 1):
        try:
            rules.extend(_rules(snake_keys(entry), tier, mode))
        except InvalidRuleError as error:
            suggestion = "Use a regular expression without look-around and backreferences."
            raise _InvalidFile("regex_compilation", f"rule {number}: {error}", suggestion) from error
        except (TypeError, ValueError) as error:
            suggestion = "See the fields of rules in the documentation."
            raise _InvalidFile("rule_validation", f"rule {number}: {error}", suggestion) from error
    return rules


def _rules(entry: dict[str, Any], tier: PolicyTier, mode: str) -> Iterator[PolicyRule]:
    """Make the rules of an entry: one for each tool and each command that it names."""
    unknown = sorted(entry.keys() - FIELDS)
    if unknown:
        raise ValueError(f"unknown fields: {', '.join(unknown)}")
    if "decision" not in entry or "priority" not in entry:
        raise ValueError("`decision` and `priority` are required")
    priority = entry["priority"]
    if not isinstance(priority, int) or isinstance(priority, bool) or not 0 <= priority <= MOST_PRIORITY:
        raise ValueError(f"invalid `priority`: expected a whole number from 0 to {MOST_PRIORITY}, got {priority!r}")
    decision = PolicyDecision(entry["decision"])
    names, patterns = list(_names(entry)), list(_patterns(entry, decision))
    modes = _texts(entry, "modes")
    made = [PolicyRule(decision, name, pattern, tier + priority / 1000) for name in names for pattern in patterns]
    if not modes or mode in modes:
        yield from made


def _names(entry: Mapping[str, Any]) -> Iterator[str | None]:
    names = _texts(entry, "tool_name")
    if "command_prefix" in entry or "command_regex" in entry:
        if names != [SHELL] or "mcp_name" in entry:
            raise ValueError(f"`commandPrefix` and `commandRegex` need the `toolName` {SHELL!r}")
        if "args_pattern" in entry or ("command_prefix" in entry and "command_regex" in entry):
            raise ValueError("`commandPrefix`, `commandRegex` and `argsPattern` exclude each other")
    if "mcp_name" not in entry:
        yield from names
        if not names:
            yield None
        return
    servers = _texts(entry, "mcp_name")
    if len(servers) != 1:
        raise ValueError("`mcpName` is the name of one server")
    for name in names or ["*"]:
        yield f"{servers[0]}__{name}"


def _patterns(entry: Mapping[str, Any], decision: PolicyDecision) -> Iterator[str | None]:
    if "command_prefix" in entry:
        end = PLAIN_END if decision is PolicyDecision.ALLOW else WORD_END
        for prefix in _texts(entry, "command_prefix"):
            # As it is in compact JSON.
            yield COMMAND + _literal(json.dumps(prefix, ensure_ascii=False)[1:-1]) + end
    elif "command_regex" in entry:
        for pattern in _texts(entry, "command_regex"):
            yield COMMAND + pattern
    elif "args_pattern" in entry:
        yield from _texts(entry, "args_pattern")
    else:
        yield None


def _literal(text: str) -> str:
    return re.sub(r"[\\.+*?()|\[\]{}^$#&~-]", r"\\\g<0>", text)


def _texts(entry: Mapping[str, Any], field: str) -> list[str]:
    """Return the texts of a field that is a text or a list of texts."""
    given = entry.get(field, [])
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise TypeError(f"invalid `{field}`: expected a text or a list of texts")
    if field in entry and not texts:
        raise ValueError(f"invalid `{field}`: the list is empty")
    return texts
