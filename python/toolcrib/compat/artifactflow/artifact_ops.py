"""The artifact tools of ArtifactFlow: versioned texts that the agents of a session work on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from toolcrib import Store, Toolkit, ToolResponse, tools
from toolcrib._core import _name_list, _write_call
from toolcrib.compat.artifactflow.base import BaseTool, ToolParameter, ToolResult

__all__ = [
    "ArtifactManager",
    "CreateArtifactTool",
    "ReadArtifactTool",
    "RewriteArtifactTool",
    "UpdateArtifactTool",
    "create_artifact_tools",
]

TEMPORARY_IDS: Final = ("task_plan",)


class ArtifactManager:
    """The artifacts of sessions, and the session that the tools work in.

    Args:
        repository: The store of the artifacts; None keeps them in memory.
    """

    def __init__(self, repository: Store | None = None) -> None:
        self.current_session_id: str | None = None
        self.set_repository(repository)

    def set_repository(self, repository: Store | None) -> None:
        """Use another store."""
        self._toolkit = Toolkit()
        tools.register(self._toolkit, "artifacts", store=repository)

    def set_session(self, session_id: str | None) -> None:
        """Set the session that the tools work in."""
        self.current_session_id = session_id

    async def list_artifacts(
        self, session_id: str | None = None, full_content_ids: Iterable[str] = ()
    ) -> list[dict[str, Any]]:
        """List the artifacts of a session, with previews of 200 letters.

        Args:
            session_id: The session; the current one if it is None. Without either, there are none.
            full_content_ids: The artifacts that are listed with their whole content.
        """
        session_id = self.current_session_id if session_id is None else session_id
        if session_id is None:
            return []
        response = await self.call(session_id, "list_artifacts", full=_name_list("full_content_ids", full_content_ids))
        listed: list[dict[str, Any]] = (response.metadata or {})["value"]["artifacts"]
        return listed

    async def clear_temporary_artifacts(
        self, session_id: str | None = None, temporary_ids: Iterable[str] = TEMPORARY_IDS
    ) -> int:
        """Delete the artifacts that a session needs for one message of the user only, such as its plan.

        Call it when a new message begins.

        Args:
            session_id: The session; the current one if it is None. Without either, there are none.
            temporary_ids: The ids of temporary artifacts.

        Returns:
            The number of artifacts that were deleted.
        """
        session_id = self.current_session_id if session_id is None else session_id
        if session_id is None:
            return 0
        listed = {artifact["id"] for artifact in await self.list_artifacts(session_id)}
        ids = [id for id in _name_list("temporary_ids", temporary_ids) if id in listed]
        responses = [await self.call(session_id, "delete_artifact", id=id) for id in ids]
        return sum(response.code is None for response in responses)

    async def call(self, session_id: str, tool: str, **params: Any) -> ToolResponse:
        """Call a tool of the core in a session."""
        return await self._toolkit.session(id=session_id).call(tool, **params)


class _ArtifactTool(BaseTool):
    """A tool of the core, in the current session of a manager.

    Args:
        manager: The manager; `set_manager` sets it later.
    """

    tool: str
    text: str

    def __init__(self, manager: ArtifactManager | None = None) -> None:
        super().__init__(self.tool, self.text)
        self._manager = manager

    def set_manager(self, manager: ArtifactManager) -> None:
        """Set the manager."""
        self._manager = manager

    async def execute(self, **params: Any) -> ToolResult:
        """Call the tool of the core."""
        if self._manager is None:
            return ToolResult(success=False, error="ArtifactManager not configured")
        if not self._manager.current_session_id:
            return ToolResult(success=False, error="No active session")
        types = {parameter.name: parameter.type for parameter in self.get_parameters()}
        given = {name: _text(value) if types[name] == "string" else value for name, value in params.items()}
        response = await self._manager.call(self._manager.current_session_id, self.name, **given)
        if response.code is not None:
            return ToolResult(success=False, error=response.text.removeprefix("Error: "))
        metadata = dict(response.metadata or {})
        return ToolResult(success=True, data=metadata.pop("value"), metadata=metadata)


class CreateArtifactTool(_ArtifactTool):
    """Creates an artifact."""

    tool = "create_artifact"
    text = "Create a new artifact: a versioned text, such as a plan or a report."

    def get_parameters(self) -> list[ToolParameter]:
        """Return the parameters."""
        return [
            ToolParameter("id", "string", "The id of the artifact, unique in the session."),
            ToolParameter("content_type", "string", "The type of the content.", required=False, default="markdown"),
            ToolParameter("title", "string", "The title."),
            ToolParameter("content", "string", "The content."),
        ]


class UpdateArtifactTool(_ArtifactTool):
    """Replaces a part of an artifact."""

    tool = "update_artifact"
    text = "Update an artifact: replace one text in it by another."

    def get_parameters(self) -> list[ToolParameter]:
        """Return the parameters."""
        return [
            ToolParameter("id", "string", "The id of the artifact."),
            ToolParameter("old_str", "string", "The text to replace, which must occur once."),
            ToolParameter("new_str", "string", "The text in its place."),
        ]

    def to_xml_example(self) -> str:
        """Write an example call, with texts of several lines and two notes."""
        params = {
            "id": "task_plan",
            "old_str": "## Step 1\n- [ ] Search for sources",
            "new_str": "## Step 1\n- [x] Search for sources",
        }
        return f"""{_write_call("xml", self.name, params)}
Note: quote old_str exactly as it is in the artifact, with its line breaks.
Note: quote enough of it that it occurs only once."""


class RewriteArtifactTool(_ArtifactTool):
    """Replaces the content of an artifact."""

    tool = "rewrite_artifact"
    text = "Rewrite an artifact: replace its whole content."

    def get_parameters(self) -> list[ToolParameter]:
        """Return the parameters."""
        return [
            ToolParameter("id", "string", "The id of the artifact."),
            ToolParameter("content", "string", "The new content."),
        ]


class ReadArtifactTool(_ArtifactTool):
    """Reads an artifact."""

    tool = "read_artifact"
    text = "Read an artifact, or an earlier version of it."

    def get_parameters(self) -> list[ToolParameter]:
        """Return the parameters."""
        return [
            ToolParameter("id", "string", "The id of the artifact."),
            ToolParameter("version", "integer", "The version; the current one if it is missing.", required=False),
        ]


def create_artifact_tools(manager: ArtifactManager) -> list[BaseTool]:
    """Make the four tools of a manager."""
    return [
        CreateArtifactTool(manager),
        UpdateArtifactTool(manager),
        RewriteArtifactTool(manager),
        ReadArtifactTool(manager),
    ]


def _text(value: object) -> object:
    """Make a text again of what the parser took for a number or a boolean."""
    return json.dumps(value) if isinstance(value, (bool, int, float)) else value
