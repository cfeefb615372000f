"""`Toolkit`: AgentScope's toolkit, with toolcrib's tools in it."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import AsyncGenerator, Callable, Sequence
from copy import deepcopy
from typing import Any, Final, TypeVar, cast, overload

from agentscope.exception import AgentOrientedException
from agentscope.mcp import MCPClient
from agentscope.message import ToolCallBlock
from agentscope.skill import Skill, SkillLoaderBase
from agentscope.state import AgentState
from agentscope.tool import (
    RegisteredTool,
    ToolBase,
    ToolChunk,
    ToolGroup,
    ToolMiddlewareBase,
    ToolResponse,
)
from agentscope.tool import Toolkit as Original
from agentscope.tool import _toolkit as original

import toolcrib
from toolcrib import Session, ToolkitView
from toolcrib.compat.agentscope2 import foreign
from toolcrib.compat.agentscope2.arguments import repairing_parser
from toolcrib.compat.agentscope2.call import Call
from toolcrib.compat.agentscope2.injection import injected, take_state
from toolcrib.compat.agentscope2.tool import CribTool, every_group, is_meta_tool

__all__ = ["Original", "Toolkit"]

F = TypeVar("F", bound=Callable[..., Any])

_BASIC: Final = "basic"
_DEFAULTS: Final = {name: it.default for name, it in inspect.signature(Original.__init__).parameters.items()}
# The sessions that are kept; one that was dropped loses its approvals for the run, and asks again.
_SESSIONS: Final = 1024


class Toolkit(Original):
    """A toolkit that behaves as the one of AgentScope 2.x, and has the tools of a toolcrib toolkit.

    Tools, MCP clients, skills and groups of AgentScope work as in its own toolkit. The tools of toolcrib are members
    of the groups of the same names. The state of each agent says which groups are active, and toolcrib's own switches
    neither matter nor change.

    Args:
        tools: AgentScope's tools of the group `basic`.
        skills_or_loaders: The skills of the group `basic`.
        mcps: AgentScope's MCP clients of the group `basic`.
        tool_groups: The other groups.
        meta_tool_response_template: The template of the meta tool's answers.
        skill_instruction_template: The template of the prompt about skills.
        toolkit: The toolkit, view or session of toolcrib; a new toolkit if it is None.
        middlewares: AgentScope's middlewares for toolcrib's tools, around those of toolcrib.
    """

    def __init__(
        self,
        tools: list[ToolBase] | None = None,
        skills_or_loaders: Sequence[str | Skill | SkillLoaderBase] | None = None,
        mcps: list[MCPClient] | None = None,
        tool_groups: list[ToolGroup] | None = None,
        meta_tool_response_template: str = _DEFAULTS["meta_tool_response_template"],
        skill_instruction_template: str = _DEFAULTS["skill_instruction_template"],
        *,
        toolkit: toolcrib.Toolkit | ToolkitView | None = None,
        middlewares: list[ToolMiddlewareBase] | None = None,
    ) -> None:
        self._view: ToolkitView | None = None
        super().__init__(
            tools, skills_or_loaders, mcps, tool_groups, meta_tool_response_template, skill_instruction_template
        )
        self._toolkit = toolcrib.Toolkit() if toolkit is None else toolkit
        self._is_session = isinstance(toolkit, Session)
        self._middlewares = middlewares
        self._crib_tools: dict[str, CribTool] = {}
        # The groups that exist because toolcrib has them.
        self._crib_groups: dict[str, ToolGroup] = {}
        self._sessions: dict[str, Session[Any]] = {}
        self._snapshot: list[tuple[ToolGroup, str, list[ToolBase]]] = []
        self._names: list[tuple[ToolBase, str]] = []
        self._index: dict[str, list[tuple[str, ToolBase]]] = {}
        # The tools of names that only `basic` has.
        self._basic_tools: dict[str, ToolBase] = {}
        # The schemas of all tools, pickled, if they cannot change.
        self._listing: bytes | None = None
        self._look_through(every_group(self._toolkit))

    def __deepcopy__(self, memo: dict[int, Any]) -> Toolkit:
        """Copy the groups with their tools, and the toolkit of toolcrib with them; a view or session is shared."""
        self._synchronise()
        copied = memo[id(self)] = type(self).__new__(type(self))
        view, middlewares = self._view, deepcopy(self._middlewares, memo)
        if isinstance(self._toolkit, toolcrib.Toolkit):
            view = every_group(deepcopy(self._toolkit, memo))
            for name, tool in self._crib_tools.items():
                memo[id(tool)] = CribTool(view, view.tools[name], middlewares)
        else:
            memo[id(self._toolkit)] = self._toolkit
        memo[id(self._view)] = view
        memo[id(self._sessions)] = {}
        copied.__dict__.update(deepcopy(self.__dict__, memo))
        copied._revision = -1
        return copied

    # Registration

    @property
    def toolkit(self) -> toolcrib.Toolkit | ToolkitView:
        """The toolkit, view or session of toolcrib."""
        return self._toolkit

    def register_tool_function(self, tool_func: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Register a callable with toolcrib; see `toolcrib.Toolkit.register_tool_function`.

        A parameter `_agent_state` is hidden from the model and filled with the state of the agent.
        """
        self._owned().register_tool_function(injected(tool_func), *args, **kwargs)

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(self, function: None = None, /, **options: Any) -> Callable[[F], F]: ...

    def tool(self, function: F | None = None, /, **options: Any) -> F | Callable[[F], F]:
        """Register the decorated function with toolcrib and return it unchanged; see `toolcrib.Toolkit.tool`."""
        toolkit = self._owned()

        def register(function: F) -> F:
            toolkit.tool(**options)(injected(function))
            return function

        return register if function is None else register(function)

    async def register_mcp_client(self, mcp_client: Any, *args: Any, **kwargs: Any) -> Any:
        """Register the tools of an MCP server with toolcrib; see `toolcrib.Toolkit.register_mcp_client`."""
        return await self._owned().register_mcp_client(mcp_client, *args, **kwargs)

    def create_tool_group(self, group_name: str, description: str, *args: Any, **kwargs: Any) -> None:
        """Add a group to toolcrib, and with it one of AgentScope; see `toolcrib.Toolkit.create_tool_group`."""
        if any(group.name == group_name for group in self.tool_groups):
            raise ValueError(f"tool group `{group_name}` exists already")
        self._owned().create_tool_group(group_name, description, *args, **kwargs)

    async def add_tool(self, tool: ToolBase | list[ToolBase], group_name: str = _BASIC) -> None:
        """Add AgentScope's tools to a group; a tool of the same name is replaced."""
        self._synchronise()
        replaced = [
            name
            for name in (it.name for it in (tool if isinstance(tool, list) else [tool]))
            if (known := self._crib_tools.get(name)) is not None and group_name in known.registered.groups
        ]
        await super().add_tool(tool, group_name)
        self._forget(replaced)

    async def remove_tool(self, tool_name: str | list[str]) -> None:
        """Remove tools from all groups. Names that there are not are ignored."""
        self._synchronise()
        await super().remove_tool(tool_name)
        names = [tool_name] if isinstance(tool_name, str) else tool_name
        self._forget([name for name in names if name in self._crib_tools])

    def clear(self) -> None:
        """Remove all groups with their tools, skills and MCP clients."""
        if isinstance(self._toolkit, toolcrib.Toolkit):
            self._toolkit.clear()
        elif self._view is not None:
            self._look_through(self._view.view(names=[]))
        self._crib_tools.clear()
        self._crib_groups.clear()
        self.tool_groups.clear()

    def _owned(self) -> toolcrib.Toolkit:
        if not isinstance(self._toolkit, toolcrib.Toolkit):
            raise TypeError("a view or session of toolcrib has no tools of its own: register them with its toolkit")
        return self._toolkit

    def _forget(self, names: list[str]) -> None:
        if not names or self._view is None:
            return
        if isinstance(self._toolkit, toolcrib.Toolkit):
            for name in names:
                self._toolkit.remove_tool_function(name)
        else:
            # The tools of a view are not this toolkit's to remove.
            self._look_through(self._view.view(exclude=names))

    # Groups

    @property
    def tool_groups(self) -> list[ToolGroup]:
        """The groups, `basic` first; a live list."""
        self._synchronise()
        return self._groups

    @tool_groups.setter
    def tool_groups(self, groups: list[ToolGroup]) -> None:
        self._groups = groups
        self._revision = -1

    def _look_through(self, view: ToolkitView) -> None:
        # The tools are made anew, because each is called through its view.
        for group in self._groups:
            self._fill(group, [])
        self._crib_tools.clear()
        self._sessions.clear()
        self._view = view
        self._revision = -1

    def _synchronise(self) -> None:
        # Brings the groups up to date with toolcrib, if anything has changed there.
        view = self._view
        if view is None or (revision := view._revision) == self._revision:
            return
        self._revision = revision
        self._crib_tools = self._current_tools(view)
        members: dict[str, list[ToolBase]] = {}
        for tool in self._crib_tools.values():
            for name in tool.registered.groups:
                members.setdefault(name, []).append(tool)
        groups = view.groups
        for name in [name for name in self._crib_groups if name not in groups]:
            self._drop_group(self._crib_groups.pop(name))
        known = {group.name for group in self._groups}
        if _BASIC in members and _BASIC not in known:
            self._groups.insert(0, ToolGroup(_BASIC))
        for name, group in groups.items():
            made = self._crib_groups.get(name)
            if made is None and name not in known:
                made = self._crib_groups[name] = ToolGroup(name, group.description)
                self._groups.append(made)
            if made is not None:
                made.description, made.instructions = group.description, group.notes
        for listed in self._groups:
            self._fill(listed, members.get(listed.name, []))

    def _current_tools(self, view: ToolkitView) -> dict[str, CribTool]:
        current = {}
        for name, registered in view._all_tools().items():
            tool = self._crib_tools.get(name)
            if tool is None or tool.registered != registered:
                if is_meta_tool(registered):
                    continue
                tool = CribTool(view, registered, self._middlewares)
            current[name] = tool
        return current

    def _fill(self, group: ToolGroup, wanted: list[ToolBase]) -> None:
        # Tools keep their places, and new ones come last.
        is_wanted = {id(tool) for tool in wanted}
        view = self._view
        kept = [tool for tool in group.tools if not _is_of(tool, view) or id(tool) in is_wanted]
        there = {id(tool) for tool in kept}
        group.tools = kept + [tool for tool in wanted if id(tool) not in there]

    def _drop_group(self, group: ToolGroup) -> None:
        self._fill(group, [])
        if not group.tools and not group.mcps and not group.skills_or_loaders and group in self._groups:
            self._groups.remove(group)

    # Lookup

    def _find(self, name: str, activated: Sequence[str] | None) -> ToolBase | None:
        # The tool of a name among those that are members of groups; None as groups for all groups. Those of
        # AgentScope's MCP clients, which have this prefix, are not members, and would take the place of one.
        self._update_index()
        entries = self._index.get(name)
        if isinstance(activated, str):
            activated = (activated,)
        if entries is None or (name.startswith("mcp__") and any(group.mcps for group in self._groups)):
            return None
        for group, tool in reversed(entries):
            if group == _BASIC or activated is None or group in activated:
                return tool
        return None

    def _update_index(self) -> None:
        if self._view is not None and self._view._revision != self._revision:
            self._synchronise()
        # The lists of groups are live: anything may have changed them.
        groups, at = self._groups, 0
        if len(groups) == len(self._snapshot):
            for known, name, tools in self._snapshot:
                group = groups[at]
                if group is not known or group.tools != tools or group.name != name:
                    break
                at += 1
            else:
                if not self._names or all(tool.name == name for tool, name in self._names):
                    return
        self._make_index()

    def _make_index(self) -> None:
        groups = self._groups
        self._snapshot = [(group, group.name, list(group.tools)) for group in groups]
        self._names = [(tool, tool.name) for group in groups for tool in group.tools if not isinstance(tool, CribTool)]
        self._index = {}
        self._listing = None
        for group in groups:
            for tool in group.tools:
                self._index.setdefault(tool.name, []).append((group.name, tool))
        self._basic_tools = {
            name: entries[0][1]
            for name, entries in self._index.items()
            if len(entries) == 1 and entries[0][0] == _BASIC and not name.startswith("mcp__")
        }

    async def _get_available_tools(self, groups: list[str] | None) -> dict[str, RegisteredTool]:
        # Private, but agents' helpers and tests read it.
        available: dict[str, RegisteredTool] = {}
        listed = self.tool_groups
        if isinstance(groups, str):
            groups = [groups]
        if await self._get_available_skills(groups):
            available[self.builtin_skill_viewer.tool.name] = self.builtin_skill_viewer
        if any(group.name != _BASIC for group in listed):
            available[self.builtin_meta_tool.tool.name] = self.builtin_meta_tool
        for group in listed:
            if group.name == _BASIC or group.name in (groups or ()):
                for tool in [*group.tools, *await _mcp_tools(group)]:
                    known = available.get(tool.name)
                    if known is not None and known.tool is not tool:
                        _warn("Duplicate tool name '%s' found in group '%s', overwriting it.", tool.name, group.name)
                    available[tool.name] = _registered(tool, group.name)
        return available

    async def get_tool_schemas(self, groups: list[str] | None = None) -> list[dict[str, Any]]:
        """Describe the tools of `basic` and of the named groups; the descriptions are copies."""
        is_lasting = self._has_only_crib_tools()
        if is_lasting and self._listing is not None:
            return cast("list[dict[str, Any]]", pickle.loads(self._listing))
        available = await self._get_available_tools(groups)
        schemas = [
            pickle.loads(it.tool.listing) if type(it.tool) is CribTool else it.get_tool_schema()
            for it in available.values()
        ]
        if is_lasting:
            self._listing = pickle.dumps(schemas)
        return schemas

    def _has_only_crib_tools(self) -> bool:
        # The schemas of all other tools may change at any time.
        self._update_index()
        if len(self._groups) != 1 or self._names:
            return False
        (group,) = self._groups
        return group.name == _BASIC and not group.mcps and not group.skills_or_loaders

    async def check_tool_available(self, tool_name: str, activated_groups: list[str]) -> ToolBase:
        """Return a tool of `basic` or of an active group.

        Raises:
            ToolGroupInactiveError: If its group is not active.
            ToolNotFoundError: If there is no such tool.
        """
        tool = self._find(tool_name, activated_groups or ())
        return await super().check_tool_available(tool_name, activated_groups) if tool is None else tool

    async def get_tool(self, name: str) -> ToolBase | None:
        """Return a tool of any group, active or not; None if there is no such tool."""
        tool = self._find(name, None)
        return await super().get_tool(name) if tool is None else tool

    # Calls

    def call_tool(self, tool_call: ToolCallBlock, state: AgentState) -> AsyncGenerator[ToolChunk | ToolResponse, None]:
        """Call a tool: give its chunks as they come, and then its result.

        A stream that is closed early closes the tool.
        """
        self._update_index()
        name = tool_call.name
        tool = self._basic_tools.get(name) or self._find(name, state.tool_context.activated_groups)
        return self._call_listed(tool_call, state) if tool is None else self._call(tool, tool_call, state)

    async def _call_listed(
        self, tool_call: ToolCallBlock, state: AgentState
    ) -> AsyncGenerator[ToolChunk | ToolResponse, None]:
        # Built-in tools and those of MCP clients are found by listing them.
        try:
            tool = await super().check_tool_available(tool_call.name, state.tool_context.activated_groups)
        except AgentOrientedException as error:
            chunk = foreign.error_chunk(error.message)
            yield chunk
            yield ToolResponse(id=tool_call.id).append_chunk(chunk)
            return
        chunks = self._call(tool, tool_call, state)
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            await chunks.aclose()

    def _call(
        self, tool: ToolBase, tool_call: ToolCallBlock, state: AgentState
    ) -> AsyncGenerator[ToolChunk | ToolResponse, None]:
        if not isinstance(tool, CribTool):
            return foreign.run(tool, lambda: _arguments(tool, tool_call, state), tool_call.id)
        session = self._sessions.get(state.session_id) if tool.view is self._view else None
        view = self._session(tool.view, state) if session is None else session
        if not tool._middlewares:
            return tool.calls.begin(view, tool_call, state)
        request = {"type": "tool_use", "id": tool_call.id, "name": tool.name, "input": None}
        bound = tool.bound_to(Call(view, request, bool(tool_call.suggested_rules), tool.in_their_words))
        return foreign.run(bound, lambda: _parsed(tool, tool_call, state), tool_call.id, bound.result_of)

    def _session(self, view: ToolkitView, state: AgentState) -> ToolkitView:
        # One for each conversation, with its approvals. Tools of another toolkit are called as they are.
        id = state.session_id
        if view is not self._view or not id or self._is_session:
            return view
        session = self._sessions.get(id)
        if session is None:
            if len(self._sessions) >= _SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            session = self._sessions[id] = view.session(id=id)
        return session


