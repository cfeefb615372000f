"""`ToolRegistry`: the tools of a program, and `Config`, which makes tools of its agents."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from toolcrib import Toolkit
from toolcrib._core import ToolCall, _as_response, _name_list
from toolcrib.compat.gemini.agents import AgentDefinition, AgentRegistry, SubagentToolWrapper
from toolcrib.compat.gemini.bus import (
    MessageBus,
    ToolConfirmationDetails,
    ToolConfirmationOutcome,
    ToolExecutionFailure,
    ToolExecutionSuccess,
    create_policy_updater,
)
from toolcrib.compat.gemini.policy import PolicyEngine
from toolcrib.compat.gemini.tools import BaseDeclarativeTool, DiscoveredMCPTool, ToolErrorType, result_of
from toolcrib.declared import ToolFailure, ToolResult
from toolcrib.errors import ToolCallError
from toolcrib.policy import Approval, ApprovalRequest

__all__ = ["Config", "ToolRegistry"]

_log = logging.getLogger("toolcrib")

CALL_KEYS = {"name", "args"}
TEXT = frozenset((str,))

Confirm = Callable[[ToolConfirmationDetails], Any]
"""Shows details to the user and returns the `ToolConfirmationOutcome`; may be a coroutine function."""


class Config:
    """The parts of a program, and the registration of its agents as tools.

    Args:
        model: The model function of the agents; see `toolcrib.agent.agent_loop`.
        run: The loop of the agents, in place of the model; see `Toolkit.register_agent`.
        tools: The standard tools of the program, which are registered before the agents.
        agents: The definitions of agents.
        enable_subagents: True if agents become tools.
        allowed_tools: The names of the agents that become tools; all if it is None.
        exclude_tools: The names of tools and agents that are not available, also if they are allowed.
        policy_engine: The policy, which decides about every call of a tool through the message bus. Without it, there
            is no bus, and the tools themselves decide if they need a confirmation.
        confirm: Shows details to the user and returns the outcome. Without it, calls that need a confirmation do not
            run.
    """

    def __init__(
        self,
        *,
        model: Callable[..., Any] | None = None,
        run: Callable[..., Any] | None = None,
        tools: Iterable[BaseDeclarativeTool[Any]] = (),
        agents: Iterable[AgentDefinition | Mapping[str, Any]] = (),
        enable_subagents: bool = True,
        allowed_tools: Iterable[str] | None = None,
        exclude_tools: Iterable[str] = (),
        policy_engine: PolicyEngine | None = None,
        confirm: Confirm | None = None,
    ) -> None:
        """Connect the policy and the bus, and register the definitions."""
        self.model = model
        self.run = run
        self._enable_subagents = enable_subagents
        self._allowed = None if allowed_tools is None else frozenset(_name_list("allowed_tools", allowed_tools))
        self._excluded = frozenset(_name_list("exclude_tools", exclude_tools))
        self._policy = policy_engine
        self._bus = None if policy_engine is None else MessageBus(policy_engine)
        if policy_engine is not None and self._bus is not None:
            create_policy_updater(policy_engine, self._bus)
        self._confirm = confirm
        self._tools = tuple(tools)
        self._agents = AgentRegistry()
        self._registry: ToolRegistry | None = None
        for definition in agents:
            self._agents.register_agent(definition)

    def get_tool_registry(self) -> ToolRegistry:
        """Return the registry: the standard tools, and a tool for each agent that is allowed and not excluded.

        An agent that cannot be made a tool is logged, and the others are.
        """
        if self._registry is None:
            registry = self._registry = ToolRegistry(self)
            for tool in self._tools:
                registry.register_tool(tool)
            for definition in self._agents.get_all_definitions() if self._enable_subagents else ():
                if definition.name in self._excluded or not self.is_allowed(definition.name):
                    continue
                try:
                    registry.register_tool(SubagentToolWrapper(definition, self, self.get_message_bus()))
                except Exception as error:
                    _log.error("Failed to wrap agent '%s' as a tool: %s", definition.name, error)
        return self._registry

    def get_agent_registry(self) -> AgentRegistry:
        """Return the registry of the agents."""
        return self._agents

    def get_policy_engine(self) -> PolicyEngine | None:
        """Return the policy, if there is one."""
        return self._policy

    def get_message_bus(self) -> MessageBus | None:
        """Return the bus that tools ask, if there is a policy."""
        return self._bus

    def get_enable_subagents(self) -> bool:
        """Return true if agents become tools."""
        return self._enable_subagents

    def get_allowed_tools(self) -> list[str] | None:
        """Return the allow list; None if everything is allowed."""
        return None if self._allowed is None else sorted(self._allowed)

    def get_exclude_tools(self) -> list[str]:
        """Return the exclude list."""
        return sorted(self._excluded)

    def get_enable_message_bus_integration(self) -> bool:
        """Return true if tools ask the message bus: there is a policy."""
        return self._bus is not None

    def is_allowed(self, agent: str) -> bool:
        """Return true if the allow list contains an agent, or there is none."""
        return self._allowed is None or agent in self._allowed

    def is_excluded(self, tool: str) -> bool:
        """Return true if the exclude list contains a tool."""
        return tool in self._excluded

    def make_toolkit(self) -> Toolkit:
        """Make a toolkit that checks arguments as gemini-cli does, and asks the user for confirmations."""
        if self._confirm is None:
            return Toolkit(arguments="pass", headless=True)
        return Toolkit(arguments="pass", approver=self._approve)

    async def _approve(self, request: ApprovalRequest) -> Approval:
        details = request.details
        if not isinstance(details, ToolConfirmationDetails):
            details = ToolConfirmationDetails("info", f"Confirm: {request.tool}", None, {"prompt": request.summary})
        assert self._confirm is not None
        outcome = ToolConfirmationOutcome(await _settled(self._confirm(details)))
        if details.on_confirm is not None:
            await _settled(details.on_confirm(outcome, None))
        if outcome is ToolConfirmationOutcome.CANCEL:
            return Approval("cancel")
        if outcome is ToolConfirmationOutcome.MODIFY_WITH_EDITOR:
            return Approval("no", reason="there is no editor to modify the call with")
        return Approval("once")


class ToolRegistry:
    """The tools of a program, by name.

    Args:
        config: The exclude list, the bus and the confirmations; without it, there are none.

    Attributes:
        toolkit: The toolkit that has the tools and runs them.
    """

    def __init__(self, config: Config | None = None) -> None:
        """Start without tools."""
        self._config = config or Config()
        self.toolkit = self._config.make_toolkit()

    def register_tool(self, tool: BaseDeclarativeTool[Any]) -> None:
        """Add a tool. If the name is taken, a tool of an MCP server is renamed; any other one replaces it.

        A tool without a bus is given that of the configuration, so that no tool evades the policy.
        """
        if tool.message_bus is None:
            tool.message_bus = self._config.get_message_bus()
        if tool.name in self.toolkit.tools:
            if isinstance(tool, DiscoveredMCPTool):
                tool = tool.as_fully_qualified_tool()
            else:
                _log.warning("the tool '%s' was registered before and is replaced", tool.name)
        self.toolkit.register_tool_function(tool, namesake_strategy="override")

    def unregister_tool(self, name: str) -> None:
        """Remove a tool, if there is one of this name."""
        if name in self.toolkit.tools:
            self.toolkit.remove_tool_function(name)

    def remove_mcp_tools_by_server(self, server_name: str) -> None:
        """Remove the tools of an MCP server."""
        for name, tool in self._all().items():
            if tool.server_name == server_name:
                self.unregister_tool(name)

    def get_tool(self, name: str) -> BaseDeclarativeTool[Any] | None:
        """Find a tool that is not excluded."""
        found = None if self._config.is_excluded(name) else self.toolkit.tools.get(name)
        return None if found is None else found.original_func  # type: ignore[return-value]

    def get_all_tools(self) -> list[BaseDeclarativeTool[Any]]:
        """Return the tools that are not excluded: those of the program in the order of registration, then by server."""
        active = (tool for name, tool in self._all().items() if not self._config.is_excluded(name))
        return sorted(active, key=lambda tool: (tool.server_name is not None, tool.server_name or ""))

    def get_all_tool_names(self) -> list[str]:
        """Return the names of the tools that are not excluded."""
        return [tool.name for tool in self.get_all_tools()]

    def get_tools_by_server(self, server_name: str) -> list[BaseDeclarativeTool[Any]]:
        """Return the tools of an MCP server."""
        return [tool for tool in self.get_all_tools() if tool.server_name == server_name]

    def get_function_declarations(self) -> list[dict[str, Any]]:
        """Describe the tools to the model: name, description and `parametersJsonSchema` of each."""
        return [tool.schema for tool in self.get_all_tools()]

    def get_function_declarations_filtered(self, names: Iterable[str]) -> list[dict[str, Any]]:
        """Describe those of these tools that there are."""
        return [tool.schema for tool in map(self.get_tool, _name_list("names", names)) if tool is not None]

    async def execute_tool_call(self, tool_call: Any, update_output: Callable[[str], None] | None = None) -> ToolResult:
        """Run a call of the model: find the tool, validate, confirm, execute. Every error is a result.

        The success or the failure is published on the bus.

        Args:
            tool_call: The call, in any form that `ToolCall.read` accepts, such as a mapping with `name` and `args`.
            update_output: Shows parts of the output.
        """
        try:
            call = tool_call if _is_plain(tool_call) else ToolCall.read(tool_call)
        except ValueError as error:
            failure = ToolFailure(str(error), ToolErrorType.INVALID_TOOL_PARAMS.value)
            return ToolResult(f"Error: {error}", str(error), failure)
        result = await self._run(call, update_output)
        bus = self._config.get_message_bus()
        if bus is not None:
            shown = {"name": call.name, "args": call.arguments} if isinstance(call, ToolCall) else dict(call)
            is_ok = result.error is None
            bus.publish(ToolExecutionSuccess(shown, result) if is_ok else ToolExecutionFailure(shown, result.error))
        return result

    async def _run(self, call: ToolCall | dict[str, Any], update_output: Callable[[str], None] | None) -> ToolResult:
        name = call.name if isinstance(call, ToolCall) else call["name"]
        if self._config.is_excluded(name):
            return self._unknown(name)
        if update_output is None and not isinstance(call, ToolCall):
            try:
                return _whole(await self.toolkit.value(name, **call["args"]))
            except ToolCallError as error:
                is_unknown = error.response.code == "unknown_tool" and self.toolkit._find_tool(name) is None
                return self._unknown(name) if is_unknown else result_of(error.response)
        if self.toolkit._find_tool(name) is None:
            return self._unknown(name)
        result = ToolResult("")
        async for response in self.toolkit.call_tool_function(call):
            if response.mode != "progress":
                result = result_of(response)
            elif update_output is not None:
                update_output(response.text)
        return result

    def _unknown(self, name: str) -> ToolResult:
        """The result of a call of an unknown tool, with the names of those that are spelled most alike."""
        near = sorted(self.get_all_tool_names(), key=lambda known: _distance(name, known))[:3]
        text = f'Tool "{name}" not found in registry. Tools must use the exact names that are registered.'
        quoted = ", ".join(f'"{known}"' for known in near)
        if near:
            text += f" Did you mean {quoted}?" if len(near) == 1 else f" Did you mean one of: {quoted}?"
        return ToolResult(text, text, ToolFailure(text, ToolErrorType.TOOL_NOT_REGISTERED.value))

    def _all(self) -> dict[str, BaseDeclarativeTool[Any]]:
        return {name: tool.original_func for name, tool in self.toolkit.tools.items()}  # type: ignore[misc]


def _is_plain(tool_call: Any) -> bool:
    """Return true for a call as gemini-cli writes it, which needs no reading."""
    if type(tool_call) is not dict or tool_call.keys() != CALL_KEYS or type(tool_call["name"]) is not str:
        return False
    return type(tool_call["args"]) is dict and TEXT.issuperset(map(type, tool_call["args"]))


def _whole(value: Any) -> ToolResult:
    """Return the result of a tool with everything filled in, as a response would have it."""
    if isinstance(value, ToolResult) and type(value.llm_content) is str and value.error is None:
        display = value.llm_content if value.return_display is None else value.return_display
        return ToolResult(value.llm_content, display, None, dict(value.metadata))
    return result_of(_as_response(value))


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _distance(one: str, other: str) -> int:
    """The number of letters to insert, remove or replace; a long name is compared by its beginning."""
    one, other = one[:100], other[:100]
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        last, row[0] = row[0], place
        for index, known in enumerate(other, 1):
            last, row[index] = row[index], min(row[index] + 1, row[index - 1] + 1, last + (letter != known))
    return row[-1]
