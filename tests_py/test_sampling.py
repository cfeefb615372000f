"""Requests of tools to a model: by the toolkit's function, and by the model of an MCP client."""

from __future__ import annotations

import asyncio
import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from support.agents import finder
from support.mcp.peers import HttpPeer, connected, messages
from toolcrib import ToolContext, Toolkit, errors, mcp
from toolcrib.sampling import SamplingRequest, SamplingResult

ANSWER = {"role": "assistant", "content": {"type": "text", "text": "a poem"}, "model": "muse", "stopReason": "endTurn"}


async def poet(topic: str, context: ToolContext) -> str:
    """Write a poem."""
    answer = await context.sample(f"Write about {topic}.", system_prompt="You are a poet.", max_tokens=50)
    return f"{answer} by {answer.model}"


def blocking_poet(topic: str, context: ToolContext) -> str:
    """Write a poem, in a thread."""
    return context.sample(f"Write about {topic}.").result().text


async def test_the_sampler_of_the_toolkit_answers() -> None:
    requests: list[SamplingRequest] = []

    async def sampler(request: SamplingRequest) -> dict[str, Any]:
        requests.append(request)
        return ANSWER

    toolkit = Toolkit(tools=[poet], sampler=sampler)

    response = await toolkit.call("poet", topic="wood")

    (request,) = requests
    assert response.text == "a poem by muse"
    assert request.messages == [{"role": "user", "content": {"type": "text", "text": "Write about wood."}}]
    assert (request.system_prompt, request.max_tokens, request.temperature) == ("You are a poet.", 50, None)
    assert toolkit.sampler is sampler


@pytest.mark.parametrize("tool", [poet, blocking_poet])
async def test_a_sampler_may_block_and_answer_with_text(tool: Any) -> None:
    toolkit = Toolkit(sampler=lambda request: "wood")
    toolkit.register_tool_function(tool, func_name="poet")

    response = await toolkit.call("poet", topic="wood")

    assert response.text.startswith("wood")


async def test_a_tool_in_a_process_of_its_own_asks_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "poets.py").write_text(
        "from toolcrib import ToolContext\n"
        "def poet(topic: str, context: ToolContext) -> str:\n"
        "    answer = context.sample('Write about ' + topic).result()\n"
        "    return f'{answer.text} by {answer.model}'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    poet = importlib.import_module("poets").poet

    toolkit = Toolkit(tools=[poet], run_in="process", sampler=lambda request: ANSWER)

    assert (await toolkit.call("poet", topic="wood")).text == "a poem by muse"


async def test_without_a_model_the_tool_is_told_what_is_missing() -> None:
    response = await Toolkit(tools=[poet]).call("poet", topic="wood")

    assert response.code == "failed"
    assert isinstance(response.exception, errors.NoSamplerError)
    assert "pass `sampler=` to the toolkit" in response.text


async def test_a_wrong_answer_of_the_sampler_is_an_error() -> None:
    response = await Toolkit(tools=[poet], sampler=lambda request: 3).call("poet", topic="wood")

    assert isinstance(response.exception, errors.InvalidReplyError)


def test_wrong_samplers_and_messages_are_refused() -> None:
    with pytest.raises(TypeError, match="sampler must be callable, not int"):
        Toolkit(sampler=3)  # type: ignore[arg-type]
    toolkit = Toolkit()
    with pytest.raises(TypeError, match="sampler must be callable"):
        toolkit.sampler = "model"  # type: ignore[assignment]
    with pytest.raises(TypeError, match="sampler must be callable"):
        mcp.connect("server", sampler="model")


async def test_wrong_messages_are_an_error_of_the_tool() -> None:
    toolkit = Toolkit(sampler=lambda request: "never")

    @toolkit.tool
    async def wrong(context: ToolContext) -> str:
        return str(await context.sample([{"text": "hello"}]))

    response = await toolkit.call("wrong")

    assert "`role` and `content`" in response.text


async def test_a_conversation_and_all_options_are_passed_on() -> None:
    requests: list[SamplingRequest] = []

    def sampler(request: SamplingRequest) -> str:
        requests.append(request)
        return "ok"

    toolkit = Toolkit(sampler=sampler)
    picture = {"type": "image", "data": "aW1n", "mimeType": "image/png"}

    @toolkit.tool
    async def look(context: ToolContext) -> str:
        answer = await context.sample(
            [{"role": "user", "content": picture}, {"role": "assistant", "content": "A cat?"}],
            temperature=0.5,
            stop_sequences=["END"],
            model_preferences={"hints": [{"name": "small"}]},
            tools=[{"name": "zoom", "inputSchema": {"type": "object"}}],
        )
        assert isinstance(answer, SamplingResult)
        return f"{answer.text} {answer.stop_reason} {answer.content}"

    response = await toolkit.call("look")

    assert response.text == "ok endTurn [{'type': 'text', 'text': 'ok'}]"
    assert requests[0].raw == {
        "messages": [
            {"role": "user", "content": picture},
            {"role": "assistant", "content": {"type": "text", "text": "A cat?"}},
        ],
        "maxTokens": 1024,
        "temperature": 0.5,
        "stopSequences": ["END"],
        "modelPreferences": {"hints": [{"name": "small"}]},
        "tools": [{"name": "zoom", "inputSchema": {"type": "object"}}],
    }


def answered(peer: HttpPeer, tool: str, answer: dict[str, Any], **arguments: Any) -> list[dict[str, Any]]:
    """Call a tool, and answer its requests to the model."""
    found = []
    for message in peer.start("tools/call", {"name": tool, "arguments": arguments}):
        found.append(message)
        if message.get("method") == "sampling/createMessage":
            peer.status(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}))
    return found


