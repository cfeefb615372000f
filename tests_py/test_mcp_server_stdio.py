"""A toolkit as an MCP server on standard input and output, and the end of the process that serves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from support.mcp.peers import DEADLINE, Message, StdioPeer

SERVER = """
import asyncio, os, subprocess, sys
from toolcrib import Toolkit

toolkit = Toolkit()

@toolkit.tool
async def add(a: int, b: int) -> int:
    return a + b

@toolkit.tool
def noisy() -> str:
    print("printed")
    sys.stdout.flush()
    os.write(1, b"written\\n")
    subprocess.run([sys.executable, "-c", "print('child')"], check=True)
    return repr(sys.stdin.read())

print("before", file=sys.stderr)
toolkit.serve_mcp("stdio", name="noisy").run()
print("after")
"""


def test_a_client_on_standard_input_calls_tools() -> None:
    peer = StdioPeer(SERVER)

    info = peer.initialize()
    result = peer.call("add", a=1, b=2)
    rest, _ = peer.end()

    assert info["serverInfo"]["name"] == "noisy"
    assert result["structuredContent"] == {"result": 3}
    assert rest == b"after\n"
    assert peer.process.returncode == 0


def test_what_tools_print_is_not_part_of_the_protocol() -> None:
    peer = StdioPeer(SERVER)
    peer.initialize()

    result = peer.call("noisy")
    again = peer.call("add", a=2, b=2)
    rest, errors = peer.end()

    assert result["content"][0]["text"] == "''"
    assert again["structuredContent"] == {"result": 4}
    for word in (b"printed", b"written", b"child"):
        assert word in errors
    assert b"panicked" not in errors
    assert rest == b"after\n"


@pytest.mark.parametrize("line", [b"{", b"\xff", b"[1, 2]", b"[" * 100_000, b"x" * (17 << 20)])
def test_an_invalid_line_is_answered_and_survived(line: bytes) -> None:
    peer = StdioPeer(SERVER)
    peer.initialize()

    peer.write(line)
    reply = peer.read()
    result = peer.call("add", a=1, b=1)
    peer.end()

    assert reply["error"]["code"] in (-32700, -32600)
    assert reply["id"] is None
    assert result["isError"] is False


def test_an_interrupt_ends_the_server() -> None:
    peer = StdioPeer(SERVER)
    peer.initialize()

    peer.process.send_signal(signal.SIGINT)
    rest, errors = peer.end()

    assert rest == b"after\n"
    assert errors == b"before\n"
    assert peer.process.returncode == 0


WORKING = """
import asyncio, sys
from toolcrib import Toolkit

toolkit = Toolkit()

@toolkit.tool
async def work() -> str:
    print("working", file=sys.stderr, flush=True)
    try:
        await asyncio.sleep(3600)
    finally:
        print("tidied up", file=sys.stderr)
    return "done"

toolkit.serve_mcp("stdio").run()
print("after", file=sys.stderr)
"""


def test_a_termination_cancels_the_calls_and_ends_the_server() -> None:
    peer = StdioPeer(WORKING)
    peer.initialize()
    peer.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "work", "arguments": {}}})
    assert peer.process.stderr is not None
    assert peer.process.stderr.readline() == b"working\n"

    peer.process.send_signal(signal.SIGTERM)
    _, errors = peer.end()

    assert errors == b"tidied up\nafter\n"
    assert peer.process.returncode == 0


HEAVY = """
import asyncio
from toolcrib import Toolkit

toolkit = Toolkit()

@toolkit.tool
async def heavy(size: int, seconds: float = 0) -> str:
    await asyncio.sleep(seconds)
    return "x" * size

@toolkit.tool
def light(size: int) -> str:
    return "x" * size

