"""`Runtime`: the tools that each agent sees and may run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any

from toolcrib import Toolkit, ToolkitView, ToolResponse
from toolcrib.compat.groups.manager import Outcome, ToolGroupManager
from toolcrib.compat.groups.module_loader import ModuleLoader, call_error
from toolcrib.compat.groups.org import Org
from toolcrib.errors import ToolCallError
from toolcrib.modules import settled

__all__ = ["Runtime"]

Executor = Toolkit | Callable[[Any, str, Any], Any | Awaitable[Any]]

ROOT = "root"

# The context of the call that is about to run a tool of a module.
_context: ContextVar[Any] = ContextVar("context")


class Runtime:
    """Shows agents the tools of their roles, and runs those and no others.

    An agent may run exactly the tools that it sees. An unknown agent or role sees and runs nothing; in the original
    runtime it could run every tool.

    Args:
        toolGroupManager: The groups; by default a manager with the builtin groups.
        org: The roles and the agents.
        executor: Runs the tools that belong to no module: a toolkit, or a function of context, name and arguments. The
            policy, the approver and the audit log of a toolkit apply to the tools of modules, too.
        config: `{"modules": ...}`, which `init` loads.
    """

    def __init__(
        self,
        toolGroupManager: ToolGroupManager | None = None,
        org: Org | None = None,
        executor: Executor | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """Connect groups, roles and modules."""
        self.toolGroupManager = toolGroupManager or ToolGroupManager()
        self.org = org or Org()
        self.moduleLoader = ModuleLoader(self.toolGroupManager)
        self.config = dict(config or {})
        self._executor = executor
        # The calls that were admitted, until a group, a role or an agent changes.
        self._admitted: dict[tuple[str, str], _Admitted] = {}
        self._admitted_at: tuple[Any, ...] = ()

    async def init(self) -> dict[str, Any]:
        """Load the modules of the configuration."""
        return await self.loadModules(self.config.get("modules") or ())

    async def loadModules(self, modules: Iterable[Any] | Mapping[str, Any]) -> dict[str, Any]:
        """Load modules, each with its group of tools."""
        return await self.moduleLoader.loadModules(modules, self)

    async def shutdown(self) -> dict[str, Any]:
        """Shut the modules down."""
        return await self.moduleLoader.shutdown()

    def getToolDefinitionsForAgent(self, agentId: str) -> list[dict[str, Any]]:
        """Return the definitions of the tools that an agent may call."""
        return self.toolGroupManager.getToolDefinitions(self._groups_of(agentId))

    async def executeToolCall(self, ctx: Any, toolName: str, args: Any = None) -> Any:
        """Run a tool for the agent of a context, if the agent's role shows it.

        A call that waits for the approval of the executor's toolkit has the error `pending`, and the `pending` value.

        Args:
            ctx: `{"agent": {"id": ...}}`; the role is looked up in the organisation.
            toolName: The tool.
            args: Its arguments.
        """
        admitted = self._admit(ctx, toolName)
        if not isinstance(admitted, _Admitted):
            return admitted
        view = admitted.view
        if view is None or type(args) is not dict:
            return await admitted.call(ctx, args)
        try:
            return await view.value(toolName, **args)
        except ToolCallError as error:
            return admitted.failed(error.response)

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
        admitted = self._admit(ctx, toolName)
        return await admitted.resume(ctx, pending, approved) if isinstance(admitted, _Admitted) else admitted

    def _admit(self, ctx: Any, toolName: str) -> _Admitted | dict[str, Any]:
        """Decide whether the agent of a context may run a tool, or remember it; return the error if it may not."""
        org, manager = self.org, self.toolGroupManager
        state = (org, org.changes, manager, manager.changes)
        if state != self._admitted_at:
            self._admitted, self._admitted_at = {}, state
        agent = ctx.get("agent") if type(ctx) is dict or isinstance(ctx, Mapping) else getattr(ctx, "agent", None)
        name = agent.get("id") if type(agent) is dict or isinstance(agent, Mapping) else getattr(agent, "id", None)
        admitted = self._admitted.get((name, toolName)) if type(name) is str else None
        return self._decide(name, toolName) if admitted is None else admitted

    def _decide(self, agent: Any, toolName: str) -> _Admitted | dict[str, Any]:
        """Find the group that shows a tool to an agent, and what runs the tool; or the error."""
        manager = self.toolGroupManager
        groups = (id for id in self._groups_of(agent) if manager.isToolInGroups(toolName, [id]))
        group = next(groups, None)
        if group is None:
            code = "tool_not_available" if manager.getToolGroup(toolName) else "unknown_tool"
            return call_error(code, toolName, f"工具 {toolName} 对此岗位不可用")
        # The module of the group that shows the tool runs it; another group may have a tool of the same name.
        loader, module, executor = self.moduleLoader, self.moduleLoader.moduleOf(group), self._executor
        run: Callable[[Any, Any], Any] | None = None
        if module is not None:
            run = lambda ctx, args: loader.run(module, ctx, toolName, args)  # noqa: E731 - one of two
        elif executor is None:
            return call_error("unknown_tool", toolName, f"nothing runs the tool {toolName}")
        elif not isinstance(executor, Toolkit):
            run = lambda ctx, args: executor(ctx, toolName, args)  # noqa: E731 - one of two
        admitted = _Admitted(group, toolName, str(agent), run, executor if isinstance(executor, Toolkit) else None)
        if type(agent) is str:
            self._admitted[agent, toolName] = admitted
        return admitted

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

    def _groups_of(self, agent: Any) -> list[str]:
        if agent == ROOT:
            return ["org_management"]
        known = self.org.getAgent(agent)
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


class _Admitted:
    """A tool that an agent may run.

    Args:
        group: The group that shows it.
        tool: Its name.
        caller: The id of the agent.
        run: Runs it with a context and arguments; None if it is a tool of the toolkit.
        toolkit: The toolkit whose policy decides, if there is one.

    Attributes:
        view: The toolkit for the agent; None if the tool does not belong to it.
    """

    def __init__(
        self, group: str, tool: str, caller: str, run: Callable[[Any, Any], Any] | None, toolkit: Toolkit | None
    ) -> None:
        self.group = group
        self.tool = tool
        self.caller = caller
        self.run = run
        self.toolkit = toolkit
        self.view = toolkit.view(caller=caller) if toolkit is not None and run is None else None
        self._guarded_view: ToolkitView | None = None
        self._guarded_by: tuple[Any, ...] = ()

    async def call(self, ctx: Any, args: Any) -> Any:
        """Run it, and return its value or its error."""
        view = self._view_of()
        if view is None:
            assert self.run is not None
            return await settled(self.run(ctx, args))
        if args is None:
            args = {}
        elif not isinstance(args, Mapping):
            return call_error("invalid_arguments", self.tool, f"arguments are an object, not {type(args).__name__}")
        token = None if self.run is None else _context.set(ctx)
        try:
            return await view.value(self.tool, **args)
        except ToolCallError as error:
            return self.failed(error.response)
        finally:
            if token is not None:
                _context.reset(token)

    async def resume(self, ctx: Any, pending: Any, approved: bool) -> Any:
        """Continue a call that waits for approval."""
        view, last = self._view_of(), None
        if view is None:
            return call_error("unknown_tool", self.tool, f"no call of {self.tool} waits for approval")
        token = _context.set(ctx)
        try:
            async for response in view.resume(pending, approved is True):
                last = response
        finally:
            _context.reset(token)
        if last is None or last.code is not None:
            return None if last is None else self.failed(last)
        return (last.metadata or {}).get("value", last.text)

    def failed(self, response: ToolResponse) -> dict[str, Any]:
        """Return the error that a response stands for."""
        metadata = response.metadata or {}
        error = call_error(response.code or "failed", self.tool, response.text)
        return {**error, "pending": metadata["pending"]} if "pending" in metadata else error

    def _view_of(self) -> ToolkitView | None:
        """The toolkit for the agent, or one with the tool of a module and the same rules and approvals."""
        toolkit, run = self.toolkit, self.run
        if toolkit is None or run is None:
            return self.view
        rules = {
            "policy": toolkit.policy,
            "approver": toolkit.approver,
            "approver_timeout": toolkit.approver_timeout,
            "headless": toolkit.headless,
            "approvals": toolkit.approvals,
            "audit": toolkit.audit,
        }
        if self._guarded_view is None or self._guarded_by != tuple(rules.values()):
            self._guarded_by = tuple(rules.values())
            self._guarded_view = self._guarded(run, rules).view(caller=self.caller)
        return self._guarded_view

    def _guarded(self, run: Callable[[Any, Any], Any], rules: dict[str, Any]) -> Toolkit:
        def run_module(**args: Any) -> Any:
            return run(_context.get(), args)

        guarded = Toolkit(arguments="pass", errors="raise", run_in="inline", **rules)
        if self.group not in guarded.groups:
            guarded.create_tool_group(self.group, "", active=True)
        # The arguments of modules are not checked, as their definitions are not.
        schema = {"type": "function", "function": {"name": self.tool, "description": "", "parameters": {}}}
        guarded.register_tool_function(run_module, self.group, func_name=self.tool, json_schema=schema)
        return guarded
