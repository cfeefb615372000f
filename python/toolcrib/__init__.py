"""The tool layer of LLM agents: register tools, describe them to models, authorize calls, and run them."""

from typing import TYPE_CHECKING

from toolcrib import _core, errors
from toolcrib._core import (
    AgentDefinition,
    AgentFolder,
    AgentInput,
    AgentLimits,
    AgentOutput,
    AgentPrompt,
    AgentRun,
    Approvals,
    ArgumentReader,
    Limits,
    NativeTool,
    Policy,
    RegisteredToolFunction,
    ResultBudget,
    Role,
    Roles,
    Session,
    Store,
    TextParser,
    ToolCall,
    ToolGroup,
    ToolkitView,
    ToolResponse,
    ToolStream,
    Usage,
    __version__,
    format_tool_result,
    parse_tool_calls,
)
from toolcrib.toolkit import Toolkit

if TYPE_CHECKING:
    from toolcrib import agent, context, declared, mcp, tracing
    from toolcrib._failure import FailedCall
    from toolcrib.blocks import (
        AudioBlock,
        Base64Source,
        ImageBlock,
        TextBlock,
        ThinkingBlock,
        ToolResultBlock,
        ToolUseBlock,
        URLSource,
        VideoBlock,
    )
    from toolcrib.context import Question, ToolContext
    from toolcrib.declared import DeclaredTool, ToolInvocation, ToolParameter
    from toolcrib.dialects import DialectSchemas, DialectToolkit, Loss
    from toolcrib.skill import AgentSkill
else:
    # Modules that many programs never use are imported when one of their names is first accessed.
    _LAZY = {
        "agent": (),
        "mcp": (),
        "tracing": (),
        "_failure": ("FailedCall",),
        "blocks": (
            "AudioBlock",
            "Base64Source",
            "ImageBlock",
            "TextBlock",
            "ThinkingBlock",
            "ToolResultBlock",
            "ToolUseBlock",
            "URLSource",
            "VideoBlock",
        ),
        "context": ("Question", "ToolContext"),
        "declared": ("DeclaredTool", "ToolInvocation", "ToolParameter"),
        "dialects": ("DialectSchemas", "DialectToolkit", "Loss"),
        "skill": ("AgentSkill",),
    }

    def __getattr__(name):
        """Import the module that defines a name."""
        from importlib import import_module

        for module, names in _LAZY.items():
            if name == module or name in names:
                found = import_module(f"toolcrib.{module}")
                globals().update({name: getattr(found, name) for name in names})
                return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        """List the lazy names too."""
        return sorted({*globals(), *_LAZY, *__all__})


__all__ = [
    "AgentDefinition",
    "AgentFolder",
    "AgentInput",
    "AgentLimits",
    "AgentOutput",
    "AgentPrompt",
    "AgentRun",
    "AgentSkill",
    "Approvals",
    "ArgumentReader",
    "AudioBlock",
    "Base64Source",
    "DeclaredTool",
    "DialectSchemas",
    "DialectToolkit",
    "FailedCall",
    "ImageBlock",
    "Limits",
    "Loss",
    "NativeTool",
    "Policy",
    "Question",
    "RegisteredToolFunction",
    "ResultBudget",
    "Role",
    "Roles",
    "Session",
    "Store",
    "TextBlock",
    "TextParser",
    "ThinkingBlock",
    "ToolCall",
    "ToolContext",
    "ToolGroup",
    "ToolInvocation",
    "ToolParameter",
    "ToolResponse",
    "ToolResultBlock",
    "ToolStream",
    "ToolUseBlock",
    "Toolkit",
    "ToolkitView",
    "URLSource",
    "Usage",
    "VideoBlock",
    "__version__",
    "agent",
    "context",
    "declared",
    "errors",
    "format_tool_result",
    "mcp",
    "parse_tool_calls",
    "tracing",
]

# At import rather than at first use, which may be during interpreter shutdown, when imports fail.
_core._resolve()
