"""Hosts that ignore SIGCHLD, from their beginning or from some time on: the kernel then reaps their children itself."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.processes import TESTS

SERVER = str(Path(__file__).parents[1] / "tests" / "data" / "mcp" / "scripted_server.py")

IGNORE = "signal.signal(signal.SIGCHLD, signal.SIG_IGN)"

HOST = f"""
import asyncio, json, signal, sys
sys.path.insert(0, {TESTS!r})
early, late = sys.argv[1:]
exec(early)
from support import process_tools
from toolcrib import Toolkit, errors, mcp, tools
from toolcrib.process import Sandbox

def program(toolkit, command, **arguments):
    response = toolkit.run("execute_shell_command", command=command, timeout=60, **arguments)
    return [response.text, response.metadata and response.metadata["returncode"]]

def sandboxed():
    toolkit = Toolkit()
    try:
        tools.register(toolkit, "programs", sandbox=Sandbox())
    except errors.NoSandboxError as error:
        if "Landlock" in str(error):
            return 4
        raise
    return program(toolkit, "exit 4")[1]

async def server(command):
    kit = Toolkit()
    try:
        async with await mcp.connect(command, name="scripted") as client:
            await kit.register_mcp_client(client)
            return (await kit.call("add", a=2, b=3)).metadata["value"]
    except errors.McpConnectionError as error:
        return str(error)

toolkit = Toolkit()
tools.register(toolkit, "programs")
if late:
    assert program(toolkit, "exit 3")[1] == 3
    exec(late)
processes = Toolkit()
processes.register_tool_function(process_tools.whereabouts, run_in="process")
result = {{
    "program": program(toolkit, "echo hi; exit 3"),
    "codes": [program(toolkit, command)[1] for command in ("kill -9 $$", "true & exit 5")],
    "python": toolkit.run("execute_python_code", code="print(1)").text,
    "children of programs": program(toolkit, "sh -c 'exit 6'; echo $?")[0],
    "sandbox": sandboxed(),
    "process": asyncio.run(processes.call("whereabouts")).code,
    "server": asyncio.run(server([sys.executable, "-S", {SERVER!r}])),
    "unknown": asyncio.run(server(["nonexistent-program"])),
    "missing": asyncio.run(server(["/nonexistent/program"])),
    "failing": asyncio.run(server(["sh", "-c", "echo reason >&2; exit 3"])),
    "again": program(toolkit, "exit 7")[1],
}}
print(json.dumps(result))
"""


@pytest.mark.parametrize(
    ("early", "late", "shell"),
    [(IGNORE, "", ""), ("", IGNORE, ""), ("", "", "trap '' CHLD; ")],
    ids=["before the first call", "between calls", "inherited"],
)
def test_a_host_that_ignores_the_end_of_children_runs_all_kinds(early: str, late: str, shell: str) -> None:
    command = ["sh", "-c", f'{shell}exec "$@"', "sh", sys.executable, "-c", HOST, early, late]

    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert "panicked" not in done.stderr
    assert done.stdout, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["program"] == ["<returncode>3</returncode><stdout>hi\n</stdout><stderr></stderr>", 3]
    assert result["codes"] == [-9, 5]
    assert result["python"] == "<returncode>0</returncode><stdout>1\n</stdout><stderr></stderr>"
    assert "<stdout>6\n" in result["children of programs"]
    assert result["sandbox"] == 4
    assert result["process"] is None
    assert result["server"] == {"sum": 5}
    no_such = "No such file or directory (os error 2)"
    assert result["unknown"] == f"MCP server `scripted`: cannot start `nonexistent-program`: {no_such}"
    assert result["missing"] == f"MCP server `scripted`: cannot start `/nonexistent/program`: {no_such}"
    # The kernel may have forgotten its status, but it is never shown as another one.
    ends = ("the server ended;", "the server ended with exit status 3;")
    assert result["failing"].removeprefix("MCP server `scripted`: ").startswith(ends)
    assert result["failing"].endswith("the last lines of its log:\n  reason")
    assert result["again"] == 7


def test_a_host_that_ignores_the_end_of_children_goes_on_to_do_so() -> None:
    program = f"""
import signal
{IGNORE}
from toolcrib import Toolkit, tools
toolkit = Toolkit(tools=[tools.execute_shell_command])
for _ in range(5):
    toolkit.run("execute_shell_command", command="true")
import time
time.sleep(0.5)
toolkit.run("execute_shell_command", command="true")
ignored = next(line for line in open("/proc/self/status") if line.startswith("SigIgn:"))
print(int(ignored.split()[1], 16) >> (signal.SIGCHLD - 1) & 1)
"""

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert (done.stdout, done.stderr) == ("1\n", "")
