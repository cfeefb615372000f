"""The official SDK of the version in this environment: its servers behind our client, its clients before our server."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client

from support.mcp.processes import OUR_SERVER, SDK_SERVER, command, http_server, until
from support.streams import block, read
from toolcrib import Toolkit, mcp
from toolcrib.mcp import McpClient

SCRIPTED = Path(__file__).parents[2] / "tests" / "data" / "mcp" / "scripted_server.py"
BOTH = pytest.mark.parametrize("transport", ["stdio", "http"])


@asynccontextmanager
async def connected(transport: str, **options: Any) -> AsyncIterator[McpClient]:
    """Connect our client to a server of the SDK."""
    async with AsyncExitStack() as stack:
        target: Any = command(SDK_SERVER, "stdio")
        if transport == "http":
            target = await stack.enter_async_context(http_server(SDK_SERVER))
        yield await stack.enter_async_context(mcp.connect(target, name="workshop", **options))


@asynccontextmanager
async def session(transport: str, **callbacks: Any) -> AsyncIterator[ClientSession]:
    """Connect a client of the SDK to our server."""
    async with AsyncExitStack() as stack:
        if transport == "stdio":
            program, *arguments = command(OUR_SERVER, "stdio")
            parameters = StdioServerParameters(command=program, args=arguments)
            streams = await stack.enter_async_context(stdio_client(parameters))
        else:
            streams = await stack.enter_async_context(
                http_streams(await stack.enter_async_context(http_server(OUR_SERVER)))
            )
        opened = await stack.enter_async_context(ClientSession(streams[0], streams[1], **callbacks))
        await opened.initialize()
        yield opened


def http_streams(url: str) -> Any:
    """Open the SDK's HTTP transport, whose name differs between the versions."""
    from mcp.client import streamable_http

    connect = getattr(streamable_http, "streamable_http_client", None) or streamable_http.streamablehttp_client
    return connect(url)


def field(model: Any, name: str) -> Any:
    """Read a field of a message, which version 2 spells in snake case."""
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return getattr(model, snake) if hasattr(model, snake) else getattr(model, name, None)


@BOTH
async def test_tools_of_an_sdk_server_are_listed_with_their_whole_schemas(transport: str) -> None:
    async with connected(transport) as client:
        toolkit = Toolkit()
        registration = await toolkit.register_mcp_client(client)

    assert set(registration.tools) == {"saw", "plan", "jam", "plane", "draw", "dry", "choose", "rhyme", "extend"}
    saw = toolkit.tools["saw"].json_schema["function"]
    assert saw["description"] == "Saw a board."
    assert saw["parameters"]["properties"]["wood"]["default"] == "oak"
    assert saw["parameters"]["required"] == ["length"]


@BOTH
async def test_calls_of_an_sdk_server_give_text_structures_pictures_and_errors(transport: str) -> None:
    async with connected(transport) as client:
        toolkit = Toolkit()
        await toolkit.register_mcp_client(client)

        text = await toolkit.call("saw", length=3)
        board = await toolkit.call("plan", length=7)
        picture = await toolkit.call("draw")
        jam = await toolkit.call("jam")
        wrong = await toolkit.call("saw", length="long")

    assert text.text == "3 cm of oak"
    assert (board.metadata or {})["structured_content"] == {"length": 7, "wood": "oak"}
    assert picture.content[0]["type"] == "image"
    assert "image/png" in str(picture.content[0])
    assert jam.code == "failed"
    assert "the blade is stuck" in jam.text
    assert wrong.code == "invalid_arguments"


@BOTH
async def test_progress_of_an_sdk_server_arrives_in_the_stream(transport: str) -> None:
    async with connected(transport) as client:
        toolkit = Toolkit()
        await toolkit.register_mcp_client(client)

        chunks = await read(toolkit.call_tool_function(block("plane", strokes=3)))

    assert [(chunk.metadata or {})["progress"]["done"] for chunk in chunks if chunk.mode == "progress"] == [1, 2, 3]
    assert chunks[-1].text == "smooth"
    assert chunks[-1].is_last


