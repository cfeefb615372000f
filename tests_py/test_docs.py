"""Runs every example of README and docs, and compares what it prints with the output shown under it."""

import ast
import asyncio
import inspect
import io
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
GUARD = 'if __name__ == "__main__":'
LINK = re.compile(r"\[[^\]]*\]\((?!https?:)([^)#\s]+)")


@dataclass
class Example:
    """A block of code, the line it begins on, and the output that the page promises, if it promises any."""

    line: int
    code: str
    output: str | None = None


def examples(page: Path) -> list[Example]:
    found: list[Example] = []
    text = page.read_text(encoding="utf-8")
    previous = ""
    for fence in FENCE.finditer(text):
        language, body = fence.groups()
        if language == "python":
            found.append(Example(text.count("\n", 0, fence.start()) + 1, body))
        elif language == "text" and previous == "python":
            found[-1].output = body
        previous = language
    return found


def run(example: Example, page: Path, module: types.ModuleType, loop: asyncio.AbstractEventLoop) -> str:
    """Run one block; `await` needs no function around it, as in `python -m asyncio`."""
    if example.output is not None and GUARD in example.code:
        return run_as_script(example)
    # The empty lines make a traceback point at the line of the page.
    source = "\n" * example.line + example.code
    code = compile(source, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    with redirect_stdout(io.StringIO()) as printed:
        result = eval(code, module.__dict__)
        if inspect.iscoroutine(result):
            loop.run_until_complete(result)
    return printed.getvalue()


def run_as_script(example: Example) -> str:
    """Run a whole program, as it is saved to a file."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "program.py"
        file.write_text(example.code, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, file], cwd=folder, capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """One loop for the whole page, so that a task of one block is still there in the next."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


@pytest.fixture
def module() -> Iterator[types.ModuleType]:
    """The module that a page's examples share, known by name as an imported one is."""
    module = types.ModuleType("page")
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_do_what_the_page_says(page: Path, module: types.ModuleType, loop: asyncio.AbstractEventLoop) -> None:
    for example in examples(page):
        printed = run(example, page, module, loop)

        if example.output is not None:
            assert printed == example.output, f"{page}:{example.line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_an_example_with_a_process_tool_has_a_main_guard(page: Path) -> None:
    with_process = [example for example in examples(page) if 'run_in="process"' in example.code]

    assert all(GUARD in example.code for example in with_process)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = LINK.findall(page.read_text(encoding="utf-8"))

    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_first_example_of_the_readme_is_five_lines() -> None:
    first = examples(ROOT / "README.md")[0]

    assert len([line for line in first.code.splitlines() if line.strip()]) == 5
