"""The parts of an installed AgentScope 1.x that this package builds on; substitutes for them where there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolcrib._core import ToolResponse as OwnToolResponse

__all__ = [
    "IS_INSTALLED",
    "Original",
    "RegisteredToolFunction",
    "StateModule",
    "ToolGroup",
    "ToolResponse",
    "in_class",
]


def _find() -> Any:
    """Import `agentscope.tool`; None if AgentScope is not installed.

    Raises:
        ImportError: If AgentScope 2.x is installed.
    """
    try:
        tool = import_module("agentscope.tool")
    except ModuleNotFoundError as error:
        # A package that AgentScope itself misses is not for this package to hide.
        if error.name not in ("agentscope", "agentscope.tool"):
            raise
        return None
    if not hasattr(tool.Toolkit, "register_tool_function"):
        raise ImportError(
            "toolcrib.compat.agentscope is for AgentScope 1.x, and AgentScope 2.x is installed: "
            "use toolcrib.compat.agentscope2"
        )
    return tool


_tool = _find()
IS_INSTALLED = _tool is not None

if TYPE_CHECKING:
    # For type checkers of programs that have AgentScope installed; without it these names are `Any`.
    from agentscope.module import StateModule
    from agentscope.tool import Toolkit as Original
    from agentscope.tool import ToolResponse
    from agentscope.tool._types import RegisteredToolFunction, ToolGroup
elif IS_INSTALLED:
    _types = import_module("agentscope.tool._types")
    StateModule = import_module("agentscope.module").StateModule
    Original = _tool.Toolkit
    ToolResponse = _tool.ToolResponse
    RegisteredToolFunction = _types.RegisteredToolFunction
    ToolGroup = _types.ToolGroup
else:
    # Without AgentScope there are no sessions, toolcrib's own default texts apply, and responses are toolcrib's.
    StateModule = Original = object
    ToolResponse = OwnToolResponse

    @dataclass
    class RegisteredToolFunction:
        """A tool in a toolkit, with the fields of AgentScope's class."""

        name: str
        group: str
        source: str
        original_func: Callable[..., Any]
        json_schema: dict[str, Any]
        preset_kwargs: dict[str, Any] = field(default_factory=dict)
        original_name: str | None = None
        extended_model: type[Any] | None = None
        mcp_name: str | None = None
        postprocess_func: Callable[[Any, Any], Any] | None = None
        async_execution: bool = False

    @dataclass
    class ToolGroup:
        """A group of a toolkit, with the fields of AgentScope's class."""

        name: str
        active: bool
        description: str
        notes: str | None = None


def in_class(response: OwnToolResponse) -> ToolResponse:
    """Return a response of toolcrib in AgentScope's class, if it is installed."""
    if not IS_INSTALLED:
        return response
    made = ToolResponse(
        response.content, response.metadata, response.stream, response.is_last, response.is_interrupted, response.id
    )
    if response.code is not None:
        made.code = response.code
    return made
