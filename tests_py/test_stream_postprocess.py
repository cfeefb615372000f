"""Postprocess functions: what they are given, what they may answer, and how their errors are handled."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from support.loops import LoopFactory
from support.streams import NOTE, block, read, text_response, texts, toolkit
from toolcrib import Toolkit, ToolResponse


def hello() -> str:
    return "hello"


def two() -> Iterator[str]:
    yield "one"
    yield "two"


async def two_async() -> AsyncIterator[str]:
    yield "one"
    await asyncio.sleep(0)
    yield "two"


def fail() -> str:
    raise ValueError("no")


def shout(call: dict[str, Any], response: ToolResponse) -> ToolResponse:
    return text_response(response.text.upper())


async def shout_later(call: dict[str, Any], response: ToolResponse) -> ToolResponse:
    await asyncio.sleep(0)
    return shout(call, response)


class Shouter:
    def __call__(self, call: dict[str, Any], response: ToolResponse) -> ToolResponse:
        return shout(call, response)


class AsyncShouter:
    async def __call__(self, call: dict[str, Any], response: ToolResponse) -> ToolResponse:
        return await shout_later(call, response)


SHOUTERS: dict[str, Callable[..., Any]] = {
    "function": shout,
    "coroutine": shout_later,
    "object": Shouter(),
    "async object": AsyncShouter(),
    "lambda": lambda call, response: text_response(response.text.upper()),
}


@pytest.mark.parametrize("run_in", ["inline", "thread"])
@pytest.mark.parametrize("shouter", SHOUTERS)
async def test_it_sees_every_chunk(shouter: str, run_in: str, loop_factory: LoopFactory) -> None:
    kit = toolkit(hello, two, two_async, fail, run_in=run_in, postprocess_func=SHOUTERS[shouter])

    got = {name: await texts(kit.call_tool_function(block(name))) for name in kit.tools}
    last = await kit.call("two")

    assert got == {
        "hello": ["HELLO"],
        "two": ["ONE", "TWO", "ONETWO"],
        "two_async": ["ONE", "TWO", "ONETWO"],
        "fail": ["VALUEERROR: NO"],
    }
    assert last.text == "ONETWO"


async def test_it_is_given_the_call_and_the_response() -> None:
    seen: list[Any] = []
    kit = toolkit(hello, postprocess_func=lambda *given: seen.append(given))
    call = block("hello")

    responses = await read(kit.call_tool_function(call))

    assert seen == [(call, responses[0])]
    assert seen[0][0] is call


async def test_a_short_call_is_shown_to_it_as_a_block() -> None:
    seen: list[Any] = []
    kit = Toolkit(run_in="inline")

    def greet(name: str) -> str:
        return name

    kit.register_tool_function(greet, postprocess_func=lambda call, _: seen.append(call))

    await kit.call("greet", name="Ada")

    assert (seen[0]["type"], seen[0]["name"], seen[0]["input"]) == ("tool_use", "greet", {"name": "Ada"})


@pytest.mark.parametrize("answer", [None, False, 0, "", [], {}])
async def test_a_false_answer_keeps_the_response(answer: Any) -> None:
    kit = toolkit(hello, two, postprocess_func=lambda *_: answer)

    assert await texts(kit.call_tool_function(block("hello"))) == ["hello"]
    assert await texts(kit.call_tool_function(block("two"))) == ["one", "two", "onetwo"]


@pytest.mark.parametrize(("answer", "expected"), [("words", "words"), ({"k": 1}, '{"k": 1}'), (7, "7")])
async def test_any_other_answer_becomes_a_response(answer: Any, expected: str) -> None:
    kit = toolkit(hello, postprocess_func=lambda *_: answer)

    [response] = await read(kit.call_tool_function(block("hello")))

    assert type(response) is ToolResponse
    assert response.text == expected


class Undecided:
    def __bool__(self) -> bool:
        raise ValueError("neither")


def raise_(*_: Any) -> Any:
    raise ValueError("postprocessing failed")


async def raise_later(*_: Any) -> Any:
    await asyncio.sleep(0)
    raise ValueError("postprocessing failed")


@pytest.mark.parametrize("function", [raise_, raise_later, lambda *_: Undecided(), lambda: None])
@pytest.mark.parametrize("name", ["hello", "two", "two_async", "fail"])
@pytest.mark.parametrize("run_in", ["inline", "thread"])
async def test_its_error_is_answered_and_ends_the_call(function: Any, name: str, run_in: str) -> None:
    kit = toolkit(hello, two, two_async, fail, run_in=run_in, postprocess_func=function)

    responses = await read(kit.call_tool_function(block(name)))

    assert [response.code for response in responses] == ["failed"]
    assert responses[0].text.startswith(f"{type(responses[0].exception).__name__}: ")


@pytest.mark.parametrize("errors", ["raise", "compat"])
@pytest.mark.parametrize("function", [raise_, raise_later])
async def test_its_error_is_raised_where_errors_are(errors: str, function: Any) -> None:
    kit = toolkit(hello, two_async, errors=errors, postprocess_func=function)

    for name in ("hello", "two_async"):
        with pytest.raises(ValueError, match="postprocessing failed"):
            await read(kit.call_tool_function(block(name)))


@pytest.mark.parametrize("function", [raise_, raise_later])
async def test_its_error_finalises_the_generator_first(function: Any) -> None:
    log = []

    async def generator() -> AsyncIterator[str]:
        try:
            yield "one"
        finally:
            await asyncio.sleep(0)
            log.append("finalised")

    kit = toolkit(generator, postprocess_func=function)

    response = await anext(kit.call_tool_function(block("generator")))

    assert response.code == "failed"
    assert log == ["finalised"]


async def test_it_does_not_see_what_was_never_run() -> None:
    seen: list[Any] = []
    kit = Toolkit()
    kit.create_tool_group("off", "tools that are off")
    kit.register_tool_function(hello, "off", postprocess_func=lambda *given: seen.append(given))

    await read(kit.call_tool_function(block("hello")))
    await read(kit.call_tool_function(block("nobody")))

    assert seen == []


async def test_an_interruption_shows_nothing_that_was_not_processed() -> None:
    async def secrets() -> AsyncIterator[str]:
        yield "public 1"
        yield "secret 2"

    async def redact(call: Any, response: ToolResponse) -> Any:
        if "secret" in response.text:
            await asyncio.sleep(60)
        return text_response("redacted")

    kit = toolkit(secrets, postprocess_func=redact)
    got: list[str] = []

    async def consume() -> None:
        async for response in kit.call_tool_function(block("secrets")):
            got.append(response.text)

    task = asyncio.create_task(consume())
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])

    assert got == ["redacted", f"redacted\n{NOTE}"]
    assert task.cancelled()


async def waits() -> str:
    await asyncio.sleep(60)
    return "late"


async def waits_after_a_chunk() -> AsyncIterator[str]:
    yield "one"
    await asyncio.sleep(60)


def blocks(release: Any) -> str:
    release.wait(60)
    return "late"


@pytest.mark.parametrize(("tool", "seen_before"), [(waits, 0), (waits_after_a_chunk, 1)])
@pytest.mark.parametrize("ending", ["keep", "replace", "later", "fail"])
async def test_an_interrupted_response_is_postprocessed_and_the_cancellation_goes_on(
    tool: Any, seen_before: int, ending: str
) -> None:
    seen: list[bool] = []

    def note(call: dict[str, Any], response: ToolResponse) -> Any:
        seen.append(response.is_interrupted)
        if not response.is_interrupted or ending == "keep":
            return None
        if ending == "fail":
            raise ValueError("no")
        return shout_later(call, response) if ending == "later" else "replaced"

    kit = Toolkit(run_in="inline")
    kit.register_tool_function(tool, postprocess_func=note)
    got: list[ToolResponse] = []

    async def consume() -> None:
        async for response in kit.call_tool_function({"name": tool.__name__}):
            got.append(response)

    task = asyncio.create_task(consume())
    for _ in range(4):
        await asyncio.sleep(0)
    task.cancel()
    (outcome,) = await asyncio.gather(task, return_exceptions=True)

    assert isinstance(outcome, asyncio.CancelledError)
    assert seen == [False] * seen_before + [True]
    assert len(got) == seen_before + 1
    assert ("replaced" in got[-1].text) == (ending == "replace")
    assert got[-1].text.isupper() == (ending == "later")


async def test_a_second_cancellation_ends_the_postprocess_function() -> None:
    async def forever(call: dict[str, Any], response: ToolResponse) -> None:
        await asyncio.sleep(60)

    kit = Toolkit(run_in="inline")
    kit.register_tool_function(waits, postprocess_func=forever)
    got: list[ToolResponse] = []

    async def consume() -> None:
        async for response in kit.call_tool_function({"name": "waits"}):
            got.append(response)

    task = asyncio.create_task(consume())
    for _ in range(2):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
    (outcome,) = await asyncio.gather(task, return_exceptions=True)

    assert isinstance(outcome, asyncio.CancelledError)
    assert got == []


async def test_the_response_of_a_cancelled_thread_is_postprocessed() -> None:
    release, seen = threading.Event(), []
    kit = Toolkit()
    kit.register_tool_function(
        blocks, preset_kwargs={"release": release}, postprocess_func=lambda call, response: seen.append(response)
    )

    async def consume() -> None:
        async for _ in kit.call_tool_function({"name": "blocks"}):
            pass

    task = asyncio.create_task(consume())
    for _ in range(4):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    release.set()

    assert [response.is_interrupted for response in seen] == [True]
