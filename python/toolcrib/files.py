"""Files for agents: directories under logical names, grants on them, and the tools that use them.

A model names files by paths such as `/workspace/notes.txt`. What it may do there is a grant; everything else is denied.
Paths are resolved by the kernel inside of the directory, so that no link, no `..` and no other process leads out of it.

Example:
    ```python
    from toolcrib import Toolkit
    from toolcrib.files import DiskFileSystem, FileDomainService

    system = DiskFileSystem("./data", create=True)
    handle = system.create_handle([{"prefix": "/workspace/", "ops": ["list", "read", "write"]}])
    toolkit = Toolkit()
    for function, service in FileDomainService(handle).tools():
        toolkit.register_tool_function(function, preset_kwargs={"service": service})
    ```
"""

import dataclasses
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias, TypedDict

from toolcrib._core import FileHandle, NativeTool, _FileSystem, _name_list
from toolcrib.errors import (
    AccessDeniedError,
    ConflictError,
    FileSystemError,
    InvalidArgumentError,
    InvalidPathError,
    NotFoundError,
)

__all__ = [
    "AccessDeniedError",
    "ConflictError",
    "DiskFileSystem",
    "FileDomainService",
    "FileHandle",
    "FilePolicy",
    "FileSystemError",
    "FileTool",
    "Grant",
    "InvalidArgumentError",
    "InvalidPathError",
    "NotFoundError",
]

_Folder: TypeAlias = str | os.PathLike[str]

_READ: Final = ("list", "read")
_ROOTS: Final = {
    "/userinput/": _READ,
    "/workspace/": (*_READ, "write", "delete"),
    "/internal/": (*_READ, "write"),
}


class Grant(TypedDict):
    """The right to operations on a path and everything beneath it.

    Attributes:
        prefix: A path such as `/workspace/` or `/workspace/reports/`.
        ops: Some of `list`, `file`, `read_binary`, `read_file`, `read_re`, `write` and `delete`. `read` stands for
            `file`, `read_binary`, `read_file` and `read_re`.
    """

    prefix: str
    ops: Iterable[str]


@dataclass(frozen=True)
class FilePolicy:
    """The limits of the tools of a `FileDomainService`.

    Attributes:
        max_reply_bytes: The longest text of a reply; a longer one is truncated and says how to read on.
        max_file_bytes: The largest file that is written or edited.
        max_entries: The largest number of entries of a listing or search.
        hard_links: Permits writing to files with several hard links; the name then gets a file of its own.
        durable: Waits after each write until it survives a loss of power. Writes are atomic either way.
    """

    max_reply_bytes: int = 256 * 1024
    max_file_bytes: int = 16 * 1024 * 1024
    max_entries: int = 1000
    hard_links: bool = False
    durable: bool = True


class DiskFileSystem:
    """Three directories under logical names.

    | name | grants can allow at most | contains |
    |---|---|---|
    | `/userinput/` | reading | what the user gave the agent |
    | `/workspace/` | reading, writing, deleting | the work of the agent |
    | `/internal/` | reading, writing | notes that must not get lost |

    A directory is opened once, and stays the root when it is renamed.

    Args:
        root_dir: The folder of the three directories, which are created in it. By default `./output/<time>`, which is
            created as well.
        userinput_dir: Another directory for `/userinput/`.
        workspace_dir: Another directory for `/workspace/`.
        internal_dir: Another directory for `/internal/`.
        create: Creates the given directories if they do not exist.

    Raises:
        MissingFileError: If a given directory does not exist, and `create` is not set.
        FileAccessError: If a directory cannot be created or opened.
    """

    def __init__(
        self,
        root_dir: _Folder | None = None,
        *,
        userinput_dir: _Folder | None = None,
        workspace_dir: _Folder | None = None,
        internal_dir: _Folder | None = None,
        create: bool = False,
    ) -> None:
        folder = Path("output", time.strftime("%m%d%H%M%S")) if root_dir is None else Path(root_dir)
        given = {"/userinput/": userinput_dir, "/workspace/": workspace_dir, "/internal/": internal_dir}
        inside = "all" if create or root_dir is None else "last"
        folders = {
            root: (folder / root.strip("/"), inside) if own is None else (Path(own), _created(create))
            for root, own in given.items()
        }
        self._system = _FileSystem([(root, folders[root][0], ops, folders[root][1]) for root, ops in _ROOTS.items()])

    def create_handle(self, grants: Sequence[Grant | Mapping[str, Any]]) -> FileHandle:
        """Make a handle with grants.

        Args:
            grants: The rights. Where two prefixes cover a path, both apply.

        Raises:
            InvalidPathError: If a prefix is not a logical path.
            InvalidArgumentError: If an operation is unknown, or a prefix is in no root.
        """
        return self._system.create_handle([(grant["prefix"], _name_list("ops", grant["ops"])) for grant in grants])


class FileTool:
    """A file tool that gets its service as the argument `service`, which is preset.

    Args:
        tool: The native tool.
    """

    def __init__(self, tool: NativeTool) -> None:
        self.name = tool.name
        self.__name__ = tool.name
        self.description = tool.description
        self.json_schema = tool.json_schema
        self.kind = tool.kind

    async def __call__(self, *, service: "FileDomainService", **arguments: Any) -> Any:
        """Call the tool of a service.

        Args:
            service: The service.
            **arguments: The arguments of the schema.

        Returns:
            The response.
        """
        return await service.tool(self.name)(**arguments)


class FileDomainService:
    """The file tools over a handle.

    Args:
        handle: The grants.
        policy: The limits.
    """

    def __init__(self, handle: FileHandle, policy: FilePolicy | None = None) -> None:
        self.handle = handle
        self.policy = policy or FilePolicy()
        self._tools = {tool.name: tool for tool in handle._tools(**dataclasses.asdict(self.policy))}

    def tools(self) -> "list[tuple[FileTool, FileDomainService]]":
        """Return the tools that the grants permit, each with this service.

        Register each pair with `preset_kwargs={"service": service}`. `native_tools` has the same tools without the
        preset argument.
        """
        return [(FileTool(tool), self) for tool in self._tools.values()]

    def native_tools(self) -> list[NativeTool]:
        """Return the tools that the grants permit, ready to be registered."""
        return list(self._tools.values())

    def tool(self, name: str) -> NativeTool:
        """Return one native tool.

        Args:
            name: For example `"read_text_file"`.

        Raises:
            InvalidArgumentError: If there is no such tool, or the grants do not permit it.
        """
        try:
            return self._tools[name]
        except KeyError:
            known = ", ".join(self._tools)
            raise InvalidArgumentError(f"unknown file tool `{name}`: expected one of {known}") from None


def _created(create: bool) -> str:
    """Name the directories that are created for a root that was given."""
    return "all" if create else "never"


def _over(root: _Folder, *, write: bool, policy: FilePolicy | None, create: bool) -> FileDomainService:
    """Make a service over one directory, which the model is shown as `/workspace/`."""
    ops = _ROOTS["/workspace/"] if write else _READ
    system = _FileSystem([("/workspace/", Path(root), ops, _created(create))])
    handle = system.create_handle([("/workspace/", ops)])
    return FileDomainService(handle, policy)
