"""`tools` and `tool_groups`: the tools of toolcrib for AgentScope's own toolkit."""

from __future__ import annotations

import pickle
from collections.abc import AsyncGenerator, Callable
from copy import copy
from functools import cached_property
from typing import Any

from agentscope.permission import PermissionContext, PermissionDecision, PermissionRule
from agentscope.tool import RegisteredTool, ToolBase, ToolChunk, ToolGroup, ToolMiddlewareBase, ToolResponse

import toolcrib
from toolcrib import RegisteredToolFunction, ToolkitView, _core
from toolcrib.compat.agentscope2 import arguments, permission
from toolcrib.compat.agentscope2.blocks import MODELS
from toolcrib.compat.agentscope2.call import Call, CallStream
from toolcrib.compat.agentscope2.injection import is_injected, take_state
from toolcrib.errors import UnknownGroupError

__all__ = ["CribTool", "every_group", "is_meta_tool", "tool_groups", "tools"]

_READING = frozenset({"read", "search", "fetch", "think"})


def every_group(source: toolcrib.Toolkit | ToolkitView) -> ToolkitView:
    """Return a view that shows the tools of all groups: what is active is in the state of each agent."""
    return source.view(inactive=True)


def is_meta_tool(registered: RegisteredToolFunction) -> bool:
    """Return True for the tool that switches the groups of the toolkit, in whose place AgentScope has its own."""
    owner = getattr(registered.original_func, "__self__", None)
    return isinstance(owner, toolcrib.Toolkit) and registered.original_func == owner.reset_equipped_tools


def tools(
    toolkit: toolcrib.Toolkit | ToolkitView,
    group_name: str = "basic",
    *,
    middlewares: list[ToolMiddlewareBase] | None = None,
) -> list[ToolBase]:
    """Make AgentScope's tools of those in one group.

    Args:
        toolkit: The toolkit, a view or a session.
        group_name: The group. Its switch in toolcrib neither matters nor changes.
        middlewares: AgentScope's middlewares, around those of toolcrib.

    Raises:
        UnknownGroupError: If there is no such group.

    Example:
        toolkit = agentscope.tool.Toolkit(tools=tools(kit), tool_groups=tool_groups(kit))
    """
    view = every_group(toolkit)
    if group_name != "basic" and group_name not in view.groups:
        raise UnknownGroupError(f"unknown tool group `{group_name}`")
    shown = view.tools.values()
    return [
        CribTool(view, registered, middlewares)
        for registered in shown
        if group_name in registered.groups and not is_meta_tool(registered)
    ]


def tool_groups(
    toolkit: toolcrib.Toolkit | ToolkitView, *, middlewares: list[ToolMiddlewareBase] | None = None
) -> list[ToolGroup]:
    """Make AgentScope's groups of all groups but `basic`, with their tools.

    Args:
        toolkit: The toolkit, a view or a session.
        middlewares: AgentScope's middlewares, around those of toolcrib.
    """
    view = every_group(toolkit)
    made = {
        name: CribTool(view, registered, middlewares)
        for name, registered in view.tools.items()
        if not is_meta_tool(registered)
    }
    return [
        ToolGroup(
            name,
            group.description,
            group.notes,
            tools=[tool for tool in made.values() if name in tool.registered.groups],
        )
        for name, group in view.groups.items()
    ]


