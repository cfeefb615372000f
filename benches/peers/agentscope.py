"""Drives AgentScope 1: the peer whose interface toolcrib keeps, and the fastest of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentscope.message import TextBlock
from agentscope.tool import Toolkit, ToolResponse

from benches.measure import AsyncLoop
from benches.peers import Peer
from benches.tools import block


class AgentScope(Peer):
    """Runs sync tools inline and checks no arguments."""

    package = "agentscope"
    statement = "from agentscope.tool import Toolkit, ToolResponse"
    answer = ToolResponse(content=[TextBlock(type="text", text="3")])
    streams = True

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


PEERS = (AgentScope,)
