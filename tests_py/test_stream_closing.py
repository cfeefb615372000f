"""Streams that end before their tool does: closed, left, collected, never awaited, open when loop or program end."""

import asyncio
import contextlib
import gc
import warnings

import pytest

from support.loops import LoopFactory
from support.streams import Numbers, block, echo, python, read, texts, toolkit


@pytest.mark.parametrize("kind", ["numbers", "endless", "plain"])
async def test_aclose_finalises_the_generator_at_once(kind: str, loop_factory: LoopFactory) -> None:
    tool = Numbers()
    stream = toolkit(getattr(tool, kind)).call_tool_function(block(kind))
    await anext(stream)

    await stream.aclose()

    assert tool.log[-1] == "finalised"
    assert await read(stream) == []
    await stream.aclose()


async def test_aclose_of_a_stream_that_has_not_begun_runs_nothing() -> None:
    tool = Numbers()
    stream = toolkit(tool.numbers).call_tool_function(block("numbers"))

    await stream.aclose()

    assert await read(stream) == []
    assert tool.log == []


async def test_aclosing_finalises_on_an_early_exit() -> None:
    tool = Numbers()

    async with contextlib.aclosing(toolkit(tool.numbers).call_tool_function(block("numbers"))) as stream:
        async for _ in stream:
            break

    assert tool.log == ["began", "finalised"]


@pytest.mark.parametrize("kind", ["numbers", "endless", "plain"])
async def test_a_stream_that_is_left_early_is_finalised(kind: str, loop_factory: LoopFactory) -> None:
    tool = Numbers()

    async for _ in toolkit(getattr(tool, kind)).call_tool_function(block(kind)):
        break
    gc.collect()
    await asyncio.sleep(0.01)

    assert tool.log[-1] == "finalised"


def test_the_end_of_the_loop_finalises_what_is_open() -> None:
    tool = Numbers()
    kept = []

    async def main() -> None:
        stream = toolkit(tool.numbers).call_tool_function(block("numbers"))
        await anext(stream)
        kept.append(stream)

    asyncio.run(main())

    assert tool.log == ["began", "finalised"]


async def test_closing_the_coroutine_around_it_reaches_the_tool() -> None:
    log = []

    async def wait() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            log.append("finalised")

    reading = texts(toolkit(wait).call_tool_function(block("wait")))
    reading.send(None)

    reading.close()

    assert log == ["finalised"]


async def test_a_stream_that_is_never_awaited_is_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        calls = [toolkit(echo).call_tool_function(block("echo", text="x"))]
        calls.clear()
        gc.collect()


def test_a_stream_that_is_open_at_exit_causes_no_error() -> None:
    program = """
        import asyncio
        from toolcrib import Toolkit

        kit = Toolkit()

        @kit.tool
        def forever():
            while True:
                yield "again"

        stream = kit.call_tool_function({"name": "forever", "input": {}})

        async def main():
            print((await anext(stream)).text)

        asyncio.run(main())
    """

    result = python(program, seconds=30)

    assert (result.returncode, result.stdout, result.stderr) == (0, "again\n", "")
