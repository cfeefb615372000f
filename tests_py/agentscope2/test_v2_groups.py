"""The state of each agent says which groups are active; toolcrib's own switches neither matter nor change."""

from collections.abc import Callable
from typing import Any

import pytest
from agentscope.state import AgentState

from support.agentscope2.scene import DESIGNS, Design, Scene, crib, theirs, with_crib
from support.agentscope2.scripted import ScriptedModel, ask, say
from toolcrib.compat.agentscope2 import tool_groups, tools
from toolcrib.errors import UnknownGroupError


async def ping() -> str:
    """Ping."""
    return "pong"


async def search(query: str) -> str:
    """Search.

    Args:
        query: What to look for.
    """
    return f"3 pages about {query}"


async def order(number: int) -> str:
    """Look up an order."""
    return f"order {number}"


GROUPS: dict[str, list[Callable[..., Any]]] = {"web": [search], "shop": [order]}


@pytest.mark.parametrize("design", DESIGNS)
async def test_groups_and_the_meta_tool_work_as_with_agentscope(design: Design) -> None:
    transcripts = []

    for toolkit in (theirs([ping], GROUPS), with_crib(design, crib([ping], GROUPS))):
        model = ScriptedModel(
            ask(("search", {"query": "birds"})),
            ask(("reset_tools", {"web": True, "moon": True})),
            ask(("reset_tools", {"web": True})),
            ask(("search", {"query": "birds"}), ("order", {"number": 1})),
            ask(("reset_tools", {"shop": True})),
            ask(("order", {"number": 2}), ("search", {"query": "fish"})),
            ask(("reset_tools", {})),
            say("done"),
        )
        scene = Scene(toolkit, model)
        await scene.send()
        transcripts.append(scene.transcript())

    assert transcripts[1] == transcripts[0]


@pytest.mark.parametrize("design", DESIGNS)
async def test_two_agents_on_one_toolkit_have_groups_of_their_own(design: Design) -> None:
    kit = crib([ping], GROUPS)
    toolkit = with_crib(design, kit)
    first = Scene(
        toolkit, ScriptedModel(ask(("reset_tools", {"web": True})), ask(("search", {"query": "x"})), say("a"))
    )
    second = Scene(toolkit, ScriptedModel(ask(("search", {"query": "x"})), say("b")))

    await first.send()
    await second.send()

    assert first.texts()[1] == "3 pages about x"
    assert "currently inactive" in second.texts()[0]
    assert [group.active for group in kit.groups.values()] == [False, False]


@pytest.mark.parametrize("design", DESIGNS)
async def test_switches_of_toolcrib_do_not_matter(design: Design) -> None:
    kit = crib([ping], GROUPS)
    kit.update_tool_groups(["shop"], True)
    toolkit = with_crib(design, kit)

    names = [schema["function"]["name"] for schema in await toolkit.get_tool_schemas([])]

    assert names == ["reset_tools", "ping"]


@pytest.mark.parametrize("design", DESIGNS)
async def test_active_groups_survive_a_restart(design: Design) -> None:
    model = ScriptedModel(ask(("reset_tools", {"web": True})), say("on"))
    scene = Scene(with_crib(design, crib([ping], GROUPS)), model)
    await scene.send()
    saved = scene.agent.state.model_dump_json()

    again = Scene(
        with_crib(design, crib([ping], GROUPS)),
        ScriptedModel(ask(("search", {"query": "x"})), say("ok")),
        state=AgentState.model_validate_json(saved),
    )
    await again.send()

    assert again.texts()[-1] == "3 pages about x"


def test_the_tools_of_one_group_are_given() -> None:
    kit = crib([ping], GROUPS)
    kit.register_tool_function(kit.reset_equipped_tools)

    assert [tool.name for tool in tools(kit)] == ["ping"]
    assert [tool.name for tool in tools(kit, "web")] == ["search"]
    groups = [(it.name, it.description, it.instructions, [tool.name for tool in it.tools]) for it in tool_groups(kit)]
    assert groups == [
        ("web", "The web tools.", "Take care of web.", ["search"]),
        ("shop", "The shop tools.", "Take care of shop.", ["order"]),
    ]
    with pytest.raises(UnknownGroupError):
        tools(kit, "moon")


def test_views_and_sessions_give_their_tools() -> None:
    kit = crib([ping], GROUPS)

    view = kit.view(exclude=["search"])
    session = kit.session(caller="ann", names=["ping"])

    assert [it.name for group in tool_groups(view) for it in group.tools] == ["order"]
    assert [it.name for it in tools(session)] == ["ping"]


async def test_a_tool_in_two_groups_is_listed_once_without_warnings(caplog: pytest.LogCaptureFixture) -> None:
    kit = crib([ping])
    kit.create_tool_group("a", "A")
    kit.create_tool_group("b", "B")
    kit.register_tool_function(search, group_name="a", groups=["b"])
    toolkit = with_crib("B", kit)

    names = [schema["function"]["name"] for schema in await toolkit.get_tool_schemas(["a", "b"])]

    assert names == ["reset_tools", "ping", "search"]
    assert caplog.records == []
    assert (await toolkit._get_available_tools(["a", "b"]))["search"].group == "b"
