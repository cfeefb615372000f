"""Drives what has AgentScope's interface: AgentScope itself, and toolcrib."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benches.measure import AsyncLoop
from benches.peers import Peer
from benches.tools import block


class Scoped(Peer):
    """Registers, lists and calls through the methods of AgentScope's toolkit."""

    streams = True

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
