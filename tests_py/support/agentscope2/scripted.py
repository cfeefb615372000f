"""A model that follows a script, and records what it was shown."""

import copy
import json
from typing import Any

from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import Msg, TextBlock, ToolCallBlock
from agentscope.model import ChatModelBase, ChatResponse
from pydantic import BaseModel

Turn = list[TextBlock | ToolCallBlock]


def say(text: str) -> Turn:
    """Let the model answer with text."""
    return [TextBlock(text=text)]


def ask(*calls: tuple[str, Any]) -> Turn:
    """Let the model ask for tools; the model numbers its calls. Text is sent as it is."""
    return [
        ToolCallBlock(id="", name=name, input=given if isinstance(given, str) else json.dumps(given))
        for name, given in calls
    ]


class ScriptedModel(ChatModelBase):
    """Take one turn of the script each time it is called."""

    class Parameters(BaseModel):
        """No parameters."""

    def __init__(self, *turns: Turn) -> None:
        super().__init__(None, "scripted", self.Parameters(), stream=False, max_retries=0)
        self.formatter = OpenAIChatFormatter()
        self.turns = list(turns)
        self.calls = 0
        self.shown: list[dict[str, Any]] = []

    async def _call_api(
        self, model_name: str, messages: list[Msg], tools: Any = None, tool_choice: Any = None, **options: Any
    ) -> ChatResponse:
        shown = {"messages": [message.model_dump() for message in messages], "tools": copy.deepcopy(tools)}
        self.shown.append(shown)
        turn = [block.model_copy(deep=True) for block in self.turns.pop(0)]
        for block in turn:
            if isinstance(block, ToolCallBlock):
                block.id = f"call-{self.calls}"
                self.calls += 1
        return ChatResponse(content=turn, is_last=True)

    async def count_tokens(self, *_: Any, **__: Any) -> int:
        return 1
