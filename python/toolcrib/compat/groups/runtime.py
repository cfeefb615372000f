"""`Runtime`: the tools that each agent sees and may run."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib import Toolkit, ToolkitView, ToolResponse
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
        executor: Runs the tools that belong to no module: a toolkit, or a function of context, name and arguments. The
            policy, the approver and the audit log of a toolkit apply to the tools of modules, too.
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

        A call that waits for the approval of the executor's toolkit has the error `pending`, and the `pending` value.

        Args:
            ctx: `{"agent": {"id": ...}}`; the role is looked up in the organisation.
            toolName: The tool.
            args: Its arguments.
        """
        run = self._admit(ctx, toolName)
        return await run.call(args) if isinstance(run, _Admitted) else run

    async def resumeToolCall(self, ctx: Any, toolName: str, pending: Any, approved: bool) -> Any:
        """Continue a call that waits for approval, once.

        Args:
            ctx: The context of the call.
            toolName: The tool.
            pending: The `pending` value of the call.
            approved: True to run the call; anything else denies it.

        Raises:
            ApprovalError: If the value was used before, has expired, was modified, or belongs to another call.
        """
        run = self._admit(ctx, toolName)
        return await run.resume(pending, approved) if isinstance(run, _Admitted) else run

    def _admit(self, ctx: Any, toolName: str) -> _Admitted | dict[str, Any]:
        """Find the group that shows a tool to the agent, and what runs the tool; or the error."""
        agent, manager = _agent_of(ctx), self.toolGroupManager
        groups = (id for id in self._groups_of(agent) if manager.isToolInGroups(toolName, [id]))
        group = next(groups, None)
        if group is None:
            code = "tool_not_available" if manager.getToolGroup(toolName) else "unknown_tool"
            return _error(code, toolName, f"工具 {toolName} 对此岗位不可用")
        # The module of the group that shows the tool runs it; another group may have a tool of the same name.
        module, executor = self.moduleLoader.moduleOf(group), self._executor
        if module is None and executor is None:
            return _error("unknown_tool", toolName, f"nothing runs the tool {toolName}")

        def run(args: Any) -> Any:
            if module is not None:
                return self.moduleLoader.run(module, ctx, toolName, args)
            assert callable(executor)
            return executor(ctx, toolName, args)

        toolkit = executor if isinstance(executor, Toolkit) else None
        own = None if toolkit is not None and module is None else run
        return _Admitted(group, toolName, str(agent.get("id")), own, toolkit)

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
    resume_tool_call = resumeToolCall
    set_role_tool_groups = setRoleToolGroups


def _agent_of(ctx: Any) -> Mapping[str, Any]:
    agent = ctx.get("agent") if isinstance(ctx, Mapping) else getattr(ctx, "agent", None)
    if isinstance(agent, Mapping):
        return agent
    return {"id": getattr(agent, "id", None)}


def _error(code: str, tool: str, message: str) -> dict[str, Any]:
    return {"error": code, "toolName": tool, "message": message}


@dataclass(frozen=True)
class _Admitted:
    """A tool that an agent may run.

    Args:
        group: The group that shows it.
        tool: Its name.
        caller: The id of the agent.
        run: Runs it with arguments; None if it is a tool of the toolkit.
        toolkit: The toolkit whose policy decides, if there is one.
    """

    group: str
    tool: str
    caller: str
    run: Callable[[Any], Any] | None
    toolkit: Toolkit | None

    async def call(self, args: Any) -> Any:
        if self.toolkit is None:
            assert self.run is not None
            return await _settled(self.run(args))
        if not isinstance(args, Mapping | None):
            return _error("invalid_arguments", self.tool, f"arguments are an object, not {type(args).__name__}")
        results: list[Any] = []
        return self._answer(await self._view(self.toolkit, results).call(self.tool, **(args or {})), results)

    async def resume(self, pending: Any, approved: bool) -> Any:
        if self.toolkit is None:
            return _error("unknown_tool", self.tool, f"no call of {self.tool} waits for approval")
        results: list[Any] = []
        last = None
        async for response in self._view(self.toolkit, results).resume(pending, approved is True):
            last = response
        return self._answer(last, results)

    def _view(self, toolkit: Toolkit, results: list[Any]) -> ToolkitView:
        """The toolkit for the agent, or one with the tool of a module and the same rules and approvals."""
        run = self.run
        if run is None:
            return toolkit.view(caller=self.caller)

        async def run_module(**args: Any) -> None:
            results.append(await _settled(run(args)))

        guarded = Toolkit(
            arguments="pass",
            policy=toolkit.policy,
            approver=toolkit.approver,
            approver_timeout=toolkit.approver_timeout,
            headless=toolkit.headless,
            approvals=toolkit.approvals,
            audit=toolkit.audit,
        )
        if self.group not in guarded.groups:
            guarded.create_tool_group(self.group, "", active=True)
        # The arguments of modules are not checked, as their definitions are not.
        schema = {"type": "function", "function": {"name": self.tool, "description": "", "parameters": {}}}
        guarded.register_tool_function(run_module, self.group, func_name=self.tool, json_schema=schema)
        return guarded.view(caller=self.caller)

    def _answer(self, response: ToolResponse | None, results: list[Any]) -> Any:
        """The value of a tool, or its error."""
        if results:
            return results[0]
        if response is None:
            return None
        metadata = response.metadata or {}
        if response.code is None:
            return metadata.get("value", response.text)
        error = _error(response.code, self.tool, response.text)
        return {**error, "pending": metadata["pending"]} if "pending" in metadata else error


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