class CribTool(ToolBase):
    """A tool of toolcrib.

    Args:
        view: The view or session that it is called through, of all groups.
        registered: The tool.
        middlewares: AgentScope's middlewares.
    """

    is_concurrency_safe = True

    def __init__(
        self,
        view: ToolkitView,
        registered: RegisteredToolFunction,
        middlewares: list[ToolMiddlewareBase] | None = None,
    ) -> None:
        super().__init__(middlewares)
        self.name = registered.name
        self.registered = registered
        self.view = view
        # The call that it is bound to, and the chunks of it.
        self._binding: Call | None = None
        self._sent: list[ToolChunk] = []
        self._entries: dict[str, RegisteredTool] = {}

    def __deepcopy__(self, _memo: dict[int, Any]) -> CribTool:
        """Return the tool itself: it has no state but the toolkit's."""
        return self

    @cached_property
    def _function(self) -> dict[str, Any]:
        function: dict[str, Any] = self.registered.extended_json_schema["function"]
        return function

    @cached_property
    def description(self) -> str:
        """The description for the model."""
        return str(self._function.get("description") or "")

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The schema of the arguments: an object with properties, which AgentScope requires."""
        return _as_object(self._function.get("parameters") or {})

    @cached_property
    def is_read_only(self) -> bool:
        """True if calls change nothing."""
        return self.registered.kind in _READING

    @cached_property
    def mcp_name(self) -> str | None:
        """The name of the MCP client whose server has the tool."""
        return self.registered.mcp_name

    @cached_property
    def is_mcp(self) -> bool:
        """True if an MCP server has the tool."""
        return self.mcp_name is not None

    @cached_property
    def parse(self) -> Callable[[str], dict[str, Any]]:
        """The parser of the arguments."""
        return arguments.parser_of(self.input_schema)

    @cached_property
    def takes_state(self) -> bool:
        """True if the function takes the state of the agent."""
        return is_injected(self.registered.original_func)

    @cached_property
    def in_their_words(self) -> bool:
        """True if exceptions are described by their text alone, which has no values that the model must not see."""
        return not (self.registered.secrets or self.registered.preset_kwargs)

    @cached_property
    def calls(self) -> _core._ModelCalls:
        """The calls without middlewares of AgentScope."""
        take = take_state if self.takes_state else None
        return _core._ModelCalls(MODELS, self.name, self.parse, take, self.in_their_words, CallStream)

    @cached_property
    def listing(self) -> bytes:
        """The schema for the model, to be unpickled, which is the quickest way to copy it."""
        return pickle.dumps(RegisteredTool(self).get_tool_schema())

    def registered_in(self, group: str) -> RegisteredTool:
        """Return the entry of AgentScope's table of tools."""
        entry = self._entries.get(group)
        if entry is None:
            entry = self._entries[group] = RegisteredTool(self, group)
        return entry

    def bound_to(self, call: Call) -> CribTool:
        """Return the same tool with a call that has begun elsewhere."""
        bound = copy(self)
        bound._binding, bound._sent = call, []
        return bound

    def request(self, tool_input: dict[str, Any]) -> dict[str, Any]:
        """Make the block of a call."""
        return {"type": "tool_use", "name": self.name, "input": tool_input}

    async def call(self, **kwargs: Any) -> AsyncGenerator[ToolChunk, None]:
        """Run the tool: with toolcrib's middlewares, policy, events and audit."""
        call = self._binding
        if call is None:
            # Of a tool that was removed since, the toolkit says so.
            is_known = self.view.toolkit._find_tool(self.name) is not None
            call = Call(self.view if is_known else self.view.toolkit, self.request(kwargs), None, False)
        else:
            call.request["input"] = kwargs
        try:
            while (chunk := await call.next()) is not None:
                if self._binding is not None:
                    self._sent.append(chunk)
                yield chunk
        finally:
            await call.aclose()

    def result_of(self, chunks: list[ToolChunk], total: ToolResponse) -> ToolResponse:
        """Return the result of a call that it is bound to, unless middlewares of AgentScope have changed its chunks."""
        sent = self._sent
        is_same = len(chunks) == len(sent) and all(one is other for one, other in zip(chunks, sent, strict=True))
        return self._binding.result(total.id) if is_same and self._binding is not None else total

    async def check_permissions(self, tool_input: dict[str, Any], context: PermissionContext) -> PermissionDecision:
        """Decide about a call by toolcrib's policy."""
        return permission.decide(self.view, self.request(tool_input), context)

    async def check_read_only(self, tool_input: dict[str, Any]) -> bool:
        """Return True if a call changes nothing and the policy lets it run, because AgentScope asks no more then."""
        return self.is_read_only and permission.would_run(self.view, self.request(tool_input))

    async def match_rule(self, rule_content: str | None, tool_input: dict[str, Any]) -> bool:
        """Return True if the content of a rule fits the arguments: `argument=value`, or all of them as JSON."""
        return permission.matches(rule_content, tool_input)

    async def generate_suggestions(self, tool_input: dict[str, Any]) -> list[PermissionRule]:
        """Suggest a rule to the user: one for any arguments only if toolcrib does not ask."""
        suggested = permission.suggestions(self.view, self.name, tool_input)
        if suggested is None:
            suggested = await super().generate_suggestions(tool_input)
        return suggested


def _as_object(schema: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: Any = schema
        for part in reference[2:].split("/"):
            target = target.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
        if isinstance(target, dict):
            schema = {**{name: value for name, value in schema.items() if name != "$ref"}, **target}
    properties = schema.get("properties")
    return {**schema, "type": "object", "properties": properties if isinstance(properties, dict) else {}}
