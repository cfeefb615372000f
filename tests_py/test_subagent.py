"""`make_subagent_tool` without AgentScope: its shape, its schema and its answers."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pydantic
import pytest

import toolcrib
from toolcrib import errors
from toolcrib.agent import SubAgentSpec, SubAgentUnavailable, make_subagent_tool
from toolcrib.compat import agentscope


class Memory:
    """A memory that records what is done with it."""

    def __init__(self, *messages: Any) -> None:
        self.messages = list(messages)
        self.is_cleared = False

    async def get_memory(self) -> list[Any]:
        return self.messages

    async def clear(self) -> None:
        self.is_cleared = True


class Researcher:
    """Researches a question."""

    class InputModel(pydantic.BaseModel):
        """The input."""

        query: str = pydantic.Field(description="The question.", min_length=2)
        depth: int = 1

    made: list["Researcher"]

    def __init__(self, name: str, model: Any, delegation_context: dict[str, Any]) -> None:
        self.name, self.model, self.context = name, model, delegation_context
        self.memory = Memory()
        type(self).made.append(self)

    async def reply(self, given: Any) -> Any:
        if given.query == "fail":
            raise LookupError("nothing there")
        if given.query == "wait":
            await asyncio.Event().wait()
        return SimpleNamespace(content=f"found {given.query} at {given.depth}", metadata={"score": 1})


def host(**more: Any) -> Any:
    result = {"role": "system", "content": [{"type": "tool_result", "id": "1"}]}
    memory = Memory({"role": "user", "content": "hello"}, *[result] * 6)
    Researcher.made = []
    return SimpleNamespace(**{"name": "boss", "model": "m", "memory": memory, "toolkit": None, **more})


async def registered(owner: Any, toolkit: toolcrib.Toolkit | None = None, **options: Any) -> toolcrib.Toolkit:
    toolkit = toolkit or toolcrib.Toolkit()
    owner.toolkit = toolkit
    function, register_kwargs = await make_subagent_tool(Researcher, SubAgentSpec("research"), host=owner, **options)
    toolkit.register_tool_function(function, **register_kwargs)
    return toolkit


async def test_a_class_of_agents_becomes_a_function_and_its_options() -> None:
    function, register_kwargs = await make_subagent_tool(Researcher, SubAgentSpec("research"), host=host())

    assert function.__name__ == "research_tool"
    assert set(register_kwargs) == {"func_description", "json_schema", "preset_kwargs", "group_name"}
    assert (register_kwargs["preset_kwargs"], register_kwargs["group_name"]) == ({}, "subagents")
    assert register_kwargs["func_description"] == "Researches a question."
    parameters = register_kwargs["json_schema"]["function"]["parameters"]
    assert parameters["properties"]["query"] == {"description": "The question.", "minLength": 2, "type": "string"}
    assert parameters["required"] == ["query"]
    assert '"title"' not in json.dumps(parameters)


@pytest.mark.parametrize("make", [toolcrib.Toolkit, agentscope.Toolkit])
async def test_registering_without_the_schema_is_an_error(make: Any) -> None:
    function, register_kwargs = await make_subagent_tool(
        Researcher, SubAgentSpec("research"), host=host(), tool_name="look"
    )
    toolkit = make()

    with pytest.raises(errors.InvalidSchemaError, match="tool `look` must be registered with its `json_schema`"):
        toolkit.register_tool_function(function)

    assert list(toolkit.tools) == []
    toolkit.create_tool_group("subagents", "Agents.", active=True)
    toolkit.register_tool_function(function, **register_kwargs)
    (schema,) = toolkit.get_json_schemas()
    assert list(schema["function"]["parameters"]["properties"]) == ["query", "depth"]


async def test_each_call_has_an_agent_of_its_own() -> None:
    owner = host()
    toolkit = await registered(owner)
    trial = len(Researcher.made)

    for query in ("one", "two"):
        response = await toolkit.call("research_tool", query=query, depth=2)

    assert response.text == "found two at 2"
    assert (len(Researcher.made) - trial, trial) == (2, 1)
    assert Researcher.made[-1].model == "m"
    assert all(agent.memory.is_cleared for agent in Researcher.made[trial:])
    context = Researcher.made[-1].context
    assert len(context["conversation"]) == 7
    assert len(context["recent_tool_results"]) == 4
    assert (context["long_term_refs"], context["safety_flags"]) == ([], {})
    assert response.metadata == {
        "subagent": "research",
        "supervisor": "boss",
        "delegation_context": context,
        "response_metadata": {"score": 1},
    }


async def test_memory_may_be_kept() -> None:
    toolkit = await registered(host(), ephemeral_memory=False)

    await toolkit.call("research_tool", query="one")

    assert not Researcher.made[-1].memory.is_cleared


async def test_another_model_may_be_used() -> None:
    toolkit = await registered(host(model=None), override_model="other")

    await toolkit.call("research_tool", query="one")

    assert Researcher.made[-1].model == "other"


async def test_input_that_does_not_fit_is_answered() -> None:
    toolkit = await registered(host(), agentscope.Toolkit())
    block = {"type": "tool_use", "id": "1", "name": "research_tool", "input": {"query": 5}}

    responses = [response async for response in await toolkit.call_tool_function(block)]

    (response,) = responses
    assert response.text.startswith("Subagent input validation failed.")
    assert response.metadata is not None
    assert (response.metadata["unavailable"], response.metadata["subagent"]) == (True, "research")
    assert response.metadata["supervisor"] == "boss"
    assert response.metadata["error"][0]["loc"] == ("query",)


async def test_an_agent_that_fails_is_answered() -> None:
    toolkit = await registered(host())

    response = await toolkit.call("research_tool", query="fail")

    assert response.text == "Subagent execution unavailable. See metadata for diagnostics."
    assert response.metadata is not None
    assert response.metadata["unavailable"] is True
    assert response.metadata["error"] == [{"type": "LookupError", "message": "nothing there"}]
    assert Researcher.made[-1].memory.is_cleared


async def test_a_cancelled_call_cleans_up() -> None:
    toolkit = await registered(host())

    task = asyncio.create_task(toolkit.call("research_tool", query="wait"))
    await asyncio.sleep(0.01)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert Researcher.made[-1].memory.is_cleared


@pytest.mark.parametrize(
    ("cls", "more", "text"),
    [
        (object, {}, "its class has no pydantic model `InputModel`"),
        (Researcher, {"model": None}, "the host has no `model`: pass `override_model`"),
        (Researcher, {"parallel_tool_calls": True}, "the host calls tools in parallel"),
        (type("Broken", (Researcher,), {"__init__": lambda self: 1 / 0}), {}, "cannot be constructed: division"),
        (type("Mute", (Researcher,), {"reply": None}), {}, "cannot be constructed: Mute has no method `reply`"),
    ],
)
async def test_a_sub_agent_that_cannot_work_is_unavailable(cls: Any, more: dict[str, Any], text: str) -> None:
    with pytest.raises(SubAgentUnavailable, match=text) as raised:
        await make_subagent_tool(cls, SubAgentSpec("research"), host=host(**more))

    assert isinstance(raised.value, RuntimeError)
    assert str(raised.value).startswith("sub-agent `research`")