@BOTH
async def test_cancelling_the_stream_cancels_on_an_sdk_server(transport: str, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    async with connected(transport) as client:
        toolkit = Toolkit()
        await toolkit.register_mcp_client(client, execution_timeout=1)

        response = await toolkit.call("dry", marker=str(marker))
        await until(marker.exists)

    assert response.code == "timeout"


@BOTH
async def test_a_question_of_an_sdk_server_reaches_the_asker(transport: str) -> None:
    questions: list[Any] = []

    async def ask(question: Any) -> Any:
        questions.append(question)
        return {"wood": "ash"}

    async with connected(transport) as client:
        toolkit = Toolkit(asker=ask)
        await toolkit.register_mcp_client(client)
        response = await toolkit.call("choose")
        silent = Toolkit()
        await silent.register_mcp_client(client)
        refused = await silent.call("choose")

    assert response.text == "accept ash"
    assert questions[0].text == "Which wood?"
    assert refused.text == "decline" or refused.code == "failed"


@BOTH
async def test_a_tool_that_an_sdk_server_adds_joins_the_toolkit(transport: str) -> None:
    async with connected(transport) as client:
        toolkit = Toolkit()
        await toolkit.register_mcp_client(client)

        await toolkit.call("extend", name="jigsaw")
        await until(lambda: "jigsaw" in toolkit.tools)
        response = await toolkit.call("jigsaw", length=2)

    assert response.text == "2 cm of oak"


async def test_a_live_session_of_the_sdk_is_registered_as_it_is() -> None:
    program, *arguments = command(SDK_SERVER, "stdio")
    parameters = StdioServerParameters(command=program, args=arguments)
    async with stdio_client(parameters) as (receive, send), ClientSession(receive, send) as live:
        await live.initialize()
        toolkit = Toolkit()

        await toolkit.register_mcp_client(mcp.adapt(live, "theirs"))
        chunks = await read(toolkit.call_tool_function(block("plane", strokes=2)))
        board = await toolkit.call("plan", length=7)
        jam = await toolkit.call("jam")
        others = Toolkit()
        several = await others.register_mcp_clients([live], namespace=False)
        raw = Toolkit()
        await raw.register_mcp_client(live, wrap_tool_result=False)
        result = await raw.value("plan", length=7)

    (registration,) = several.registered.values()
    assert registration.tools.keys() == toolkit.tools.keys()
    assert field(result, "structuredContent") == {"length": 7, "wood": "oak"}
    assert toolkit.tools["saw"].mcp_name == "theirs"
    assert [(chunk.metadata or {})["progress"]["done"] for chunk in chunks if chunk.mode == "progress"] == [1, 2]
    assert (board.metadata or {})["structured_content"] == {"length": 7, "wood": "oak"}
    assert jam.code == "failed"


async def test_an_error_of_the_protocol_behind_a_live_session_is_the_text_of_the_server() -> None:
    parameters = StdioServerParameters(command=sys.executable, args=[str(SCRIPTED), "rpc-error"])
    async with stdio_client(parameters) as (receive, send), ClientSession(receive, send) as live:
        await live.initialize()
        toolkit = Toolkit()
        await toolkit.register_mcp_client(live)

        response = await toolkit.call("echo")

    assert response.text == "Error occurred when calling MCP tool: the tool is on strike"


@BOTH
async def test_an_sdk_client_lists_and_calls_a_toolkit(transport: str) -> None:
    async with session(transport) as theirs:
        listed = {tool.name: tool for tool in (await theirs.list_tools()).tools}
        total = await theirs.call_tool("add", {"a": 2, "b": 3})
        board = await theirs.call_tool("plan", {"length": 7})
        broken = await theirs.call_tool("jam", {})
        wrong = await theirs.call_tool("add", {"a": "two", "b": 3})
        picture = await theirs.call_tool("draw", {})

    assert field(listed["add"], "inputSchema")["required"] == ["a", "b"]
    assert field(listed["plan"], "outputSchema")["properties"]["length"]["type"] == "integer"
    assert total.content[0].text == "5"
    assert field(board, "structuredContent") == {"length": 7, "wood": "oak"}
    assert field(broken, "isError")
    assert field(wrong, "isError")
    assert picture.content[0].type == "image"


@BOTH
async def test_an_sdk_client_gets_the_progress_of_a_tool(transport: str) -> None:
    seen: list[float] = []

    async def report(done: float, total: float | None, message: str | None) -> None:
        seen.append(done)

    async with session(transport) as theirs:
        result = await theirs.call_tool("plane", {"strokes": 3}, progress_callback=report)

    assert result.content[0].text == "smooth"
    assert seen == sorted(seen)
    assert seen[-1] == 3


@BOTH
async def test_a_request_of_an_sdk_server_to_a_model_reaches_the_sampler(transport: str) -> None:
    requests: list[Any] = []

    def sampler(request: Any) -> str:
        requests.append(request)
        return "oak and cloak"

    async with connected(transport, sampler=sampler) as client:
        toolkit = Toolkit()
        await toolkit.register_mcp_client(client)
        modern = (client.server_info or {})["protocolVersion"] >= "2026-07-28"

        response = await toolkit.call("rhyme", word="oak")

    # The newest version has no requests of servers, and the SDK refuses them.
    if modern:
        assert response.code == "failed"
    else:
        assert response.text == "oak and cloak"
        assert requests[0].messages[0]["content"]["text"] == "A rhyme for oak?"


@BOTH
async def test_an_sdk_client_answers_requests_to_its_model(transport: str) -> None:
    asked: list[str] = []

    async def sample(context: Any, params: Any) -> types.CreateMessageResult:
        asked.append(params.messages[0].content.text)
        content = types.TextContent(type="text", text="cloak")
        return types.CreateMessageResult(role="assistant", content=content, model="muse")

    async with session(transport, sampling_callback=sample) as theirs:
        answered = await theirs.call_tool("rhyme", {"word": "oak"})
    async with session(transport) as theirs:
        refused = await theirs.call_tool("rhyme", {"word": "oak"})

    assert asked == ["A rhyme for oak?"]
    assert answered.content[0].text == "cloak (muse)"
    assert field(refused, "isError")
    assert "no model" in refused.content[0].text


@BOTH
async def test_an_sdk_client_answers_questions_to_its_user(transport: str) -> None:
    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"answer": "ash"})

    async with session(transport, elicitation_callback=elicit) as theirs:
        result = await theirs.call_tool("choose", {})

    assert result.content[0].text == "ash"


