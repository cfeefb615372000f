"""Scripts that take the classes of Agently's interface, and their transcripts."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from toolcrib.compat import agently as ours

# A script takes the three classes, and makes what it needs.
Script = Callable[[Any], Any]

OURS = SimpleNamespace(manager=ours.ToolManager, formatter=ours.DataFormatter, shifter=ours.FunctionShifter)


def transcript(script: Script, classes: Any) -> str:
    """Run a script, and write its result, or the exception that it raises, as text."""
    try:
        result = repr(script(classes))
    except (Exception, SystemExit) as error:
        result = f"{type(error).__name__}: {error}"
    return re.sub(r" at 0x[0-9a-f]+", "", result)
