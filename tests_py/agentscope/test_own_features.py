"""Features that only toolcrib has, over a toolkit in AgentScope's place, whose responses are AgentScope's."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

import pytest
from agentscope.tool import ToolResponse

from support.agents import Script, done, finder
from support.agents import call as asked
from support.agentscope.pair import responses
from support.mcp.peers import connected
from toolcrib.agent import ModelReply
from toolcrib.compat.agentscope import Toolkit


async def count(kind: str) -> ToolResponse:
    """Count birds."""
    return ToolResponse(content=[{"type": "text", "text": str(len(kind))}])


def nothing() -> Generator[ToolResponse, None, None]:
    """Give nothing."""
    yield from ()


def forget() -> None:
    """Return nothing."""


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("finder", {"task": "birds"}), ("call_subagent", {"agent_name": "finder", "instruction": "birds"})],
)
async def test_a_sub_agent_calls_tools(tool: str, arguments: dict[str, Any]) -> None:
    toolkit, script = Toolkit(), Script(ModelReply(calls=[asked("count", kind="wren")]), ModelReply(calls=[done()]))
    toolkit.register_tool_function(count)
    toolkit.register_agent(finder(), model=script)
    toolkit.register_call_subagent()

    last = (await responses(toolkit, tool, **arguments))[-1]

    assert type(last) is ToolResponse
    assert "Termination Reason: GOAL" in last.content[0]["text"]
    assert script.seen[-1] == "4"


async def test_an_mcp_server_answers_calls() -> None:
    toolkit = Toolkit()
    for tool in (count, nothing, forget):
        toolkit.register_tool_function(tool)

    async with toolkit.serve_mcp("http") as server:
        peer = await connected(server)
        counted = await asyncio.to_thread(peer.call, "count", kind="wren")
        empty = await asyncio.to_thread(peer.call, "nothing")
        failed = await asyncio.to_thread(peer.call, "forget")

    assert counted["content"] == [{"type": "text", "text": "4"}]
    assert empty["content"] == []
    assert failed["isError"]
