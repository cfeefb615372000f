"""Clients over HTTP that leave without a word, hold what others need, or send what the protocol forbids."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypedDict

import pytest

from support.mcp.peers import DEADLINE, HttpPeer, Message, connected, messages
from support.mcp.processes import until
from toolcrib import Toolkit

SOON = 10.0
"""Seconds in which a new client is served, on a machine that does other things, too."""


class Place(TypedDict):
    name: str
    floor: int


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def spin(path: str) -> str:
    """Write the number of the process, and never end."""
    Path(path).write_text(str(os.getpid()), encoding="utf-8")
    while True:
        time.sleep(0.1)


def opened(server: Any) -> HttpPeer:
    """Connect a client. It blocks."""
    peer = HttpPeer(server.url, server.token)
    peer.initialize()
    return peer


def status_of(peer: HttpPeer, method: str) -> int:
    """Send a request without a body, and return the status of the answer."""
    with peer.request(None, method) as response:
        response.read()
        return response.status


def open_another(peer: HttpPeer) -> tuple[int, str | None]:
    """Open another session, and return the status and the header `Retry-After`."""
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    with peer.post(message, Mcp_Session_Id=None) as response:
        response.read()
        return response.status, response.headers["retry-after"]


@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        (int, None, None),
        (int, "n/a", "n/a"),
        (int, 2.5, "2.5"),
        (float, float("nan"), None),
        (float, float("inf"), None),
        (float, "1.5", "1.5"),
        (bool, 1, "1"),
        (str, None, None),
        (str, 5, "5"),
        (list[int], [1, "two"], None),
        (list[int], None, None),
        (list[float], [1.0, float("nan")], None),
        (dict[str, int], {"a": "b"}, None),
        (dict[str, int], None, None),
        (Place, {"name": "hall"}, None),
        (Place, {"name": "hall", "floor": "ground"}, None),
        (Place, "n/a", "n/a"),
        (Place, None, None),
    ],
)
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_value_that_does_not_fit_its_annotation_is_an_error_with_its_text(
    annotation: Any, value: Any, text: str | None, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    toolkit = Toolkit()

    async def later() -> Any:
        return value

    def at_once() -> Any:
        return value

    tool = later if is_async else at_once
    tool.__annotations__["return"] = annotation
    toolkit.tool(name="loose")(tool)

    async with toolkit.serve_mcp("http") as server:
        peer = await connected(server)
        listed = await asyncio.to_thread(peer.tools)
        with caplog.at_level(logging.WARNING, "toolcrib"):
            result = await asyncio.to_thread(peer.call, "loose")
            await asyncio.to_thread(peer.call, "loose")

    assert "outputSchema" in listed["loose"]
    assert result["isError"] is True
    assert "structuredContent" not in result
    if text is not None:
        assert result["content"][0]["text"] == text
    assert "does not fit the output schema" in result["content"][-1]["text"]
    assert len([record for record in caplog.records if "does not fit the output schema" in record.message]) == 1


async def test_clients_that_never_end_their_sessions_do_not_shut_others_out() -> None:
    async with Toolkit(tools=[add]).serve_mcp("http", max_sessions=3) as server:
        first = await asyncio.to_thread(opened, server)
        for number in range(10):
            peer = await asyncio.to_thread(opened, server)
            assert await asyncio.to_thread(peer.text, "add", a=number, b=1) == str(number + 1)
        gone = await asyncio.to_thread(first.status, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}))
        peers = await asyncio.gather(*(asyncio.to_thread(open_another, first) for _ in range(10)))

    assert gone == 404
    assert [status for status, _ in peers].count(200) >= 3


@contextmanager
def stream_of(peer: HttpPeer) -> Iterator[None]:
    """Hold the stream of a session open, as clients do that wait for notifications."""
    with peer.request(None, "GET", Accept="text/event-stream") as response:
        assert response.status == 200
        yield


async def test_a_session_with_an_open_request_or_stream_is_kept() -> None:
    toolkit = Toolkit()
    started, goes_on = asyncio.Event(), asyncio.Event()

    @toolkit.tool
    async def wait() -> str:
        started.set()
        await goes_on.wait()
        return "waited"

    async with toolkit.serve_mcp("http", max_sessions=2) as server:
        calling, listening = await connected(server), await connected(server)
        call = asyncio.ensure_future(asyncio.to_thread(calling.text, "wait"))
        await asyncio.wait_for(started.wait(), DEADLINE)
        with ExitStack() as stack:
            await asyncio.to_thread(stack.enter_context, stream_of(listening))
            refused = await asyncio.to_thread(open_another, calling)
        goes_on.set()
        result = await call
        kept = await asyncio.to_thread(calling.tools)
        admitted = await asyncio.to_thread(open_another, calling)

    assert refused[0] == 503
    assert 0 < int(refused[1] or 0) <= 60
    assert result == "waited"
    assert "wait" in kept
    assert admitted[0] == 200


async def test_the_end_of_a_session_cancels_its_calls_and_is_final() -> None:
    toolkit = Toolkit()
    started, ended = asyncio.Event(), asyncio.Event()

    @toolkit.tool
    async def wait() -> str:
        started.set()
        try:
            await asyncio.sleep(DEADLINE)
        except asyncio.CancelledError:
            ended.set()
            raise
        return ""

    async with toolkit.serve_mcp("http") as server:
        peer, other = await connected(server), await connected(server)
        call = asyncio.ensure_future(asyncio.to_thread(lambda: list(peer.start("tools/call", {"name": "wait"}))))
        await asyncio.wait_for(started.wait(), DEADLINE)
        began = time.monotonic()
        status = await asyncio.to_thread(status_of, peer, "DELETE")
        again = await asyncio.to_thread(status_of, peer, "DELETE")
        lost = await asyncio.to_thread(peer.status, json.dumps({"jsonrpc": "2.0", "id": 9, "method": "ping"}))
        await asyncio.wait_for(ended.wait(), 3)
        kept = await asyncio.to_thread(other.ask, "ping")
        await asyncio.wait_for(asyncio.wait({call}), DEADLINE)

    # Not after the five seconds for which the protocol library waits for open calls.
    assert time.monotonic() - began < SOON
    assert (status, again, lost) == (200, 404, 404)
    assert "result" in kept


async def test_the_end_of_a_session_ends_tools_in_processes(tmp_path: Path) -> None:
    toolkit = Toolkit()
    marker = tmp_path / "pid"

    toolkit.tool(run_in="process")(spin)

    def is_running() -> bool:
        try:
            os.kill(int(marker.read_text(encoding="utf-8")), 0)
        except ProcessLookupError:
            return False
        return True

    async with toolkit.serve_mcp("http") as server:
        peer = await connected(server)
        params = {"name": "spin", "arguments": {"path": str(marker)}}
        call = asyncio.ensure_future(asyncio.to_thread(lambda: list(peer.start("tools/call", params))))
        await until(lambda: marker.exists() and marker.read_text(encoding="utf-8") != "")
        await asyncio.to_thread(status_of, peer, "DELETE")
        await until(lambda: not is_running())
        await asyncio.wait_for(asyncio.wait({call}), DEADLINE)


async def test_a_second_request_with_the_id_of_an_open_one_is_refused() -> None:
    toolkit = Toolkit()
    started, ended = asyncio.Event(), asyncio.Event()
    runs = 0

    @toolkit.tool
    async def wait() -> str:
        nonlocal runs
        runs += 1
        started.set()
        try:
            await asyncio.sleep(DEADLINE)
        finally:
            ended.set()
        return ""

    def call(peer: HttpPeer) -> list[Message]:
        message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "wait"}}
        return list(messages(peer.post(message)))

    async with toolkit.serve_mcp("http") as server:
        peer = await connected(server)
        first = asyncio.ensure_future(asyncio.to_thread(call, peer))
        await asyncio.wait_for(started.wait(), DEADLINE)
        refused = [await asyncio.to_thread(call, peer) for _ in range(2)]
        assert not ended.is_set()
        await asyncio.to_thread(peer.notify, "notifications/cancelled", {"requestId": 7})
        await asyncio.wait_for(ended.wait(), DEADLINE)
        await asyncio.wait_for(asyncio.wait({first}), DEADLINE)

    assert runs == 1
    for (answer,) in refused:
        assert answer["id"] == 7
        assert answer["error"]["code"] == -32600


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON ;charset=utf-8", 200),
        ("application/jsonp", 415),
        ("application/json-patch+json", 415),
        ("application/jsonx; charset=utf-8", 415),
        ("text/plain; application/json", 415),
        ("text/plain", 415),
        ("", 415),
        (None, 415),
    ],
)
async def test_only_json_is_accepted(kind: str | None, status: int) -> None:
    async with Toolkit(tools=[add]).serve_mcp("http") as server:
        peer = await connected(server)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})

        assert await asyncio.to_thread(lambda: peer.status(body, Content_Type=kind)) == status


def head(server: Any, length: int) -> bytes:
    """Write the head of a request with a body of a length."""
    return (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


@pytest.mark.parametrize("kind", ["silent", "in the headers", "in the body", "refused", "between two requests"])
async def test_idle_connections_do_not_shut_new_clients_out(kind: str) -> None:
    toolkit = Toolkit(tools=[add])
    started, goes_on = asyncio.Event(), asyncio.Event()

    @toolkit.tool
    async def wait() -> str:
        started.set()
        await goes_on.wait()
        return "waited"

    async with toolkit.serve_mcp("http", max_connections=20) as server:
        peer = await connected(server)
        call = asyncio.ensure_future(asyncio.to_thread(peer.text, "wait"))
        await asyncio.wait_for(started.wait(), DEADLINE)
        sent = {
            "silent": b"",
            "in the headers": b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
            "in the body": head(server, 1000) + b"{",
            "refused": b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 3,
            "between two requests": b"GET /other HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            + f"Authorization: Bearer {server.token}\r\n\r\n".encode(),
        }[kind]

        def hold(stack: ExitStack) -> None:
            for _ in range(50):
                held = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE))
                held.sendall(sent)

        with ExitStack() as stack:
            await asyncio.to_thread(hold, stack)
            began = time.monotonic()
            new = await asyncio.to_thread(opened, server)
            total = await asyncio.to_thread(new.text, "add", a=1, b=2)
            took = time.monotonic() - began
            goes_on.set()
            waited = await call

    assert total == "3"
    assert took < SOON
    assert waited == "waited"


async def test_bodies_that_never_end_do_not_take_more_than_their_room() -> None:
    async with Toolkit(tools=[add]).serve_mcp("http") as server:
        peer = await connected(server)

        def hold(stack: ExitStack) -> int:
            refused = 0
            for _ in range(40):
                held = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE))
                held.sendall(head(server, 4 << 20) + b" " * (3 << 20))
            for number in range(40):
                whole = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE))
                whole.sendall(head(server, 1 << 20) + b" " * (1 << 20))
                answer = whole.recv(100)
                refused += b" 503 " in answer
                assert b" 503 " in answer or b" 4" in answer, (number, answer)
            return refused

        with ExitStack() as stack:
            refused = await asyncio.to_thread(hold, stack)
            total = await asyncio.to_thread(peer.text, "add", a=1, b=2)
        # The room is free again.
        await until(lambda: peer.status(" " * (1 << 20)) != 503)

    assert total == "3"
    assert refused > 0


async def test_a_client_that_introduces_itself_again_and_again_is_notified_once() -> None:
    toolkit = Toolkit(tools=[add])
    async with toolkit.serve_mcp("http") as server:
        peer = await connected(server)
        for _ in range(20):
            await asyncio.to_thread(peer.notify, "notifications/initialized")

        def notified(count: list[Message]) -> None:
            with peer.request(None, "GET", Accept="text/event-stream") as response:
                for line in response:
                    if line.startswith(b"data:") and line[5:].strip():
                        count.append(json.loads(line[5:]))

        seen: list[Message] = []
        reading = asyncio.ensure_future(asyncio.to_thread(notified, seen))
        await asyncio.sleep(0.5)
        toolkit.tool(name="plus")(add)
        await until(lambda: bool(seen))
        await asyncio.sleep(0.5)
    await asyncio.wait_for(asyncio.wait({reading}), DEADLINE)

    assert [message["method"] for message in seen] == ["notifications/tools/list_changed"]
