"""Keep the tools of LLM agents, tell models about them, decide who may call them, and run them."""

from typing import TYPE_CHECKING

from toolcrib import _core, errors
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
from toolcrib.toolkit import Toolkit

if TYPE_CHECKING:
    from toolcrib import tracing
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
else:
    # Classes that only describe, and parts that many programs never use: each module is imported for its first name.
    _LAZY = {
        "tracing": (),
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
        "dialects": ("DialectSchemas", "DialectToolkit", "Loss"),
        "skill": ("AgentSkill",),
    }

    def __getattr__(name):
        """Import the module that a name is found in."""
        from importlib import import_module

        for module, names in _LAZY.items():
            if name == module or name in names:
                found = import_module(f"toolcrib.{module}")
                globals().update({name: getattr(found, name) for name in names})
                return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        """Name the lazy parts as well."""
        return sorted({*globals(), *_LAZY, *__all__})


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
