"""Calls of functions in child processes, which are killed when the call is abandoned."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import pickle
import signal
import sys
import threading
import types
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from toolcrib._children import Child, children
from toolcrib._host import main_script, remember_program, script_to_load, unguarded
from toolcrib._messages import MAIN, StrayAnswer, WorkerEnded
from toolcrib.errors import UnguardedProgramError

if TYPE_CHECKING:
    from toolcrib.context import ToolContext

CLOSING = 5.0
"""Seconds that a generator has to end after it was closed, `finally` blocks included, before its process is killed."""


class RemoteTraceback(Exception):
    """The traceback of an exception in the child process, as the cause of the exception in this process."""

    def __str__(self) -> str:
        """Return the traceback on lines of its own."""
        return f'\n"""\n{self.args[0]}"""'


class ProcessCall:
    """One call of a function in a child process: called in a worker thread, ended from any other."""

    def __init__(self, func: Callable[..., Any]) -> None:
        self._func = func
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._killed = False
        self._context: ToolContext[Any] | None = None
        self._timer: threading.Timer | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function and return its result, or a generator of its items."""
        self._context = _context_among(*args, *kwargs.values())
        module = _module(self._func)
        _refuse_while_loading(module)
        try:
            payload = pickle.dumps((self._func, args, kwargs), pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            # A function that a decorator registered had no name to be found by at that time.
            check_importable(self._func, is_defined=True)
            raise TypeError(f"cannot pickle `{_name(self._func)}` and its arguments for a process: {error}") from error
        names = [module]
        if self._context is not None:
            names.append("toolcrib.context")
        if inspect.iscoroutinefunction(self._func) or inspect.isasyncgenfunction(self._func):
            names.append("asyncio")
        modules = [name for name in names if name in sys.modules]
        child = self._begin()
        try:
            reply = self._ask(child, child.call, modules, payload)
        except BaseException:
            self._finish(child, usable=False)
            raise
        if reply[0] == "stream":
            chunks = self._chunks(child)
            next(chunks)  # a generator that has not started would not clean up when it is closed
            return chunks
        self._finish(child, usable=True)
        return _unpack(reply)

    def end(self, closing: bool) -> None:
        """End the call.

        Args:
            closing: True if a generator is about to be closed, for which it has a limited time; otherwise the process
                is killed at once.
        """
        if not closing:
            self.kill()
            return
        self._timer = threading.Timer(CLOSING, self.kill)
        self._timer.daemon = True
        self._timer.start()

    def kill(self) -> None:
        """End the call and its process at once; a call that was not made yet never starts a process."""
        with self._lock:
            self._killed = True
            child = self._child
        if child is not None:
            child.kill()

    def _begin(self) -> Child:
        if self._killed:
            raise RuntimeError(f"the process of `{_name(self._func)}` was killed")
        child = children.take()
        with self._lock:
            self._child = child
            killed = self._killed
        if killed:
            child.kill()
        return child

    def _finish(self, child: Child, *, usable: bool) -> int:
        with self._lock:
            self._child = None
            killed = self._killed
        if self._timer is not None:
            self._timer.cancel()
        if usable and not killed:
            children.put_back(child)
            return 0
        return children.drop(child)

    def _ask(self, child: Child, request: Callable[..., tuple[Any, ...]], *content: Any) -> tuple[Any, ...]:
        try:
            reply = request(*content)
            while reply[0] == "inquiry":
                if reply[1] == "main":
                    reply = child.reply(True, script_to_load())
                else:
                    reply = child.reply(*self._inquire(*reply[1:]))
            return reply
        except StrayAnswer:
            raise RuntimeError(f"the process of `{_name(self._func)}` sent an answer to another call") from None
        except (EOFError, WorkerEnded) as end:
            code = self._finish(child, usable=False)
            if isinstance(end, WorkerEnded):
                code = 0  # of the worker, while the template was killed
            if self._killed:
                raise RuntimeError(f"the process of `{_name(self._func)}` was killed") from None
            raise RuntimeError(f"the process of `{_name(self._func)}` ended {_describe(code)}") from None

    def _inquire(self, kind: str, content: Any) -> tuple[bool, Any]:
        """Do for the context in the child what it would do here."""
        context = self._context
        try:
            if context is None:
                raise RuntimeError(f"`{_name(self._func)}` has no context")
            if kind == "ask":
                return True, context.ask(*content).result()
            if kind == "sample":
                return True, context._run(context._sampled(content))
            if kind == "log":
                logger = context.log.logger
                if logger.isEnabledFor(content.levelno):
                    logger.handle(content)
            else:
                context._port.report(content)
        except Exception as error:
            try:
                pickle.loads(pickle.dumps(error))
            except Exception:
                error = RuntimeError(f"{type(error).__name__}: {error}")
            return False, error
        return True, None

    def _chunks(self, child: Child) -> Generator[Any, None, None]:
        usable = False
        try:
            yield None
            while True:
                reply = self._ask(child, child.next)
                if reply[0] != "chunk":
                    usable = True
                    break
                yield reply[1]
        except GeneratorExit:
            # The generator runs its `finally` blocks, unless the call was abandoned.
            if self._killed:
                raise
            reply = self._ask(child, child.close)
            usable = True
        finally:
            self._finish(child, usable=usable)
        if reply[0] == "raise":
            _unpack(reply)


def _context_among(*values: Any) -> ToolContext[Any] | None:
    """Return the context of the call, if the tool takes one."""
    module = sys.modules.get("toolcrib.context")
    if module is None:
        return None
    return next((value for value in values if isinstance(value, module.ToolContext)), None)


def _module(func: Any) -> str | None:
    """Return the module of a function, or of the class of the object that it is a method of."""
    func = _unwrapped(func)
    owner = getattr(func, "__self__", None)
    if owner is None or isinstance(owner, types.ModuleType):
        owner = func
    name = getattr(owner if hasattr(owner, "__qualname__") else type(owner), "__module__", None)
    return "__main__" if name == MAIN else name


def _refuse_while_loading(module: str | None) -> None:
    """Refuse a call by a module that is being executed, if a child would have to execute it, too.

    If this process is a child that executes a module, the whole child ends.
    """
    error = UnguardedProgramError(unguarded(module))
    child = sys.modules.get("toolcrib_child._child_call")
    if child is not None:
        child.refuse_while_loading(error)
    spec = getattr(sys.modules.get(module or ""), "__spec__", None)
    if getattr(spec, "_initializing", False):  # to pickle the function would wait for the import, which waits for us
        raise error


def check_importable(func: Callable[..., Any], *, is_defined: bool = False) -> None:
    """Raise an exception for a function that another process could not import.

    Args:
        func: The function that is to run in a child process.
        is_defined: False if a decorator may be registering the function, which gets its name after that.

    Raises:
        ValueError: The function is a lambda, is local to another function, belongs to an object that cannot be
            pickled, or is not found under its qualified name.
    """
    if os.name != "posix":
        raise ValueError(f"`{_name(func)}` cannot run in a process: this needs a POSIX system")
    remember_program()
    reason = _obstacle(func, is_defined=is_defined)
    if reason is not None:
        raise ValueError(f"`{_name(func)}` cannot run in a process: {reason}")


def _obstacle(func: Any, *, is_defined: bool) -> str | None:
    if getattr(sys, "frozen", False) or not sys.executable:
        return "the program is frozen or embedded, and has no interpreter to start"
    func = _unwrapped(func)
    name = _name(func)
    if name.rpartition(".")[2] == "<lambda>":
        return "it is a lambda"
    if "<locals>" in name:
        return "it is defined inside another function"
    if getattr(func, "__module__", None) == "__main__" and main_script() is None:
        return "the main module is not a file that a process can load"
    if not is_defined and _is_being_defined(func):
        return None
    try:
        pickle.dumps(func)
    except Exception as error:
        if getattr(func, "__self__", None) is not None:
            return f"it is a method of an object that cannot be pickled: {error}"
        return f"it is not found under its qualified name: {error}"
    return None


def _is_being_defined(func: Any) -> bool:
    """Return True while the module of a function is being executed, so that its name may be bound later."""
    frame = sys._getframe() if isinstance(func, types.FunctionType) else None
    while frame is not None:
        if frame.f_globals is func.__globals__ and frame.f_locals is frame.f_globals:
            return True
        frame = frame.f_back
    return False


def _unpack(reply: tuple[Any, ...]) -> Any:
    """Return the value of an answer, or raise its exception.

    A `SystemExit`, and any other exception that is not an `Exception`, would end this process. It is raised as a
    `RuntimeError` that names its type. A `KeyboardInterrupt` is one as well: the child does not receive the user's.
    `CancelledError` is raised as it is.
    """
    if reply[0] != "raise":
        return reply[1]
    _, pickled, kind, text, frames = reply
    error: BaseException | None = None
    if pickled is not None:
        try:
            error = pickle.loads(pickled)
        except BaseException:
            error = None  # a type that only the child can create
    if not isinstance(error, BaseException):
        error = RuntimeError(text or kind)
    elif not isinstance(error, (Exception, asyncio.CancelledError)):
        error = RuntimeError(f"{kind}: {text}" if text else kind)
    raise error from RemoteTraceback(frames)


def _unwrapped(func: Any) -> Any:
    while isinstance(func, functools.partial):
        func = func.func
    return func


def _name(func: Any) -> str:
    func = _unwrapped(func)
    return str(getattr(func, "__qualname__", None) or type(func).__qualname__)


def _describe(code: int) -> str:
    if code >= 0:
        return f"with exit code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"
