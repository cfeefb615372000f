"""Registration of worker threads with Python's `threading`."""

from __future__ import annotations

import sys
import threading


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
