"""`Runtime`: the tools that each agent sees and may run."""

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

    An agent may run exactly the tools that it sees. An unknown agent or role sees and runs nothing; in the original
    runtime it could run every tool.

    Args:
        toolGroupManager: The groups; by default a manager with the builtin groups.
        org: The roles and the agents.
        executor: Runs the tools that belong to no module: a toolkit, or a function of context, name and arguments.
    """

    def __init__(
        self,
        toolGroupManager: ToolGroupManager | None = None,
        org: Org | None = None,
        executor: Executor | None = None,
    ) -> None:
        """Connect groups, roles and modules."""
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
        """Return the definitions of the tools that an agent may call."""
        return self.toolGroupManager.getToolDefinitions(self._groups_of({"id": agentId}))

    async def executeToolCall(self, ctx: Any, toolName: str, args: Any = None) -> Any:
        """Run a tool for the agent of a context, if the agent's role shows it.

        Args:
            ctx: `{"agent": {"id": ...}}`; the role is looked up in the organisation.
            toolName: The tool.
            args: Its arguments.
        """
        agent, manager = _agent_of(ctx), self.toolGroupManager
        groups = (id for id in self._groups_of(agent) if manager.isToolInGroups(toolName, [id]))
        group = next(groups, None)
        if group is None:
            code = "tool_not_available" if manager.getToolGroup(toolName) else "unknown_tool"
            return _error(code, toolName, f"工具 {toolName} 对此岗位不可用")
        # The module of the group that shows the tool runs it; another group may have a tool of the same name.
        if (module := self.moduleLoader.moduleOf(group)) is not None:
            return await self.moduleLoader.run(module, ctx, toolName, args)
        if self._executor is None:
            return _error("unknown_tool", toolName, f"nothing runs the tool {toolName}")
        if isinstance(self._executor, Toolkit):
            return await _through(self._executor, agent, toolName, args)
        result = self._executor(ctx, toolName, args)
        return await result if inspect.isawaitable(result) else result

    def setRoleToolGroups(self, roleId: str, toolGroups: Any) -> Outcome:
        """Set the groups of a role; an empty list means the default, as for a cleared form."""
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
    """Call a tool of a toolkit on behalf of an agent, and return its value or its error."""
    if not isinstance(args, Mapping | None):
        return _error("invalid_arguments", name, f"arguments are an object, not {type(args).__name__}")
    response = await toolkit.view(caller=str(agent.get("id"))).call(name, **(args or {}))
    if response.code is not None:
        return _error(response.code, name, response.text)
    metadata = response.metadata or {}
    return metadata.get("value", response.text)
