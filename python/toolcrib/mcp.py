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
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from toolcrib import _core, errors
from toolcrib._mcp_adapter import AdaptedClient, adapt

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

Sampler: TypeAlias = Callable[["SamplingRequest"], Any]
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


@dataclass(frozen=True)
class SamplingRequest:
    """A request of a server to a model, which the `sampler` of a client answers.

    Attributes:
        messages: The messages, each with `role` and `content`.
        max_tokens: The most tokens that the answer may have.
        system_prompt: The system prompt that the server proposes.
        temperature: The temperature that the server proposes.
        stop_sequences: Texts that end the answer.
        model_preferences: The model that the server would like.
        tools: Tools that the model may call, as the server defines them.
        raw: The whole request.
    """

    messages: list[dict[str, Any]]
    max_tokens: int | None = None
    system_prompt: str | None = None
    temperature: float | None = None
    stop_sequences: list[str] = field(default_factory=list)
    model_preferences: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    raw: dict[str, Any] = field(default_factory=dict)


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
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        connect_timeout: float = 30,
        call_timeout: float = 60,
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
            env: Environment variables of the child process, in addition to a few harmless ones such as `PATH`: other
                variables of this process are not passed on.
            cwd: The working directory of the child process.
            connect_timeout: Seconds after which connecting fails.
            call_timeout: Seconds after which a call ends, unless it is registered with another limit.
            sampler: The function that answers requests of the server to a model. It is called with a
                `SamplingRequest` and returns text, or a `CreateMessageResult` as a dictionary; it may be a coroutine
                function. Without it such requests are refused.
            stateless: True to connect anew for each list of tools and each call.
            allow_private_addresses: True to allow plain HTTP, and addresses in private networks, beyond this machine.

        Raises:
            ValueError: If the target, or an option for it, is invalid.
        """
        self.name = name
        self._sampler = sampler
        self._client = _core._McpClient(
            name,
            _entry(target),
            headers=list((headers or {}).items()),
            token=token,
            env=list((env or {}).items()),
            cwd=None if cwd is None else os.fspath(cwd),
            connect_timeout=connect_timeout,
            call_timeout=call_timeout,
            sampler=None if sampler is None else _Sampling(sampler),
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
        for name, reason in skipped:
            _log.warning("skipping tool %r of the MCP server of '%s': %s", name, self.name, reason)
        return [McpTool(*fields) for fields in tools]

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
            encoding_error_handler: Accepted for compatibility: a line that is not valid UTF-8 is always ignored.
            **options: Further options of `McpClient`.

        Raises:
            ValueError: If the encoding is another one.
        """
        if encoding.lower().replace("_", "-") not in ("utf-8", "utf8"):
            raise ValueError(f"invalid encoding '{encoding}': MCP messages are UTF-8")
        if encoding_error_handler not in ("strict", "ignore", "replace"):
            raise ValueError(f"invalid encoding_error_handler '{encoding_error_handler}'")
        super().__init__(name, [command, *(args or ())], env=env, cwd=cwd, **options)


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
        problems: The exceptions of the servers that could not be connected, by name.
    """

    def __init__(self, clients: Mapping[str, McpClient]) -> None:
        self._all = dict(clients)
        self.problems: dict[str, Exception] = {}

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
        return len(self._all) - len(self.problems)

    async def connect(self) -> None:
        """Connect all clients at once; those that fail are listed in `problems`."""
        results = await asyncio.gather(*(client._opened() for client in self._all.values()), return_exceptions=True)
        self.problems = {}
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
            `mcpServers`, or the path of a JSON file with one.
        name: The name of the client; that of the server in the configuration, the program or the host by default.
        server: The name of the server, if the configuration has several.
        **options: Options of `McpClient`, such as `env`, `cwd`, `headers`, `token`, `call_timeout` and `sampler`.

    Raises:
        ValueError: If the target is invalid, or names several servers.
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

    Args:
        config: A dictionary with `mcpServers`, or the path of a JSON file with one.
        **options: Options of `McpClient`, for each of them.

    Raises:
        ValueError: If the configuration is invalid; the text names the server and the entry.
    """
    servers = _servers(Path(config) if isinstance(config, str) else config)
    if servers is None:
        raise ValueError("invalid configuration: expected a dictionary with `mcpServers`")
    return McpClients({name: McpClient(name, entry, **options) for name, entry in servers.items()})


def _servers(target: Target) -> dict[str, Any] | None:
    """Return the entries of a configuration by name; None if the target is not a configuration."""
    config: Any = target
    if isinstance(target, os.PathLike) or (isinstance(target, str) and target.endswith(".json") and " " not in target):
        try:
            config = json.loads(Path(target).read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise ValueError(f"invalid configuration file '{os.fspath(target)}': {error}") from error
    if not isinstance(config, Mapping) or "mcpServers" not in config:
        if isinstance(target, os.PathLike):
            raise ValueError(f"invalid configuration file '{os.fspath(target)}': expected an object with `mcpServers`")
        return None
    servers = config["mcpServers"]
    if not isinstance(servers, Mapping):
        raise ValueError("invalid configuration: `mcpServers` must be an object")
    return dict(servers)


def _entry(target: Target) -> str | dict[str, Any]:
    """Return a target as text, which the core reads, or as the entry of a configuration."""
    if isinstance(target, str):
        return target
    if isinstance(target, Mapping):
        return dict(target)
    if isinstance(target, Sequence) and target and all(isinstance(word, str) for word in target):
        return {"command": target[0], "args": list(target[1:])}
    raise ValueError(f"invalid target: expected a URL, a command or the entry of a configuration, got {target!r}")


class _Sampling:
    """The sampler of a client, as the core calls it."""

    def __init__(self, sampler: Sampler) -> None:
        if not callable(sampler):
            raise TypeError(f"sampler must be callable, not {type(sampler).__name__}")
        self._sampler = sampler

    async def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        from toolcrib._approver import answer_of

        answer = await answer_of(
            self._sampler,
            SamplingRequest(
                messages=request.get("messages", []),
                max_tokens=request.get("maxTokens"),
                system_prompt=request.get("systemPrompt"),
                temperature=request.get("temperature"),
                stop_sequences=request.get("stopSequences") or [],
                model_preferences=request.get("modelPreferences"),
                tools=request.get("tools"),
                raw=request,
            ),
        )
        if isinstance(answer, Mapping):
            return dict(answer)
        if not isinstance(answer, str):
            raise errors.InvalidReplyError(f"invalid answer of the sampler: expected text, got {type(answer).__name__}")
        model = getattr(self._sampler, "model", None)
        return {
            "role": "assistant",
            "content": {"type": "text", "text": answer},
            "model": model if isinstance(model, str) else "unknown",
            "stopReason": "endTurn",
        }
