"""The types that users see: mypy and pyright run on two samples and must report what the comments in them say."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy comes with `make check`"),
    pytest.mark.timeout(300),
]

TYPES = """
from __future__ import annotations

from typing import TYPE_CHECKING

from dataclasses import dataclass

from toolcrib import Limits, TextBlock, Toolkit, ToolContext, ToolResponse

if TYPE_CHECKING:
    from typing_extensions import reveal_type

toolkit = Toolkit(arguments="check", errors="raise", run_in="inline")


@toolkit.tool
def add(a: int, b: int) -> int:
    return a + b


@toolkit.tool(group_name="basic", func_name="greeting", timeout=1.5)
async def greet(name: str) -> str:
    return name


@dataclass
class Deps:
    user: str


@toolkit.tool
async def order(context: ToolContext[Deps], part: str) -> str:
    reveal_type(context.deps)  # types_of.Deps
    reveal_type(context.caller)  # str | None
    reveal_type(context.call_id)  # str
    context.progress(1, 2, "half")
    reveal_type(await context.ask("Which part?"))  # str
    reveal_type(await context.ask("How many?", int))  # int
    reveal_type(await context.ask("Whose?", Deps))  # types_of.Deps
    reveal_type(await context.ask("Which size?", {"enum": [1, 2]}))  # Any
    return context.deps.user


reveal_type(toolkit.session(deps=Deps("Ann")).deps)  # types_of.Deps
reveal_type(add)  # def (a: int, b: int) -> int
reveal_type(greet)  # def (name: str) -> Coroutine[Any, Any, str]
reveal_type(toolkit.tools)  # Mapping[str, RegisteredToolFunction]
reveal_type(toolkit.tools["add"].json_schema)  # dict[str, Any]
reveal_type(toolkit.tools.get("add"))  # RegisteredToolFunction | None
reveal_type(toolkit.groups["web"].active)  # bool
reveal_type(toolkit.get_json_schemas())  # list[dict[str, Any]]
reveal_type(toolkit.get_json_schemas_bytes())  # bytes
reveal_type(toolkit.run("add", a=1, b=2))  # ToolResponse
reveal_type(ToolResponse([TextBlock(type="text", text="hello")]).metadata)  # dict[str, Any] | None



class Database:
    name = "db"


session = toolkit.session(deps=Database(), limits=Limits(calls=3))
reveal_type(session)  # Session[types_of.Database]
reveal_type(session.deps.name)  # str
reveal_type(session.state)  # dict[str, Any]
reveal_type(session.usage.failures)  # dict[str, int]
reveal_type(session.view(groups=["web"]))  # ToolkitView
reveal_type(session.run("add", a=1, b=2))  # ToolResponse
reveal_type(toolkit.session())  # Session[None]
reveal_type(toolkit.load_session("s.json", deps=Database()).deps)  # types_of.Database
reveal_type(toolkit.view(caller="ann").session().id)  # str


async def main() -> None:
    block = {"type": "tool_use", "id": "1", "name": "add", "input": {"a": 1, "b": 2}}
    async for response in await toolkit.call_tool_function(block):
        reveal_type(response)  # ToolResponse
    async for response in toolkit.call_tool_function(block):
        reveal_type(response.text)  # str
    stream = toolkit.call_tool_function(block)
    reveal_type(stream)  # ToolStream
    reveal_type(await stream)  # ToolStream
    reveal_type(await stream.__anext__())  # ToolResponse
    reveal_type(await stream.asend(None))  # ToolResponse
    reveal_type(await stream.aclose())  # None
    reveal_type(await toolkit.call("add", a=1, b=2))  # ToolResponse
"""

MISTAKES = """
from toolcrib import Toolkit, ToolContext, ToolGroup, ToolResponse

