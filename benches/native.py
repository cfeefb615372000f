"""Calling a native tool from Python, against a coroutine tool that waits as long: one at a time, and many at once."""

from __future__ import annotations

import asyncio

from benches.figures import Row, at_most
from benches.measure import Bench, Loop
from toolcrib import Toolkit, tools

CALLS = 1_000
NOW = {"seconds": 0}


async def rows(bench: Bench) -> list[Row]:
    """Measure `wait` for no time, which is nothing but the way to the runtime and back.

    Args:
        bench: Runs the measurement.

    Returns:
        Two rows.
    """
    kit = Toolkit()
    kit.register_tool_function(tools.wait)
    kit.register_tool_function(pause)

    one = await bench.interleave(
        "one native call",
        {"native": _one(kit, "wait"), "coroutine": _one(kit, "pause")},
        wall=True,
    )
    many = await bench.interleave(
        f"{CALLS} native calls at once",
        {"native": _many(kit, "wait"), "coroutine": _many(kit, "pause")},
        wall=True,
    )
    return [
        Row(
            "call a native tool, beyond a coroutine tool",
            (at_most((one["native"] - one["coroutine"]) / 1_000, 30, 30, "{} µs"),),
        ),
        Row(
            f"{CALLS:_} native calls at once, each".replace("_", " "),
            (at_most(many["native"] / CALLS / 1_000, 5, 5, "{} µs"),),
        ),
    ]


async def pause(seconds: float) -> str:
    """Wait as a coroutine does.

    Args:
        seconds: How long.
    """
    if seconds:
        await asyncio.sleep(seconds)
    return f"Waited {seconds} seconds."


def _one(kit: Toolkit, name: str) -> Loop:
    call = kit.call

    async def run(times: int) -> None:
        for _ in range(times):
            await call(name, **NOW)

    return run


def _many(kit: Toolkit, name: str) -> Loop:
    call = kit.call

    async def run(times: int) -> None:
        for _ in range(times):
            await asyncio.gather(*(call(name, **NOW) for _ in range(CALLS)))

    return run
