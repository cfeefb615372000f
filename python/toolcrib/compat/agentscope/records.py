"""The dictionaries `tools`, `groups` and `skills` of the compatible toolkit, and their records.

The records have AgentScope's classes and fields and can be edited. A record that was handed out is compared with what
its tool was made from before tools are listed, and before the tool is called; if it was edited, the tool is made anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from toolcrib import _core
from toolcrib.compat.agentscope import _original
from toolcrib.compat.agentscope._live import LiveDict
from toolcrib.compat.agentscope._original import ToolGroup
from toolcrib.errors import UnknownGroupError

if TYPE_CHECKING:
    from toolcrib._core import ToolStream
    from toolcrib.compat.agentscope.toolkit import Toolkit

__all__ = ["Groups", "RegisteredToolFunction", "Skills", "Tools"]

_FIELDS = (
    "name",
    "group",
    "source",
    "original_func",
    "json_schema",
    "preset_kwargs",
    "original_name",
    "extended_model",
    "mcp_name",
    "postprocess_func",
    "async_execution",
)


class RegisteredToolFunction(_original.RegisteredToolFunction):  # type: ignore[misc]
    """AgentScope's record of a tool, with toolcrib's attributes: `call`, and the options that only toolcrib has."""

    __slots__ = ("_function", "_tool")

    @classmethod
    def _of(cls, tool: _core.RegisteredToolFunction) -> RegisteredToolFunction:
        """Make the record of a tool."""
        function = tool.original_func
        if tool.mcp_name is not None and not isinstance(function, _core.NativeTool):
            # AgentScope registers the method of the object that a client gives.
            function = getattr(function, "__call__", function)  # noqa: B004
        record = cls(
            name=tool.name,
            group=tool.group,
            source="function",
            original_func=function,
            json_schema=tool.json_schema,
            preset_kwargs=tool.preset_kwargs,
            original_name=tool.original_name,
            extended_model=tool.extended_model,
            mcp_name=tool.mcp_name,
            postprocess_func=tool.postprocess_func,
            async_execution=tool.async_execution,
        )
        record._tool, record._function = tool, function
        return record

    def call(self, *, arguments: dict[str, Any], stream_print: Any = None) -> ToolStream:
        """Call the tool as it was registered, even if its group is inactive; see `toolcrib.RegisteredToolFunction`."""
        tool: _core.RegisteredToolFunction = self._tool
        return tool.call(arguments=arguments, stream_print=stream_print)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"'RegisteredToolFunction' object has no attribute '{name}'")
        return getattr(self._tool, name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _original.RegisteredToolFunction):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _FIELDS)

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)


def _core_record(record: Any) -> dict[str, Any]:
    """Return a record as the core reads it, with the options that only the tool behind it has."""
    tool = getattr(record, "_tool", None)
    entries: dict[str, Any] = {} if tool is None else tool._record
    function = entries.get("original_func")
    for name in _FIELDS[1:]:
        entries[name] = getattr(record, name)
    if tool is not None and record.original_func is record._function:
        entries["original_func"] = function
    if tool is not None and record.group != tool.group:
        entries["groups"] = []
    if tool is not None and record.extended_model is not tool.extended_model:
        entries["is_finish"] = False
    return entries


class _Seen:
    """The fields of a record that its tool was made from."""

    __slots__ = ("fields", "presets", "schema")

    def __init__(self, record: Any) -> None:
        self.fields = self._plain(record)
        self.presets = dict(record.preset_kwargs)
        self.schema = deepcopy(record.json_schema)

    @staticmethod
    def _plain(record: Any) -> tuple[Any, ...]:
        return (
            record.group,
            record.original_func,
            record.original_name,
            record.extended_model,
            record.mcp_name,
            record.postprocess_func,
            record.async_execution,
        )

    def is_current(self, record: Any) -> bool:
        """Return True if the record was not edited."""
        # By identity: comparing the presets of a program could run any code.
        presets = record.preset_kwargs
        return (
            all(now is before or now == before for now, before in zip(self._plain(record), self.fields, strict=True))
            and len(presets) == len(self.presets)
            and all(name in self.presets and self.presets[name] is value for name, value in presets.items())
            and record.json_schema == self.schema
        )


class Tools(LiveDict[Any]):
    """The tools by the names that calls use."""

    def __init__(self, toolkit: Toolkit) -> None:
        super().__init__()
        self._toolkit = toolkit
        self._revision = -1
        # The tool behind each record; None for a record whose group does not exist.
        self._made: dict[str, _core.RegisteredToolFunction | None] = {}
        self._seen: dict[str, _Seen] = {}

    def _pull(self) -> None:
        revision = self._toolkit._revision
        if revision == self._revision:
            return
        self._revision = revision
        tools = self._toolkit._all_tools()
        made = self._made
        for key in [key for key, tool in made.items() if tool is not None and key not in tools]:
            self._forget(key)
        for key, tool in tools.items():
            if made.get(key) is not tool:
                self._remember(key, RegisteredToolFunction._of(tool), tool)
        if list(dict.keys(self))[: len(tools)] != list(tools):
            entries = {key: dict.__getitem__(self, key) for key in (*tools, *(key for key in made if key not in tools))}
            dict.clear(self)
            dict.update(self, entries)

    def _remember(self, key: str, record: Any, tool: _core.RegisteredToolFunction | None) -> None:
        dict.__setitem__(self, key, record)
        self._made[key] = tool
        self._seen.pop(key, None)

    def _forget(self, key: str) -> None:
        dict.pop(self, key, None)
        self._made.pop(key, None)
        self._seen.pop(key, None)

    def _hand_out(self, key: str) -> None:
        if key not in self._seen:
            self._seen[key] = _Seen(dict.__getitem__(self, key))
            self._toolkit._watch_records()

    def _put(self, key: str, value: Any) -> None:
        if isinstance(value, _core.RegisteredToolFunction):
            value = RegisteredToolFunction._of(value)
        if not isinstance(value, _original.RegisteredToolFunction):
            raise TypeError(f"tools[{key!r}] must be a RegisteredToolFunction, not {type(value).__name__}")
        try:
            tool = self._make(key, value)
        except UnknownGroupError:
            # The group may be created before the next listing, which raises otherwise.
            tool = None
            self._toolkit._remove(key)
        self._remember(key, value, tool)
        self._hand_out(key)

    def _make(self, key: str, record: Any) -> _core.RegisteredToolFunction:
        entries = _core_record(record)
        # Another toolkit may not have all groups that the tool is in.
        entries["groups"] = [name for name in entries.get("groups", ()) if self._toolkit._find_group(name) is not None]
        return self._toolkit._put_tool(key, entries)

    def _drop(self, key: str) -> None:
        self._toolkit._remove(key)
        self._forget(key)

    def forget_all(self) -> None:
        """Drop all entries, after the toolkit was cleared."""
        for key in list(self._made):
            self._forget(key)

    def _leave(self, group: str) -> None:
        """Keep the records of a group that was removed by itself, without tools."""
        self._hand_out_all()
        for key, record in dict.items(self):
            if record.group == group:
                self._made[key] = None

    def apply(self, name: str | None) -> None:
        """Make the tools anew whose records were edited.

        Args:
            name: The tool that is about to be called; None for all.

        Raises:
            UnknownGroupError: If the group of a record does not exist.
        """
        keys: Iterable[str] = list(self._seen) if name is None else (name,)
        for key in keys:
            seen = self._seen.get(key)
            if seen is None:
                continue
            tool, record = self._made[key], dict.__getitem__(self, key)
            if tool is not None and self._toolkit._find_tool(key) is not tool:
                # It was removed or registered again meanwhile.
                self._pull()
            elif tool is None or not seen.is_current(record):
                self._made[key] = self._make(key, record)
                self._seen[key] = _Seen(record)

    def adopt(self, key: str, **fields: Any) -> None:
        """Take over a change that the toolkit has made to a tool, if its record was handed out."""
        if key in self._seen:
            record = dict.__getitem__(self, key)
            for name, value in fields.items():
                setattr(record, name, value)
            self._made[key] = self._toolkit._find_tool(key)
            self._seen[key] = _Seen(record)


class Groups(LiveDict[Any]):
    """The groups by name, without `basic`."""

    def __init__(self, toolkit: Toolkit) -> None:
        super().__init__()
        self._toolkit = toolkit
        self._revision = -1
        self._seen: dict[str, tuple[Any, ...]] = {}

    @staticmethod
    def _fields(group: Any) -> tuple[Any, ...]:
        return group.active, group.description, group.notes

    def _pull(self) -> None:
        self.apply()
        if self._revision != self._toolkit._revision:
            self.refresh()

    def refresh(self) -> None:
        """Bring the records up to date with the toolkit."""
        self._revision = self._toolkit._revision
        groups = self._toolkit._all_groups()
        for key in [key for key in dict.keys(self) if key not in groups]:
            dict.pop(self, key)
            self._seen.pop(key, None)
        for key, group in groups.items():
            if not dict.__contains__(self, key):
                dict.__setitem__(self, key, ToolGroup(key, group.active, group.description, group.notes))
                continue
            record = dict.__getitem__(self, key)
            now = record.active, record.description, record.notes = self._fields(group)
            if key in self._seen:
                self._seen[key] = now

    def apply(self) -> None:
        """Change the groups whose records were edited."""
        for key, seen in list(self._seen.items()):
            record = dict.__getitem__(self, key)
            now = self._fields(record)
            if now == seen:
                continue
            group = self._toolkit._find_group(key)
            if group is not None:
                self._change(group, record, seen)
            self._seen[key] = now

    @staticmethod
    def _change(group: _core.ToolGroup, record: Any, seen: tuple[Any, ...]) -> None:
        # Only what was edited: the toolkit may have changed the rest.
        if record.active != seen[0]:
            group.active = bool(record.active)
        if record.description != seen[1]:
            group.description = record.description
        if record.notes != seen[2]:
            group.notes = record.notes

    def _hand_out(self, key: str) -> None:
        if key not in self._seen:
            self._seen[key] = self._fields(dict.__getitem__(self, key))
            self._toolkit._watch_records()

    def _put(self, key: str, value: Any) -> None:
        if not all(hasattr(value, name) for name in ("active", "description", "notes")):
            raise TypeError(f"groups[{key!r}] must be a ToolGroup, not {type(value).__name__}")
        group = self._toolkit._find_group(key)
        if group is None:
            fields = {"name": key, "description": value.description, "active": value.active, "notes": value.notes}
            self._toolkit._put_group(fields)
        else:
            group.active, group.description, group.notes = bool(value.active), value.description, value.notes
        dict.__setitem__(self, key, value)
        self._seen[key] = self._fields(value)
        self._toolkit._watch_records()
        self._revision = self._toolkit._revision

    def _drop(self, key: str) -> None:
        # In AgentScope the tools of the group stay, and cannot be listed until there is such a group again.
        self._toolkit.tools._leave(key)
        self._toolkit._remove_group(key)
        dict.pop(self, key)
        self._seen.pop(key, None)


class Skills(LiveDict[Any]):
    """The skills by name."""

    def __init__(self, toolkit: Toolkit) -> None:
        super().__init__()
        self._toolkit = toolkit
        self._seen: dict[str, dict[str, Any]] = {}

    def _pull(self) -> None:
        skills = self._toolkit._all_skills()
        for key in [key for key in dict.keys(self) if key not in skills]:
            self.forget(key)
        for key, skill in skills.items():
            if not dict.__contains__(self, key):
                dict.__setitem__(self, key, skill)

    def forget(self, key: str) -> None:
        """Drop an entry that the toolkit has removed."""
        dict.pop(self, key, None)
        self._seen.pop(key, None)

    def _hand_out(self, key: str) -> None:
        self._seen.setdefault(key, dict(dict.__getitem__(self, key)))

    def _put(self, key: str, value: Any) -> None:
        self._toolkit._put_skill(key, value)
        dict.__setitem__(self, key, value)
        self._seen[key] = dict(value)

    def _drop(self, key: str) -> None:
        self._toolkit._remove_skill(key)
        self.forget(key)

    def apply(self) -> None:
        """Change the skills whose records were edited."""
        self._pull()
        for key, seen in list(self._seen.items()):
            skill = dict.__getitem__(self, key)
            if skill != seen:
                self._put(key, skill)