toolkit.serve_mcp("stdio").run()
"""


def call(number: int, tool: str, **arguments: object) -> Message:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def flood(peer: StdioPeer, lines: Iterable[bytes]) -> None:
    """Write lines without reading any answer, until the server has stopped reading for a second."""
    assert peer.process.stdin is not None
    pipe = peer.process.stdin.fileno()
    os.set_blocking(pipe, False)
    until = time.monotonic() + 1
    for line in lines:
        while line and time.monotonic() < until:
            try:
                line = line[os.write(pipe, line) :]
                until = time.monotonic() + 1
            except BlockingIOError:
                time.sleep(0.01)


REQUESTS: dict[str, Callable[[int], Message]] = {
    "calls": lambda number: call(number, "heavy", size=200_000),
    "slow calls": lambda number: call(number, "heavy", size=200_000, seconds=0.5),
    "calls in threads": lambda number: call(number, "light", size=200_000),
    "pings": lambda number: {"jsonrpc": "2.0", "id": number, "method": "ping"},
    "nothing valid": lambda number: {"jsonrpc": "2.0", "id": number},
}


@pytest.mark.parametrize("requests", REQUESTS)
@pytest.mark.parametrize("end", ["SIGTERM", "SIGINT", "end of input"])
def test_a_server_whose_output_is_not_read_ends(end: str, requests: str) -> None:
    peer = StdioPeer(HEAVY)
    peer.initialize()
    before = memory(peer)

    flood(peer, (json.dumps(REQUESTS[requests](number)).encode() + b"\n" for number in range(1, 5000)))
    time.sleep(1)
    grown = memory(peer) - before
    began = time.monotonic()
    if end == "end of input":
        assert peer.process.stdin is not None
        peer.process.stdin.close()
    else:
        peer.process.send_signal(getattr(signal, end))
    status = peer.process.wait(30)

    assert time.monotonic() - began < 15
    assert status == 0
    assert grown < 64 << 20
    for stream in (peer.process.stdin, peer.process.stdout, peer.process.stderr):
        assert stream is not None
        stream.close()


def test_results_that_are_not_read_arrive_when_they_are() -> None:
    peer = StdioPeer(HEAVY)
    peer.initialize()

    for number in range(1, 501):
        peer.send(call(number, "heavy", size=200_000))
    answered = {peer.read()["id"] for _ in range(500)}
    again = peer.call("heavy", size=3)
    peer.end()

    assert answered == set(range(1, 501))
    assert again["content"][0]["text"] == "xxx"


def memory(peer: StdioPeer) -> int:
    """Return the memory of a server in bytes."""
    status = Path(f"/proc/{peer.process.pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def test_requests_of_a_pipe_are_answered_after_its_end() -> None:
    lines = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INTRODUCTION},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *(call(number, "heavy", size=number, seconds=0.3) for number in range(1, 200)),
        {**call(200, "progress"), "params": {"name": "progress", "arguments": {}, "_meta": {"progressToken": 1}}},
        {"jsonrpc": "2.0", "id": 201, "method": "tools/list"},
    ]
    source = HEAVY.replace("toolkit.serve_mcp", PROGRESS + "toolkit.serve_mcp")
    given = "".join(json.dumps(line) + "\n" for line in lines)

    ended = subprocess.run(
        [sys.executable, "-c", source], input=given, capture_output=True, text=True, timeout=DEADLINE
    )

    answers = {message["id"]: message for message in map(json.loads, ended.stdout.splitlines()) if "id" in message}
    assert answers.keys() == set(range(202))
    assert all("result" in answer for answer in answers.values())
    assert ended.returncode == 0
    assert ended.stdout.count("notifications/progress") == 3


PROGRESS = """
from toolcrib import ToolContext

@toolkit.tool
async def progress(context: ToolContext) -> str:
    for step in range(3):
        context.progress(step + 1, 3)
        await asyncio.sleep(0.1)
    return "done"

"""

INTRODUCTION = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "peer", "version": "1"}}


def test_a_call_that_its_client_has_given_up_is_cancelled_and_not_answered() -> None:
    peer = StdioPeer(WORKING)
    peer.initialize()
    peer.send(call(7, "work"))
    assert peer.process.stderr is not None
    assert peer.process.stderr.readline() == b"working\n"
    time.sleep(0.5)
    began = time.monotonic()

    rest, errors = peer.end()

    assert rest == b""
    assert errors == b"tidied up\nafter\n"
    # Not after the grace for calls that a pipe waits for.
    assert time.monotonic() - began < 4
    assert peer.process.returncode == 0


@pytest.mark.parametrize("pause", [0, 0.05, 0.14, 0.3])
def test_a_client_that_waits_for_answers_gives_up_open_calls_by_closing(pause: float) -> None:
    peer = StdioPeer(HEAVY)
    peer.initialize()
    peer.send(call(7, "heavy", size=1, seconds=0.6))
    time.sleep(pause)

    rest, _ = peer.end()

    assert rest == b""
    assert peer.process.returncode == 0


@pytest.mark.parametrize("pause", [0, 0.3, 1])
def test_requests_of_a_pipe_are_answered_whenever_it_ends(pause: float) -> None:
    peer = StdioPeer(HEAVY)
    lines = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INTRODUCTION},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        call(1, "heavy", size=1, seconds=3),
    ]
    peer.write(b"\n".join(json.dumps(line).encode() for line in lines))
    time.sleep(pause)

    rest, _ = peer.end()

    assert [json.loads(line)["id"] for line in rest.splitlines()] == [0, 1]
    assert peer.process.returncode == 0


ASKING = """
from toolcrib import ToolContext, Toolkit

toolkit = Toolkit()

@toolkit.tool
async def confirm(context: ToolContext, text: str) -> bool:
    return await context.ask("Sure?", bool)

