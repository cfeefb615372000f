"""Drives pydantic-ai: a function toolset behind the manager that an agent's run uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RunUsage

from benches.measure import Loop
from benches.peers import Peer


class PydanticAI(Peer):
    """Checks arguments with pydantic."""

    package = "pydantic-ai-slim"
    statement = "from pydantic_ai.toolsets import FunctionToolset"
    threads = True

    def __init__(self) -> None:
        self._context: Any = RunContext(deps=None, model=TestModel(), usage=RunUsage())

    def kit(self) -> Any:
        return FunctionToolset()

    def register(self, kit: Any, function: Callable[..., Any]) -> None:
        kit.add_function(function)

    async def ready(self, kit: Any) -> None:
        kit.manager = await ToolManager(kit).for_run_step(self._context)

    async def schemas(self, kit: Any) -> Any:
        found = await kit.get_tools(self._context)
        return [made.tool_def.parameters_json_schema for made in found.values()]

    def loop(self, kit: Any, name: str, arguments: dict[str, Any]) -> Loop:
        handle = kit.manager.handle_call
        asked = ToolCallPart(tool_name=name, args=arguments, tool_call_id="1")

        async def run(times: int) -> None:
            for _ in range(times):
                await handle(asked)

        return run


PEERS = (PydanticAI,)
