"""Sub-agents: agents that another agent calls as a tool."""

from toolcrib._core import AgentDefinition, AgentFolder, AgentInput, AgentLimits, AgentOutput, AgentPrompt

__all__ = ["AgentDefinition", "AgentFolder", "AgentInput", "AgentLimits", "AgentOutput", "AgentPrompt"]
