"""The tools included in toolcrib. None is registered by default.

They are native: Rust code on a tokio runtime, which occupies no thread while it waits.

Example:
    ```python
    from toolcrib import Toolkit, tools

    toolkit = Toolkit()
    toolkit.register_tool_function(tools.wait)
    tools.register(toolkit, "files", root="./data", write=True)
    ```
"""

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from toolcrib._core import NativeTool, Store, _artifact_tools, _did_you_mean, _native_tool

if TYPE_CHECKING:
    from toolcrib.files import FilePolicy
    from toolcrib.toolkit import Toolkit

__all__ = [
    "ArtifactTools",
    "artifacts",
    "execute_python_code",
    "execute_shell_command",
    "insert_text_file",
    "register",
    "view_text_file",
    "wait",
    "write_text_file",
]

wait: Final[NativeTool] = _native_tool("wait")
"""Waits for `seconds`. With `every`, it reports the progress after each interval of that many seconds."""

view_text_file: Final[NativeTool] = _native_tool("view_text_file")
"""Shows a text file of the machine with line numbers. It is guarded; see `register`."""

write_text_file: Final[NativeTool] = _native_tool("write_text_file")
"""Creates or overwrites a text file of the machine, or replaces some of its lines. It is guarded; see `register`."""

insert_text_file: Final[NativeTool] = _native_tool("insert_text_file")
"""Inserts lines into a text file of the machine. It is guarded; see `register`."""

execute_shell_command: Final[NativeTool] = _native_tool("execute_shell_command")
"""Runs a shell command and streams its output. All its processes end with it; see `register` for settings."""

execute_python_code: Final[NativeTool] = _native_tool("execute_python_code")
"""Runs Python code in a new, isolated interpreter and streams its output; see `register` for settings."""


class ArtifactTools(NamedTuple):
    """The tools for artifacts: versioned texts, which each session has for itself."""

    create_artifact: NativeTool
    update_artifact: NativeTool
    rewrite_artifact: NativeTool
    read_artifact: NativeTool
    list_artifacts: NativeTool
    artifact_history: NativeTool
    diff_artifact: NativeTool
    delete_artifact: NativeTool


def artifacts(store: Store | None = None) -> ArtifactTools:
    """Make the tools for the artifacts in a store.

    Args:
        store: The store; None keeps the artifacts in memory, as long as one of the tools exists.

    Returns:
        The tools, to be registered all or one by one.
    """
    return ArtifactTools(*_artifact_tools(Store.open("sqlite::memory:") if store is None else store))


def register(toolkit: "Toolkit", tools: str, /, *, group: str = "basic", **options: Any) -> list[str]:
    """Register a set of tools.

    | set | options | tools |
    |---|---|---|
    | `"files"` | `root`, `write=False`, `policy=None`, `create=False` | the file tools over one directory, which must
    exist unless `create` is set; see `toolcrib.files` |
    | `"artifacts"` | `store=None`: by default the store of the toolkit | the tools of `artifacts` |
    | `"text_files"` | – | `view_text_file`, `write_text_file`, `insert_text_file`: raw access to the machine's files |
    | `"programs"` | `cwd=None`, `env=None`, `limits=None`, `python=None`, `sandbox=None` | `execute_shell_command`,
    `execute_python_code`; see `toolcrib.process` |

    Args:
        toolkit: The toolkit.
        tools: The name of the set.
        group: The tool group, which must exist.
        **options: The options of the set.

    Returns:
        The names of the tools.

    Raises:
        ValueError: If the set is unknown, or an option is invalid.
        MissingFileError: If the directory of the files does not exist.
        NoSandboxError: If programs are to run in a sandbox, and this system has none.
        TypeError: If an option is unknown or missing.
    """
    if tools not in _SETS:
        raise ValueError(f"unknown set of tools `{tools}`{_did_you_mean(tools, list(_SETS))}")
    if tools == "artifacts" and toolkit.store is not None:
        options.setdefault("store", toolkit.store)
    made = list(_SETS[tools](**options))
    for tool in made:
        toolkit.register_tool_function(tool, group)
    return [tool.name for tool in made]


def _files(
    *,
    root: "str | os.PathLike[str]",
    write: bool = False,
    policy: "FilePolicy | None" = None,
    create: bool = False,
) -> list[NativeTool]:
    from toolcrib.files import _over

    return _over(root, write=write, policy=policy, create=create).native_tools()


def _text_files() -> list[NativeTool]:
    return [view_text_file, write_text_file, insert_text_file]


def _programs(**options: Any) -> list[NativeTool]:
    from toolcrib.process import _tools

    return _tools(**options)


_SETS: Final[dict[str, Callable[..., Iterable[NativeTool]]]] = {
    "artifacts": artifacts,
    "files": _files,
    "programs": _programs,
    "text_files": _text_files,
}
