"""Tools for `test_process*.py`: a child process has to find them by name."""

import asyncio
import atexit
import builtins
import decimal
import functools
import importlib
import io
import locale
import logging
import math
import os
import pickle
import random
import re
import resource
import shlex
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any


def whereabouts() -> str:
    return f"{os.getpid()} {os.getpgid(0)}"


def template() -> str:
    """Name the process that has forked this one, which does so for several calls."""
    return str(os.getppid())


def join(a: str, b: str = "b") -> str:
    return a + b


async def join_later(a: str) -> str:
    await asyncio.sleep(0.001)
    return a + "!"


def count(limit: int) -> Iterator[str]:
    for number in range(limit):
        yield str(number)


async def count_later(limit: int) -> AsyncIterator[str]:
    for number in range(limit):
        await asyncio.sleep(0)
        yield str(number)


def fail() -> str:
    raise LookupError("not there")


def fail_halfway() -> Iterator[str]:
    yield "half"
    raise LookupError("no more")


class NeedsTwo(Exception):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


def fail_oddly() -> str:
    raise NeedsTwo("one", "two")


def give_function() -> Callable[[], None]:
    return lambda: None


def crash() -> str:
    os._exit(7)


def large(size: int) -> str:
    return "x" * size


def chat() -> str:
    print("this is not an answer")
    sys.stdout.flush()
    os.system("echo nor is this")
    return f"read {sys.stdin.read()!r}"


def stay(file: str) -> str:
    """Leave the ids of this process and of one that it has started, and stay."""
    other = subprocess.Popen(["sleep", "600"])
    part = Path(file + ".part")
    part.write_text(f"{os.getpid()} {other.pid}")
    part.rename(file)
    time.sleep(600)
    return "left"


def stay_in_generator(file: str) -> Iterator[str]:
    yield "begun"
    yield stay(file)


def write_at_the_end(file: str) -> Iterator[str]:
    """Yield without end, and leave a text when closed."""
    try:
        while True:
            yield "more"
    finally:
        time.sleep(0.05)
        Path(file).write_text("closed")


async def write_at_the_end_later(file: str) -> AsyncIterator[str]:
    try:
        while True:
            await asyncio.sleep(0)
            yield "more"
    finally:
        await asyncio.sleep(0.05)
        Path(file).write_text("closed")


def fail_at_the_end(file: str) -> Iterator[str]:
    try:
        while True:
            yield "more"
    finally:
        raise LookupError(file)


class Counter:
    def __init__(self, start: int) -> None:
        self.start = start

    def add(self, value: int) -> str:
        return str(self.start + value)


class Unpicklable(Counter):
    def __reduce__(self) -> str:
        raise TypeError("this object stays here")


def decorated(function: Callable[[], str]) -> Callable[[], str]:
    return lambda: function()


def hidden() -> str:
    return "the one that was asked for"


original = hidden


def hidden() -> str:  # type: ignore[no-redef]
    return "another one of that name"


# Endings that are no ordinary exception


class Abandon(BaseException):
    pass


