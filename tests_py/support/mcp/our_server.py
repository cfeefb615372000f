"""A toolkit as a server: `our_server.py stdio`, or `our_server.py http PORT`."""

from __future__ import annotations

import asyncio
import base64
import sys
from dataclasses import dataclass
from pathlib import Path

# Clients start this program without the variables of their own environment.
sys.path.insert(0, str(Path(__file__).parents[3] / "python"))

from toolcrib import Base64Source, ImageBlock, ToolContext, Toolkit, ToolResponse

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()

toolkit = Toolkit()


@dataclass
class Board:
    """A board."""

    length: int
    wood: str


@toolkit.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    print("adding")  # Standard output belongs to the protocol, and a tool may not disturb it.
    return a + b


@toolkit.tool
async def plan(length: int) -> Board:
    """Plan a board."""
    return Board(length, "oak")


@toolkit.tool
async def jam() -> str:
    """Fail."""
    raise ValueError("the blade is stuck")


@toolkit.tool
async def plane(strokes: int, context: ToolContext) -> str:
    """Plane a board, and report each stroke."""
    for stroke in range(strokes):
        context.progress(stroke + 1, strokes, f"stroke {stroke + 1}")
        await asyncio.sleep(0.01)
    return "smooth"


@toolkit.tool
async def draw() -> ToolResponse:
    """Draw a picture."""
    return ToolResponse(
        [ImageBlock(type="image", source=Base64Source(type="base64", media_type="image/png", data=PIXEL))]
    )


@toolkit.tool
async def choose(context: ToolContext) -> str:
    """Ask the user for the wood."""
    return str(await context.ask("Which wood?", str))


@toolkit.tool
async def rhyme(word: str, context: ToolContext) -> str:
    """Ask the client's model."""
    answer = await context.sample(f"A rhyme for {word}?", max_tokens=20)
    return f"{answer.text} ({answer.model})"


@toolkit.tool
async def mutter(context: ToolContext) -> str:
    """Log a message of each level."""
    for level in (10, 20, 30, 40):
        context.log.log(level, "level %d", level)
    return "muttered"


@toolkit.tool
def measure(result: str) -> int:
    """Break the promise of the return annotation."""
    return {"text": "n/a", "nothing": None, "nan": float("nan")}[result]  # type: ignore[return-value]


@toolkit.tool
async def rest(seconds: float) -> str:
    """Take a while."""
    await asyncio.sleep(seconds)
    return "rested"


@toolkit.tool
async def dry(marker: str) -> str:
    """Take longer than any deadline; write a file when it is cancelled."""
    try:
        await asyncio.sleep(3600)
    finally:
        with open(marker, "w") as file:
            file.write("cancelled")
    return "never"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        toolkit.serve_mcp("stdio").run()
    else:
        toolkit.serve_mcp("http", port=int(sys.argv[2]), token=False).run()
