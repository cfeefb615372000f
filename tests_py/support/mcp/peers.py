"""Clients of MCP servers in the standard library, which can also send what no client should."""

from __future__ import annotations

import asyncio
import http.client
import json
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from typing import Any

DEADLINE = 60.0
"""Seconds after which a test has failed."""

Message = dict[str, Any]


class HttpPeer:
    """A client over HTTP with the protocol of 2025-06-18. Its methods block."""

    def __init__(self, url: str, token: str | None = None, name: str = "peer", **capabilities: Any) -> None:
        self.url = urllib.parse.urlsplit(url)
        # A connection of its own for each request, which ends with the answer.
        self.headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "Connection": "close",
        }
        if token is not None:
            self.headers["Authorization"] = f"Bearer {token}"
        self.name, self.capabilities = name, capabilities
        self.number = 0

    def request(
        self, body: bytes | str | None, method: str = "POST", path: str | None = None, **headers: str | None
    ) -> http.client.HTTPResponse:
        """Send a request, with changed headers; None leaves one out."""
        changed = {key.replace("_", "-"): value for key, value in headers.items()}
        sent = {key: value for key, value in {**self.headers, **changed}.items() if value is not None}
        connection = http.client.HTTPConnection(self.url.hostname or "", self.url.port, timeout=DEADLINE)
        try:
            connection.request(method, path or self.url.path, body, sent)
            return connection.getresponse()
        except BaseException:
            connection.close()
            raise

    def status(self, body: bytes | str, **headers: str | None) -> int:
        """Send a request, and return the status of the answer."""
        with self.request(body, "POST", None, **headers) as response:
            response.read()
            return response.status

    def post(self, message: Message, **headers: str | None) -> http.client.HTTPResponse:
        """Send a message."""
        return self.request(json.dumps(message), "POST", None, **headers)

    def initialize(self) -> Message:
        """Begin a session, and return the result of the server."""
        client = {"name": self.name, "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": self.capabilities, "clientInfo": client}
        response = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        assert response.status == 200, response.read()
        self.headers["Mcp-Session-Id"] = response.headers["mcp-session-id"]
        (result,) = messages(response)
        self.notify("notifications/initialized")
        return dict(result["result"])

    def notify(self, method: str, params: Message | None = None) -> None:
        """Send a notification."""
        self.status(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}))

    def start(self, method: str, params: Message | None = None) -> Iterator[Message]:
        """Send a request, and return the messages of its answer as they come."""
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params or {}}
        return messages(self.post(message))

    def ask(self, method: str, params: Message | None = None) -> Message:
        """Send a request, and return the last message of its answer."""
        return list(self.start(method, params))[-1]

    def call(self, tool: str, **arguments: Any) -> Message:
        """Call a tool, and return its result."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert "result" in answer, answer
        return dict(answer["result"])

    def text(self, tool: str, **arguments: Any) -> str:
        """Call a tool, and return its text."""
        return "".join(block["text"] for block in self.call(tool, **arguments)["content"])

    def tools(self) -> dict[str, Message]:
        """List the tools by name."""
        return {tool["name"]: tool for tool in self.ask("tools/list")["result"]["tools"]}


def messages(response: http.client.HTTPResponse) -> Iterator[Message]:
    """Read the messages of an answer: one, or a stream of events."""
    with response:
        if response.headers["content-type"] == "application/json":
            yield json.loads(response.read())
            return
        for line in response:
            if line.startswith(b"data:") and line[5:].strip():
                yield json.loads(line[5:])


async def connected(server: Any, name: str = "peer", **capabilities: Any) -> HttpPeer:
    """Connect a client to a server of this event loop."""
    peer = HttpPeer(server.url, server.token, name, **capabilities)
    await asyncio.to_thread(peer.initialize)
    return peer


class StdioPeer:
    """A client of a server in a child process, on its standard input and output."""

    def __init__(self, code: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.number = 0

    def write(self, line: bytes) -> None:
        """Send bytes as a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, message: Message) -> None:
        """Send a message."""
        self.write(json.dumps(message).encode())

    def read(self) -> Message:
        """Read the next message: every line has to be one."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return dict(json.loads(line))

    def initialize(self) -> Message:
        """Introduce the client, and return the result of the server."""
        client = {"name": "peer", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        self.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        result = self.read()
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return dict(result["result"])

    def call(self, tool: str, **arguments: Any) -> Message:
        """Call a tool, and return its result."""
        self.number += 1
        params = {"name": tool, "arguments": arguments}
        self.send({"jsonrpc": "2.0", "id": self.number, "method": "tools/call", "params": params})
        answer = self.read()
        assert answer["id"] == self.number
        return dict(answer["result"])

    def end(self) -> tuple[bytes, bytes]:
        """Close the input, wait for the end, and return the rest of the output and the errors."""
        return self.process.communicate(timeout=DEADLINE)
