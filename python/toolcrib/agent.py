"""Sub-agents: agents that another agent calls as a tool."""

from toolcrib._agent_loop import AgentBudget, AgentResult, agent_loop
from toolcrib._agents import AgentRegistration, CallSubagent
from toolcrib._core import AgentDefinition, AgentFolder, AgentInput, AgentLimits, AgentOutput, AgentPrompt, AgentRun
from toolcrib._model_message import ModelMessage, ModelReply
from toolcrib.subagent import SubAgentSpec, SubAgentUnavailable, make_subagent_tool

__all__ = [
    "AgentBudget",
    "AgentDefinition",
    "AgentFolder",
    "AgentInput",
    "AgentLimits",
    "AgentOutput",
    "AgentPrompt",
    "AgentRegistration",
    "AgentResult",
    "AgentRun",
    "CallSubagent",
    "ModelMessage",
    "ModelReply",
    "SubAgentSpec",
    "SubAgentUnavailable",
    "agent_loop",
    "make_subagent_tool",
]
