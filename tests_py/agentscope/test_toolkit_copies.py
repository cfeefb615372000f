"""A toolkit of AgentScope's kind can be copied and pickled, with the edits of its records."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from support.agentscope.pair import listed, on_both, text
from support.agentscope.tools import add, greet


def pickled(toolkit: Any) -> Any:
    return pickle.loads(pickle.dumps(toolkit))


each_way = pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickled], ids=["copy", "deepcopy", "pickle"])


@each_way
@on_both
async def test_a_copy_works(make: Any, way: Callable[[Any], Any]) -> None:
    toolkit = make()
    toolkit.create_tool_group("g", "G", active=True)
    toolkit.register_tool_function(add, preset_kwargs={"b": 1})
    toolkit.register_tool_function(greet, group_name="g")
    toolkit.tools["add"].json_schema["function"]["description"] = "Edited."

    other = way(toolkit)

    assert type(other) is make
    assert other.get_json_schemas() == toolkit.get_json_schemas()
    assert listed(other)["add"]["description"] == "Edited."
    assert await text(other, "add", a=1) == "2"
    assert other.state_dict() == {"active_groups": ["g"]}


@each_way
async def test_a_copy_changes_on_its_own(way: Callable[[Any], Any]) -> None:
    from toolcrib.compat.agentscope import Toolkit

    toolkit = Toolkit()
    toolkit.create_tool_group("g", "G", active=True)
    toolkit.register_tool_function(add, group_name="g")

    other = way(toolkit)
    other.tools["add"].json_schema["function"]["description"] = "Edited."
    other.groups["g"].active = False
    del other.tools["add"]

    assert listed(toolkit)["add"]["description"] == "Add two numbers."
    assert toolkit.state_dict() == {"active_groups": ["g"]}
