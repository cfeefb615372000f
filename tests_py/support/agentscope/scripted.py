"""A model that follows a script, and records what it was shown."""

import copy
from collections.abc import AsyncGenerator
from typing import Any

from agentscope.model import ChatModelBase, ChatResponse

Blocks = list[dict[str, Any]]


def say(text: str) -> Blocks:
    """Let the model answer with text."""
    return [{"type": "text", "text": text}]


def ask(*calls: tuple[str, dict[str, Any]]) -> Blocks:
    """Let the model ask for tools; the calls are numbered within the turn."""
    return [
        {"type": "tool_use", "id": f"call-{index}", "name": name, "input": arguments}
        for index, (name, arguments) in enumerate(calls)
    ]


class ScriptedModel(ChatModelBase):
    """Take one turn of the script each time it is called."""

    def __init__(self, *turns: Blocks, stream: bool = False) -> None:
        super().__init__("scripted", stream)
        self.turns = list(turns)
        self.shown: list[dict[str, Any]] = []

    async def __call__(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None, **options: Any
    ) -> ChatResponse | AsyncGenerator[ChatResponse, None]:
        self.shown.append(copy.deepcopy({"messages": messages, "tools": tools, **options}))
        turn = ChatResponse(content=copy.deepcopy(self.turns.pop(0)))
        if not self.stream:
            return turn

        async def chunks() -> AsyncGenerator[ChatResponse, None]:
            yield turn

        return chunks()
