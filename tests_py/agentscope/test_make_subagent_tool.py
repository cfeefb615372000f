"""A real agent of AgentScope as a tool of another one, in both toolkits."""

from typing import Any

import pydantic
import pytest
from agentscope.agent import AgentBase, ReActAgent
from agentscope.formatter import OpenAIChatFormatter
from agentscope.memory import InMemoryMemory
from agentscope.message import Msg
from agentscope.tool import Toolkit as Original

from support.agentscope.scripted import ScriptedModel, ask, say
from toolcrib.compat.agentscope import SubAgentSpec, Toolkit, make_subagent_tool


class Task(pydantic.BaseModel):
    """A task."""

    query: str = pydantic.Field(description="The question.")


class Researcher(AgentBase):  # type: ignore[misc]
    """Researches a question."""

    InputModel = Task

    def __init__(self, name: str, model: Any, memory: Any) -> None:
        super().__init__()
        self.name, self.model, self.memory = name, model, memory

    async def reply(self, given: Task) -> Msg:
        """Answer with the number of messages in the memory."""
        remembered = await self.memory.get_memory()
        return Msg(self.name, f"{given.query}: {remembered[0].get_text_content()}", "assistant", {"score": 1})


class Thinker(ReActAgent):  # type: ignore[misc]
    """Thinks about a question."""

    InputModel = Task


def boss(model: ScriptedModel, toolkit: Any) -> ReActAgent:
    agent = ReActAgent(
        name="boss",
        sys_prompt="You are the boss.",
        model=model,
        formatter=OpenAIChatFormatter(),
        toolkit=toolkit,
        memory=InMemoryMemory(),
    )
    agent.set_console_output_enabled(False)
    return agent


@pytest.mark.parametrize("make", [Toolkit, Original])
async def test_an_agent_calls_another_as_a_tool(make: Any) -> None:
    model = ScriptedModel(ask(("research_tool", {"query": "why?"})), say("because"))
    host = boss(model, make())
    function, register_kwargs = await make_subagent_tool(Researcher, SubAgentSpec("research"), host=host)
    host.toolkit.register_tool_function(function, **register_kwargs)

    answer = await host(Msg("user", "ask them", "user"))

    assert answer.get_text_content() == "because"
    assert model.shown[0]["tools"][0]["function"]["parameters"]["properties"]["query"]["type"] == "string"
    assert "why?: why?" in str(model.shown[1]["messages"])


async def test_the_response_tells_of_the_delegation() -> None:
    host = boss(ScriptedModel(say("hello")), Toolkit())
    await host(Msg("user", "hi", "user"))
    function, register_kwargs = await make_subagent_tool(Researcher, SubAgentSpec("research"), host=host)
    host.toolkit.register_tool_function(function, **register_kwargs)
    block = {"type": "tool_use", "id": "1", "name": "research_tool", "input": {"query": "why?"}}

    (response,) = [response async for response in await host.toolkit.call_tool_function(block)]

    assert (response.metadata["subagent"], response.metadata["supervisor"]) == ("research", "boss")
    assert response.metadata["response_metadata"] == {"score": 1}
    conversation = response.metadata["delegation_context"]["conversation"]
    assert [message["role"] for message in conversation] == ["user", "assistant"]


async def test_a_react_agent_needs_no_reply_of_its_own() -> None:
    inner = ScriptedModel(ask(("shout", {"word": "hey"})), say("I thought about it"))
    host = boss(ScriptedModel(), Toolkit())

    def shout(word: str) -> str:
        """Shout.

        Args:
            word (str): The word.
        """
        return word.upper()

    spec = SubAgentSpec("thinker", tools=[shout], sys_prompt="You think.")
    function, register_kwargs = await make_subagent_tool(Thinker, spec, host=host, override_model=inner)
    host.toolkit.register_tool_function(function, **register_kwargs)
    block = {"type": "tool_use", "id": "1", "name": "thinker_tool", "input": {"query": "why?"}}

    (response,) = [response async for response in await host.toolkit.call_tool_function(block)]

    assert response.content[0]["text"] == "I thought about it"
    assert "why?" in str(inner.shown[0]["messages"])
    assert "HEY" in str(inner.shown[1]["messages"])
