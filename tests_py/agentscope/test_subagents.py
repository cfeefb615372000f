"""Agents of AgentScope as sub-agents: a class, which is instantiated for each run, and an object."""

from __future__ import annotations

from typing import Any

from agentscope.agent import AgentBase, ReActAgent
from agentscope.formatter import DashScopeChatFormatter
from agentscope.memory import InMemoryMemory
from agentscope.message import Msg

from support.agentscope.scripted import ScriptedModel, ask, say
from toolcrib import AgentDefinition, AgentInput, Toolkit

FINDER = AgentDefinition(
    "finder",
    "Finds birds.",
    inputs={"kind": AgentInput("string", "The kind of bird.")},
    system_prompt="You find birds.",
    query="Find a ${kind}.",
    tools=["look"],
)


async def look(kind: str) -> str:
    """Look for a bird.

    Args:
        kind: The kind of bird.
    """
    return f"a {kind} in the hedge"


class Finder(AgentBase):  # type: ignore[misc]
    """An agent that calls one tool."""

    def __init__(self, name: str, sys_prompt: str, toolkit: Any) -> None:
        super().__init__()
        self.name, self.sys_prompt, self.toolkit = name, sys_prompt, toolkit

    async def reply(self, msg: Msg) -> Msg:
        found = await self.toolkit.call("look", kind="wren")
        return Msg(self.name, f"{msg.get_text_content()} {found.text} ({self.sys_prompt})", "assistant")

    async def observe(self, msg: Any) -> None:
        pass


def kit() -> Toolkit:
    toolkit = Toolkit()
    toolkit.register_tool_function(look)
    return toolkit


async def test_a_class_is_instantiated_for_each_run() -> None:
    toolkit = kit()
    toolkit.register_agent(FINDER, run=Finder)

    responses = [await toolkit.call("finder", kind="wren") for _ in range(2)]

    assert {response.text for response in responses} == {"Find a wren. a wren in the hedge (You find birds.)"}


async def test_an_agent_of_agentscope_uses_the_tools_of_its_run() -> None:
    model = ScriptedModel(ask(("look", {"kind": "wren"})), say("It is in the hedge."))

    class Reasoner(ReActAgent):  # type: ignore[misc]
        def __init__(self, name: str, sys_prompt: str, toolkit: Any) -> None:
            formatter, memory = DashScopeChatFormatter(), InMemoryMemory()
            super().__init__(name, sys_prompt, model, formatter, toolkit=toolkit, memory=memory)
            self.set_console_output_enabled(False)

    toolkit = kit()
    toolkit.register_tool_function(look, name="hidden")
    toolkit.register_agent(FINDER, run=Reasoner)

    assert (await toolkit.call("finder", kind="wren")).text == "It is in the hedge."
    assert [tool["function"]["name"] for tool in model.shown[0]["tools"]] == ["look"]
    assert "a wren in the hedge" in str(model.shown[-1]["messages"])


async def test_an_object_is_called_with_a_message() -> None:
    toolkit = kit()
    toolkit.register_agent(FINDER, run=Finder("finder", "You find birds.", toolkit))

    assert "a wren in the hedge" in (await toolkit.call("finder", kind="wren")).text
