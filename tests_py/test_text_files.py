"""Raw text I/O: the texts of the three tools, and the guard that the environment sets."""

import asyncio
import fcntl
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from support.streams import block, last, python, read
from toolcrib import Toolkit, ToolResponse, tools

BLOCKED = "Blocked by policy: raw OS file access is disabled. Use FileSystem service tools instead."
VARIABLES = ["AGENTSCOPE_DANGEROUS_TEXT_IO", "TOOLCRIB_DANGEROUS_TEXT_IO"]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("view_text_file", {}),
    ("write_text_file", {"content": "new\n"}),
    ("write_text_file", {"content": "new\n", "ranges": [1, 1]}),
    ("insert_text_file", {"content": "new", "line_number": 1}),
    ("insert_text_file", {"content": "new", "line_number": 0}),
    ("insert_text_file", {"content": "new", "line_number": 99}),
    ("view_text_file", {"ranges": [99, 100]}),
]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin without the variables."""
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


def kit() -> Toolkit:
    own = Toolkit()
    tools.register(own, "text_files")
    return own


async def call(name: str, **arguments: Any) -> ToolResponse:
    return await last(kit().call_tool_function(block(name, **arguments)))


async def text(name: str, **arguments: Any) -> str:
    return (await call(name, **arguments)).text


def numbers(path: Path, last: int = 10) -> str:
    path.write_text("".join(f"{number}\n" for number in range(1, last + 1)))
    return str(path)


def test_none_is_registered_by_default() -> None:
    assert list(Toolkit().tools) == []
    assert list(kit().tools) == ["view_text_file", "write_text_file", "insert_text_file"]
    assert [tool.kind for tool in kit().tools.values()] == ["read", "edit", "edit"]


async def test_a_file_is_viewed(tmp_path: Path) -> None:
    path = numbers(tmp_path / "a", 3)

    assert await text("view_text_file", file_path=path) == f"The content of {path}:\n```\n1: 1\n2: 2\n3: 3\n```"
    assert await text("view_text_file", file_path=path, ranges=[2, 9]) == (
        f"The content of {path} in [2, 9] lines:\n```\n2: 2\n3: 3\n```"
    )
    assert await text("view_text_file", file_path=path, ranges=[-2, -1]) == (
        f"The content of {path} in [-2, -1] lines:\n```\n2: 2\n3: 3\n```"
    )


async def test_what_cannot_be_viewed_is_answered(tmp_path: Path) -> None:
    path = numbers(tmp_path / "a", 3)

    async def view(file_path: str, ranges: Any = None) -> str:
        return await text("view_text_file", file_path=file_path, ranges=ranges)

    assert await view(f"{path}x") == f"Error: The file {path}x does not exist."
    assert await view(str(tmp_path)) == f"Error: The path {tmp_path} is not a file."
    assert await view(path, [3, 2]) == (
        "InvalidArgumentError: The start line is greater than the end line in the given range [3, 2]."
    )
    assert await view(path, [1, 2, 3]) == (
        "InvalidArgumentError: Invalid range format. Expected a list of two integers, but got [1, 2, 3]."
    )
    assert await view(path, [4, 5]) == (
        f"InvalidArgumentError: The range '[4, 5]' is out of bounds for the file '{path}', which has only 3 lines."
    )


async def test_a_file_is_written(tmp_path: Path) -> None:
    path = str(tmp_path / "a")

    async def write(content: str, ranges: Any = None) -> str:
        return await text("write_text_file", file_path=path, content=content, ranges=ranges)

    assert await write("a\nb\nc\n") == f"Create and write {path} successfully."
    assert await write("d", [2, 2]) == (
        f"Write {path} successfully. The new content snippet:\n```\n1: a\n2: d\n3: c\n```"
    )
    assert await write("x", [4, 4]) == "Error: The start line 4 is invalid. The file only has 3 lines."
    assert await write("x", [0, 1]) == "Error: The start line 0 is invalid. The file only has 3 lines."
    assert await write("x", [1]) == "Error: Invalid range format. Expected a list of two integers, but got [1]."
    assert (tmp_path / "a").read_text() == "a\nd\nc\n"
    assert await write("z", [-1, -1]) == (
        f"Write {path} successfully. The new content snippet:\n```\n1: a\n2: d\n3: z```"
    )
    assert await write("all") == f"Overwrite {path} successfully."
    assert (tmp_path / "a").read_text() == "all"
    new = str(tmp_path / "b")
    assert await text("write_text_file", file_path=new, content="", ranges=[1, 2]) == (
        f"Create and write {new} successfully. The ranges [1, 2] is ignored because the file does not exist."
    )


async def test_lines_are_inserted(tmp_path: Path) -> None:
    path = numbers(tmp_path / "a", 3)

    async def insert(line_number: int, content: str = "new") -> str:
        return await text("insert_text_file", file_path=path, content=content, line_number=line_number)

    assert await insert(2) == (
        f"Insert content into {path} at line 2 successfully. The new content between lines 1-4 is:\n"
        "```\n1: 1\n2: new\n3: 2\n4: 3\n```"
    )
    assert await insert(5, "end") == (
        f"Insert content into {path} at line 5 successfully. The new content between lines 1-5 is:\n"
        "```\n1: 1\n2: new\n3: 2\n4: 3\n5: end```"
    )
    assert await insert(0) == "InvalidArgumentsError: The line number 0 is invalid. "
    assert await insert(7) == "InvalidArgumentsError: The given line_number (7) is not in the valid range [1, 6]."
    assert await text("insert_text_file", file_path=f"{path}x", content="", line_number=1) == (
        f"InvalidArgumentsError: The target file {path}x does not exist. "
    )


async def test_calls_at_the_same_time_change_a_file_one_after_the_other(tmp_path: Path) -> None:
    path = numbers(tmp_path / "a", 200)
    own = kit()
    lines = [f"new {number}" for number in range(16)]
    inserts = [own.call("insert_text_file", file_path=path, content=line, line_number=1) for line in lines]
    views = [own.call("view_text_file", file_path=path) for _ in range(16)]

    responses = await asyncio.gather(*(call for pair in zip(inserts, views, strict=True) for call in pair))

    assert sorted((tmp_path / "a").read_text().splitlines()[:16]) == sorted(lines)
    assert all(response.code is None for response in responses)
    assert all("200\n```" in response.text for response in responses[1::2])


async def test_a_lock_of_another_program_delays_a_call_only(tmp_path: Path) -> None:
    path = numbers(tmp_path / "a", 3)

    with open(path) as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        answer = await text("write_text_file", file_path=path, content="all")

    assert answer == f"Overwrite {path} successfully."


@pytest.mark.parametrize(
    ("ranges", "shown"),
    [
        ([1, "2"], "[1, '2']"),
        (["it's", 'a "b"'], '["it\'s", \'a "b"\']'),
        (["'\"", "\\\n\x7f\u200b\U000e0001é"], "['\\'\"', '\\\\\\n\\x7f\\u200b\\U000e0001é']"),
        ([1.5, 2], "[1.5, 2]"),
        ([None, True], "[None, True]"),
        ("1-2", "1-2"),
        ({"a": [1]}, "{'a': [1]}"),
    ],
)
async def test_a_range_of_another_form_is_shown_as_python_prints_it(ranges: Any, shown: str, tmp_path: Path) -> None:
    path = numbers(tmp_path / "a", 3)

    answer = (await tools.view_text_file(file_path=path, ranges=ranges)).text

    assert answer == f"InvalidArgumentError: Invalid range format. Expected a list of two integers, but got {shown}."


async def test_a_range_has_integers_of_any_size(tmp_path: Path) -> None:
    path = numbers(tmp_path / "a", 2)

    assert await text("view_text_file", file_path=path, ranges=[2, 10**30]) == (
        f"The content of {path} in [2, {10**30}] lines:\n```\n2: 2\n```"
    )


async def test_the_home_directory_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a").write_text("home")

    response = await call("view_text_file", file_path="~/a")

    assert response.text == f"The content of {tmp_path}/a:\n```\n1: home```"
    assert response.metadata is not None
    assert response.metadata["path"] == "~/a"


@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.parametrize(("name", "arguments"), CALLS)
async def test_deny_touches_nothing(
    variable: str,
    name: str,
    arguments: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv(variable, "deny")
    path = numbers(tmp_path / "a")

    response = await call(name, file_path=path, **arguments)
    new = await call(name, file_path=str(tmp_path / "new"), **arguments)

    assert (response.text, response.code) == (BLOCKED, "denied")
    assert response.metadata == {
        "dangerous_io": True,
        "policy": "deny",
        "tool": name,
        "path": path,
        "blocked": True,
        "reason": "bypass_filesystem",
    }
    assert new.text == BLOCKED
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "".join(f"{number}\n" for number in range(1, 11))
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2


@pytest.mark.parametrize(("value", "warnings"), [(None, 1), ("warn", 1), ("allow", 0)])
@pytest.mark.parametrize(("name", "arguments"), CALLS)
async def test_warn_logs_and_allow_is_silent(
    value: str | None,
    warnings: int,
    name: str,
    arguments: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if value is not None:
        monkeypatch.setenv("AGENTSCOPE_DANGEROUS_TEXT_IO", value)
    path = numbers(tmp_path / "a")

    response = await call(name, file_path=path, **arguments)

    assert response.metadata == {
        "dangerous_io": True,
        "policy": value or "warn",
        "tool": name,
        "path": path,
        "blocked": False,
        "reason": "bypass_filesystem",
    }
    assert [(record.name, record.levelno) for record in caplog.records] == [("toolcrib", logging.WARNING)] * warnings


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "1",
        "0",
        "true",
        "yes",
        "on",
        "off",
        "no",
        "none",
        "permit",
        "allowed",
        "allow!",
        "allow,warn",
        "'allow'",
        '"allow"',
        "a llow",
        "ａｌｌｏｗ",
        "warning",
        "default",
        "TRUE",
        "allow=1",
        "deny",
        "DENY ",
        " WARN ",
        "Warn",
        " Allow\n",
        "Allow\n",
        "allow ",
        "ALLOW",
        "\tallow",
    ],
)
async def test_any_other_value_denies(value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCRIB_DANGEROUS_TEXT_IO", value)
    path = numbers(tmp_path / "a")

    assert await text("view_text_file", file_path=path) == BLOCKED


async def test_a_huge_file_is_answered_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCRIB_DANGEROUS_TEXT_IO", "allow")
    path = tmp_path / "huge"
    with open(path, "wb") as file:
        file.write(b"one\ntwo\n")
        file.truncate(20 << 30)

    first = await text("view_text_file", file_path=str(path), ranges=[1, 2])
    last = await text("view_text_file", file_path=str(path), ranges=[-1, -1])

    assert first.endswith("```\n1: one\n2: two\n```")
    assert last == f"Error: The file {path} is larger than {1 << 30} bytes. Use ranges that count from its beginning."


async def test_the_strictest_variable_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = numbers(tmp_path / "a")

    monkeypatch.setenv("AGENTSCOPE_DANGEROUS_TEXT_IO", "allow")
    monkeypatch.setenv("TOOLCRIB_DANGEROUS_TEXT_IO", "deny")
    assert await text("view_text_file", file_path=path) == BLOCKED
    monkeypatch.setenv("AGENTSCOPE_DANGEROUS_TEXT_IO", "deny")
    monkeypatch.setenv("TOOLCRIB_DANGEROUS_TEXT_IO", "allow")
    assert await text("view_text_file", file_path=path) == BLOCKED


async def test_the_variable_is_read_at_every_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, own = numbers(tmp_path / "a"), kit()
    stream = own.call_tool_function(block("view_text_file", file_path=path))

    monkeypatch.setenv("TOOLCRIB_DANGEROUS_TEXT_IO", "deny")
    denied = await read(stream)
    monkeypatch.setenv("TOOLCRIB_DANGEROUS_TEXT_IO", "allow")
    allowed = await read(own.call_tool_function(block("view_text_file", file_path=path)))

    assert denied[-1].text == BLOCKED
    assert allowed[-1].text != BLOCKED


def test_the_environment_may_change_while_tools_run(tmp_path: Path) -> None:
    program = f"""
        import asyncio, os, threading
        from toolcrib import Toolkit, tools
        kit = Toolkit()
        tools.register(kit, "text_files")
        over = threading.Event()

        def change():
            number = 0
            while not over.is_set():
                number += 1
                os.environ[f"VARIABLE_{{number}}"] = "x" * 50
                if number % 500 == 0:
                    for name in [name for name in os.environ if name.startswith("VARIABLE_")]:
                        del os.environ[name]

        async def main():
            for _ in range(40):
                calls = [kit.call("view_text_file", file_path={numbers(tmp_path / "a")!r}) for _ in range(50)]
                for response in await asyncio.gather(*calls):
                    assert response.code is None, response

        thread = threading.Thread(target=change)
        thread.start()
        asyncio.run(main())
        over.set()
        thread.join()
    """

    done = python(program, TOOLCRIB_DANGEROUS_TEXT_IO="allow")

    assert done.returncode == 0, done.stderr


async def test_a_file_that_is_not_text_is_viewed_and_changed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"caf\xe9\nb\n")
    path = str(tmp_path / "a")

    assert await text("view_text_file", file_path=path) == f"The content of {path}:\n```\n1: caf�\n2: b\n```"
    await text("write_text_file", file_path=path, content="c\n", ranges=[2, 2])

    assert (tmp_path / "a").read_bytes() == b"caf\xe9\nc\n"
