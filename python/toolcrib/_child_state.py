"""The state in which a call in a child begins: that of the host, and for the rest that of a new interpreter."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import importlib
import importlib.machinery
import importlib.util
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from ._messages import Surroundings


class HostModules:
    """Finder for modules that the host has loaded from folders outside of the import path, by their files."""

    def __init__(self) -> None:
        self.modules: dict[str, tuple[str | None, list[str] | None]] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Find a top-level module."""
        if path is not None or name not in self.modules:
            return None
        file, folders = self.modules[name]
        if file is not None:
            return importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = folders
        return spec


class ProgramModules:
    """Finder for modules of the program in the working folder that were there before a tool could write to it."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Find a top-level module."""
        if path is not None or name not in self.names:
            return None
        return importlib.machinery.PathFinder.find_spec(name, [self.names[name]])


class ProcessState:
    """Restores the surroundings before modules are loaded and before each call, whatever the modules have changed."""

    def __init__(self) -> None:
        self.surroundings: Surroundings | None = None
        self.host_modules = HostModules()
        self.program_modules = ProgramModules()
        sys.meta_path.insert(0, self.host_modules)
        sys.meta_path.append(self.program_modules)
        # `signal.getsignal` converts to enumerations, which is too slow for every signal in every call.
        self.handlers = {int(number): _signal.getsignal(number) for number in signal.valid_signals()}
        self.mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self.streams = (sys.stdin, sys.stdout, sys.stderr)
        self.umask = os.umask(0o077)
        os.umask(self.umask)

    def restore(self, surroundings: Surroundings | None) -> None:
        """Restore these surroundings, or the last ones."""
        if surroundings is not None:
            self.surroundings = surroundings
            self.host_modules.modules = surroundings["modules"]
            self.program_modules.names = surroundings["names"]
        else:
            surroundings = self.surroundings
        assert surroundings is not None, "the first call has surroundings"
        if sys.path != surroundings["path"]:
            sys.path[:] = surroundings["path"]
            importlib.invalidate_caches()
        if environment() != surroundings["environment"]:
            os.environb.clear()
            os.environb.update(surroundings["environment"])
        self._reset_signals()
        sys.stdin, sys.stdout, sys.stderr = self.streams
        os.umask(self.umask)
        folder = surroundings["folder"]
        if folder is not None and _working_folder() != folder:
            os.chdir(folder)

    def _reset_signals(self) -> None:
        for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
            signal.setitimer(timer, 0)
        for number, handler in self.handlers.items():
            if handler is not None and _signal.getsignal(number) is not handler:
                signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)


def environment() -> Mapping[bytes, bytes]:
    """Return the environment of this process in a form that is quick to compare and to copy.

    `os.environb` encodes and checks every item, which would take a large part of the time of a call.
    """
    data: Mapping[bytes, bytes] = getattr(os.environb, "_data", os.environb)
    return data


def _working_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None  # it was removed
