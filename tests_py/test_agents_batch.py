"""Many agents at once: their registration, and the one tool that calls all of them."""

import logging
from pathlib import Path
from typing import Any

import pytest

from toolcrib import AgentDefinition, AgentFolder, Policy, Toolkit, errors
from toolcrib.agent import AgentRegistration, CallSubagent
from toolcrib.compat.artifactflow import CallSubagentTool
from toolcrib.policy import ApprovalRequest, Rule


async def repeat(inputs: dict[str, Any], session: Any, emit: Any) -> str:
    return f"done: {inputs}"


def define(name: str, **fields: Any) -> AgentDefinition:
    fields.setdefault("inputs", {"task": {"type": "string", "description": "The task."}})
    return AgentDefinition(name, f"Does {name}.", **fields)


def test_agents_are_registered_by_allow_and_exclude_lists() -> None:
    toolkit = Toolkit()
    definitions = [define(name) for name in ("a", "b", "c", "d")]

    report = toolkit.register_agents(definitions, allow=["a", "b", "c"], exclude=["b"], run=repeat)

    assert report == AgentRegistration(names=("a", "c"), skipped=("b", "d"))
    assert list(toolkit.tools) == ["a", "c"]
    assert toolkit.tools["a"].kind == "think"


def test_one_agent_that_cannot_be_wrapped_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    toolkit = Toolkit()
    other = Toolkit().view()
    definitions: list[Any] = [define("a"), define("a"), define("b", view=other), "c", define("d")]

    with caplog.at_level(logging.WARNING, "toolcrib"):
        report = toolkit.register_agents(definitions, run=repeat)

    assert report.names == ("a", "d")
    assert list(report.problems) == ["a", "b", "#3"]
    assert report.problems["b"] == "agent `b`: its view is that of another toolkit"
    assert report.problems["#3"] == "expected an AgentDefinition, got str"
    assert "Failed to wrap agent 'b' as a tool: " in caplog.text


async def test_each_agent_may_have_a_loop_of_its_own() -> None:
    async def other(inputs: dict[str, Any], session: Any, emit: Any) -> str:
        return "other"

    toolkit = Toolkit()

    report = toolkit.register_agents([define("a"), define("b"), define("c")], run={"a": repeat, "b": other})

    assert (await toolkit.call("a", task="x")).text == "done: {'task': 'x'}"
    assert (await toolkit.call("b", task="x")).text == "other"
    assert list(report.problems) == ["c"]


