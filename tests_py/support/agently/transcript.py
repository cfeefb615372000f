"""Transcripts of scripts that run with Agently's classes and with toolcrib's."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from agently.builtins.plugins.ToolManager.AgentlyToolManager import AgentlyToolManager
from agently.utils import DataFormatter, FunctionShifter, Settings

from support.agently.script import OURS, Script, transcript


def _manager() -> Any:
    return AgentlyToolManager(Settings())


THEIRS = SimpleNamespace(manager=_manager, formatter=DataFormatter, shifter=FunctionShifter)


@dataclass
class Difference:
    """A transcript that differs, and the reason."""

    theirs: str
    ours: str
    reason: str


def compare(script: Script, difference: Difference | None) -> None:
    """Run a script with both; the transcripts must be equal, or be those of the difference."""
    theirs, ours = transcript(script, THEIRS), transcript(script, OURS)
    if difference is None:
        assert ours == theirs
    else:
        assert (theirs, ours) == (difference.theirs, difference.ours), difference.reason
