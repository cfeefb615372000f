"""Reading a chunk: what the stream adds to a generator of a thousand, for a reader that counts them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from benches.figures import Row, at_most
from benches.measure import AsyncLoop, Bench
from benches.peers.agentscope import AgentScope
from benches.peers.toolcrib import AgentScopesAnswers, Toolcrib
from benches.tools import CHUNKS, block, tools


async def rows(bench: Bench) -> list[Row]:
    """Measure streams of async and sync generators against reading the generators bare.

    Args:
        bench: Runs the measurement.

    Returns:
        Three rows.
    """
    peer, own = AgentScope(), AgentScopesAnswers()
    made = tools(own.answer)
    here, there = await own.filled(made), await peer.filled(tools(peer.answer))
    length = {"n": CHUNKS}

    async def bare(times: int) -> None:
        for _ in range(times):
            chunks = 0
            async for _chunk in made.count(**length):
                chunks += 1
            assert chunks == CHUNKS

    def bare_sync(times: int) -> None:
        for _ in range(times):
            chunks = 0
            for _chunk in made.count_sync(**length):
                chunks += 1
            assert chunks == CHUNKS

    async def words(n: int) -> AsyncIterator[str]:
        """Yield a word several times."""
        for _ in range(n):
            yield "word "

    async def bare_words(times: int) -> None:
        for _ in range(times):
            whole = []
            async for word in words(**length):
                whole.append(word)
            assert len("".join(whole)) == 5 * CHUNKS

    native = Toolcrib().kit()
    native.register_tool_function(words)
    timings = await bench.interleave(
        f"stream of {CHUNKS} chunks",
        {
            "bare words": bare_words,
            "words": _reads_whole(native, "words"),
            "bare async for": bare,
            "async generator": _reads(here, "count"),
            "async generator, AgentScope": _reads(there, "count"),
            "bare for": bare_sync,
            "sync generator, inline": _reads(here, "count_sync"),
            "sync generator, AgentScope": _reads(there, "count_sync"),
        },
    )
    return [
        Row(
            "one chunk of an async generator, 1 000 chunks",
            (at_most(timings.ratio("async generator", "bare async for"), 1.25, 0.85, "{}× bare `async for`"),),
        ),
        Row(
            "one chunk of a sync generator, inline",
            (at_most(timings.ratio("sync generator, inline", "bare for"), 1.8, 1.6, "{}× bare `for`"),),
        ),
        Row(
            "one text of an async generator, with the whole result at the end",
            (at_most(timings.ratio("words", "bare words"), 8, 4, "{}× bare `async for` and `join`"),),
        ),
    ]


def _reads_whole(kit: Any, name: str) -> AsyncLoop:
    call, asked = kit.call_tool_function, block(name, {"n": CHUNKS})

    async def run(times: int) -> None:
        for _ in range(times):
            async for chunk in call(asked):
                last = chunk
            assert len(last.text) == 5 * CHUNKS

    return run


def _reads(kit: Any, name: str) -> AsyncLoop:
    call, asked = kit.call_tool_function, block(name, {"n": CHUNKS})

    async def run(times: int) -> None:
        for _ in range(times):
            chunks = 0
            async for _chunk in await call(asked):
                chunks += 1
            assert chunks == CHUNKS

    return run
