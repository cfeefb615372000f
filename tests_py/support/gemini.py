"""Tools, bus and agents of `toolcrib.compat.gemini`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from toolcrib.compat.gemini import (
    BaseDeclarativeTool,
    CancelSignal,
    Kind,
    MessageBus,
    ToolConfirmationDetails,
    ToolInvocation,
    ToolResult,
)

CASES: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent.parent / "tests/data/gemini_cases.json").read_text(encoding="utf-8")
)

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


class ReadFileInvocation(ToolInvocation[dict[str, Any]]):
    """One call of `ReadFileTool`."""

    tool: ReadFileTool

    async def execute(self, signal: CancelSignal, update_output: Any = None) -> ToolResult:
        """Give the path back."""
        self.tool.ran.append(self.params["path"])
        return ToolResult([{"text": f"content of {self.params['path']}"}], "shown")


class ReadFileTool(BaseDeclarativeTool[dict[str, Any]]):
    """A tool that records its runs."""

    def __init__(self, name: str = "read_file", message_bus: MessageBus | None = None, schema: Any = PATH) -> None:
        super().__init__(name, "Read File", "Read a file.", Kind.READ, schema, message_bus=message_bus)
        self.ran: list[str] = []

    def create_invocation(self, params: dict[str, Any]) -> ToolInvocation[dict[str, Any]]:
        """Return the invocation."""
        return ReadFileInvocation(params)

    def validate_tool_param_values(self, params: dict[str, Any]) -> str | None:
        """Refuse absolute paths."""
        return "path must be relative" if str(params.get("path", "")).startswith("/") else None


class ShellInvocation(ReadFileInvocation):
    """One call that the tool itself wants to be confirmed."""

    async def get_confirmation_details(self, signal: CancelSignal) -> ToolConfirmationDetails | bool:
        """Return the details."""
        return ToolConfirmationDetails("exec", "Confirm Shell", self.publish_outcome, {"command": self.params["path"]})


class ShellTool(ReadFileTool):
    """A tool that wants its calls to be confirmed."""

    def create_invocation(self, params: dict[str, Any]) -> ToolInvocation[dict[str, Any]]:
        """Return the invocation."""
        return ShellInvocation(params)
