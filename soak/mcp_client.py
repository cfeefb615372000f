"""Servers that attack the memory and the event loop of a client: heavy answers, floods, and calls that are not read.

Each attack runs in a process of its own, whose memory is measured: `python -m soak.mcp_client NAME AMOUNT`.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from soak.attack import Outcome, attack

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "tests" / "data" / "mcp" / "scripted_server.py"

MIB = 1 << 20
MESSAGE = 16 * MIB
"""The size of the largest message, which the limits are beyond."""
MAX_GROWTH = 64 * MIB
MAX_STALL = 0.1
TIMEOUT = 60

ANSWERS: list[tuple[str, int, str]] = [
    ("[]", 5_000_000, "structured"),
    ("{}", 4_000_000, "structured"),
    ('"key_{n}":1', 900_000, "object"),
    ('{"type":"text","text":""}', 600_000, "content"),
    ("[[]]", 3_000_000, "content"),
    ('{"a":[0]}', 1_500_000, "meta"),
    ("{}", 4_000_000, "error"),
    ("[]", 4_000_000, "log"),
    ("{}", 4_000_000, "question"),
    ("0.25", 1_000_000, "structured"),
    ('"text"', 150_000, "structured"),
]
"""Values in an answer, their number, and their place; see the tool `heavy` of the scripted server."""

FLOODS = [
    '{"jsonrpc":"2.0","id":"p{n}","method":"ping"}',
    '{"jsonrpc":"2.0","id":"r{n}","method":"roots/list"}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}',
    '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
    "INFO this is not a message",
]


@attack(
    row="h3",
    promise="An answer of an MCP server within the size limit, with millions of values, takes at most 64 MiB beyond "
    "its size, and never stops the event loop for 100 ms.",
    unit="answers",
    release=500,
    smallest=len(ANSWERS),
)
def heavy_answers(amount: int) -> Outcome:
    """Call a tool whose answers have millions of values, over pipes and HTTP."""
    return _in_process("heavy_answers", amount)


@attack(
    row="h",
    promise="A flood of messages of an MCP server takes at most 64 MiB, and never stops the event loop for 100 ms.",
    unit="messages",
    release=50_000_000,
    smallest=20_000 * len(FLOODS),
)
def floods(amount: int) -> Outcome:
    """Call a tool that sends many messages before its answer."""
    return _in_process("floods", amount)


@attack(
    row="h",
    promise="Calls to an MCP server that does not read them end at their deadlines, and their memory is returned.",
    unit="calls of 5 MB",
    release=2_000,
    smallest=20,
)
def unread_calls(amount: int) -> Outcome:
    """Call a server that does not read its input, ten calls at a time."""
    return _in_process("unread_calls", amount)


def _in_process(name: str, amount: int) -> Outcome:
    command = [sys.executable, "-m", "soak.mcp_client", name, str(amount)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return Outcome(0, [f"the process ended with {done.returncode}: {done.stderr[-2000:]}"])
    return Outcome(**json.loads(done.stdout.splitlines()[-1]))


# --- the process ----------------------------------------------------------------------------------------------------


def _memory(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


class Watch:
    """The growth of memory and the longest stop of the event loop while something runs."""

    def __init__(self) -> None:
        self.growth = 0
        self.stall = 0.0

    async def __aenter__(self) -> Watch:
        self._before = _memory("VmRSS")
        # The highest memory begins anew.
        Path("/proc/self/clear_refs").write_text("5")
        self._beats = asyncio.create_task(self._beat())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0)
        self._beats.cancel()
        self.growth = max(0, _memory("VmHWM") - self._before)

    async def _beat(self) -> None:
        # The time of this thread: other processes of the machine do not count.
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.001)
            self.stall = max(self.stall, time.thread_time() - before)


@asynccontextmanager
async def _served(*arguments: str, http: bool = False, **options: Any) -> AsyncIterator[Any]:
    """Start a scripted server, and return a toolkit with its tools."""
    from toolcrib import Toolkit, mcp

    command = [sys.executable, str(SCRIPT), *arguments]
    server = None
    target: Any = command
    if http:
        server = await asyncio.create_subprocess_exec(*command, "--http", "0", stdout=asyncio.subprocess.PIPE)
        assert server.stdout is not None
        port = (await server.stdout.readline()).split()[-1].decode()
        target = f"http://127.0.0.1:{port}/mcp"
    try:
        async with mcp.connect(target, name="hostile", **options) as client:
            toolkit = Toolkit()
            await toolkit.register_mcp_client(client)
            yield toolkit
    finally:
        if server is not None:
            server.kill()
            await server.wait()


async def _heavy_answers(amount: int) -> Outcome:
    outcome = Outcome(0)
    growth, stall = 0, 0.0
    transports: list[tuple[tuple[str, ...], bool]] = [
        (("heavy",), False),
        (("heavy",), True),
        (("heavy", "--json"), True),
    ]
    for round_ in range(-(-amount // len(ANSWERS))):
        arguments, http = transports[round_ % len(transports)]
        async with _served(*arguments, http=http, call_timeout=TIMEOUT) as toolkit:
            # Memory of the first call is of the runtime.
            await toolkit.call("add", a=1)
            for unit, count, place in ANSWERS:
                async with Watch() as watch:
                    response = await toolkit.call("heavy", unit=unit, count=count, where=place)
                what = f"{count} of {unit} as {place} over {arguments} {http}"
                if response.code not in (None, "failed"):
                    outcome.broken.append(f"{what}: {response.code} {response.text[:200]}")
                if watch.growth > MESSAGE + MAX_GROWTH:
                    outcome.broken.append(f"{what}: +{watch.growth // MIB} MiB")
                if watch.stall > MAX_STALL:
                    outcome.broken.append(f"{what}: the event loop stopped for {watch.stall:.3f} s")
                growth, stall = max(growth, watch.growth), max(stall, watch.stall)
                outcome.attempts += 1
                del response
    outcome.note = f"at most +{growth // MIB} MiB with the message, and {stall * 1000:.0f} ms"
    return outcome


async def _floods(amount: int) -> Outcome:
    outcome = Outcome(0)
    growth, stall = 0, 0.0
    async with _served("heavy", call_timeout=TIMEOUT) as toolkit:
        await toolkit.call("add", a=1)
        while outcome.attempts < amount:
            for unit in FLOODS:
                async with Watch() as watch:
                    response = await toolkit.call("heavy", unit=unit, count=20_000, where="messages")
                if response.text != "done":
                    outcome.broken.append(f"{unit}: {response.text[:200]}")
                if watch.growth > MAX_GROWTH or watch.stall > MAX_STALL:
                    outcome.broken.append(f"{unit}: +{watch.growth // MIB} MiB, {watch.stall:.3f} s")
                growth, stall = max(growth, watch.growth), max(stall, watch.stall)
                outcome.attempts += 20_000
    outcome.note = f"at most +{growth // MIB} MiB and {stall * 1000:.0f} ms"
    return outcome


async def _unread_calls(amount: int) -> Outcome:
    outcome = Outcome(0)
    text = "x" * 5_000_000
    async with _served("list-and-no-read", call_timeout=1) as toolkit:
        await toolkit.call("echo", text="")
        before = _memory("VmRSS")
        while outcome.attempts < amount:
            responses = await asyncio.gather(*(toolkit.call("echo", text=text) for _ in range(10)))
            outcome.broken += [
                f"{response.code}: {response.text}" for response in responses if response.code != "timeout"
            ]
            outcome.attempts += len(responses)
            del responses
        for _ in range(100):
            left = _memory("VmRSS") - before
            if left < MAX_GROWTH:
                break
            await asyncio.sleep(0.1)
        else:
            outcome.broken.append(f"+{left // MIB} MiB after {outcome.attempts} calls")
    outcome.note = f"+{max(0, left) // MIB} MiB after them"
    return outcome


RUNS: dict[str, Callable[[int], Awaitable[Outcome]]] = {
    "heavy_answers": _heavy_answers,
    "floods": _floods,
    "unread_calls": _unread_calls,
}


async def _main() -> None:
    outcome = await RUNS[sys.argv[1]](int(sys.argv[2]))
    print(json.dumps(vars(outcome)))


if __name__ == "__main__":
    asyncio.run(_main())
