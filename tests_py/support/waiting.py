"""Waiting for a condition, with an end."""

import asyncio
import time
from collections.abc import Callable

UNBOUNDED_HANG = 30.0
"""Seconds after which a test is taken to hang."""


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; fail when it never does."""
    deadline = time.monotonic() + UNBOUNDED_HANG
    while not condition():
        assert time.monotonic() < deadline, "the condition never became true"
        await asyncio.sleep(0.005)


async def turns(count: int = 5, *, pause: float = 0) -> None:
    """Let everything run that can: other tasks, and worker threads if there is a pause between the turns."""
    for _ in range(count):
        await asyncio.sleep(pause)
