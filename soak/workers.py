"""Worker threads and nested calls: tools that wait for tools, lost threads, recursion, forks during first use."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

from soak.attack import Outcome, attack
from toolcrib import Toolkit

HANG = 60.0
"""Seconds after which a call or a process is taken to hang."""


async def _gather(calls: list[Any], outcome: Outcome, expected: list[str]) -> float:
    """Await calls, compare their texts, and return the longest time in which the event loop did not turn."""
    longest, last, is_over = 0.0, time.monotonic(), False

    async def watch() -> None:
        nonlocal longest, last
        while not is_over:
            await asyncio.sleep(0.005)
            now = time.monotonic()
            longest, last = max(longest, now - last), now

    watching = asyncio.ensure_future(watch())
    try:
        responses = await asyncio.wait_for(asyncio.gather(*calls), HANG)
    except asyncio.TimeoutError:
        outcome.broken.append("calls were not answered")
    else:
        texts = [response.text for response in responses]
        pairs = zip(texts, expected, strict=True)
        outcome.broken += [f"{text!r} instead of {want!r}" for text, want in pairs if text != want]
    is_over = True
    await watching
    return longest


@attack(
    row="c2",
    promise="Synchronous tools may call one another in any number, and no call waits for ever",
    unit="outer calls, nested up to four deep",
    release=50_000,
    smallest=600,
)
def nested_tools(amount: int) -> Outcome:
    """Call tools in batches of up to 2,000, each of which waits for a chain of other tools."""
    outcome, toolkit, longest = Outcome(0), Toolkit(), 0.0

    @toolkit.tool
    def down(depth: int, value: int) -> str:
        return toolkit.run("down", depth=depth - 1, value=value).text if depth else f"<{value}>"

    while outcome.attempts < amount:
        count, depth = min(2_000, amount - outcome.attempts), outcome.attempts // 2_000 % 4 + 1

        async def main(count: int = count, depth: int = depth) -> float:
            calls = [toolkit.call("down", depth=depth, value=value) for value in range(count)]
            return await _gather(calls, outcome, [f"<{value}>" for value in range(count)])

        longest = max(longest, asyncio.run(main()))
        outcome.attempts += count
    outcome.note = f"longest turn of the event loop {longest * 1000:.0f} ms"
    return outcome


@attack(
    row="c2",
    promise="Synchronous calls that have timed out do not keep others from running",
    unit="calls that hang, and as many that do not",
    release=20_000,
    smallest=400,
)
def timed_out_tools(amount: int) -> Outcome:
    """Let calls hang beyond their timeout in batches of 400, and call another tool while their threads still run."""
    outcome, toolkit = Outcome(0), Toolkit()
    release = threading.Event()

    @toolkit.tool(timeout=0.3)
    def hang() -> None:
        release.wait(HANG)

    @toolkit.tool
    def quick(value: int) -> str:
        return f"<{value}>"

    while outcome.attempts < amount:
        release.clear()

        async def main() -> None:
            hanging = await asyncio.wait_for(asyncio.gather(*(toolkit.call("hang") for _ in range(400))), HANG)
            outcome.broken += [f"hang: {response.code}" for response in hanging if response.code != "timeout"]
            calls = [toolkit.call("quick", value=value) for value in range(400)]
            await _gather(calls, outcome, [f"<{value}>" for value in range(400)])

        asyncio.run(main())
        release.set()
        outcome.attempts += 400
    return outcome


RECURSION = """
    import asyncio, logging, sys, threading
    from toolcrib import Toolkit
    logging.disable(logging.CRITICAL)
    kind, limit, where = KIND, LIMIT, WHERE
    sys.setrecursionlimit(limit)
    toolkit = Toolkit()
    view, session = toolkit.view(), toolkit.session()

    @toolkit.tool
    async def coroutine(): return (await toolkit.call("coroutine")).text
    @toolkit.tool
    async def viewed(): return (await view.call("viewed")).text
    @toolkit.tool
    async def session_call(): return (await session.call("session_call")).text
    @toolkit.tool
    async def generator():
        async for response in toolkit.call_tool_function({"name": "generator", "input": {}}): yield response
    @toolkit.tool(run_in="inline")
    def inline(): return toolkit.call("inline")
    @toolkit.tool(run_in="thread")
    def thread(): return toolkit.run("thread").text
    @toolkit.tool
    async def middlewares(): return "reached"
    async def layer(kwargs, next_handler):
        async for response in next_handler(**kwargs): yield response
    if kind == "middlewares":
        for _ in range(limit): toolkit.register_middleware(layer)

    def main():
        try:
            print("answer", asyncio.run(call()).text[:20])
        except RecursionError:
            print("answer RecursionError")
    async def call(): return await toolkit.call(kind)
    if where == "main":
        main()
    else:
        worker = threading.Thread(target=main); worker.start(); worker.join()
