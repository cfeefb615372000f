"""Drives toolcrib itself, as it comes and with AgentScope's answers."""

from __future__ import annotations

from typing import Any

from benches.peers.scoped import Scoped
from toolcrib import TextBlock, Toolkit, ToolResponse


class Toolcrib(Scoped):
    """Runs sync tools in worker threads, converts and checks arguments."""

    package = "toolcrib"
    statement = "from toolcrib import Toolkit, ToolResponse"
    label = "**toolcrib**"
    answer = ToolResponse([TextBlock(type="text", text="3")])
    threads = True

    def kit(self) -> Any:
        return Toolkit()


class AgentScopesAnswers(Toolcrib):
    """Runs sync tools inline, checks no arguments and delivers chunks as they are given, as AgentScope does."""

    label = '**toolcrib**, `arguments="pass"`, `run_in="inline"`'
    threads = False

    def kit(self) -> Any:
        kit = Toolkit(arguments="pass", errors="compat", run_in="inline")
        kit._deliver_as_given()
        return kit


PEERS = (Toolcrib, AgentScopesAnswers)
