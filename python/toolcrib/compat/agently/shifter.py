"""`FunctionShifter`: synchronous functions as coroutine functions, and back."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import os
import queue
import threading
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Future
from contextlib import aclosing, nullcontext, suppress
from typing import Any, ParamSpec, TypeVar, overload

from toolcrib import _run
from toolcrib._core import _AwaitableJob

__all__ = ["FunctionShifter", "is_async"]

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

# The items that an async generator may produce before the consumer takes them.
ITEMS_AHEAD = 32


class FunctionShifter:
    """Conversions between synchronous and asynchronous functions; context variables are carried over in all of them."""

    @overload
    @staticmethod
    def syncify(func: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, R]: ...

    @overload
    @staticmethod
    def syncify(func: Callable[P, R]) -> Callable[P, R]: ...

    @staticmethod
    def syncify(func: Callable[..., Any]) -> Callable[..., Any]:
        """Return a synchronous function; one that is synchronous already is returned as it is.

        A coroutine function runs on an event loop in the calling thread. If that has a running loop, it runs on a loop
        in another thread, and the caller blocks.

        Raises:
            TypeError: If `func` is not callable.
        """
        if not is_async(func):
            return func

        def synchronous(*args: Any, **kwargs: Any) -> Any:
            async def main() -> Any:
                return await func(*args, **kwargs)

            return _run.wait_for(lambda: _run.ending_tasks(main))

        return _named(synchronous, func)

    @overload
    @staticmethod
    def asyncify(func: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]: ...

    @overload
    @staticmethod
    def asyncify(func: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]: ...

    @staticmethod
    def asyncify(func: Callable[..., Any]) -> Callable[..., Any]:
        """Return a coroutine function, which runs a synchronous one in a worker thread.

        Raises:
            TypeError: If `func` is not callable.
        """
        if inspect.iscoroutinefunction(func):
            return func
        awaits = is_async(func)

        async def asynchronous(*args: Any, **kwargs: Any) -> Any:
            if awaits:
                return await func(*args, **kwargs)
            # In a list: the result may be a coroutine or a generator, which is not to be run.
            (result,) = await _AwaitableJob(lambda _: [func(*args, **kwargs)], None)
            return result

        return _named(asynchronous, func)

    @overload
    @staticmethod
    def future(func: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, asyncio.Future[R] | Future[R]]: ...

    @overload
    @staticmethod
    def future(func: Callable[P, R]) -> Callable[P, asyncio.Future[R] | Future[R]]: ...

    @staticmethod
    def future(func: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that starts `func` and returns its future at once.

        Inside a running loop it is a task of that loop. Otherwise it runs on a loop in the background, and the future
        is one of `concurrent.futures`, whose `result(timeout)` waits.
        """
        asynchronous = FunctionShifter.asyncify(func)

        def start(*args: Any, **kwargs: Any) -> asyncio.Future[Any] | Future[Any]:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                return asyncio.run_coroutine_threadsafe(asynchronous(*args, **kwargs), _background_loop())
            return loop.create_task(asynchronous(*args, **kwargs))

        return _named(start, func)

    @staticmethod
    def run_async_func_in_thread(func: Callable[P, Awaitable[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a coroutine function on an event loop in another thread, and wait for its result."""

        async def main() -> R:
            return await func(*args, **kwargs)

        return _run.wait_in_thread(lambda: _run.ending_tasks(main))

    @staticmethod
    def syncify_async_generator(async_gen: AsyncIterable[R]) -> Generator[R, Any, Any]:
        """Iterate over an async generator from synchronous code; it runs on an event loop in another thread.

        It starts with the first item, and runs a few items ahead. Closing the iteration closes the generator.

        Args:
            async_gen: The generator, or any other async iterable.
        """
        messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        items: Any = async_gen

        async def produce() -> None:
            room = asyncio.Semaphore(ITEMS_AHEAD)
            messages.put((asyncio.get_running_loop(), asyncio.current_task(), room))
            error: BaseException | None = None
            try:
                async with aclosing(items) if hasattr(items, "aclose") else nullcontext():
                    async for item in items:
                        messages.put((item,))
                        await room.acquire()
            except BaseException as raised:
                error = raised
            messages.put(error)

        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(_run.run_here, produce), name="toolcrib-generator")
        thread.start()
        loop, task, room = messages.get()
        try:
            while isinstance(message := messages.get(), tuple):
                yield message[0]
                _wake(loop, room.release)
            if message is not None:
                raise message
        finally:
            _wake(loop, task.cancel)
            if thread is not threading.current_thread():
                thread.join()

    @staticmethod
    def auto_options_func(func: Callable[..., R]) -> Callable[..., R]:
        """Return a function that ignores keyword arguments which `func` does not accept."""
        parameters = inspect.signature(func).parameters.values()
        accepted = {each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
        accepts_all = any(each.kind is each.VAR_KEYWORD for each in parameters)

        def call(*args: Any, **kwargs: Any) -> R:
            known = kwargs if accepts_all else {name: kwargs[name] for name in kwargs if name in accepted}
            return func(*args, **known)

        return _named(call, func)


def is_async(func: Callable[..., Any]) -> bool:
    """Return true for coroutine functions, and for objects whose `__call__` is one.

    Raises:
        TypeError: If `func` is not callable.
    """
    if not callable(func):
        raise TypeError(f"invalid function: expected a callable, got {type(func).__name__}")
    return inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(type(func).__call__)


def _wake(loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # The loop has ended.
        loop.call_soon_threadsafe(callback)


def _named(wrapper: F, func: Callable[..., Any]) -> F:
    functools.update_wrapper(wrapper, func)
    return wrapper


# The event loop of futures, by process: a forked one has no threads.
_background_loops: dict[int, asyncio.AbstractEventLoop] = {}
_starting = threading.Lock()


def _background_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of futures, in a thread that ends with the program."""
    with _starting:
        loop = _background_loops.get(os.getpid())
        if loop is None:
            loop = _background_loops[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="toolcrib-background", daemon=True).start()
        return loop
