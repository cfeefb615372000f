"""Measures loops side by side: one process, shuffled turns, the fastest turn of each counts."""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Loop: TypeAlias = Callable[[int], Awaitable[None] | Generator[None, None, None] | None]
"""Does its work the given number of times, as a plain function or as a coroutine function.

A generator function does the work between its two `yield`s: what it prepares and what it lets go of is off the clock.
"""

AsyncLoop: TypeAlias = Callable[[int], Coroutine[Any, Any, None]]
"""A loop that is a coroutine function."""

FEWEST_ROUNDS = 25
# Longer than a neighbour's burst: quick work would otherwise be over before the machine is quiet once.
LEAST_SECONDS = 4.0
TURN_NS = 1_000_000


@dataclass(frozen=True, slots=True)
class Timings:
    """Holds what each piece of work costs at best, in nanoseconds, the loop around it subtracted."""

    title: str
    best: Mapping[str, float]

    def __getitem__(self, name: str) -> float:
        return self.best[name]

    def ratio(self, name: str, base: str) -> float:
        """Tell how many times the cost of `base` the work `name` costs.

        Args:
            name: The work to compare.
            base: The work to compare it with.

        Returns:
            The quotient of the two best times.
        """
        return self.best[name] / self.best[base]


@dataclass(slots=True)
class Bench:
    """Runs measurements and keeps what they gave.

    Attributes:
        rounds: How many turns each loop gets at least.
        kept: The timings so far, in order.
    """

    rounds: int = 60
    kept: list[Timings] = field(default_factory=list)

    async def interleave(
        self, title: str, loops: Mapping[str, Loop], *, wall: bool = False, collector: bool = False
    ) -> Timings:
        """Time every loop in shuffled turns, so that a noisy second hits all of them alike.

        Args:
            title: What the loops have in common.
            loops: What to measure, by name.
            wall: Whether the clock on the wall is read, as work that waits for other threads needs. Otherwise it is
                the processor time of this process: the same on a quiet machine, and blind to neighbours on a busy one.
            collector: Whether the garbage collector runs meanwhile. Off by default, as in `timeit`.

        Returns:
            The best time of each.
        """
        clock = time.perf_counter_ns if wall else time.process_time_ns
        everything = {"": _nothing, **loops}
        order = list(everything)
        best = dict.fromkeys(order, float("inf"))
        with _calm(collector):
            counts = {name: await _calibrate(loop, clock) for name, loop in everything.items()}
            until, rounds = time.monotonic() + LEAST_SECONDS, 0
            while rounds < max(self.rounds, FEWEST_ROUNDS) or time.monotonic() < until:
                rounds += 1
                random.shuffle(order)
                for name in order:
                    spent = await _turn(everything[name], counts[name], clock)
                    best[name] = min(best[name], spent / counts[name])
                gc.collect()
        timings = Timings(title, {name: best[name] - best[""] for name in loops})
        self.kept.append(timings)
        return timings


def at_once(one: AsyncLoop, count: int) -> AsyncLoop:
    """Make a loop that does the work of another many times concurrently.

    Args:
        one: The loop; each task runs it for one time.
        count: How many tasks.

    Returns:
        The loop.
    """

    async def run(times: int) -> None:
        for _ in range(times):
            await asyncio.gather(*[one(1) for _ in range(count)])

    return run


def _nothing(times: int) -> None:
    for _ in range(times):
        pass


async def _turn(loop: Loop, times: int, clock: Callable[[], int]) -> int:
    start = clock()
    pending = loop(times)
    if isinstance(pending, Generator):
        next(pending)
        start = clock()
        next(pending)
        spent = clock() - start
        pending.close()
        return spent
    if pending is not None:
        await pending
    return clock() - start


async def _calibrate(loop: Loop, clock: Callable[[], int]) -> int:
    """Find how many times the work fits into one turn; warms it up on the way."""
    times = 1
    while (spent := min([await _turn(loop, times, clock) for _ in range(3)])) < TURN_NS / 4:
        times *= 4
    return max(1, round(times * TURN_NS / spent))


@contextmanager
def _calm(collector: bool) -> Iterator[None]:
    """Keep the collector from walking what the imports left behind, and out of the way if asked."""
    gc.collect()
    gc.freeze()
    if not collector:
        gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
