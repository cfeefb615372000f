"""Settings of the tools that run programs: limits, and a sandbox.

Example:
    ```python
    from toolcrib import Toolkit, tools
    from toolcrib.process import ProgramLimits, Sandbox

    toolkit = Toolkit()
    tools.register(
        toolkit,
        "programs",
        cwd="./work",
        limits=ProgramLimits(cpu_seconds=60, memory_bytes=2 * 1024**3),
        sandbox=Sandbox(write=["./work"]),
    )
    ```
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from toolcrib._core import NativeTool, _program_tools

__all__ = ["ProgramLimits", "Sandbox"]

_Path: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True)
class ProgramLimits:
    """The limits of a program. Those on time, memory and files hold for each of its processes.

    Attributes:
        cpu_seconds: The CPU time, after which a process is killed.
        memory_bytes: The address space.
        file_bytes: The size of the largest file that may be written.
        processes: The number of processes of the user, those of other programs included. Root is not limited.
        output_bytes: The number of bytes that are kept of each output. The middle of a longer one is omitted.
    """

    cpu_seconds: int | None = None
    memory_bytes: int | None = None
    file_bytes: int | None = None
    processes: int | None = None
    output_bytes: int = 256 * 1024


@dataclass(frozen=True)
class Sandbox:
    """The files and the network that a program has access to.

    The folders of the system, such as `/usr`, and those of the interpreter are always readable. A sandboxed program can
    neither get more rights by a program of another user, nor send signals to other programs where the kernel can
    refuse them.

    Attributes:
        read: Files and folders that may be read and executed.
        write: Files and folders that may be changed as well.
        network: Permits sockets.
    """

    read: Sequence[_Path] = ()
    write: Sequence[_Path] = ()
    network: bool = False


def _tools(
    *,
    cwd: _Path | None = None,
    env: Mapping[str, str] | None = None,
    limits: ProgramLimits | None = None,
    python: _Path | None = None,
    sandbox: Sandbox | None = None,
) -> list[NativeTool]:
    """Make the tools with these settings."""
    allowed = None
    if sandbox is not None:
        interpreter = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix} if python is None else ()
        read = [*(os.fspath(path) for path in sandbox.read), *sorted(interpreter)]
        allowed = (read, [os.fspath(path) for path in sandbox.write], sandbox.network)
    return _program_tools(
        cwd=cwd,
        env=env or {},
        limits=limits or ProgramLimits(),
        python=python or sys.executable or "python3",
        sandbox=allowed,
    )
