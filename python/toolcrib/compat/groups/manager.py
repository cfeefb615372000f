"""`ToolGroupManager`: groups of tool definitions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from toolcrib._core import _name_list, _ToolRoster
from toolcrib.errors import InvalidGroupError, ReservedGroupError, ReservedGroupRemovalError, UnknownGroupError

__all__ = ["BUILTIN_TOOL_GROUPS", "Outcome", "ToolGroupManager"]

log = logging.getLogger("toolcrib")

BUILTIN_TOOL_GROUPS: dict[str, dict[str, Any]] = {
    "org_management": {
        "description": "组织管理工具",
        "tools": [
            "find_role_by_name",
            "create_role",
            "spawn_agent",
            "spawn_agent_with_task",
            "terminate_agent",
            "send_message",
        ],
    },
    "artifact": {"description": "工件管理工具", "tools": ["put_artifact", "get_artifact"]},
    "workspace": {
        "description": "工作空间工具",
        "tools": ["read_file", "write_file", "list_files", "get_workspace_info"],
    },
    "command": {"description": "命令执行工具", "tools": ["run_command", "run_javascript"]},
    "network": {"description": "网络工具", "tools": ["http_request"]},
    "context": {"description": "上下文管理工具", "tools": ["compress_context", "get_context_status"]},
    "console": {"description": "控制台工具", "tools": ["console_print"]},
}
"""The groups that every manager starts with: their descriptions and the names of their tools."""


class Outcome(dict[str, Any]):
    """The result of a change: `{"ok": True}`, or `{"ok": False, "error": code}`.

    Attributes:
        warning: The warning of a successful change: `duplicate_group_id` if a group was replaced.
    """

    warning: str | None = None


class ToolGroupManager:
    """A registry of groups of tool definitions.

    A tool may be in several groups, so that `getToolDefinitions` and `isToolInGroups` always agree, and no group can
    take a tool from another. `getToolGroup` returns the latest group.

    Args:
        registerBuiltins: If true, start with the seven reserved groups; their tools are placeholders until
            `updateGroupTools` defines them.
        logger: The logger of warnings; `toolcrib` by default.

    Attributes:
        changes: The number of changes so far.
    """

    def __init__(self, *, registerBuiltins: bool = True, logger: logging.Logger | None = None) -> None:
        """Start with the builtin groups, or with none."""
        self.log = logger or log
        self.changes = 0
        self._roster = _ToolRoster()
        if registerBuiltins:
            for id, group in BUILTIN_TOOL_GROUPS.items():
                self.registerGroup(id, {**group, "tools": list(map(_placeholder, group["tools"]))}, True)

    def registerGroup(self, groupId: str, groupDef: Any, isReserved: bool = False) -> Outcome:
        """Add a group, or replace the one that has the id; a reserved id is refused.

        Args:
            groupId: The id.
            groupDef: `{"description": ..., "tools": [...]}`; entries other than named functions are left out.
            isReserved: If true, the id can no longer be registered or unregistered.
        """
        if not isinstance(groupId, str):
            return Outcome(ok=False, error=InvalidGroupError.code)
        is_there = self.hasGroup(groupId)
        outcome = self._change(lambda: self._roster.register(groupId, groupDef, reserved=isReserved))
        if is_there and outcome["ok"]:
            outcome.warning = "duplicate_group_id"
            self.log.warning("the tool group '%s' was registered before and is replaced", groupId)
        return outcome

    def unregisterGroup(self, groupId: str) -> Outcome:
        """Remove a group; its tools stay in their other groups."""
        return self._change(lambda: self._roster.unregister(groupId))

    def updateGroupTools(self, groupId: str, tools: Any) -> Outcome:
        """Replace the tools of a group, reserved or not."""
        return self._change(lambda: self._roster.update(groupId, tools))

    def getToolDefinitions(self, groupIds: Iterable[str]) -> list[dict[str, Any]]:
        """Return the definitions of these groups; the first definition of a name wins."""
        ids = _name_list("groupIds", groupIds)
        for unknown in [id for id in ids if not self.hasGroup(id)]:
            self.log.warning("there is no tool group '%s'", unknown)
        return self._roster.definitions(ids)

    def listGroups(self) -> list[dict[str, Any]]:
        """Describe every group, in the order of registration."""
        return [_described(group) for group in self._roster.list()]

    def getGroup(self, groupId: str) -> dict[str, Any] | None:
        """Describe a group, or return `None`."""
        group = self._roster.get(groupId)
        return _described(group) if group else None

    def getToolGroup(self, toolName: str) -> str | None:
        """Return the group that a tool joined last."""
        return self._roster.holder(toolName)

    def isToolInGroups(self, toolName: str, groupIds: Iterable[str]) -> bool:
        """Return true if one of these groups contains the tool."""
        return self._roster.is_in(toolName, groupIds)

    def getAllGroupIds(self) -> list[str]:
        """Return the ids of all groups, in the order of registration."""
        return self._roster.ids()

    def hasGroup(self, groupId: str) -> bool:
        """Return true if a group has this id."""
        return groupId in self._roster

    def isReservedGroup(self, groupId: str) -> bool:
        """Return true if the id is reserved."""
        return self._roster.is_reserved(groupId)

    def getGroupCount(self) -> int:
        """Count the groups."""
        return len(self._roster)

    def getAllToolNames(self) -> list[str]:
        """Return the names of all tools, each once."""
        return self._roster.tool_names()

    def describeGroups(self) -> str:
        """Describe every group as a line of a prompt: its id, its description and its tools."""
        return "\n".join(
            f"- {group['id']}: {group['description']} ({', '.join(group['tools'])})" for group in self.listGroups()
        )

    def getToolGroupsSchema(self) -> dict[str, Any]:
        """Return the schema of a list of groups, as a parameter of `create_role`, with those that there are now."""
        groups = "\n".join(f"- {group['id']}: {group['description']}" for group in self.listGroups())
        return {
            "type": "array",
            "items": {"type": "string", "enum": self.getAllGroupIds()},
            "description": f"岗位可用的工具组标识符\n{groups}",
        }

    def _change(self, change: Callable[[], object]) -> Outcome:
        try:
            change()
        except (InvalidGroupError, ReservedGroupError, ReservedGroupRemovalError, UnknownGroupError) as error:
            return Outcome(ok=False, error=error.code)
        self.changes += 1
        return Outcome(ok=True)

    register_group = registerGroup
    unregister_group = unregisterGroup
    update_group_tools = updateGroupTools
    get_tool_definitions = getToolDefinitions
    list_groups = listGroups
    get_group = getGroup
    get_tool_group = getToolGroup
    is_tool_in_groups = isToolInGroups
    get_all_group_ids = getAllGroupIds
    has_group = hasGroup
    is_reserved_group = isReservedGroup
    get_group_count = getGroupCount
    get_all_tool_names = getAllToolNames
    describe_groups = describeGroups
    get_tool_groups_schema = getToolGroupsSchema


def _placeholder(name: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {}}
    return {"type": "function", "function": {"name": name, "description": "", "parameters": parameters}}


def name_of(definition: Any) -> str | None:
    """Return the name of the function that an entry defines, or `None`."""
    function = definition.get("function") if isinstance(definition, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) and name else None


def _described(group: dict[str, Any]) -> dict[str, Any]:
    names = {"tool_count": "toolCount", "reserved": "isReserved"}
    return {names.get(key, key): value for key, value in group.items()}
