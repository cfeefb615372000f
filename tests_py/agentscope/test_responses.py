"""Responses are AgentScope's own: those of tools as they are, those of the toolkit in the same class."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest
from agentscope.tool import ToolResponse

import toolcrib
import toolcrib.compat.agentscope
from support.agentscope.pair import call, on_both, responses
from toolcrib.compat.agentscope import Toolkit


class Mine(ToolResponse):  # type: ignore[misc]
    """A response with more to it."""

    extra: int = 5


def block(text: str) -> Any:
    return {"type": "text", "text": text}


MADE = Mine(content=[block("mine")])
MADE.cost = 3


def mine() -> ToolResponse:
    """Give the same object each time."""
    return MADE


async def several() -> AsyncGenerator[ToolResponse, None]:
    """Give several."""
    yield MADE
    yield ToolResponse(content=[block("more")])


def broken() -> ToolResponse:
    """Break."""
    raise KeyError("k")


def test_the_class_is_agentscopes() -> None:
    assert toolcrib.compat.agentscope.ToolResponse is ToolResponse


@on_both
async def test_a_response_of_a_tool_is_delivered_as_it_is(make: Any) -> None:
    toolkit = make()
    toolkit.register_tool_function(mine)
    toolkit.register_tool_function(several)

    assert (await responses(toolkit, "mine"))[0] is MADE
    assert (await responses(toolkit, "several"))[0] is MADE


@on_both
async def test_responses_of_the_toolkit_have_the_class(make: Any) -> None:
    toolkit = make()
    toolkit.create_tool_group("g", "G")
    toolkit.register_tool_function(broken)
    toolkit.register_tool_function(mine, group_name="g")

    for name in ("broken", "mine", "unknown"):
        response = (await responses(toolkit, name))[0]
        assert type(response) is ToolResponse
        assert dataclasses.asdict(response).keys() == {
            "content",
            "metadata",
            "stream",
            "is_last",
            "is_interrupted",
            "id",
        }
        assert dataclasses.replace(response, is_last=False).is_last is False
        assert vars(response)["content"] == response.content
        assert repr(response).startswith("ToolResponse(content=[{")
        assert "code=" not in repr(response)
    assert type(toolkit.reset_equipped_tools()) is ToolResponse
    for answer in (toolkit.view_task("x"), toolkit.cancel_task("x"), toolkit.wait_task("x")):
        response = await answer
        assert type(response) is ToolResponse
        assert response.metadata is None


async def test_the_code_is_an_attribute_besides() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(broken)
    toolkit.register_tool_function(mine)

    assert (await responses(toolkit, "broken"))[0].code == "failed"
    assert (await responses(toolkit, "unknown"))[0].code == "unknown_tool"
    assert not hasattr((await responses(toolkit, "mine"))[0], "code")


@on_both
async def test_postprocessing_and_middleware_see_the_class(make: Any) -> None:
    toolkit, seen = make(), []

    async def watch(kwargs: dict[str, Any], next_handler: Any) -> AsyncGenerator[ToolResponse, None]:
        async for response in await next_handler(**kwargs):
            seen.append(response)
            yield response

    toolkit.register_middleware(watch)
    toolkit.register_tool_function(mine, postprocess_func=lambda call, response: seen.append(response))
    toolkit.register_tool_function(broken, postprocess_func=lambda call, response: seen.append(response))

    delivered = await responses(toolkit, "mine") + await responses(toolkit, "broken") + await responses(toolkit, "no")

    assert [isinstance(response, ToolResponse) for response in seen] == [True] * 5
    assert delivered[0] is seen[0] is seen[1] is MADE
    assert delivered[1] is seen[3]


@pytest.mark.parametrize("value", ["text", 3, {"a": 1}, toolcrib.ToolResponse([block("own")])])
async def test_any_other_value_is_converted(value: Any) -> None:
    def give() -> Any:
        """Give it."""
        return value

    async def give_many() -> Any:
        """Give it twice."""
        yield value
        yield value

    toolkit = Toolkit()
    toolkit.register_tool_function(give)
    toolkit.register_tool_function(give_many)

    for response in await responses(toolkit, "give") + await responses(toolkit, "give_many"):
        assert type(response) is ToolResponse
        assert response.content[0]["type"] == "text"
        assert len({response.id}) == 1


@on_both
async def test_a_function_without_a_result_is_a_mistake(make: Any) -> None:
    def forget() -> None:
        """Return nothing."""

    async def forget_later() -> None:
        """Return nothing, after a while."""

    toolkit = make()
    for tool in (forget, forget_later):
        toolkit.register_tool_function(tool, postprocess_func=lambda call, response: MADE)

        with pytest.raises(TypeError) as caught:
            await responses(toolkit, tool.__name__)

        assert str(caught.value) == (
            "The tool function must return a ToolResponse object, or an AsyncGenerator/Generator of ToolResponse "
            "objects, but got <class 'NoneType'>."
        )


@on_both
async def test_a_stream_can_be_empty(make: Any) -> None:
    def nothing() -> Generator[ToolResponse, None, None]:
        """Give nothing."""
        yield from ()

    async def nothing_later() -> AsyncGenerator[ToolResponse, None]:
        """Give nothing, after a while."""
        await asyncio.sleep(0)
        if toolkit is None:
            yield MADE

    async def swallow(kwargs: dict[str, Any], next_handler: Any) -> AsyncGenerator[ToolResponse, None]:
        async for response in await next_handler(**kwargs):
            if kwargs["tool_call"]["name"] != "mine":
                yield response

    toolkit = make()
    for tool in (nothing, nothing_later, mine):
        toolkit.register_tool_function(tool)

    assert [await responses(toolkit, name) for name in ("nothing", "nothing_later")] == [[], []]
    toolkit.register_middleware(swallow)
    assert [await responses(toolkit, name) for name in ("nothing", "nothing_later", "mine")] == [[], [], []]


async def test_the_last_response_of_an_empty_stream_is_empty() -> None:
    def nothing() -> Generator[ToolResponse, None, None]:
        """Give nothing."""
        yield from ()

    toolkit = Toolkit()
    toolkit.register_tool_function(nothing)

    response = await toolkit.call("nothing")

    assert type(response) is ToolResponse
    assert response.content == []


async def test_budgets_apply_to_them() -> None:
    def long() -> ToolResponse:
        """Give much."""
        return ToolResponse(content=[block("x" * 5000)])

    def short() -> ToolResponse:
        """Give little."""
        return MADE

    toolkit = Toolkit()
    toolkit.register_tool_function(long, result_budget=200)
    toolkit.register_tool_function(short, result_budget=200)

    cut = (await responses(toolkit, "long"))[0]
    assert type(cut) is ToolResponse
    assert len(cut.content[0]["text"]) < 500
    assert (await responses(toolkit, "short"))[0] is MADE


async def test_the_other_ways_to_call_give_them_too() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(broken)
    toolkit.register_tool_function(mine)

    assert await toolkit.call("mine") is MADE
    assert type(await toolkit.call("broken")) is ToolResponse
    assert [r async for r in toolkit.tools["mine"].call(arguments={})] == [MADE]
    shown: list[Any] = []
    assert [r async for r in toolkit.tools["mine"].call(arguments={}, stream_print=shown.append)] == [MADE]
    assert shown[0] is MADE
    assert [r async for r in toolkit.view().call_tool_function(call("mine"))] == [MADE]
