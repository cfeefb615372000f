"""fastmcp: its client as the adapter takes it, its server behind our client, its client before our server."""

from __future__ import annotations

import asyncio
from typing import Any

import fastmcp
from fastmcp.exceptions import ToolError

from support.mcp.processes import OUR_SERVER, http_server, until
from support.streams import block, read
from toolcrib import Toolkit, mcp


def workshop() -> fastmcp.FastMCP:
    """Make a server in this process."""

    def saw(length: int, wood: str = "oak") -> str:
        """Saw a board."""
        return f"{length} cm of {wood}"

    def plan(length: int) -> dict[str, int]:
        """Plan a board."""
        return {"length": length}

    def jam() -> str:
        """Fail."""
        raise ToolError("the blade is stuck")

    async def plane(strokes: int, ctx: fastmcp.Context) -> str:
        """Plane a board, and report each stroke."""
        for stroke in range(strokes):
            await ctx.report_progress(stroke + 1, strokes, f"stroke {stroke + 1}")
            await asyncio.sleep(0.01)
        return "smooth"

    server = fastmcp.FastMCP("workshop")
    for tool in (saw, plan, jam, plane):
        server.tool(tool)
    return server


async def test_a_client_of_a_server_in_this_process_is_registered_as_it_is() -> None:
    async with fastmcp.Client(workshop()) as client:
        toolkit = Toolkit()

        registration = await toolkit.register_mcp_client(client)
        board = await toolkit.call("saw", length=7)
        plan = await toolkit.call("plan", length=7)
        jam = await toolkit.call("jam")
        chunks = await read(toolkit.call_tool_function(block("plane", strokes=2)))

    assert registration.client == "workshop"
    assert set(registration.tools) == {"saw", "plan", "jam", "plane"}
    assert board.text == "7 cm of oak"
    assert (plan.metadata or {})["structured_content"] == {"length": 7}
    assert (jam.code, jam.text) == ("failed", "the blade is stuck")
    assert [chunk.text for chunk in chunks if chunk.mode == "progress"] == ["stroke 1", "stroke 2"]
    assert (chunks[-1].text, chunks[-1].is_last) == ("smooth", True)


async def test_a_foreign_client_is_listed_once_for_all_its_tools() -> None:
    class Counting(fastmcp.Client):  # type: ignore[misc] # a class of an untyped environment
        """A client that counts its lists."""

        lists = 0

        async def list_tools(self, *arguments: object, **options: object) -> object:
            self.lists += 1
            return await super().list_tools(*arguments, **options)

    async with Counting(workshop()) as client:
        toolkit = Toolkit()

        await toolkit.register_mcp_client(mcp.adapt(client, "theirs"))

        assert (len(toolkit.tools), client.lists) == (4, 1)


async def test_a_client_of_fastmcp_calls_a_toolkit() -> None:
    async with http_server(OUR_SERVER) as url, fastmcp.Client(url) as client:
        names = {tool.name for tool in await client.list_tools()}
        result = await client.call_tool("add", {"a": 2, "b": 3})

    assert "add" in names
    assert result.content[0].text == "5"


async def test_a_client_of_fastmcp_answers_questions_and_gets_messages_and_progress() -> None:
    messages: list[tuple[str, object]] = []
    progress: list[float] = []

    async def sample(messages: object, params: object, context: object) -> str:
        return "cloak"

    async def elicit(message: str, response_type: object, params: object, context: object) -> dict[str, str]:
        return {"answer": "ash"}

    async def log(message: Any) -> None:
        messages.append((message.level, message.data))

    async def report(done: float, total: float | None, message: str | None) -> None:
        progress.append(done)

    handlers = {
        "sampling_handler": sample,
        "elicitation_handler": elicit,
        "log_handler": log,
        "progress_handler": report,
    }
    async with http_server(OUR_SERVER) as url, fastmcp.Client(url, **handlers) as client:
        rhyme = await client.call_tool("rhyme", {"word": "oak"})
        choice = await client.call_tool("choose", {})
        await client.call_tool("plane", {"strokes": 2})
        await client.call_tool("mutter", {})
        await until(lambda: ("error", "level 40") in messages)

    assert rhyme.content[0].text.startswith("cloak (")
    assert choice.content[0].text == "ash"
    assert progress == [1, 2]
    assert ("warning", "level 30") in messages
