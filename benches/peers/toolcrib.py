"""Drives toolcrib itself, as it comes and with AgentScope's answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benches.measure import AsyncLoop
from benches.peers import Peer
from benches.tools import block
from toolcrib import TextBlock, Toolkit, ToolResponse


class Toolcrib(Peer):
    """Runs sync tools in worker threads, converts and checks arguments."""

    package = "toolcrib"
    statement = "from toolcrib import Toolkit, ToolResponse"
    label = "**toolcrib**"
    answer = ToolResponse([TextBlock(type="text", text="3")])
    streams = True
    threads = True

    def kit(self) -> Any:
        return Toolkit()

    def register(self, kit: Any, function: Callable[..., Any]) -> None:
        kit.register_tool_function(function)

    def schemas(self, kit: Any) -> Any:
        return kit.get_json_schemas()

    def loop(self, kit: Any, name: str, arguments: dict[str, Any]) -> AsyncLoop:
        call, asked = kit.call_tool_function, block(name, arguments)

        async def run(times: int) -> None:
            for _ in range(times):
                async for _response in await call(asked):
                    pass

        return run


class AgentScopesAnswers(Toolcrib):
    """Runs sync tools inline and checks no arguments, as AgentScope does."""

    label = '**toolcrib**, `arguments="pass"`, `run_in="inline"`'
    threads = False

    def kit(self) -> Any:
        return Toolkit(arguments="pass", errors="compat", run_in="inline")


PEERS = (Toolcrib, AgentScopesAnswers)
