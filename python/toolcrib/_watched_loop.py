"""An event loop that notes what is done with it, so that it is known to be clean when a call has ended.

asyncio has no way to ask a loop what is left on it. All methods here are public ones. It is a module of its own because
asyncio is imported late.
"""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable
from typing import Any

from toolcrib import _core

__all__ = ["WatchedLoop", "new_loop"]

# The most timers that a loop notes.
MOST_TIMERS = 100

# The methods of event loops that may leave something behind: a thread, a file, a connection, a setting.
TOUCHING = (
    "add_writer",
    "add_signal_handler",
    "call_soon_threadsafe",
    "connect_accepted_socket",
    "connect_read_pipe",
    "connect_write_pipe",
    "create_connection",
    "create_datagram_endpoint",
    "create_server",
    "create_unix_connection",
    "create_unix_server",
    "run_in_executor",
    "set_debug",
    "set_default_executor",
    "set_exception_handler",
    "set_task_factory",
    "sock_accept",
    "sock_connect",
    "sock_recv",
    "sock_recv_into",
    "sock_recvfrom",
    "sock_recvfrom_into",
    "sock_sendall",
    "sock_sendfile",
    "sock_sendto",
    "subprocess_exec",
    "subprocess_shell",
)


class WatchedLoop(asyncio.SelectorEventLoop):
    """asyncio's event loop, which notes its callbacks and timers, and uses that may leave something behind."""

    is_touched = False
    scheduled = 0
    timers: list[asyncio.TimerHandle]
    process: int

    def call_soon(self, *args: Any, **kwargs: Any) -> asyncio.Handle:  # type: ignore[override] # it passes them on
        self.scheduled += 1
        return super().call_soon(*args, **kwargs)

    def call_at(self, *args: Any, **kwargs: Any) -> asyncio.TimerHandle:  # type: ignore[override] # as above
        timer = super().call_at(*args, **kwargs)
        if len(self.timers) == MOST_TIMERS:
            self.forget_timers()
            self.is_touched = self.is_touched or len(self.timers) == MOST_TIMERS
        if not self.is_touched:
            self.timers.append(timer)
        return timer

    def forget_timers(self) -> None:
        """Forget the timers that are cancelled, as those of `asyncio.sleep` are in the end."""
        self.timers = [timer for timer in self.timers if not timer.cancelled()]

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        # The one of toolcrib itself wakes the loop for results of threads, and stays as long as the loop.
        self.is_touched = self.is_touched or not isinstance(callback, _core._Drain)
        super().add_reader(fd, callback, *args)

    def is_closed(self) -> bool:
        # A copy in a forked process: closing it would unregister files in the other process, too.
        return super().is_closed() or self.process != os.getpid()


def _touching(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def touch(self: WatchedLoop, *args: Any, **kwargs: Any) -> Any:
        self.is_touched = True
        return method(self, *args, **kwargs)

    return touch


# Some of the methods are missing before Python 3.11, where no loop is kept.
_METHODS = {name: _touching(getattr(WatchedLoop, name)) for name in TOUCHING if hasattr(WatchedLoop, name)}
_CLASS: type[WatchedLoop] = type("WatchedLoop", (WatchedLoop,), _METHODS)


def new_loop() -> asyncio.AbstractEventLoop:
    """Make the event loop of the policy, and watch it if it is that of asyncio itself."""
    loop = asyncio.new_event_loop()
    if type(loop) is asyncio.SelectorEventLoop:
        watched: Any = loop
        watched.__class__ = _CLASS
        watched.process, watched.timers = os.getpid(), []
    return loop
