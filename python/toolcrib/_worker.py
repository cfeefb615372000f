"""Registration of worker threads with Python's `threading`, and functions that run in a thread."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


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
