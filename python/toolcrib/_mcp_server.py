"""A toolkit, view or session as an MCP server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

from toolcrib import errors
from toolcrib._core import ToolResponse, _as_response, _McpServer, _ServedCall
from toolcrib.policy import _answer_of

if TYPE_CHECKING:
    from types import TracebackType

    from toolcrib._core import Session, ToolkitView
    from toolcrib.context import Question
    from toolcrib.sampling import Sampler, SamplingRequest
    from toolcrib.toolkit import Toolkit

__all__ = ["McpServer"]

_log = logging.getLogger("toolcrib")

_LONGEST_END = 5.0
"""Seconds for which the end of a server waits for calls that are cancelled, as it does for output that is not read."""


class McpServer:
    """A server of tools for MCP clients, made by `serve_mcp`.

    `await server` serves until it is cancelled, or until the client on standard input is gone. `async with` serves in
    the background, and `run` blocks, for scripts.
    """

    def __init__(
        self,
        tools: Toolkit | ToolkitView | Session[Any],
        identity: tuple[str, str | None, str | None, str | None],
        deps: Any,
        http: tuple[Any, ...] | None,
        made_token: str | None,
    ) -> None:
        self._tools = tools
        self._identity = identity
        self._deps = deps
        self._http = http
        self._made_token = made_token
        self._address: str | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def token(self) -> str | None:
        """The bearer token that clients have to send; None without one."""
        token: str | None = None if self._http is None else self._http[3]
        return token

    @property
    def port(self) -> int:
        """The port that the server listens on.

        Raises:
            RuntimeError: If it does not listen.
        """
        return int(self._listening().rpartition(":")[2])

    @property
    def url(self) -> str:
        """The address for clients, such as `http://127.0.0.1:8000/mcp`.

        Raises:
            RuntimeError: If it does not listen.
        """
        address = self._listening()
        return f"http://{address}{'' if self._http is None else self._http[2]}"

    def _listening(self) -> str:
        if self._address is None:
            raise RuntimeError("the server does not listen: it is over HTTP, and has an address while it serves")
        return self._address

    def run(self) -> None:
        """Serve until the client is gone, or until Ctrl-C or SIGTERM; for scripts without an event loop.

        A second SIGTERM ends the process at once. A program that handles SIGTERM itself keeps its handler.
        """
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(self._serve_until_terminated())

    def __await__(self) -> Generator[Any, None, None]:
        """Serve until the server is cancelled, or the client on standard input is gone."""
        return self._serve(None).__await__()

    async def __aenter__(self) -> McpServer:
        """Start to serve in the background."""
        if self._serving is not None:
            raise RuntimeError("the server is serving already")
        loop = asyncio.get_running_loop()
        started: asyncio.Future[None] = loop.create_future()
        self._serving = loop.create_task(self._serve(started))
        try:
            await asyncio.wait([started, self._serving], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.__aexit__(None, None, None)
            raise
        if not started.done():
            serving, self._serving = self._serving, None
            await serving
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the server: calls are cancelled, and connections are closed."""
        serving, self._serving = self._serving, None
        if serving is not None:
            serving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await serving

    async def _serve_until_terminated(self) -> None:
        loop = asyncio.get_running_loop()
        serving = loop.create_task(self._serve(None))

        def terminate() -> None:
            loop.remove_signal_handler(signal.SIGTERM)
            serving.cancel()

        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            with contextlib.suppress(NotImplementedError):  # Event loops of Windows have no signals.
                loop.add_signal_handler(signal.SIGTERM, terminate)
        with contextlib.suppress(asyncio.CancelledError):
            await serving

    async def _serve(self, started: asyncio.Future[None] | None) -> None:
        core = _McpServer(self._tools, *self._identity, self._deps)
        calls: dict[int, asyncio.Task[None]] = {}
        with contextlib.ExitStack() as stack:
            if self._http is None:
                sys.stdout.flush()
                core.serve_stdio()
                stack.enter_context(_redirected())
                if started is not None:
                    started.set_result(None)
            else:
                core.serve_http(*self._http)
            try:
                async for message in core:
                    self._receive(message, calls, started)
            except BaseException:
                core.stop()
                await _cancel(calls)
                async for _ in core:
                    pass  # The connections have a moment to end.
                raise
            finally:
                self._address = None
                await _cancel(calls)

    def _receive(
        self,
        message: _ServedCall | int | str,
        calls: dict[int, asyncio.Task[None]],
        started: asyncio.Future[None] | None,
    ) -> None:
        """Start a call, cancel one, or note the address."""
        if isinstance(message, _ServedCall):
            task = asyncio.get_running_loop().create_task(_answer(message), name=message.request["name"])
            number = message.number
            calls[number] = task
            task.add_done_callback(lambda _: calls.pop(number, None))
        elif isinstance(message, int):
            if message in calls:
                calls[message].cancel()
        else:
            self._address = message
            shown = "" if self._made_token is None else f" with the token {self._made_token}"
            _log.info("serving MCP at %s%s", self.url, shown)
            if started is not None:
                started.set_result(None)


