"""The structured finish: data is validated before the function runs, and comes with its last response."""

import asyncio
import gc
import json
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator

from support import process_tools
from toolcrib import TextBlock, Toolkit, ToolResponse
from toolcrib.errors import ExtendedModelError, UnknownToolError


class Report(BaseModel):
    title: str
    pages: int = Field(ge=1)


DATA = {"title": "On tools", "pages": 3}
REFUSED = {"success": False, "response_msg": None, "structured_output": None}


def respond(text: str) -> ToolResponse:
    return ToolResponse([TextBlock(type="text", text=text)])


def function(note: str) -> str:
    """Finish."""
    return note


async def coroutine(note: str) -> str:
    """Finish."""
    await asyncio.sleep(0)
    return note


def generator(note: str) -> Iterator[str]:
    """Finish."""
    yield "first"
    yield note


async def async_generator(note: str) -> AsyncIterator[str]:
    """Finish."""
    yield "first"
    await asyncio.sleep(0)
    yield note


def gives_generator(note: str) -> Any:
    """Finish."""
    return generator(note)


def gives_async_generator(note: str) -> Any:
    """Finish."""
    return async_generator(note)


def gives_coroutine(note: str) -> Any:
    """Finish."""
    return coroutine(note)


async def coroutine_of_async_generator(note: str) -> Any:
    """Finish."""
    return async_generator(note)


class Callable_:
    """Finish."""

    def __call__(self, note: str) -> str:
        return note


KINDS = [
    function,
    coroutine,
    generator,
    async_generator,
    gives_generator,
    gives_async_generator,
    gives_coroutine,
    coroutine_of_async_generator,
    Callable_(),
]


def finishing(function: Callable[..., Any], model: type[BaseModel] = Report, **options: Any) -> Toolkit:
    toolkit = Toolkit(**options)
    toolkit.register_tool_function(function, func_name="finish")
    toolkit.set_finish_function("finish", model)
    return toolkit


async def responses(toolkit: Toolkit, **arguments: Any) -> list[ToolResponse]:
    block = {"type": "tool_use", "id": "1", "name": "finish", "input": arguments}
    return [response async for response in toolkit.call_tool_function(block)]


