"""The lock file of tool definitions: the report of `Toolkit.lock` and `Toolkit.verify`."""

from __future__ import annotations

from typing import Literal, TypeAlias

from toolcrib._core import DefinitionFlag, LockChange, LockDifference, LockReport

__all__ = ["ChangeClass", "DefinitionFlag", "LockChange", "LockDifference", "LockReport"]

ChangeClass: TypeAlias = Literal[
    "look_alike",
    "source",
    "breaking",
    "narrowed",
    "output_breaking",
    "output_widened",
    "riskier",
    "default",
    "widened",
    "added",
    "annotations",
    "output_narrowed",
    "description",
    "removed",
]
"""The class of a change, the most serious first."""
