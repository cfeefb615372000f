"""ArtifactFlow's tool interface, kept by toolcrib.

Change the imports, each from the package or from the module that has the name of ArtifactFlow's own:

    from toolcrib.compat.artifactflow import BaseTool, ToolParameter, ToolPermission, ToolResult

A `BaseTool` may also be registered in a `toolcrib.Toolkit`, where it is a tool like any other: its parameters become
the schema, `ToolPermission.CONFIRM` the permission `"confirm"`, and a failed `ToolResult` a response with the code
`"failed"`.
"""

from toolcrib.compat.artifactflow.base import BaseTool, ToolParameter, ToolPermission, ToolResult
from toolcrib.compat.artifactflow.prompt_generator import ToolPromptGenerator
from toolcrib.compat.artifactflow.registry import AgentToolkit, ToolRegistry

__all__ = [
    "AgentToolkit",
    "BaseTool",
    "ToolParameter",
    "ToolPermission",
    "ToolPromptGenerator",
    "ToolRegistry",
    "ToolResult",
]