toolkit = Toolkit(arguments="corce")  # arg-type
toolkit.register_tool_function(3)  # arg-type
toolkit.register_tool_function(print, namesake_strategy="replace")  # arg-type
toolkit.register_tool_function(print, run_in="rocket")  # arg-type
toolkit.tool(groupname="basic")  # call-overload
toolkit.update_tool_groups(3, True)  # arg-type
toolkit.call_tool_function(3)  # arg-type
toolkit.tools["add"] = toolkit.tools["add"]  # index
toolkit.tools["add"].name = "plus"  # misc
ToolGroup("web", "The web.")  # call-arg, arg-type
toolkit.session(limits=3)  # call-overload
toolkit.session().id = "other"  # misc
ToolResponse(content=[{"type": "txt"}])  # list-item


async def order(context: ToolContext[int]) -> None:
    context.deps.user  # attr-defined
"""


def checker(module: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def commented(sample: str) -> dict[int, str]:
    lines = enumerate(sample.splitlines(), 1)
    return {number: line.partition("  # ")[2] for number, line in lines if "  # " in line}


def plain(name: str) -> str:
    return re.sub(r"\b(?:typing|builtins|collections\.abc|toolcrib(?:\.\w+)*)\.(?=\w)", "", name)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the two samples."""
    folder = tmp_path_factory.mktemp("samples")
    (folder / "types_of.py").write_text(TYPES, encoding="utf-8")
    (folder / "mistakes_of.py").write_text(MISTAKES, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def reported(samples: Path) -> list[tuple[str, int, str]]:
    """The messages of mypy, by file and line."""
    options = ["--strict", "--no-error-summary", f"--cache-dir={samples}", "--config-file="]

    run = checker("mypy", samples, *options, "types_of.py", "mistakes_of.py")

    assert run.stderr == ""
    messages = (re.fullmatch(r"(\w+)\.py:(\d+): (.*)", line) for line in run.stdout.splitlines())
    return [(message[1], int(message[2]), message[3]) for message in messages if message]


def test_types_are_what_users_expect(reported: list[tuple[str, int, str]]) -> None:
    revealed = {
        number: plain(message.removeprefix('note: Revealed type is "').removesuffix('"'))
        for file, number, message in reported
        if file == "types_of"
    }

    assert revealed == commented(TYPES)


def test_mistakes_are_found_before_the_program_runs(reported: list[tuple[str, int, str]]) -> None:
    found: dict[int, list[str]] = {}
    for file, number, message in reported:
        if file == "mistakes_of" and (code := re.search(r"error: .*\[([a-z-]+)\]$", message)):
            found.setdefault(number, []).append(code[1])

    assert {number: ", ".join(codes) for number, codes in found.items()} == commented(MISTAKES)


@pytest.fixture(scope="module")
def diagnosed(samples: Path) -> list[dict[str, Any]]:
    """The messages of pyright."""
    # It installs itself from the registry of npm on its first run.
    if importlib.util.find_spec("pyright") is None or checker("pyright", samples, "--version").returncode:
        pytest.skip("pyright comes with `make check`, and needs the registry of npm")

    run = checker("pyright", samples, "--outputjson", f"--pythonpath={sys.executable}", ".")

    messages: list[dict[str, Any]] = json.loads(run.stdout)["generalDiagnostics"]
    return messages


def test_pyright_sees_the_same_types(diagnosed: list[dict[str, Any]]) -> None:
    expected = {
        number: re.sub("^def ", "", name.replace("types_of.", "")).replace("Coroutine[", "CoroutineType[")
        for number, name in commented(TYPES).items()
    }

    messages = [message for message in diagnosed if message["file"].endswith("types_of.py")]

    revealed = {m["range"]["start"]["line"] + 1: m["message"].rpartition(' is "')[2][:-1] for m in messages}
    assert revealed == expected


def test_pyright_finds_the_same_mistakes(diagnosed: list[dict[str, Any]]) -> None:
    errors = [message for message in diagnosed if message["severity"] == "error"]

    found = {message["range"]["start"]["line"] + 1 for message in errors}
    assert found == set(commented(MISTAKES))
