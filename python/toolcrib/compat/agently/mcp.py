"""MCP servers for a `ToolManager`: connections, and tools whose results are plain values."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from toolcrib import mcp
from toolcrib._mcp_adapter import AdaptedClient, dumped
from toolcrib.compat.agently.formatter import DataFormatter
from toolcrib.errors import McpConnectionError

if TYPE_CHECKING:
    from toolcrib._core import NativeTool

__all__ = ["ImportedTool", "McpServer", "connect"]

Function: TypeAlias = Callable[..., Coroutine[Any, Any, Any]]

INSTALL = "pip install 'fastmcp>=2.10'"

# The fields of the blocks of a result, in the order in which Agently lists them; those that the server omits are None.
FIELDS: dict[str, tuple[str, ...]] = {
    "image": ("type", "data", "mimeType", "annotations", "meta"),
    "audio": ("type", "data", "mimeType", "annotations", "meta"),
    "resource_link": (
        "name",
        "title",
        "uri",
        "description",
        "mimeType",
        "size",
        "icons",
        "annotations",
        "meta",
        "type",
    ),
    "resource": ("type", "resource", "annotations", "meta"),
}

# Those of the objects inside of them.
PART_FIELDS: dict[str, tuple[str, ...]] = {
    "annotations": ("audience", "priority"),
    "icons": ("src", "mimeType", "sizes"),
    "resource": ("uri", "mimeType", "meta"),
}


@dataclass
class ImportedTool:
    """A tool of a server, as a manager registers it."""

    name: str
    desc: str | None
    kwargs: dict[str, Any] | None
    returns: dict[str, Any] | None
    tags: list[str]
    parameters: dict[str, Any]
    func: Function


class McpServer:
    """The tools of one or more servers, and the connections to them."""

    def __init__(self) -> None:
        self.tools: list[ImportedTool] = []
        self._connections = AsyncExitStack()

    async def add(self, client: mcp.McpClient, prefix: str = "") -> None:
        """Add the tools of a server, which stays connected."""
        try:
            await self._connections.enter_async_context(client)
            listed = await client.list_tools()
        except McpConnectionError as error:
            raise _unreachable(error) from error
        for tool in listed:
            function = await client.get_callable_function(tool.name, wrap_tool_result=False)
            self.tools.append(_imported(tool, prefix, _proxy(client, function)))

    async def add_foreign(self, transport: Any) -> None:
        """Add the tools of a server that only fastmcp can reach; each call connects anew."""
        try:
            from fastmcp import Client
        except ImportError as error:
            raise ImportError(f"this MCP transport needs the package 'fastmcp': {INSTALL}") from error

        async with Client(transport) as client:
            listed = await AdaptedClient(client, "fastmcp").list_tools()
        for tool in listed:
            self.tools.append(_imported(tool, "", _foreign_proxy(Client, transport, tool.name)))

    async def close(self) -> None:
        """End the connections."""
        await self._connections.aclose()


async def connect(transport: Any) -> McpServer:
    """Connect to the servers that a transport names, and list their tools.

    Args:
        transport: The path of a script, a URL, a dictionary with `mcpServers`, a client of `toolcrib.mcp`, or anything
            else that fastmcp accepts.

    Raises:
        ValueError: If the transport is invalid.
        ImportError: If it needs `fastmcp`, which is not installed.
        McpConnectionError: If a server cannot be reached.
    """
    server = McpServer()
    try:
        if isinstance(transport, mcp.McpClient):
            await server.add(transport)
        elif _needs_fastmcp(transport):
            await server.add_foreign(transport)
        elif isinstance(transport, Mapping):
            entries = transport.get("mcpServers")
            if not entries:
                raise ValueError("No MCP servers defined in the config")
            for name, entry in entries.items():
                await server.add(mcp.McpClient(name, entry), f"{name}_" if len(entries) > 1 else "")
        else:
            await server.add(mcp.connect(_target(os.fspath(transport))))
    except BaseException:
        await server.close()
        raise
    return server


def _needs_fastmcp(transport: Any) -> bool:
    """Return true for servers in this process, and for the older SSE transport."""
    if isinstance(transport, Mapping):
        entries = transport.get("mcpServers") or {}
        return any(
            "sse" in (entry.get("transport"), entry.get("type")) or _is_sse(entry.get("url", ""))
            for entry in entries.values()
            if isinstance(entry, Mapping)
        )
    if isinstance(transport, str | os.PathLike):
        return _is_sse(os.fspath(transport))
    if transport is None or isinstance(transport, int | float | list | tuple):
        raise ValueError(f"Could not infer a valid transport from: {transport}")
    return True


def _is_sse(url: str) -> bool:
    return re.match(r"https?://[^?#]*/sse(/|[?#]|$)", url) is not None


def _target(transport: str) -> str | list[str]:
    """Return a URL, or the command that runs a script."""
    if transport.startswith(("http://", "https://")):
        return transport
    programs = {".py": sys.executable, ".js": "node"}
    program = programs.get(os.path.splitext(transport)[1])
    if program is None or not os.path.exists(transport):
        raise ValueError(f"Could not infer a valid transport from: {transport}")
    return [program, transport]


def _imported(tool: mcp.McpTool, prefix: str, func: Function) -> ImportedTool:
    meta = tool.meta or {}
    found = meta.get("_fastmcp") or meta.get("fastmcp") or {}
    tags = found.get("tags") if isinstance(found, Mapping) else None
    func.__name__ = func.__qualname__ = name = prefix + tool.name
    return ImportedTool(
        name,
        tool.description,
        _kwargs(tool.inputSchema),
        _kwargs(tool.outputSchema),
        [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else [],
        tool.inputSchema,
        func,
    )


def _kwargs(schema: dict[str, Any] | None) -> dict[str, Any] | None:
    try:
        return DataFormatter.from_schema_to_kwargs_format(schema)
    except (KeyError, TypeError):
        # The server has described something else than an object, which this format cannot express.
        return None


def _proxy(client: mcp.McpClient, tool: NativeTool) -> Function:
    """Return a function that calls a tool of toolcrib's own client."""

    async def call(**kwargs: Any) -> Any:
        async for response in tool(**kwargs):
            last = response
        result = (last.metadata or {}).get("value")
        if result is None:
            await _check(client)
            raise RuntimeError(last.text)
        return value_of(result)

    return call