toolkit.serve_mcp("stdio").run()
"""


def test_answers_are_read_while_there_is_no_room_for_another_request() -> None:
    peer = StdioPeer(ASKING)
    introduction = {**INTRODUCTION, "capabilities": {"elicitation": {}}}
    peer.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": introduction})
    peer.read()
    peer.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    began = time.monotonic()

    for number in range(1, 7):
        peer.send(call(number, "confirm", text="x" * 15_000_000))
    received = [peer.read() for _ in range(6)]
    questions = [message["id"] for message in received if message.get("method") == "elicitation/create"]
    (refused,) = (message for message in received if "error" in message)
    for question in questions:
        content = {"action": "accept", "content": {"answer": True}}
        peer.send({"jsonrpc": "2.0", "id": question, "result": content})
    results = {message["id"]: message["result"]["isError"] for message in (peer.read() for _ in questions)}
    took = time.monotonic() - began
    peer.end()

    assert refused["id"] == 6
    assert "busy" in refused["error"]["message"]
    assert results == dict.fromkeys(range(1, 6), False)
    assert took < 30


STUBBORN = """
import asyncio, sys, time
from toolcrib import Toolkit

toolkit = Toolkit()

@toolkit.tool
async def stubborn() -> str:
    print("working", file=sys.stderr, flush=True)
    end = time.monotonic() + 40
    while time.monotonic() < end:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            pass
    return "done"

toolkit.serve_mcp("stdio").run()
print("after", file=sys.stderr)
"""


@pytest.mark.parametrize("end", ["SIGTERM", "SIGINT", "end of input"])
def test_a_server_ends_without_a_tool_that_ignores_its_cancellation(end: str) -> None:
    peer = StdioPeer(STUBBORN)
    peer.initialize()
    peer.send(call(7, "stubborn"))
    assert peer.process.stderr is not None
    assert peer.process.stderr.readline() == b"working\n"
    began = time.monotonic()

    if end != "end of input":
        peer.process.send_signal(getattr(signal, end))
    _, errors = peer.end()

    assert time.monotonic() - began < 10
    assert b"'stubborn' ignores" in errors
    assert b"after\n" in errors
    assert b"Traceback" not in errors
    assert peer.process.returncode == 0


def test_a_cancelled_call_is_not_answered_after_a_termination() -> None:
    peer = StdioPeer(WORKING)
    peer.initialize()
    peer.send(call(7, "work"))
    assert peer.process.stderr is not None
    assert peer.process.stderr.readline() == b"working\n"

    peer.process.send_signal(signal.SIGTERM)
    rest, _ = peer.end()

    assert rest == b""


def test_a_second_request_with_the_id_of_an_open_one_is_refused() -> None:
    peer = StdioPeer(WORKING)
    peer.initialize()
    assert peer.process.stderr is not None

    peer.send(call(7, "work"))
    assert peer.process.stderr.readline() == b"working\n"
    peer.send(call(7, "work"))
    peer.send({"jsonrpc": "2.0", "id": 7, "method": "ping"})
    refused = [peer.read(), peer.read()]
    peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
    assert peer.process.stderr.readline() == b"tidied up\n"
    peer.send({"jsonrpc": "2.0", "id": "7", "method": "ping"})
    pong = peer.read()
    rest, errors = peer.end()

    assert [(answer["id"], answer["error"]["code"]) for answer in refused] == [(7, -32600)] * 2
    assert pong == {"jsonrpc": "2.0", "id": "7", "result": {}}
    assert rest == b""
    assert errors == b"after\n"


def run(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)


def test_a_process_may_end_while_it_serves() -> None:
    for end in ("raise SystemExit(0)", "os._exit(0)", "return"):
        ended = run(f"""
            import asyncio, os
            from toolcrib import Toolkit

            async def main():
                serving = asyncio.ensure_future(Toolkit().serve_mcp("http"))
                await asyncio.sleep(0.2)
                {end}

            asyncio.run(main())
        """)

        assert (ended.returncode, ended.stderr) == (0, ""), end


def test_a_loop_may_be_left_while_it_serves() -> None:
    ended = run("""
        import asyncio
        from toolcrib import Toolkit

        loop = asyncio.new_event_loop()
        server = Toolkit().serve_mcp("http")
        loop.run_until_complete(server.__aenter__())
        print(server.port > 0)
    """)

    assert (ended.returncode, ended.stdout) == (0, "True\n")


def test_a_forked_child_does_not_serve_and_does_not_hang() -> None:
    ended = run("""
        import asyncio, os, sys, warnings
        warnings.simplefilter("ignore")
        from toolcrib import Toolkit

        async def main():
            toolkit = Toolkit()
            async with toolkit.serve_mcp("http") as server:
                for _ in range(5):
                    child = os.fork()
                    if child == 0:
                        toolkit.create_tool_group("extra", "More.")
                        del server
                        os._exit(0)
                    assert os.waitpid(child, 0)[1] == 0
            async with toolkit.serve_mcp("http") as server:
                print(server.port > 0)

        asyncio.run(main())
    """)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n", "")
