"""Programs that a model runs: results, the end of all their processes, memory, environment, imports, settings."""

import asyncio
import copy
import json
import os
import pickle
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from support.processes import resident, zombies
from support.streams import block
from support.waiting import UNBOUNDED_HANG, until
from toolcrib import Toolkit, ToolResponse, errors, tools
from toolcrib.policy import Policy, Rule
from toolcrib.process import ProgramLimits, Sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the process group is killed")

RUNS = int(os.environ.get("TOOLCRIB_PROGRAM_RUNS", "50"))
"""The number of quick runs; 1 000 for a release."""

TREE = (
    "trap '' TERM; sleep 97 & (setsid sh -c 'sleep 97 & sleep 97' &) ; nohup sleep 97 & "
    "sleep 97 & sleep 0.2; kill -STOP $!; wait"
)
"""A command whose processes survive a signal to the shell, and most of them also one to its group."""

SLEEPING = 5

HOST = """
import asyncio, os, sys
from toolcrib import Toolkit, tools

async def main():
    toolkit = Toolkit()
    tools.register(toolkit, "programs", env={{"TEST_MARK": {mark!r}}})
    call = asyncio.ensure_future(toolkit.call({tool!r}, **{arguments!r}))
    while not os.path.exists({file!r}):
        await asyncio.sleep(0.01)
    {end}
    await asyncio.sleep(600)

asyncio.run(main())
"""


class Marked:
    """Programs that have a variable of their own, by which their processes are found."""

    def __init__(self) -> None:
        self.mark = uuid.uuid4().hex
        self.toolkit = Toolkit()
        tools.register(self.toolkit, "programs", env={"TEST_MARK": self.mark})

    def processes(self) -> list[str]:
        """The commands of the processes, supervisors included and zombies excluded."""
        entry = f"TEST_MARK={self.mark}".encode()
        found = []
        for process in Path("/proc").iterdir():
            try:
                if process.name.isdecimal() and entry in (process / "environ").read_bytes().split(b"\0"):
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                pass  # it has ended
        return found

    def left(self) -> list[str]:
        """The processes without the supervisor, which exits after its report."""
        return [command for command in self.processes() if not command.startswith("toolcrib-supervisor ")]

    async def sleeping(self) -> None:
        await until(lambda: self.processes().count("sleep 97 ") == SLEEPING)

    async def gone(self) -> None:
        await until(lambda: not self.processes())


def shell(command: str, **arguments: Any) -> ToolResponse:
    toolkit = Toolkit()
    tools.register(toolkit, "programs")
    return toolkit.run("execute_shell_command", command=command, **arguments)


def python(code: str, **options: Any) -> ToolResponse:
    toolkit = Toolkit()
    tools.register(toolkit, "programs", **options)
    return toolkit.run("execute_python_code", code=code)


def text(code: int, output: str = "", error: str = "") -> str:
    return f"<returncode>{code}</returncode><stdout>{output}</stdout><stderr>{error}</stderr>"


def facts(response: ToolResponse) -> dict[str, Any]:
    assert response.metadata is not None
    return response.metadata


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


# Results


def test_a_result_has_the_return_code_the_output_and_the_errors() -> None:
    response = shell("echo out; echo err >&2; exit 3")

    assert response.text == text(3, "out\n", "err\n")
    assert response.metadata == {
        "returncode": 3,
        "timed_out": False,
        "omitted_bytes": {"stdout": 0, "stderr": 0},
    }


def test_the_model_sees_the_command_and_the_timeout_only() -> None:
    toolkit = Toolkit()

    names = tools.register(toolkit, "programs", env={"KEY": "secret"}, limits=ProgramLimits(cpu_seconds=9))

    assert names == ["execute_shell_command", "execute_python_code"]
    properties = [schema["function"]["parameters"]["properties"] for schema in toolkit.get_json_schemas()]
    assert [list(shown) for shown in properties] == [["command", "timeout"], ["code", "timeout"]]
    assert "secret" not in str(toolkit.get_json_schemas())


def test_the_functions_are_registered_alone_as_well() -> None:
    toolkit = Toolkit(tools=[tools.execute_shell_command, tools.execute_python_code])

    assert toolkit.run("execute_shell_command", command="echo 1").text == text(0, "1\n")
    assert toolkit.run("execute_python_code", code="print(2)").text == text(0, "2\n")


