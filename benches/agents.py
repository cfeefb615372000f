"""Sub-agents: a call of one whose loop does nothing, and a thousand at once, three levels deep, that are cancelled.

The thousand run in a process of their own (`python -m benches.agents`).
"""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

from benches.figures import Row, at_most
from benches.measure import Bench, Loop
from toolcrib import AgentDefinition, AgentInput, AgentLimits, Toolkit

AGENTS, LEVELS, WARM, ROUNDS = 1_000, 3, 10, 3
KIB, MIB = 1 << 10, 1 << 20
TASK = {"task": AgentInput("string", "The task.")}


async def rows(bench: Bench) -> list[Row]:
    """Measure a call of an agent beside one of a coroutine tool, and what a thousand agents take and leave.

    Args:
        bench: Runs the measurement.

    Returns:
        Two rows.
    """
    toolkit = Toolkit()
    toolkit.register_tool_function(plain)
    toolkit.register_agent(AgentDefinition("agent", "Does nothing.", inputs=TASK), run=idle)
    call = toolkit.call

    def loop(name: str) -> Loop:
        async def run(times: int) -> None:
            for _ in range(times):
                await call(name, task="x")

        return run

    timings = await bench.interleave("call a sub-agent", {"coroutine": loop("plain"), "agent": loop("agent")})
    done = subprocess.run([sys.executable, "-m", "benches.agents"], stdout=subprocess.PIPE, check=True, text=True)
    left: dict[str, float] = json.loads(done.stdout)
    return [
        Row(
            "call a sub-agent whose loop does nothing",
            (at_most(timings.ratio("agent", "coroutine"), 3, 2, "{}× a coroutine tool"),),
        ),
        Row(
            "1 000 trees of sub-agents at once, three levels deep, cancelled",
            (
                at_most(left["kilobytes"], 6, 3, "{} KiB each"),
                at_most(int(left["turns"]), 1, 1, "{} turn of the event loop until all are cancelled"),
                at_most(int(left["tasks"]), 0, 0, "{} tasks"),
                at_most(int(left["generators"]), 0, 0, "{} open generators"),
                at_most(left["growth"], 1, 1, "{} MiB left behind"),
            ),
        ),
    ]


async def plain(task: str) -> str:
    """Do nothing.

    Args:
        task: The task.
    """
    return "done"


async def idle(inputs: Any, session: Any, emit: Any) -> str:
    """Do nothing."""
    return "done"


class Tree:
    """Agents of three levels, the last of which waits in an async generator."""

    def __init__(self) -> None:
        self.open = 0
        self.toolkit = Toolkit()
        self.toolkit.register_tool_function(self.wait)
        names = [f"agent_{level}" for level in range(LEVELS)]
        for name, below in zip(names, [*names[1:], "wait"], strict=True):
            definition = AgentDefinition(
                name, "Calls the next.", inputs=TASK, tools=[below], limits=AgentLimits(time=None)
            )
            self.toolkit.register_agent(definition, run=partial(self.run, below))

    async def wait(self, task: str) -> AsyncIterator[str]:
        """Wait for ever.

        Args:
            task: The task.
        """
        self.open += 1
        try:
            yield "waiting"
            await asyncio.get_running_loop().create_future()
        finally:
            self.open -= 1

    async def run(self, below: str, inputs: Any, session: Any, emit: Any) -> Any:
        """Call the next level."""
        return await session.call(below, **inputs)

    async def start_and_cancel(self) -> tuple[int, int, int, int]:
        """Start a thousand, cancel them; the memory, turns, tasks and generators that they take."""
        before = _resident()
        tasks = [asyncio.ensure_future(self.toolkit.call("agent_0", task="x")) for _ in range(AGENTS)]
        while self.open < AGENTS:
            await asyncio.sleep(0)
        memory = _resident() - before
        for task in tasks:
            task.cancel()
        turns = 0
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            turns += 1
        left = len(asyncio.all_tasks()) - 1
        return memory, turns, left, self.open


async def _main() -> None:
    tree = Tree()
    fresh, *_ = await tree.start_and_cancel()
    for _ in range(WARM):
        await tree.start_and_cancel()  # what the first rounds allocate is used by the others
    before = _resident()
    rounds = [await tree.start_and_cancel() for _ in range(ROUNDS)]
    _, turns, tasks, generators = (max(column) for column in zip(*rounds, strict=True))
    growth = max(0, _resident() - before)
    figures = {
        "kilobytes": fresh / AGENTS / LEVELS / KIB,
        "turns": turns,
        "tasks": tasks,
        "generators": generators,
        "growth": growth / MIB,
    }
    print(json.dumps(figures))


def _resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


if __name__ == "__main__":
    asyncio.run(_main())
