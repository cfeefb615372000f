"""Drives langchain-core: structured tools called with tool calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from benches.measure import Loop
from benches.peers import Peer


class LangChain(Peer):
    """Checks arguments with pydantic; sync tools are called from sync code."""

    package = "langchain-core"
    statement = "from langchain_core.tools import StructuredTool"

    def register(self, kit: Any, function: Callable[..., Any]) -> None:
        waits = inspect.iscoroutinefunction(function)
        made: Any = StructuredTool.from_function(
            func=None if waits else function, coroutine=function if waits else None, parse_docstring=True
        )
        kit[made.name] = made

    def schemas(self, kit: Any) -> Any:
        return [convert_to_openai_tool(made) for made in kit.values()]

    def loop(self, kit: Any, name: str, arguments: dict[str, Any]) -> Loop:
        made = kit[name]
        asked = {"type": "tool_call", "id": "1", "name": name, "args": arguments}

        async def run(times: int) -> None:
            for _ in range(times):
                await made.ainvoke(asked)

        def run_sync(times: int) -> None:
            for _ in range(times):
                made.invoke(asked)

        return run if made.coroutine else run_sync


PEERS = (LangChain,)
