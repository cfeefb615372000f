"""Agents as tools: definitions, their registry, and the wrapper that makes a tool of one."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import toolcrib
from toolcrib import _core
from toolcrib._agent_loop import _accepts
from toolcrib.agent import AgentLimits, AgentOutput
from toolcrib.compat.gemini.bus import MessageBus
from toolcrib.compat.gemini.spelling import read_fields, snake_keys
from toolcrib.compat.gemini.tools import BaseDeclarativeTool, ToolErrorType, ToolInvocation, result_of
from toolcrib.declared import CancelSignal, DeclaredTool, Kind, ToolFailure, ToolResult

if TYPE_CHECKING:
    from toolcrib.compat.gemini.registry import Config

__all__ = [
    "AgentDefinition",
    "AgentRegistry",
    "SubagentInvocation",
    "SubagentToolWrapper",
    "convert_input_config_to_json_schema",
]

_log = logging.getLogger("toolcrib")


def convert_input_config_to_json_schema(input_config: Mapping[str, Any], *, lenient: bool = False) -> dict[str, Any]:
    """Convert the inputs of an agent to a JSON Schema, whose `required` is always a list.

    Args:
        input_config: `{"inputs": {name: {"type", "description", "required"}}}`, or `{"inputSchema": a JSON Schema}`.
        lenient: Treat an input of an unknown type, or without a type, as a string.

    Raises:
        AgentDefinitionError: If an input has an unknown type.
        ValueError: If an input has no type, or unknown keys.
    """
    return toolcrib.AgentDefinition("agent", "-", inputs=_inputs(input_config, lenient), lenient=lenient).parameters


@dataclass(frozen=True)
class AgentDefinition:
    """An agent as data. The fields of the configurations are spelled as here or in `snake_case`.

    Args:
        name: The name for the calling model.
        description: The description for the calling model.
        input_config: `inputs`, or `inputSchema`; see `convert_input_config_to_json_schema`.
        display_name: The name for people; the name if it is None.
        prompt_config: `systemPrompt`, `initialMessages` and `query`, in which `${name}` stands for an input.
        model_config: `model`, `temp`, `top_p` and `thinkingBudget`, which the model function is given as `model`,
            `temperature`, `top_p` and `thinking_budget` if it has such parameters.
        run_config: `max_time_minutes` and `max_turns`.
        tool_config: `tools`, a list of the names of tools of the registry, or tools.
        output_config: `outputName`, `description` and `schema` of the value that the agent has to give.
        process_output: A function that turns this value into text.
        lenient: Treat an input of an unknown type, or without a type, as a string.
    """

    name: str = ""
    description: str = ""
    input_config: Mapping[str, Any] = field(default_factory=dict)
    display_name: str | None = None
    prompt_config: Mapping[str, Any] = field(default_factory=dict)
    model_config: Mapping[str, Any] = field(default_factory=dict)
    run_config: Mapping[str, Any] = field(default_factory=dict)
    tool_config: Mapping[str, Any] = field(default_factory=dict)
    output_config: Mapping[str, Any] = field(default_factory=dict)
    process_output: Callable[[Any], Any] | None = None
    lenient: bool = False

    def to_toolcrib(self) -> toolcrib.AgentDefinition:
        """Convert it to the definition that `Toolkit.register_agent` takes, without its tools.

        Raises:
            AgentDefinitionError: If it is invalid.
        """
        prompt, run = snake_keys(self.prompt_config), snake_keys(self.run_config)
        output = None
        if self.output_config:
            fields = snake_keys(self.output_config)
            output = AgentOutput(
                fields["output_name"], fields.get("description", ""), fields["schema"], self.process_output
            )
        return toolcrib.AgentDefinition(
            self.name,
            self.description,
            display_name=self.display_name,
            inputs=_inputs(self.input_config, self.lenient),
            system_prompt=prompt.get("system_prompt"),
            query=prompt.get("query"),
            initial_messages=[_message(content) for content in prompt.get("initial_messages") or ()],
            output=output,
            limits=AgentLimits(turns=run.get("max_turns", 30), time=60.0 * run.get("max_time_minutes", 10)),
            model=self.model_config.get("model"),
            lenient=self.lenient,
        )


class AgentRegistry:
    """The definitions of agents, by name."""

    def __init__(self) -> None:
        """Start without agents."""
        self._definitions: dict[str, AgentDefinition] = {}

    def register_agent(self, definition: AgentDefinition | Mapping[str, Any]) -> None:
        """Add a definition and replace one of the same name; one without a name or a description is only logged."""
        definition = read_fields(AgentDefinition, definition)
        if not definition.name or not definition.description:
            _log.warning("skipping the agent %r: its name or its description is missing", definition.name)
            return
        self._definitions[definition.name] = definition

    def get_definition(self, name: str) -> AgentDefinition | None:
        """Find a definition."""
        return self._definitions.get(name)

    def get_all_definitions(self) -> list[AgentDefinition]:
        """Return the definitions in the order of their registration."""
        return list(self._definitions.values())


class SubagentToolWrapper(BaseDeclarativeTool[dict[str, Any]]):
    """A tool that runs an agent.

    Args:
        definition: The agent.
        config: The model or the loop of the agent, and the registry that has its tools.
        message_bus: The bus that is asked before the agent runs.

    Raises:
        AgentDefinitionError: If the definition is invalid.
    """

    def __init__(
        self, definition: AgentDefinition | Mapping[str, Any], config: Config, message_bus: MessageBus | None = None
    ) -> None:
        """Convert the definition and its inputs."""
        self.definition = read_fields(AgentDefinition, definition)
        self.agent = self.definition.to_toolcrib()
        self.config = config
        super().__init__(
            self.agent.name,
            self.agent.display_name,
            self.agent.description,
            Kind.THINK,
            self.agent.parameters,
            is_output_markdown=True,
            can_update_output=True,
            message_bus=message_bus,
        )

    def create_invocation(self, params: dict[str, Any]) -> SubagentInvocation:
        """Return the run for valid inputs."""
        return SubagentInvocation(params, self)

    def make_toolkit(self) -> toolcrib.Toolkit:
        """Make the toolkit of one run: the agent, and the tools that it may use; never another agent."""
        toolkit = self.config.make_toolkit()
        registry = self.config.get_tool_registry()
        for tool in self.definition.tool_config.get("tools") or ():
            found = registry.get_tool(tool) if isinstance(tool, str) else tool
            if not isinstance(found, DeclaredTool) or isinstance(found, SubagentToolWrapper):
                _log.warning("the agent '%s' is not given %r, which is not a tool of the registry", self.name, tool)
                continue
            toolkit.register_tool_function(found, namesake_strategy="override")
        model = self.config.model
        if model is not None:
            model = _with_settings(model, self.definition.model_config)
        toolkit.register_agent(self.agent, run=self.config.run, model=model)
        return toolkit


class SubagentInvocation(ToolInvocation[dict[str, Any]]):
    """One run of an agent.

    Args:
        params: The inputs.
        wrapper: The tool.
    """

    def __init__(self, params: dict[str, Any], wrapper: SubagentToolWrapper) -> None:
        """Keep the inputs."""
        super().__init__(params, wrapper.message_bus, wrapper.name)
        self.wrapper = wrapper

    def get_description(self) -> str:
        """Describe the run, with its inputs shortened."""
        return _core._run_description(self.wrapper.name, dict(self.params))

    async def execute(self, signal: CancelSignal, update_output: Callable[[str], None] | None = None) -> ToolResult:
        """Run the agent; thoughts are shown, and any error is the result.

        Args:
            signal: Ends the run.
            update_output: Shows that the agent starts, and its thoughts.
        """
        run = asyncio.ensure_future(self._run(update_output or (lambda text: None)))
        loop = asyncio.get_running_loop()
        take_back = signal.on_cancel(lambda: loop.call_soon_threadsafe(run.cancel))
        try:
            return await run
        except asyncio.CancelledError:
            if not run.cancelled() or not signal.is_cancelled or _is_cancelled():
                raise
            return self._failed("the run was aborted")
        except Exception as error:
            return self._failed(str(error) or type(error).__name__)
        finally:
            take_back()

    async def _run(self, show: Callable[[str], None]) -> ToolResult:
        show("Subagent starting...\n")
        toolkit = self.wrapper.make_toolkit()
        request = {"name": self.wrapper.name, "args": dict(self.params)}
        result = None
        async for response in toolkit.call_tool_function(request):
            activity = (response.metadata or {}).get("activity", {})
            if response.mode != "progress":
                result = result_of(response)
            elif activity.get("type") == "THOUGHT_CHUNK" and activity["data"].get("text"):
                show(response.text)
        if result is None:
            return self._failed("the run ended without a result")
        if result.error is not None and "agent" not in result.metadata:
            return self._failed(result.error.message.removeprefix(f"Subagent '{self.wrapper.name}' failed. Error: "))
        content = result.llm_content
        return replace(result, llm_content=[{"text": content}]) if isinstance(content, str) else result

    def _failed(self, reason: str) -> ToolResult:
        name = self.wrapper.name
        failure = ToolFailure(reason, ToolErrorType.EXECUTION_FAILED.value)
        return ToolResult(
            f"Subagent '{name}' failed. Error: {reason}", f"Subagent Failed: {name}\nError: {reason}", failure
        )


def _inputs(input_config: Mapping[str, Any], lenient: bool) -> dict[str, Any]:
    """The inputs or the JSON Schema; an input is required only if it says so."""
    fields = snake_keys(input_config)
    if fields.get("input_schema"):
        return dict(fields["input_schema"])
    default = {"required": False, **({"type": "string"} if lenient else {})}
    return {name: {**default, **given} for name, given in (fields.get("inputs") or {}).items()}


def _message(content: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a message with parts to one with a text."""
    if "parts" not in content:
        return dict(content)
    text = "".join(part.get("text", "") for part in content["parts"])
    return {"role": "assistant" if content.get("role") == "model" else "user", "content": text}


def _with_settings(model: Callable[..., Any], model_config: Mapping[str, Any]) -> Callable[..., Any]:
    """Give a model function those settings that it has parameters for."""
    fields = snake_keys(model_config)
    given = {"temperature": fields.get("temp"), "top_p": fields.get("top_p")}
    given["thinking_budget"] = fields.get("thinking_budget")
    settings = {name: value for name, value in given.items() if value is not None and _accepts(model, name)}
    if not settings:
        return model
    bound = functools.partial(model, **settings)
    bound.dialect = getattr(model, "dialect", None)  # type: ignore[attr-defined]
    return bound


def _is_cancelled() -> bool:
    """True if this task itself was asked to cancel; unknown before Python 3.11."""
    requests = getattr(asyncio.current_task(), "cancelling", None)
    return bool(requests and requests())
