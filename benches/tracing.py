"""A traced call: what a span costs on top of the one that OpenTelemetry's SDK makes in any case."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from benches.figures import Row, at_most
from benches.measure import Bench, Loop
from benches.peers.agentscope import AgentScope
from benches.peers.toolcrib import Toolcrib
from benches.tools import PAIR, tools
from toolcrib import Toolkit, tracing

# By its name: for mypy, `agentscope` is a folder of tests.
_config = import_module("agentscope")._config


async def rows(bench: Bench) -> list[Row]:
    """Measure a traced call beside AgentScope's and beside a span that is opened by hand.

    AgentScope only knows the provider of the whole process, which can be set once: this theme comes last.

    Args:
        bench: Runs the measurement.

    Returns:
        One row.
    """
    provider = TracerProvider()
    trace.set_tracer_provider(provider)
    peer, own = AgentScope(), Toolcrib()
    add = tools(own.answer).add
    kit = Toolkit(arguments="pass")
    kit.register_tool_function(add)
    there = await peer.filled([tools(peer.answer).add])
    _config.trace_enabled = True
    try:
        timings = await bench.interleave(
            "a traced call",
            {
                "by hand": _by_hand(provider, add),
                "toolcrib": own.loop(kit, "add", PAIR),
                "AgentScope": peer.loop(there, "add", PAIR),
            },
        )
    finally:
        _config.trace_enabled = False
        tracing.configure(enabled=False)
    return [
        Row(
            "a traced call, with a provider that exports nothing",
            (
                at_most(timings.ratio("toolcrib", "AgentScope"), 0.33, 0.33, "{} of AgentScope's"),
                at_most(timings.ratio("toolcrib", "by hand"), None, 1.2, "{} of a span opened by hand"),
            ),
        )
    ]


def _by_hand(provider: TracerProvider, add: Any) -> Loop:
    tracer = provider.get_tracer("benches")
    known = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.call.id": "1",
        "gen_ai.tool.description": "Add.",
        "gen_ai.tool.type": "function",
    }

    async def run(times: int) -> None:
        for _ in range(times):
            with tracer.start_as_current_span("execute_tool add", attributes=known):
                await add(**PAIR)

    return run
