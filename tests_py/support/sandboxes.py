"""Hosts that run programs in a sandbox: processes of their own, as this user or as one without rights."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import pytest

NOBODY = 65534
"""A user without rights and without files."""

USERS = ["root", "nobody"] if os.geteuid() == 0 else ["user"]
"""The users that hosts run as."""

SOURCE = Path(__file__).parents[2] / "tests" / "data" / "process" / "attack.c"

_HOST = """
import json, os, sys
options = json.loads(sys.argv[1])
from toolcrib import Toolkit, errors, tools
from toolcrib.process import Sandbox
warm = Toolkit(tools=[tools.execute_shell_command])
warm.run("execute_shell_command", command="true")  # whatever is imported by the first call, while it can be read
if options["user"] is not None:
    os.setgroups([])
    os.setgid(options["user"])
    os.setuid(options["user"])
os.chdir(options["folder"])
toolkit = Toolkit()
sandbox = options["sandbox"] and Sandbox(**options["sandbox"])
python = "/bin/sh" if options["user"] is not None else None  # the interpreter may be in the home of another user
try:
    tools.register(toolkit, "programs", cwd=options["folder"], sandbox=sandbox, python=python, env=options["env"])
except errors.NoSandboxError as error:
    print(json.dumps(str(error)), flush=True)
    sys.exit()
print(json.dumps(None), flush=True)
for line in sys.stdin:
    response = toolkit.run("execute_shell_command", command=json.loads(line), timeout=30)
    print(json.dumps([response.text, response.metadata]), flush=True)
"""


class Host:
    """A process whose programs work in a folder with `listed`, which they may write to, and `unlisted`."""

    def __init__(
        self,
        user: str,
        *,
        network: bool = False,
        is_sandboxed: bool = True,
        read: Sequence[str] = ("bin",),
        write: Sequence[str] = ("listed",),
        prepare: Callable[[Path], None] = lambda folder: None,
    ) -> None:
        self.user = user
        self.folder = Path(tempfile.mkdtemp(prefix="toolcrib-sandbox-", dir="/tmp"))
        for name in ("listed", "unlisted", "bin"):
            (self.folder / name).mkdir()
        (self.folder / "listed" / "own").write_text("own")
        (self.folder / "unlisted" / "secret").write_text("secret")
        prepare(self.folder)
        self.folder.chmod(0o755)
        compiler = ["cc", "-o", str(self.folder / "bin" / "attack"), str(SOURCE), "-pthread"]
        subprocess.run(compiler, check=True)
        number = NOBODY if user == "nobody" else None
        if number is not None:
            for path in [self.folder, *self.folder.rglob("*")]:
                os.chown(path, number, number)
        sandbox = {"read": read, "write": write, "network": network} if is_sandboxed else None
        # Its processes are found by a variable, which survivors would have.
        self.mark = f"TEST_MARK={self.folder.name}"
        env = {"TEST_MARK": self.folder.name}
        options = {"user": number, "folder": str(self.folder), "sandbox": sandbox, "env": env}
        arguments = [sys.executable, "-c", _HOST, json.dumps(options)]
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.refusal: str | None = self._read()

    def _read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the host has ended"
        return json.loads(line)

    def run(self, command: str) -> str:
        """Run a shell command, and return its outputs."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return cast("str", self._read()[0])

    def attack(self, *names: str) -> dict[str, str]:
        """Make attempts against the host: `permitted`, or the number of the error."""
        output = self.run(f"bin/attack {self.process.pid} {' '.join(names)}")
        lines = output.partition("<stdout>")[2].partition("</stdout>")[0].splitlines()
        results = dict(cast("tuple[str, str]", tuple(line.split())) for line in lines)
        assert set(results) == set(names), output
        return results

    def survivors(self) -> list[str]:
        """Return the processes of its programs that still run."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                pass  # it has ended
        return [command for command in found if not command.startswith("toolcrib-supervisor ")]

    def __enter__(self) -> "Host":
        """Leave the test out if the kernel has no sandbox, and the host has refused as it should."""
        if self.refusal is not None:
            self.close()
            pytest.skip(f"left out: {self.refusal}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the host."""
        self.close()

    def close(self) -> None:
        """End the host, and remove its folder."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()
        shutil.rmtree(self.folder)
