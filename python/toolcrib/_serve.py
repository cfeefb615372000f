"""The options of MCP servers, for toolkits, views and sessions. The server itself is imported with the first one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from toolcrib import _core, errors

if TYPE_CHECKING:
    from toolcrib._core import Session, ToolkitView
    from toolcrib._mcp_server import McpServer
    from toolcrib.toolkit import Toolkit

__all__ = ["serve_mcp"]

_TRANSPORTS = ("stdio", "http")


def serve_mcp(
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
    """Serve the tools to MCP clients.

    Each client has a session of its own, whose caller is `mcp:` and the name of the client. Its calls take the same
    path as all others: groups, validation, policy, approvals, middlewares and audit.

    Args:
        tools: The toolkit, view or session.
        transport: `"stdio"` for one client on standard input and output, `"http"` for many.
        name: The name of the server; `"toolcrib"` if it is None.
        version: The version of the server; that of toolcrib if it is None.
        title: The name for people.
        instructions: Instructions for the model, on how to use the tools together.
        deps: The dependencies of the sessions; see `session`.
        host: The address to listen on. Any other than one of this machine needs `token` and `allowed_hosts`.
        port: The port; 0 for any that is free.
        path: The path of the server.
        token: The bearer token that requests need; None to make a random one, False for none.
        allowed_hosts: The values of the header `Host` that are accepted, with a port if only one is; those of this
            machine if there are none.
        allowed_origins: The origins of web pages that may call the server, such as `"https://app.example.com"`.
        max_sessions: The most sessions at a time.
        max_connections: The most connections at a time.
        session_timeout: The seconds after which a session without an open request ends.

    Returns:
        The server: `await server`, `async with server:` or `server.run()`.

    Raises:
        ValueError: If the transport is unknown.
        InvalidServerOptionError: If an option is invalid, or a server would be reachable from other machines
            unprotected; when it starts.
        CannotListenError: If the system refuses to listen on the address; when it starts.
    """
    if transport not in _TRANSPORTS:
        near = _core._did_you_mean(str(transport), list(_TRANSPORTS))
        raise ValueError(f"unknown transport {transport!r}: expected 'stdio' or 'http'{near}")
    for option, texts in (("allowed_hosts", allowed_hosts), ("allowed_origins", allowed_origins)):
        if isinstance(texts, str):
            raise TypeError(f"{option} must be a list of strings, not one text")
    if not 0 <= port <= 65535:
        raise errors.InvalidServerOptionError(f"invalid port: expected a number from 0 to 65535, got {port}")
    if isinstance(token, bool) and token:
        raise TypeError("token must be a text, None to make one, or False for none, not True")
    import secrets

    from toolcrib._mcp_server import McpServer

    identity = (name or "toolcrib", version, title, instructions)
    if transport == "stdio":
        return McpServer(tools, identity, deps, None, None)
    made = secrets.token_urlsafe(32) if token is None and _is_local(host) else token or None
    limits = (list(allowed_hosts), list(allowed_origins), max_sessions, max_connections, session_timeout)
    return McpServer(tools, identity, deps, (host, port, path, made, *limits), None if made == token else made)


def _is_local(host: str) -> bool:
    """Return True if only this machine reaches an address; for any other, a token has to be given."""
    return host in ("localhost", "::1") or host.startswith("127.")
