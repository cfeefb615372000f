"""Registration of the tools of MCP servers, and their changes while the toolkit is in use.

A client lists its tools and makes callables of them: `name`, `list_tools()`, `get_callable_function(func_name=,
wrap_tool_result=, execution_timeout=)` and, if it stays connected, `is_connected`. toolcrib's own clients and
AgentScope's have this interface; those of other libraries get it by `toolcrib.mcp.adapt`.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolcrib import _core
from toolcrib._mcp_adapter import AdaptedTool, dumped
from toolcrib.errors import DuplicateToolError, InvalidFilterError, ToolcribError, UnknownGroupError

if TYPE_CHECKING:
    from toolcrib.lock import DefinitionFlag
    from toolcrib.toolkit import Toolkit

__all__ = ["McpRegistration", "McpRegistrations", "Registrations"]

_log = logging.getLogger("toolcrib")

_FILTERS: dict[str, Any] = {
    "enable_funcs": None,
    "disable_funcs": None,
    "preset_kwargs_mapping": None,
    "wrap_tool_result": True,
}
"""The options that make sense for a single server only."""


@dataclass
class McpRegistration:
    """The tools of one server in a toolkit.

    Attributes:
        client: The name of the client.
        tools: The names of the registered tools, by their names at the server.
        skipped: The reasons why other tools were not registered, by their names at the server.
        flags: Warnings about the definitions, by the names of the tools at the server. They are also logged.
    """

    client: str
    tools: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    flags: list[DefinitionFlag] = field(default_factory=list)


@dataclass
class McpRegistrations:
    """The tools of several servers in a toolkit.

    Attributes:
        registered: The registrations by the names of the clients.
        problems: The exceptions of the clients that could not be connected or registered, by name.
    """

    registered: dict[str, McpRegistration] = field(default_factory=dict)
    problems: dict[str, Exception] = field(default_factory=dict)


class Registrations:
    """The servers of one toolkit."""

    def __init__(self, toolkit: Toolkit) -> None:
        self._toolkit = weakref.ref(toolkit)
        self._live: dict[str, list[_LiveServer]] = {}

    async def register(self, client: Any, **options: Any) -> McpRegistration:
        """Register the tools of a connected client."""
        from toolcrib.mcp import McpClient, adapt

        toolkit = self._toolkit()
        assert toolkit is not None
        if not isinstance(client, McpClient) and not hasattr(client, "get_callable_function"):
            client = adapt(client)
        if not getattr(client, "is_connected", True):
            raise RuntimeError("The MCP client is not connected to the server. Use the `connect()` method first.")
        server = _Server(toolkit, client, **options)
        await server.register_all()
        if isinstance(client, McpClient):
            live = _LiveServer(server)
            self._live.setdefault(client.name, []).append(live)
            live.watch()
        return server.registration

    async def register_several(self, clients: Iterable[Any] | Mapping[str, Any], **options: Any) -> McpRegistrations:
        """Connect and register several clients at once."""
        from toolcrib.mcp import McpClient, McpClients, connect_all

        result = McpRegistrations()
        if isinstance(clients, Mapping) and not isinstance(clients, McpClients):
            clients = connect_all(clients)
        if isinstance(clients, McpClients):
            members: list[Any] = list(clients._all.values())
        else:
            members = list(clients)

        async def register(client: Any) -> McpRegistration:
            if isinstance(client, McpClient):
                await client._opened()
            return await self.register(client, **_FILTERS, **options)

        outcomes = await asyncio.gather(*map(register, members), return_exceptions=True)
        for client, outcome in zip(members, outcomes, strict=True):
            if isinstance(outcome, McpRegistration):
                result.registered[client.name] = outcome
            elif isinstance(outcome, Exception):
                result.problems[client.name] = outcome
                _log.warning("the MCP server of '%s' is not registered: %s", client.name, outcome)
            else:
                raise outcome
        return result

    def remove(self, client_names: str | list[str]) -> None:
        """Remove every tool of these clients."""
        names = [client_names] if isinstance(client_names, str) else client_names
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise TypeError(f"client_names must be a list of strings, not {client_names!r}")
        toolkit = self._toolkit()
        assert toolkit is not None
        for name in names:
            for live in self._live.pop(name, []):
                live.end()
        for name, tool in toolkit.tools.items():
            if tool.mcp_name in names:
                toolkit.remove_tool_function(name)

    def accept(self, name: str) -> None:
        """Register the new definition of a tool that its server has redefined."""
        for live in [live for servers in self._live.values() for live in servers]:
            live.accept(name)


class _Server:
    """A server with the options of its registration."""

    def __init__(
        self,
        toolkit: Toolkit,
        client: Any,
        *,
        enable_funcs: list[str] | None,
        disable_funcs: list[str] | None,
        preset_kwargs_mapping: dict[str, dict[str, Any]] | None,
        execution_timeout: float | None,
        wrap_tool_result: bool,
        namespace: str | bool,
        namesake_strategy: str,
        **options: Any,
    ) -> None:
        check_filters(enable_funcs, disable_funcs)
        if not isinstance(preset_kwargs_mapping, dict | None):
            raise TypeError(f"preset_kwargs_mapping must be a dictionary or None, not {type(preset_kwargs_mapping)}")
        self.toolkit = weakref.ref(toolkit)
        self.client = client
        self.registration = McpRegistration(client.name)
        self._enabled = None if enable_funcs is None else set(enable_funcs)
        self._disabled = set(disable_funcs or ())
        self._presets = preset_kwargs_mapping or {}
        self._timeout = execution_timeout
        self._wrap = wrap_tool_result
        self._namespace = client.name if namespace is True else namespace or None
        self._namesake = namesake_strategy
        self._options = options

    def wants(self, name: str) -> bool:
        """Return true if the filters select a tool."""
        return (self._enabled is None or name in self._enabled) and name not in self._disabled

    async def register_all(self) -> None:
        """Register the tools that pass the filters; one that cannot be registered is skipped with a warning."""
        listed = list(await self.client.list_tools())
        await self._flag(listed)
        offered = [tool.name for tool in listed]
        for name in (self._enabled or set()) - set(offered):
            _log.warning(
                "unknown tool '%s' in enable_funcs: the MCP server of '%s' does not have it", name, self.client.name
            )
        wanted = list(filter(self.wants, offered))
        if self._namesake == "raise":
            self._check_names(wanted)
        for name in wanted:
            function = await self.client.get_callable_function(
                func_name=name, wrap_tool_result=self._wrap, execution_timeout=self._timeout
            )
            self.register(name, function, self._namesake)

    async def _flag(self, listed: list[Any]) -> None:
        """Warn of definitions that try to deceive a model or a reviewer."""
        toolkit = self.toolkit()
        assert toolkit is not None
        definitions = [dumped(tool) for tool in listed if self.wants(tool.name)]
        for flag in await _core._mcp_flags(definitions, list(toolkit.tools)):
            self.registration.flags.append(flag)
            _log.warning(
                "tool %r of the MCP server of '%s' has a suspicious definition: %s at %s: %s",
                flag.tool,
                self.client.name,
                flag.kind,
                flag.path,
                flag.evidence,
            )

    def register(self, name: str, function: Any, namesake: str) -> None:
        """Register one tool.

        Args:
            name: The name at the server.
            function: The tool.
            namesake: The action if its name in the toolkit is taken.
        """
        toolkit = self.toolkit()
        if toolkit is None:
            return
        registered = self._name(toolkit, name, namesake == "rename")
        options = dict(self._options)
        if isinstance(function, AdaptedTool):
            options["timeout"] = function.timeout
        try:
            toolkit.register_tool_function(
                function,
                func_name=None if registered == name else registered,
                preset_kwargs=self._presets.get(name),
                namesake_strategy=namesake,  # type: ignore[arg-type] # checked by the callee
                **options,
            )
        except (DuplicateToolError, UnknownGroupError):
            raise
        except ToolcribError as error:
            self.registration.skipped[name] = str(error)
            _log.warning("skipping tool %r of the MCP server of '%s': %s", name, self.client.name, error)
        else:
            if getattr(toolkit.tools.get(registered), "mcp_name", None) == self.client.name:
                self.registration.tools[name] = registered
            else:
                self.registration.skipped[name] = f"the name '{registered}' is taken"

    def _name(self, toolkit: Toolkit, name: str, avoids_taken: bool) -> str:
        """Return the name in the toolkit: valid for every provider, with a suffix that is the same in each run."""
        return _core._mcp_tool_name(self.client.name, self._namespace, name, toolkit.tools if avoids_taken else ())

    def _check_names(self, names: Iterable[str]) -> None:
        """Raise an exception for names that are taken, before the first tool is registered."""
        toolkit = self.toolkit()
        assert toolkit is not None
        for name in names:
            registered = self._name(toolkit, name, avoids_taken=False)
            if registered in toolkit.tools:
                raise DuplicateToolError(f"A function with name '{registered}' is already registered in the toolkit.")

    def tool(self, name: str) -> Any:
        """Return a tool of the last list of toolcrib's own client."""
        return self.client._client.tool(name, wrap_tool_result=self._wrap, timeout=self._timeout)


