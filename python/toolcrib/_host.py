"""The state of this process that a call in a child sees, above all the modules that it may import and execute.

A model may be allowed to write files into the working folder, and these must never run as modules. So a child never
searches the working folder for modules, neither by an empty or relative entry of `sys.path` nor by an absolute one. The
modules of a program in the working folder are listed by name instead: those that this process has loaded, with their
files, and those that were in the folder when the first process tool was registered.

A child executes the module of a tool. If the program itself is in the module, outside of `if __name__ == "__main__":`,
this would start the program a second time, so such a module is refused before it is executed.
"""

from __future__ import annotations

import ast
import importlib.machinery
import linecache
import os
import sys
import types
from collections.abc import Iterator

from toolcrib._child_state import environment
from toolcrib._messages import MAIN, Surroundings
from toolcrib.errors import UnguardedProgramError

Imports = tuple[list[str], dict[str, tuple[str | None, list[str] | None]], dict[str, str]]
"""The fields `path`, `modules` and `names` of the surroundings."""


def surroundings() -> Surroundings:
    """Return the state of this process."""
    folder = working_folder()
    path, modules, names = _imports.of(folder)
    return {
        "path": path,
        "modules": modules,
        "names": names,
        "folder": folder,
        "environment": dict(environment()),
    }


def remember_program() -> None:
    """Note the script, and the modules in the folders of the program, before a tool can add any."""
    global _script
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    if main is not None and file is not None:
        _script = (main, os.path.abspath(file))
    _imports.remember()


def main_script() -> tuple[str, str] | None:
    """Return the name or the file by which a child can load the script of this process."""
    main = sys.modules.get("__main__")
    if main is None:
        return None
    sys.modules.setdefault(MAIN, main)  # so that instances of the script's classes can be unpickled here
    file = _script_file(main)
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name == "__main__" and file is not None:
        file = os.path.dirname(file)  # the program is a folder or an archive
    elif spec is not None and spec.name is not None:
        return ("module", spec.name)
    return ("file", file) if file is not None and os.path.exists(file) else None


_script: tuple[types.ModuleType, str] | None = None
"""The main module and its file, which the interpreter removes from the module when it has been executed."""


def _script_file(main: types.ModuleType) -> str | None:
    if _script is not None and _script[0] is main:
        return _script[1]
    file = getattr(main, "__file__", None)
    return None if file is None else os.path.abspath(file)


def script_to_load() -> tuple[str, str] | None:
    """Return the name or the file of the script for a child that is about to execute it.

    Raises:
        UnguardedProgramError: The program would start a second time.
    """
    main = sys.modules.get("__main__")
    if main is not None and _starts_program(main):
        raise UnguardedProgramError(unguarded("__main__"))
    return main_script()


def unguarded(name: str | None) -> str:
    """Describe the mistake of a module that calls a tool of its own while it is being executed."""
    return (
        f"a process has to load `{name}` to run a tool of it, which would run the program a second time: "
        'put the start of your program under `if __name__ == "__main__":`'
    )


def _starts_program(main: types.ModuleType) -> bool:
    """Return True if a child that executes the script would come to the statement that has led to this call.

    A script that has come to its end may have started threads. It is a program if nothing in it depends on `__name__`.
    """
    guards, frames = _guards(main), _frames_of(main)
    if guards is None:  # without a source, the child itself refuses a second start if something depends on `__name__`
        return bool(frames) and not any("__name__" in frame.f_code.co_names for frame in frames)
    if not frames:
        return not guards
    return not any(frame.f_lineno in lines for frame in frames for lines in guards)


def _frames_of(module: types.ModuleType) -> list[types.FrameType]:
    """Return the running frames of a script in the thread that executes it; none if the script has come to its end."""
    for innermost in sys._current_frames().values():
        frames = [frame for frame in _outwards(innermost) if frame.f_globals is module.__dict__]
        frames = [frame for frame in frames if not frame.f_code.co_filename.startswith("<")]  # typed by the user
        if any(frame.f_code.co_name == "<module>" for frame in frames):
            return frames
    return []


