"""A rule that names what no tool has is reported: by a log record at the first use, and by `Policy.check`."""

from __future__ import annotations

import decimal
import logging
import pathlib
from typing import Any

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
]


@pytest.mark.parametrize(("fields", "expected"), PROBLEMS, ids=str)
@pytest.mark.parametrize("use", ["call", "schemas", "view", "file"])
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


def test_the_errors_of_files_are_among_the_problems(tmp_path: pathlib.Path) -> None:
    (tmp_path / "rules.toml").write_text('[[rule]]\ntool = "read"\ndecision = "alow"\n')
    policy = Policy.from_files(project=tmp_path / "rules.toml")

    assert policy.check(files(policy)) == policy.problems != []
