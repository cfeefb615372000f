"""Sub-agents: agents that another agent calls as a tool."""

from toolcrib._agent_loop import AgentBudget, AgentResult, ModelMessage, ModelReply, agent_loop
from toolcrib._core import AgentDefinition, AgentFolder, AgentInput, AgentLimits, AgentOutput, AgentPrompt, AgentRun

__all__ = [
    "AgentBudget",
    "AgentDefinition",
    "AgentFolder",
    "AgentInput",
    "AgentLimits",
    "AgentOutput",
    "AgentPrompt",
    "AgentResult",
    "AgentRun",
    "ModelMessage",
    "ModelReply",
    "agent_loop",
]