def _outwards(frame: types.FrameType | None) -> Iterator[types.FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _guards(main: types.ModuleType) -> list[range] | None:
    """Return the lines that a child does not execute because they depend on `__name__`; None without a source."""
    source = "".join(linecache.getlines(_script_file(main) or "", main.__dict__))
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    return [lines for node in ast.walk(tree) for lines in _guarded_lines(node)] if source else None


def _guarded_lines(node: ast.AST) -> Iterator[range]:
    if isinstance(node, ast.If) and _depends_on_name(node.test):
        skipped = node.orelse if _is_true_in_child(node.test) else node.body
        if skipped:
            yield range(skipped[0].lineno, (skipped[-1].end_lineno or 0) + 1)
    elif isinstance(node, (ast.IfExp, ast.BoolOp, ast.Match)) and _depends_on_name(node):
        yield range(node.lineno, (node.end_lineno or 0) + 1)


def _depends_on_name(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node))


def _is_true_in_child(test: ast.expr) -> bool:
    """Return True if a child would enter the block; False also for a condition that needs more than the name."""
    try:
        return bool(eval(compile(ast.Expression(test), "", "eval"), {"__name__": MAIN, "__builtins__": {}}))
    except Exception:
        return False


def working_folder() -> str | None:
    """Return the working folder; None if it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return None


def is_safe_entry(entry: object, folder: str | None) -> bool:
    """Return True if an entry of an import path is absolute and not this folder."""
    if not isinstance(entry, str) or not os.path.isabs(entry):
        return False
    return folder is None or os.path.realpath(entry) != os.path.realpath(folder)


class _Imports:
    """The modules that a child may import, computed when `sys.path`, the folder or the loaded modules change.

    It has no lock, because a fork could copy it while it is held. Threads that compute it at the same time agree.
    """

    def __init__(self) -> None:
        self._latest: tuple[object, Imports] = (None, ([], {}, {}))
        self._listed: dict[str, dict[str, str]] = {}

    def of(self, folder: str | None) -> Imports:
        """Return the import path without a folder, and the modules that are found by other means."""
        key = (tuple(sys.path), folder, len(sys.modules))
        latest, imports = self._latest
        if key != latest:
            imports = self._compute(folder)
            self._latest = (key, imports)
        return imports

    def remember(self) -> None:
        """List the folders on the path that do not belong to the installation."""
        installation = tuple(os.path.join(prefix, "") for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix})
        for entry in list(sys.path):
            if is_safe_entry(entry, None) and not entry.startswith(installation):
                self._list(entry)

    def _compute(self, folder: str | None) -> Imports:
        path = [entry for entry in sys.path if is_safe_entry(entry, folder)]
        names: dict[str, str] = {}
        for entry in sys.path:
            if entry not in path and is_safe_entry(entry, None):
                names.update(self._list(entry))
        return path, _modules_outside(path), names

    def _list(self, folder: str) -> dict[str, str]:
        if folder not in self._listed:
            try:
                entries = os.listdir(folder)
            except OSError:
                entries = []
            names = (_module_name(folder, entry) for entry in entries)
            self._listed.setdefault(folder, {name: folder for name in names if name is not None})
        return self._listed[folder]


def _modules_outside(path: list[str]) -> dict[str, tuple[str | None, list[str] | None]]:
    """Return the top-level modules of this process that are not on an import path."""
    searched = set(path)
    modules: dict[str, tuple[str | None, list[str] | None]] = {}
    for module in list(sys.modules.values()):
        spec = getattr(module, "__spec__", None) if isinstance(module, types.ModuleType) else None
        if not isinstance(spec, importlib.machinery.ModuleSpec) or "." in spec.name:
            continue
        file = spec.origin if spec.has_location else None
        folders = spec.submodule_search_locations
        folders = list(folders) if folders is not None else None
        place = folders[0] if folders else file
        if place is not None and os.path.isabs(place) and os.path.dirname(place) not in searched:
            modules[spec.name] = (file, folders)
    return modules


def _module_name(folder: str, entry: str) -> str | None:
    """Return the name under which a file or folder would be imported."""
    for suffix in importlib.machinery.all_suffixes():
        if entry.endswith(suffix):
            name = entry.removesuffix(suffix)
            return name if name.isidentifier() else None
    return entry if entry.isidentifier() and os.path.isdir(os.path.join(folder, entry)) else None


_imports = _Imports()
