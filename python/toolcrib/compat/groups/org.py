"""`Org`: the roles of an organisation and of its agents."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from toolcrib._core import Role, Roles
from toolcrib.errors import FileAccessError, InvalidRoleError, RoleFileError, SystemRoleError

__all__ = ["Org"]


class Org:
    """A registry of roles by id and name, and of the roles of agents.

    The role of the agent `root` is fixed and not stored here.

    Attributes:
        changes: The number of changes so far.
    """

    def __init__(self) -> None:
        """Start without roles and agents."""
        self.changes = 0
        self._roles = Roles()
        self._agents: dict[Any, dict[str, Any]] = {}

    def createRole(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Add a role and return its record; if a role of that name exists, return it unchanged.

        An invalid name, or that of the root role, gives `{"error": code}`.

        Args:
            fields: `name`, and optionally `rolePrompt`, `createdBy`, `llmServiceId` and `toolGroups`. The last is a
                list of ids, which may be empty; any other value means the default.
        """
        name = fields.get("name")
        if not isinstance(name, str):
            return {"error": InvalidRoleError.code}
        if name not in self._roles:
            details = {key: fields[key] for key in ("createdBy", "llmServiceId") if fields.get(key) is not None}
            try:
                self._roles.add(Role(name, fields.get("rolePrompt") or "", _groups(fields.get("toolGroups")), details))
            except (InvalidRoleError, SystemRoleError) as error:
                return {"error": error.code}
            self.changes += 1
        return _record(self._role(name))

    def getRole(self, roleId: Any) -> dict[str, Any] | None:
        """Return the record of a role, or `None`."""
        if roleId is None:
            return None
        return next((role for role in self.listRoles() if role.get("id") == roleId), None)

    def findRoleByName(self, name: str) -> dict[str, Any] | None:
        """Return the record of the role with this name, or `None`."""
        role = self._roles.get(name)
        return _record(role) if role else None

    def listRoles(self) -> list[dict[str, Any]]:
        """Return the records of all roles, in the order of creation."""
        return [_record(self._role(name)) for name in self._roles]

    def updateRole(self, roleId: Any, fields: Mapping[str, Any]) -> dict[str, Any] | None:
        """Change a role's `rolePrompt` or `toolGroups`, and return its record; `None` if the role is unknown.

        An empty list means no groups, as in `createRole`, so that clearing a list never allows all groups.
        """
        record = self.getRole(roleId)
        if record is None:
            return None
        name = record["name"]
        if "toolGroups" in fields:
            self._roles.update(name, tool_groups=_groups(fields["toolGroups"]))
        role = self._roles.update(name, prompt=fields.get("rolePrompt"))
        self.changes += 1
        return _record(role)

    def deleteRole(self, roleId: Any) -> bool:
        """Remove a role, whose agents then see nothing; return true if it existed."""
        record = self.getRole(roleId)
        if record is None:
            return False
        self._roles.remove(record["name"])
        self.changes += 1
        return True

    def createAgent(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Set the role of an agent: `{"id": ..., "roleId": ...}`."""
        self._agents[fields["id"]] = dict(fields)
        self.changes += 1
        return dict(fields)

    def getAgent(self, agentId: Any) -> dict[str, Any] | None:
        """Return the record of an agent, or `None`."""
        agent = self._agents.get(agentId)
        return dict(agent) if agent else None

    def save(self, path: str | PathLike[str]) -> None:
        """Save the roles in a JSON file, which is replaced atomically."""
        self._roles.save(path)

    def load(self, path: str | PathLike[str]) -> dict[str, Any]:
        """Load the valid records of a file, and return the problems of the others.

        A missing or invalid file changes nothing: `{"loaded": False, "errors": [...]}`.
        """
        try:
            problems = self._roles.load(path, strict=False)
        except (RoleFileError, FileAccessError) as error:
            return {"loaded": False, "errors": [str(error)]}
        self.changes += 1
        return {"loaded": True, "errors": problems}

    def loadOrReset(self, path: str | PathLike[str]) -> dict[str, Any]:
        """Load a file as `load` does; if it is missing or invalid, start without roles."""
        outcome = self.load(path)
        if not outcome["loaded"]:
            self._roles = Roles()
            self.changes += 1
        return outcome

    def _role(self, name: str) -> Role:
        role = self._roles.get(name)
        assert role is not None
        return role

    create_role = createRole
    get_role = getRole
    find_role_by_name = findRoleByName
    list_roles = listRoles
    update_role = updateRole
    delete_role = deleteRole
    create_agent = createAgent
    get_agent = getAgent
    load_or_reset = loadOrReset


def _groups(given: Any) -> list[str] | None:
    return list(given) if isinstance(given, list | tuple) else None


def _record(role: Role) -> dict[str, Any]:
    fields = {"name": role.name, "rolePrompt": role.prompt, "toolGroups": role.tool_groups, "status": "active"}
    return {**role.details, **fields}
