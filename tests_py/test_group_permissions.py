"""Sight equals permission: a tool can be called exactly while it is listed, decided when the call begins."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable

import pytest

from support.streams import block
from support.toolkits import listed
from toolcrib import Toolkit, ToolStream

INACTIVE = (
    "FunctionInactiveError: The function 'look' is in the inactive group 'web'. "
    "Activate the tool group by calling 'reset_equipped_tools' first to use this tool."
)


async def look() -> str:
    return "seen"


async def answers(stream: ToolStream) -> list[tuple[str | None, str]]:
    return [(response.code, response.text) async for response in stream]


def web(active: bool) -> Toolkit:
    toolkit = Toolkit()
    toolkit.create_tool_group("web", "The web.", active=active)
    toolkit.register_tool_function(look, "web")
    return toolkit


async def test_a_tool_of_an_inactive_group_is_neither_listed_nor_called() -> None:
    toolkit = web(active=False)

    assert listed(toolkit) == []
    assert await answers(toolkit.call_tool_function(block("look"))) == [("inactive_group", INACTIVE)]
    assert (await toolkit.call("look")).text == INACTIVE


CHANGES: list[tuple[bool, Callable[[Toolkit], None], str | None]] = [
    (True, lambda toolkit: toolkit.update_tool_groups(["web"], False), "inactive_group"),
    (False, lambda toolkit: toolkit.update_tool_groups(["web"], True), None),
    (True, lambda toolkit: setattr(toolkit.groups["web"], "active", False), "inactive_group"),
    (False, lambda toolkit: setattr(toolkit.groups["web"], "active", True), None),
    (True, lambda toolkit: toolkit.remove_tool_groups("web"), "unknown_tool"),
    (True, lambda toolkit: toolkit.remove_tool_function("look"), "unknown_tool"),
    (True, lambda toolkit: toolkit.clear(), "unknown_tool"),
    (False, lambda toolkit: toolkit.register_tool_function(look, namesake_strategy="override"), None),
]


@pytest.mark.parametrize(("active", "change", "code"), CHANGES)
async def test_whether_a_tool_may_be_called_is_decided_at_the_first_step(
    active: bool, change: Callable[[Toolkit], None], code: str | None
) -> None:
    toolkit = web(active)
    unread, awaited = toolkit.call_tool_function(block("look")), toolkit.call_tool_function(block("look"))
    single = toolkit.call("look")
    await awaited

    change(toolkit)

    assert [answer[0] for answer in await answers(unread)] == [code]
    assert [answer[0] for answer in await answers(awaited)] == [code]
    assert (await single).code == code


@pytest.mark.parametrize(("active", "change", "code"), [change for change in CHANGES if change[0]])
async def test_a_call_that_runs_is_not_stopped_by_what_changes(
    active: bool, change: Callable[[Toolkit], None], code: str | None
) -> None:
    toolkit, go_on = Toolkit(), asyncio.Event()
    toolkit.create_tool_group("web", "The web.", active=active)

    @toolkit.tool(group_name="web", func_name="look")
    async def look_twice() -> AsyncIterator[str]:
        yield "one"
        await go_on.wait()
        yield "two"

    stream = toolkit.call_tool_function(block("look"))
    first = await stream.__anext__()

    change(toolkit)
    go_on.set()

    assert first.text == "one"
    assert await answers(stream) == [(None, "two"), (None, "onetwo")]
    assert (await toolkit.call("look")).code == code


@pytest.mark.parametrize(
    "name", ["Look", "look ", " look", "l\u200book", "lооk", "look\0", "loo\u006b\u0301", "", "basic"]
)
async def test_a_tool_is_found_by_its_exact_name_only(name: str) -> None:
    toolkit = web(active=True)

    [(code, text)] = await answers(toolkit.call_tool_function(block(name)))

    assert code == "unknown_tool"
    assert (
        text.removesuffix(". Did you mean 'look'?") == f"FunctionNotFoundError: Cannot find the function named {name}"
    )


@pytest.mark.filterwarnings("ignore:model providers refuse")
async def test_two_names_that_look_alike_are_two_tools() -> None:
    toolkit = Toolkit()
    toolkit.create_tool_group("off", "Switched off.")
    toolkit.register_tool_function(look, "off", func_name="e\u0301tat")
    toolkit.register_tool_function(look, func_name="\u00e9tat")

    assert (await toolkit.call("\u00e9tat")).ok
    assert (await toolkit.call("e\u0301tat")).code == "inactive_group"


@pytest.mark.parametrize("group", ["basic", "on", "off", "removed"])
@pytest.mark.parametrize("fate", ["kept", "removed", "replaced in basic", "replaced in off"])
@pytest.mark.parametrize("switched", [None, True, False])
async def test_a_tool_is_callable_exactly_when_it_is_listed(group: str, fate: str, switched: bool | None) -> None:
    toolkit = Toolkit()
    for name in ("on", "off", "removed"):
        toolkit.create_tool_group(name, "", active=name != "off")
    toolkit.register_tool_function(look, group)

    if fate == "removed":
        toolkit.remove_tool_function("look")
    elif fate.startswith("replaced"):
        toolkit.register_tool_function(look, fate.removeprefix("replaced in "), namesake_strategy="override")
    if switched is not None:
        toolkit.update_tool_groups([group], switched)
    toolkit.remove_tool_groups("removed")

    expected = oracle(group, fate, switched)
    assert (await toolkit.call("look")).code == expected
    assert (listed(toolkit) == ["look"]) is (expected is None)


def oracle(group: str, fate: str, switched: bool | None) -> str | None:
    """The answer to a call by the rules as they are written."""
    home = fate.removeprefix("replaced in ") if fate.startswith("replaced") else group
    if fate == "removed" or home == "removed":
        return "unknown_tool"
    if home == "basic":
        return None
    is_active = switched if switched is not None and home == group else home == "on"
    return None if is_active else "inactive_group"


@pytest.mark.parametrize("seed", range(20))
async def test_after_any_history_a_tool_is_callable_exactly_when_it_is_listed(seed: int) -> None:
    chance, toolkit = random.Random(seed), Toolkit()
    groups: dict[str, bool] = {}
    tools: dict[str, str] = {}

    for _ in range(150):
        name, group = chance.choice("abcdef"), chance.choice(["basic", "g", "h", "i"])
        match chance.choice(
            ["create", "switch", "switch", "object", "drop", "register", "register", "remove", "clear"]
        ):
            case "create" if group != "basic" and group not in groups:
                groups[group] = chance.random() < 0.5
                toolkit.create_tool_group(group, "", active=groups[group])
            case "switch" if group == "basic" or group in groups:
                active = chance.random() < 0.5
                toolkit.update_tool_groups([group], active)
                groups.update({group: active} if group in groups else {})
            case "object" if group in groups:
                groups[group] = toolkit.groups[group].active = not groups[group]
            case "drop" if group in groups:
                toolkit.remove_tool_groups([group])
                groups.pop(group)
                tools = {tool: home for tool, home in tools.items() if home != group}
            case "register" if group == "basic" or group in groups:
                toolkit.register_tool_function(look, group, func_name=name, namesake_strategy="override")
                tools[name] = group
            case "remove":
                toolkit.remove_tool_function(name)
                tools.pop(name, None)
            case "clear" if chance.random() < 0.1:
                toolkit.clear()
                groups, tools = {}, {}

        allowed = [tool for tool, home in tools.items() if home == "basic" or groups[home]]
        assert listed(toolkit) == allowed
        assert {tool: tools[tool] for tool in toolkit.tools} == tools
        assert {group: toolkit.groups[group].active for group in toolkit.groups} == groups
        for tool in "abcdef":
            code = None if tool in allowed else "inactive_group" if tool in tools else "unknown_tool"
            assert (await toolkit.call(tool)).code == code
