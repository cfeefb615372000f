"""The state of this process that a call in a child sees, above all the modules that it may import.

A model may be allowed to write files into the working folder, and these must never run as modules. So a child never
searches the working folder for modules, neither by an empty or relative entry of `sys.path` nor by an absolute one. The
modules of a program in the working folder are listed by name instead: those that this process has loaded, with their
files, and those that were in the folder when the first process tool was registered.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
import types

from toolcrib._child import MAIN, Surroundings, environment

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
        "main": main_script(),
    }


def remember_program() -> None:
    """List the modules in the folders of the program, before a tool can add any."""
    _imports.remember()


def main_script() -> tuple[str, str] | None:
    """Return the name or the file by which a child can load the script of this process."""
    main = sys.modules.get("__main__")
    if main is None:
        return None
    sys.modules.setdefault(MAIN, main)  # so that instances of the script's classes can be unpickled here
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name is not None:
        return ("module", spec.name)
    file = getattr(main, "__file__", None)
    if file is None or not os.path.exists(file):
        return None
    return ("file", os.path.abspath(file))


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
