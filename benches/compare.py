"""The table of peers: each framework's own way to do the same work, beside the bare call."""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Generator, Mapping
from typing import Any, cast

from benches.figures import number
from benches.imports import startups
from benches.measure import AsyncLoop, Bench, Loop, Timings, at_once
from benches.memory import kilobytes
from benches.peers import Peer
from benches.tools import CHUNKS, PAIR, Tools, searches, tools

COLUMNS = (
    "framework",
    "register, × `inspect.signature`",
    "schemas of 100 tools, × `copy.deepcopy`",
    "async call, × bare",
    "sync call, × bare",
    "chunk, × bare `async for`",
    "1 000 at once, × bare `gather`",
    "import, × standard library",
    "memory, KB per tool",
)
LISTED, AT_ONCE, KEPT = 100, 1_000, 1_000
BARE, SYNC = "bare", "sync call"


async def lines(bench: Bench, peers: list[Peer]) -> list[tuple[str, ...]]:
    """Measure every peer at every piece of work.

    Args:
        bench: Runs the measurements.
        peers: Whom to measure.

    Returns:
        The lines of the table, in the order of the peers.
    """
    for peer in peers:
        await _prove(peer)
    made = {peer: tools(peer.answer) for peer in peers}
    kits = {peer: await peer.filled(made[peer][:5]) for peer in peers}
    streaming = {peer: kit for peer, kit in kits.items() if peer.streams}
    length = {"n": CHUNKS}
    columns = [
        await _registering(bench, peers),
        await _listing(bench, peers),
        await _calling(bench, "async call", kits, "add", PAIR),
        await _calling(bench, SYNC, kits, "add_sync", PAIR),
        await _measured(
            bench, "chunk", {p: p.stream(k, "count", length) for p, k in streaming.items()}, _bare_stream()
        ),
        await _measured(
            bench,
            "at once",
            {p: at_once(cast(AsyncLoop, p.loop(k, "wait", {"a": 1})), AT_ONCE) for p, k in kits.items()},
            _bare_gather(),
        ),
    ]
    started = startups({"", *(peer.statement for peer in peers)})
    return [
        (
            peer.title,
            *(_times(column, peer.title, peer.threads and column.title == SYNC) for column in columns),
            f"{started[peer.statement] / started['']:.1f}",
            f"{kilobytes(type(peer).__module__.rpartition('.')[2], KEPT):.1f}",
        )
        for peer in peers
    ]


def _times(column: Timings, title: str, thread: bool) -> str:
    if title not in column.best:
        return "–"
    text = number(column.ratio(title, BARE))
    return f"{text} (thread)" if thread else text


async def _prove(peer: Peer) -> None:
    """Make sure that a call through the peer reaches the tool: an error answered quickly is no figure."""
    seen: list[tuple[int, int]] = []

    async def probe(a: int, b: int):  # type: ignore[no-untyped-def]
        """Probe.

        Args:
            a (int): First number.
            b (int): Second number.
        """
        seen.append((a, b))
        return peer.answer

    # String annotations would be looked up in this module by peers that expect objects.
    probe.__annotations__ = {"a": int, "b": int}
    kit = await peer.filled([probe])
    await _awaited(peer.loop(kit, "probe", PAIR)(3))
    if seen != [(1, 2)] * 3:
        raise RuntimeError(f"{peer.title} did not run its tool: {seen}")


async def _awaited(pending: object) -> None:
    if inspect.isawaitable(pending):
        await pending


async def _measured(bench: Bench, title: str, loops: Mapping[Peer, Loop], bare: Loop) -> Timings:
    everything = {BARE: bare, **{peer.title: loop for peer, loop in loops.items()}}
    return await bench.interleave(title, everything, wall=title == SYNC)


async def _registering(bench: Bench, peers: list[Peer]) -> Timings:
    def signatures(times: int) -> Generator[None, None, None]:
        functions = searches(times, None)
        yield
        for function in functions:
            inspect.signature(function)
        yield

    return await _measured(bench, "register", {peer: _registers(peer) for peer in peers}, signatures)


def _registers(peer: Peer) -> Loop:
    def run(times: int) -> Generator[None, None, None]:
        functions, kit = searches(times, peer.answer), peer.kit()
        yield
        for function in functions:
            peer.register(kit, function)
        yield

    return run


async def _listing(bench: Bench, peers: list[Peer]) -> Timings:
    kits = {peer: await peer.filled(searches(LISTED, peer.answer)) for peer in peers}
    schemas = kits[peers[0]].get_json_schemas()

    def deepcopies(times: int) -> None:
        for _ in range(times):
            copy.deepcopy(schemas)

    return await _measured(bench, "schemas", {peer: _lists(peer, kit) for peer, kit in kits.items()}, deepcopies)


def _lists(peer: Peer, kit: Any) -> Loop:
    async def run(times: int) -> None:
        for _ in range(times):
            listed = peer.schemas(kit)
            if inspect.isawaitable(listed):
                await listed

    return run


async def _calling(bench: Bench, title: str, kits: Mapping[Peer, Any], name: str, arguments: dict[str, Any]) -> Timings:
    loops = {peer: peer.loop(kit, name, arguments) for peer, kit in kits.items()}
    return await _measured(bench, title, loops, _bare(tools("3"), name, arguments))


def _bare(made: Tools, name: str, arguments: dict[str, Any]) -> Loop:
    function = getattr(made, name)

    async def run(times: int) -> None:
        for _ in range(times):
            await function(**arguments)

    def run_sync(times: int) -> None:
        for _ in range(times):
            function(**arguments)

    return run if inspect.iscoroutinefunction(function) else run_sync


def _bare_stream() -> Loop:
    count = tools("3").count

    async def run(times: int) -> None:
        for _ in range(times):
            async for _chunk in count(n=CHUNKS):
                pass

    return run


def _bare_gather() -> Loop:
    wait = tools("3").wait

    async def run(times: int) -> None:
        for _ in range(times):
            await asyncio.gather(*[wait(a=1) for _ in range(AT_ONCE)])

    return run
