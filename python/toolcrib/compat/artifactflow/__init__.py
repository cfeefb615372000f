"""ArtifactFlow's tool interface on toolcrib.

Change the imports, each from the package or from the module of the same name as in ArtifactFlow:

    from toolcrib.compat.artifactflow import BaseTool, ToolParameter, ToolPermission, ToolResult

A `BaseTool` can also be registered in a `toolcrib.Toolkit`: its parameters become the schema, `ToolPermission.CONFIRM`
becomes the permission `"confirm"`, and a failed `ToolResult` becomes a response with the code `"failed"`.
"""

from toolcrib.compat.artifactflow.artifact_ops import (
    ArtifactManager,
    CreateArtifactTool,
    ReadArtifactTool,
    RewriteArtifactTool,
    UpdateArtifactTool,
    create_artifact_tools,
)
from toolcrib.compat.artifactflow.base import BaseTool, CallSubagentTool, ToolParameter, ToolPermission, ToolResult
from toolcrib.compat.artifactflow.execution import EventType, PermissionRequest, ToolExecution
from toolcrib.compat.artifactflow.prompt_generator import ToolPromptGenerator
from toolcrib.compat.artifactflow.registry import AgentToolkit, ToolRegistry
from toolcrib.compat.artifactflow.web_tools import (
    FetchedPage,
    SearchResult,
    SearchResults,
    WebFetchTool,
    WebSearchTool,
)
from toolcrib.compat.artifactflow.xml_parser import ToolCall, XMLToolCallParser, parse_tool_calls

__all__ = [
    "AgentToolkit",
    "ArtifactManager",
    "BaseTool",
    "CallSubagentTool",
    "CreateArtifactTool",
    "EventType",
    "FetchedPage",
    "PermissionRequest",
    "ReadArtifactTool",
    "RewriteArtifactTool",
    "SearchResult",
    "SearchResults",
    "ToolCall",
    "ToolExecution",
    "ToolParameter",
    "ToolPermission",
    "ToolPromptGenerator",
    "ToolRegistry",
    "ToolResult",
    "UpdateArtifactTool",
    "WebFetchTool",
    "WebSearchTool",
    "XMLToolCallParser",
    "create_artifact_tools",
    "parse_tool_calls",
]
