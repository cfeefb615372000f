"""A real MCP server over stdio, with the SDK's own class."""

from mcp.server.fastmcp import FastMCP

server = FastMCP("workshop")


@server.tool()
def saw(length: int, wood: str = "oak") -> str:
    """Saw a board."""
    return f"{length} cm of {wood}"


@server.tool()
def drill(depth: float, secret: str) -> str:
    """Drill a hole."""
    return f"{depth} mm deep, {secret}"


@server.tool()
async def jam() -> str:
    """Take longer than any timeout."""
    import asyncio

    await asyncio.sleep(3600)
    return "never"


if __name__ == "__main__":
    server.run()
