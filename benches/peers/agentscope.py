"""Drives AgentScope 1: the peer whose interface toolcrib keeps, and the fastest of them."""

from __future__ import annotations

from typing import Any

from agentscope.message import TextBlock
from agentscope.tool import Toolkit, ToolResponse

from benches.peers.scoped import Scoped


class AgentScope(Scoped):
    """Runs sync tools inline and checks no arguments."""

    package = "agentscope"
    statement = "from agentscope.tool import Toolkit, ToolResponse"
    answer = ToolResponse(content=[TextBlock(type="text", text="3")])

    def kit(self) -> Any:
        return Toolkit()


PEERS = (AgentScope,)
