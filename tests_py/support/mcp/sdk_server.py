"""A server of the official SDK, 1.x or 2.x: `sdk_server.py stdio`, or `sdk_server.py http PORT`."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, Any

from pydantic import BaseModel

try:
    from mcp.server import MCPServer as Server
    from mcp.server.mcpserver import Context, Elicit, ElicitationResult, Image, Resolve
    from mcp.server.mcpserver.exceptions import ToolError

    VERSION = 2
except ImportError:
    from mcp.server.fastmcp import Context, Image
    from mcp.server.fastmcp import FastMCP as Server
    from mcp.server.fastmcp.exceptions import ToolError

    VERSION = 1

port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
server: Any = Server("workshop") if VERSION == 2 else Server("workshop", host="127.0.0.1", port=port)

PIXEL = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
    b"\x00\x00\x00\rIDATx\x9cc\xf8\xff\xff?\x00\x05\xfe\x02\xfe\xa75\x81\x84\x00\x00\x00\x00IEND\xaeB`\x82"
)


class Board(BaseModel):
    """A board."""

    length: int
    wood: str


class Wood(BaseModel):
    """The answer to a question."""

    wood: str


@server.tool()
def saw(length: int, wood: str = "oak") -> str:
    """Saw a board."""
    return f"{length} cm of {wood}"


@server.tool()
def plan(length: int) -> Board:
    """Plan a board."""
    return Board(length=length, wood="oak")


@server.tool()
def jam() -> str:
    """Fail."""
    raise ToolError("the blade is stuck")


@server.tool()
async def plane(strokes: int, ctx: Context) -> str:
    """Plane a board, and report each stroke."""
    for stroke in range(strokes):
        await ctx.report_progress(stroke + 1, strokes, f"stroke {stroke + 1}")
        await asyncio.sleep(0.01)
    return "smooth"


@server.tool()
def draw() -> Image:
    """Draw a picture."""
    return Image(data=PIXEL, format="png")


@server.tool()
async def dry(marker: str) -> str:
    """Take longer than any deadline; write a file when it is cancelled."""
    try:
        await asyncio.sleep(3600)
    except BaseException:
        with open(marker, "w") as file:
            file.write("cancelled")
        raise
    return "never"


def ask_for_wood() -> Any:
    """Ask before the tool runs, as the newest protocol has it: the client calls again with the answer."""
    return Elicit("Which wood?", Wood)


async def choose_now(ctx: Context) -> str:
    """Ask the user for the wood."""
    result = await ctx.elicit("Which wood?", Wood)
    return f"{result.action} {result.data.wood}" if result.action == "accept" else result.action


if VERSION == 1:
    server.tool(name="choose")(choose_now)
else:

    @server.tool()
    async def choose(answer: Annotated[ElicitationResult[Wood], Resolve(ask_for_wood)]) -> str:
        """Ask the user for the wood."""
        return f"{answer.action} {answer.data.wood}" if answer.action == "accept" else answer.action


@server.tool()
async def rhyme(word: str, ctx: Context) -> str:
    """Ask the client's model, as the versions up to 2025-11-25 do."""
    from mcp.types import SamplingMessage, TextContent

    message = SamplingMessage(role="user", content=TextContent(type="text", text=f"A rhyme for {word}?"))
    result = await ctx.session.create_message([message], max_tokens=20)
    return str(result.content.text)


@server.tool()
async def extend(name: str, ctx: Context) -> str:
    """Add a tool while the server runs."""
    server.add_tool(saw, name=name, description="Saw another board.")
    if VERSION == 1:
        await ctx.session.send_tool_list_changed()
    else:
        await ctx.notify_tools_changed()
    return f"added {name}"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    elif VERSION == 2:
        server.run("streamable-http", host="127.0.0.1", port=port)
    else:
        server.run("streamable-http")
