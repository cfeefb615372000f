"""Calls through a view: the toolkit's whole interface, and nothing that the view does not show."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from support.events import record_events
from support.policy import Shop, answering
from support.streams import block, echo, last, read, texts, toolkit
from toolcrib import RegisteredToolFunction, Toolkit, ToolResponse
from toolcrib.policy import Policy, Rule


async def test_what_a_view_shows_can_be_called_in_every_way(loop_factory: Any) -> None:
    shop = Shop()
    view = shop.kit.view(names=["look"], caller="ann")

    assert (await view.call("look", path="a")).text == "saw a"
    assert await texts(view.call_tool_function(block("look", path="b"))) == ["saw b"]
    assert await texts(await view.call_tool_function(block("look", path="c"))) == ["saw c"]
    assert view.run("look", path="d").text == "saw d"
    assert view.check(block("look", path="e"))["would"] == "run"
    assert [path for _, path in shop.ran] == ["a", "b", "c", "d"]


async def test_what_a_view_does_not_show_looks_like_what_does_not_exist() -> None:
    shop = Shop()
    view = shop.kit.view(names=["look"])

    hidden = await view.call("remove", path="a")
    missing = await view.call("rexove", path="a")

    assert (hidden.code, missing.code) == ("tool_not_available", "tool_not_available")
    assert hidden.text.replace("remove", "rexove") == missing.text
    assert view.check(block("remove", path="a"))["code"] == "tool_not_available"
    assert shop.ran == []


@pytest.mark.filterwarnings("ignore:unknown tag")
async def test_a_view_that_shows_nothing_lets_nothing_through() -> None:
    shop = Shop()

    for view in (shop.kit.view(groups=[]), shop.kit.view(names=[]), shop.kit.view(tags=["x"])):
        assert (await view.call("look", path="a")).code == "tool_not_available"


async def test_whether_a_tool_is_shown_is_decided_when_the_call_starts() -> None:
    shop = Shop()
    view = shop.kit.view(groups=["files"])
    stream = view.call_tool_function(block("look", path="a"))

    shop.kit.register_group("files", tools=["look"])

    assert await texts(stream) == ["saw a"]
    stream = view.call_tool_function(block("look", path="a"))
    shop.kit.unregister_group("files")
    assert (await last(stream)).code == "tool_not_available"


@pytest.mark.filterwarnings("ignore:model providers refuse")
async def test_names_that_look_alike_are_not_shown() -> None:
    shop = Shop()
    view = shop.kit.view(names=["look"])
    shop.kit.register_tool_function(shop.remove, func_name="lооk")  # with two Cyrillic letters

    assert (await view.call("lооk", path="a")).code == "tool_not_available"
    assert shop.ran == []


async def test_middlewares_are_around_it_and_stay_inside() -> None:
    shop = Shop()
    seen: list[str] = []

    async def escape(kwargs: dict[str, Any], next_handler: Any) -> AsyncIterator[ToolResponse]:
        seen.append(kwargs["tool_call"]["name"])
        async for response in next_handler(tool_call=block("count", to=2)):
            yield response

    shop.kit.register_middleware(escape)
    view = shop.kit.view(names=["look"])

    assert (await last(view.call_tool_function(block("look", path="a")))).code == "tool_not_available"
    assert (await view.call("look", path="a")).code == "tool_not_available"
    assert (seen, shop.ran) == (["look", "look"], [])


async def test_a_task_in_the_background_belongs_to_the_toolkit_of_the_view() -> None:
    shop = Shop()
    shop.kit.register_tool_function(shop.look, func_name="behind", async_execution=True)
    view = shop.kit.view(names=["behind"])

    response = await view.call("behind", path="a")
    assert response.metadata is not None

    assert (await shop.kit.wait_task(response.metadata["task_id"])).text == "saw a"


async def test_rules_and_events_see_the_caller_of_a_view() -> None:
    approve, asked = answering("once")
    shop = Shop(policy=Policy([Rule("deny", caller="eve"), Rule("ask", caller="b*")]), approver=approve)
    events = record_events(shop.kit)

    callers = ("eve", "ann", "bob", "eve", None)
    codes = [(await shop.kit.view(caller=caller).call("look", path="a")).code for caller in callers]

    assert codes == ["denied", None, None, "denied", None]
    assert [request.caller for request in asked] == ["bob"]
    assert {event.caller for event in events} == {"eve", "ann", "bob", None}


async def test_a_decision_without_a_caller_is_not_reused_for_a_named_caller() -> None:
    shop = Shop(policy=Policy([Rule("deny", caller="*")]))
    view = shop.kit.view(caller="ann")

    codes = []
    for _ in range(3):
        codes.append((await shop.kit.call("look", path="a")).code)
        codes.append((await view.call("look", path="a")).code)

    assert codes == [None, "denied"] * 3


async def test_a_tool_of_a_view_is_called_for_its_caller_and_only_while_it_is_shown() -> None:
    ran: list[str] = []

    def work(name: str) -> str:
        ran.append(name)
        return name

    kit = Toolkit(run_in="inline", policy=Policy([Rule("deny", tool="work", caller="ann")]))
    kit.register_tool_function(work)
    ann, bob = kit.view(caller="ann"), kit.view(caller="bob")
    tools = [bob.tools["work"], dict(ann.tools.items())["work"], ann.tools["work"]]
    shown: list[str] = []
    events = record_events(kit)

    codes = [(await read(await tool.call(arguments={"name": "a"})))[-1].code for tool in tools]
    await read(await bob.tools["work"].call(arguments={"name": "b"}, stream_print=lambda it: shown.append(it.text)))
    kit.remove_tool_function("work")
    gone = (await read(await tools[0].call(arguments={"name": "c"})))[-1].code

    assert (codes, gone) == ([None, "denied", "denied"], "tool_not_available")
    assert (ran, shown) == (["a", "b"], ["b"])
    assert [event.caller for event in events if event.type == "call_start"] == ["bob", "ann", "ann", "bob", "bob"]


def test_a_tool_of_a_view_says_what_the_tool_says() -> None:
    kit = toolkit(echo)
    view = kit.view()

    tool = view.tools["echo"]

    assert isinstance(tool, RegisteredToolFunction)
    assert (tool.name, tool.json_schema, tool.original_func) == ("echo", kit.tools["echo"].json_schema, echo)
    assert tool == view.tools["echo"] != kit.view().tools["echo"]
    assert (len({tool, view.tools["echo"]}), repr(tool)) == (1, repr(kit.tools["echo"]))
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        tool.nothing_of_this_name  # type: ignore[attr-defined] # noqa: B018


async def test_a_narrower_view_lets_less_through() -> None:
    shop = Shop()
    view = shop.kit.view(names=["look", "remove"]).view(exclude=["remove"], caller="ann")

    assert (await view.call("look", path="a")).ok
    assert (await view.call("remove", path="a")).code == "tool_not_available"


async def test_streams_of_a_view_are_cancelled_and_closed_like_any_other() -> None:
    ended: list[str] = []
    kit = Toolkit()

    @kit.tool
    async def endless() -> AsyncIterator[str]:
        try:
            while True:
                yield "x"
                await asyncio.sleep(0)
        finally:
            ended.append("ended")

    view = kit.view()
    stream = view.call_tool_function(block("endless"))
    await anext(stream)
    await stream.aclose()
    task = asyncio.create_task(read(view.call_tool_function(block("endless"))))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ended == ["ended", "ended"]


async def test_a_call_keeps_its_view_alive() -> None:
    shop = Shop()

    stream = shop.kit.view(names=["look"]).call_tool_function(block("look", path="a"))

    assert await texts(stream) == ["saw a"]


@pytest.mark.parametrize("call", [3, None, ["look"]])
def test_an_invalid_call_is_refused(call: Any) -> None:
    view = Shop().kit.view()

    with pytest.raises(TypeError):
        view.call_tool_function(call)
    with pytest.raises(TypeError):
        view.check(call)
    with pytest.raises(TypeError):
        view.call()  # type: ignore[call-arg, unused-coroutine]
