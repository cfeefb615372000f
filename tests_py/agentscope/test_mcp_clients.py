"""AgentScope's MCP clients, connected to a real server, register with our toolkit as they do with theirs."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from agentscope.mcp import MCPClientBase, MCPToolFunction, StdIOStatefulClient
from agentscope.tool import Toolkit as AgentScopeToolkit
from mcp.types import CallToolResult, TextContent, Tool

from toolcrib import errors
from toolcrib.compat.agentscope import Toolkit

SERVER = str(Path(__file__).parent.parent / "support" / "agentscope" / "mcp_server.py")


class Dotted(MCPClientBase):  # type: ignore[misc]
    """A client whose only tool has a name that some providers refuse."""

    def __init__(self) -> None:
        super().__init__("dotted")

    async def list_tools(self) -> list[Tool]:
        return [Tool(name="tools.saw", description="Saw.", inputSchema={"type": "object", "properties": {}})]

    async def get_callable_function(
        self, func_name: str, wrap_tool_result: bool = True, execution_timeout: float | None = None
    ) -> MCPToolFunction:
        (tool,) = await self.list_tools()
        return MCPToolFunction(self.name, tool, wrap_tool_result, session=self)

    async def call_tool(self, name: str, **options: Any) -> CallToolResult:
        """Answer a call in the place of a session."""
        return CallToolResult(content=[TextContent(type="text", text=f"{name} ran")])


@asynccontextmanager
async def connected() -> AsyncIterator[StdIOStatefulClient]:
    client = StdIOStatefulClient("workshop", command=sys.executable, args=[SERVER])
    await client.connect()
    try:
        yield client
    finally:
        await client.close()


async def call(toolkit: Any, name: str, **arguments: Any) -> list[Any]:
    request = {"type": "tool_use", "id": "1", "name": name, "input": arguments}
    return [chunk.content async for chunk in await toolkit.call_tool_function(request)]


async def both(scenario: Callable[[Any, StdIOStatefulClient], Awaitable[Any]]) -> tuple[Any, Any]:
    async with connected() as client:
        return await scenario(AgentScopeToolkit(), client), await scenario(Toolkit(), client)


async def test_tools_are_listed_and_called_alike() -> None:
    async def scenario(toolkit: Any, client: StdIOStatefulClient) -> Any:
        presets = {"drill": {"secret": "hush"}}
        await toolkit.register_mcp_client(client, disable_funcs=["jam"], preset_kwargs_mapping=presets)
        shown = toolkit.get_json_schemas()
        sources = {name: (tool.mcp_name, tool.original_name) for name, tool in toolkit.tools.items()}
        answers = [await call(toolkit, "saw", length=3), await call(toolkit, "drill", depth=1.5)]
        return shown, sources, answers, await call(toolkit, "saw", length="long")

    theirs, ours = await both(scenario)

    assert ours == theirs
    assert "hush" in str(ours)


async def test_a_server_that_times_out_is_reported_alike() -> None:
    async def scenario(toolkit: Any, client: StdIOStatefulClient) -> Any:
        await toolkit.register_mcp_client(client, enable_funcs=["jam"], execution_timeout=0.2)
        return await call(toolkit, "jam")

    theirs, ours = await both(scenario)

    assert ours == theirs
    assert ours[0][0]["text"].startswith("Error occurred when calling MCP tool: ")


async def test_tools_go_with_their_client() -> None:
    async with connected() as client:
        toolkit = Toolkit()
        toolkit.register_tool_function(len, json_schema=schema("saw_blade"), func_name="saw_blade")
        await toolkit.register_mcp_server(client)

        await toolkit.remove_mcp_servers("workshop")

        assert list(toolkit.tools) == ["saw_blade"]


async def test_presets_stay_in_the_clients_own_list_of_tools() -> None:
    async with connected() as client:
        await Toolkit().register_mcp_client(client, preset_kwargs_mapping={"drill": {"secret": "hush"}})

        function = await client.get_callable_function("drill")

    assert "secret" in function.json_schema["function"]["parameters"]["properties"]


async def test_a_taken_name_registers_nothing() -> None:
    async with connected() as client:
        toolkit = Toolkit()
        toolkit.register_tool_function(len, json_schema=schema("jam"), func_name="jam")

        with pytest.raises(errors.DuplicateToolError, match="'jam'"):
            await toolkit.register_mcp_client(client)

        assert list(toolkit.tools) == ["jam"]


async def test_what_the_server_sent_can_be_had_as_it_is() -> None:
    async with connected() as client:
        toolkit = Toolkit()
        await toolkit.register_mcp_client(client, enable_funcs=["saw"], wrap_tool_result=False)

        response = await toolkit.call("saw", length=3)

    assert response.metadata
    assert response.metadata["value"].content[0].text == "3 cm of oak"


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"enable_funcs": ["saw"], "disable_funcs": ["saw"]}, AssertionError),
        ({"enable_funcs": [3], "disable_funcs": ["saw"]}, AssertionError),
        ({"enable_funcs": ["saw"], "disable_funcs": "jam"}, AssertionError),
        ({"preset_kwargs_mapping": []}, TypeError),
    ],
)
async def test_wrong_options_are_refused_in_the_same_words(options: dict[str, Any], kind: type[Exception]) -> None:
    async def scenario(toolkit: Any, client: StdIOStatefulClient) -> Any:
        with pytest.raises(kind) as caught:
            await toolkit.register_mcp_client(client, **options)
        with pytest.raises(TypeError) as also_caught:
            await toolkit.remove_mcp_clients([3])
        return str(caught.value), str(also_caught.value), list(toolkit.tools)

    theirs, ours = await both(scenario)

    assert ours == theirs


async def test_filters_may_be_any_collection() -> None:
    async def scenario(toolkit: Any, client: StdIOStatefulClient) -> Any:
        await toolkit.register_mcp_client(client, enable_funcs=("saw",))
        await toolkit.register_mcp_client(client, disable_funcs={"saw", "jam"})
        return list(toolkit.tools)

    theirs, ours = await both(scenario)

    assert ours == theirs == ["saw", "drill"]


async def test_tools_keep_the_names_of_the_server() -> None:
    async def scenario(toolkit: Any) -> Any:
        await toolkit.register_mcp_client(Dotted())
        return toolkit.get_json_schemas(), list(toolkit.tools), await call(toolkit, "tools.saw")

    theirs, ours = await scenario(AgentScopeToolkit()), await scenario(Toolkit())

    assert ours == theirs
    assert ours[1] == ["tools.saw"]


async def test_a_client_must_be_connected() -> None:
    client = StdIOStatefulClient("workshop", command=sys.executable, args=[SERVER])

    with pytest.raises(RuntimeError, match="not connected"):
        await Toolkit().register_mcp_client(client)


def schema(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
