"""Tools that fail in the background, by each of the toolkit's modes."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from support.background import start, toolkit
from toolcrib import Toolkit, ToolResponse


async def coroutine() -> str:
    raise ValueError("no")


def function() -> str:
    raise ValueError("no")


async def async_generator() -> AsyncIterator[str]:
    yield "one"
    raise ValueError("no")


def generator() -> Iterator[str]:
    yield "one"
    raise ValueError("no")


async def cancelling_itself() -> str:
    raise asyncio.CancelledError


async def endless() -> None:
    await asyncio.Event().wait()


FUNCTIONS = [coroutine, function]
GENERATORS = [async_generator, generator]


@pytest.mark.parametrize("mode", ["respond", "compat"])
@pytest.mark.parametrize("tool", [*FUNCTIONS, *GENERATORS])
async def test_a_failure_is_the_result(tool: Any, mode: Any) -> None:
    kit = toolkit(tool, errors=mode)

    result = await kit.wait_task(await start(kit, tool.__name__))

    compat = "Error: no" if tool in FUNCTIONS else "Error during async execution: no"
    expected = compat if mode == "compat" else "ValueError: no"
    assert (result.text, result.code) == (expected, "failed")


@pytest.mark.parametrize("tool", [coroutine, async_generator])
async def test_a_failure_is_raised_to_the_caller_if_the_toolkit_raises(tool: Any) -> None:
    kit = toolkit(tool, errors="raise")
    waited, viewed = [await start(kit, tool.__name__) for _ in range(2)]

    with pytest.raises(ValueError, match="no"):
        await kit.wait_task(waited)
    with pytest.raises(ValueError, match="no"):
        await kit.view_task(viewed)

    assert not kit._async_results


async def test_a_failing_postprocess_function_is_the_result() -> None:
    def fail(call: Any, response: ToolResponse) -> None:
        raise ValueError("not nice")

    kit = Toolkit()
    kit.register_tool_function(lambda: "fine", func_name="tool", postprocess_func=fail, async_execution=True)

    result = await kit.wait_task(await start(kit, "tool"))

    assert (result.text, result.code) == ("ValueError: not nice", "failed")


async def test_a_tool_that_cancels_itself_is_reported_as_interrupted() -> None:
    kit = toolkit(cancelling_itself)

    result = await kit.wait_task(await start(kit, "cancelling_itself"))

    assert (result.code, result.is_interrupted) == ("interrupted", True)


async def test_a_tool_that_takes_too_long_is_ended_by_its_timeout() -> None:
    kit = Toolkit()
    kit.register_tool_function(endless, async_execution=True, timeout=0.01)

    result = await kit.wait_task(await start(kit, "endless"))

    assert result.code == "timeout"


def test_without_an_event_loop_an_exception_is_raised() -> None:
    kit = toolkit(coroutine)

    with pytest.raises(RuntimeError, match=r"tool `coroutine` runs in the background.*event loop"):
        kit.call("coroutine").send(None)

    assert not kit._async_tasks
