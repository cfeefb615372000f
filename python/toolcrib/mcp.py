"""MCP servers as tools: clients, which a toolkit registers, and the configuration of several servers.

Example:
    ```python
    from toolcrib import Toolkit, mcp

    toolkit = Toolkit()
    async with mcp.connect("npx -y @modelcontextprotocol/server-filesystem .") as files:
        await toolkit.register_mcp_client(files)
    ```
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from toolcrib import _core, errors
from toolcrib._mcp_adapter import AdaptedClient, adapt
from toolcrib.sampling import Sampler, SamplingRequest

if TYPE_CHECKING:
    from typing_extensions import Self

    from toolcrib._core import NativeTool

__all__ = [
    "AdaptedClient",
    "HttpStatefulClient",
    "HttpStatelessClient",
    "McpClient",
    "McpClients",
    "McpTool",
    "SamplingRequest",
    "StdIOStatefulClient",
    "adapt",
    "connect",
    "connect_all",
]

_log = logging.getLogger("toolcrib")

_MAX_WARNINGS = 100
"""The number of skipped tools of a list that are logged one by one."""

Target: TypeAlias = str | Sequence[str] | Mapping[str, Any] | os.PathLike[str]


@dataclass(frozen=True)
class McpTool:
    """A tool as its server defines it.

    Attributes:
        name: The name, as the server spells it.
        title: The name for people.
        description: The description that the model reads.
        inputSchema: The JSON Schema of the arguments.
        outputSchema: The JSON Schema of the structured result.
        annotations: Hints about its behaviour. They are claims of the server and never loosen a policy.
        meta: Other data of the server.
        digest: The digest of the definition, without `meta`.
    """

    name: str
    title: str | None
    description: str | None
    inputSchema: dict[str, Any]
    outputSchema: dict[str, Any] | None
    annotations: dict[str, Any] | None
    meta: dict[str, Any] | None
    digest: str


class McpClient:
    """A client of one MCP server, over a child process or HTTP.

    It may be used by any number of tasks, threads and event loops. After `close`, and after the server has died, it can
    connect again; a call after the server's death starts it again, with growing pauses between attempts.

    Attributes:
        name: The name of the client, by which its tools are removed again.
    """

    def __init__(
        self,
        name: str,
        target: Target,
        *,
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        encoding_errors: Literal["strict", "ignore", "replace"] = "replace",
        connect_timeout: float = 30,
        call_timeout: float = 60,
        max_requests: int = 64,
        sampler: Sampler | None = None,
        stateless: bool = False,
        allow_private_addresses: bool = False,
    ) -> None:
        """Describe a connection; nothing is started before `connect`.

        Args:
            name: The name of the client.
            target: A URL, a command line, a list with a program and its arguments, or the entry of a server in a
                configuration, such as `{"command": "uvx", "args": ["mcp-server-git"]}`. A command line is split into
                words and never given to a shell.
            headers: Headers of each HTTP request.
            token: A bearer token for HTTP.
            ca: A PEM file with the certificates of authorities, if the server's certificate is from one that the system
                does not trust. No other authorities are trusted then.
            env: Environment variables of the child process, in addition to a few harmless ones such as `PATH`: other
                variables of this process are not passed on.
            cwd: The working directory of the child process.
            encoding_errors: The treatment of bytes that are not UTF-8 in a line of the child process: `"replace"`
                replaces them by U+FFFD, `"ignore"` drops them, and `"strict"` drops the line, so that a call whose
                answer it is fails.
            connect_timeout: Seconds after which connecting fails.
            call_timeout: Seconds after which a call ends, unless it is registered with another limit.
            max_requests: The number of questions to the user and of requests to a model that the server may send in one
                call. One more ends the call.
            sampler: The function that answers requests of the server to a model. It is called with a
                `SamplingRequest` and returns text, or a `CreateMessageResult` as a dictionary; it may be a coroutine
                function. Without it such requests are refused.
            stateless: True to connect anew for each list of tools and each call.
            allow_private_addresses: True to allow plain HTTP, and addresses in private networks, beyond this machine.

        Raises:
            InvalidTargetError: If the target is invalid.
            ValueError: If an option is invalid.
        """
        if sampler is not None and not callable(sampler):
            raise TypeError(f"sampler must be callable, not {type(sampler).__name__}")
        self.name = name
        self._sampler = sampler
        self._client = _core._McpClient(
            name,
            _entry(target),
            headers=list((headers or {}).items()),
            token=token,
            ca=None if ca is None else os.fspath(ca),
            env=list((env or {}).items()),
            cwd=None if cwd is None else os.fspath(cwd),
            encoding_errors=encoding_errors,
            connect_timeout=connect_timeout,
            call_timeout=call_timeout,
            max_requests=max_requests,
            sampler=sampler,
            stateless=stateless,
            allow_private_addresses=allow_private_addresses,
        )

    @property
    def is_connected(self) -> bool:
        """True from `connect` to `close`. A client that connects for each call needs no `connect` and is always so."""
        return self._client.is_connected

    @property
    def server_info(self) -> dict[str, Any] | None:
        """The name, version, instructions, capabilities and protocol version of the server; None before `connect`."""
        return self._client.server_info

    async def connect(self) -> None:
        """Start the server's process, or open the session, and agree on a protocol version.

        Raises:
            McpError: If the client is connected already.
            McpConnectionError: If the server cannot be reached, or does not speak the protocol.
        """
        await self._client.connect()

    async def close(self, ignore_errors: bool = True) -> None:
        """End the connection, and the server's process with all its children. Any task may close the client.

        Args:
            ignore_errors: False to raise errors of the connection while it ends.

        Raises:
            McpError: If the client is not connected.
        """
        try:
            await self._client.close()
        except errors.McpConnectionError:
            if not ignore_errors or not self._client.is_open:
                raise

    async def list_tools(self) -> list[McpTool]:
        """List the tools of the server.

        Raises:
            McpConnectionError: If the client is not connected, or the connection fails.
        """
        tools, skipped = await self._client.list_tools()
        self._warn(skipped)
        return [McpTool(*fields) for fields in tools]

    async def _names(self) -> list[str]:
        """List the names of the tools."""
        names, skipped = await self._client.list_names()
        self._warn(skipped)
        return list(names)

    def _warn(self, skipped: list[tuple[str | None, int, str]]) -> None:
        for name, _, reason in skipped[:_MAX_WARNINGS]:
            _log.warning("skipping tool %r of the MCP server of '%s': %s", name, self.name, reason)
        if len(skipped) > _MAX_WARNINGS:
            _log.warning("skipping %d more tools of the MCP server of '%s'", len(skipped) - _MAX_WARNINGS, self.name)

    async def get_callable_function(
        self, func_name: str, wrap_tool_result: bool = True, execution_timeout: float | None = None
    ) -> NativeTool:
        """Return one tool, which can be registered or called.

        Args:
            func_name: The name, as the server spells it.
            wrap_tool_result: False to keep the result of the server as it is, in `metadata["value"]`.
            execution_timeout: Seconds after which a call ends; the client's `call_timeout` if it is None or 0.

        Raises:
            ValueError: If the server has no such tool.
        """
        options: dict[str, Any] = {"wrap_tool_result": wrap_tool_result, "timeout": execution_timeout}
        tool = self._client.tool(func_name, **options)
        if tool is None:
            await self.list_tools()
            tool = self._client.tool(func_name, **options)
        if tool is None:
            raise ValueError(f"unknown tool '{func_name}': the MCP server of '{self.name}' does not have it")
        return tool

    def __await__(self) -> Generator[Any, None, Self]:
        """Connect, unless the client is connected."""
        return self._opened().__await__()

    async def __aenter__(self) -> Self:
        """Connect, unless the client is connected."""
        return await self._opened()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the connection."""
        if self._client.is_open:
            await self.close()

    async def _opened(self) -> Self:
        if not self._client.is_open:
            await self.connect()
        return self

    def __repr__(self) -> str:
        """Name the client."""
        state = "connected" if self.is_connected else "not connected"
        return f"{type(self).__name__}(name={self.name!r}, {state})"