def test_output_arrives_while_the_program_runs() -> None:
    async def main() -> list[tuple[str, str]]:
        toolkit = Toolkit(tools=[tools.execute_shell_command])
        call = block("execute_shell_command", command="echo one; sleep 0.5; echo two; sleep 0.5; echo end")
        return [(response.mode, response.text) async for response in toolkit.call_tool_function(call)]

    *progress, last = asyncio.run(main())

    assert progress == [("progress", "one\n"), ("progress", "two\n")]
    assert last == ("result", text(0, "one\ntwo\nend\n"))


def test_a_program_that_cannot_be_started_is_an_error() -> None:
    response = python("1", python="/nonexistent/python")

    assert response.code == "failed"
    assert "exec: No such file or directory" in response.text


# The end of all processes


@pytest.mark.parametrize("times", [1, 8])
def test_a_timeout_leaves_nothing(times: int) -> None:
    async def main() -> list[str]:
        programs = Marked()
        call = {"command": f"echo begun; {TREE}", "timeout": 2}
        calls = [programs.toolkit.call("execute_shell_command", **call) for _ in range(times)]
        responses = await asyncio.gather(*calls)
        assert programs.left() == []
        await programs.gone()
        return [response.text for response in responses]

    line = "TimeoutError: The command execution exceeded the timeout of 2 seconds."
    assert asyncio.run(main()) == [text(-1, "begun\n", line)] * times


def test_a_cancelled_call_leaves_nothing() -> None:
    async def main() -> None:
        programs = Marked()
        call = asyncio.ensure_future(programs.toolkit.call("execute_shell_command", command=TREE))
        await programs.sleeping()
        call.cancel()
        await asyncio.wait([call], timeout=UNBOUNDED_HANG)
        await programs.gone()

    asyncio.run(main())


def test_a_call_that_exceeds_the_time_of_the_toolkit_leaves_nothing() -> None:
    async def main() -> str | None:
        programs = Marked()
        programs.toolkit.register_tool_function(
            programs.toolkit.tools["execute_shell_command"].original_func, func_name="limited", timeout=3.0
        )
        response = await programs.toolkit.call("limited", command=TREE)
        await programs.gone()
        return response.code

    assert asyncio.run(main()) == "timeout"


def test_a_shell_that_ends_leaves_nothing() -> None:
    async def main() -> str:
        programs = Marked()
        command = f"({TREE}) & sleep 1; echo done"
        response = await programs.toolkit.call("execute_shell_command", command=command)
        assert programs.left() == []
        await programs.gone()
        return response.text

    assert asyncio.run(main()) == text(0, "done\n")


@pytest.mark.parametrize(
    "end",
    [
        "os.kill(os.getpid(), 9)",
        "os._exit(0)",
        "os.abort()",
        "sys.exit()",
        "os.execv('/bin/sleep', ['sleep', '0'])",
        "os.fork() and os._exit(0)",
    ],
)
def test_a_host_that_dies_leaves_nothing(end: str, tmp_path: Path) -> None:
    file = tmp_path / "begun"
    programs = Marked()
    arguments = {"command": f"touch {file}; {TREE}"}
    program = HOST.format(
        mark=programs.mark, file=str(file), end=end, tool="execute_shell_command", arguments=arguments
    )

    host = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        host.wait(UNBOUNDED_HANG)
        asyncio.run(programs.gone())
    finally:
        with_fork = "fork" in end
        if with_fork:
            os.killpg(host.pid, signal.SIGKILL)
        host.kill()


def test_a_host_that_is_killed_leaves_no_file_of_the_code(tmp_path: Path) -> None:
    file = tmp_path / "begun"
    programs = Marked()
    arguments = {"code": f"import time; open({str(file)!r}, 'w').close(); time.sleep(97)"}
    program = HOST.format(
        mark=programs.mark,
        file=str(file),
        end="os.kill(os.getpid(), 9)",
        tool="execute_python_code",
        arguments=arguments,
    )

    subprocess.run([sys.executable, "-c", program], env={**os.environ, "TMPDIR": str(tmp_path)}, check=False)
    asyncio.run(programs.gone())

    assert [path.name for path in tmp_path.iterdir()] == ["begun"]