class ExitsWhenRead:
    """A result or an exception's part that ends the process which unpickles it."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[int]]:
        return (sys.exit, (5,))


class InterruptsWhenRead:
    def __reduce__(self) -> tuple[Callable[..., object], tuple[()]]:
        return (interrupt, ())


def interrupt() -> None:
    raise KeyboardInterrupt


class ErrorThatCannotBeShown(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt


def recurse_in_c() -> object:
    """Use up the stack of the thread, which a limit of Python would prevent."""
    value: object = None
    for _ in range(1_000_000):
        value = functools.partial(call, value)
    return call(value)


def call(function: Any) -> object:
    return function()


def deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


class ErrorThatExits(Exception):
    def __reduce__(self) -> tuple[Callable[..., object], tuple[int]]:
        return (exit_in_another_process, (os.getpid(),))


def exit_in_another_process(pid: int) -> Exception:
    if os.getpid() != pid:
        sys.exit(6)
    return ErrorThatExits()


def end_by(way: str) -> object:
    """End in a way that would take a process with it."""
    if way == "exit":
        sys.exit(3)
    if way == "exit with text":
        sys.exit("no licence")
    if way == "exit silently":
        raise SystemExit
    if way == "abandon":
        raise Abandon("left")
    if way == "generator exit":
        raise GeneratorExit
    if way == "interrupt":
        raise KeyboardInterrupt
    if way == "interrupt with text":
        raise KeyboardInterrupt("enough")
    if way == "interrupt signal":
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(600)
    if way == "interrupting result":
        return InterruptsWhenRead()
    if way == "recursion":
        return end_by(way)
    if way == "recursion without a limit":
        sys.setrecursionlimit(2**31 - 1)
        return recurse_in_c()
    if way == "deep result":
        return deep()
    if way == "odd error":
        raise ErrorThatCannotBeShown
    if way == "memory":
        raise MemoryError
    if way == "all descriptors closed":
        os.closerange(0, 65536)
        return "never sent"
    if way == "all descriptors exchanged":
        os.closerange(0, 65536)
        pairs = [socket.socketpair() for _ in range(20)]
        return f"sent to {len(pairs)} others"
    if way == "template killed":
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)
    if way == "group killed":
        os.killpg(0, signal.SIGKILL)
        time.sleep(600)
    if way == "ended with 0":
        os._exit(0)
    if way == "result":
        return ExitsWhenRead()
    if way == "error":
        raise ErrorThatExits("made elsewhere")
    if way == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if way == "crashed":
        os.kill(os.getpid(), signal.SIGSEGV)
    os._exit(9)


async def end_later_by(way: str) -> object:
    await asyncio.sleep(0)
    return end_by(way)


def end_halfway_by(way: str) -> Iterator[object]:
    yield "half"
    yield end_by(way)


# Answers to no request


def fork_and_return() -> str:
    return "parent" if os.fork() else "child"


def fork_and_raise() -> str:
    if os.fork():
        return "parent"
    raise LookupError("child")


async def fork_in_coroutine() -> str:
    await asyncio.sleep(0)
    return "parent" if os.fork() else "child"


def fork_in_generator() -> Iterator[str]:
    yield "parent" if os.fork() else "child"
    yield "parent again"


def fork_and_exit(code: int) -> int:
    """Let a forked process exit as scripts do, and give the code that it exits with."""
    pid = os.fork()
    if pid == 0:
        sys.exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def sockets() -> list[int]:
    found = []
    for descriptor in range(3, 256):
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                found.append(descriptor)
        except OSError:
            pass
    return found


def sockets_in_fork() -> int:
    """Count the sockets that a forked process has."""
    pid = os.fork()
    if pid == 0:
        os._exit(len(sockets()))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def own_number() -> int:
    """Find the number of the request that is being served."""
    frame = sys._getframe()
    while not hasattr(frame.f_locals.get("self"), "connection"):
        assert frame.f_back is not None
        frame = frame.f_back
    return int(frame.f_locals["self"].connection.number)


def forge(kind: str) -> str:
    """Write to the socket what the host did not ask for, and answer."""
    message = pickle.dumps(("value", "forged"))
    content = {
        "zero": struct.pack(">QQ", 0, len(message)) + message,
        "next": struct.pack(">QQ", own_number() + 1, len(message)) + message,
        "same": struct.pack(">QQ", own_number(), len(message)) + message,
        "without a number": struct.pack(">Q", len(message)) + message,
        "text": b"hello, this is what a tool prints to the wrong place\n",
        "huge": b"\xff" * 16,
        "one byte": b"\0",
    }[kind]
    for descriptor in sockets():
        os.write(descriptor, content)
    return "answered"


def forge_later(delay: float) -> str:
    """Answer, and have the same answer come a second time a little later."""
    message = pickle.dumps(("value", "forged"))
    content = struct.pack(">QQ", own_number(), len(message)) + message

    def write() -> None:
        time.sleep(delay)
        for descriptor in sockets():
            os.write(descriptor, content)

    threading.Thread(target=write, daemon=True).start()
    return "answered"


# Processes that a tool starts


def start_descendant(mode: str, file: str) -> None:
    """Start a process that writes its id to a file and stays, more or less far from its parents."""
    code = (
        "import os, signal, sys, time\n"
        "for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, signal.SIG_IGN)\n"
        "open(sys.argv[1] + '.part', 'w').write(str(os.getpid()))\n"
        "os.rename(sys.argv[1] + '.part', sys.argv[1])\n"
        "time.sleep(600)\n"
    )
    command = [sys.executable, "-I", "-S", "-c", code, file]
    if mode in ("child", "session"):
        subprocess.Popen(command, start_new_session=mode == "session")
    elif mode == "shell":
        subprocess.Popen(f"({' '.join(map(shlex.quote, command))}) & sleep 600", shell=True)
    else:
        pid = os.fork()
        if pid == 0:
            if mode == "daemon":
                os.setsid()
            if os.fork() == 0:
                if mode == "group":
                    os.setpgid(0, 0)
                os.execv(command[0], command)
            os._exit(0)
        os.waitpid(pid, 0)
    while not Path(file).exists():
        time.sleep(0.01)


def stay_with(mode: str, file: str, then: str = "stay") -> str:
    """Leave the ids of this process and of a descendant, and stay, end badly or return."""
    start_descendant(mode, file + ".pid")
    descendant = int(Path(file + ".pid").read_text())
    if mode == "session":
        os.kill(descendant, signal.SIGSTOP)
    part = Path(file + ".part")
    part.write_text(f"{os.getpid()} {descendant}")
    part.rename(file)
    if then == "crash":
        os._exit(7)
    if then == "hog":
        re.match(r"(a+)+$", "a" * 60 + "b")  # holds the interpreter lock
    if then == "stay":
        time.sleep(600)
    return "left"


# Traces of a call in its process

REMEMBERED: list[str] = []
SETTING: ContextVar[str] = ContextVar("SETTING", default="unset")


def leave_traces(folder: str) -> str:
    os.environ["LEFT_BY_A_TOOL"] = "yes"
    os.environ.pop("HOME", None)
    os.chdir(folder)
    os.umask(0o777)
    sys.path.insert(0, folder)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    signal.setitimer(signal.ITIMER_REAL, 3600)
    sys.stdout = io.StringIO()
    SETTING.set("set")
    REMEMBERED.append("called")
    cached()
    importlib.import_module("this_module_is_left").value = "changed"  # type: ignore[attr-defined]
    math.left = "yes"  # type: ignore[attr-defined]
    builtins.left = "yes"  # type: ignore[attr-defined]
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
    decimal.getcontext().prec = 3
    sys.setrecursionlimit(5000)
    sys.excepthook = print
    atexit.register(print, "never")
    asyncio.set_event_loop(asyncio.new_event_loop())
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("error")
    os.open(folder, os.O_RDONLY)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    threading.Thread(target=time.sleep, args=(600,)).start()
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
    os.nice(1)
    return template()


@functools.cache
def cached() -> int:
    return os.getpid()


def see_traces() -> dict[str, object]:
    mask = os.umask(0o22)
    os.umask(mask)
    return {
        "template": template(),
        "environment": os.environ.get("LEFT_BY_A_TOOL"),
        "home": os.environ.get("HOME"),
        "folder": os.getcwd(),
        "umask": mask,
        "path": sys.path,
        "ignored": [int(number) for number in (signal.SIGUSR1, signal.SIGINT) if signal.getsignal(number) == 1],
        "blocked": len(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "timer": signal.getitimer(signal.ITIMER_REAL)[0],
        "output": type(sys.stdout).__name__,
        "setting": SETTING.get(),
        "remembered": REMEMBERED,
        "cached": cached() != os.getpid(),
        "modules": "this_module_is_left" in sys.modules,
        "attributes": hasattr(math, "left") or hasattr(builtins, "left"),
        "locale": locale.setlocale(locale.LC_ALL),
        "precision": decimal.getcontext().prec,
        "recursion": sys.getrecursionlimit(),
        "hook": sys.excepthook is not sys.__excepthook__,
        "logging": logging.root.manager.disable,
        "warnings": [kind for kind, *_ in warnings.filters if kind == "error"],
        "descriptors": len(os.listdir("/proc/self/fd")),
        "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "threads": threading.active_count(),
        "priority": os.nice(0),
    }


def draw() -> float:
    return random.random()


def read_environment(name: str) -> str:
    return os.environ.get(name, "nothing")
