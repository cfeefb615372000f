"""An agent of AgentScope 1.x with toolcrib's toolkit. It needs `pip install agentscope==1.0.21`, but no API key.

The model is scripted, so the example runs anywhere. Any of AgentScope's models can replace it.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from agentscope.agent import ReActAgent
from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import Msg
from agentscope.model import ChatModelBase, ChatResponse

# The one line that changes: it was `from agentscope.tool import Toolkit`.
from toolcrib.compat.agentscope import Toolkit

SCRIPT: list[list[dict[str, Any]]] = [
    [{"type": "tool_use", "id": "1", "name": "reset_equipped_tools", "input": {"machines": True}}],
    [
        {"type": "tool_use", "id": "2", "name": "saw", "input": {"boards": 2}},
        {"type": "tool_use", "id": "3", "name": "measure", "input": {"what": "shelf"}},
    ],
    [{"type": "text", "text": "The shelf is 80 cm wide, and its two boards are sawn."}],
]


class ScriptedModel(ChatModelBase):  # type: ignore[misc] # AgentScope is not installed for type checks
    """A model that follows the script."""

    def __init__(self) -> None:
        super().__init__("scripted", stream=False)
        self.turns = iter(SCRIPT)

    async def __call__(self, *_: Any, **__: Any) -> ChatResponse:
        """Return the next turn."""
        return ChatResponse(content=next(self.turns))


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
        yield f"{board} of {boards} boards sawn"


async def main() -> None:
    """Run the agent."""
    toolkit = Toolkit()
    toolkit.create_tool_group("machines", "Machines that need care.", notes="Wear goggles.")
    toolkit.register_tool_function(measure)
    toolkit.register_tool_function(saw, group_name="machines")
    agent = ReActAgent(
        name="Joiner",
        sys_prompt="You build shelves.",
        model=ScriptedModel(),
        formatter=OpenAIChatFormatter(),
        toolkit=toolkit,
        enable_meta_tool=True,
    )
    await agent(Msg("user", "Build me a shelf.", "user"))


if __name__ == "__main__":
    asyncio.run(main())
