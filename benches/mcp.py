"""MCP: our client against the SDK's on the same server, our server against the SDK's with the same client.

Every server is a process of its own on this machine, and the clients take turns.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

from benches.figures import Row, at_least, at_most
from benches.measure import Bench, Loop
from toolcrib import Toolkit
from toolcrib import mcp as ours

TOGETHER = 50
TOOLS = 1_000
ARGUMENTS = {"a": 2, "b": 3}


async def rows(bench: Bench) -> list[Row]:
    """Measure calls over HTTP and stdio, connecting, serving, and registering many tools.

    Args:
        bench: Runs the measurement.

    Returns:
        Five rows.
    """
    async with AsyncExitStack() as stack:
        sdk_url = await stack.enter_async_context(served("sdk"))
        our_url = await stack.enter_async_context(served("toolcrib"))
        ours_http = await stack.enter_async_context(ours.connect(sdk_url, name="http"))
        ours_stdio = await stack.enter_async_context(ours.connect(command("sdk", "stdio"), name="stdio"))
        ours_own = await stack.enter_async_context(ours.connect(our_url, name="own"))
        sdk_http = await stack.enter_async_context(sdk_session(sdk_url))
        sdk_stdio = await stack.enter_async_context(sdk_process())
        http = {"ours": await _ours(ours_http), "sdk": _sdk(sdk_http)}
        wall = await bench.interleave("an MCP call over HTTP, wall", http, wall=True)
        busy = await bench.interleave("an MCP call over HTTP, CPU of the client", http)
        stdio = await bench.interleave(
            "an MCP call over stdio", {"ours": await _ours(ours_stdio), "sdk": _sdk(sdk_stdio)}, wall=True
        )
        connecting = await bench.interleave(
            "connecting over HTTP", {"ours": _connect_ours(sdk_url), "sdk": _connect_sdk(sdk_url)}, wall=True
        )
        serving = await bench.interleave(
            f"{TOGETHER} calls at once to a server",
            {"ours": await _ours(ours_own, TOGETHER), "sdk": await _ours(ours_http, TOGETHER)},
            wall=True,
        )
    registering = await _register_many()
    return [
        Row(
            "call a tool over HTTP, time and CPU, against the MCP SDK's client",
            (
                at_most(wall.ratio("ours", "sdk"), 0.5, 0.5, "{}×"),
                at_most(busy.ratio("ours", "sdk"), 0.25, 0.25, "{}×"),
            ),
        ),
        Row(
            "call a tool over stdio, against the MCP SDK's client",
            (at_most(stdio.ratio("ours", "sdk"), 0.8, 0.8, "{}×"),),
        ),
        Row(
            "connect to an MCP server over HTTP, against the MCP SDK's client",
            (at_most(connecting.ratio("ours", "sdk"), 0.2, 0.2, "{}×"),),
        ),
        Row(
            "calls per second of our MCP server over HTTP, against the MCP SDK's",
            (at_least(serving.ratio("sdk", "ours"), 4, 4, "{}×"),),
        ),
        Row(
            f"register {TOOLS:_} tools of an MCP server, once they are listed".replace("_", " "),
            (at_most(registering, 50, 50, "{} ms"),),
        ),
    ]


def command(server: str, *arguments: str) -> list[str]:
    """Return the command of a server.

    Args:
        server: `"sdk"` or `"toolcrib"`.
        *arguments: Its arguments.
    """
    return [sys.executable, "-m", "benches.peers.mcp_servers", server, *arguments]


@asynccontextmanager
async def served(server: str) -> AsyncIterator[str]:
    """Run a server over HTTP, and give its URL when it accepts connections.

    Args:
        server: `"sdk"` or `"toolcrib"`.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *command(server, "http", str(port)), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + 60
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            except OSError:
                if time.monotonic() > until or process.returncode is not None:
                    raise
                await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def sdk_session(url: str) -> AsyncIterator[ClientSession]:
    """Connect with the SDK's client over HTTP.

    Args:
        url: The URL of the server.
    """
    async with streamablehttp_client(url) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        yield session


@asynccontextmanager
async def sdk_process() -> AsyncIterator[ClientSession]:
    """Connect with the SDK's client to a child process."""
    program, *arguments = command("sdk", "stdio")
    parameters = StdioServerParameters(command=program, args=arguments)
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


async def _ours(client: ours.McpClient, together: int = 1) -> Loop:
    """Call through a toolkit, as an agent does."""
    kit = Toolkit()
    await kit.register_mcp_client(client, enable_funcs=["add"])
    call = kit.call

    async def run(times: int) -> None:
        for _ in range(times):
            if together == 1:
                response = await call("add", **ARGUMENTS)
                assert response.text == "5", response
            else:
                await asyncio.gather(*(call("add", **ARGUMENTS) for _ in range(together)))

    return run


def _sdk(session: ClientSession) -> Loop:
    async def run(times: int) -> None:
        for _ in range(times):
            await session.call_tool("add", ARGUMENTS)

    return run


def _connect_ours(url: str) -> Loop:
    async def run(times: int) -> None:
        for _ in range(times):
            async with ours.connect(url):
                pass

    return run


def _connect_sdk(url: str) -> Loop:
    async def run(times: int) -> None:
        for _ in range(times):
            async with sdk_session(url):
                pass

    return run


async def _register_many() -> float:
    """Measure the best of ten registrations, in milliseconds; the list of tools is fetched before."""
    async with ours.connect(command("toolcrib", "stdio", str(TOOLS)), name="many") as client:
        names = [tool.name for tool in await client.list_tools()]
        functions: list[Any] = [await client.get_callable_function(name) for name in names]
        best = float("inf")
        for _ in range(10):
            kit = Toolkit()
            began = time.perf_counter()
            for function in functions:
                kit.register_tool_function(function)
            best = min(best, time.perf_counter() - began)
        assert len(names) >= TOOLS
    return best * 1_000