def test_a_bomb_of_processes_is_stopped_by_the_limit_and_killed() -> None:
    # A limit on processes does not hold for root, so that the bomb becomes another user first.
    leave = "import os; os.setgid(65534); os.setuid(65534); " if os.getuid() == 0 else "import os; "
    bomb = f"""
import resource
{leave}
resource.setrlimit(resource.RLIMIT_NPROC, (40, 40))
print('begun', flush=True)
while True:
    try:
        if os.fork() == 0: os.setsid()
    except OSError: pass
"""

    async def main() -> str:
        programs = Marked()
        response = await programs.toolkit.call("execute_python_code", code=bomb, timeout=2)
        await programs.gone()
        return response.text

    line = "TimeoutError: The code execution exceeded the timeout of 2 seconds."
    assert asyncio.run(main()) == text(-1, "begun\n", line)


@pytest.mark.timeout(60 + RUNS)
@pytest.mark.parametrize("at_once", [1, 10, RUNS])
def test_many_runs_lose_no_output_and_leave_neither_zombies_nor_descriptors(at_once: int) -> None:
    async def main() -> None:
        toolkit = Toolkit(tools=[tools.execute_shell_command])
        await toolkit.call("execute_shell_command", command="true")
        before = descriptors()
        for first in range(0, RUNS, at_once):
            numbers = range(first, min(first + at_once, RUNS))
            commands = [f"echo {number}; echo {number} >&2; sleep 97 &" for number in numbers]
            calls = [toolkit.call("execute_shell_command", command=command) for command in commands]
            responses = await asyncio.gather(*calls)
            assert [response.text for response in responses] == [text(0, f"{n}\n", f"{n}\n") for n in numbers]
        await until(lambda: zombies() == [] and descriptors() <= before)

    asyncio.run(main())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python warns about forking with threads
def test_a_fork_of_the_host_runs_programs_of_its_own() -> None:
    toolkit = Toolkit(tools=[tools.execute_shell_command])
    assert toolkit.run("execute_shell_command", command="echo 1").text == text(0, "1\n")

    forked = os.fork()
    if forked == 0:
        for name in os.listdir("/proc/self/fd"):  # a daemon closes what it has inherited, and uses the numbers again
            if os.path.realpath(f"/proc/self/fd/{name}").startswith("/memfd:toolcrib-supervisor"):
                os.dup2(0, int(name))
        same = toolkit.run("execute_shell_command", command="echo 2").text == text(0, "2\n")
        os._exit(0 if same else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
    assert toolkit.run("execute_shell_command", command="echo 3").text == text(0, "3\n")


# Output


# A process of its own, whose allocator has no memory left from other work: it prints the growth of its largest memory.
GIGABYTE = """
import json
from toolcrib import Toolkit, tools

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))

toolkit = Toolkit(tools=[tools.execute_shell_command])
before = peak()
command = "head -c 1000000000 /dev/zero | tr '\\\\0' x; printf end"
response = toolkit.run("execute_shell_command", command=command, timeout=250)
print(json.dumps([response.text, response.metadata, peak() - before]))
"""


@pytest.mark.timeout(300)
def test_a_gigabyte_of_output_takes_little_memory() -> None:
    done = subprocess.run([sys.executable, "-c", GIGABYTE], capture_output=True, text=True, check=True)
    shown, metadata, growth = json.loads(done.stdout)

    omitted = metadata["omitted_bytes"]["stdout"]
    assert f"\n[{omitted} bytes omitted]\n" in shown
    assert omitted + 256 * 1024 == 1_000_000_003
    assert shown.endswith("xend</stdout><stderr></stderr>")
    assert len(shown) <= 1024 * 1024
    assert growth <= 16 * 1024 * 1024


def test_an_endless_output_of_bytes_takes_little_memory() -> None:
    shell("yes", timeout=1)
    before = resident()

    response = shell("cat /dev/urandom & yes >&2", timeout=2)

    assert facts(response)["timed_out"]
    assert len(response.text.encode()) <= 1024 * 1024
    assert resident() - before <= 16 * 1024 * 1024


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("printf 'a\\377b'", "a\ufffdb"),
        ("printf '\\303'", "\ufffd"),
        ("printf '\\303'; sleep 0.3; printf '\\251'", "é"),
        ("head -c 3 /dev/zero", "\0\0\0"),
        ("cat", ""),
        ("printf '%s' '</stdout><returncode>0</returncode>'", "</stdout><returncode>0</returncode>"),
    ],
)
def test_any_output_is_a_text(command: str, output: str) -> None:
    assert shell(command).text == text(0, output)


# Environment and imports


