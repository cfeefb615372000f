"""Clients of other libraries, in the form that a toolkit registers.

A user's own `mcp.ClientSession`, client of `mcp` 2, or `fastmcp.Client` reaches servers that toolcrib's own client does
not: servers with the older SSE transport, and servers in the same process. None of these libraries is imported here;
a client is known by its methods.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

from toolcrib import _core
from toolcrib._core import ToolResponse
from toolcrib.context import progress_response

__all__ = ["AdaptedClient", "adapt"]

_MOST_PAGES = 1000


class AdaptedClient:
    """A connected client of another library, as a toolkit registers it.

    Attributes:
        name: The name of the client, by which its tools are removed again.
        client: The client or session itself. Connecting and closing it remains the task of the program.
    """

    def __init__(self, client: Any, name: str) -> None:
        self.client = client
        self.name = name
        self._listed: dict[str, dict[str, Any]] = {}

    @property
    def is_connected(self) -> bool:
        """True unless the client says that it is not."""
        state = getattr(self.client, "is_connected", True)
        return bool(state() if callable(state) else state)

    async def list_tools(self) -> list[Any]:
        """List the tools of the server."""
        from toolcrib.mcp import McpTool

        return [McpTool(*_core._mcp_definition(tool)) for tool in await self._definitions()]

    async def get_callable_function(
        self, func_name: str, wrap_tool_result: bool = True, execution_timeout: float | None = None
    ) -> AdaptedTool:
        """Return one tool, which can be registered or called.

        Args:
            func_name: The name, as the server spells it.
            wrap_tool_result: False to keep the result of the server as it is, in `metadata["value"]`.
            execution_timeout: Seconds after which a toolkit ends a call; None or 0 for no limit.

        Raises:
            ValueError: If the server has no such tool.
        """
        if func_name not in self._listed:
            await self._definitions()
        if func_name not in self._listed:
            raise ValueError(f"unknown tool '{func_name}': the MCP server of '{self.name}' does not have it")
        return AdaptedTool(self, self._listed[func_name], wrap_tool_result, execution_timeout or None)

    async def _definitions(self) -> list[dict[str, Any]]:
        """List the definitions of all pages, and keep them."""
        listed = await self.client.list_tools()
        tools = list(listed if isinstance(listed, list) else listed.tools)
        seen = set[str]()
        while (cursor := _next_cursor(listed)) is not None and cursor not in seen and len(seen) < _MOST_PAGES:
            seen.add(cursor)
            listed = await self._page(cursor)
            tools.extend(listed.tools)
        definitions = [dumped(tool) for tool in tools]
        self._listed = {definition["name"]: definition for definition in definitions}
        return definitions

    async def _page(self, cursor: str) -> Any:
        parameters = inspect.signature(self.client.list_tools).parameters
        if "cursor" in parameters:
            return await self.client.list_tools(cursor=cursor)
        # The library is loaded: the client is its own.
        types = sys.modules.get("mcp.types") or sys.modules["mcp_types"]
        return await self.client.list_tools(params=types.PaginatedRequestParams(cursor=cursor))

    async def _call(self, name: str, arguments: dict[str, Any], report: Callable[..., Any]) -> Any:
        if hasattr(self.client, "call_tool_mcp"):
            return await self.client.call_tool_mcp(name, arguments, progress_handler=report)
        return await self.client.call_tool(name, arguments, progress_callback=report)

    def __repr__(self) -> str:
        """Name the client."""
        return f"AdaptedClient(name={self.name!r}, client={type(self.client).__name__})"


class AdaptedTool:
    """A tool of a server behind the client of another library.

    Attributes:
        timeout: Seconds after which a toolkit ends a call.
        mcp_definition: The tool as its server defines it, which a lock file records.
    """

    def __init__(self, client: AdaptedClient, definition: dict[str, Any], wrap: bool, timeout: float | None) -> None:
        self._client = client
        self.mcp_definition = definition
        self._wrap = wrap
        self.timeout = timeout
        self.name: str = definition["name"]
        self.mcp_name = client.name
        parameters = {"properties": {}, **definition.get("inputSchema", {}), "type": "object"}
        function = {"name": self.name, "description": definition.get("description") or "", "parameters": parameters}
        self.json_schema: dict[str, Any] = {"type": "function", "function": function}

    async def __call__(self, **arguments: Any) -> AsyncIterator[Any]:
        """Call the tool: yield its progress, and then its result."""
        reports: asyncio.Queue[ToolResponse | None] = asyncio.Queue()

        async def report(done: float, total: float | None = None, text: str | None = None) -> None:
            reports.put_nowait(progress_response(done, total, text))

        call = asyncio.ensure_future(self._client._call(self.name, arguments, report))
        call.add_done_callback(lambda _: reports.put_nowait(None))
        try:
            while (response := await reports.get()) is not None:
                yield response
            result = await call
        finally:
            if not call.done():
                call.cancel()
                await asyncio.wait([call])
        response = _core._mcp_response(self.mcp_name, dumped(result), self.mcp_definition)
        if not self._wrap:
            response.metadata = {**(response.metadata or {}), "value": result}
        yield response


def adapt(client: Any, name: str | None = None) -> AdaptedClient:
    """Wrap a connected client of another library, so that a toolkit can register it under a name.

    Args:
        client: An `mcp.ClientSession`, a client of `mcp` 2, a `fastmcp.Client`, or any object with the same
            `list_tools` and `call_tool`.
        name: The name of the client; that of the server if it is known, or else `"mcp"`.

    Raises:
        TypeError: If the object does not have these methods.
    """
    if isinstance(client, AdaptedClient):
        return client if name is None else AdaptedClient(client.client, name)
    missing = [method for method in ("list_tools", "call_tool") if not callable(getattr(client, method, None))]
    if missing:
        raise TypeError(
            f"invalid MCP client: expected one of toolcrib, AgentScope, `mcp` or `fastmcp`, "
            f"got {type(client).__name__} without `{missing[0]}`"
        )
    info = getattr(client, "server_info", None) or _field(
        getattr(client, "initialize_result", None), "server_info", "serverInfo"
    )
    known = getattr(info, "name", None)
    return AdaptedClient(client, name or (known if isinstance(known, str) else "mcp"))


def dumped(model: Any) -> dict[str, Any]:
    """Return an object of the protocol as JSON has it."""
    if isinstance(model, dict):
        return model
    if not hasattr(model, "model_dump_json"):
        fields = getattr(model, "__dict__", {"name": model.name})
        return {name: value for name, value in fields.items() if value is not None}
    value: dict[str, Any] = json.loads(model.model_dump_json(by_alias=True, exclude_none=True))
    return value


def _next_cursor(listed: Any) -> str | None:
    cursor = _field(listed, "next_cursor", "nextCursor")
    return cursor if isinstance(cursor, str) else None


def _field(model: Any, snake: str, camel: str) -> Any:
    """Return a field of a message. Version 2 of the SDK is tried first, where fastmcp warns of the older spelling."""
    return getattr(model, snake) if hasattr(model, snake) else getattr(model, camel, None)
