"""The servers of the MCP benchmark: `python -m benches.peers.mcp_servers sdk|toolcrib stdio|http PORT|TOOLS`."""

from __future__ import annotations

import sys


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def sdk(transport: str, port: int) -> None:
    """Serve with the SDK's own class.

    Args:
        transport: `"stdio"` or `"http"`.
        port: The port for HTTP.
    """
    from mcp.server.fastmcp import FastMCP

    server = FastMCP("sdk", host="127.0.0.1", port=port, log_level="ERROR", json_response=True)
    server.tool()(add)
    server.run("stdio" if transport == "stdio" else "streamable-http")


def toolcrib(transport: str, number: int) -> None:
    """Serve a toolkit.

    Args:
        transport: `"stdio"` or `"http"`.
        number: The port for HTTP, or the number of tools.
    """
    from toolcrib import Toolkit

    kit = Toolkit(run_in="inline")
    kit.register_tool_function(add)
    if transport == "http":
        kit.serve_mcp("http", port=number, token=False).run()
    else:
        for count in range(number):
            kit.register_tool_function(add, func_name=f"add_{count}")
        kit.serve_mcp("stdio").run()


if __name__ == "__main__":
    {"sdk": sdk, "toolcrib": toolcrib}[sys.argv[1]](sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
