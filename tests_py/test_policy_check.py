"""A rule that names what no tool has is reported: by a log record at the first use, and by `Policy.check`."""

from __future__ import annotations

import datetime
import decimal
import ipaddress
import logging
import pathlib
import uuid
from typing import Any, Literal, NamedTuple

import pytest

from toolcrib import Policy, Toolkit
from toolcrib.policy import Rule


def files(policy: Policy) -> Toolkit:
    toolkit = Toolkit(run_in="inline", policy=policy)
    toolkit.create_tool_group("files", "Files.", active=True)

    @toolkit.tool(groups=["files"], tags=["local"], kind="read")
    def read(path: str, options: dict[str, int] | None = None) -> str:
        return path

    @toolkit.tool(groups=["files"], kind="delete")
    def delete_file(path: str) -> str:
        return path

    @toolkit.tool
    def pay(amount: decimal.Decimal) -> str:
        return "paid"

    return toolkit


PROBLEMS: list[tuple[dict[str, Any], list[str]]] = [
    ({"tool": "read"}, []),
    ({"tool": "*"}, []),
    ({"tool": "del*"}, []),
    ({"kind": "execute"}, []),
    ({"caller": "anyone"}, []),
    ({"group": "files", "tag": "local"}, []),
    ({"tool": "read", "arguments": {"path": "x", "options.depth": 1, "options[*]": 2}}, []),
    ({"arguments": {"path": {"prefix": "/etc"}}}, []),
    ({"tool": "raed"}, ["`tool`: unknown tool `raed`: did you mean `read`? (known: delete_file, pay, read)"]),
    ({"tool": ["read", "red"]}, ["`tool`: unknown tool `red`: did you mean `read`?"]),
    ({"tool": "del_*"}, ["`tool`: `del_*` matches no tool (known: delete_file, pay, read)"]),
    ({"group": "fils"}, ["`group`: unknown group `fils`: did you mean `files`?"]),
    ({"tag": "locl"}, ["`tag`: unknown tag `locl`: did you mean `local`?"]),
    ({"server": "github"}, ["`server`: unknown server `github`"]),
    ({"tool": "delete_file", "tag": "local"}, ["`tool`, `tag`: no tool fulfils all of these together"]),
    (
        {"tool": "read", "arguments": {"pth": {"prefix": "/etc"}}},
        ["`arguments.pth`: tool `read` has no argument `pth`: did you mean `path`? (known: options, path)"],
    ),
    (
        {"arguments": {"pth": "x"}},
        ["`arguments.pth`: none of the 3 tools that the rule matches has the argument `pth`"],
    ),
    ({"tool": "read", "arguments": {"path.end": "x"}}, ["`arguments.path.end`: tool `read` has no argument `end`"]),
    ({"tool": "read", "arguments": {"path[0]": "x"}}, ["`arguments.path[0]`: tool `read` has no argument `[0]`"]),
    ({"tool": "read", "arguments": {"/path/0": "x"}}, ["`arguments./path/0`: tool `read` has no argument `0`"]),
    ({"tool": "read", "arguments": {"path[*]": "x"}}, ["`arguments.path[*]`: tool `read` has no argument `[*]`"]),
    (
        {"tool": "pay", "arguments": {"amount": "5e2"}},
        ['`arguments.amount`: tool `pay` gets "5e2" as 500, which is what rules see: write 500'],
    ),
    (
        {"tool": "pay", "arguments": {"amount": {"not_equals": "x"}, "amuont": 1}},
        [
            "`arguments.amuont`: tool `pay` has no argument `amuont`: did you mean `amount`?",
            '`arguments.amount`: "x" does not fit the argument of tool `pay`',
        ],
    ),
]


@pytest.mark.parametrize(("fields", "expected"), PROBLEMS, ids=str)
@pytest.mark.parametrize("use", ["call", "schemas", "view", "check", "file"])
def test_a_misspelt_name_is_reported(
    fields: dict[str, Any],
    expected: list[str],
    use: str,
    caplog: pytest.LogCaptureFixture,
    tmp_path: pathlib.Path,
) -> None:
    policy = Policy([Rule("deny", id="mine", **fields)])
    if use == "file":
        (tmp_path / "rules.toml").write_text(f'[[rule]]\nid = "mine"\ndecision = "deny"\n{_toml(fields)}')
        policy = Policy.from_files(project=tmp_path / "rules.toml")
    toolkit = files(policy)

    assert caplog.records == [], "tools may be registered after the rules"
    for _ in range(3):
        if use == "schemas":
            toolkit.schemas("openai")
        elif use == "view":
            toolkit.view(groups=["files"]).get_json_schemas()
        elif use == "check":
            toolkit.check({"name": "read", "input": {"path": "x"}})
        else:
            toolkit.run("read", path="x")

    records = [record for record in caplog.records if record.levelno == logging.WARNING]
    messages = [record.getMessage() for record in records]
    checked = policy.check(toolkit)
    assert len(messages) == len(checked) == len(expected), (messages, checked)
    for message, problem, part in zip(messages, checked, expected, strict=True):
        assert part in message
        assert part in problem
        assert "rule `mine`" in message
        assert ("rules.toml:1" in problem) == (use == "file")


