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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from toolcrib._core import NativeTool, _program_tools

__all__ = ["ProgramLimits", "Sandbox"]

# Links are followed once, for a sandboxed program may later replace a virtual environment that it can write by one.
_INTERPRETER = sorted(
    {os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)}
)

_Path: TypeAlias = str | os.PathLike[str]
_Paths: TypeAlias = _Path | Iterable[_Path]


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

    The folders of the system, such as `/usr`, and those of the interpreter are always readable. All paths are opened
    when the tools are registered: the sandbox is about the files and folders that they led to at that time, even if
    their names lead elsewhere later. A path that leads through a link in a folder that a sandboxed program may write to
    is refused when the tools are registered. A sandboxed program has no capabilities, not even as root.

    Attributes:
        read: Files and folders that may be read and executed; a single path, or several.
        write: Files and folders that may be changed as well.
        network: Permits sockets.

    Raises:
        TypeError: If a path is neither a string nor an `os.PathLike` of one.
    """

    read: _Paths = ()
    write: _Paths = ()
    network: bool = False

    def __post_init__(self) -> None:
        """Keep the paths as tuples."""
        object.__setattr__(self, "read", _paths("read", self.read))
        object.__setattr__(self, "write", _paths("write", self.write))


def _paths(option: str, given: object) -> tuple[_Path, ...]:
    """Return several paths; a string is one of them, not a list of letters."""
    if isinstance(given, str | os.PathLike):
        given = (given,)
    elif isinstance(given, bytes | bytearray | memoryview | Mapping) or not isinstance(given, Iterable):
        raise TypeError(f"`{option}` of a sandbox must be a path or a list of paths, not {type(given).__name__}")
    paths = tuple(given)
    for path in paths:
        if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
            kind = type(path).__name__
            raise TypeError(f"`{option}` of a sandbox must be a path or a list of paths, and one of them is {kind}")
    return paths


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
        interpreter = _INTERPRETER if python is None else ()
        read = [os.fspath(path) for path in (*_paths("read", sandbox.read), *interpreter)]
        allowed = (read, [os.fspath(path) for path in _paths("write", sandbox.write)], sandbox.network)
    return _program_tools(
        cwd=cwd,
        env=env or {},
        limits=limits or ProgramLimits(),
        python=python or sys.executable or "python3",
        sandbox=allowed,
    )
