"""A middleware that passes everything on: what it adds to a stream of a hundred chunks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from benches.figures import Row, at_most
from benches.measure import AsyncLoop, Bench
from benches.peers.agentscope import AgentScope
from benches.peers.toolcrib import AgentScopesAnswers
from benches.tools import block, tools

CHUNKS = 100


async def rows(bench: Bench) -> list[Row]:
    """Measure a stream with and without one middleware against AgentScope's, with the same middleware.

    Args:
        bench: Runs the measurement.

    Returns:
        Two rows.
    """
    loops: dict[str, AsyncLoop] = {}
    for peer in (AgentScopesAnswers(), AgentScope()):
        for layers in (0, 1):
            kit = await peer.filled(tools(peer.answer))
            for _ in range(layers):
                kit.register_middleware(passing)
            loops[f"{peer.package}, {layers}"] = _reads(kit)
    timings = await bench.interleave(f"middleware, {CHUNKS} chunks", loops)
    own, theirs = (timings[f"{name}, 1"] - timings[f"{name}, 0"] for name in ("toolcrib", "agentscope"))
    return [
        Row(
            f"a stream of {CHUNKS} chunks through one middleware",
            (at_most(timings.ratio("toolcrib, 1", "agentscope, 1"), 1.0, 0.5, "{} of AgentScope's"),),
        ),
        Row(
            f"what one middleware adds to a stream of {CHUNKS} chunks",
            (at_most(own / theirs, 1.0, 0.5, "{} of AgentScope's"),),
        ),
    ]


async def passing(kwargs: dict[str, Any], next_handler: Any) -> AsyncIterator[Any]:
    """Change nothing."""
    async for chunk in await next_handler(**kwargs):
        yield chunk


def _reads(kit: Any) -> AsyncLoop:
    call, asked = kit.call_tool_function, block("count", {"n": CHUNKS})

    async def run(times: int) -> None:
        for _ in range(times):
            chunks = 0
            async for _chunk in await call(asked):
                chunks += 1
            assert chunks == CHUNKS

    return run
