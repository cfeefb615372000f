"""Cancellation from outside: timeouts, task groups, anyio, Ctrl-C; one by the tool itself is only reported."""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from support.loops import LoopFactory
from support.streams import NOTE, TaskGroup, block, needs_counting, python, read, requests, texts, timeout, toolkit
from toolcrib import ToolResponse


async def forever() -> None:
    await asyncio.sleep(60)


async def chunk_and_forever() -> AsyncIterator[ToolResponse]:
    yield CHUNK
    await asyncio.sleep(60)


CHUNK = ToolResponse([{"type": "text", "text": "so far"}], {"key": "value"}, stream=True, is_last=False)
TOOLS = pytest.mark.parametrize("name", ["forever", "chunk_and_forever"])


@needs_counting
@TOOLS
async def test_asyncio_timeout_raises(name: str, loop_factory: LoopFactory) -> None:
    kit = toolkit(forever, chunk_and_forever)

    async def limited() -> None:
        async with timeout(0.01):
            await read(kit.call_tool_function(block(name)))

    with pytest.raises(asyncio.TimeoutError):
        await limited()

    assert requests() == 0


@TOOLS
async def test_wait_for_raises(name: str, loop_factory: LoopFactory) -> None:
    kit = toolkit(forever, chunk_and_forever)

    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(read(kit.call_tool_function(block(name))), 0.01)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(kit.call(name), 0.01)


@needs_counting
@TOOLS
async def test_a_task_group_cancels_the_siblings_of_a_failure(name: str, loop_factory: LoopFactory) -> None:
    kit = toolkit(forever, chunk_and_forever)
    siblings: list[asyncio.Task[Any]] = []

    async def fail() -> None:
        await asyncio.sleep(0.01)
        raise ValueError("no")

    async def group() -> None:
        async with TaskGroup() as tasks:
            siblings.extend(tasks.create_task(read(kit.call_tool_function(block(name)))) for _ in range(3))
            tasks.create_task(fail())

    with pytest.raises(BaseException) as raised:
        await group()

    assert "ExceptionGroup" in type(raised.value).__name__
    assert all(task.cancelled() for task in siblings)


@TOOLS
def test_the_scopes_of_anyio_cancel(name: str) -> None:
    kit = toolkit(forever, chunk_and_forever)

    async def fail_after() -> None:
        with anyio.fail_after(0.01):
            await read(kit.call_tool_function(block(name)))

    async def main() -> tuple[bool, list[ToolResponse]]:
        got: list[ToolResponse] = []
        with anyio.move_on_after(0.01) as scope:
            async for response in kit.call_tool_function(block(name)):
                got.append(response)
        with pytest.raises(TimeoutError):
            await fail_after()
        return scope.cancelled_caught, got

    caught, got = anyio.run(main)

    assert caught
    assert got[-1].is_interrupted


async def cancelled_call(name: str) -> tuple[list[ToolResponse], "asyncio.Task[None]"]:
    kit = toolkit(forever, chunk_and_forever)
    got: list[ToolResponse] = []

    async def consume() -> None:
        async for response in kit.call_tool_function(block(name)):
            got.append(response)

    task = asyncio.create_task(consume())
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])
    return got, task


async def test_an_interrupted_function_says_so(loop_factory: LoopFactory) -> None:
    [response], task = await cancelled_call("forever")

    assert response.content == [{"type": "text", "text": NOTE}]
    assert (response.is_interrupted, response.is_last, response.stream) == (True, True, True)
    assert (response.code, response.ok) == ("interrupted", False)
    assert task.cancelled()


async def test_an_interrupted_generator_repeats_its_last_chunk_with_a_note(loop_factory: LoopFactory) -> None:
    (first, last), task = await cancelled_call("chunk_and_forever")

    assert last.content == [{"type": "text", "text": "so far"}, {"type": "text", "text": NOTE}]
    assert last.metadata == {"key": "value"}
    assert (last.is_interrupted, last.is_last) == (True, True)
    assert first is CHUNK
    assert first.content == [{"type": "text", "text": "so far"}]
    assert (first.is_interrupted, first.is_last) == (False, False)
    assert task.cancelled()


async def test_a_chunk_that_cannot_be_repeated_does_not_stop_a_cancellation() -> None:
    async def odd() -> AsyncIterator[ToolResponse]:
        yield ToolResponse(None)  # type: ignore[arg-type]
        await asyncio.sleep(60)

    task = asyncio.create_task(read(toolkit(odd).call_tool_function(block("odd"))))
    await asyncio.sleep(0.01)

    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()


async def raise_cancelled() -> None:
    raise asyncio.CancelledError("mine")


async def raise_cancelled_later() -> None:
    await asyncio.sleep(0)
    raise asyncio.CancelledError("mine")


async def await_a_cancelled_future() -> None:
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.cancel)
    await future


async def await_a_cancelled_task() -> None:
    task = asyncio.create_task(forever())
    await asyncio.sleep(0)
    task.cancel()
    await task


def raise_cancelled_in_sync_code() -> None:
    raise asyncio.CancelledError("mine")


OWN = [
    raise_cancelled,
    raise_cancelled_later,
    await_a_cancelled_future,
    await_a_cancelled_task,
    raise_cancelled_in_sync_code,
]


@needs_counting
@pytest.mark.parametrize("tool", OWN)
@pytest.mark.parametrize("run_in", ["inline", "thread"])
async def test_a_cancellation_of_the_tools_own_is_only_reported(tool: Any, run_in: str) -> None:
    kit = toolkit(tool, func_name="tool", run_in=run_in)

    got = await texts(kit.call_tool_function(block("tool")))
    last = await kit.call("tool")
    await asyncio.sleep(0)

    assert got == [NOTE]
    assert last.code == "interrupted"
    assert requests() == 0


@needs_counting
async def test_a_call_in_a_task_that_was_cancelled_before_is_not_cancelled_again() -> None:
    async def tool() -> str:
        await asyncio.sleep(0)
        return "cleaned up"

    async def consume() -> list[str]:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            own = await texts(toolkit(raise_cancelled_later).call_tool_function(block("raise_cancelled_later")))
            return [*own, *await texts(toolkit(tool).call_tool_function(block("tool")))]
        return []

    task = asyncio.create_task(consume())
    await asyncio.sleep(0)

    task.cancel()

    assert await task == [NOTE, "cleaned up"]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no POSIX signals")
@pytest.mark.parametrize("body", ["await asyncio.sleep(30)", "yield 'x'; await asyncio.sleep(30)"])
def test_ctrl_c_stops_the_program(body: str) -> None:
    program = f"""
        import asyncio, os, signal, threading
        from toolcrib import Toolkit

        async def tool():
            try:
                {body}
            finally:
                print("finalised")

        async def main():
            kit = Toolkit()
            kit.register_tool_function(tool)
            async for response in kit.call_tool_function({{"name": "tool", "input": {{}}}}):
                print(response.code)
            print("the program ran on")

        # A shell that runs us in the background has Ctrl-C ignored, which children inherit.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            print("stopped")
    """

    result = python(program, seconds=25)

    assert result.returncode == 0, result.stderr
    assert "finalised" in result.stdout
    assert result.stdout.endswith("stopped\n")
    assert "ran on" not in result.stdout