"""

KINDS = ["coroutine", "viewed", "session_call", "generator", "inline", "thread", "middlewares"]
LIMITS = [1_000, 4_000, 6_000, 8_000, 10_000, 100_000]


@attack(
    row="k2",
    promise="Endless recursion of tools is answered at every recursion limit, and never kills the process",
    unit="processes (7 kinds of tools, 6 limits, 2 threads)",
    release=840,
    smallest=14,
)
def endless_recursion(amount: int) -> Outcome:
    """Run each kind of recursion at each limit in a process of its own."""
    outcome = Outcome(0)
    cases = [(kind, limit, where) for limit in reversed(LIMITS) for where in ("main", "other") for kind in KINDS]
    for number in range(amount):
        kind, limit, where = cases[number % len(cases)]
        program = textwrap.dedent(RECURSION)
        for name, value in (("KIND", kind), ("LIMIT", limit), ("WHERE", where)):
            program = program.replace(name, repr(value), 1)
        status, output, errors = _python(program)
        if status != 0 or not output.startswith("answer"):
            outcome.broken.append(f"{kind} at {limit} in the {where} thread: status {status}, {errors[-300:]}")
        outcome.attempts += 1
    return outcome


FORKS = """
    import asyncio, json, os, signal, sys, threading, time
    from toolcrib import Toolkit

    use = int(sys.argv[1])
    toolkit = Toolkit()

    @toolkit.tool
    async def fail(): raise ValueError("no")
    @toolkit.tool
    def blocks(): return "blocked"
    @toolkit.tool(permission="confirm")
    async def asks(): return "asked"

    def first_uses():
        return [
            lambda: toolkit.run("fail").code,
            lambda: len(toolkit.schemas("openai_strict")),
            lambda: toolkit.run("blocks").text,
            lambda: toolkit.run("asks").code,
            lambda: __import__("toolcrib.tracing").tracing and "traced",
            lambda: __import__("toolcrib.context").context and "context",
        ]

    started = threading.Barrier(3)
    def other(action):
        started.wait()
        action()
    uses = first_uses()
    threads = [threading.Thread(target=other, args=[uses[(use + shift) % len(uses)]]) for shift in (0, 1)]
    for thread in threads: thread.start()
    started.wait()
    children = []
    for shift in range(4):
        time.sleep(0.002 * (use % 7) * shift)
        child = os.fork()
        if not child:
            signal.alarm(20)
            try:
                for action in first_uses(): action()
                os._exit(0)
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(1)
        children.append(child)
    statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    for thread in threads: thread.join()
    print(json.dumps(statuses))
    os._exit(0)
"""


@attack(
    row="k2",
    promise="A process that is forked while other threads use a part of the package for the first time can use it, too",
    unit="forked processes",
    release=4_000,
    smallest=48,
)
def forks_during_first_use(amount: int) -> Outcome:
    """Fork four times while two threads make their first uses, and make all of them in the children."""
    outcome = Outcome(0)
    while outcome.attempts < amount:
        status, output, errors = _python(textwrap.dedent(FORKS), str(outcome.attempts // 4))
        statuses = json.loads(output) if status == 0 else [status] * 4
        outcome.broken += [f"child: status {status}, {errors[-300:]}" for status in statuses if status != 0]
        outcome.attempts += 4
    return outcome


def _python(program: str, *arguments: str) -> tuple[int, str, str]:
    """Run a program in an interpreter of its own, which may die or hang."""
    command = [sys.executable, "-X", "faulthandler", "-W", "ignore", "-c", program, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * HANG, check=False)
    except subprocess.TimeoutExpired as expired:
        return -1, "", f"timeout: {expired.stderr!r}"
    return done.returncode, done.stdout, done.stderr
