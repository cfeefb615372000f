"""Errors of a middleware, and errors of the tool as middlewares see them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from support.middleware import layered, logging, passing
from support.streams import block, echo, read
from toolcrib import Toolkit, ToolStream
from toolcrib.errors import SilentMiddlewareError
from toolcrib.middleware import NextHandler

Chunks = AsyncIterator[Any]


def ask(kit: Toolkit) -> ToolStream:
    return kit.call_tool_function(block("echo", text="hello"))


@pytest.mark.parametrize(
    ("passed", "message"),
    [({"user": "ann"}, "'user'"), ({"tool_call": 5}, "mapping"), ({"tool_call": None}, "'tool_call'")],
)
async def test_what_the_tool_cannot_take_is_a_type_error(passed: dict[str, Any], message: str) -> None:
    async def wrong(kwargs: dict[str, Any], next_handler: NextHandler) -> ToolStream:
        merged = {**kwargs, **passed}
        return next_handler(**{name: value for name, value in merged.items() if value is not None})

    with pytest.raises(TypeError, match=message):
        await read(ask(layered(echo, wrong, errors="raise")))


async def test_refusals_go_through_middlewares() -> None:
    log: list[str] = []
    kit = layered(echo, logging(log, "1"))
    kit.create_tool_group("off", "Nothing.")
    kit.register_tool_function(echo, "off", func_name="sleeping")

    asked: list[dict[str, Any]] = [block("nobody"), block("sleeping", text="x"), block("echo"), {"input": {}}]
    codes = [(await read(kit.call_tool_function(call)))[0].code for call in asked]

    assert codes == ["unknown_tool", "inactive_group", "invalid_arguments", "bad_call"]
    assert log.count("1 in") == 4


async def failing(kwargs: dict[str, Any], next_handler: NextHandler) -> Chunks:
    yield "one"
    raise ValueError("the layer broke")


async def failing_at_once(kwargs: dict[str, Any], next_handler: NextHandler) -> ToolStream:
    raise ValueError("the layer broke")


def failing_when_called(kwargs: dict[str, Any], next_handler: NextHandler) -> ToolStream:
    raise ValueError("the layer broke")


@pytest.mark.parametrize("middleware", [failing, failing_at_once, failing_when_called])
async def test_an_exception_of_a_middleware_is_an_answer(middleware: Any) -> None:
    got = await read(ask(layered(echo, passing, middleware)))

    assert (got[-1].code, got[-1].text) == ("failed", "ValueError: the layer broke")


@pytest.mark.parametrize("errors", ["raise", "compat"])
@pytest.mark.parametrize("middleware", [failing, failing_at_once, failing_when_called])
async def test_an_exception_of_a_middleware_is_raised_if_wanted(middleware: Any, errors: str) -> None:
    with pytest.raises(ValueError, match="the layer broke"):
        await read(ask(layered(echo, passing, middleware, errors=errors)))


def test_a_middleware_must_be_callable() -> None:
    with pytest.raises(TypeError, match="a middleware must be callable, not int"):
        layered(echo, 5)


async def forgetful(kwargs: dict[str, Any], next_handler: NextHandler) -> Chunks:
    async for _ in next_handler(**kwargs):
        pass
    for nothing in list[str]():
        yield nothing


async def forgetful_coroutine(kwargs: dict[str, Any], next_handler: NextHandler) -> None:
    async for _ in next_handler(**kwargs):
        pass


def forgetful_function(kwargs: dict[str, Any], next_handler: NextHandler) -> None:
    next_handler(**kwargs)


class Forgetful:
    async def __call__(self, kwargs: dict[str, Any], next_handler: NextHandler) -> None:
        pass


SILENT = [forgetful, forgetful_coroutine, forgetful_function, Forgetful()]


@pytest.mark.parametrize("middleware", SILENT)
@pytest.mark.parametrize("layers", [[], [passing]])
async def test_a_middleware_without_a_response_is_an_error_that_names_it(
    middleware: Any, layers: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    name = getattr(middleware, "__qualname__", "Forgetful")
    kit = layered(echo, *layers, middleware)

    (response,) = await read(ask(kit))
    single = await kit.call("echo", text="hello")

    for answer in (response, single):
        assert (answer.code, answer.ok) == ("failed", False)
        assert f"middleware `{name}` gave no response" in answer.text
    assert any(name in str(record.exc_info) for record in caplog.records)


@pytest.mark.parametrize("middleware", SILENT)
async def test_a_middleware_without_a_response_raises_if_the_toolkit_raises(middleware: Any) -> None:
    kit = layered(echo, middleware, errors="raise")

    with pytest.raises(SilentMiddlewareError, match="gave no response"):
        await read(ask(kit))
    with pytest.raises(SilentMiddlewareError, match="gave no response"):
        await kit.value("echo", text="hello")


async def test_a_middleware_without_a_response_makes_an_empty_stream_in_agentscopes_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kit = layered(echo, forgetful, errors="compat")

    assert await read(ask(kit)) == []
    assert "SilentMiddlewareError" in caplog.text