class StdIOStatefulClient(McpClient):
    """A client of a server that runs as a child process, with the parameters of AgentScope's."""

    def __init__(
        self,
        name: str,
        command: str,
        args: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        encoding: str = "utf-8",
        encoding_error_handler: Literal["strict", "ignore", "replace"] = "strict",
        **options: Any,
    ) -> None:
        """Describe the process.

        Args:
            name: The name of the client.
            command: The program.
            args: Its arguments.
            env: Environment variables, in addition to a few harmless ones such as `PATH`.
            cwd: The working directory.
            encoding: Only `"utf-8"`, which the protocol prescribes.
            encoding_error_handler: The treatment of bytes that are not UTF-8; see `encoding_errors` of `McpClient`.
            **options: Further options of `McpClient`.

        Raises:
            ValueError: If the encoding is another one.
        """
        if encoding.lower().replace("_", "-") not in ("utf-8", "utf8"):
            raise ValueError(f"invalid encoding '{encoding}': MCP messages are UTF-8")
        words = [command, *_core._name_list("args", args or ())]
        super().__init__(name, words, env=env, cwd=cwd, encoding_errors=encoding_error_handler, **options)


class HttpStatefulClient(McpClient):
    """A client of a server over HTTP that keeps its session, with the parameters of AgentScope's."""

    _stateless = False

    def __init__(
        self,
        name: str,
        transport: Literal["streamable_http", "sse"],
        url: str,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30,
        sse_read_timeout: float = 60 * 5,
        **options: Any,
    ) -> None:
        """Describe the connection.

        Args:
            name: The name of the client.
            transport: `"streamable_http"`. A server with the older transport `"sse"` is used through a client of
                another library: see `adapt`.
            url: The URL.
            headers: Headers of each request.
            timeout: Seconds after which connecting fails.
            sse_read_timeout: Seconds after which a call ends, unless it is registered with another limit.
            **options: Further options of `McpClient`.

        Raises:
            ValueError: If the transport is another one.
        """
        if transport == "sse":
            raise ValueError(
                "transport 'sse' was replaced in the protocol: connect with a client of the `mcp` or `fastmcp` "
                "package and register that one, or wrap it with `toolcrib.mcp.adapt`"
            )
        if transport != "streamable_http":
            raise ValueError(f"invalid transport '{transport}': expected 'streamable_http'")
        super().__init__(
            name,
            {"url": url},
            headers=headers,
            connect_timeout=timeout,
            call_timeout=sse_read_timeout,
            stateless=self._stateless,
            **options,
        )
        self.transport = transport


