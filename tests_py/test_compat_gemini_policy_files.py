"""Policy files, settings and safety checkers of `toolcrib.compat.gemini`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.gemini import ReadFileTool
from toolcrib.compat.gemini import (
    Config,
    PolicyDecision,
    PolicyEngine,
    PolicyTier,
    SafetyChecker,
    load_policies,
    rules_of_settings,
)


def decisions(engine: PolicyEngine, *calls: Any) -> list[str]:
    return [engine.check(call).decision.value for call in calls]


def engine_of(path: Path, text: str, mode: str = "default") -> PolicyEngine:
    path.joinpath("rules.toml").write_text(text, encoding="utf-8")
    loaded = load_policies({PolicyTier.USER: [path]}, mode)
    assert loaded.errors == []
    return PolicyEngine({"rules": loaded.rules})


def shell(command: str) -> dict[str, Any]:
    return {"name": "run_shell_command", "args": {"command": command, "about": "x"}}


def test_rules_of_a_file_decide_by_their_priority(tmp_path: Path) -> None:
    engine = engine_of(
        tmp_path,
        """
        [[rule]]
        toolName = ["glob", "read_file"]
        decision = "allow"
        priority = 50

        [[rule]]
        toolName = "read_file"
        argsPattern = '"path":"/etc'
        decision = "deny"
        priority = 100

        [[rule]]
        mcpName = "github"
        decision = "allow"
        priority = 10

        [[rule]]
        mcpName = "github"
        toolName = "delete_repo"
        decision = "deny"
        priority = 11
        """,
    )

    read = [{"name": "read_file", "args": {"path": path}} for path in ("a", "/etc/passwd")]
    assert decisions(engine, {"name": "glob"}, *read) == ["allow", "allow", "deny"]
    servers = [{"name": f"github__{name}"} for name in ("list", "delete_repo")]
    assert decisions(engine, *servers, {"name": "other"}) == ["allow", "deny", "ask_user"]
    assert engine.check({"name": "github__list"}, "another").decision is PolicyDecision.ASK_USER
    assert [rule.priority for rule in engine.get_rules()] == [2.1, 2.05, 2.05, 2.011, 2.01]


def test_commands_are_matched_by_prefix_or_pattern(tmp_path: Path) -> None:
    engine = engine_of(
        tmp_path,
        r"""
        [[rule]]
        toolName = "run_shell_command"
        commandPrefix = ["git status", "echo \"a.b\""]
        decision = "allow"
        priority = 20

        [[rule]]
        toolName = "run_shell_command"
        commandRegex = "rm (-rf|-fr) "
        decision = "deny"
        priority = 30
        """,
    )

    allowed = ["git status", "git status --short", 'echo "a.b"', 'echo "a.b" "c"']
    assert decisions(engine, *map(shell, allowed)) == ["allow"] * 4
    asked = ["git statusx", "xgit status", 'echo "aXb"', "git push"]
    assert decisions(engine, *map(shell, asked)) == ["ask_user"] * 4
    assert decisions(engine, shell("rm -fr /"), shell("rm a")) == ["deny", "ask_user"]


PREFIXES = """
[[rule]]
toolName = "run_shell_command"
commandPrefix = "git"
decision = "allow"
priority = 20

