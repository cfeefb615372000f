"""The state of this process that is set up for a call in a child, above all the modules that it may import.

A model may be allowed to write files into the working folder, and none of them may run. So a child never searches the
working folder for modules, neither by an empty or relative entry of `sys.path` nor by an absolute one. The modules of a
program that lies in the working folder are listed by name instead: those that this process has loaded, with their
files, and those that were in the folder when the first process tool was registered.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
import threading
import types

from toolcrib._child import MAIN, Surroundings, environment

Imports = tuple[list[str], dict[str, tuple[str | None, list[str] | None]], dict[str, str]]
"""The fields `path`, `modules` and `names` of the surroundings."""


def surroundings() -> Surroundings:
    """Describe the state of this process."""
    folder = working_folder()
    path, modules, names = _imports.of(folder)
    return {
        "path": path,
        "modules": modules,
        "names": names,
        "folder": folder,
        "environment": dict(environment()),
        "main": main_script(),
    }


def remember_program() -> None:
    """List the modules in the folders of the program, before a tool can add any."""
    _imports.remember()


def main_script() -> tuple[str, str] | None:
    """Give the name or the file by which a child can load the script of this process."""
    main = sys.modules.get("__main__")
    if main is None:
        return None
    sys.modules.setdefault(MAIN, main)  # what the child makes of the script's classes is found here again
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name is not None:
        return ("module", spec.name)
    file = getattr(main, "__file__", None)
    if file is None or not os.path.exists(file):
        return None
    return ("file", os.path.abspath(file))


def working_folder() -> str | None:
    """Give the working folder, unless it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return None


def is_safe_entry(entry: object, folder: str | None) -> bool:
    """Tell whether an entry of an import path is an absolute one of another folder than this."""
    if not isinstance(entry, str) or not os.path.isabs(entry):
        return False
    return folder is None or os.path.realpath(entry) != os.path.realpath(folder)


class _Imports:
    """The modules that a child may import, computed when `sys.path`, the folder or the loaded modules change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: object = None
        self._value: Imports = ([], {}, {})
        self._listed: dict[str, dict[str, str]] = {}

    def of(self, folder: str | None) -> Imports:
        """Give the import path without a folder, and the modules to be found besides."""
        key = (tuple(sys.path), folder, len(sys.modules))
        with self._lock:
            if key != self._key:
                self._value = self._compute(folder)
                self._key = key
            return self._value

    def remember(self) -> None:
        """List the folders on the path that do not belong to the installation."""
        installation = tuple(os.path.join(prefix, "") for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix})
        with self._lock:
            for entry in sys.path:
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
            self._listed[folder] = {name: folder for name in names if name is not None}
        return self._listed[folder]


def _modules_outside(path: list[str]) -> dict[str, tuple[str | None, list[str] | None]]:
    """Find the top-level modules of this process that a search of this path would not find."""
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
    """Give the name under which a file or folder would be imported."""
    for suffix in importlib.machinery.all_suffixes():
        if entry.endswith(suffix):
            name = entry.removesuffix(suffix)
            return name if name.isidentifier() else None
    return entry if entry.isidentifier() and os.path.isdir(os.path.join(folder, entry)) else None


_imports = _Imports()