async def _cancel(calls: dict[int, asyncio.Task[None]]) -> None:
    """Cancel the calls that run, and wait for their end, but not forever: a tool may ignore it."""
    for task in calls.values():
        task.cancel()
    loop = asyncio.get_running_loop()
    until = loop.time() + _LONGEST_END
    interrupted: asyncio.CancelledError | None = None
    while calls and loop.time() < until:
        try:
            await asyncio.wait(list(calls.values()), timeout=until - loop.time())
        except asyncio.CancelledError as error:
            interrupted = (
                error  # By SIGTERM after the end of the input, for example; the calls have their time nevertheless.
            )
    for task in calls.values():
        _log.warning("the tool '%s' ignores that its call was cancelled; the server ends without it", task.get_name())
        # The end of the event loop would wait for it, too.
        asyncio._unregister_task(task)
    calls.clear()
    if interrupted is not None:
        raise interrupted


async def _answer(call: _ServedCall) -> None:
    """Call the tool, and send its responses to the client."""
    call.enter_trace()
    tools = call.tools
    if call.can_ask or call.can_sample or call.can_log:
        asker = _asker(call) if call.can_ask else None
        sampler = _sampler(call) if call.can_sample else None
        tools = tools._hosted_by(asker, sampler, call if call.can_log else None)
    is_empty = True
    try:
        async for response in tools.call_tool_function(call.request, dialect="mcp"):
            is_empty = False
            # A toolkit in another library's place gives responses of its class, or none at all.
            sending = call.send(_as_response(response))
            if sending is not None:
                await sending
        if is_empty:
            call.send(_as_response())
    except Exception as error:
        # A toolkit that raises the errors of its tools: the client is not shown more than their kind.
        _log.exception("the tool '%s' raised an error while it was served", call.request["name"])
        text = f"Error: the tool raised {type(error).__name__}"
        call.send(ToolResponse([{"type": "text", "text": text}], code="failed"))
    finally:
        call.end()


def _asker(call: _ServedCall) -> Callable[[Question], Awaitable[Any]]:
    """Make an asker that asks the user of the client, and otherwise that of the toolkit."""

    async def ask(question: Question) -> Any:
        try:
            return await call.ask(question.text, question.schema)
        except errors.NoAskerError:
            own = call.tools.toolkit.asker
            if own is None:
                raise
            return await _answer_of(own, question)

    return ask


def _sampler(call: _ServedCall) -> Sampler:
    """Make a sampler that asks the model of the client."""

    async def sample(request: SamplingRequest) -> Any:
        return await call.sample(request.raw)

    return sample


@contextlib.contextmanager
def _redirected() -> Iterator[None]:
    """Send what tools print to standard error, and give them no input: both are for the protocol."""
    kept = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    try:
        os.dup2(null, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # Standard error is closed.
            os.dup2(null, 1)
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os.dup2(kept[0], 0)
        os.dup2(kept[1], 1)
        for descriptor in (*kept, null):
            os.close(descriptor)