class HttpStatelessClient(HttpStatefulClient):
    """A client that opens a new session for each list of tools and each call, with the parameters of AgentScope's."""

    _stateless = True
    stateful = False


class McpClients(Mapping[str, McpClient]):
    """The clients of several servers by name; see `connect_all`.

    Attributes:
        problems: The exceptions of the servers that could not be connected, or whose entries are invalid, by name.
    """

    def __init__(self, clients: Mapping[str, McpClient], invalid: Mapping[str, Exception]) -> None:
        self._all = dict(clients)
        self._invalid = dict(invalid)
        self.problems: dict[str, Exception] = dict(invalid)

    def __getitem__(self, name: str) -> McpClient:
        """Return the client of a server that is connected."""
        if name in self.problems:
            raise KeyError(name)
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the servers that are connected."""
        return (name for name in self._all if name not in self.problems)

    def __len__(self) -> int:
        """Count the servers that are connected."""
        return sum(1 for _ in self)

    async def connect(self) -> None:
        """Connect all clients at once; those that fail are listed in `problems`."""
        results = await asyncio.gather(*(client._opened() for client in self._all.values()), return_exceptions=True)
        self.problems = dict(self._invalid)
        for name, result in zip(self._all, results, strict=True):
            if isinstance(result, Exception):
                self.problems[name] = result
            elif isinstance(result, BaseException):
                raise result

    async def close(self) -> None:
        """Close the clients that are connected."""
        await asyncio.gather(*(client.close() for client in self._all.values() if client._client.is_open))

    def __await__(self) -> Generator[Any, None, McpClients]:
        """Connect all clients at once."""
        return self.__aenter__().__await__()

    async def __aenter__(self) -> McpClients:
        """Connect all clients at once."""
        await self.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close all clients."""
        await self.close()

    def __repr__(self) -> str:
        """List the names."""
        return f"McpClients({list(self)!r}, problems={list(self.problems)!r})"


