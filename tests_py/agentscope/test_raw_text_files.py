"""The raw text tools against AgentScope's own: the same texts, and the same files afterwards."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import agentscope.tool
import pytest

from toolcrib.compat import agentscope as compat

TEN = "".join(f"{number}\n" for number in range(1, 11))
OPEN = TEN.rstrip("\n")  # without a line break at the end

# Name, content of the file or None, arguments.
CASES: list[tuple[str, str | None, dict[str, Any]]] = [
    ("view_text_file", TEN, {}),
    ("view_text_file", OPEN, {}),
    ("view_text_file", "", {}),
    ("view_text_file", "a\r\nb\rc\n", {}),
    ("view_text_file", None, {}),
    *(
        ("view_text_file", TEN, {"ranges": ranges})
        for ranges in [[3, 5], [8, 13], [11, 13], [10, 10], [5, 3], [13, 11], [1], [1, 2, 3], [], ["a", "b"], None]
    ),
    ("view_text_file", "", {"ranges": [1, 1]}),
    ("write_text_file", None, {"content": "a\nb\n"}),
    ("write_text_file", None, {"content": "a\nb\n", "ranges": [1, 2]}),
    ("write_text_file", None, {"content": "a\nb\n", "ranges": []}),
    ("write_text_file", TEN, {"content": "é\n"}),
    ("write_text_file", TEN, {"content": ""}),
    *(
        ("write_text_file", before, {"content": content, "ranges": ranges})
        for before in [TEN, OPEN, ""]
        for content in ["x\n", "x\ny\nz\n", ""]
        for ranges in [[1, 1], [2, 3], [5, 5], [10, 10], [4, 99], [11, 11], [1], [], [1, "b"], [1.5, 2]]
    ),
    *(
        ("insert_text_file", before, {"content": content, "line_number": number})
        for before in [TEN, OPEN, ""]
        for content in ["x", "x\ny\nz"]
        for number in [-1, 0, 1, 2, 5, 10, 12, 13, 100]
    ),
    ("insert_text_file", OPEN, {"content": "x", "line_number": 11}),
    ("insert_text_file", None, {"content": "x", "line_number": 1}),
]


@pytest.fixture(autouse=True)
def allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCRIB_DANGEROUS_TEXT_IO", "allow")


def result(
    module: Any, name: str, path: Path, before: str | None, arguments: dict[str, Any]
) -> tuple[str, bytes | None]:
    """The text of a call and the file after it."""
    path.unlink(missing_ok=True)
    if before is not None:
        path.write_bytes(before.encode())
    response = asyncio.run(getattr(module, name)(str(path), **arguments))
    return response.content[0]["text"], path.read_bytes() if path.exists() else None


# An empty file has no line 1, so that AgentScope appends a line break there before the content.
DIFFERENT = ("insert_text_file", "", 1)


@pytest.mark.parametrize(("name", "before", "arguments"), CASES)
def test_a_call_gives_what_agentscope_gives(
    name: str, before: str | None, arguments: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    if (name, before, arguments.get("line_number")) == DIFFERENT:
        assert result(compat, name, path, before, arguments)[1] == arguments["content"].encode()
        return

    theirs = result(agentscope.tool, name, path, before, arguments)
    ours = result(compat, name, path, before, arguments)

    assert ours == theirs


def test_a_directory_is_not_a_file(tmp_path: Path) -> None:
    texts = [
        asyncio.run(module.view_text_file(str(tmp_path))).content[0]["text"] for module in (agentscope.tool, compat)
    ]

    assert texts[0] == texts[1]


@pytest.mark.parametrize("module", [agentscope.tool, compat])
def test_the_tools_have_the_parameters_of_agentscope(module: Any) -> None:
    kit = compat.Toolkit()
    for name in ["view_text_file", "write_text_file", "insert_text_file"]:
        kit.register_tool_function(getattr(module, name))

    parameters = {
        schema["function"]["name"]: (
            list(schema["function"]["parameters"]["properties"]),
            schema["function"]["parameters"]["required"],
        )
        for schema in kit.get_json_schemas()
    }

    assert parameters == {
        "view_text_file": (["file_path", "ranges"], ["file_path"]),
        "write_text_file": (["file_path", "content", "ranges"], ["file_path", "content"]),
        "insert_text_file": (["file_path", "content", "line_number"], ["file_path", "content", "line_number"]),
    }


# What is better here than there.
@pytest.mark.parametrize(
    ("name", "arguments", "text", "after"),
    [
        ("view_text_file", {"ranges": [-3, -1]}, "8: 8\n9: 9\n10: 10\n```", TEN),
        ("write_text_file", {"content": "x", "ranges": [2, 2]}, "1: 1\n2: x\n3: 3\n4: 4\n", TEN.replace("2\n", "x\n")),
        ("insert_text_file", {"content": "x", "line_number": 11}, "10: 10\n11: x```", TEN + "x"),
        ("write_text_file", {"content": "x", "ranges": [5, 2]}, "The start line is greater than the end line", TEN),
    ],
)
def test_defects_are_not_copied(name: str, arguments: dict[str, Any], text: str, after: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"

    theirs = result(agentscope.tool, name, path, TEN, arguments)
    ours = result(compat, name, path, TEN, arguments)

    assert text in ours[0]
    assert ours[1] == after.encode()
    assert theirs != ours
