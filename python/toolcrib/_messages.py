"""The messages between the host and a child of process mode: requests, answers and inquiries.

A message is a header of sixteen bytes and a pickle. The header is the number of the message and the length of the
pickle, big-endian. The host draws a random number for each call. The first request of the call has this number, each
further request the next one, and an answer has the number of its request. If an answer has any other number, the host
discards the child: the answer belongs to another call, or was written by other code that has the socket.

    request                                                    answers
    ("call", surroundings, modules,                            ("value", result), ("stream",), ("raise", ...)
        pickle of (function, args, kwargs))
    ("next",), after ("stream",)                               ("chunk", item), ("end",), ("raise", ...)
    ("close",), after ("stream",)                              ("end",), ("raise", ...)

Before an answer there may be inquiries: ("inquiry", kind, content). Each is answered by a request
("reply", True, value) or ("reply", False, exception), which the next inquiry or the final answer follows. Most are
those of the tool's context. ("inquiry", "main", None) asks for `("module", name)` or `("file", path)` of the host's
script, which is about to be executed.

An empty message with the first number of a call says that its worker has exited with the code 0. It follows the final
answer, and the template accepts the next call after it. Without it the child cannot be used again.

`("raise", pickled exception or None, name of its type, text, traceback)` carries any exception of a tool. The
surroundings are `None` if they have not changed since the call before; they are restored before every call.
"""

from __future__ import annotations

import os
import pickle
import socket
import struct
import threading
import traceback
from typing import Any, TypedDict

MAIN = "__mp_main__"
"""The module name of the host's script in a child, the same as in `multiprocessing`."""

HEADER = struct.Struct(">QQ")
"""The number of a message and the length of its pickle."""


class Surroundings(TypedDict):
    """The state of the host that a call sees."""

    path: list[str]
    """`sys.path` without the working folder and relative entries."""
    modules: dict[str, tuple[str | None, list[str] | None]]
    """File and package folders of the modules that the host has loaded from other folders, found before all others."""
    names: dict[str, str]
    """The folders of modules that were in the working folder when the program began, found after all others."""
    folder: str | None
    environment: dict[bytes, bytes]


class StrayAnswer(Exception):
    """An answer that does not belong to the last request."""


class WorkerEnded(Exception):
    """The worker of the call has exited with the code 0."""


def send(wire: socket.socket, number: int, message: bytes | bytearray) -> None:
    """Write one message."""
    header = HEADER.pack(number, len(message))
    if len(message) < 65536:
        wire.sendall(header + message)
    else:
        wire.sendall(header)
        wire.sendall(message)


def receive(wire: socket.socket, expected: int | None = None, first: int | None = None) -> tuple[int, bytearray]:
    """Read one message and its number.

    Args:
        wire: The socket.
        expected: The number that the message must have.
        first: The number of the call whose worker may end.

    Raises:
        EOFError: The connection has ended.
        StrayAnswer: The message has another number.
        WorkerEnded: The worker has ended.
    """
    number, length = HEADER.unpack(_read(wire, HEADER.size))
    if first is not None and (number, length) == (first, 0):
        raise WorkerEnded
    if expected is not None and number != expected:
        raise StrayAnswer
    return number, _read(wire, length)


def _read(wire: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = wire.recv_into(view)
        if not count:
            raise EOFError("the other process has ended")
        view = view[count:]
    return data


class Connection:
    """The socket to the host in this process, and the number of the request that is being served."""

    def __init__(self, wire: socket.socket, number: int = 0) -> None:
        self.wire = wire
        self.pid = os.getpid()
        self.number = number
        self.lock = threading.Lock()

    def receive(self) -> tuple[Any, ...]:
        """Read the next request."""
        self.number, content = receive(self.wire)
        request: tuple[Any, ...] = pickle.loads(content)
        return request

    def answer(self, message: bytes) -> None:
        """Answer the request."""
        with self.lock:
            send(self.wire, self.number, message)

    def exchange(self, kind: str, content: Any) -> Any:
        """Make an inquiry of the host, from any thread of the tool."""
        if os.getpid() != self.pid:
            raise RuntimeError("the context of a call is of no use in a process that the tool has forked")
        message = pickle.dumps(("inquiry", kind, content), pickle.HIGHEST_PROTOCOL)
        with self.lock:
            send(self.wire, self.number, message)
            self.number, reply = receive(self.wire, self.number + 1)
        _, is_answered, value = pickle.loads(reply)
        if not is_answered:
            raise value
        return value


def failure(error: BaseException) -> tuple[Any, ...]:
    """Return the answer for an exception: its text, and its pickle if it can be restored from that."""
    try:
        text = str(error)
    except BaseException:
        text = f"<{type(error).__name__} without a text>"
    try:
        frames = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    except BaseException:  # it runs code of the exception
        frames = f"{type(error).__name__}: {text}"
    pickled: bytes | None
    try:
        pickled = pickle.dumps(error, pickle.HIGHEST_PROTOCOL)
        if type(pickle.loads(pickled)) is not type(error):
            pickled = None
    except BaseException:
        pickled = None
    return ("raise", pickled, type(error).__name__, text, frames)