def _parsed(tool: CribTool, tool_call: ToolCallBlock, state: AgentState) -> dict[str, Any]:
    # In the first step of a call, in the context in which its function begins.
    if tool.takes_state:
        take_state(state)
    return tool.parse(tool_call.input)


def _arguments(tool: ToolBase, tool_call: ToolCallBlock, state: AgentState) -> dict[str, Any]:
    given: dict[str, Any] = repairing_parser(tool_call.input, tool.input_schema)
    if tool.is_state_injected and not tool.is_mcp and not tool.is_external_tool:
        given["_agent_state"] = state
    return given


def _registered(tool: ToolBase, group: str) -> RegisteredTool:
    # Made anew for AgentScope's tools, whose schemas may change at any time.
    return tool.registered_in(group) if type(tool) is CribTool else RegisteredTool(tool, group)


def _warn(message: str, *arguments: object) -> None:
    # By AgentScope's logger, whose level and handlers the program has set.
    original.logger.warning(message, *arguments)


def _is_of(tool: ToolBase, view: ToolkitView | None) -> bool:
    return isinstance(tool, CribTool) and tool.view is view


async def _mcp_tools(group: ToolGroup) -> list[ToolBase]:
    # A server that fails is left out, as by AgentScope.
    listed: list[ToolBase] = []
    for client in group.mcps:
        try:
            listed.extend(await client.list_tools())
        except Exception as error:
            reason = original._describe_exception(error)
            _warn("Skipping MCP '%s' in group '%s': listing its tools failed with %s", client.name, group.name, reason)
    return listed
