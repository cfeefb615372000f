"""Copies of a toolkit have its tools, groups, skills, middlewares and options, and change on their own."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from toolcrib import Toolkit, tools
from toolcrib.errors import ToolcribError


def add(a: int, b: int = 1) -> int:
    """Add.

    Args:
        a: A number.
        b: Another.
    """
    return a + b


def shout(call: Any, response: Any) -> Any:
    """Postprocess."""
    return f"{response.text}!"


async def middleware(kwargs: Any, next_handler: Any) -> Any:
    """Do nothing."""
    async for response in await next_handler(**kwargs):
        yield response


class Counter:
    """Counts."""

    def __init__(self) -> None:
        self.count = 0

    def step(self) -> int:
        """Count."""
        self.count += 1
        return self.count


def pickled(toolkit: Toolkit) -> Toolkit:
    copied: Toolkit = pickle.loads(pickle.dumps(toolkit))
    return copied


WAYS: list[Callable[[Toolkit], Toolkit]] = [copy.copy, copy.deepcopy, pickled]
each_way = pytest.mark.parametrize("way", WAYS, ids=["copy", "deepcopy", "pickle"])


def whole(folder: Path) -> Toolkit:
    (folder / "SKILL.md").write_text("---\nname: s\ndescription: D.\n---\n")
    toolkit = Toolkit("I", "{name}", arguments="check", errors="raise", run_in="inline", headless=True)
    toolkit.create_tool_group("on", "On", active=True, notes="N")
    toolkit.create_tool_group("off", "Off")
    toolkit.register_tool_function(add, "on", preset_kwargs={"b": 5}, tags=["t"], kind="read", timeout=None)
    toolkit.register_tool_function(add, func_name="hidden", group_name="off", postprocess_func=shout)
    toolkit.register_tool_function(toolkit.reset_equipped_tools)
    toolkit.register_agent_skill(str(folder))
    toolkit.register_middleware(middleware)
    return toolkit


@each_way
async def test_a_copy_has_everything(way: Callable[[Toolkit], Toolkit], tmp_path: Path) -> None:
    toolkit = whole(tmp_path)

    other = way(toolkit)

    assert type(other) is type(toolkit)
    assert other.get_json_schemas() == toolkit.get_json_schemas()
    assert list(other.tools) == list(toolkit.tools)
    assert list(other.groups.values()) == list(toolkit.groups.values())
    assert other.get_agent_skill_prompt() == toolkit.get_agent_skill_prompt() == "I\ns"
    assert other._middlewares == [middleware]
    assert other.headless
    assert other._switches == toolkit._switches
    assert (other.tools["add"].tags, other.tools["add"].kind) == (["t"], "read")
    assert (await other.call("add", a=1)).text == "6"
    assert (await other.call("add", a="1")).code == "invalid_arguments"
    other.update_tool_groups("off", True)
    assert (await other.call("hidden", a=1)).text == "2!"


@each_way
async def test_a_copy_changes_on_its_own(way: Callable[[Toolkit], Toolkit], tmp_path: Path) -> None:
    toolkit = whole(tmp_path)
    before = toolkit.get_json_schemas()

    other = way(toolkit)
    await other.call("reset_equipped_tools", off=True)
    other.remove_tool_function("add")
    other.remove_agent_skill("s")
    other._middlewares.clear()

    assert toolkit.get_json_schemas() == before
    assert [name for name, group in toolkit.groups.items() if group.active] == ["on"]
    assert toolkit.get_agent_skill_prompt() is not None
    assert len(toolkit._middlewares) == 1
    assert [name for name, group in other.groups.items() if group.active] == ["off"]


async def test_a_deep_copy_has_objects_of_its_own() -> None:
    counter = Counter()
    toolkit = Toolkit(run_in="inline")
    toolkit.register_tool_function(counter.step)

    shallow, deep = copy.copy(toolkit), copy.deepcopy(toolkit)
    await shallow.call("step")
    await deep.call("step")

    assert counter.count == 1


async def test_nothing_that_waits_is_copied() -> None:
    toolkit = Toolkit(run_in="inline")
    toolkit.register_tool_function(add, permission="confirm")
    pending = ((await toolkit.call("add", a=1)).metadata or {})["pending"]

    other = copy.copy(toolkit)

    assert other.approvals is not toolkit.approvals
    assert other._async_tasks == {}
    with pytest.raises(ToolcribError):
        _ = [response async for response in other.resume(pending, "once")]


class Report(BaseModel):
    """A report."""

    total: int


@each_way
async def test_native_tools_and_finish_functions_are_copied(way: Callable[[Toolkit], Toolkit]) -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(tools.wait)
    toolkit.register_tool_function(add)
    toolkit.set_finish_function("add", Report)

    other = way(toolkit)

    assert other.get_json_schemas() == toolkit.get_json_schemas()
    refused, accepted = await other.call("add", a=1, total="many"), await other.call("add", a=1, total=3)
    assert (refused.metadata or {})["success"] is False
    assert (accepted.metadata or {})["structured_output"] == {"total": 3}
    assert (await other.call("wait", seconds=0)).ok


def test_what_cannot_be_pickled_is_named() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(lambda: 1, name="one")

    with pytest.raises(pickle.PicklingError, match="tool `one` cannot be pickled"):
        pickle.dumps(toolkit)
