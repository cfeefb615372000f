"""ArtifactFlow's base class of tools, with parameters, permissions and results."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from toolcrib._core import ToolResponse, _as_response, _name_list, _write_call
from toolcrib.declared import JSON_TYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BaseTool", "CallSubagentTool", "ToolParameter", "ToolPermission", "ToolResult"]

# The example values of parameters without a default.
EXAMPLES = {"integer": "123", "boolean": "true"}


class ToolPermission(Enum):
    """Whether a tool runs at once, or only after it was approved."""

    AUTO = "auto"
    CONFIRM = "confirm"


@dataclass
class ToolParameter:
    """A parameter; a default of `None` means that there is none."""

    name: str
    type: str
    description: str
    required: bool = True
    default: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Return the five fields."""
        return {name: getattr(self, name) for name in ("name", "type", "description", "required", "default")}


@dataclass
class ToolResult:
    """The data of a tool that succeeded, or the error of one that failed."""

    success: bool
    data: Any = None
    error: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the four fields."""
        return {name: getattr(self, name) for name in ("success", "data", "error", "metadata")}

    def __tool_response__(self) -> ToolResponse:
        """Convert the result to a response if the tool is registered in a `toolcrib.Toolkit`."""
        if not self.success:
            response = _as_response(f"Error: {self.error}")
            response.code = "failed"
        else:
            response = _as_response() if self.data is None else _as_response(self.data)
        response.metadata = {**self.metadata, **(response.metadata or {})} or None
        return response


class BaseTool(ABC):
    """A tool with a name, parameters and a permission.

    Args:
        name: The name that a model calls.
        description: The description for the model.
        permission: Whether it runs at once.
        **kwargs: Settings of the tool, kept in `config`.
    """

    def __init__(
        self, name: str, description: str, permission: ToolPermission = ToolPermission.AUTO, **kwargs: Any
    ) -> None:
        self.name = name
        self.description = description
        self.permission = permission
        self.config = kwargs

    @abstractmethod
    def get_parameters(self) -> list[ToolParameter]:
        """Return the parameters, in order."""

    @abstractmethod
    async def execute(self, **params: Any) -> ToolResult:
        """Run the tool."""

    def validate_params(self, params: dict[str, Any]) -> str | None:
        """Return the first problem with the parameters, or `None`."""
        declared = self.get_parameters()
        for parameter in declared:
            if parameter.required and parameter.name not in params:
                return f"Missing required parameter: {parameter.name}"
        known = {parameter.name for parameter in declared}
        for name in params:
            if name not in known:
                return f"Unknown parameter: {name}"
        return None

    async def __call__(self, **params: Any) -> ToolResult:
        """Fill in defaults, validate, and execute. Any exception becomes a failed result."""
        try:
            for parameter in self.get_parameters():
                if parameter.default is not None:
                    params.setdefault(parameter.name, parameter.default)
            problem = self.validate_params(params)
            if problem:
                return ToolResult(success=False, error=problem)
            return await self.execute(**params)
        except Exception as error:
            return ToolResult(success=False, error=f"Tool execution failed: {error}")

    def to_xml_example(self) -> str:
        """Write an example call with every parameter."""
        return _write_call("xml", self.name, {each.name: _example(each) for each in self.get_parameters()})

    @property
    def json_schema(self) -> dict[str, Any]:
        """The schema of the tool in a `toolcrib.Toolkit`."""
        declared = self.get_parameters()
        parameters: dict[str, Any] = {"type": "object", "properties": {each.name: _schema(each) for each in declared}}
        required = [each.name for each in declared if each.required and each.default is None]
        if required:
            parameters["required"] = required
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}


class CallSubagentTool(BaseTool):
    """Validate the route to a sub-agent, which a graph then takes.

    Args:
        agents: The names of the sub-agents.
    """

    def __init__(self, agents: Sequence[str] = ("search_agent", "crawl_agent")) -> None:
        super().__init__("call_subagent", "Call a specialized sub-agent to perform a task.")
        self.agents = tuple(_name_list("agents", agents))

    def get_parameters(self) -> list[ToolParameter]:
        """Return the name of the sub-agent and the instruction."""
        return [
            ToolParameter("agent_name", "string", f"Name of the sub-agent: {', '.join(self.agents)}"),
            ToolParameter("instruction", "string", "Instruction for the sub-agent"),
        ]

    async def execute(self, **params: Any) -> ToolResult:
        """Return the route, or the reason why there is none."""
        # The parser guesses types: the instruction "123" arrives as a number.
        agent_name, instruction = params["agent_name"], str(params["instruction"]).strip()
        if agent_name not in self.agents:
            names = ", ".join(self.agents)
            return ToolResult(False, error=f"Invalid agent_name '{agent_name}'. Must be one of: {names}")
        if not instruction or params["instruction"] is None:
            return ToolResult(False, error="instruction parameter cannot be empty")
        data = {"agent_name": agent_name, "instruction": instruction}
        route = {"type": "subagent", "target": agent_name, "instruction": instruction}
        return ToolResult(True, data, metadata={"routing": route})

    @property
    def json_schema(self) -> dict[str, Any]:
        """The schema of the tool in a `toolcrib.Toolkit`, with the names of the sub-agents."""
        schema = super().json_schema
        schema["function"]["parameters"]["properties"]["agent_name"]["enum"] = list(self.agents)
        return schema


def _example(parameter: ToolParameter) -> str | list[str]:
    if parameter.type.startswith("array"):
        return ["value1", "value2"]
    if parameter.default is not None:
        return str(parameter.default)
    return f"your_{parameter.name}_here" if parameter.type == "string" else EXAMPLES.get(parameter.type, "...")


def _schema(parameter: ToolParameter) -> dict[str, Any]:
    schema = _type(parameter.type)
    if parameter.description:
        schema["description"] = parameter.description
    if parameter.default is not None and _is_json(parameter.default):
        schema["default"] = parameter.default
    return schema


def _type(name: str) -> dict[str, Any]:
    """Parse a type such as `array[string]`."""
    outer, bracket, inner = name.strip().partition("[")
    schema: dict[str, Any] = {"type": JSON_TYPES[outer.lower()]} if outer.lower() in JSON_TYPES else {}
    items = _type(inner.removesuffix("]")) if bracket and schema.get("type") == "array" else {}
    return {**schema, "items": items} if items else schema


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
