"""Many agents at once: their registration as tools, and one tool that calls all of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from toolcrib import _core, errors
from toolcrib.context import ToolContext
from toolcrib.declared import CancelSignal, Declaration, DeclaredTool, Kind, ToolFailure, ToolResult

if TYPE_CHECKING:
    from toolcrib import Toolkit
    from toolcrib._core import AgentDefinition, AgentFolder

__all__ = ["AgentRegistration", "CallSubagent", "register_agents", "register_call_subagent"]

_log = logging.getLogger("toolcrib")


@dataclass(frozen=True)
class AgentRegistration:
    """The result of `Toolkit.register_agents`.

    Attributes:
        names: The agents that were registered.
        skipped: The agents that the lists leave out.
        problems: The agents that could not be registered, each with the reason.
    """

    names: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    problems: dict[str, str] = field(default_factory=dict)


def register_agents(
    toolkit: Toolkit,
    definitions: Iterable[AgentDefinition] | AgentFolder,
    allow: Iterable[str] | None,
    exclude: Iterable[str],
    run: Callable[..., Any] | Mapping[str, Callable[..., Any]] | None,
    model: Callable[..., Any] | None,
    options: Mapping[str, Any],
) -> AgentRegistration:
    """Register the agents that the lists let pass, each by itself."""
    if isinstance(definitions, _core.AgentFolder):
        definitions = definitions.definitions
    allowed = None if allow is None else _names("allow", allow)
    excluded = _names("exclude", exclude)
    names: list[str] = []
    skipped: list[str] = []
    problems: dict[str, str] = {}
    for index, definition in enumerate(definitions):
        if not isinstance(definition, _core.AgentDefinition):
            problems[f"#{index}"] = f"expected an AgentDefinition, got {type(definition).__name__}"
            continue
        name = definition.name
        if name in excluded or (allowed is not None and name not in allowed):
            skipped.append(name)
            continue
        try:
            loop = run.get(name) if isinstance(run, Mapping) else run
            toolkit.register_agent(definition, run=loop, model=model if loop is None else None, **options)
        except Exception as error:
            _log.warning("Failed to wrap agent '%s' as a tool: %s", name, error)
            problems[name] = str(error)
        else:
            names.append(name)
    return AgentRegistration(tuple(names), tuple(skipped), problems)


def _names(option: str, names: Iterable[str]) -> frozenset[str]:
    if isinstance(names, str):
        raise TypeError(f"{option} must be a list of names, not str")
    return frozenset(_core._name_list(option, names))


def register_call_subagent(
    toolkit: Toolkit,
    agents: Iterable[str | AgentDefinition] | None,
    mode: Literal["run", "route"],
    name: str,
    options: Mapping[str, Any],
) -> None:
    """Register the tool that calls all agents, in place of an earlier one."""
    if mode not in ("run", "route"):
        raise ValueError(f"mode must be 'run' or 'route', not {mode!r}")
    described = _described(toolkit, agents)
    tool = CallSubagent(described, toolkit=toolkit if mode == "run" else None, name=name)
    known = toolkit.tools.get(name)
    if known is not None and isinstance(known.original_func, CallSubagent):
        toolkit.remove_tool_function(name)
    toolkit.register_tool_function(tool, **options)


def _described(toolkit: Toolkit, agents: Iterable[Any] | None) -> dict[str, str]:
    """The names of the agents with their descriptions."""
    tools = toolkit.tools
    if agents is None:
        agents = [name for name, tool in tools.items() if isinstance(tool.original_func, _core._AgentTool)]
    elif isinstance(agents, str):
        agents = [agents]
    described: dict[str, str] = {}
    for agent in agents:
        if isinstance(agent, str):
            tool = tools.get(agent)
            described[agent] = tool.json_schema["function"].get("description", "") if tool is not None else ""
        else:
            described[agent.name] = agent.description
    return described


class CallSubagent(DeclaredTool[dict[str, Any]]):
    """One tool for all agents, with their names in its schema.

    Args:
        agents: The names of the agents with their descriptions.
        toolkit: The toolkit that the agents are called in; None to return only the route, for a graph that takes over.
        name: The name for the model.
        description: The description for the model.

    Raises:
        ValueError: If there are no agents, one that is to be called does not exist, or none of them takes one
            instruction. An agent that does not is left out with a warning.
    """

    kind = Kind.THINK
    permission = "auto"
    can_update_output = True

    def __init__(
        self,
        agents: Mapping[str, str],
        *,
        toolkit: Toolkit | None = None,
        name: str = "call_subagent",
        description: str | None = None,
    ) -> None:
        if not agents:
            raise ValueError(f"tool `{name}`: there are no agents to call")
        self.agents = dict(agents)
        self._toolkit = toolkit
        self._inputs: dict[str, str] = {}
        if toolkit is not None:
            self._find_inputs(toolkit, name)
        listed = "\n".join(f"- {agent}: {text}" if text else f"- {agent}" for agent, text in self.agents.items())
        super().__init__(
            name,
            description or f"Delegate a task to a sub-agent. The sub-agents are:\n{listed}",
            parameters=_schema(None),
        )

    def _find_inputs(self, toolkit: Toolkit, name: str) -> None:
        """Find the input of each agent that takes the instruction, and leave out the agents that have none."""
        problems: list[str] = []
        for agent in list(self.agents):
            try:
                self._inputs[agent] = _input_of(toolkit, agent)
            except _NoInstruction as error:
                problems.append(str(error))
                del self.agents[agent]
        if not self.agents:
            raise ValueError(f"tool `{name}`: there are no agents to call: {'; '.join(problems)}")
        for problem in problems:
            _log.warning("tool '%s' leaves an agent out: %s", name, problem)

    @property
    def json_schema(self) -> dict[str, Any]:
        """The schema for the model, with the names of the agents."""
        function = {"name": self.name, "description": self.description, "parameters": _schema(list(self.agents))}
        return {"type": "function", "function": function}

    @property
    def __tool_declaration__(self) -> Declaration:
        """The facts that a `Toolkit` reads: an unknown name is answered here, in words that a model can use."""
        return replace(super().__tool_declaration__, accepts=self._schema.schema, calls_agents=True)

    def check_params(self, params: dict[str, Any]) -> str | None:
        """Return the problem of an unknown name or a blank instruction."""
        if params["agent_name"] not in self.agents:
            names = ", ".join(self.agents)
            return f"Invalid agent_name '{params['agent_name']}'. Must be one of: {names}"
        if not params["instruction"].strip():
            return "instruction parameter cannot be empty"
        return None

    def describe(self, params: dict[str, Any]) -> str:
        """Describe a call to people."""
        return f"Delegate to {params['agent_name']}: {params['instruction'].strip()}"

    def execute(self, params: dict[str, Any], signal: CancelSignal, update_output: Any = None) -> ToolResult:
        """Return the route, for a graph that takes over."""
        data = {"agent_name": params["agent_name"], "instruction": params["instruction"].strip()}
        return ToolResult(data, metadata={"routing": _route(data)})

    def _refused(self, error: Exception) -> ToolResult:
        return ToolResult(f"Error: {error}", str(error), ToolFailure(str(error), "invalid_tool_params"))

    async def __call__(self, _context: ToolContext[Any], /, **_declared: Any) -> Any:
        """Run a call of a `Toolkit`: call the agent through the session that calls, or return the route."""
        try:
            params = self._invocation(_context, _declared).params
        except errors.InvalidParametersError as error:
            return self._refused(error)
        routed = self.execute(params, CancelSignal())
        if self._toolkit is None:
            return routed
        agent, instruction = routed.llm_content["agent_name"], routed.llm_content["instruction"]
        caller: Any = self._toolkit if _context.session is None else _context.session
        request = {
            "type": "tool_use",
            "id": f"{_context.call_id}/{agent}",
            "name": agent,
            "input": {self._inputs[agent]: instruction},
        }
        # Not the method of a subclass, which may be a coroutine function.
        stream = (
            _core.Toolkit.call_tool_function(caller, request)
            if isinstance(caller, _core.Toolkit)
            else caller.call_tool_function(request)
        )
        last = None
        async for given in stream:
            response = _core._as_response(given)
            if response.mode == "progress":
                _context._port.report(response)
            else:
                last = response
        if last is None:
            return routed
        last.metadata = {**(last.metadata or {}), "routing": _route(routed.llm_content)}
        return last


# The annotations of this module are text, and a `Toolkit` looks for the class itself.
CallSubagent.__call__.__annotations__["_context"] = ToolContext[Any]


def _route(data: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "subagent", "target": data["agent_name"], "instruction": data["instruction"]}


def _schema(names: list[str] | None) -> dict[str, Any]:
    agent: dict[str, Any] = {"type": "string", "description": "The name of the sub-agent."}
    if names is not None:
        agent["enum"] = names
    instruction = {"type": "string", "description": "The task, with everything that the sub-agent has to know."}
    return {
        "type": "object",
        "properties": {"agent_name": agent, "instruction": instruction},
        "required": ["agent_name", "instruction"],
    }


class _NoInstruction(Exception):
    """An agent does not take one instruction."""


def _input_of(toolkit: Toolkit, agent: str) -> str:
    """The input of an agent that takes the instruction: its only one, its only required one, or `instruction`."""
    tool = toolkit.tools.get(agent)
    if tool is None:
        raise ValueError(f"agent `{agent}` is not registered in the toolkit")
    parameters = tool.json_schema["function"].get("parameters", {})
    inputs, required = list(parameters.get("properties", {})), list(parameters.get("required", []))
    if len(inputs) == 1:
        return str(inputs[0])
    if len(required) == 1:
        return str(required[0])
    if "instruction" in inputs and not set(required) - {"instruction"}:
        return "instruction"
    shown = f"the inputs {', '.join(inputs)}" if inputs else "no inputs"
    raise _NoInstruction(f"agent `{agent}` does not take one instruction: it has {shown}")
