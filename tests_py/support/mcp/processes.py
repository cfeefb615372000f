"""Servers in processes of their own, for the tests with MCP peers."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SDK_SERVER = HERE / "sdk_server.py"
OUR_SERVER = HERE / "our_server.py"
NPM = Path(os.environ.get("MCP_NPM", "")) / "node_modules" / ".bin"


def command(script: Path, *arguments: str) -> list[str]:
    """Return the command of a server in this environment."""
    return [sys.executable, str(script), *arguments]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def running(words: list[str], port: int, **options: Any) -> Iterator[None]:
    """Run a server until the end of the block, from the moment at which it accepts connections."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    try:
        until = time.monotonic() + 60
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, "the server ended"
            assert time.monotonic() < until, "the server does not accept connections"
            time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait()


@asynccontextmanager
async def http_server(script: Path, *arguments: str) -> AsyncIterator[str]:
    """Run a server over HTTP, and give its URL."""
    port = free_port()
    with running(command(script, "http", str(port), *arguments), port):
        yield f"http://127.0.0.1:{port}/mcp"


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(20) if hasattr(asyncio, "timeout") else _no_limit():
        while not condition():
            await asyncio.sleep(0.02)


@asynccontextmanager
async def _no_limit() -> AsyncIterator[None]:
    yield