def _foreign_proxy(client_class: Any, transport: Any, name: str) -> Function:
    """Return a function that calls a tool through a new client of fastmcp."""

    async def call(**kwargs: Any) -> Any:
        async with client_class(transport) as client:
            return value_of(dumped(await client.call_tool_mcp(name, kwargs)))

    return call


async def _check(client: mcp.McpClient) -> None:
    """Raise an exception if the server cannot be reached."""
    try:
        await client.list_tools()
    except McpConnectionError as error:
        raise _unreachable(error) from error


def _unreachable(error: McpConnectionError) -> McpConnectionError:
    return McpConnectionError(f"Client failed to connect: All connection attempts failed: {error}")


def value_of(result: Mapping[str, Any]) -> Any:
    """Return the value of a `CallToolResult`: structured content, or else the first block.

    A failed call gives `{"error": text}`, and a result without a known block gives `None`.
    """
    blocks = result.get("content") or []
    if result.get("isError"):
        return {"error": next((block["text"] for block in blocks if block.get("type") == "text"), "")}
    structured = result.get("structuredContent")
    if structured:
        return structured
    first = blocks[0] if blocks else {}
    if first.get("type") == "text":
        try:
            return json.loads(first["text"])
        except ValueError:
            return first["text"]
    if first.get("type") in FIELDS:
        return _dump(first, FIELDS[first["type"]])
    return None


def _dump(block: Mapping[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    """Return a block with all fields that its type has, and then those that it has beyond them."""
    given = {"meta" if name == "_meta" else name: _dump_part(name, value) for name, value in block.items()}
    return {**dict.fromkeys(fields), **given}


def _dump_part(name: str, value: Any) -> Any:
    if name not in PART_FIELDS:
        return value
    if isinstance(value, list):
        return [_dump_part(name, item) for item in value]
    return _dump(value, PART_FIELDS[name]) if isinstance(value, Mapping) else value
