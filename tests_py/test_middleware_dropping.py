"""Layered calls that are never finished: dropped, caught in a cycle, left to a loop that shuts down."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from typing import Any

from support.middleware import layered, passing, waiting
from support.streams import Numbers, block, python, toolkit
from toolcrib.middleware import NextHandler

Chunks = AsyncIterator[Any]


async def test_a_dropped_stream_is_finalised_by_the_event_loop() -> None:
    numbers = Numbers()
    stream = layered(numbers.numbers, passing, waiting).call_tool_function(block("numbers"))
    await anext(stream)

    del stream
    for _ in range(20):
        await asyncio.sleep(0)

    assert numbers.log == ["began", "finalised"]


async def test_a_cycle_through_a_middleware_is_collected() -> None:
    kit = toolkit(Numbers().numbers)

    async def holding(kwargs: dict[str, Any], next_handler: NextHandler) -> Chunks:
        streams = [next_handler(**kwargs), next_handler, kit]
        yield "0"
        streams.append(streams)

    kit.register_middleware(holding)
    stream = kit.call_tool_function(block("numbers"))
    await anext(stream)
    gone = weakref.ref(kit)

    del stream, holding
    kit = toolkit()
    for _ in range(5):
        await asyncio.sleep(0)
        gc.collect()

    assert gone() is None


def test_a_loop_that_shuts_down_finalises_every_layer() -> None:
    ended = python(
        """
        import asyncio
        from toolcrib import Toolkit

        async def tool():
            try:
                yield "0"
                await asyncio.sleep(60)
            finally:
                print("tool out")

        async def layer(kwargs, next_handler):
            try:
                async for chunk in await next_handler(**kwargs):
                    yield chunk
            finally:
                print("layer out")

        toolkit = Toolkit()
        toolkit.register_tool_function(tool)
        toolkit.register_middleware(layer)

        async def main():
            global stream
            stream = toolkit.call_tool_function({"name": "tool"})
            await anext(stream)

        asyncio.run(main())
        print("over")
        """
    )

    assert sorted(ended.stdout.splitlines()[:2]) == ["layer out", "tool out"]
    assert "over" in ended.stdout
    assert ended.stderr == ""
