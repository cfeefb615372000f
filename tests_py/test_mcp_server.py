"""A toolkit as an MCP server over HTTP: its tools, and the gate that every call passes."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from support.agents import finder
from support.mcp.peers import DEADLINE, HttpPeer, connected, messages
from toolcrib import Policy, Toolkit, ToolResponse, errors
from toolcrib.context import Question, ToolContext
from toolcrib.policy import Rule


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_a_client_lists_and_calls_tools() -> None:
    toolkit = Toolkit(tools=[add])

    async with toolkit.serve_mcp("http", name="sums", version="2.0", instructions="Add.") as server:
        peer = HttpPeer(server.url, server.token)
        info = await asyncio.to_thread(peer.initialize)
        tools = await asyncio.to_thread(peer.tools)
        result = await asyncio.to_thread(peer.call, "add", a=1, b="2")

    assert info["serverInfo"] == {"name": "sums", "version": "2.0"}
    assert info["instructions"] == "Add."
    assert tools["add"]["inputSchema"]["required"] == ["a", "b"]
    assert result == {
        "content": [{"type": "text", "text": "3"}],
        "structuredContent": {"result": 3},
        "isError": False,
    }


async def test_many_clients_call_at_once() -> None:
    toolkit = Toolkit(tools=[add])

    async with toolkit.serve_mcp("http") as server:
        peers = await asyncio.gather(*(connected(server) for _ in range(8)))
        sums = await asyncio.gather(
            *(asyncio.to_thread(peer.text, "add", a=one, b=two) for one, peer in enumerate(peers) for two in range(20))
        )

    assert sums == [str(one + two) for one in range(8) for two in range(20)]


async def test_a_served_call_passes_the_same_gate(tmp_path: Path) -> None:
    audit: list[dict[str, Any]] = []
    toolkit = Toolkit(policy=Policy([Rule(tool="secret_*", decision="deny", id="no-secrets")]), audit=audit.append)
    ran: list[str] = []
    toolkit.create_tool_group("extra", "More.")

    @toolkit.tool
    async def secret_plan() -> str:
        ran.append("secret_plan")
        return ""

    @toolkit.tool(permission="confirm", secrets=["password"])
    async def deploy(password: str) -> str:
        ran.append("deploy")
        return ""

    @toolkit.tool(group_name="extra")
    async def hidden() -> str:
        ran.append("hidden")
        return ""

    toolkit.register_tool_function(add)

    async with toolkit.serve_mcp("http") as server:
        peer = await connected(server, "inspector")
        denied = await asyncio.to_thread(peer.call, "secret_plan")
        pending = await asyncio.to_thread(peer.call, "deploy", password="hunter2")
        invalid = await asyncio.to_thread(peer.call, "add", a=1)
        unknown = await asyncio.to_thread(peer.ask, "tools/call", {"name": "subtract"})
        inactive = await asyncio.to_thread(peer.ask, "tools/call", {"name": "hidden"})

    assert ran == []
    assert [denied["isError"], pending["isError"], invalid["isError"]] == [True, True, True]
    assert set(pending) == {"content", "isError"}
    assert "hunter2" not in str(pending)
    assert "approv" in pending["content"][0]["text"]
    assert "b" in invalid["content"][0]["text"]
    assert unknown["error"]["code"] == -32602
    assert "result" not in inactive or inactive["result"]["isError"]
    assert {record["caller"] for record in audit} == {"mcp:inspector"}


async def test_middlewares_see_served_calls() -> None:
    toolkit = Toolkit(tools=[add])
    seen: list[str] = []

    async def watch(kwargs: dict[str, Any], next_handler: Any) -> Any:
        seen.append(kwargs["tool_call"]["name"])
        async for response in await next_handler(**kwargs):
            yield response

    toolkit.register_middleware(watch)

    async with toolkit.serve_mcp("http") as server:
        peer = await connected(server)
        await asyncio.to_thread(peer.text, "add", a=1, b=2)

    assert seen == ["add"]


async def test_a_view_serves_its_tools_as_its_caller() -> None:
    toolkit = Toolkit(tools=[add])

    @toolkit.tool
    async def who(context: ToolContext) -> str:
        return str(context.caller)

    async with toolkit.view(names=["who"], caller="guest").serve_mcp("http") as server:
        peer = await connected(server, "admin")
        tools = await asyncio.to_thread(peer.tools)
        caller = await asyncio.to_thread(peer.text, "who")
        other = await asyncio.to_thread(peer.ask, "tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})

    assert list(tools) == ["who"]
    assert caller == "guest"
    assert other["error"]["code"] == -32602


async def test_the_groups_of_one_client_are_not_those_of_another() -> None:
    toolkit = Toolkit(tools=[add])
    toolkit.create_tool_group("extra", "More.")
    toolkit.register_tool_function(toolkit.reset_equipped_tools)

    @toolkit.tool(group_name="extra")
    async def more() -> str:
        return "more"

    async with toolkit.serve_mcp("http") as server:
        one, other = await connected(server), await connected(server)
        before = await asyncio.to_thread(one.tools)
        answers = await asyncio.to_thread(
            lambda: list(one.start("tools/call", {"name": "reset_equipped_tools", "arguments": {"extra": True}}))
        )
        mine, theirs = await asyncio.to_thread(one.tools), await asyncio.to_thread(other.tools)
        text = await asyncio.to_thread(one.text, "more")

    assert ["more" in tools for tools in (before, mine, theirs)] == [False, True, False]
    assert text == "more"
    assert not toolkit.groups["extra"].active
    assert answers[-1]["result"]["isError"] is False


async def test_clients_of_a_session_share_it() -> None:
    toolkit = Toolkit()

    @toolkit.tool
    async def who(context: ToolContext) -> str:
        return f"{context.session_id} {context.deps}"

    session = toolkit.session(id="shared", deps="database")
    async with session.serve_mcp("http") as server:
        one, other = await connected(server), await connected(server)
        texts = [await asyncio.to_thread(peer.text, "who") for peer in (one, other)]

    assert texts == ["shared database", "shared database"]
    assert session.usage.calls == 2


async def test_tools_of_served_sessions_have_their_dependencies() -> None:
    toolkit = Toolkit()

    @toolkit.tool
    async def look(context: ToolContext) -> str:
        return str(context.deps)

    async with toolkit.serve_mcp("http", deps="database") as server:
        peer = await connected(server)
        text = await asyncio.to_thread(peer.text, "look")

    assert text == "database"


async def test_a_change_of_the_tools_is_notified() -> None:
    toolkit = Toolkit(tools=[add])

    async with toolkit.serve_mcp("http") as server:
        peer = await connected(server)
        await asyncio.to_thread(peer.tools)
        stream = await asyncio.to_thread(peer.request, None, "GET", Content_Type=None)

        def changed() -> bool:
            with stream:
                return any(b"notifications/tools/list_changed" in line for line in stream)

        waiting = asyncio.create_task(asyncio.to_thread(changed))
        await asyncio.sleep(0.1)
        toolkit.remove_tool_function("add")
        assert await asyncio.wait_for(waiting, DEADLINE)
        tools = await asyncio.to_thread(peer.tools)

    assert tools == {}


async def test_chunks_are_notified_and_the_whole_is_the_result() -> None:
    toolkit = Toolkit()

    @toolkit.tool
    async def count(context: ToolContext) -> Any:
        context.progress(0, 10, "begin")
        yield "one "
        context.progress(5, 10)
        context.progress(5, 10, "still")
        yield "two"

    async with toolkit.serve_mcp("http") as server:
        peer = await connected(server)
        params = {"name": "count", "arguments": {}, "_meta": {"progressToken": "p"}}
        answers = await asyncio.to_thread(lambda: list(peer.start("tools/call", params)))
        silent = await asyncio.to_thread(lambda: list(peer.start("tools/call", {"name": "count"})))

    reports = [answer["params"] for answer in answers[:-1]]
    numbers = [report["progress"] for report in reports]
    assert numbers == sorted(set(numbers))
    assert next(report["message"] for report in reports if report.get("total") == 10) == "begin"
    assert {report["progressToken"] for report in reports} == {"p"}
    text = "".join(block["text"] for block in answers[-1]["result"]["content"])
    assert text == "one two"
    assert len(silent) == 1


async def test_a_cancelled_call_runs_its_finally() -> None:
    toolkit = Toolkit()
    events: list[str] = []
    started, ended = asyncio.Event(), asyncio.Event()

    @toolkit.tool
    async def wait() -> str:
        started.set()
        try:
            await asyncio.sleep(DEADLINE)
        except asyncio.CancelledError:
            events.append("cancelled")
            raise
        finally:
            ended.set()
        return ""

    async with toolkit.serve_mcp("http") as server:
        peer = await connected(server)
        calling = asyncio.create_task(asyncio.to_thread(lambda: list(peer.start("tools/call", {"name": "wait"}))))
        await asyncio.wait_for(started.wait(), DEADLINE)
        params = {"requestId": peer.number, "reason": "enough"}
        await asyncio.to_thread(peer.notify, "notifications/cancelled", params)
        await asyncio.wait_for(ended.wait(), DEADLINE)
        calling.cancel()

    assert events == ["cancelled"]


async def test_a_session_does_not_end_in_the_middle_of_a_call() -> None:
    toolkit = Toolkit()

    @toolkit.tool
    async def rest() -> str:
        await asyncio.sleep(1)
        return "rested"

    async with toolkit.serve_mcp("http", session_timeout=0.2) as server:
        peer = await connected(server)
        rested = await asyncio.to_thread(peer.text, "rest")

    assert rested == "rested"


async def test_the_end_of_the_server_cancels_its_calls() -> None:
    toolkit = Toolkit()
    started, ended = asyncio.Event(), asyncio.Event()

    @toolkit.tool
    async def wait() -> str:
        started.set()
        try:
            await asyncio.sleep(DEADLINE)
        finally:
            ended.set()
        return ""

    async with toolkit.serve_mcp("http") as server:
        peer = await connected(server)
        calling = asyncio.ensure_future(asyncio.to_thread(lambda: list(peer.start("tools/call", {"name": "wait"}))))
        await asyncio.wait_for(started.wait(), DEADLINE)

    assert ended.is_set()
    with pytest.raises(RuntimeError):
        _ = server.url
    await asyncio.wait({calling}, timeout=DEADLINE)


@dataclass
class Point:
    x: int
    y: int


async def test_output_schemas_come_from_return_annotations() -> None:
    toolkit = Toolkit()

    @toolkit.tool(kind="read")
    async def point() -> Point:
        return Point(1, 2)

    @toolkit.tool(kind="delete")
    async def text() -> str:
        return "hello"

    @toolkit.tool
    async def numbers() -> list[int]:
        return [1, 2]

    @toolkit.tool
    async def entries() -> dict[str, int]:
        return {"a": 1}

    @toolkit.tool
    async def choice() -> Literal["a", "b"] | None:
        return None

    @toolkit.tool
    async def wrong() -> int:
        return "three"  # type: ignore[return-value]

    @toolkit.tool
    async def nothing() -> None: ...

    @toolkit.tool
    async def anything() -> Any: ...

    @toolkit.tool
    async def response() -> ToolResponse:
        return ToolResponse([])

    @toolkit.tool
    async def stream() -> Any:
        yield 1

    @toolkit.tool
    async def bare():  # type: ignore[no-untyped-def]
        return 1

    listed = {tool["name"]: tool for tool in toolkit.schemas("mcp")}
    async with toolkit.serve_mcp("http") as server:
        peer = await connected(server)
        tools = await asyncio.to_thread(peer.tools)
        results = {name: await asyncio.to_thread(peer.call, name) for name in tools}

    assert tools == listed
    schemas = {name: tool["outputSchema"] for name, tool in tools.items() if "outputSchema" in tool}
    assert set(schemas) == {"point", "text", "numbers", "entries", "choice", "wrong"}
    assert schemas["point"]["properties"] == {"x": {"type": "integer"}, "y": {"type": "integer"}}
    assert schemas["text"]["properties"]["result"] == {"type": "string"}
    structured = {
        name: result["structuredContent"] for name, result in results.items() if "structuredContent" in result
    }
    assert structured == {
        "point": {"x": 1, "y": 2},
        "text": {"result": "hello"},
        "numbers": {"result": [1, 2]},
        "entries": {"a": 1},
        "choice": {"result": None},
    }
    assert tools["point"]["annotations"] == {"readOnlyHint": True}
    assert tools["text"]["annotations"] == {"readOnlyHint": False, "destructiveHint": True}
    assert "annotations" not in tools["numbers"]


async def test_links_media_and_resources_are_sent() -> None:
    toolkit = Toolkit()
    resource: Any = {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "a"}}
    link: Any = {"type": "resource_link", "uri": "file:///b", "name": "b"}
    image: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}

    @toolkit.tool
    async def show() -> ToolResponse:
        return ToolResponse([resource, link, image])

    async with toolkit.serve_mcp("http") as server:
        peer = await connected(server)
        result = await asyncio.to_thread(peer.call, "show")

    assert result["content"] == [resource, link, {"type": "image", "data": "AAAA", "mimeType": "image/png"}]


async def test_a_toolkit_that_raises_shows_only_the_kind_of_an_error(caplog: pytest.LogCaptureFixture) -> None:
    toolkit = Toolkit(errors="raise")

    @toolkit.tool
    async def fail() -> str:
        raise KeyError("the password is hunter2")

    async with toolkit.serve_mcp("http") as server:
        peer = await connected(server)
        result = await asyncio.to_thread(peer.call, "fail")

    assert result["isError"] is True
    assert "KeyError" in str(result)
    assert "hunter2" not in str(result)
    assert "fail" in caplog.text


async def test_a_token_is_made_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "toolcrib")

    async with Toolkit().serve_mcp("http") as server, Toolkit().serve_mcp("http", token="mine") as mine:
        token, url = server.token, server.url
        assert await asyncio.to_thread(HttpPeer(url).status, "{}") == 401
        assert await asyncio.to_thread(HttpPeer(url, "wrong").status, "{}") == 401
        assert mine.token == "mine"

    assert token is not None
    assert len(token) >= 32
    assert caplog.text.count(token) == 1
    assert url in caplog.text
    assert "mine" not in caplog.text


async def test_a_server_without_a_token_still_checks_host_and_origin() -> None:
    async with Toolkit().serve_mcp("http", token=False) as server:
        peer = await connected(server)
        assert server.token is None
        for headers in ({"Host": "evil.com"}, {"Origin": "http://evil"}, {"Origin": "null"}):
            assert await asyncio.to_thread(peer.status, "{}", **headers) == 403


async def test_malformed_requests_do_not_affect_the_next() -> None:
    async with Toolkit(tools=[add]).serve_mcp("http") as server:
        peer = await connected(server)
        for body in (b"{", b"\xff", b"[]", b"null", b"[" * 100_000, b"x" * (5 << 20)):
            assert 400 <= await asyncio.to_thread(peer.status, body) < 500
            assert await asyncio.to_thread(peer.text, "add", a=1, b=2) == "3"


async def test_a_number_with_too_many_digits_is_refused() -> None:
    async with Toolkit(tools=[add]).serve_mcp("http") as server:
        peer = await connected(server)
        digits = b"9" * 10_000
        call = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"a": %s}}}'

        with await asyncio.to_thread(peer.request, call % digits) as response:
            answer = await asyncio.to_thread(response.read)
        text = await asyncio.to_thread(peer.text, "add", a=1, b=2)

    assert b'"isError":true' in answer
    assert text == "3"


async def test_another_address_needs_a_token_and_hosts() -> None:
    toolkit = Toolkit()

    for options in ({}, {"token": "t"}, {"allowed_hosts": ["example.com"]}):
        with pytest.raises(errors.InvalidServerOptionError, match="allowed_hosts"):
            await toolkit.serve_mcp("http", host="0.0.0.0", **options)


async def test_a_taken_port_is_an_os_error() -> None:
    toolkit = Toolkit()

    async with toolkit.serve_mcp("http") as server:
        with pytest.raises(errors.CannotListenError) as raised:
            await toolkit.serve_mcp("http", port=server.port)

    assert isinstance(raised.value, OSError)
    assert raised.value.errno is not None


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"path": "mcp"}, errors.InvalidServerOptionError),
        ({"token": "two words"}, errors.InvalidServerOptionError),
        ({"session_timeout": 0}, errors.InvalidServerOptionError),
        ({"host": "no.such.host.invalid"}, errors.CannotListenError),
    ],
)
async def test_wrong_options_are_refused(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        await Toolkit().serve_mcp("http", **{"token": "t", "allowed_hosts": ["x"], **options})


def test_a_wrong_transport_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown transport 'htp'"):
        Toolkit().serve_mcp("htp")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="allowed_hosts"):
        Toolkit().serve_mcp("http", allowed_hosts="example.com")
    with pytest.raises(ValueError, match="port"):
        Toolkit().serve_mcp("http", port=70000)
    with pytest.raises(TypeError, match="token"):
        Toolkit().serve_mcp("http", token=True)  # type: ignore[arg-type]


async def asking(context: ToolContext) -> str:
    """Ask the user."""
    return f"got {await context.ask('How many?', int)!r}"


async def test_a_question_is_asked_by_the_client() -> None:
    toolkit = Toolkit(tools=[asking])

    async with toolkit.serve_mcp("http") as server:
        peer = await connected(server, elicitation={})

        def answered(result: dict[str, Any]) -> list[dict[str, Any]]:
            found = []
            for message in peer.start("tools/call", {"name": "asking"}):
                found.append(message)
                if message.get("method") == "elicitation/create":
                    peer.status(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}))
            return found

        accepted = await asyncio.to_thread(answered, {"action": "accept", "content": {"answer": 3}})
        declined = await asyncio.to_thread(answered, {"action": "decline"})
        wrong = await asyncio.to_thread(answered, {"action": "accept", "content": {"answer": "many"}})

    params = accepted[0]["params"]
    assert params["message"] == "How many?"
    assert params["requestedSchema"]["properties"]["answer"]["type"] == "integer"
    assert accepted[-1]["result"]["content"][0]["text"] == "got 3"
    assert declined[-1]["result"]["isError"]
    assert "declined" in str(declined[-1]["result"])
    assert wrong[-1]["result"]["isError"]


async def test_the_asker_of_the_toolkit_answers_if_the_client_cannot() -> None:
    questions: list[Question] = []

    async def asker(question: Question) -> int:
        questions.append(question)
        return 7

    async with Toolkit(tools=[asking], asker=asker).serve_mcp("http") as server:
        peer = await connected(server)
        text = await asyncio.to_thread(peer.text, "asking")
    async with Toolkit(tools=[asking]).serve_mcp("http") as server:
        peer = await connected(server)
        result = await asyncio.to_thread(peer.call, "asking")

    assert text == "got 7"
    assert questions[0].caller == "mcp:peer"
    assert result["isError"]
    assert "asker" in str(result)


async def test_a_question_that_no_form_can_show_goes_to_the_asker_of_the_toolkit() -> None:
    toolkit = Toolkit(asker=lambda question: [Point(1, 2).__dict__])

    @toolkit.tool
    async def draw(context: ToolContext) -> str:
        return str(await context.ask("Where?", list[Point]))

    async with toolkit.serve_mcp("http") as server:
        peer = await connected(server, elicitation={})
        text = await asyncio.to_thread(peer.text, "draw")

    assert text == "[Point(x=1, y=2)]"


async def test_a_sub_agent_asks_the_user_of_the_client() -> None:
    toolkit = Toolkit(tools=[asking])

    async def loop(inputs: Any, session: Any, emit: Any) -> str:
        inner = await session.call("asking")
        return f"{inner.text}, {await emit.context.ask('How many?', int)}"

    toolkit.register_agent(finder(tools=["asking"]), run=loop)

    async with toolkit.serve_mcp("http") as server:
        peer = await connected(server, elicitation={})

        def answered() -> str:
            for message in peer.start("tools/call", {"name": "finder", "arguments": {"task": "birds"}}):
                if message.get("method") == "elicitation/create":
                    result = {"action": "accept", "content": {"answer": 3}}
                    peer.status(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}))
            return str(message["result"]["content"][0]["text"])

        text = await asyncio.to_thread(answered)

    assert text == "got 3, 3"


def modern(method: str, **params: Any) -> tuple[str, dict[str, str]]:
    """Make a request of 2026-07-28, which has no session, and its headers."""
    prefix, version = "io.modelcontextprotocol", "2026-07-28"
    params["_meta"] = {
        f"{prefix}/protocolVersion": version,
        f"{prefix}/clientInfo": {"name": "modern", "version": "1"},
        f"{prefix}/clientCapabilities": {"elicitation": {}},
    }
    headers = {"MCP_Protocol_Version": version, "Mcp_Method": method, "Mcp_Name": params.get("name", "")}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}), headers


async def test_a_client_without_a_session_is_asked_by_a_result() -> None:
    toolkit = Toolkit(tools=[asking])

    async with toolkit.serve_mcp("http") as server:
        peer = HttpPeer(server.url, server.token)

        def send(**params: Any) -> dict[str, Any]:
            body, headers = modern("tools/call", name="asking", arguments={}, **params)
            (answer,) = messages(peer.request(body, "POST", None, **headers))
            return dict(answer)

        asked = (await asyncio.to_thread(send))["result"]
        input = {"question": {"action": "accept", "content": {"answer": 5}}}
        again = {"requestState": asked["requestState"], "inputResponses": input}
        result = await asyncio.to_thread(lambda: send(**again))
        used = await asyncio.to_thread(lambda: send(**again))

    assert asked["resultType"] == "input_required"
    assert result["result"]["content"][0]["text"] == "got 5"
    assert used["error"]["code"] == -32602


async def test_a_call_that_waits_for_a_second_request_ends_with_the_server() -> None:
    toolkit = Toolkit()
    ended = asyncio.Event()

    @toolkit.tool
    async def patient(context: ToolContext) -> str:
        try:
            return str(await context.ask("Still there?", bool))
        finally:
            ended.set()

    async with toolkit.serve_mcp("http") as server:
        peer = HttpPeer(server.url, server.token)
        body, headers = modern("tools/call", name="patient", arguments={})
        status = await asyncio.to_thread(lambda: peer.status(body, **headers))

    assert status == 200
    assert ended.is_set()


async def test_a_server_can_be_awaited_and_cancelled() -> None:
    server = Toolkit(tools=[add]).serve_mcp("http")
    serving = asyncio.ensure_future(server)
    while True:
        try:
            peer = await connected(server)
            break
        except RuntimeError:
            await asyncio.sleep(0.01)
    assert await asyncio.to_thread(peer.text, "add", a=1, b=2) == "3"

    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving

    with pytest.raises(OSError):
        await asyncio.to_thread(peer.text, "add", a=1, b=2)
