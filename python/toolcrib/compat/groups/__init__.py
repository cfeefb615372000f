"""Tool groups, roles and modules with camelCase names and `{ok, error}` results.

Every camelCase method has a snake_case alias. toolcrib's core makes all decisions, so that a role allows exactly what
it shows; the documentation lists the differences from the original `ToolGroupManager`.
"""

from toolcrib.compat.groups.manager import BUILTIN_TOOL_GROUPS, Outcome, ToolGroupManager
from toolcrib.compat.groups.module_loader import ModuleLoader
from toolcrib.compat.groups.org import Org
from toolcrib.compat.groups.runtime import Runtime

__all__ = ["BUILTIN_TOOL_GROUPS", "ModuleLoader", "Org", "Outcome", "Runtime", "ToolGroupManager"]
