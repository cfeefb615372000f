"""Drives openai-agents: function tools invoked with JSON text."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from agents import function_tool
from agents.models.openai_responses import Converter
from agents.tool_context import ToolContext

from benches.measure import Loop
from benches.peers import Peer


class OpenAIAgents(Peer):
    """Parses and checks arguments with pydantic."""

    package = "openai-agents"
    statement = "from agents import function_tool"
    threads = True

    def register(self, kit: Any, function: Callable[..., Any]) -> None:
        made: Any = function_tool(function)
        kit[made.name] = made

    def schemas(self, kit: Any) -> Any:
        return Converter.convert_tools(list(kit.values()), []).tools

    def loop(self, kit: Any, name: str, arguments: dict[str, Any]) -> Loop:
        invoke, text = kit[name].on_invoke_tool, json.dumps(arguments)
        context = ToolContext(context=None, tool_name=name, tool_call_id="1", tool_arguments=text)

        async def run(times: int) -> None:
            for _ in range(times):
                await invoke(context, text)

        return run


PEERS = (OpenAIAgents,)
