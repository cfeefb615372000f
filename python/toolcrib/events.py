"""What can be heard of the calls of a toolkit: an async iterator of events, and functions that are called with them."""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from toolcrib._core import Event

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import Self

    from toolcrib._core import _EventQueue

__all__ = ["Event", "EventStream"]

_log = logging.getLogger("toolcrib")


class EventStream:
    """Give the events of a toolkit as they come, on any event loop.

    Calls never wait for it: when it is full, the oldest event makes room for the newest, and `dropped` counts it.
    Whoever stops reading closes it, by `aclose`, by leaving `async with`, or by letting go of it.
    """

    def __init__(self, queue: _EventQueue) -> None:
        self._queue = queue

    @property
    def dropped(self) -> int:
        """How many events were given up because nobody read them in time."""
        return self._queue.dropped

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        import asyncio

        queue = self._queue
        while not queue.is_closed:
            event = queue.take()
            if event is not None:
                return event
            loop = asyncio.get_running_loop()
            news = loop.create_future()
            waker = partial(_wake, loop, news)
            queue.wake(waker)
            try:
                await news
            finally:
                queue.forget(waker)
        raise StopAsyncIteration

    def close(self) -> None:
        """Stop listening: what has not been read is given up, and whoever waits is told that there is no more."""
        self._queue.close()

    async def aclose(self) -> None:
        """Stop listening, as `close` does."""
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _wake(loop: asyncio.AbstractEventLoop, news: asyncio.Future[None]) -> None:
    with suppress(RuntimeError):  # That loop was closed meanwhile.
        loop.call_soon_threadsafe(_resolve, news)


def _resolve(news: asyncio.Future[None]) -> None:
    if not news.done():
        news.set_result(None)


class Subscription:
    """Call one handler with events, whatever it does."""

    def __init__(self, handler: Callable[[Event], Any]) -> None:
        if not callable(handler):
            raise TypeError(f"a handler of events must be callable, not {type(handler).__qualname__}")
        self._handler = handler
        self._tasks: set[asyncio.Task[None]] = set()

    def __call__(self, event: Event) -> None:
        try:
            result = self._handler(event)
            if hasattr(result, "__await__"):
                self._start(result, event)
        except Exception:
            self._tell(event)

    def _start(self, result: Any, event: Event) -> None:
        import asyncio

        work = self._finish(result, event)
        try:
            task = asyncio.get_running_loop().create_task(work)
        except RuntimeError:
            work.close()
            if hasattr(result, "close"):
                result.close()
            raise
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish(self, result: Any, event: Event) -> None:
        try:
            await result
        except Exception:
            self._tell(event)

    def _tell(self, event: Event) -> None:
        _log.exception("a handler of the event '%s' of tool '%s' failed", event.type, event.tool)
