"""Calls that repeat an earlier one: what a toolkit remembers of it must never outlive a change."""

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from toolcrib import Toolkit, ToolResponse

NAME = "pair"


async def pair(first: int, second: int = 2, third: int = 3) -> str:
    return f"{first} {second} {third}"


async def other(first: int) -> str:
    return f"other {first}"


def call(kit: Toolkit, arguments: dict[str, Any] | None = None) -> ToolResponse:
    """Call the tool by the same name object each time."""
    response: ToolResponse = asyncio.run(_call(kit, {"first": 1} if arguments is None else arguments))
    return response


async def _call(kit: Toolkit, arguments: dict[str, Any]) -> Any:
    last = None
    async for response in await kit.call_tool_function(
        {"type": "tool_use", "id": "1", "name": NAME, "input": arguments}
    ):
        last = response
    return last


def grouped() -> Toolkit:
    kit = Toolkit()
    kit.create_tool_group("group", "A group.", active=True)
    kit.register_tool_function(pair, group_name="group")
    return kit


CHANGES: dict[str, tuple[Callable[[Toolkit], Any], str]] = {
    "removed": (lambda kit: kit.remove_tool_function(NAME), "unknown_tool"),
    "deactivated": (lambda kit: kit.update_tool_groups(["group"], active=False), "inactive_group"),
    "without its group": (lambda kit: kit.remove_tool_groups(["group"]), "unknown_tool"),
    "quarantined": (lambda kit: kit.quarantine(NAME, "a test"), "denied"),
    "cleared": (lambda kit: kit.clear(), "unknown_tool"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_tool_that_was_called_is_not_called_after(change: str) -> None:
    kit = grouped()
    assert call(kit).text == "1 2 3"

    CHANGES[change][0](kit)

    assert call(kit).code == CHANGES[change][1]


def test_a_tool_that_replaces_one_that_was_called_is_called() -> None:
    kit = grouped()
    assert call(kit).text == "1 2 3"

    kit.register_tool_function(other, func_name=NAME, namesake_strategy="override")

    assert call(kit).text == "other 1"


def test_a_tool_that_is_activated_again_is_called_again() -> None:
    kit = grouped()
    call(kit)
    kit.update_tool_groups(["group"], active=False)
    call(kit)

    kit.update_tool_groups(["group"], active=True)

    assert call(kit).text == "1 2 3"


def test_a_removed_tool_is_released() -> None:
    async def short(first: int) -> int:
        return first

    kit = Toolkit()
    kit.register_tool_function(short, func_name=NAME)
    call(kit)
    reference = weakref.ref(short)

    kit.remove_tool_function(NAME)
    del short
    gc.collect()

    assert reference() is None


def called_with_a_cycle() -> "weakref.ref[Toolkit]":
    kit = Toolkit()

    async def cyclic(first: int) -> bool:
        return kit is not None and first == 1

    kit.register_tool_function(cyclic, func_name=NAME)
    call(kit)
    return weakref.ref(kit)


def test_a_toolkit_that_was_called_is_released_with_a_tool_that_refers_to_it() -> None:
    reference = called_with_a_cycle()

    gc.collect()

    assert reference() is None


def fresh(text: str) -> str:
    """Return an equal string that is another object."""
    return "".join(list(text))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"first": 1, "second": 5, "third": 6}, "1 5 6"),
        ({"third": 6, "second": 5, "first": 1}, "1 5 6"),
        ({"first": 1, "third": 6}, "1 2 6"),
        ({"third": 6, "first": 1}, "1 2 6"),
        ({fresh("first"): 1, "second": 5}, "1 5 3"),
        ({"first": 1, fresh("third"): 6}, "1 2 6"),
        ({fresh("first"): 1, fresh("second"): 5, fresh("third"): 6}, "1 5 6"),
    ],
)
def test_arguments_are_found_in_any_order_and_under_any_object_that_is_the_name(
    arguments: dict[str, Any], text: str
) -> None:
    assert call(grouped(), arguments).text == text


def test_an_argument_that_is_missing_or_unknown_is_reported_wherever_it_stands() -> None:
    for arguments in ({"second": 5}, {"first": 1, "fourth": 4}, {"fourth": 4, "first": 1}, {}):
        assert call(grouped(), arguments).code == "invalid_arguments"


@pytest.mark.parametrize("block", [("name", "input"), ("input", "name"), ("a", "b", "c", "d", "name", "input")])
def test_a_block_is_read_whatever_the_order_of_its_keys(block: tuple[str, ...]) -> None:
    values: dict[str, Any] = {"name": NAME, "input": {"first": 1}}

    async def run(keys: tuple[str, ...]) -> list[str]:
        request = {key: values.get(key, 0) for key in keys}
        return [response.text async for response in await grouped().call_tool_function(request)]

    assert asyncio.run(run(block)) == ["1 2 3"]
    assert asyncio.run(run(tuple(map(fresh, block)))) == ["1 2 3"]


def test_a_registration_leaves_the_function_as_it_is() -> None:
    async def plain(first: int) -> int:
        return first

    before = gc.get_referents(plain)

    Toolkit().register_tool_function(plain)

    assert [type(part) for part in gc.get_referents(plain)] == [type(part) for part in before]


def test_annotations_that_were_replaced_or_removed_count() -> None:
    async def replaced(first: int) -> int:
        return first

    async def removed(first: int) -> int:
        return first

    replaced.__annotations__ = {"first": str}
    del removed.__annotations__
    kit = Toolkit()

    kit.register_tool_function(replaced)
    kit.register_tool_function(removed)

    shown = [schema["function"]["parameters"]["properties"]["first"] for schema in kit.get_json_schemas()]
    assert shown == [{"type": "string"}, {}]
