"""Memory after very many calls of every kind: as much as before."""

import asyncio
import gc
import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from support.middleware import break_out, passing
from support.middleware import waiting as waiting_layer
from support.processes import resident
from support.streams import block, read, toolkit
from toolcrib import Limits, ToolResponse

# pytest keeps the records of the log and of warnings, which would count as memory of the calls.
pytestmark = pytest.mark.filterwarnings("ignore:call of tool")

CALLS = int(os.environ.get("TOOLCRIB_LEAK_CALLS", "20000"))
MIB = 1024 * 1024


async def coroutine(number: int) -> str:
    return str(number)


async def waiting(number: int) -> str:
    await asyncio.sleep(0)
    return str(number)


def function(number: int) -> int:
    return number


def generator(number: int) -> Iterator[str]:
    yield "one"
    yield str(number)


async def async_generator(number: int) -> AsyncIterator[str]:
    yield "one"
    await asyncio.sleep(0)
    yield str(number)


def failing(number: int) -> str:
    raise ValueError(number)


async def postprocess(call: Any, response: ToolResponse) -> ToolResponse:
    return ToolResponse([{"type": "text", "text": "replaced"}])


KIT = toolkit(coroutine, waiting, function, generator, async_generator, failing)
KIT.register_tool_function(coroutine, func_name="postprocessed", postprocess_func=postprocess)
KIT.register_tool_function(waiting, func_name="hurried", timeout=60)
KIT.register_tool_function(function, func_name="thread", run_in="thread")
KIT.register_tool_function(generator, func_name="thread_generator", run_in="thread")
KIT.register_tool_function(waiting, func_name="background", async_execution=True)
KIT.create_tool_group("web", "The web.")


def stream(name: str) -> Callable[[int], Awaitable[Any]]:
    return lambda number: read(KIT.call_tool_function(block(name, number=number)))


LAYERED = toolkit(async_generator)
for middleware in (passing, break_out, waiting_layer):
    LAYERED.register_middleware(middleware)


async def leave_layers_early(number: int) -> None:
    async for _ in LAYERED.call_tool_function(block("async_generator", number=number)):
        break
    await asyncio.sleep(0)


async def leave_early(number: int) -> None:
    async for _ in KIT.call_tool_function(block("generator", number=number)):
        break


async def close_early(number: int) -> None:
    call = KIT.call_tool_function(block("async_generator", number=number))
    await anext(call)
    await call.aclose()


async def never_await(number: int) -> None:
    del number
    calls = [KIT.call_tool_function(block("coroutine", number=1)), KIT.call("coroutine", number=1)]
    calls.clear()


async def cancel(number: int) -> None:
    task = asyncio.ensure_future(KIT.call_tool_function(block("waiting", number=number)).__anext__())
    await asyncio.sleep(0)
    task.cancel()
    await task


async def in_background(number: int) -> None:
    answer = await KIT.call("background", number=number)
    assert answer.metadata is not None
    await KIT.wait_task(answer.metadata["task_id"])


async def cancel_in_background(number: int) -> None:
    answer = await KIT.call("background", number=number)
    await asyncio.sleep(0)
    assert answer.metadata is not None
    await KIT.cancel_task(answer.metadata["task_id"])


async def converse(number: int) -> None:
    session = KIT.session(caller="ann", deps=[number], limits=Limits(calls=2, retries=0))
    session.state["self"] = session
    session.update_tool_groups(["web"], active=True)
    for name in ("coroutine", "failing", "failing"):
        await session.call(name, number=number)
    await session.view(names=["coroutine"]).call("coroutine", number=number)


SCENARIOS: dict[str, tuple[Callable[[int], Awaitable[Any]], int]] = {
    "coroutine": (stream("coroutine"), CALLS),
    "waiting": (stream("waiting"), CALLS),
    "function": (stream("function"), CALLS),
    "generator": (stream("generator"), CALLS),
    "async generator": (stream("async_generator"), CALLS),
    "postprocessed": (stream("postprocessed"), CALLS),
    "with a timeout": (stream("hurried"), CALLS),
    "failing": (stream("failing"), CALLS),
    "unknown": (stream("nobody"), CALLS),
    "json text": (lambda n: read(KIT.call_tool_function({"name": "coroutine", "input": f'{{"number": {n}}}'})), CALLS),
    "wrong arguments": (lambda n: read(KIT.call_tool_function(block("coroutine", number="no number"))), CALLS),
    "thread": (stream("thread"), CALLS // 4),
    "thread generator": (stream("thread_generator"), CALLS // 4),
    "short call": (lambda n: KIT.call("coroutine", number=n), CALLS),
    "left early": (leave_early, CALLS),
    "layered": (lambda n: read(LAYERED.call_tool_function(block("async_generator", number=n))), CALLS // 2),
    "layered short call": (lambda n: LAYERED.call("async_generator", number=n), CALLS // 2),
    "layers left early": (leave_layers_early, CALLS // 2),
    "closed early": (close_early, CALLS),
    "never awaited": (never_await, CALLS),
    "cancelled": (cancel, CALLS // 4),
    "in the background": (in_background, CALLS // 4),
    "cancelled in the background": (cancel_in_background, CALLS // 4),
    "a session": (converse, CALLS // 4),
}


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
@pytest.mark.timeout(120 + CALLS // 500)
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_very_many_calls_leave_nothing_behind(scenario: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "toolcrib")
    call, count = SCENARIOS[scenario]

    def measure() -> tuple[int, int, int]:
        gc.collect()
        return resident(), len(gc.get_objects()), sys.getallocatedblocks()

    async def run(times: int) -> None:
        for number in range(times):
            await call(number % 7)

    await run(count // 10)
    measure()
    memory, objects, blocks = measure()
    await run(count)
    memory_after, objects_after, blocks_after = measure()

    assert memory_after - memory <= 4 * MIB
    assert abs(objects_after - objects) <= 200
    assert blocks_after - blocks <= 500