@BOTH
@pytest.mark.filterwarnings("ignore:The logging capability is deprecated")
async def test_an_sdk_client_gets_log_messages_of_its_level(transport: str) -> None:
    messages: list[tuple[str, Any, str | None]] = []

    async def log(params: Any) -> None:
        messages.append((params.level, params.data, params.logger))

    async with session(transport, logging_callback=log) as theirs:
        await theirs.set_logging_level("warning")
        result = await theirs.call_tool("mutter", {})
        await until(lambda: len(messages) >= 2)

    assert result.content[0].text == "muttered"
    assert messages == [("warning", "level 30", "mutter"), ("error", "level 40", "mutter")]


@BOTH
async def test_an_sdk_client_that_gives_up_cancels_the_tool(transport: str, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    async with session(transport) as theirs:
        call = asyncio.create_task(theirs.call_tool("dry", {"marker": str(marker)}))
        await asyncio.sleep(0.3)
        await cancel(theirs, call)
        await until(marker.exists)


@BOTH
@pytest.mark.parametrize(("result", "text"), [("text", "n/a"), ("nothing", ""), ("nan", "")])
async def test_an_sdk_client_gets_the_text_of_a_result_that_does_not_fit(
    transport: str, result: str, text: str
) -> None:
    async with session(transport) as theirs:
        await theirs.list_tools()
        given = await theirs.call_tool("measure", {"result": result})

    assert field(given, "isError")
    assert text in given.content[0].text
    assert "does not fit the output schema" in given.content[-1].text


@BOTH
async def test_the_end_of_an_sdk_client_is_not_logged_as_a_failure(
    transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("WARNING"):
        async with session(transport) as theirs:
            await theirs.call_tool("add", {"a": 1, "b": 2})

    assert [record.message for record in caplog.records if record.name.startswith("mcp")] == []


@BOTH
@pytest.mark.parametrize("seconds", [1.0, 3.0, 30.0])
async def test_an_sdk_client_may_close_with_a_call_that_it_has_given_up(transport: str, seconds: float) -> None:
    async with session(transport) as theirs:
        call = asyncio.create_task(theirs.call_tool("rest", {"seconds": seconds}))
        await asyncio.sleep(0.5)
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call


async def cancel(theirs: ClientSession, call: asyncio.Task[Any]) -> None:
    """Cancel a call as the client's program does; version 1 has to send the notification itself."""
    call.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await call
    with contextlib.suppress(Exception):
        params = types.CancelledNotificationParams(requestId=theirs._request_id - 1)
        notification = types.CancelledNotification(method="notifications/cancelled", params=params)
        wrapped = types.ClientNotification(notification) if isinstance(types.ClientNotification, type) else notification
        await theirs.send_notification(wrapped)