@pytest.mark.parametrize("run_in", ["thread", "inline"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: getattr(kind, "__name__", "object"))
async def test_the_last_response_of_every_kind_has_the_data(kind: Callable[..., Any], run_in: str) -> None:
    got = await responses(finishing(kind, run_in=run_in), note="done", **DATA)

    text = "done" if len(got) == 1 else "firstdone"
    assert [response.text for response in got] in (["done"], ["first", "done", "firstdone"])
    assert all(response.metadata is None for response in got[:-1])
    assert [response.is_last for response in got] == [False] * (len(got) - 1) + [True]
    assert got[-1].metadata == {
        "success": True,
        "response_msg": {"role": "assistant", "content": text, "metadata": DATA},
        "structured_output": DATA,
    }


@pytest.mark.parametrize("arguments", ["coerce", "check", "pass"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: getattr(kind, "__name__", "object"))
async def test_data_that_does_not_fit_is_answered_once(kind: Callable[..., Any], arguments: str) -> None:
    (response,) = await responses(finishing(kind, arguments=arguments), note="done", title="On tools", pages=0)

    assert response.text.startswith("Arguments Validation Error: 1 validation error for Report\npages\n")
    assert response.code == "invalid_arguments"
    assert response.is_last
    assert response.metadata == REFUSED


async def test_a_function_does_not_run_with_data_that_does_not_fit() -> None:
    ran: list[str] = []
    toolkit = finishing(lambda **_: ran.append("ran"))

    (refused,) = await responses(toolkit, title="On tools")
    assert (refused.code, ran) == ("invalid_arguments", [])

    (finished,) = await responses(toolkit, **DATA)
    assert (finished.ok, ran) == (True, ["ran"])


async def test_the_functions_own_arguments_are_checked_as_ever() -> None:
    toolkit = finishing(function)

    (response,) = await responses(toolkit, **DATA)

    assert response.code == "invalid_arguments"
    assert response.text == "Error: Invalid arguments for tool 'finish':\n- note: expected a string, got nothing"


async def test_an_undeclared_name_is_refused() -> None:
    (response,) = await responses(finishing(function), note="done", ghost=1, **DATA)

    assert "ghost" in response.text
    assert response.code == "invalid_arguments"


async def test_the_model_converts_what_it_is_sent() -> None:
    (response,) = await responses(finishing(function), note="done", title="On tools", pages="3")

    assert response.metadata is not None
    assert response.metadata["structured_output"] == DATA


async def test_validators_of_the_model_have_their_say() -> None:
    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def is_even(cls, number: int) -> int:
            if number % 2:
                raise ValueError("must be even")
            return number

    (response,) = await responses(finishing(function, Even), note="done", number=3)

    assert "must be even" in response.text
    assert response.code == "invalid_arguments"


async def test_a_validator_that_breaks_is_a_failure_of_the_tool() -> None:
    class Broken(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def breaks(cls, number: int) -> int:
            raise KeyError("no such table")

    (response,) = await responses(finishing(function, Broken), note="done", number=3)

    assert response.code == "failed"


async def test_fields_reach_a_function_only_if_it_takes_them() -> None:
    def takes_all(note: str, **rest: Any) -> str:
        return json.dumps({"note": note, **rest})

    def takes_none(note: str) -> str:
        return note

    (everything,) = await responses(finishing(takes_all), note="n", **DATA)
    (nothing,) = await responses(finishing(takes_none), note="n", **DATA)

    assert json.loads(everything.text) == {"note": "n", **DATA}
    assert nothing.text == "n"


async def test_a_parameter_that_the_schema_hides_gets_its_field() -> None:
    def rate(pages: int, /, title: str = "") -> str:
        return f"{title}: {pages}"

    class Title(BaseModel):
        title: str

    parameters = {"type": "object", "properties": {"pages": {"type": "integer"}}, "required": ["pages"]}
    toolkit = Toolkit()
    schema = {"type": "function", "function": {"name": "finish", "parameters": parameters}}
    toolkit.register_tool_function(rate, func_name="finish", json_schema=schema)
    toolkit.set_finish_function("finish", Title)

    (response,) = await responses(toolkit, pages=3, title="On tools")

    assert response.text == "On tools: 3"
    assert response.metadata is not None
    assert response.metadata["structured_output"] == {"title": "On tools"}


async def test_presets_reach_the_function() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(function, func_name="finish", preset_kwargs={"note": "preset"})
    toolkit.set_finish_function("finish", Report)

    (response,) = await responses(toolkit, **DATA)

    assert response.text == "preset"


async def test_what_the_function_put_into_its_metadata_stays() -> None:
    def finish() -> ToolResponse:
        return ToolResponse([], metadata={"response_msg": "mine", "seen": 1})

    (response,) = await responses(finishing(finish), **DATA)

    assert response.metadata == {"response_msg": "mine", "seen": 1, "success": True, "structured_output": DATA}


async def test_a_function_may_say_that_the_finish_failed() -> None:
    def says_so() -> ToolResponse:
        return ToolResponse([], metadata={"success": False})

    def has_a_code() -> ToolResponse:
        return ToolResponse([], code="failed")

    (said,) = await responses(finishing(says_so), **DATA)
    (coded,) = await responses(finishing(has_a_code), **DATA)

    assert said.metadata == coded.metadata == REFUSED
    assert (said.code, coded.code) == (None, "failed")


async def test_what_a_function_returned_is_not_written_into() -> None:
    mine = respond("mine")

    (response,) = await responses(finishing(lambda: mine), **DATA)

    assert response.metadata is not None
    assert mine.metadata is None


async def test_chunks_are_as_they_were_when_they_were_given() -> None:
    def writes_on() -> Iterator[ToolResponse]:
        response = ToolResponse([TextBlock(type="text", text="")], is_last=False)
        for word in ("a", "b", "c"):
            response.content[0]["text"] += word  # type: ignore[typeddict-item]
            yield response

    got = await responses(finishing(writes_on, run_in="inline"), **DATA)

    assert [response.text for response in got] == ["a", "ab", "abc", "abc"]
    assert [response.is_last for response in got] == [False, False, False, True]


async def test_a_generator_that_gives_nothing_finishes_all_the_same() -> None:
    def gives_nothing() -> Iterator[str]:
        yield from ()

    async def gives_nothing_async() -> AsyncIterator[str]:
        nothing: list[str] = []
        for word in nothing:
            yield word

    for kind in (gives_nothing, gives_nothing_async):
        (response,) = await responses(finishing(kind), **DATA)

        assert response.content == []
        assert response.metadata is not None
        assert response.metadata["structured_output"] == DATA


async def test_a_failure_in_mid_stream_comes_after_what_was_given() -> None:
    def breaks() -> Iterator[str]:
        yield "a"
        yield "b"
        raise ValueError("broken")

    async def breaks_async() -> AsyncIterator[str]:
        yield "a"
        yield "b"
        raise ValueError("broken")

    for kind in (breaks, breaks_async):
        got = await responses(finishing(kind), **DATA)

        assert [response.text for response in got[:2]] == ["a", "b"]
        assert got[-1].code == "failed"
        assert all(response.metadata is None for response in got)


async def test_a_closed_stream_closes_the_generator() -> None:
    closed: list[str] = []

    async def endless() -> AsyncIterator[str]:
        try:
            while True:
                yield "more"
        finally:
            closed.append("closed")

    toolkit = finishing(endless)
    stream = toolkit.call_tool_function({"type": "tool_use", "id": "1", "name": "finish", "input": DATA})
    await anext(stream)

    await stream.aclose()

    assert closed == ["closed"]


async def test_a_cancelled_finish_is_interrupted_and_its_tool_finalised() -> None:
    closed: list[str] = []

    async def waits() -> str:
        try:
            await asyncio.sleep(60)
        finally:
            closed.append("closed")
        return ""

    toolkit = finishing(waits)
    task = asyncio.ensure_future(toolkit.call("finish", **DATA))
    await asyncio.sleep(0.01)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task

    assert closed == ["closed"]


async def test_a_function_in_a_process_finishes() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(process_tools.join, func_name="finish", run_in="process")
    toolkit.set_finish_function("finish", Report)

    (finished,) = await responses(toolkit, a="a", **DATA)
    (refused,) = await responses(toolkit, a="a")

    assert finished.text == "ab"
    assert finished.metadata is not None
    assert finished.metadata["structured_output"] == DATA
    assert refused.code == "invalid_arguments"


async def test_a_postprocess_function_sees_the_finished_response() -> None:
    seen: list[ToolResponse] = []
    toolkit = Toolkit()
    toolkit.register_tool_function(
        function, func_name="finish", postprocess_func=lambda _, response: seen.append(response)
    )
    toolkit.set_finish_function("finish", Report)

    got = await responses(toolkit, note="done", **DATA)

    assert seen == got
    assert seen[0].metadata is not None


async def test_none_makes_it_a_tool_like_any_other() -> None:
    toolkit = finishing(function)

    toolkit.set_finish_function("finish", None)

    (response,) = await responses(toolkit, note="done")
    assert (response.text, response.metadata) == ("done", None)
    assert toolkit.tools["finish"].extended_model is None


async def test_an_extended_model_takes_the_place_of_a_finish() -> None:
    toolkit = finishing(lambda **_: "done")

    toolkit.set_extended_model("finish", Report)

    (response,) = await responses(toolkit, **DATA)
    assert response.metadata is None


def test_the_tool_shows_what_was_registered() -> None:
    tool = finishing(function).tools["finish"]

    assert tool.original_func is function
    assert tool.extended_model is Report
    assert list(tool.extended_json_schema["function"]["parameters"]["properties"]) == ["note", "title", "pages"]
    assert tool.extended_json_schema["function"]["parameters"]["required"] == ["note", "title", "pages"]


@pytest.mark.parametrize("run_in", ["thread", "inline"])
def test_a_tool_runs_where_it_ran_before(run_in: Literal["thread", "inline"]) -> None:
    assert finishing(function, run_in=run_in).tools["finish"].run_in == run_in


def test_a_wrong_finish_is_refused() -> None:
    class Taken(BaseModel):
        note: str

    toolkit = Toolkit()
    toolkit.register_tool_function(function, func_name="finish")

    with pytest.raises(ExtendedModelError):
        toolkit.set_finish_function("finish", Taken)
    with pytest.raises(UnknownToolError):
        toolkit.set_finish_function("ghost", Report)
    with pytest.raises(TypeError):
        toolkit.set_finish_function("finish", dict)


def test_a_finish_that_refers_to_its_toolkit_is_collected() -> None:
    def made() -> weakref.ref[Toolkit]:
        toolkit = Toolkit()
        toolkit.register_tool_function(lambda **_: toolkit, func_name="finish")
        toolkit.set_finish_function("finish", Report)
        return weakref.ref(toolkit)

    gone = made()

    gc.collect()

    assert gone() is None
