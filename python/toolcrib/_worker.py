"""What a worker thread tells Python's `threading` about itself."""

from __future__ import annotations

import sys
import threading


def begin(name: str) -> None:
    """Make the calling thread known by its name, and let tracers (coverage, debuggers) follow it."""
    threading.current_thread().name = name
    trace = threading.gettrace()
    if trace is not None:
        sys.settrace(trace)
    profile = threading.getprofile()
    if profile is not None:
        sys.setprofile(profile)


def end() -> None:
    """Take the calling thread out of `threading.enumerate()`, which before 3.13 nobody else does."""
    sys.settrace(None)
    sys.setprofile(None)
    active = getattr(threading, "_active", None)
    if isinstance(active, dict):
        active.pop(threading.get_ident(), None)
