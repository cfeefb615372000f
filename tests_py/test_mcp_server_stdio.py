"""A toolkit as an MCP server on standard input and output, and the end of the process that serves."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest

from support.mcp.peers import DEADLINE, StdioPeer

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