[[rule]]
toolName = "run_shell_command"
commandPrefix = "rm"
decision = "deny"
priority = 30
"""


@pytest.mark.parametrize(
    "rest",
    [
        *("; rm x", " && rm x", " & rm x", " | sh", "\nrm x", "\r\nrm x", " \\\nrm x"),
        *(" > x", " < x", " $(rm x)", " `rm x`"),
    ],
)
def test_a_prefix_allows_one_command_alone(tmp_path: Path, rest: str) -> None:
    engine = engine_of(tmp_path, PREFIXES)

    assert decisions(engine, shell("git log" + rest), shell("git" + rest)) == ["ask_user", "ask_user"]
    assert decisions(engine, shell("rm x" + rest)) == ["deny"]


def test_a_prefix_allows_plain_arguments_of_its_command(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, PREFIXES)
    commands = ["git", "git log", "git\tlog", 'git commit -m "fix (a), é" -- *.py', "git log --since='1 day'"]

    assert decisions(engine, *map(shell, commands)) == ["allow"] * len(commands)


def test_only_the_argument_itself_is_the_command(tmp_path: Path) -> None:
    engine = engine_of(
        tmp_path, PREFIXES + '[[rule]]\ntoolName="run_shell_command"\ncommandRegex="l."\ndecision="allow"\npriority=1\n'
    )
    calls = [
        {"name": "run_shell_command", "args": {"command": "curl x", "note": {"command": inner}}}
        for inner in ("git log", "ls")
    ]

    assert decisions(engine, *calls, shell("ls")) == ["ask_user", "ask_user", "allow"]


@pytest.mark.parametrize(("mode", "decision"), [("default", "ask_user"), ("autoEdit", "allow"), ("yolo", "allow")])
def test_a_rule_with_modes_holds_in_those_only(tmp_path: Path, mode: str, decision: str) -> None:
    text = '[[rule]]\ntoolName = "replace"\ndecision = "allow"\npriority = 15\nmodes = ["autoEdit", "yolo"]\n'

    assert decisions(engine_of(tmp_path, text, mode), {"name": "replace"}) == [decision]


def test_a_higher_tier_decides_before_a_lower_one(tmp_path: Path) -> None:
    low, high = tmp_path / "default.toml", tmp_path / "admin.toml"
    low.write_text('[[rule]]\ndecision = "allow"\npriority = 999\n')
    high.write_text('[[rule]]\ntoolName = "rm"\ndecision = "deny"\npriority = 0\n')

    loaded = load_policies({PolicyTier.DEFAULT: [low], PolicyTier.ADMIN: [str(high)]})

    assert decisions(PolicyEngine({"rules": loaded.rules}), {"name": "rm"}, {"name": "ls"}) == ["deny", "allow"]


@pytest.mark.parametrize(
    ("text", "kind", "details"),
    [
        ("[[rule]\n", "toml_parse", "line 1"),
        ("rule = 3", "rule_validation", "`rule` is not a list of tables"),
        ('[[rule]]\npriority = 1\ntoolName = "a"', "rule_validation", "`decision` and `priority` are required"),
        ('[[rule]]\ndecision = "maybe"\npriority = 1', "rule_validation", "'maybe' is not a valid PolicyDecision"),
        ('[[rule]]\ndecision = "allow"\npriority = 1000', "rule_validation", "from 0 to 999, got 1000"),
        ('[[rule]]\ndecision = "allow"\npriority = true', "rule_validation", "from 0 to 999, got True"),
        ('[[rule]]\ndecision = "allow"\npriority = 1\ntool = "a"', "rule_validation", "unknown fields: tool"),
        ('[[rule]]\ndecision = "allow"\npriority = 1\ntoolName = []', "rule_validation", "the list is empty"),
        ('[[rule]]\ndecision = "allow"\npriority = 1\ntoolName = 3', "rule_validation", "expected a text or a list"),
        ('[[rule]]\ndecision = "deny"\npriority = 1\nargsPattern = "("', "regex_compilation", "rule 1"),
        (
            '[[rule]]\ndecision = "allow"\npriority = 1\ntoolName = "ls"\ncommandPrefix = "a"',
            "rule_validation",
            "need the `toolName` 'run_shell_command'",
        ),
        (
            '[[rule]]\ndecision = "allow"\npriority = 1\ntoolName = "run_shell_command"\n'
            'commandPrefix = "a"\nargsPattern = "b"',
            "rule_validation",
            "exclude each other",
        ),
    ],
)
def test_an_invalid_file_is_skipped_and_reported(tmp_path: Path, text: str, kind: str, details: str) -> None:
    bad, good = tmp_path / "a.toml", tmp_path / "b.toml"
    bad.write_text(f'{text}\n[[rule]]\ndecision = "allow"\npriority = 1\n' if "[[rule]]" in text else text)
    good.write_text('[[rule]]\ntoolName = "ls"\ndecision = "allow"\npriority = 1\n')

    loaded = load_policies({PolicyTier.USER: [tmp_path]})

    assert [rule.tool_name for rule in loaded.rules] == ["ls"]
    (error,) = loaded.errors
    assert (error.file, error.tier, error.kind) == (bad, PolicyTier.USER, kind)
    assert details in error.details
    assert error.suggestion


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    loaded = load_policies({PolicyTier.ADMIN: [tmp_path / "none.toml"]})

    assert [error.kind for error in loaded.errors] == ["file_read"]


def test_settings_stand_for_rules_of_the_user() -> None:
    rules = rules_of_settings(
        allowed_tools=["ls", "rm"],
        exclude_tools=["rm"],
        always_allowed_tools=["evil__one"],
        allowed_servers=["github"],
        excluded_servers=["evil"],
        trusted_servers=["local"],
    )
    engine = PolicyEngine({"rules": rules, "defaultDecision": "deny"})

    names = ["ls", "rm", "evil__one", "evil__two", "github__list", "local__x", "other"]
    assert decisions(engine, *({"name": name} for name in names)) == [
        "allow",
        "deny",
        "allow",
        "deny",
        "allow",
        "allow",
        "deny",
    ]
    assert sorted({round(rule.priority, 3) for rule in rules}) == [2.1, 2.2, 2.3, 2.4, 2.9, 2.95]


def test_checkers_make_decisions_stricter_and_never_looser() -> None:
    seen: list[str] = []

    def checker(name: str, decision: str) -> SafetyChecker:
        def check(tool_call: Any) -> str:
            seen.append(name)
            return decision

        return SafetyChecker(check, priority={"first": 3, "second": 2, "third": 1}[name])

    rules = [{"toolName": "rm", "decision": "deny"}, {"decision": "allow"}]
    checkers = [checker("third", "deny"), checker("first", "allow"), checker("second", "ask_user")]

    asking = PolicyEngine({"rules": rules, "checkers": checkers[1:]})
    assert decisions(asking, {"name": "ls"}, {"name": "rm"}) == ["ask_user", "deny"]
    assert seen == ["first", "second"]  # A call that a rule denies is not looked at.
    silent = PolicyEngine({"rules": rules, "checkers": checkers[1:], "nonInteractive": True})
    assert decisions(silent, {"name": "ls"}) == ["deny"]
    denying = PolicyEngine({"rules": rules, "checkers": checkers})
    assert decisions(denying, {"name": "ls"}) == ["deny"]
    assert [each.priority for each in denying.get_checkers()] == [3, 2, 1]


def test_a_checker_is_about_the_calls_that_it_names(caplog: pytest.LogCaptureFixture) -> None:
    def fails(tool_call: Any) -> str:
        raise RuntimeError("no opinion")

    checker = {"check": fails, "toolName": "shell", "argsPattern": '"command":"rm'}
    engine = PolicyEngine({"rules": [{"decision": "allow"}], "checkers": [checker]})

    calls = [{"name": "shell", "args": {"command": command}} for command in ("ls", "rm a")]
    assert decisions(engine, *calls, {"name": "ls"}) == ["allow", "deny", "allow"]
    assert "a safety checker failed" in caplog.text
    nonsense = PolicyEngine({"rules": [{"decision": "allow"}], "checkers": [SafetyChecker(lambda call: "perhaps")]})
    assert decisions(nonsense, {"name": "ls"}) == ["deny"]


async def test_a_tool_asks_the_checkers_of_its_policy() -> None:
    engine = PolicyEngine({"rules": [{"decision": "allow"}]})
    engine.add_checker(SafetyChecker(lambda call: "deny" if call["args"]["path"].startswith(".") else "allow"))
    tool = ReadFileTool()
    registry = Config(policy_engine=engine, tools=[tool]).get_tool_registry()

    good = await registry.execute_tool_call({"name": "read_file", "args": {"path": "a"}})
    bad = await registry.execute_tool_call({"name": "read_file", "args": {"path": ".ssh"}})

    assert good.error is None
    assert bad.error is not None
    assert (bad.error.type, tool.ran) == ("permission_denied", ["a"])
