"""`ModuleLoader`: modules that define tools and run them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from toolcrib.compat.groups.manager import ToolGroupManager, name_of
from toolcrib.modules import Loader, settled

__all__ = ["ModuleLoader", "call_error"]

log = logging.getLogger("toolcrib")


class ModuleLoader:
    """Loads modules, registers their groups, and runs their tools.

    A module has a `name` and the functions `getToolDefinitions()`, `executeToolCall(ctx, toolName, args)`,
    `init(runtime, config)` and `shutdown()`; all but the first may be asynchronous. `toolGroupId` and
    `toolGroupDescription` describe its group.

    Args:
        toolGroupManager: The registry of the groups.
    """

    def __init__(self, toolGroupManager: ToolGroupManager) -> None:
        """Start without modules."""
        self._manager = toolGroupManager
        # By group: a role runs the tool of the group that shows it, even if another group has a tool of that name.
        self._by_group: dict[str, Any] = {}
        functions = ("getToolDefinitions", "executeToolCall", "init", "shutdown")
        self._loader = Loader(functions, self._install, self._remove)

    async def loadModules(self, modules: Iterable[Any] | Mapping[str, Any], runtime: Any = None) -> dict[str, Any]:
        """Load modules one after the other; a module that fails does not stop the others.

        Args:
            modules: The modules: objects, or import paths; a mapping gives each path its configuration.
            runtime: The first argument of `init`; the second is the configuration.
        """
        report = await self._loader.load(modules, runtime)
        errors = [{"module": failure.module, "error": failure.error} for failure in report.errors]
        return {"loaded": report.loaded, "errors": errors}

    async def executeToolCall(self, ctx: Any, toolName: str, args: Any) -> Any:
        """Run a tool of a module; if several modules have a tool of this name, that of the latest one."""
        module = self.moduleOf(self._manager.getToolGroup(toolName))
        if module is None:
            return call_error("unknown_module_tool", toolName, f"no module has a tool {toolName}")
        return await self.run(module, ctx, toolName, args)

    async def run(self, module: Any, ctx: Any, toolName: str, args: Any) -> Any:
        """Run a tool of this module."""
        if module not in self._loader.modules.values():
            return call_error("module_not_loaded", toolName, f"the module {module.name} is not loaded")
        try:
            return await settled(module.executeToolCall(ctx, toolName, args))
        except Exception as error:
            return call_error("module_tool_error", toolName, str(error) or type(error).__name__)

    def moduleOf(self, groupId: str | None) -> Any:
        """Return the module of a group, or `None`."""
        return None if groupId is None else self._by_group.get(groupId)

    async def shutdown(self) -> dict[str, Any]:
        """Unregister the groups and shut every module down."""
        report = await self._loader.shutdown()
        errors = [{"module": failure.module, "error": failure.error} for failure in report.errors]
        return {"ok": not errors, "errors": errors}

    def _install(self, module: Any) -> None:
        definitions = list(module.getToolDefinitions() or ())
        if not definitions:
            return
        group = _group_of(module)
        for name in filter(None, map(name_of, definitions)):
            if holder := self._manager.getToolGroup(name):
                log.warning("the tool '%s' of group '%s' is in group '%s' too", name, group, holder)
        if self._manager.hasGroup(group):
            # Replacing it would hide the tools of another module.
            log.warning("the module '%s' has no group: there is a tool group '%s' already", module.name, group)
            return
        description = getattr(module, "toolGroupDescription", None) or ""
        self._by_group[group] = module
        self._manager.registerGroup(group, {"description": description, "tools": definitions})

    def _remove(self, module: Any) -> None:
        group = _group_of(module)
        if self._by_group.get(group) is module:
            del self._by_group[group]
            self._manager.unregisterGroup(group)

    load_modules = loadModules
    execute_tool_call = executeToolCall
    module_of = moduleOf


def _group_of(module: Any) -> str:
    group: str = getattr(module, "toolGroupId", None) or module.name
    return group


def call_error(code: str, tool: str, message: str) -> dict[str, Any]:
    """Return the result of a call that failed."""
    return {"error": code, "toolName": tool, "message": message}