def _toml(fields: dict[str, Any]) -> str:
    def value(of: Any) -> str:
        if isinstance(of, dict):
            return "{" + ", ".join(f'"{key}" = {value(each)}' for key, each in of.items()) + "}"
        return "[" + ", ".join(map(value, of)) + "]" if isinstance(of, list) else repr(of)

    return "\n".join(f"{key} = {value(of)}" for key, of in fields.items())


def test_a_changed_rule_is_looked_at_again(caplog: pytest.LogCaptureFixture) -> None:
    policy = Policy([Rule("deny", tool="raed")])
    toolkit = files(policy)

    toolkit.run("pay", amount=1)
    policy.add(Rule("ask", tool="pai"))
    toolkit.run("pay", amount=1)

    assert [record.getMessage().split(": ")[2] for record in caplog.records] == [
        "unknown tool `raed`",
        "unknown tool `pai`",
    ]


def test_a_toolkit_without_tools_is_not_looked_at(caplog: pytest.LogCaptureFixture) -> None:
    policy = Policy([Rule("deny", tool="work")])
    toolkit = Toolkit(policy=policy)

    toolkit.get_json_schemas()
    assert policy.check(toolkit) == []
    toolkit.register_tool_function(lambda: "x", name="work")
    toolkit.get_json_schemas()

    assert caplog.records == []


def test_a_saved_approval_may_be_of_a_tool_that_is_gone() -> None:
    policy = Policy([Rule("allow", tool="gone", answers="ask")])

    assert policy.check(files(policy)) == []


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (500, None),
        ({"in": [1, 2.5]}, None),
        ({"gt": 3}, None),
        ("5e2", 'tool `pay` gets "5e2" as 500, which is what rules see: write 500'),
        ({"in": ["1/2"]}, '"1/2" does not fit the argument of tool `pay`'),
        ({"not_equals": "x"}, '"x" does not fit the argument of tool `pay`'),
    ],
)
def test_a_value_that_rules_never_see_is_reported(condition: Any, expected: str | None) -> None:
    policy = Policy([Rule("deny", id="mine", tool="pay", arguments={"amount": condition})])

    problems = policy.check(files(policy))

    assert problems == ([] if expected is None else [f"rule `mine`: `arguments.amount`: {expected}"])


@pytest.mark.parametrize(
    ("annotation", "condition", "seen"),
    [
        (uuid.UUID, "12345678-1234-5678-1234-56781234ABCD", "12345678-1234-5678-1234-56781234abcd"),
        (datetime.timedelta, {"equals": "PT60M"}, "PT1H"),
        (datetime.datetime, {"equals": "2026-11-16T01:00:00+01:00"}, "2026-11-16T00:00:00Z"),
        (ipaddress.IPv6Network, {"in": ["2001:DB8::/32"]}, "2001:db8::/32"),
        (pathlib.Path, {"not_equals": "a/./b"}, "a/b"),
    ],
    ids=str,
)
def test_a_call_logs_that_a_value_is_spelled_otherwise_than_rules_see_it(
    annotation: Any, condition: Any, seen: str, caplog: pytest.LogCaptureFixture
) -> None:
    def work(x: Any) -> str:
        return "done"

    work.__annotations__["x"] = annotation
    policy = Policy([Rule("deny", tool="work", arguments={"x": condition})])
    toolkit = Toolkit(run_in="inline", policy=policy, tools=[work])

    toolkit.run("work", x=seen)

    (message,) = [record.getMessage() for record in caplog.records]
    assert f'which is what rules see: write "{seen}"' in message
    assert message.startswith(policy.check(toolkit)[0])


class Transfer(NamedTuple):
    amount: int
    to: str


@pytest.mark.parametrize(
    ("annotation", "path", "is_known"),
    [
        (Transfer, "x.amount", False),
        (Transfer, "x[0]", True),
        (list[str], "x.end", False),
        (list[str], "x[*]", True),
        (list[Transfer], "x[*].amount", False),
        (dict[str, int], "x[0]", False),
        (dict[str, int], "x[*]", True),
        (Literal["a", "b"], "x.end", False),
        (list[int] | None, "/x/0", True),
        (Any, "x.end[0]", True),
    ],
    ids=str,
)
def test_a_path_into_a_value_without_such_parts_is_reported(annotation: Any, path: str, is_known: bool) -> None:
    def work(x: Any) -> str:
        return "done"

    work.__annotations__["x"] = annotation
    policy = Policy([Rule("deny", tool="work", arguments={path: {"gt": 100}})])

    problems = policy.check(Toolkit(tools=[work]))

    assert len(problems) == (0 if is_known else 1), problems
    assert is_known or "tool `work` has no argument" in problems[0]


def test_the_errors_of_files_are_among_the_problems(tmp_path: pathlib.Path) -> None:
    (tmp_path / "rules.toml").write_text('[[rule]]\ntool = "read"\ndecision = "alow"\n')
    policy = Policy.from_files(project=tmp_path / "rules.toml")

    assert policy.check(files(policy)) == policy.problems != []
