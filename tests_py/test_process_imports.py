"""Imports of child processes: the modules of the program, and never a file written into the working folder."""

import os
import site
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import toolcrib

PLANTED = [
    *(name for name in sorted(sys.stdlib_module_names) if name.isidentifier() and name != "__future__"),
    *("toolcrib", "toolcrib_child", "sitecustomize", "usercustomize", "org", "pydantic", "simplejson", "not_installed"),
]
"""Names that are imported: the interpreter, toolcrib, the standard library's attempts, tools."""

OUTPUT = ["12 16", "", ""]
"""Both tools have answered, and no planted file has run in another process than the host."""

SAFE_PATH = ["-P"] if sys.version_info >= (3, 11) else []

TOOLS = """
import decimal, json, select, xml.dom.minidom

def squared(value: int) -> str:
    import copy, csv, statistics, zipfile  # the host has not
    for name in ("org.python.core", "pydantic", "simplejson", "not_installed"):
        try:
            __import__(name)
        except ImportError:
            pass
    return str(value * value)
"""

HOST = """
import asyncio, math, os, pathlib, sys
from toolcrib import Toolkit
from tools_of_mine import squared

def main(work, names):
    toolkit = Toolkit(run_in="inline")

    @toolkit.tool
    def write_file(name: str, text: str) -> str:
        pathlib.Path(name).write_text(text)
        return "written"

    toolkit.register_tool_function(math.isqrt, run_in="process")
    toolkit.register_tool_function(squared, run_in="process")
    os.chdir(work)
    mark = "import os; open(f'ran.{os.getpid()}.{__name__}', 'w').close()"

    async def calls():
        for name in names:
            await toolkit.call("write_file", name=name + ".py", text=mark)
        return [(await toolkit.call("isqrt", n=144)).text, (await toolkit.call("squared", value=4)).text]

    print(*asyncio.run(calls()))
    print(*(file for file in os.listdir(".") if file.startswith("ran.") and f".{os.getpid()}." not in file))

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "tools_of_mine.py").write_text(TOOLS)
    (folder / "agent.py").write_text(HOST)
    return folder


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def python(*arguments: object, cwd: Path, executable: object = sys.executable, **variables: str) -> list[str]:
    command = list(map(str, (executable, *arguments)))
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **variables}, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


# Hosts that find the tool's module in a folder that is not the working folder


@pytest.mark.parametrize("flags", [[], ["-E"], ["-s"], ["-B", "-O"], SAFE_PATH], ids=" ".join)
def test_a_file_in_the_working_folder_is_not_imported(flags: list[str], project: Path, work: Path) -> None:
    variables = {"PYTHONPATH": str(project)} if flags and flags == SAFE_PATH else {}

    assert python(*flags, project / "agent.py", work, *PLANTED, cwd=project, **variables) == OUTPUT


def test_a_file_in_the_working_folder_is_not_imported_for_an_isolated_host(project: Path, work: Path) -> None:
    program = f"import sys; sys.path.append({str(project)!r}); import agent; agent.main(sys.argv[1], sys.argv[2:])"

    assert python("-I", "-c", program, work, *PLANTED, cwd=project) == OUTPUT


def test_a_file_in_the_working_folder_is_not_imported_for_a_module(project: Path, work: Path) -> None:
    assert python("-m", "agent", work, *PLANTED, cwd=project) == OUTPUT


@pytest.mark.parametrize("path", ["", ":", ".:", ":{project}", "{work}", "{work}:{project}", "../work:../project"])
def test_a_file_in_the_working_folder_is_not_imported_by_way_of_the_environment(
    path: str, project: Path, work: Path
) -> None:
    path = path.format(project=project, work=work)

    assert python(project / "agent.py", work, *PLANTED, cwd=project, PYTHONPATH=path) == OUTPUT


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A virtual environment that also has the packages of this one and the user's."""
    folder = tmp_path / "environment"
    venv.create(folder, system_site_packages=True, symlinks=True)
    installed = [str(Path(toolcrib.__file__).parent.parent), *site.getsitepackages()]
    (site_packages(folder) / "installed.pth").write_text("\n".join(installed) + "\n")
    return folder


def site_packages(prefix: Path) -> Path:
    folder = prefix / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_a_user_site_in_the_working_folder_is_not_imported(project: Path, work: Path, environment: Path) -> None:
    (site_packages(work) / "planted.pth").write_text(f"import os; open({str(work / 'ran.0.pth')!r}, 'w').close()\n")

    arguments = (project / "agent.py", work)
    assert python(*arguments, cwd=project, executable=environment / "bin" / "python", PYTHONUSERBASE=".") == OUTPUT


def test_a_working_folder_that_is_installed_is_not_imported(project: Path, environment: Path) -> None:
    (site_packages(environment) / "project.pth").write_text(f"{project}\n")

    arguments = (*SAFE_PATH, project / "agent.py", project, *PLANTED)
    assert python(*arguments, cwd=project, executable=environment / "bin" / "python") == OUTPUT


# Hosts whose own folder is the working folder


@pytest.mark.parametrize(
    "arguments",
    [["agent.py"], ["./agent.py"], ["-m", "agent"], ["-c", "import sys, agent; agent.main('.', sys.argv[2:])"]],
)
def test_a_file_that_is_added_to_the_folder_of_the_program_is_not_imported(arguments: list[str], project: Path) -> None:
    assert python(*arguments, ".", *PLANTED, cwd=project) == OUTPUT


