"""Names that a schema does not show go to the function, whose own words answer; presets stay protected."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from agentscope.tool import ToolResponse
from pydantic import BaseModel, ConfigDict

import toolcrib
from support.agentscope.pair import on_both, text
from toolcrib.compat.agentscope import Toolkit


def give(**values: Any) -> ToolResponse:
    return ToolResponse(content=[{"type": "text", "text": json.dumps(values)}])


def anything(a: int = 0, **kwargs: Any) -> ToolResponse:
    """Take anything."""
    return give(a=a, **kwargs)


def two(a: int = 0, b: int = 1) -> ToolResponse:
    """Take two."""
    return give(a=a, b=b)


class Anywhere:
    """Describes itself as the tool of an MCP server, and takes what it gets."""

    name = "remote"
    mcp_name = "server"
    json_schema = {
        "type": "function",
        "function": {"name": "remote", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    }

    async def __call__(self, **kwargs: Any) -> ToolResponse:
        return give(**kwargs)


class Open(BaseModel):
    """More."""

    model_config = ConfigDict(extra="allow")
    reason: str = "none"


NARROW = {
    "type": "function",
    "function": {"name": "two", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
}


@on_both
async def test_unknown_names_reach_the_function(make: Any) -> None:
    toolkit = make()
    toolkit.register_tool_function(anything)
    toolkit.register_tool_function(two)

    assert await text(toolkit, "anything", a=1, zzz=2) == '{"a": 1, "zzz": 2}'
    assert await text(toolkit, "two", a=1, zzz=2) == "Error: two() got an unexpected keyword argument 'zzz'"
    toolkit.set_extended_model("anything", Open)
    assert await text(toolkit, "anything", a=1, reason="r", zzz=2) == '{"a": 1, "reason": "r", "zzz": 2}'


@on_both
async def test_a_schema_that_is_narrower_than_the_function_hides_nothing(make: Any) -> None:
    toolkit = make()
    toolkit.register_tool_function(two, json_schema=NARROW)

    assert await text(toolkit, "two", a=1, b=5) == '{"a": 1, "b": 5}'
    assert await text(toolkit, "two", a=1) == '{"a": 1, "b": 1}'


@on_both
async def test_presets_of_a_function_that_takes_anything(make: Any) -> None:
    toolkit = make()
    toolkit.register_tool_function(anything, preset_kwargs={"token": "t"})

    assert await text(toolkit, "anything", a=1, zzz=2) in (
        '{"a": 1, "zzz": 2, "token": "t"}',
        '{"a": 1, "token": "t", "zzz": 2}',
    )


async def test_unknown_names_reach_the_server_of_a_tool() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(Anywhere())

    assert await text(toolkit, "remote", a=1, zzz=2) == '{"a": 1, "zzz": 2}'


@pytest.mark.parametrize("tool", [partial(anything, token="t"), partial(two, b=3)])
async def test_bound_names_are_refused(tool: Any) -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(tool)
    name = tool.func.__name__
    bound = next(iter(tool.keywords))

    assert "expected no such argument" in await text(toolkit, name, **{bound: "mine"})


@pytest.mark.parametrize("mode", ["check", "coerce"])
async def test_the_modes_that_check_refuse_unknown_names_unless_the_schema_is_open(mode: Any) -> None:
    toolkit = toolcrib.Toolkit(arguments=mode, run_in="inline")
    open_schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
    toolkit.register_tool_function(anything)
    toolkit.register_tool_function(
        anything, func_name="listed", json_schema={**open_schema, "additionalProperties": {"type": "integer"}}
    )
    toolkit.register_tool_function(anything, func_name="extended")
    toolkit.set_extended_model("extended", Open)

    assert (await toolkit.call("anything", a=1, zzz=2)).code == "invalid_arguments"
    assert (await toolkit.call("listed", a=1, zzz=2)).text == '{"a": 1, "zzz": 2}'
    assert (await toolkit.call("listed", a=1, zzz="x")).code == "invalid_arguments"
    assert (await toolkit.call("extended", a=1, zzz=2)).text == '{"a": 1, "zzz": 2}'
