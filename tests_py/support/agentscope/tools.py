"""The tools that the agents of these tests use: one of each kind, written as AgentScope's users write them."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from typing import Any

from agentscope.message import TextBlock
from agentscope.tool import ToolResponse


def text(content: str, **flags: Any) -> ToolResponse:
    return ToolResponse(content=[TextBlock(type="text", text=content)], **flags)


def add(a: int, b: int) -> ToolResponse:
    """Add two numbers.

    Args:
        a (int): The first.
        b (int): The second.
    """
    return text(str(a + b))


async def greet(name: str, greeting: str = "Hello") -> ToolResponse:
    """Greet a person.

    Args:
        name (str): Whom to greet.
        greeting (str, optional): What to say.
    """
    await asyncio.sleep(0)
    return text(f"{greeting}, {name}!")


def count(limit: int) -> Generator[ToolResponse, None, None]:
    """Count.

    Args:
        limit (int): How far.
    """
    for number in range(1, limit + 1):
        yield text(" ".join(map(str, range(1, number + 1))), stream=True, is_last=number == limit)


async def spell(word: str) -> AsyncGenerator[ToolResponse, None]:
    """Spell a word.

    Args:
        word (str): The word.
    """
    for end in range(1, len(word) + 1):
        await asyncio.sleep(0)
        yield text("-".join(word[:end]), stream=True, is_last=end == len(word))


async def deferred(word: str) -> AsyncGenerator[ToolResponse, None]:
    """Return a generator that spells.

    Args:
        word (str): The word.
    """
    await asyncio.sleep(0)
    return spell(word)


def fail(reason: str) -> ToolResponse:
    """Fail.

    Args:
        reason (str): Why.
    """
    raise ValueError(reason)


async def fail_later(reason: str) -> ToolResponse:
    """Fail after a while.

    Args:
        reason (str): Why.
    """
    await asyncio.sleep(0)
    raise KeyError(reason)


class Counter:
    """A thing with a method."""

    def __init__(self) -> None:
        self.total = 0

    async def increase(self, step: int = 1) -> ToolResponse:
        """Increase the counter.

        Args:
            step (int): By how much.
        """
        self.total += step
        return text(f"total {self.total}")