async def test_the_model_of_the_client_answers_before_that_of_the_toolkit() -> None:
    toolkit = Toolkit(tools=[poet], sampler=lambda request: "not asked")

    async with toolkit.serve_mcp("http") as server:
        peer = await connected(server, sampling={})
        found = await asyncio.to_thread(answered, peer, "poet", {"result": ANSWER}, topic="wood")

    request = {name: value for name, value in found[0]["params"].items() if name != "_meta"}
    assert request == {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Write about wood."}}],
        "systemPrompt": "You are a poet.",
        "maxTokens": 50,
    }
    assert found[-1]["result"]["content"][0]["text"] == "a poem by muse"


async def test_the_model_of_the_toolkit_answers_if_the_client_has_none() -> None:
    async with Toolkit(tools=[poet], sampler=lambda request: "ours").serve_mcp("http") as server:
        peer = await connected(server)
        text = await asyncio.to_thread(peer.text, "poet", topic="wood")
    async with Toolkit(tools=[poet]).serve_mcp("http") as server:
        peer = await connected(server, elicitation={})
        refused = await asyncio.to_thread(peer.call, "poet", topic="wood")

    assert text == "ours by unknown"
    assert refused["isError"]
    assert "its MCP client has no model" in str(refused)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"error": {"code": -1, "message": "the user said no"}}, "the user said no"),
        ({"result": {"role": "assistant"}}, "invalid"),
        ({"result": {}}, "invalid"),
    ],
)
async def test_a_refusal_of_the_client_is_an_error_of_the_tool(answer: dict[str, Any], reason: str) -> None:
    async with Toolkit(tools=[poet]).serve_mcp("http") as server:
        peer = await connected(server, sampling={})
        found = await asyncio.to_thread(answered, peer, "poet", answer, topic="wood")

    assert found[-1]["result"]["isError"]
    assert reason in str(found[-1]["result"])