def connect(target: Target, *, name: str | None = None, server: str | None = None, **options: Any) -> McpClient:
    """Make a client of a server.

    Connect it by `client = await mcp.connect(...)`, or by `async with mcp.connect(...) as client`, which closes it too.

    Args:
        target: A command line, a list with a program and its arguments, a URL, or a configuration: a dictionary with
            `mcpServers`, or the path of a JSON file with one. Entries with `"disabled": true` are left out.
        name: The name of the client; that of the server in the configuration, the program or the host by default.
        server: The name of the server, if the configuration has several.
        **options: Options of `McpClient`, such as `env`, `cwd`, `headers`, `token`, `ca`, `call_timeout` and `sampler`.

    Raises:
        InvalidTargetError: If the target is invalid.
        ValueError: If the configuration names several servers, or an option is invalid.
    """
    servers = _servers(target)
    if servers is None:
        return McpClient(name or _core._mcp_target_name(_entry(target)), target, **options)
    if server is None and len(servers) != 1:
        raise ValueError(
            f"the configuration has {len(servers)} servers ({', '.join(servers) or 'none'}): choose one by `server=`, "
            "or use `connect_all`"
        )
    chosen = server if server is not None else next(iter(servers))
    if chosen not in servers:
        raise ValueError(f"unknown server '{chosen}': the configuration has {', '.join(servers) or 'none'}")
    return McpClient(name or chosen, servers[chosen], **options)


def connect_all(config: Mapping[str, Any] | str | os.PathLike[str], **options: Any) -> McpClients:
    """Make clients of all servers of a configuration.

    Connect them by `clients = await mcp.connect_all(...)`, or by `async with`, which closes them too.

    A server whose entry is invalid, for example one with the older transport SSE, is listed in `problems`, like one
    that cannot be connected. Entries with `"disabled": true` are left out.

    Args:
        config: A dictionary with `mcpServers`, or the path of a JSON file with one.
        **options: Options of `McpClient`, for each of them.

    Raises:
        InvalidTargetError: If the configuration is invalid as a whole.
        ValueError: If an option is invalid.
    """
    servers = _servers(Path(config) if isinstance(config, str) else config)
    if servers is None:
        raise errors.InvalidTargetError("invalid configuration: expected a dictionary with `mcpServers`")
    clients: dict[str, McpClient] = {}
    invalid: dict[str, Exception] = {}
    for name, entry in servers.items():
        try:
            clients[name] = McpClient(name, entry, **options)
        except errors.InvalidTargetError as error:
            invalid[name] = error
    return McpClients(clients, invalid)


def _servers(target: Target) -> dict[str, Any] | None:
    """Return the entries of a configuration by name; None if the target is not a configuration."""
    config: Any = target
    file = _config_file(target)
    if file is not None:
        try:
            config = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise errors.InvalidTargetError(f"invalid configuration file '{file}': {error}") from error
    if not isinstance(config, Mapping) or "mcpServers" not in config:
        if file is not None:
            text = f"invalid configuration file '{file}': expected an object with `mcpServers`"
            raise errors.InvalidTargetError(text)
        return None
    servers = config["mcpServers"]
    if not isinstance(servers, Mapping):
        raise errors.InvalidTargetError("invalid configuration: `mcpServers` must be an object")
    return {name: entry for name, entry in servers.items() if not _is_disabled(entry)}


def _config_file(target: Target) -> Path | None:
    """Return the configuration file that a target names. Other texts that end like one are URLs and command lines."""
    if isinstance(target, str) and target.endswith(".json") and "://" not in target:
        return Path(target) if " " not in target or Path(target).is_file() else None
    return Path(target) if isinstance(target, os.PathLike) else None


def _is_disabled(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.get("disabled") is True


def _entry(target: Target) -> str | dict[str, Any]:
    """Return a target as text, which the core reads, or as the entry of a configuration."""
    if isinstance(target, str):
        return target
    if isinstance(target, Mapping):
        return dict(target)
    if isinstance(target, Sequence) and target and all(isinstance(word, str) for word in target):
        return {"command": target[0], "args": list(target[1:])}
    text = f"invalid target: expected a URL, a command or the entry of a configuration, got {target!r}"
    raise errors.InvalidTargetError(text)
