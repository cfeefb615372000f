"""Drives the MCP SDK: the tools of its server, without the transport."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp.server.fastmcp.tools.base import Tool

from benches.measure import Loop
from benches.peers import Peer


class MCP(Peer):
    """Checks arguments with pydantic; runs sync tools inline."""

    package = "mcp"
    statement = "from mcp.server.fastmcp import FastMCP"

    def register(self, kit: Any, function: Callable[..., Any]) -> None:
        made = Tool.from_function(function)
        kit[made.name] = made

    def schemas(self, kit: Any) -> Any:
        return [
            {"name": made.name, "description": made.description, "inputSchema": made.parameters}
            for made in kit.values()
        ]

    def loop(self, kit: Any, name: str, arguments: dict[str, Any]) -> Loop:
        run_tool = kit[name].run

        async def run(times: int) -> None:
            for _ in range(times):
                await run_tool(arguments, convert_result=True)

        return run


PEERS = (MCP,)
