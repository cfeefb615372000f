"""`AgentToolkit.execute_tool`: the same results as a tool that is called alone, on the path of a toolkit."""

import logging
from typing import Any

import pytest

from toolcrib import Policy, ToolResponse
from toolcrib.compat.artifactflow import AgentToolkit, BaseTool, ToolParameter, ToolPermission, ToolResult
from toolcrib.policy import Rule


class Saw(BaseTool):
    """A tool with a required, an optional and a defaulted parameter."""

    def __init__(self, name: str = "saw", **options: Any) -> None:
        super().__init__(name, "Saw a board.", **options)
        self.cut: list[dict[str, Any]] = []

    def get_parameters(self) -> list[ToolParameter]:
        return [
            ToolParameter("length", "integer", "In cm."),
            ToolParameter("note", "string", "A note.", required=False),
            ToolParameter("wood", "string", "The wood.", required=False, default="oak"),
            ToolParameter("cuts", "integer", "How many.", default=1),
        ]

    async def execute(self, **params: Any) -> Any:
        self.cut.append(params)
        if params["length"] == 0:
            raise ValueError("too short")
        if params["length"] < 0:
            return "not a result"
        return ToolResult(True, params["length"], metadata={"wood": params["wood"]})


class Picky(Saw):
    def validate_params(self, params: dict[str, Any]) -> str | None:
        return f"no {params['wood']} here" if params["wood"] != "ash" else None


class Own(Saw):
    async def __call__(self, **params: Any) -> ToolResult:
        return ToolResult(True, sorted(params))


class Broken(Saw):
    def get_parameters(self) -> list[ToolParameter]:
        raise RuntimeError("not ready")


PARAMS: list[dict[str, Any]] = [
    {"length": 3},
    {"length": 3, "note": None, "wood": "ash", "cuts": 2},
    {"cuts": 2, "length": 3, "wood": None},
    {},
    {"wood": "ash", "depth": 1},
    {"length": 3, "depth": 1, "angle": 2},
    {"length": 0},
    {"length": -1},
]


@pytest.mark.parametrize("params", PARAMS, ids=repr)
@pytest.mark.parametrize("kind", [Saw, Picky, Own, Broken])
async def test_a_call_through_the_toolkit_is_the_call_of_the_tool(kind: type[Saw], params: dict[str, Any]) -> None:
    alone, inside = kind(), kind()
    toolkit = AgentToolkit("carpenter")
    toolkit.add_tool(inside)

    expected = await alone(**params)
    given = [await toolkit.execute_tool("saw", dict(params)) for _ in range(2)]

    assert given == [expected, expected]
    assert inside.cut == alone.cut * 2
    assert [list(cut) for cut in inside.cut] == [list(cut) for cut in alone.cut * 2]


async def test_parameters_of_the_caller_are_not_modified() -> None:
    toolkit, params = AgentToolkit("carpenter"), {"length": 3}
    toolkit.add_tool(Saw())

    await toolkit.execute_tool("saw", params)

    assert params == {"length": 3}


class Collect(BaseTool):
    """A tool whose default is a list, which it modifies."""

    def __init__(self) -> None:
        super().__init__("collect", "Collect.")

    def get_parameters(self) -> list[ToolParameter]:
        return [ToolParameter("found", "array", "So far.", required=False, default=[])]

    async def execute(self, **params: Any) -> ToolResult:
        params["found"].append("a")
        return ToolResult(True, params["found"])


async def test_a_default_that_a_call_modifies_is_new_for_the_next_call() -> None:
    toolkit = AgentToolkit("carpenter")
    toolkit.add_tool(Collect())

    results = [await toolkit.execute_tool("collect", {}) for _ in range(2)]

    assert [result.data for result in results] == [["a"], ["a"]]


async def test_a_check_that_is_set_on_the_tool_itself_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    toolkit, tool = AgentToolkit("carpenter"), Saw()
    toolkit.add_tool(tool)
    params = {"length": 3, "note": None, "wood": "ash", "cuts": 2}
    assert (await toolkit.execute_tool("saw", params)).success

    monkeypatch.setattr(tool, "validate_params", lambda params: f"no {params['wood']} here")

    assert (await toolkit.execute_tool("saw", params)).error == "no ash here"
    assert len(tool.cut) == 1


async def test_changes_of_the_tools_take_effect(caplog: pytest.LogCaptureFixture) -> None:
    toolkit, first, second = AgentToolkit("carpenter"), Saw(), Saw()
    toolkit.add_tool(first)
    await toolkit.execute_tool("saw", {"length": 1})

    toolkit.tools["saw"] = second
    await toolkit.execute_tool("saw", {"length": 2})
    toolkit.tools["drill"] = Saw("drill")

    assert ([cut["length"] for cut in first.cut], [cut["length"] for cut in second.cut]) == ([1], [2])
    assert list(toolkit.toolkit.tools) == ["saw", "drill"]
    del toolkit.tools["saw"]
    assert list(toolkit.toolkit.tools) == ["drill"]
    assert (await toolkit.execute_tool("saw", {})).error == "Tool 'saw' not available in carpenter's toolkit"
    assert not caplog.records


async def test_the_policy_of_the_toolkit_decides_and_permissions_are_up_to_the_program() -> None:
    toolkit, tool = AgentToolkit("carpenter"), Saw(permission=ToolPermission.CONFIRM)
    toolkit.add_tool(tool)
    assert (await toolkit.execute_tool("saw", {"length": 3})).success

    toolkit.toolkit.policy = Policy([Rule("deny", tool="saw", reason="it is late")], default="allow")
    denied = await toolkit.execute_tool("saw", {"length": 3})

    assert not denied.success
    assert "it is late" in str(denied.error)
    assert len(tool.cut) == 1


async def test_middlewares_and_listeners_of_the_toolkit_see_the_call() -> None:
    seen: list[Any] = []
    toolkit = AgentToolkit("carpenter")
    toolkit.add_tool(Saw())
    toolkit.toolkit.subscribe("chunk", seen.append)

    result = await toolkit.execute_tool("saw", {"length": 3})

    assert [(event.tool, event.data["response"].text) for event in seen] == [("saw", "3")]
    assert result == ToolResult(True, 3, metadata={"wood": "oak"})

    async def note(kwargs: Any, next_handler: Any) -> Any:
        async for response in await next_handler(**kwargs):
            assert isinstance(response, ToolResponse)
            yield response

    toolkit.toolkit.register_middleware(note)
    assert (await toolkit.execute_tool("saw", {"length": 3})).data == 3


async def test_an_exception_is_logged_and_one_that_ends_the_program_is_raised(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Stop(Saw):
        async def execute(self, **params: Any) -> Any:
            raise SystemExit(3)

    toolkit = AgentToolkit("carpenter")
    toolkit.add_tools([Saw(), Stop("stop")])

    with caplog.at_level(logging.WARNING, "toolcrib"):
        await toolkit.execute_tool("saw", {"length": 0})

    assert "too short" in caplog.text
    with pytest.raises(SystemExit):
        await toolkit.execute_tool("stop", {"length": 1})
