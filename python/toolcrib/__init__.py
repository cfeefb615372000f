"""Keep the tools of LLM agents, tell models about them, decide who may call them, and run them."""

from toolcrib import _core, errors, tracing
from toolcrib._core import (
    Approvals,
    ArgumentReader,
    NativeTool,
    Policy,
    RegisteredToolFunction,
    Role,
    Roles,
    TextParser,
    ToolCall,
    ToolGroup,
    ToolkitView,
    ToolResponse,
    ToolStream,
    format_tool_result,
    parse_tool_calls,
)
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
from toolcrib.dialects import DialectSchemas, DialectToolkit, Loss
from toolcrib.skill import AgentSkill
from toolcrib.toolkit import Toolkit

__all__ = [
    "AgentSkill",
    "Approvals",
    "ArgumentReader",
    "AudioBlock",
    "Base64Source",
    "DialectSchemas",
    "DialectToolkit",
    "ImageBlock",
    "Loss",
    "NativeTool",
    "Policy",
    "RegisteredToolFunction",
    "Role",
    "Roles",
    "TextBlock",
    "TextParser",
    "ThinkingBlock",
    "ToolCall",
    "ToolGroup",
    "ToolResponse",
    "ToolResultBlock",
    "ToolStream",
    "ToolUseBlock",
    "Toolkit",
    "ToolkitView",
    "URLSource",
    "VideoBlock",
    "errors",
    "format_tool_result",
    "parse_tool_calls",
    "tracing",
]

# Now rather than at first use, which may come when nothing can be imported any more.
_core._resolve()
