"""Transcripts of scripts that run with Agently's classes and with toolcrib's."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from agently.builtins.plugins.ToolManager.AgentlyToolManager import AgentlyToolManager
from agently.utils import DataFormatter, FunctionShifter, Settings

from toolcrib.compat import agently as ours

# A script takes the three classes, and makes what it needs.
Script = Callable[[Any], Any]


def _manager() -> Any:
    return AgentlyToolManager(Settings())


THEIRS = SimpleNamespace(manager=_manager, formatter=DataFormatter, shifter=FunctionShifter)
OURS = SimpleNamespace(manager=ours.ToolManager, formatter=ours.DataFormatter, shifter=ours.FunctionShifter)


@dataclass
class Difference:
    """A transcript that differs, and the reason."""

    theirs: str
    ours: str
    reason: str


def transcript(script: Script, classes: Any) -> str:
    """Run a script, and write its result, or the exception that it raises, as text."""
    try:
        result = repr(script(classes))
    except (Exception, SystemExit) as error:
        result = f"{type(error).__name__}: {error}"
    return re.sub(r" at 0x[0-9a-f]+", "", result)


def compare(script: Script, difference: Difference | None) -> None:
    """Run a script with both; the transcripts must be equal, or be those of the difference."""
    theirs, ours = transcript(script, THEIRS), transcript(script, OURS)
    if difference is None:
        assert ours == theirs
    else:
        assert (theirs, ours) == (difference.theirs, difference.ours), difference.reason
