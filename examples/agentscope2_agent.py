"""An agent of AgentScope 2.x with toolcrib's tools. It needs `pip install "agentscope>=2,<3"`, but no API key.

The model is scripted, so the example runs anywhere. Any of AgentScope's models can replace it.

Run it with `a` for AgentScope's own toolkit with toolcrib's tools in it, and with `b`, the default, for toolcrib's
toolkit in its place.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import agentscope.tool
from agentscope.agent import Agent
from agentscope.event import ConfirmResult, RequireUserConfirmEvent, UserConfirmResultEvent
from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import TextBlock, ToolCallBlock, UserMsg
from agentscope.model import ChatModelBase, ChatResponse
from pydantic import BaseModel

from toolcrib import Policy, Toolkit
from toolcrib.compat import agentscope2
from toolcrib.policy import Rule

SCRIPT: list[list[tuple[str, dict[str, Any]]] | str] = [
    [("reset_tools", {"machines": True})],
    [("saw", {"boards": 2}), ("measure", {"what": "shelf"})],
    "The shelf is 80 cm wide, and its two boards are sawn.",
]


class ScriptedModel(ChatModelBase):  # type: ignore[misc] # AgentScope is not installed for type checks
    """A model that follows the script."""

    class Parameters(BaseModel):
        """No parameters."""

    def __init__(self) -> None:
        super().__init__(None, "scripted", self.Parameters(), stream=False, max_retries=0)
        self.formatter = OpenAIChatFormatter()
        self.turns = iter(enumerate(SCRIPT))

    async def _call_api(self, *_: Any, **__: Any) -> ChatResponse:
        turn, said = next(self.turns)
        if isinstance(said, str):
            return ChatResponse(content=[TextBlock(text=said)], is_last=True)
        calls = [
            ToolCallBlock(id=f"call-{turn}-{number}", name=name, input=json.dumps(given))
            for number, (name, given) in enumerate(said)
        ]
        return ChatResponse(content=calls, is_last=True)


async def measure(what: str) -> str:
    """Measure something.

    Args:
        what: The thing to measure.
    """
    await asyncio.sleep(0)
    return f"{what}: 80 cm"


async def saw(boards: int) -> AsyncIterator[str]:
    """Saw boards.

    Args:
        boards: How many.
    """
    for board in range(1, boards + 1):
        await asyncio.sleep(0)
        yield f"{board} of {boards} boards sawn. "


def workshop() -> Toolkit:
    """Make the tools: reading tools run, and the saw asks the user."""
    kit = Toolkit(policy=Policy([Rule("ask", kind="execute", reason="the saw is sharp")]))
    kit.create_tool_group("machines", "Machines that need care.", notes="Wear goggles.")
    kit.register_tool_function(measure, kind="read")
    kit.register_tool_function(saw, group_name="machines", kind="execute")
    return kit


async def main(design: str) -> None:
    """Run the agent, and answer its question."""
    kit = workshop()
    if design == "a":
        toolkit = agentscope.tool.Toolkit(tools=agentscope2.tools(kit), tool_groups=agentscope2.tool_groups(kit))
    else:
        toolkit = agentscope2.Toolkit(toolkit=kit)
    agent = Agent(name="Joiner", system_prompt="You build shelves.", model=ScriptedModel(), toolkit=toolkit)
    question = await reply(agent, UserMsg("user", "Build me a shelf."))
    while question is not None:
        answers = []
        for call in question.tool_calls:
            print(f"? may it call {call.name}({call.input}): yes")
            answers.append(ConfirmResult(confirmed=True, tool_call=call, rules=None))
        question = await reply(agent, UserConfirmResultEvent(reply_id=question.reply_id, confirm_results=answers))
    print(agent.state.context[-1].get_text_content())


async def reply(agent: Agent, inputs: Any) -> RequireUserConfirmEvent | None:
    """Print what the tools say; return the question that the reply ends with."""
    question = None
    async for event in agent.reply_stream(inputs):
        if isinstance(event, RequireUserConfirmEvent):
            question = event
        elif type(event).__name__ == "ToolResultTextDeltaEvent":
            print(event.tool_call_id, event.delta)
    return question


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "b"))
