"""Tool groups, roles and modules with camelCase names and `{ok, error}` results.

Every camelCase method has a snake_case twin. What there is to decide is decided by toolcrib's core, so that what a role
shows is what it allows; where that differs from the manager that had this interface first, the documentation says so.
"""

from toolcrib.compat.groups.manager import BUILTIN_TOOL_GROUPS, Outcome, ToolGroupManager
from toolcrib.compat.groups.module_loader import ModuleLoader
from toolcrib.compat.groups.org import Org
from toolcrib.compat.groups.runtime import Runtime

__all__ = ["BUILTIN_TOOL_GROUPS", "ModuleLoader", "Org", "Outcome", "Runtime", "ToolGroupManager"]
