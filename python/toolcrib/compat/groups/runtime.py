"""`Runtime`: what an agent sees of the tools, and what it may run."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from toolcrib import Toolkit
from toolcrib.compat.groups.manager import Outcome, ToolGroupManager
from toolcrib.compat.groups.module_loader import ModuleLoader
from toolcrib.compat.groups.org import Org

__all__ = ["Runtime"]

Executor = Toolkit | Callable[[Any, str, Any], Any | Awaitable[Any]]

ROOT = "root"


class Runtime:
    """Shows agents the tools of their roles, and runs those and no others.

    Sight equals permission: both ask the same question, and an agent or a role that is not known is shown nothing and
    may run nothing. The runtime that had this interface first let those run everything.

    Args:
        toolGroupManager: The groups; a manager with the builtin ones if there is none.
        org: The roles and the agents.
        executor: Runs the tools that no module has: a toolkit, or a function of context, name and arguments.
    """

    def __init__(
        self,
        toolGroupManager: ToolGroupManager | None = None,
        org: Org | None = None,
        executor: Executor | None = None,
    ) -> None:
        """Bring groups, roles and modules together."""
        self.toolGroupManager = toolGroupManager or ToolGroupManager()
        self.org = org or Org()
        self.moduleLoader = ModuleLoader(self.toolGroupManager)
        self._executor = executor

    async def loadModules(self, modules: Iterable[Any] | Mapping[str, Any]) -> dict[str, Any]:
        """Load modules, each with its group of tools."""
        return await self.moduleLoader.loadModules(modules, self)

    async def shutdown(self) -> dict[str, Any]:
        """Shut the modules down."""
        return await self.moduleLoader.shutdown()

    def getToolDefinitionsForAgent(self, agentId: str) -> list[dict[str, Any]]:
        """Give the definitions of the tools that an agent may call."""
        return self.toolGroupManager.getToolDefinitions(self._groups_of({"id": agentId}))

    async def executeToolCall(self, ctx: Any, toolName: str, args: Any = None) -> Any:
        """Run a tool for the agent of a context, if the agent's role shows it.

        Args:
            ctx: `{"agent": {"id": ...}}`; the role is the one that the organisation knows of the agent.
            toolName: The tool.
            args: Its arguments.
        """
        agent, manager = _agent_of(ctx), self.toolGroupManager
        groups = (id for id in self._groups_of(agent) if manager.isToolInGroups(toolName, [id]))
        group = next(groups, None)
        if group is None:
            code = "tool_not_available" if manager.getToolGroup(toolName) else "unknown_tool"
            return _error(code, toolName, f"工具 {toolName} 对此岗位不可用")
        # The group that shows the tool says who runs it: a namesake in another group is somebody else's.
        if (module := self.moduleLoader.moduleOf(group)) is not None:
            return await self.moduleLoader.run(module, ctx, toolName, args)
        if self._executor is None:
            return _error("unknown_tool", toolName, f"nothing runs the tool {toolName}")
        if isinstance(self._executor, Toolkit):
            return await _through(self._executor, agent, toolName, args)
        result = self._executor(ctx, toolName, args)
        return await result if inspect.isawaitable(result) else result

    def setRoleToolGroups(self, roleId: str, toolGroups: Any) -> Outcome:
        """Choose the groups of a role; an empty list means the default, as clearing a form does."""
        if roleId in (ROOT, "user"):
            return Outcome(ok=False, error="cannot_modify_system_role")
        if self.org.getRole(roleId) is None:
            return Outcome(ok=False, error="role_not_found")
        if toolGroups is not None and not isinstance(toolGroups, list | tuple):
            return Outcome(ok=False, error="invalid_tool_groups")
        unknown = [group for group in toolGroups or () if not self.toolGroupManager.hasGroup(group)]
        if unknown:
            return Outcome(ok=False, error="invalid_tool_group_ids", invalidIds=unknown)
        self.org.updateRole(roleId, {"toolGroups": list(toolGroups) if toolGroups else None})
        return Outcome(ok=True)

    def _groups_of(self, agent: Mapping[str, Any]) -> list[str]:
        if agent.get("id") == ROOT:
            return ["org_management"]
        known = self.org.getAgent(agent.get("id"))
        role = self.org.getRole(known.get("roleId")) if known else None
        if role is None:
            return []
        groups = role["toolGroups"]
        return self.toolGroupManager.getAllGroupIds() if groups is None else list(groups)

    load_modules = loadModules
    get_tool_definitions_for_agent = getToolDefinitionsForAgent
    execute_tool_call = executeToolCall
    set_role_tool_groups = setRoleToolGroups


def _agent_of(ctx: Any) -> Mapping[str, Any]:
    agent = ctx.get("agent") if isinstance(ctx, Mapping) else getattr(ctx, "agent", None)
    if isinstance(agent, Mapping):
        return agent
    return {"id": getattr(agent, "id", None)}


def _error(code: str, tool: str, message: str) -> dict[str, Any]:
    return {"error": code, "toolName": tool, "message": message}


async def _through(toolkit: Toolkit, agent: Mapping[str, Any], name: str, args: Any) -> Any:
    """Call a tool of a toolkit on behalf of an agent, and give what it returned or the error it came to."""
    if not isinstance(args, Mapping | None):
        return _error("invalid_arguments", name, f"arguments are an object, not {type(args).__name__}")
    response = await toolkit.view(caller=str(agent.get("id"))).call(name, **(args or {}))
    if response.code is not None:
        return _error(response.code, name, response.text)
    metadata = response.metadata or {}
    return metadata.get("value", response.text)
