"""Attacks on our MCP server: clients that leave without a word, do not read, hold connections, or end sessions."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from soak.attack import Outcome, attack
from toolcrib import Toolkit

HTTP_SERVER = """
import asyncio, sys
from toolcrib import Toolkit

toolkit = Toolkit()

@toolkit.tool
async def add(a: int, b: int) -> int:
    return a + b

async def main():
    sessions, connections = map(int, sys.argv[1:])
    async with toolkit.serve_mcp("http", token=False, max_sessions=sessions, max_connections=connections) as server:
        print(server.port, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""

STDIO_SERVER = """
from toolcrib import Toolkit

toolkit = Toolkit()

@toolkit.tool
def big(size: int) -> str:
    return "x" * size

toolkit.serve_mcp("stdio").run()
"""

INTRODUCTION = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}}
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
ROOM = 64 << 20
"""The bytes by which the memory of a server may grow."""
SOON = 1.0
"""The seconds within which a new client is served."""


def rpc(number: int, method: str, params: dict[str, Any]) -> bytes:
    """Write a request."""
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


def memory(process: subprocess.Popen[bytes], field: str = "VmRSS") -> int:
    """Return the memory of a process in bytes."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return int(status.partition(f"{field}:")[2].split()[0]) * 1024


@contextmanager
def http_server(sessions: int, connections: int) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run a server over HTTP in a process of its own; give the process and the port."""
    command = [sys.executable, "-c", HTTP_SERVER, str(sessions), str(connections)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


def request(port: int, method: str, body: bytes | None, session: str | None = None) -> tuple[int, str | None, bytes]:
    """Send a request over a connection of its own; return the status, the session and the body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        headers = HEADERS if session is None else {**HEADERS, "Mcp-Session-Id": session}
        connection.request(method, "/mcp", body, headers)
        response = connection.getresponse()
        return response.status, response.headers["mcp-session-id"], response.read()
    finally:
        connection.close()


def visit(port: int, number: int) -> str | None:
    """Open a session, call a tool, and leave without a word; return the reason if it did not work."""
    try:
        status, session, answer = request(port, "POST", rpc(0, "initialize", INTRODUCTION))
        if status != 200:
            return f"client {number}: status {status}, {answer[:80]!r}"
        params = {"name": "add", "arguments": {"a": number, "b": 1}}
        status, _, answer = request(port, "POST", rpc(1, "tools/call", params), session)
        if status != 200 or f'"result":{number + 1}'.encode() not in answer:
            return f"client {number}: the call gave {status}, {answer[:80]!r}"
    except (OSError, http.client.HTTPException) as error:
        return f"client {number}: {error!r}"
    return None


@attack(
    row="h2",
    promise="clients that leave without ending their sessions never shut others out",
    unit="clients",
    release=5000,
    smallest=300,
)
def leaving_clients(amount: int) -> Outcome:
    """Open more sessions than there may be, in a row and side by side."""
    with http_server(min(1000, amount // 3), 2000) as (process, port), ThreadPoolExecutor(16) as pool:
        in_a_row = [visit(port, number) for number in range(amount // 2)]
        before = memory(process)
        side_by_side = list(pool.map(visit, [port] * (amount - amount // 2), range(amount // 2, amount)))
        grown = memory(process) - before
    broken = [reason for reason in (*in_a_row, *side_by_side) if reason is not None]
    if grown > ROOM:
        broken.append(f"the memory grew by {grown >> 20} MiB")
    return Outcome(amount, broken)


@attack(
    row="h2",
    promise="connections that are held do not keep new clients from being served within a second",
    unit="held connections",
    release=10_000,
    smallest=400,
)
def held_connections(amount: int) -> Outcome:
    """Hold connections that are silent, or in the middle of their headers or of a body."""
    begun = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    body = begun + b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    held: list[socket.socket] = []
    broken: list[str] = []
    slowest = 0.0
    with http_server(1000, 100) as (_, port):
        for number in range(amount):
            connection = socket.create_connection(("127.0.0.1", port), timeout=30)
            held.append(connection)
            with suppress(OSError):
                connection.sendall((b"", begun, body)[number % 3])
            if len(held) > 300:
                held.pop(0).close()
            if number % 50 == 49:
                began = time.monotonic()
                reason = visit(port, number)
                took = time.monotonic() - began
                slowest = max(slowest, took)
                if reason is not None:
                    broken.append(reason)
                elif took > SOON:
                    broken.append(f"client {number} took {took:.1f} s")
        for connection in held:
            connection.close()
    return Outcome(amount, broken, f"slowest new client {slowest * 1000:.0f} ms")


@attack(
    row="h2",
    promise="bodies that never end take a bounded amount of memory",
    unit="unfinished bodies of 4 MiB",
    release=500,
    smallest=60,
)
def unfinished_bodies(amount: int) -> Outcome:
    """Send all but the last byte of the largest bodies, and small requests beside them."""
    size = 4 << 20
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    held: list[socket.socket] = []
    with http_server(1000, 2000) as (process, port):
        reason = visit(port, 0)
        before = memory(process)
        for _ in range(amount):
            connection = socket.create_connection(("127.0.0.1", port), timeout=30)
            connection.sendall(head.encode() + b" " * (size - 1))
            held.append(connection)
        reason = reason or visit(port, 1)
        grown = memory(process, "VmHWM") - before
        for connection in held:
            connection.close()
        reason = reason or visit(port, 2)
    broken = [] if reason is None else [reason]
    # The bodies themselves may take the room, and the buffers of the connections are beside it.
    if grown > 2 * ROOM:
        broken.append(f"the memory grew by {grown >> 20} MiB")
    return Outcome(amount, broken, f"at most +{grown >> 20} MiB")


@attack(
    row="h2",
    promise="a client on standard input that does not read takes bounded memory, and its server ends in time",
    unit="unread results of 200 kB",
    release=9000,
    smallest=900,
)
def unread_results(amount: int) -> Outcome:
    """Call without reading, and end the server by each of the three ways."""
    broken: list[str] = []
    most = 0
    for way in ("SIGTERM", "SIGINT", "end of input"):
        command = [sys.executable, "-c", STDIO_SERVER]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            try:
                grown = _flood(process, amount // 3)
                began = time.monotonic()
                if way == "end of input":
                    assert process.stdin is not None
                    process.stdin.close()
                else:
                    process.send_signal(getattr(signal, way))
                process.wait(30)
                took = time.monotonic() - began
            except subprocess.TimeoutExpired:
                broken.append(f"the server was alive 30 s after {way}")
                continue
            finally:
                process.kill()
        most = max(most, grown)
        if grown > ROOM:
            broken.append(f"the memory grew by {grown >> 20} MiB")
        if took > 10:
            broken.append(f"the server ended {took:.1f} s after {way}")
    return Outcome(amount, broken, f"at most +{most >> 20} MiB")


def _flood(process: subprocess.Popen[bytes], amount: int) -> int:
    """Call a tool without reading the results; return the growth of the memory."""
    given, taken = process.stdin, process.stdout
    assert given is not None
    assert taken is not None
    given.write(rpc(0, "initialize", INTRODUCTION) + b"\n")
    given.flush()
    taken.readline()
    before = memory(process)

    os.set_blocking(given.fileno(), False)
    until = time.monotonic() + 1
    for number in range(1, amount + 1):
        line = rpc(number, "tools/call", {"name": "big", "arguments": {"size": 200_000}}) + b"\n"
        # The server may stop reading.
        while line and time.monotonic() < until:
            try:
                line = line[os.write(given.fileno(), line) :]
                until = time.monotonic() + 1
            except BlockingIOError:
                time.sleep(0.01)
    time.sleep(1)
    return memory(process, "VmHWM") - before


@attack(
    row="h2",
    promise="the end of a session cancels its calls at once",
    unit="sessions with a running call",
    release=1000,
    smallest=30,
)
def ended_sessions(amount: int) -> Outcome:
    """Start a call in each session, and end the session in the middle of it."""
    toolkit = Toolkit()
    started: list[asyncio.Event] = []
    cancelled: list[asyncio.Event] = []

    @toolkit.tool
    async def wait(number: int) -> str:
        """Wait for the end."""
        started[number].set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            cancelled[number].set()
            raise
        return ""

    async def end(port: int, number: int) -> str | None:
        _, session, _ = await asyncio.to_thread(request, port, "POST", rpc(0, "initialize", INTRODUCTION))
        call = rpc(1, "tools/call", {"name": "wait", "arguments": {"number": number}})
        calling = asyncio.ensure_future(asyncio.to_thread(request, port, "POST", call, session))
        try:
            await asyncio.wait_for(started[number].wait(), 30)
            status, _, _ = await asyncio.to_thread(request, port, "DELETE", None, session)
            await asyncio.wait_for(cancelled[number].wait(), 4)
        except asyncio.TimeoutError:
            return f"the call of session {number} was not cancelled"
        finally:
            await asyncio.wait({calling}, timeout=30)
        return None if status == 200 else f"session {number} ended with status {status}"

    async def main() -> list[str | None]:
        started.extend(asyncio.Event() for _ in range(amount))
        cancelled.extend(asyncio.Event() for _ in range(amount))
        outcomes: list[str | None] = []
        async with toolkit.serve_mcp("http", token=False) as server:
            for first in range(0, amount, 4):
                batch = range(first, min(first + 4, amount))
                outcomes += await asyncio.gather(*(end(server.port, number) for number in batch))
        return outcomes

    return Outcome(amount, [reason for reason in asyncio.run(main()) if reason is not None])