async def test_an_answer_may_have_several_blocks() -> None:
    blocks = [{"type": "text", "text": "a "}, {"type": "text", "text": "poem"}]

    async with Toolkit(tools=[poet]).serve_mcp("http") as server:
        peer = await connected(server, sampling={})
        answer = {"result": {**ANSWER, "content": blocks}}
        found = await asyncio.to_thread(answered, peer, "poet", answer, topic="wood")

    assert found[-1]["result"]["content"][0]["text"] == "a poem by muse"


async def test_tools_for_the_model_need_a_client_that_takes_them() -> None:
    toolkit = Toolkit()

    @toolkit.tool
    async def agentic(context: ToolContext) -> str:
        zoom = {"name": "zoom", "inputSchema": {"type": "object"}}
        return str(await context.sample("Zoom in.", tools=[zoom]))

    async with toolkit.serve_mcp("http") as server:
        plain, able = await connected(server, sampling={}), await connected(server, sampling={"tools": {}})
        refused = await asyncio.to_thread(answered, plain, "agentic", {"result": ANSWER})
        asked = await asyncio.to_thread(answered, able, "agentic", {"result": ANSWER})

    assert "does not take tools" in str(refused[-1]["result"])
    assert asked[0]["params"]["tools"][0]["name"] == "zoom"
    assert asked[-1]["result"]["content"][0]["text"] == "a poem"


def modern(**params: Any) -> tuple[str, dict[str, str]]:
    """Make a call of 2026-07-28, which has no session, and its headers."""
    prefix, version = "io.modelcontextprotocol", "2026-07-28"
    params["_meta"] = {
        f"{prefix}/protocolVersion": version,
        f"{prefix}/clientInfo": {"name": "modern", "version": "1"},
        f"{prefix}/clientCapabilities": {"sampling": {}},
    }
    headers = {"MCP_Protocol_Version": version, "Mcp_Method": "tools/call", "Mcp_Name": "poet"}
    request = {"name": "poet", "arguments": {"topic": "wood"}, **params}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": request}), headers


async def test_a_client_without_a_session_is_asked_by_a_result() -> None:
    async with Toolkit(tools=[poet]).serve_mcp("http") as server:
        peer = HttpPeer(server.url, server.token)

        def send(**params: Any) -> dict[str, Any]:
            body, headers = modern(**params)
            (answer,) = messages(peer.request(body, "POST", None, **headers))
            return dict(answer)

        asked = (await asyncio.to_thread(send))["result"]
        again = {"requestState": asked["requestState"], "inputResponses": {"question": ANSWER}}
        result = await asyncio.to_thread(lambda: send(**again))

    assert asked["inputRequests"]["question"]["method"] == "sampling/createMessage"
    assert result["result"]["content"][0]["text"] == "a poem by muse"


async def test_a_sub_agent_asks_the_model_of_the_client() -> None:
    toolkit = Toolkit(tools=[poet])

    async def loop(inputs: Any, session: Any, emit: Any) -> str:
        inner = await session.call("poet", topic="wood")
        return f"{inner.text}, {await emit.context.sample('Again.')}"

    toolkit.register_agent(finder(tools=["poet"]), run=loop)

    async with toolkit.serve_mcp("http") as server:
        peer = await connected(server, sampling={})
        found = await asyncio.to_thread(answered, peer, "finder", {"result": ANSWER}, task="birds")

    assert found[-1]["result"]["content"][0]["text"] == "a poem by muse, a poem"


async def test_a_request_goes_through_our_client_to_its_sampler() -> None:
    requests: list[SamplingRequest] = []

    async def sampler(request: SamplingRequest) -> str:
        requests.append(request)
        return "from the other side"

    toolkit = Toolkit()
    async with (
        Toolkit(tools=[poet]).serve_mcp("http") as server,
        mcp.connect(server.url, name="poets", token=server.token, sampler=sampler) as client,
    ):
        await toolkit.register_mcp_client(client)
        response = await toolkit.call("poet", topic="wood")

    assert response.text == "from the other side by unknown"
    assert requests[0].system_prompt == "You are a poet."
