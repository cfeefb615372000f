"""The two toolkits that a scenario runs on: AgentScope's proves the scenario, toolcrib's that it is the same."""

from __future__ import annotations

from typing import Any

import pytest
from agentscope.tool import Toolkit as AgentScopeToolkit

from toolcrib.compat.agentscope import Toolkit

on_both = pytest.mark.parametrize("make", [AgentScopeToolkit, Toolkit], ids=["agentscope", "toolcrib"])


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "1", "name": name, "input": arguments}


async def responses(toolkit: Any, name: str, **arguments: Any) -> list[Any]:
    return [response async for response in await toolkit.call_tool_function(call(name, **arguments))]


async def text(toolkit: Any, name: str, **arguments: Any) -> str:
    """The text of the last response of a call."""
    last = (await responses(toolkit, name, **arguments))[-1]
    return "".join(block["text"] for block in last.content)


def listed(toolkit: Any) -> dict[str, Any]:
    """The listed functions by name."""
    return {schema["function"]["name"]: schema["function"] for schema in toolkit.get_json_schemas()}
