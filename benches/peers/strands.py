"""Drives strands: decorated tools read as streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from strands import tool

from benches.measure import Loop
from benches.peers import Peer


class Strands(Peer):
    """Checks arguments with pydantic."""

    package = "strands-agents"
    statement = "from strands import tool"
    streams = True
    threads = True

    def register(self, kit: Any, function: Callable[..., Any]) -> None:
        made: Any = tool(function)
        kit[made.tool_name] = made

    def schemas(self, kit: Any) -> Any:
        return [made.tool_spec for made in kit.values()]

    def loop(self, kit: Any, name: str, arguments: dict[str, Any]) -> Loop:
        stream = kit[name].stream
        asked = {"toolUseId": "1", "name": name, "input": arguments}
        state: dict[str, Any] = {}

        async def run(times: int) -> None:
            for _ in range(times):
                async for _event in stream(asked, state):
                    pass

        return run


PEERS = (Strands,)
