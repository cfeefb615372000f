"""Threads: registration with `threading`, functions that run in one, and forks while others import a module."""

from __future__ import annotations

import _imp
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# The number of seconds that a fork waits for other threads to end their imports.
LONGEST_IMPORT = 5.0


def begin(name: str) -> None:
    """Register the calling thread under its name, and install the trace functions of coverage and debuggers."""
    threading.current_thread().name = name
    trace = threading.gettrace()
    if trace is not None:
        sys.settrace(trace)
    profile = threading.getprofile()
    if profile is not None:
        sys.setprofile(profile)


def end() -> None:
    """Remove the calling thread from `threading.enumerate()`, which Python itself does since 3.13."""
    sys.settrace(None)
    sys.setprofile(None)
    active = getattr(threading, "_active", None)
    if isinstance(active, dict):
        active.pop(threading.get_ident(), None)


async def in_thread(function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Run a function in a thread, as `asyncio.to_thread` does.

    Raises:
        RuntimeError: If the function raises a `StopIteration`. A future cannot hold it, so that its reader would wait
            for ever.
        BaseException: Any other exception of the function.
    """
    import asyncio

    def run() -> T:
        try:
            return function(*args, **kwargs)
        except StopIteration as error:
            raise RuntimeError("a function that ran in a thread raised StopIteration") from error

    return await asyncio.to_thread(run)


class _Fork:
    """Forks that wait until no thread imports a module.

    CPython locks a module while a thread imports it. A child that another thread forks meanwhile has this lock with
    no thread to release it, and its own import of the module would wait for ever. Most of this package is
    imported at first use, so that is likely to happen. The locks are not part of a public interface; where they
    are missing, forks do not wait.
    """

    def __init__(self) -> None:
        self._holder: int | None = None

    def prepare(self) -> None:
        """Wait for the imports of other threads, and let none begin."""
        deadline = time.monotonic() + LONGEST_IMPORT
        _imp.acquire_lock()
        while self._is_importing() and time.monotonic() < deadline:
            _imp.release_lock()
            time.sleep(0.001)
            _imp.acquire_lock()
        self._holder = threading.get_ident()

    def _is_importing(self) -> bool:
        if threading.active_count() == 1:
            return False
        bootstrap = sys.modules.get("_frozen_importlib")
        references = tuple(getattr(bootstrap, "_module_locks", {}).values())
        owners = {getattr(reference(), "owner", None) for reference in references}
        return bool(owners - {None, threading.get_ident()})

    def finish(self) -> None:
        """Let imports begin again, in both processes."""
        if self._holder == threading.get_ident():
            self._holder = None
            _imp.release_lock()


if hasattr(os, "register_at_fork"):
    _fork = _Fork()
    os.register_at_fork(before=_fork.prepare, after_in_parent=_fork.finish, after_in_child=_fork.finish)
