"""A toolkit, view or session as an MCP server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import sys
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from toolcrib import errors
from toolcrib._approver import answer_of
from toolcrib._core import ToolResponse, _did_you_mean, _McpServer, _ServedCall

if TYPE_CHECKING:
    from types import TracebackType

    from toolcrib._core import Session, ToolkitView
    from toolcrib.context import Question
    from toolcrib.toolkit import Toolkit

__all__ = ["McpServer", "serve"]

_log = logging.getLogger("toolcrib")

_TRANSPORTS = ("stdio", "http")


def serve(
    tools: Toolkit | ToolkitView | Session[Any],
    transport: Literal["stdio", "http"],
    *,
    name: str | None = None,
    version: str | None = None,
    title: str | None = None,
    instructions: str | None = None,
    deps: Any = None,
    host: str = "127.0.0.1",
    port: int = 0,
    path: str = "/mcp",
    token: str | Literal[False] | None = None,
    allowed_hosts: Iterable[str] = (),
    allowed_origins: Iterable[str] = (),
    max_sessions: int = 1000,
    max_connections: int = 2000,
    session_timeout: float = 1800,
) -> McpServer:
    """Make a server; see `Toolkit.serve_mcp`."""
    if transport not in _TRANSPORTS:
        near = _did_you_mean(str(transport), list(_TRANSPORTS))
        raise ValueError(f"unknown transport {transport!r}: expected 'stdio' or 'http'{near}")
    for option, texts in (("allowed_hosts", allowed_hosts), ("allowed_origins", allowed_origins)):
        if isinstance(texts, str):
            raise TypeError(f"{option} must be a list of strings, not one text")
    if not 0 <= port <= 65535:
        raise errors.InvalidServerOptionError(f"invalid port: expected a number from 0 to 65535, got {port}")
    if isinstance(token, bool) and token:
        raise TypeError("token must be a text, None to make one, or False for none, not True")
    identity = (name or "toolcrib", version, title, instructions)
    if transport == "stdio":
        return McpServer(tools, identity, deps, None, None)
    made = secrets.token_urlsafe(32) if token is None and _is_local(host) else token or None
    limits = (list(allowed_hosts), list(allowed_origins), max_sessions, max_connections, session_timeout)
    return McpServer(tools, identity, deps, (host, port, path, made, *limits), None if made == token else made)


def _is_local(host: str) -> bool:
    """Return True if only this machine reaches an address; for any other, a token has to be given."""
    return host in ("localhost", "::1") or host.startswith("127.")


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
        """Serve until the client is gone, or until Ctrl-C; for scripts without an event loop."""
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(self._serve(None))

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
            task = asyncio.get_running_loop().create_task(_answer(message))
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
    """Cancel the calls that run, and wait for their end."""
    for task in calls.values():
        task.cancel()
    while calls:
        await asyncio.wait(list(calls.values()))


async def _answer(call: _ServedCall) -> None:
    """Call the tool, and send its responses to the client."""
    tools = call.tools._asking(_asker(call)) if call.can_ask else call.tools
    try:
        async for response in tools.call_tool_function(call.request, dialect="mcp"):
            sending = call.send(response)
            if sending is not None:
                await sending
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
            return await answer_of(own, question)

    return ask


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