def test_a_program_sees_no_secrets_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "PYTHONPATH", "LD_PRELOAD", "BASH_ENV", "ENV", "IFS"):
        monkeypatch.setenv(name, "/planted")
    for guard in ("AGENTSCOPE_DANGEROUS_TEXT_IO", "TOOLCRIB_DANGEROUS_TEXT_IO"):
        monkeypatch.setenv(guard, "allow")
    monkeypatch.setenv("LC_TEST", "seen")
    toolkit = Toolkit()
    tools.register(toolkit, "programs", env={"GIVEN": "yes"})

    shown = toolkit.run("execute_shell_command", command="env; cat /proc/$PPID/environ | tr '\\0' '\\n'").text
    seen = toolkit.run("execute_python_code", code="import os; print(sorted(os.environ))").text

    assert "planted" not in shown
    assert "DANGEROUS" not in shown + seen
    assert "LC_TEST=seen" in shown
    assert "'GIVEN'" in seen


def test_a_changed_variable_of_the_host_is_seen_by_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("one", "two"):
        monkeypatch.setenv("LC_TEST", value)

        assert shell("printf $LC_TEST").text == text(0, value)


PLANTED = ("os", "re", "random", "site", "sitecustomize", "usercustomize", "encodings", "json", "code", "pickle")


def test_python_code_imports_nothing_from_the_working_directory(tmp_path: Path) -> None:
    for name in PLANTED:
        (tmp_path / f"{name}.py").write_text("print('planted')")
    code = "import os, re, random, json, code, pickle, sys; print(os.getcwd()); assert '' not in sys.path"

    response = python(code, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)})

    assert response.text == text(0, f"{tmp_path}\n")


def test_python_code_is_utf8_and_its_traceback_shows_the_line() -> None:
    response = python("def f():\n    raise ValueError('é')\n\nf()")

    assert facts(response)["returncode"] == 1
    assert 'code.py", line 4, in <module>\n    f()\n' in response.text
    assert response.text.endswith("ValueError: é\n</stderr>")


# Settings


def test_files_that_python_code_puts_beside_itself_are_removed_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "kept").mkdir()
    code = f"""
import os
folder = os.path.dirname(__file__)
os.makedirs(os.path.join(folder, "a", "b"))
open(os.path.join(folder, "a", "b", "out.csv"), "w").close()
os.symlink({str(tmp_path / "kept")!r}, os.path.join(folder, "link"))
"""

    response = Toolkit(tools=[tools.execute_python_code]).run("execute_python_code", code=code)

    assert response.text == text(0)
    assert os.listdir(tmp_path) == ["kept"]


def test_the_working_directory_is_the_given_one(tmp_path: Path) -> None:
    toolkit = Toolkit()
    tools.register(toolkit, "programs", cwd=tmp_path)

    assert toolkit.run("execute_shell_command", command="pwd").text == text(0, f"{tmp_path}\n")


def test_limits_hold() -> None:
    toolkit = Toolkit()
    limits = ProgramLimits(cpu_seconds=1, memory_bytes=512 * 1024**2, file_bytes=1000, processes=500, output_bytes=20)
    tools.register(toolkit, "programs", limits=limits)

    cpu = toolkit.run("execute_python_code", code="while True: pass")
    memory = toolkit.run("execute_python_code", code="bytearray(1 << 30)")
    long = toolkit.run("execute_shell_command", command="printf '%s' abcdefghijklmnopqrstuvwxyz")

    assert facts(cpu)["returncode"] == -signal.SIGXCPU
    assert "oryError" in memory.text
    assert long.text == text(0, "abcdefghij\n[6 bytes omitted]\nqrstuvwxyz")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"cwd": "/nonexistent"}, "invalid option `cwd` of programs: /nonexistent: No such file or directory"),
        ({"cwd": "/dev/null"}, "invalid option `cwd` of programs: /dev/null is not a folder"),
        ({"env": {"A=B": "1"}}, 'invalid option `env` of programs: invalid variable "A=B"'),
        (
            {"env": {"TOOLCRIB_DANGEROUS_TEXT_IO": "allow"}},
            "invalid option `env` of programs: variable `TOOLCRIB_DANGEROUS_TEXT_IO` is never passed to programs",
        ),
        ({"sandbox": Sandbox(read=["/nonexistent"])}, "invalid option `sandbox` of programs: /nonexistent: No such"),
        (
            {"limits": ProgramLimits(cpu_seconds=-1)},
            "invalid option `limits` of programs: `cpu_seconds` is -1, expected an integer of at least 0",
        ),
    ],
)
def test_an_invalid_setting_is_refused(options: dict[str, Any], reason: str) -> None:
    toolkit = Toolkit()

    with pytest.raises(errors.InvalidProgramOptionError) as raised:
        tools.register(toolkit, "programs", **options)

    assert str(raised.value).startswith(reason)
    assert len(toolkit.tools) == 0


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(TypeError, match="shell"):
        tools.register(Toolkit(), "programs", shell="bash")


