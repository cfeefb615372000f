"""The tools of a program, and the toolkits of its agents."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from toolcrib import Toolkit
from toolcrib._core import _name_list
from toolcrib.compat.artifactflow.base import BaseTool, ToolResult
from toolcrib.errors import ToolCallError

__all__ = ["AgentToolkit", "ToolRegistry"]

log = logging.getLogger("toolcrib")

# The classes of defaults that a call cannot modify, so that the next call may use them again.
PLAIN = frozenset((str, int, float, bool, type(None)))


class AgentToolkit:
    """The tools of one agent, over a `toolcrib.Toolkit`. Permissions are up to the code that runs the agent.

    Attributes:
        agent_name: The agent.
        tools: The tools by name.
    """

    def __init__(self, agent_name: str) -> None:
        self.agent_name = agent_name
        self.tools: dict[str, BaseTool] = {}
        self._toolkit = Toolkit(arguments="pass", errors="raise", run_in="inline")
        self._registered: dict[str, BaseTool] = {}

    @property
    def toolkit(self) -> Toolkit:
        """The toolkit that runs the tools: its policy, audit log, events and middlewares apply to `execute_tool`."""
        for name, tool in self.tools.items():
            self._register(name, tool)
        for name in self._registered.keys() - self.tools.keys():
            self._toolkit.remove_tool_function(name)
            del self._registered[name]
        return self._toolkit

    def add_tool(self, tool: BaseTool) -> None:
        """Add a tool and replace one of the same name."""
        if tool.name in self.tools:
            log.warning("tool '%s' was in the toolkit of '%s' before and is replaced", tool.name, self.agent_name)
        self.tools[tool.name] = tool

    def add_tools(self, tools: list[BaseTool]) -> None:
        """Add several tools."""
        for tool in tools:
            self.add_tool(tool)

    def get_tool(self, name: str) -> BaseTool | None:
        """Find a tool."""
        return self.tools.get(name)

    def list_tools(self) -> list[BaseTool]:
        """Return the tools in the order in which they were added."""
        return list(self.tools.values())

    async def execute_tool(self, name: str, params: dict[str, Any]) -> ToolResult:
        """Run a tool. An unknown name, invalid parameters and any exception are a failed result.

        The parameters of the tool are read when it runs for the first time.
        """
        tool = self.tools.get(name)
        if tool is None:
            return ToolResult(success=False, error=f"Tool '{name}' not available in {self.agent_name}'s toolkit")
        try:
            if self._registered.get(name) is not tool:
                self._register(name, tool)
            result = await self._toolkit.value(name, **params)
        except ToolCallError as error:
            return ToolResult(success=False, error=str(error))
        except Exception as error:
            return ToolResult(success=False, error=f"Tool execution failed: {error}")
        if type(result) is not ToolResult and self._toolkit._middlewares:
            return ToolResult(True, result)  # Middlewares pass on responses, which have only the data.
        return result  # type: ignore[no-any-return]

    def _register(self, name: str, tool: BaseTool) -> None:
        """Register a tool in the toolkit, in place of another one."""
        if self._registered.get(name) is tool:
            return
        self._toolkit.remove_tool_function(name)
        function = tool.json_schema["function"]
        parameters = {**function["parameters"], "additionalProperties": True}  # The tool itself validates them.
        self._toolkit.register_tool_function(
            _body(tool), name=name, description=function["description"], json_schema=parameters
        )
        self._registered[name] = tool


class ToolRegistry:
    """All tools, and the toolkit of each agent."""

    def __init__(self) -> None:
        self.tool_library: dict[str, BaseTool] = {}
        self.agent_toolkits: dict[str, AgentToolkit] = {}

    def register_tool_to_library(self, tool: BaseTool) -> None:
        """Add a tool and replace one of the same name."""
        self.tool_library[tool.name] = tool

    def create_agent_toolkit(self, agent_name: str, tool_names: list[str] | None = None) -> AgentToolkit:
        """Create the toolkit of an agent and replace the one it had. Unknown names are logged."""
        toolkit = AgentToolkit(agent_name)
        for name in _name_list("tool_names", tool_names or ()):
            if name in self.tool_library:
                toolkit.add_tool(self.tool_library[name])
            else:
                log.warning("there is no tool '%s' for the toolkit of '%s'", name, agent_name)
        self.agent_toolkits[agent_name] = toolkit
        return toolkit

    def get_agent_toolkit(self, agent_name: str) -> AgentToolkit | None:
        """Find the toolkit of an agent."""
        return self.agent_toolkits.get(agent_name)


def _body(tool: BaseTool) -> Callable[..., Any]:
    """Return the function that the toolkit calls: `BaseTool.__call__`, with parameters that are read once."""
    if type(tool).__call__ is not BaseTool.__call__:
        return tool.__call__
    declared = tool.get_parameters()
    names = frozenset(each.name for each in declared)
    required = frozenset(each.name for each in declared if each.required)
    has_plain_defaults = all(type(each.default) in PLAIN for each in declared)
    standard_check = BaseTool.validate_params.__get__(tool)

    def run(**params: Any) -> Any:
        has_own_check = tool.validate_params != standard_check
        if has_own_check or params.keys() != names:
            for each in declared if has_plain_defaults else tool.get_parameters():
                if each.default is not None:
                    params.setdefault(each.name, each.default)
            if has_own_check or not required <= params.keys() <= names:
                problem = tool.validate_params(params)
                if problem:
                    return ToolResult(success=False, error=problem)
        return tool.execute(**params)

    return run
