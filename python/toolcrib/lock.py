"""The lock file of tool definitions: the report of `Toolkit.lock` and `Toolkit.verify`."""

from __future__ import annotations

from toolcrib._core import DefinitionFlag, LockChange, LockDifference, LockReport

__all__ = ["DefinitionFlag", "LockChange", "LockDifference", "LockReport"]