def test_a_link_to_the_working_folder_is_the_working_folder(project: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(project)

    assert python(link / "agent.py", project, *PLANTED, cwd=tmp_path) == OUTPUT


# The modules of the program

CALL = """
import asyncio, sys
from toolcrib import Toolkit

def answer(tool, **arguments):
    toolkit = Toolkit()
    toolkit.register_tool_function(tool, func_name="tool", run_in="process")
    return asyncio.run(toolkit.call("tool", **arguments)).text
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    folder = tmp_path / "program"
    (folder / "package").mkdir(parents=True)
    (folder / "plain").mkdir()
    (folder / "call.py").write_text(CALL)
    (folder / "sibling.py").write_text("def word(): return 'sibling'\n")
    (folder / "plain" / "part.py").write_text("def word(): return 'part'\n")
    (folder / "platform.py").write_text("def word(): return 'mine'\n")
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "late.py").write_text("def word(): return 'late'\n")
    (folder / "package" / "tools.py").write_text("def lazy():\n    from .late import word\n    return word()\n")
    (folder / "tools.py").write_text(
        "import platform\n"
        "def lazy():\n    import sibling, plain.part\n    return sibling.word() + plain.part.word()\n"
        "def shadowed():\n    return platform.word()\n"
        "class Point:\n    def __init__(self, x): self.x = x\n    def shift(self, by: int): return self.x + by\n"
    )
    use = (
        "import call, package.tools, tools\n"
        "def here():\n    import sibling\n    return sibling.word() + ' ' + __name__\n"
        "if __name__ == '__main__':\n"
        "    tools_here = (tools.lazy, tools.shadowed, package.tools.lazy, here)\n"
        "    print(*map(call.answer, tools_here), call.answer(tools.Point(1).shift, by=2), sep=',')\n"
    )
    (folder / "use.py").write_text(use)
    (folder / "package" / "__main__.py").write_text(use)
    return folder


EXPECTED = "siblingpart,mine,late,sibling __mp_main__,3"


def test_a_script_in_the_working_folder_finds_its_modules(program: Path) -> None:
    assert python("use.py", cwd=program)[0] == EXPECTED


def test_a_script_elsewhere_finds_its_modules(program: Path, work: Path) -> None:
    assert python(program / "use.py", cwd=work)[0] == EXPECTED


@pytest.mark.parametrize("module", ["use", "package"])
def test_a_module_that_is_run_finds_its_modules(module: str, program: Path) -> None:
    assert python("-m", module, cwd=program)[0] == EXPECTED


def test_a_module_that_is_run_by_way_of_the_environment_finds_its_modules(program: Path, work: Path) -> None:
    assert python("-m", "use", cwd=work, PYTHONPATH=str(program))[0] == EXPECTED


def test_a_command_finds_the_modules_that_it_has_loaded(program: Path, work: Path) -> None:
    command = f"""
import os, call, tools, sibling, plain.part, package.tools
os.chdir({str(work)!r})
print(call.answer(tools.lazy), call.answer(tools.shadowed), call.answer(package.tools.lazy))
"""

    assert python("-c", command, cwd=program)[0] == "siblingpart mine late"


def test_relative_entries_find_the_modules_that_were_loaded(program: Path, work: Path) -> None:
    script = work / "script.py"
    script.write_text(
        "import sys; sys.path.insert(0, '../program')\n"
        "import os, call, package.tools\n"
        "if __name__ == '__main__':\n    os.chdir('/')\n    print(call.answer(package.tools.lazy))\n"
    )

    assert python(script, cwd=work)[0] == "late"


def test_a_module_that_the_program_has_loaded_from_a_file_is_found(program: Path, work: Path) -> None:
    command = f"""
import sys; sys.path.append({str(program)!r})
import call, importlib.util
spec = importlib.util.spec_from_file_location("plugin", {str(program / "package" / "late.py")!r})
sys.modules["plugin"] = plugin = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plugin)
print(call.answer(plugin.word))
"""

    assert python("-c", command, cwd=work)[0] == "late"


# Interpreter options


@pytest.mark.parametrize("flag", ["-I", "-E", "-s", "-B", "-OO", *SAFE_PATH])
def test_a_child_has_the_options_of_the_program(flag: str, program: Path, work: Path) -> None:
    names = ["isolated", "ignore_environment", "no_user_site", "dont_write_bytecode", "optimize"]
    (program / "flags.py").write_text(
        f"import sys\ndef flags():\n    return ' '.join(str(int(getattr(sys.flags, name))) for name in {names})\n"
    )
    command = f"""
import sys; sys.path.append({str(program)!r})
import call, flags
print(call.answer(flags.flags) == flags.flags())
"""

    assert python(flag, "-c", command, cwd=work)[0] == "True"


def test_programs_that_a_tool_starts_have_the_whole_environment(program: Path, work: Path) -> None:
    (program / "variable.py").write_text("import os\ndef variable(): return os.environ['PYTHONPATH']\n")
    command = (
        f"import sys; sys.path.append({str(program)!r}); import call, variable; print(call.answer(variable.variable))"
    )

    assert python("-c", command, cwd=work, PYTHONPATH=":lib")[0] == ":lib"