def test_a_folder_of_agents_is_registered(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\nname: a\ndescription: Does a.\n---\nDo it.\n", encoding="utf-8")
    toolkit = Toolkit()
    toolkit.create_tool_group("agents", "Agents.")

    report = toolkit.register_agents(AgentFolder(tmp_path), run=repeat, group_name="agents")

    assert report.names == ("a",)
    assert toolkit.tools["a"].group == "agents"


def test_a_list_of_names_is_not_one_name() -> None:
    with pytest.raises(TypeError, match="exclude must be a list of names, not str"):
        Toolkit().register_agents([], exclude="abc")


@pytest.fixture
def toolkit() -> Toolkit:
    toolkit = Toolkit()
    toolkit.register_agents([define("search"), define("crawl")], run=repeat)
    return toolkit


def test_the_names_of_all_agents_are_in_the_schema(toolkit: Toolkit) -> None:
    toolkit.register_call_subagent()
    toolkit.register_agent(define("late"), run=repeat)
    toolkit.register_call_subagent()

    function = toolkit.tools["call_subagent"].json_schema["function"]

    assert function["parameters"]["properties"]["agent_name"]["enum"] == ["search", "crawl", "late"]
    assert function["parameters"]["required"] == ["agent_name", "instruction"]
    assert "- late: Does late." in function["description"]
    assert toolkit.tools["call_subagent"].kind == "think"


async def test_an_agent_is_called_with_the_instruction(toolkit: Toolkit) -> None:
    toolkit.register_call_subagent()

    response = await toolkit.call("call_subagent", agent_name="crawl", instruction=" look ")

    assert response.text == "done: {'task': 'look'}"
    assert response.metadata is not None
    assert response.metadata["routing"] == {"type": "subagent", "target": "crawl", "instruction": "look"}


async def test_a_route_is_only_returned(toolkit: Toolkit) -> None:
    toolkit.register_call_subagent(["search", define("elsewhere")], mode="route")

    response = await toolkit.call("call_subagent", agent_name="elsewhere", instruction="look")

    assert response.metadata == {
        "value": {"agent_name": "elsewhere", "instruction": "look"},
        "routing": {"type": "subagent", "target": "elsewhere", "instruction": "look"},
    }


async def test_mistakes_have_the_texts_of_artifactflow(toolkit: Toolkit) -> None:
    toolkit.register_call_subagent()

    unknown = await toolkit.call("call_subagent", agent_name="nobody", instruction="look")
    blank = await toolkit.call("call_subagent", agent_name="crawl", instruction="  ")

    assert unknown.text == "Error: Invalid agent_name 'nobody'. Must be one of: search, crawl"
    assert blank.text == "Error: instruction parameter cannot be empty"
    assert unknown.code == blank.code == "invalid_arguments"


async def test_the_permission_of_the_agent_is_that_of_its_own_tool(toolkit: Toolkit) -> None:
    requests: list[ApprovalRequest] = []

    async def approve(request: ApprovalRequest) -> bool:
        requests.append(request)
        return False

    toolkit.approver = approve
    toolkit.policy = Policy([Rule("ask", tool="crawl")])
    toolkit.register_call_subagent()

    response = await toolkit.call("call_subagent", agent_name="crawl", instruction="look")

    assert response.code == "denied"
    assert [request.tool for request in requests] == ["crawl"]


async def test_an_agent_outside_of_the_view_is_not_called(toolkit: Toolkit) -> None:
    toolkit.register_call_subagent()
    session = toolkit.session(names=["call_subagent", "search"])

    inside = await session.call("call_subagent", agent_name="search", instruction="look")
    outside = await session.call("call_subagent", agent_name="crawl", instruction="look")

    assert (inside.code, outside.code) == (None, "tool_not_available")


async def test_an_agent_does_not_inherit_the_tool_that_calls_agents() -> None:
    async def names(inputs: dict[str, Any], session: Any, emit: Any) -> list[str]:
        return [schema["function"]["name"] for schema in session.get_json_schemas()]

    toolkit = Toolkit()

    @toolkit.tool
    def plain() -> None: ...

    toolkit.register_agents([define("a")], run=names)
    toolkit.register_call_subagent()

    response = await toolkit.call("a", task="x")

    assert response.metadata is not None
    assert response.metadata["value"] == ["plain"]


@pytest.fixture
def pair(toolkit: Toolkit) -> str:
    """An agent of the toolkit that does not take one instruction."""
    toolkit.register_agent(define("pair", inputs={name: {"type": "string"} for name in ("one", "two")}), run=repeat)
    return "pair"


def test_an_agent_that_takes_no_instruction_is_left_out(
    toolkit: Toolkit, pair: str, caplog: pytest.LogCaptureFixture
) -> None:
    toolkit.register_call_subagent()

    schema = toolkit.tools["call_subagent"].json_schema["function"]
    names = schema["parameters"]["properties"]["agent_name"]["enum"]
    assert "crawl" in names
    assert pair not in names
    assert f"- {pair}" not in schema["description"]
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
        "tool 'call_subagent' leaves an agent out: "
        "agent `pair` does not take one instruction: it has the inputs one, two"
    ]


def test_agents_that_cannot_be_called_are_refused(toolkit: Toolkit, pair: str) -> None:
    reason = "there are no agents to call: agent `pair` does not take one instruction: it has the inputs one, two"
    with pytest.raises(ValueError, match=reason):
        toolkit.register_call_subagent([pair])
    with pytest.raises(ValueError, match="agent `gone` is not registered in the toolkit"):
        toolkit.register_call_subagent(["gone"])
    with pytest.raises(ValueError, match="there are no agents to call"):
        Toolkit().register_call_subagent()
    with pytest.raises(ValueError, match="mode must be 'run' or 'route', not 'walk'"):
        toolkit.register_call_subagent(mode="walk")  # type: ignore[arg-type]


def test_the_tool_may_be_used_by_itself() -> None:
    tool = CallSubagent({"search": "Searches."})

    assert tool.build({"agent_name": "search", "instruction": "x"}).describe() == "Delegate to search: x"
    with pytest.raises(errors.InvalidParametersError, match=r"^Invalid agent_name 'x'"):
        tool.build({"agent_name": "x", "instruction": "y"})


async def test_the_tool_of_artifactflow_answers_as_the_seed_does() -> None:
    tool = CallSubagentTool(["search_agent", "crawl_agent"])

    good = await tool(agent_name="search_agent", instruction=" find ")
    unknown = await tool(agent_name="x", instruction="find")
    blank = await tool(agent_name="search_agent", instruction=" ")
    missing = await tool(agent_name="search_agent")

    assert (good.success, good.data) == (True, {"agent_name": "search_agent", "instruction": "find"})
    assert good.metadata["routing"]["target"] == "search_agent"
    assert unknown.error == "Invalid agent_name 'x'. Must be one of: search_agent, crawl_agent"
    assert blank.error == "instruction parameter cannot be empty"
    assert missing.error == "Missing required parameter: instruction"
    assert tool.json_schema["function"]["parameters"]["properties"]["agent_name"]["enum"] == list(tool.agents)