class _LiveServer:
    """A server of toolcrib's own client, whose tools are kept up to date.

    A tool that is added is registered, and one that is removed goes. A tool whose definition changes is quarantined:
    the server may have been taken over, so that it can be called only when the change is accepted.
    """

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._watch: Any = None
        self._digests: dict[str, str] = dict(server.client._client.digests)
        self._redefined: dict[str, str] = {}

    def watch(self) -> None:
        """Follow the changes on the running event loop."""
        this = weakref.ref(self)

        def update() -> None:
            live = this()
            if live is not None:
                live.update()

        self._watch = self._server.client._client.watch(update)

    def update(self) -> None:
        """Bring the toolkit up to date with the server's list."""
        toolkit = self._server.toolkit()
        if toolkit is None:
            self.end()
            return
        known: dict[str, str] = self._server.client._client.digests
        registered = self._server.registration.tools
        for name in [name for name in registered if name not in known]:
            toolkit.remove_tool_function(registered.pop(name))
            self._digests.pop(name, None)
        for name, digest in known.items():
            if name not in registered:
                if self._server.wants(name) and self._digests.get(name) != digest:
                    self._add(name)
            elif self._digests.get(name) == digest:
                self._redefined.pop(name, None)
            else:
                self._quarantine(toolkit, name, digest)
                continue
            self._digests[name] = digest

    def _quarantine(self, toolkit: Toolkit, name: str, digest: str) -> None:
        registered = self._server.registration.tools[name]
        if self._redefined.get(name) != digest and registered in toolkit.tools:
            self._redefined[name] = digest
            reason = _core._mcp_redefined(self._server.client.name)
            toolkit.quarantine(registered, reason)
            _log.warning("tool '%s' is quarantined: %s", registered, reason)

    def _add(self, name: str) -> None:
        """Register a tool that the server has added. It never takes the name of another tool."""
        try:
            self._server.register(name, self._server.tool(name), "raise")
        except DuplicateToolError as error:
            self._server.registration.skipped[name] = str(error)
            _log.warning("skipping tool %r of the MCP server of '%s': %s", name, self._server.client.name, error)

    def accept(self, registered: str) -> None:
        """Register the new definition of a tool."""
        for name in [name for name, ours in self._server.registration.tools.items() if ours == registered]:
            if (digest := self._redefined.pop(name, None)) is None:
                continue
            self._server.register(name, self._server.tool(name), "override")
            self._digests[name] = digest
            # The server may have changed it again since the quarantine.
            self.update()

    def end(self) -> None:
        """Stop following the changes."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None


def check_filters(enable_funcs: list[str] | None, disable_funcs: list[str] | None) -> None:
    """Raise an exception for filters that are not lists of names, or that contradict each other."""
    for option, names in (("enable_funcs", enable_funcs), ("disable_funcs", disable_funcs)):
        if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
            raise InvalidFilterError(f"{option} must be a list of strings, not {names!r}")
    both = sorted(set(enable_funcs or ()) & set(disable_funcs or ()))
    if both:
        raise InvalidFilterError(f"enable_funcs and disable_funcs both name {', '.join(both)}")
