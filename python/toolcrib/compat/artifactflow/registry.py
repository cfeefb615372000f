"""The registry of all tools, and the toolkits of the agents."""

from __future__ import annotations

import logging
from typing import Any

from toolcrib.compat.artifactflow.base import BaseTool, ToolResult

__all__ = ["AgentToolkit", "ToolRegistry"]

log = logging.getLogger("toolcrib")


class AgentToolkit:
    """The tools of one agent. The program that runs the agent checks their permissions."""

    def __init__(self, agent_name: str) -> None:
        self.agent_name = agent_name
        self.tools: dict[str, BaseTool] = {}

    def add_tool(self, tool: BaseTool) -> None:
        """Add a tool, or replace the one with its name."""
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
        """Run a tool; an unknown name gives a failed result."""
        tool = self.get_tool(name)
        if tool is None:
            return ToolResult(success=False, error=f"Tool '{name}' not available in {self.agent_name}'s toolkit")
        return await tool(**params)


class ToolRegistry:
    """All tools, and the toolkit of each agent."""

    def __init__(self) -> None:
        self.tool_library: dict[str, BaseTool] = {}
        self.agent_toolkits: dict[str, AgentToolkit] = {}

    def register_tool_to_library(self, tool: BaseTool) -> None:
        """Add a tool, or replace the one with its name."""
        self.tool_library[tool.name] = tool

    def create_agent_toolkit(self, agent_name: str, tool_names: list[str] | None = None) -> AgentToolkit:
        """Create or replace the toolkit of an agent; an unknown tool is logged."""
        toolkit = AgentToolkit(agent_name)
        for name in tool_names or ():
            if name in self.tool_library:
                toolkit.add_tool(self.tool_library[name])
            else:
                log.warning("there is no tool '%s' for the toolkit of '%s'", name, agent_name)
        self.agent_toolkits[agent_name] = toolkit
        return toolkit

    def get_agent_toolkit(self, agent_name: str) -> AgentToolkit | None:
        """Find the toolkit of an agent."""
        return self.agent_toolkits.get(agent_name)
