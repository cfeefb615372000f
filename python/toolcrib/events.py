"""Events of tool calls: the async iterator, and the wrapper of subscribed handlers."""

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
    """An async iterator of the events of a toolkit, for any event loop.

    Calls never wait for it: if its queue is full, the oldest event is dropped and counted in `dropped`. Close it with
    `aclose`, with `async with`, or by dropping it.
    """

    def __init__(self, queue: _EventQueue) -> None:
        self._queue = queue

    @property
    def dropped(self) -> int:
        """The number of events that were dropped because the queue was full."""
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
        """End the stream: unread events are dropped, and pending iterations stop."""
        self._queue.close()

    async def aclose(self) -> None:
        """End the stream, as `close` does."""
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _wake(loop: asyncio.AbstractEventLoop, news: asyncio.Future[None]) -> None:
    with suppress(RuntimeError):  # The loop was closed.
        loop.call_soon_threadsafe(_resolve, news)


def _resolve(news: asyncio.Future[None]) -> None:
    if not news.done():
        news.set_result(None)


class Subscription:
    """A subscribed handler. Its exceptions are logged and never reach the call."""

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
