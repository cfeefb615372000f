"""Drives agno: functions executed as function calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agno.tools.function import Function, FunctionCall

from benches.measure import Loop
from benches.peers import Peer


class Agno(Peer):
    """Checks arguments with pydantic; runs sync tools inline."""

    package = "agno"
    statement = "from agno.tools.function import Function, FunctionCall"
    streams = True

    def register(self, kit: Any, function: Callable[..., Any]) -> None:
        made: Any = Function.from_callable(function)
        made.process_entrypoint()
        kit[made.name] = made

    def schemas(self, kit: Any) -> Any:
        return [made.to_dict() for made in kit.values()]

    def loop(self, kit: Any, name: str, arguments: dict[str, Any]) -> Loop:
        made = kit[name]

        async def run(times: int) -> None:
            for _ in range(times):
                await FunctionCall(function=made, arguments=dict(arguments), call_id="1").aexecute()

        return run

    def stream(self, kit: Any, name: str, arguments: dict[str, Any]) -> Loop:
        made = kit[name]

        async def run(times: int) -> None:
            for _ in range(times):
                call = FunctionCall(function=made, arguments=dict(arguments), call_id="1")
                done: Any = await call.aexecute()
                async for _chunk in done.result:
                    pass

        return run


PEERS = (Agno,)
