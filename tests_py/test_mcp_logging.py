"""Log messages of tools as notifications to MCP clients, at the level that they ask for."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from typing import Any, Literal

import pytest

from support.mcp.peers import DEADLINE, HttpPeer, StdioPeer, connected, messages
from toolcrib import ToolContext, Toolkit

LEVELS = ["debug", "info", "notice", "warning", "error", "critical"]

SERVER = """
import logging
from toolcrib import ToolContext, Toolkit

toolkit = Toolkit(run_in={run_in!r})

@toolkit.tool
{prefix}def chat(context: ToolContext) -> str:
    "Log a message of each level."
    for level in (10, 20, 25, 30, 40, 50):
        context.log.log(level, "level %d of %s", level, context.tool_name)
    return "done"

toolkit.serve_mcp("stdio").run()
"""


def logged(peer: StdioPeer, level: str | None) -> list[dict[str, Any]]:
    """Call the tool after the level is set, and return the messages before its result."""
    if level is not None:
        peer.send({"jsonrpc": "2.0", "id": 90, "method": "logging/setLevel", "params": {"level": level}})
        assert peer.read() == {"jsonrpc": "2.0", "id": 90, "result": {}}
    peer.send({"jsonrpc": "2.0", "id": 91, "method": "tools/call", "params": {"name": "chat"}})
    found = []
    while "id" not in (message := peer.read()):
        assert message["method"] == "notifications/message"
        found.append(message["params"])
    assert message["result"]["content"][0]["text"] == "done"
    return found


@pytest.mark.parametrize(("run_in", "prefix"), [("inline", "async "), ("thread", ""), ("process", "")])
def test_a_client_gets_the_messages_of_its_level_before_the_result(run_in: str, prefix: str, tmp_path: Any) -> None:
    peer = StdioPeer(SERVER.format(run_in=run_in, prefix=prefix)) if run_in != "process" else module_peer(tmp_path)
    info = peer.initialize()

    found = {level: [message["level"] for message in logged(peer, level)] for level in LEVELS}
    peer.end()

    assert info["capabilities"]["logging"] == {}
    assert found == {level: LEVELS[number:] for number, level in enumerate(LEVELS)}


def module_peer(folder: Any) -> StdioPeer:
    """Serve a tool that runs in a process of its own, which has to import it."""
    (folder / "chatty.py").write_text(
        "def chat(context: 'ToolContext') -> str:\n"
        "    'Log a message of each level.'\n"
        "    for level in (10, 20, 25, 30, 40, 50):\n"
        "        context.log.log(level, 'level %d of %s', level, context.tool_name)\n"
        "    return 'done'\n"
        "from toolcrib import ToolContext\n"
    )
    return StdioPeer(
        f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        "import chatty\nfrom toolcrib import Toolkit\n"
        "Toolkit(tools=[chatty.chat], run_in='process').serve_mcp('stdio').run()\n"
    )


def test_a_message_has_its_text_and_the_name_of_the_tool() -> None:
    peer = StdioPeer(SERVER.format(run_in="inline", prefix="async "))
    peer.initialize()

    found = logged(peer, None)
    peer.end()

    assert found[0] == {"level": "info", "logger": "chat", "data": "level 20 of chat"}
    assert [message["level"] for message in found] == LEVELS[1:]


def test_a_wrong_level_is_refused() -> None:
    peer = StdioPeer(SERVER.format(run_in="inline", prefix="async "))
    peer.initialize()

    peer.send({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "loud"}})
    answer = peer.read()
    after = logged(peer, "critical")
    peer.end()

    assert answer["error"]["code"] == -32602
    assert len(after) == 1


async def chat(context: ToolContext) -> str:
    """Log two messages."""
    context.log.info("working on %s", "it")
    context.log.error("broken")
    return "done"


async def test_the_logger_of_the_program_keeps_its_own_level(caplog: pytest.LogCaptureFixture) -> None:
    toolkit = Toolkit(tools=[chat])

    with caplog.at_level(logging.ERROR, "toolcrib.tool.chat"):
        async with toolkit.serve_mcp("http") as server:
            peer = await connected(server)
            await asyncio.to_thread(peer.ask, "logging/setLevel", {"level": "debug"})
            await asyncio.to_thread(peer.call, "chat")

    records = [record for record in caplog.records if record.name == "toolcrib.tool.chat"]
    assert [record.getMessage() for record in records] == ["broken"]
    assert records[0].__dict__["caller"] == "mcp:peer"
    assert records[0].filename == "test_mcp_logging.py"


async def test_a_client_over_http_gets_messages_on_its_stream() -> None:
    toolkit = Toolkit(tools=[chat])
    found: list[dict[str, Any]] = []
    complete = threading.Event()

    def listen(peer: HttpPeer) -> None:
        for message in messages(peer.request(None, "GET")):
            found.append(message)
            if len(found) == 2:
                complete.set()
                return

    async with toolkit.serve_mcp("http") as server:
        peer = await connected(server)
        thread = threading.Thread(target=listen, args=(peer,), daemon=True)
        thread.start()
        await asyncio.to_thread(peer.call, "chat")
        assert await asyncio.to_thread(complete.wait, DEADLINE)

    assert [message["params"]["data"] for message in found] == ["working on it", "broken"]


def modern(level: str | None) -> tuple[str, dict[str, str]]:
    """Make a call of 2026-07-28, whose level is part of it."""
    prefix, version = "io.modelcontextprotocol", "2026-07-28"
    meta: dict[str, Any] = {
        f"{prefix}/protocolVersion": version,
        f"{prefix}/clientInfo": {"name": "modern", "version": "1"},
        f"{prefix}/clientCapabilities": {},
    }
    if level is not None:
        meta[f"{prefix}/logLevel"] = level
    params = {"name": "chat", "arguments": {}, "_meta": meta}
    headers = {"MCP_Protocol_Version": version, "Mcp_Method": "tools/call", "Mcp_Name": "chat"}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}), headers


@pytest.mark.parametrize(
    ("level", "expected"), [(None, []), ("debug", ["working on it", "broken"]), ("warning", ["broken"])]
)
async def test_a_request_of_the_newest_version_has_its_own_level(
    level: Literal["debug", "warning"] | None, expected: list[str]
) -> None:
    toolkit = Toolkit(tools=[chat])

    async with toolkit.serve_mcp("http") as server:
        peer = HttpPeer(server.url, server.token)
        body, headers = modern(level)
        answers = await asyncio.to_thread(lambda: list(messages(peer.request(body, "POST", None, **headers))))

    assert [message["params"]["data"] for message in answers[:-1]] == expected
    assert answers[-1]["result"]["content"][0]["text"] == "done"


async def test_messages_of_one_client_do_not_reach_another() -> None:
    toolkit = Toolkit(tools=[chat])

    async with toolkit.serve_mcp("http") as server:
        one, other = await connected(server), await connected(server)
        await asyncio.to_thread(one.call, "chat")
        await asyncio.to_thread(other.call, "chat")
        streams = [peer.request(None, "GET") for peer in (one, other)]
        for peer in (one, other):
            await asyncio.to_thread(peer.call, "chat")

        def first_two(response: Any) -> list[str]:
            found = messages(response)
            return [next(found)["params"]["data"] for _ in range(2)]

        texts = await asyncio.gather(*(asyncio.to_thread(first_two, stream) for stream in streams))

    assert texts == [["working on it", "broken"]] * 2


async def test_a_tool_that_floods_its_client_does_not_wait_for_it() -> None:
    toolkit = Toolkit()

    @toolkit.tool
    async def flood(context: ToolContext) -> str:
        for number in range(5000):
            context.log.error("message %d", number)
        return "done"

    async with toolkit.serve_mcp("http") as server:
        peer = await connected(server)
        text = await asyncio.to_thread(peer.text, "flood")

    assert text == "done"


async def test_a_sub_agent_and_its_tools_log_to_the_client() -> None:
    from support.agents import finder

    toolkit = Toolkit(tools=[chat])

    async def loop(inputs: Any, session: Any, emit: Any) -> str:
        emit.context.log.warning("looking")
        return str((await session.call("chat")).text)

    toolkit.register_agent(finder(tools=["chat"]), run=loop)
    body, headers = modern("info")
    request = json.loads(body)
    request["params"].update(name="finder", arguments={"task": "birds"})

    async with toolkit.serve_mcp("http") as server:
        peer = HttpPeer(server.url, server.token)
        headers["Mcp_Name"] = "finder"
        answers = await asyncio.to_thread(
            lambda: list(messages(peer.request(json.dumps(request), "POST", None, **headers)))
        )

    logged = [answer["params"]["data"] for answer in answers if answer.get("method") == "notifications/message"]
    assert logged == ["looking", "working on it", "broken"]
