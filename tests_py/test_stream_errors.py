"""Handling of errors: answered, raised, or as AgentScope does it, by kind of tool and moment of the error."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from support.loops import LoopFactory
from support.streams import block, read, texts, toolkit


class PanicException(BaseException):
    """As another extension module written in Rust raises it."""


class Foreign(BaseException):
    """As a library raises it that wants no handler to catch it."""


class Cancelled(BaseException):
    """As trio cancels a task."""


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("cannot say")


def failing(error: BaseException, kind: str, chunks: int) -> Callable[[], Any]:
    """A tool of a kind that raises after some chunks."""

    def function() -> Any:
        raise error

    async def coroutine() -> Any:
        raise error

    async def late_coroutine() -> Any:
        await asyncio.sleep(0)
        raise error

    def generator() -> Iterator[str]:
        yield from map(str, range(chunks))
        raise error

    async def async_generator() -> AsyncIterator[str]:
        for number in range(chunks):
            yield str(number)
        await asyncio.sleep(0)
        raise error

    tools: list[Callable[[], Any]] = [function, coroutine, late_coroutine, generator, async_generator]
    return {tool.__name__: tool for tool in tools}[kind]


FUNCTIONS = ["function", "coroutine", "late_coroutine"]
GENERATORS = ["generator", "async_generator"]
BOTH_PLACES = pytest.mark.parametrize("run_in", ["inline", "thread"])


@BOTH_PLACES
@pytest.mark.parametrize(
    ("kind", "chunks"), [*((kind, 0) for kind in FUNCTIONS + GENERATORS), *((k, 2) for k in GENERATORS)]
)
async def test_an_error_is_answered_by_default(kind: str, chunks: int, run_in: str, loop_factory: LoopFactory) -> None:
    kit = toolkit(failing(ValueError("no"), kind, chunks), run_in=run_in, func_name="tool")

    responses = await read(kit.call_tool_function(block("tool")))
    last = await kit.call("tool")

    assert [response.text for response in responses] == [*map(str, range(chunks)), "ValueError: no"]
    assert [response.code for response in responses] == [None] * chunks + ["failed"]
    assert (last.code, last.ok, last.is_last, last.is_interrupted) == ("failed", False, True, False)


@BOTH_PLACES
@pytest.mark.parametrize(
    ("kind", "chunks"), [*((kind, 0) for kind in FUNCTIONS + GENERATORS), *((k, 2) for k in GENERATORS)]
)
async def test_an_error_is_raised_where_that_is_asked_for(kind: str, chunks: int, run_in: str) -> None:
    error = ValueError("no")
    kit = toolkit(failing(error, kind, chunks), errors="raise", run_in=run_in, func_name="tool")
    got: list[str] = []

    async def consume() -> None:
        async for response in kit.call_tool_function(block("tool")):
            got.append(response.text)

    with pytest.raises(ValueError, match="no") as raised:
        await consume()
    with pytest.raises(ValueError, match="no"):
        await kit.call("tool")

    assert raised.value is error
    assert got == [*map(str, range(chunks))]


@BOTH_PLACES
@pytest.mark.parametrize("kind", FUNCTIONS)
async def test_compat_answers_the_errors_of_functions(kind: str, run_in: str) -> None:
    kit = toolkit(failing(KeyError("k"), kind, 0), errors="compat", run_in=run_in, func_name="tool")

    assert await texts(kit.call_tool_function(block("tool"))) == ["Error: 'k'"]


@BOTH_PLACES
@pytest.mark.parametrize("kind", GENERATORS)
@pytest.mark.parametrize("chunks", [0, 2])
async def test_compat_raises_the_errors_of_generators(kind: str, chunks: int, run_in: str) -> None:
    kit = toolkit(failing(KeyError("k"), kind, chunks), errors="compat", run_in=run_in, func_name="tool")

    with pytest.raises(KeyError):
        await read(kit.call_tool_function(block("tool")))


@pytest.mark.parametrize("errors", ["respond", "raise", "compat"])
async def test_a_stream_is_over_after_an_error(errors: str) -> None:
    stream = toolkit(
        failing(ValueError("no"), "async_generator", 1), errors=errors, func_name="tool"
    ).call_tool_function(block("tool"))
    await anext(stream)

    try:
        assert (await anext(stream)).code == "failed"
    except ValueError:
        assert errors != "respond"

    assert await read(stream) == []


@BOTH_PLACES
@pytest.mark.parametrize("kind", FUNCTIONS + GENERATORS)
async def test_an_error_that_cannot_speak_goes_by_its_type(kind: str, run_in: str) -> None:
    kit = toolkit(failing(Mute(), kind, 0), run_in=run_in, func_name="tool")

    assert await texts(kit.call_tool_function(block("tool"))) == ["Mute"]


@pytest.mark.parametrize("error", [ValueError(), Exception(""), AssertionError()])
async def test_an_error_without_words_goes_by_its_type(error: Exception) -> None:
    kit = toolkit(failing(error, "coroutine", 0), func_name="tool")

    assert await texts(kit.call_tool_function(block("tool"))) == [type(error).__name__]


@pytest.mark.parametrize("kind", FUNCTIONS + GENERATORS)
@pytest.mark.parametrize("errors", ["respond", "raise", "compat"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit(), Cancelled()])
async def test_what_asks_the_program_to_stop_passes_through(error: BaseException, errors: str, kind: str) -> None:
    kit = toolkit(failing(error, kind, 0), errors=errors, func_name="tool")

    with pytest.raises(type(error)) as raised:
        await read(kit.call_tool_function(block("tool")))

    assert raised.value is error


@pytest.mark.parametrize("kind", ["function", "generator"])
@pytest.mark.parametrize("error", [KeyboardInterrupt()])
async def test_what_asks_the_program_to_stop_passes_out_of_a_thread(error: BaseException, kind: str) -> None:
    kit = toolkit(failing(error, kind, 0), run_in="thread", func_name="tool")

    with pytest.raises(type(error)):
        await read(kit.call_tool_function(block("tool")))


@BOTH_PLACES
@pytest.mark.parametrize("chunks", [0, 2])
@pytest.mark.parametrize("kind", FUNCTIONS + GENERATORS)
@pytest.mark.parametrize(
    ("error", "text"),
    [(SystemExit(3), "SystemExit: 3"), (SystemExit(), "SystemExit"), (Foreign("out"), "Foreign: out")],
)
async def test_a_tool_cannot_end_the_agent(
    error: BaseException, text: str, kind: str, chunks: int, run_in: str
) -> None:
    kit = toolkit(failing(error, kind, chunks), run_in=run_in, func_name="tool")

    responses = await read(kit.call_tool_function(block("tool")))

    assert (responses[-1].text, responses[-1].code) == (text, "failed")


@pytest.mark.parametrize("kind", FUNCTIONS + GENERATORS)
@pytest.mark.parametrize("errors", ["raise", "compat"])
@pytest.mark.parametrize("error", [SystemExit(3), Foreign("out")])
async def test_a_tool_can_end_the_agent_where_errors_are_raised_or_compatible(
    error: BaseException, errors: str, kind: str
) -> None:
    kit = toolkit(failing(error, kind, 0), errors=errors, func_name="tool")

    with pytest.raises(type(error)) as raised:
        await read(kit.call_tool_function(block("tool")))

    assert raised.value is error


@BOTH_PLACES
@pytest.mark.parametrize("kind", FUNCTIONS + GENERATORS)
async def test_the_panic_of_another_extension_is_answered(kind: str, run_in: str) -> None:
    kit = toolkit(failing(PanicException("oh"), kind, 0), run_in=run_in, func_name="tool")

    [response] = await read(kit.call_tool_function(block("tool")))

    assert (response.text, response.code) == ("PanicException: oh", "failed")


@BOTH_PLACES
@pytest.mark.parametrize("kind", FUNCTIONS + GENERATORS)
@pytest.mark.parametrize("error", [StopIteration("x"), StopAsyncIteration("x")])
async def test_an_error_that_means_the_end_is_answered_like_any_other(error: Exception, kind: str, run_in: str) -> None:
    kit = toolkit(failing(error, kind, 0), run_in=run_in, func_name="tool")

    [response] = await read(kit.call_tool_function(block("tool")))

    assert response.code == "failed"


@BOTH_PLACES
@pytest.mark.parametrize("kind", FUNCTIONS + GENERATORS)
@pytest.mark.parametrize("error", [StopIteration("x"), StopAsyncIteration("x")])
async def test_an_error_that_means_the_end_is_not_taken_for_it(error: Exception, kind: str, run_in: str) -> None:
    kit = toolkit(failing(error, kind, 0), errors="raise", run_in=run_in, func_name="tool")

    with pytest.raises(RuntimeError):
        await read(kit.call_tool_function(block("tool")))
    with pytest.raises(RuntimeError):
        await kit.call("tool")
    with pytest.raises(RuntimeError):
        await asyncio.wait_for(asyncio.create_task(kit.call("tool")), 30)


@pytest.mark.parametrize("errors", ["respond", "compat"])
async def test_a_call_that_python_itself_refuses_is_answered(errors: str) -> None:
    class Picky:
        def __call__(self) -> str:
            return "unreachable"

    picky = Picky()
    kit = toolkit(picky, errors=errors, func_name="tool")
    Picky.__call__ = lambda self, needed: "unreachable"  # type: ignore[assignment,misc]

    [response] = await read(kit.call_tool_function(block("tool")))

    assert response.code == "failed"
    assert response.text.startswith("TypeError: " if errors == "respond" else "Error: ")


async def test_an_error_in_the_finaliser_is_the_error_of_the_call() -> None:
    async def generator() -> AsyncIterator[str]:
        try:
            yield "one"
        finally:
            raise ValueError("in finally")

    assert await texts(toolkit(generator).call_tool_function(block("generator"))) == ["one", "ValueError: in finally"]


async def test_one_failing_tool_does_not_touch_another() -> None:
    async def good(number: int) -> int:
        await asyncio.sleep(0)
        return number

    kit = toolkit(good, failing(ValueError("no"), "late_coroutine", 0))

    got = await asyncio.gather(
        *(kit.call(name, **({"number": n} if name == "good" else {})) for n in range(50) for name in kit.tools)
    )

    assert [response.text for response in got] == [x for n in range(50) for x in (str(n), "ValueError: no")]
