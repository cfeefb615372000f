"""Programs with tools in a child process, which loads the module of a tool and never starts the program."""

import os
import py_compile
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="process mode needs a POSIX system")

TOOL = """
import asyncio, os, sys, threading
from toolcrib import Toolkit

def note(text):
    with open("notes", "a") as file:
        file.write(text + "\\n")

toolkit = Toolkit()

@toolkit.tool(run_in="process")
def square(n: int) -> int:
    return n * n

def show():
    note("begun")
    response = toolkit.run("square", n=3)
    print(response.code, response.text)
"""

ADVICE = 'put the start of your program under `if __name__ == "__main__":`'


def python(
    folder: Path, *arguments: str, source: str | None = None, expected: int = 0
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, input=source, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == expected, done.stderr
    return done


def notes(folder: Path) -> list[str]:
    return (folder / "notes").read_text().split()


def script(folder: Path, program: str, name: str = "agent.py") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(TOOL + program)
    return file


# Programs without a guard

UNGUARDED = {
    "a call": "show()",
    "a call of its own": 'note("begun")\nprint(toolkit.run("square", n=3).code, toolkit.run("square", n=3).text)',
    "an event loop": """
async def main():
    note("begun")
    response = await toolkit.call("square", n=3)
    print(response.code, response.text)

asyncio.run(main())
""",
    "a thread": "thread = threading.Thread(target=show)\nthread.start()\nthread.join()",
    "a thread that outlives the script": "threading.Thread(target=show).start()",
    "a guard for another part": 'if __name__ == "__main__":\n    pass\nshow()',
    "the other branch of a condition on the name": 'if __name__ == "other":\n    pass\nelse:\n    show()',
    "a condition without the name": "if sys.argv:\n    show()",
    "a class body": "class Program:\n    show()",
    "a loop": "for _ in range(1):\n    try:\n        show()\n    finally:\n        pass",
    "a comprehension": "[show() for _ in range(1)]",
}


@pytest.mark.parametrize("program", UNGUARDED.values(), ids=UNGUARDED)
def test_a_script_without_a_guard_is_not_run_a_second_time(program: str, tmp_path: Path) -> None:
    script(tmp_path, program)

    done = python(tmp_path, "agent.py")

    assert done.stdout.startswith("failed UnguardedProgramError: ")
    assert done.stdout.count(ADVICE) == 1
    assert notes(tmp_path) == ["begun"]


@pytest.mark.parametrize("arguments", [["-m", "package.app"], ["-m", "package"], ["package"], ["archive.zip"]])
def test_a_module_without_a_guard_is_not_run_a_second_time(arguments: list[str], tmp_path: Path) -> None:
    script(tmp_path, "show()", "package/app.py")
    script(tmp_path, "show()", "package/__main__.py")
    pack(tmp_path)

    done = python(tmp_path, *arguments)

    assert ADVICE in done.stdout
    assert notes(tmp_path) == ["begun"]


def pack(folder: Path) -> None:
    with zipfile.ZipFile(folder / "archive.zip", "w") as archive:
        archive.write(folder / "package" / "__main__.py", "__main__.py")


def test_a_script_without_a_guard_that_runpy_runs_is_not_run_a_second_time(tmp_path: Path) -> None:
    script(tmp_path, "show()")

    done = python(tmp_path, "-c", "import runpy; runpy.run_path('agent.py', run_name='__main__')")

    assert ADVICE in done.stdout
    assert notes(tmp_path) == ["begun"]


def test_the_error_is_raised_where_errors_are_raised(tmp_path: Path) -> None:
    program = """
from toolcrib.errors import UnguardedProgramError
raising = Toolkit(errors="raise")
raising.register_tool_function(square, run_in="process")
try:
    raising.run("square", n=3)
except UnguardedProgramError as error:
    print("raised", error)
"""
    script(tmp_path, program)

    assert python(tmp_path, "agent.py").stdout.startswith("raised a process has to load `__main__`")


def test_a_module_that_calls_its_own_tool_when_it_is_imported_does_not_start_processes_without_end(
    tmp_path: Path,
) -> None:
    script(tmp_path, "show()", "tools.py")

    done = python(tmp_path, "-c", "import tools; tools.show()")

    refused, late = done.stdout.splitlines()
    assert "UnguardedProgramError: a process has to load `tools`" in refused
    assert ADVICE in late
    assert notes(tmp_path)[0] == "begun"


def test_a_process_that_loads_a_module_starts_no_other(tmp_path: Path) -> None:
    """The module is imported by the script before it has called anything, and calls only in the child."""
    (tmp_path / "tools.py").write_text(
        TOOL + "if os.environ.get('CALL') == 'yes':\n    show()\n    note('went on')\n    sys.exit(3)\n"
    )

    done = python(tmp_path, "-c", "import os, tools; os.environ['CALL'] = 'yes'; tools.show()")

    assert done.stdout.startswith("failed UnguardedProgramError: a process has to load `tools`")
    assert notes(tmp_path) == ["begun", "begun"]  # one here, one in the child, which ended there


# Programs that go on as before

GUARDED = {
    "a guard": 'if __name__ == "__main__":\n    show()',
    "the other order": 'if "__main__" == __name__:\n    show()',
    "a negated guard": 'if __name__ != "__main__":\n    pass\nelse:\n    show()',
    "a guard with more conditions": 'if __name__ == "__main__" and len(sys.argv) == 1:\n    show()',
    "a condition before the guard": 'if len(sys.argv) == 1 and __name__ == "__main__":\n    show()',
    "a set of names": 'if __name__ in {"__main__"}:\n    show()',
    "a guard inside a block": 'try:\n    if __name__ == "__main__":\n        show()\nfinally:\n    pass',
    "an expression": '__name__ == "__main__" and show()',
    "a conditional expression": 'show() if __name__ == "__main__" else None',
    "a match": 'match __name__:\n    case "__main__":\n        show()',
    "a guard in a function": 'def main():\n    if __name__ == "__main__":\n        show()\nmain()',
    "a thread": 'if __name__ == "__main__":\n    threading.Thread(target=show).start()',
    "an event loop": """
async def main():
    note("begun")
    response = await toolkit.call("square", n=3)
    print(response.code, response.text)

if __name__ == "__main__":
    asyncio.run(main())
""",
}


@pytest.mark.parametrize("program", GUARDED.values(), ids=GUARDED)
def test_a_script_with_a_guard_runs_its_tool(program: str, tmp_path: Path) -> None:
    script(tmp_path, program)

    done = python(tmp_path, "agent.py")

    assert (done.stdout, done.stderr) == ("None 9\n", "")
    assert notes(tmp_path) == ["begun"]


@pytest.mark.parametrize("arguments", [["-m", "package.app"], ["-m", "package"], ["package"], ["archive.zip"]])
def test_a_module_with_a_guard_runs_its_tool(arguments: list[str], tmp_path: Path) -> None:
    script(tmp_path, 'if __name__ == "__main__":\n    show()', "package/app.py")
    script(tmp_path, 'if __name__ == "__main__":\n    show()', "package/__main__.py")
    pack(tmp_path)

    done = python(tmp_path, *arguments)

    assert (done.stdout, done.stderr) == ("None 9\n", "")
    assert notes(tmp_path) == ["begun"]


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_a_process_of_multiprocessing_runs_the_tool_of_its_script(method: str, tmp_path: Path) -> None:
    program = f"""
import multiprocessing
if __name__ == "__main__":
    process = multiprocessing.get_context({method!r}).Process(target=show)
    process.start()
    process.join()
"""
    script(tmp_path, program)

    assert python(tmp_path, "agent.py").stdout == "None 9\n"


def test_a_tool_in_a_process_may_call_another_one(tmp_path: Path) -> None:
    program = """
@toolkit.tool(run_in="process")
def twice(n: int) -> int:
    return 2 * int(toolkit.run("square", n=n).text)

if __name__ == "__main__":
    print(toolkit.run("twice", n=3).text)
"""
    script(tmp_path, program)

    assert python(tmp_path, "agent.py").stdout == "18\n"


def test_a_compiled_script_with_a_guard_runs_its_tool(tmp_path: Path) -> None:
    file = script(tmp_path, 'if __name__ == "__main__":\n    show()')
    py_compile.compile(str(file), cfile=str(tmp_path / "agent.pyc"))
    file.unlink()

    assert python(tmp_path, "agent.pyc").stdout == "None 9\n"


def test_a_compiled_script_without_a_guard_does_not_start_processes_without_end(tmp_path: Path) -> None:
    file = script(tmp_path, "show()\nnote('went on')")
    py_compile.compile(str(file), cfile=str(tmp_path / "agent.pyc"))
    file.unlink()

    assert ADVICE in python(tmp_path, "agent.pyc").stdout
    assert notes(tmp_path).count("went") == 1
    assert notes(tmp_path).count("begun") == 1  # refused before a child has executed it


def test_a_script_without_a_guard_may_run_tools_of_other_modules(tmp_path: Path) -> None:
    script(tmp_path, "", "tools.py")
    (tmp_path / "agent.py").write_text("import tools\ntools.note('once')\ntools.show()\n")

    done = python(tmp_path, "agent.py")

    assert (done.stdout, done.stderr) == ("None 9\n", "")
    assert notes(tmp_path) == ["once", "begun"]


@pytest.mark.parametrize(
    ("arguments", "is_source_on_stdin"), [(["-c", TOOL], False), (["-"], True), ([], True)], ids=["-c", "-", "stdin"]
)
def test_a_program_without_a_file_is_told_so_when_it_registers_the_tool(
    arguments: list[str], is_source_on_stdin: bool, tmp_path: Path
) -> None:
    done = python(tmp_path, *arguments, source=TOOL if is_source_on_stdin else None, expected=1)

    assert "ValueError: `square` cannot run in a process: the main module is not a file" in done.stderr


def test_an_interactive_session_after_a_script_runs_its_tool(tmp_path: Path) -> None:
    script(tmp_path, 'if __name__ == "__main__":\n    note("once")')

    done = python(tmp_path, "-i", "agent.py", source="show()\n")

    assert done.stdout == "None 9\n"
    assert notes(tmp_path) == ["once", "begun"]


def test_an_interactive_session_after_a_script_without_a_guard_does_not_run_it_again(tmp_path: Path) -> None:
    script(tmp_path, 'note("once")')

    done = python(tmp_path, "-i", "agent.py", source="show()\n")

    assert ADVICE in done.stdout
    assert notes(tmp_path) == ["once", "begun"]


def test_a_frozen_program_is_told_that_it_has_no_interpreter(tmp_path: Path) -> None:
    script(tmp_path, "").write_text("import sys\nsys.frozen = True\n" + TOOL)

    done = python(tmp_path, "agent.py", expected=1)

    assert "ValueError: `square` cannot run in a process: the program is frozen" in done.stderr
