"""`Org`: the roles of an organisation, and which agent has which."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from toolcrib._core import Role, Roles
from toolcrib.errors import FileAccessError, InvalidRoleError, RoleFileError, SystemRoleError

__all__ = ["Org"]


class Org:
    """Keeps roles by id and name, and the roles of agents.

    The role of the agent `root` is fixed and not kept here.
    """

    def __init__(self) -> None:
        """Begin without roles and agents."""
        self._roles = Roles()
        self._agents: dict[Any, dict[str, Any]] = {}

    def createRole(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Add a role and give its record; if there is one of that name, give it as it is.

        A name that is none, or that of the root role, gives `{"error": code}`.

        Args:
            fields: `name`, and perhaps `rolePrompt`, `createdBy`, `llmServiceId` and `toolGroups`; the last is a list
                of ids, which may be empty, and means the default if it is anything else.
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
        return _record(self._role(name))

    def getRole(self, roleId: Any) -> dict[str, Any] | None:
        """Give the record of a role, or `None`."""
        if roleId is None:
            return None
        return next((role for role in self.listRoles() if role.get("id") == roleId), None)

    def findRoleByName(self, name: str) -> dict[str, Any] | None:
        """Give the record of the role of this name, or `None`."""
        role = self._roles.get(name)
        return _record(role) if role else None

    def listRoles(self) -> list[dict[str, Any]]:
        """Give the records of all roles, in the order they were created."""
        return [_record(self._role(name)) for name in self._roles]

    def updateRole(self, roleId: Any, fields: Mapping[str, Any]) -> dict[str, Any] | None:
        """Change a role's `rolePrompt` or `toolGroups`, and give its record; `None` if there is no such role.

        An empty list of groups means none, as it does in `createRole`: clearing a list never opens everything.
        """
        record = self.getRole(roleId)
        if record is None:
            return None
        name = record["name"]
        if "toolGroups" in fields:
            self._roles.update(name, tool_groups=_groups(fields["toolGroups"]))
        return _record(self._roles.update(name, prompt=fields.get("rolePrompt")))

    def deleteRole(self, roleId: Any) -> bool:
        """Take a role away, and tell whether it was there: agents that have it see nothing from now on."""
        record = self.getRole(roleId)
        if record is None:
            return False
        self._roles.remove(record["name"])
        return True

    def createAgent(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Say which role an agent has: `{"id": ..., "roleId": ...}`."""
        self._agents[fields["id"]] = dict(fields)
        return dict(fields)

    def getAgent(self, agentId: Any) -> dict[str, Any] | None:
        """Give the record of an agent, or `None`."""
        agent = self._agents.get(agentId)
        return dict(agent) if agent else None

    def save(self, path: str | PathLike[str]) -> None:
        """Keep the roles in a JSON file, which is replaced in one step."""
        self._roles.save(path)

    def load(self, path: str | PathLike[str]) -> dict[str, Any]:
        """Read the roles of a file, those of its records that are whole, and tell what is wrong with the others.

        A file that is missing or no file of roles changes nothing: `{"loaded": False, "errors": [...]}`.
        """
        try:
            problems = self._roles.load(path, strict=False)
        except (RoleFileError, FileAccessError) as error:
            return {"loaded": False, "errors": [str(error)]}
        return {"loaded": True, "errors": problems}

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


def _groups(given: Any) -> list[str] | None:
    return list(given) if isinstance(given, list | tuple) else None


def _record(role: Role) -> dict[str, Any]:
    fields = {"name": role.name, "rolePrompt": role.prompt, "toolGroups": role.tool_groups, "status": "active"}
    return {**role.details, **fields}