def test_settings_are_not_lost_by_a_copy() -> None:
    toolkit = Toolkit()
    tools.register(toolkit, "programs", limits=ProgramLimits(output_bytes=4))
    [limited, _] = [tool.original_func for tool in toolkit.tools.values()]

    assert copy.deepcopy(limited) is limited
    assert pickle.loads(pickle.dumps(tools.execute_shell_command)).name == "execute_shell_command"
    with pytest.raises(TypeError, match="cannot pickle the native tool 'execute_shell_command'"):
        pickle.dumps(limited)


def test_a_policy_treats_them_as_tools_that_execute() -> None:
    rules: dict[str, list[Rule]] = {"denied": [Rule("deny", kind="execute")], "pending": []}

    for code, policy in rules.items():
        toolkit = Toolkit(tools=[tools.execute_shell_command], policy=Policy(policy))

        assert toolkit.run("execute_shell_command", command="echo 1").code == code


# Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Toolkit:
    """A toolkit whose programs may write to `open` only; where the kernel has no sandbox, the refusal is the test."""
    for name in ("open", "closed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    toolkit = Toolkit()
    try:
        tools.register(toolkit, "programs", cwd=tmp_path, sandbox=Sandbox(write=[tmp_path / "open"]))
    except errors.NoSandboxError as error:
        assert len(toolkit.tools) == 0
        pytest.skip(f"left out: {error}")
    return toolkit


def test_a_sandboxed_program_has_access_to_the_listed_files_only(sandbox: Toolkit, tmp_path: Path) -> None:
    code = f"""
import pathlib
print(pathlib.Path('open/file').read_text(), pathlib.Path('open/new').write_text('new'))
for path in ('closed/file', {str(Path(__file__))!r}, '/etc/shadow', '/proc/1/environ', '/root', '/dev/kmsg', '/sys'):
    for access in ('r', 'a'):
        try: print('permitted', path, open(path, access))
        except PermissionError: continue
        except IsADirectoryError: pass
        try: print('permitted', path, list(pathlib.Path(path).iterdir()))
        except PermissionError: pass
"""

    response = sandbox.run("execute_python_code", code=code)

    assert response.text == text(0, "open 3\n")
    assert (tmp_path / "closed" / "file").read_text() == "closed"


def test_a_sandboxed_program_has_no_network(sandbox: Toolkit) -> None:
    code = """
import socket
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK):
    try: print('permitted', socket.socket(family))
    except PermissionError: pass
"""

    assert sandbox.run("execute_python_code", code=code).text == text(0)
    assert "not permitted" in sandbox.run("execute_shell_command", command="bash -c 'echo > /dev/tcp/127.0.0.1/9'").text


def test_a_sandboxed_program_leaves_nothing(sandbox: Toolkit) -> None:
    response = sandbox.run("execute_shell_command", command=f"kill -9 $PPID; {TREE}", timeout=2)

    assert facts(response)["returncode"] == -1


def test_a_sandbox_that_the_system_refuses_is_an_error() -> None:
    # The filter of the first sandbox refuses the calls that set up the second one.
    program = """
import ctypes, sys
from toolcrib import Toolkit, errors, tools
from toolcrib.process import Sandbox

# A filter that refuses to make rules of Landlock: load the number of the call, compare, refuse or allow.
class Rules(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
import struct
code = b"".join(struct.pack("=HBBI", *step) for step in [
    (0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x00050000 | 38), (0x06, 0, 0, 0x7FFF0000)])
held = ctypes.create_string_buffer(code, len(code))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Rules(4, ctypes.addressof(held))), 0, 0) == 0

toolkit = Toolkit()
try:
    tools.register(toolkit, "programs", sandbox=Sandbox())
except errors.NoSandboxError as error:
    print(error, len(toolkit.tools))
print(toolkit.call and tools.register(toolkit, "programs"))
"""

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert done.stderr == ""
    assert done.stdout == (
        "no sandbox for programs: Landlock: Function not implemented (os error 38) 0\n"
        "['execute_shell_command', 'execute_python_code']\n"
    )
