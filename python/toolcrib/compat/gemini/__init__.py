"""Declarative tools, sub-agents, policy and message bus with the interface of gemini-cli.

Names are those of gemini-cli in Python's spelling: `shouldConfirmExecute` is `should_confirm_execute`. Mappings of
fields may keep its spelling. toolcrib's core validates parameters, runs the agents and calls the tools; the
documentation lists the differences.
"""

from toolcrib.compat.gemini.agents import (
    AgentDefinition,
    AgentRegistry,
    SubagentInvocation,
    SubagentToolWrapper,
    convert_input_config_to_json_schema,
)
from toolcrib.compat.gemini.bus import (
    MessageBus,
    MessageBusType,
    ToolConfirmationDetails,
    ToolConfirmationOutcome,
    ToolConfirmationRequest,
    ToolConfirmationResponse,
    ToolExecutionFailure,
    ToolExecutionSuccess,
    ToolPolicyRejection,
    UpdatePolicy,
    create_policy_updater,
)
from toolcrib.compat.gemini.policy import PolicyCheck, PolicyDecision, PolicyEngine, PolicyRule, SafetyChecker
from toolcrib.compat.gemini.policy_files import (
    LoadedPolicies,
    PolicyFileError,
    PolicyTier,
    load_policies,
    rules_of_settings,
)
from toolcrib.compat.gemini.registry import Config, ToolRegistry
from toolcrib.compat.gemini.tools import (
    BaseDeclarativeTool,
    BaseToolInvocation,
    DiscoveredMCPTool,
    ToolErrorType,
    ToolInvocation,
)
from toolcrib.declared import CancelSignal, Kind, ToolFailure, ToolLocation, ToolResult

__all__ = [
    "AgentDefinition",
    "AgentRegistry",
    "BaseDeclarativeTool",
    "BaseToolInvocation",
    "CancelSignal",
    "Config",
    "DiscoveredMCPTool",
    "Kind",
    "LoadedPolicies",
    "MessageBus",
    "MessageBusType",
    "PolicyCheck",
    "PolicyDecision",
    "PolicyEngine",
    "PolicyFileError",
    "PolicyRule",
    "PolicyTier",
    "SafetyChecker",
    "SubagentInvocation",
    "SubagentToolWrapper",
    "ToolConfirmationDetails",
    "ToolConfirmationOutcome",
    "ToolConfirmationRequest",
    "ToolConfirmationResponse",
    "ToolErrorType",
    "ToolExecutionFailure",
    "ToolExecutionSuccess",
    "ToolFailure",
    "ToolInvocation",
    "ToolLocation",
    "ToolPolicyRejection",
    "ToolRegistry",
    "ToolResult",
    "UpdatePolicy",
    "convert_input_config_to_json_schema",
    "create_policy_updater",
    "load_policies",
    "rules_of_settings",
]
