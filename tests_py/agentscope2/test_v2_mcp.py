"""Tools of MCP servers: through AgentScope's clients, and through those of toolcrib."""

import sys
from pathlib import Path
from typing import Any

from agentscope.mcp import MCPClient, StdioMCPConfig
from agentscope.message import ToolCallBlock
from agentscope.state import AgentState
from agentscope.tool import Toolkit as AgentScopeToolkit

from support.agentscope2.scene import Scene, text_of
from support.agentscope2.scripted import ScriptedModel, ask, say
from toolcrib import mcp
from toolcrib.compat.agentscope2 import Toolkit

SERVER = [str(Path(__file__).parents[1] / "support" / "mcp" / "sdk_server.py"), "stdio"]


async def test_clients_of_agentscope_work_as_in_its_toolkit() -> None:
    transcripts = []
    for make in (AgentScopeToolkit, Toolkit):
        client = MCPClient(
            name="shop",
            is_stateful=True,
            mcp_config=StdioMCPConfig(command=sys.executable, args=SERVER),
            enable_tools=["saw", "jam"],
        )
        await client.connect()
        try:
            toolkit = make(mcps=[client])
            model = ScriptedModel(
                ask(("mcp__shop__saw", {"length": 3})), ask(("mcp__shop__jam", {})), ask(("saw", {})), say("done")
            )
            scene = Scene(toolkit, model)
            await scene.send()
            transcripts.append(scene.transcript())
        finally:
            await client.close()

    assert transcripts[1] == transcripts[0]
    assert "3 cm of oak" in str(transcripts[1])


async def test_clients_of_toolcrib_are_registered_here() -> None:
    toolkit = Toolkit()
    async with mcp.connect([sys.executable, *SERVER]) as client:
        await toolkit.register_mcp_client(client, enable_funcs=["saw"])
        tool = await toolkit.get_tool("saw")
        call = ToolCallBlock(id="c", name="saw", input='{"length": 4}')

        items: list[Any] = [item async for item in toolkit.call_tool(call, AgentState())]

    assert tool is not None
    assert tool.is_mcp
    assert text_of(items[-1]) == "4 cm of oak"
