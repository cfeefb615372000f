"""Middlewares that the tests share."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from support.streams import toolkit
from toolcrib import Toolkit, ToolResponse, ToolStream
from toolcrib.middleware import Middleware, NextHandler


def layered(tool: Any, *middlewares: Any, **options: Any) -> Toolkit:
    """Make a toolkit of one tool with middlewares around it."""
    kit = toolkit(tool, **options)
    for middleware in middlewares:
        kit.register_middleware(middleware)
    return kit


async def passing(kwargs: dict[str, Any], next_handler: NextHandler) -> AsyncIterator[ToolResponse]:
    """Do as AgentScope's users do when they change nothing."""
    async for chunk in await next_handler(**kwargs):
        yield chunk


async def returning(kwargs: dict[str, Any], next_handler: NextHandler) -> ToolStream:
    """Hand the stream on."""
    return next_handler(**kwargs)


async def collecting(kwargs: dict[str, Any], next_handler: NextHandler) -> ToolResponse:
    """Answer with what came last."""
    chunks = [chunk async for chunk in next_handler(**kwargs)]
    return chunks[-1]


async def waiting(kwargs: dict[str, Any], next_handler: NextHandler) -> AsyncIterator[ToolResponse]:
    """Wait before and after each chunk, and in the clean-up."""
    try:
        await asyncio.sleep(0)
        async for chunk in next_handler(**kwargs):
            await asyncio.sleep(0)
            yield chunk
            await asyncio.sleep(0)
    finally:
        await asyncio.sleep(0)


def logging(log: list[str], name: str) -> Middleware:
    """Make a middleware that writes down what passes by it."""

    async def layer(kwargs: dict[str, Any], next_handler: NextHandler) -> AsyncIterator[ToolResponse]:
        log.append(f"{name} in")
        try:
            async for chunk in next_handler(**kwargs):
                log.append(f"{name}: {chunk.text}")
                yield chunk
        finally:
            log.append(f"{name} out")

    return layer


async def first_only(kwargs: dict[str, Any], next_handler: NextHandler) -> ToolResponse:
    """Answer with what came first, and leave the rest."""
    return await anext(next_handler(**kwargs))


async def break_out(kwargs: dict[str, Any], next_handler: NextHandler) -> AsyncIterator[ToolResponse]:
    """Pass on what came first, and leave the rest."""
    async for chunk in next_handler(**kwargs):
        yield chunk
        break
