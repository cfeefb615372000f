"""Registration of the tools of MCP servers, and their changes while the toolkit is in use.

A client lists its tools and makes callables of them: `name`, `list_tools()`, `get_callable_function(func_name=,
wrap_tool_result=, execution_timeout=)` and, if it stays connected, `is_connected`. toolcrib's own clients and
AgentScope's have this interface; those of other libraries get it by `toolcrib.mcp.adapt`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field
from os import PathLike
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
        skipped: The reasons why other tools were not registered, by their names at the server. A tool without a valid
            name is named by its position in the list, as in `#3`. A name that the server lists twice is here and in
            `tools`: the first one counts.
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

    def _fail(self, client: str, problem: Exception) -> None:
        self.problems[client] = problem
        _log.warning("the MCP server of '%s' is not registered: %s", client, problem)


def _registrable(client: Any) -> Any:
    """Return a client as a toolkit registers it: one of another library is adapted."""
    from toolcrib.mcp import McpClient, adapt

    return client if isinstance(client, McpClient) or hasattr(client, "get_callable_function") else adapt(client)


class Registrations:
    """The servers of one toolkit."""

    def __init__(self, toolkit: Toolkit) -> None:
        self._toolkit = weakref.ref(toolkit)
        self._live: dict[str, list[_LiveServer]] = {}

    async def register(self, client: Any, **options: Any) -> McpRegistration:
        """Register the tools of a connected client."""
        from toolcrib.mcp import McpClient

        toolkit = self._toolkit()
        assert toolkit is not None
        client = _registrable(client)
        if not getattr(client, "is_connected", True):
            raise RuntimeError("The MCP client is not connected to the server. Use the `connect()` method first.")
        server = _Server(toolkit, client, **options)
        await server.register_all()
        if isinstance(client, McpClient):
            live = _LiveServer(server)
            self._live.setdefault(client.name, []).append(live)
            live.follow()
        return server.registration

    async def register_several(
        self, clients: Iterable[Any] | Mapping[str, Any] | str | PathLike[str], **options: Any
    ) -> McpRegistrations:
        """Connect and register several clients at once."""
        from toolcrib.mcp import McpClient, McpClients, connect_all

        result = McpRegistrations()
        if isinstance(clients, Mapping | str | PathLike) and not isinstance(clients, McpClients):
            clients = connect_all(clients)
        if isinstance(clients, McpClients):
            members: list[Any] = list(clients._all.values())
            for name, problem in clients._invalid.items():
                result._fail(name, problem)
        else:
            members = list(map(_registrable, clients))

        async def register(client: Any) -> McpRegistration:
            if isinstance(client, McpClient):
                await client._opened()
            return await self.register(client, **_FILTERS, **options)

        outcomes = await asyncio.gather(*map(register, members), return_exceptions=True)
        for client, outcome in zip(members, outcomes, strict=True):
            if isinstance(outcome, McpRegistration):
                result.registered[client.name] = outcome
            elif isinstance(outcome, Exception):
                result._fail(client.name, outcome)
            else:
                raise outcome
        return result

    def remove(self, client_names: str | list[str]) -> None:
        """Remove every tool of these clients."""
        names = [client_names] if isinstance(client_names, str) else client_names
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise TypeError(f"The client_names must be a list of strings, but got {type(client_names)}.")
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
        enable_funcs: Collection[str] | None,
        disable_funcs: Collection[str] | None,
        preset_kwargs_mapping: dict[str, dict[str, Any]] | None,
        execution_timeout: float | None,
        wrap_tool_result: bool,
        namespace: str | bool,
        namesake_strategy: str,
        **options: Any,
    ) -> None:
        check_filters(enable_funcs, disable_funcs)
        if not isinstance(preset_kwargs_mapping, dict | None):
            raise TypeError(
                f"The preset_kwargs_mapping must be a dictionary or None, but got {type(preset_kwargs_mapping)}."
            )
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
        self.namesake_of_added = "rename" if namesake_strategy == "rename" else "raise"
        self._options = options
        self._last_fallen_out: dict[str, str] = {}
        self.live: weakref.ref[_LiveServer] | None = None
        this = weakref.ref(self)

        def follow() -> None:
            server = this()
            live = None if server is None or server.live is None else server.live()
            if live is not None:
                live.follow()

        self._follow = follow

    def wants(self, name: str) -> bool:
        """Return true if the filters select a tool."""
        return (self._enabled is None or name in self._enabled) and name not in self._disabled

    async def register_all(self) -> None:
        """Register the tools that pass the filters; one that cannot be registered is skipped with a warning."""
        offered = await self._offered()
        fallen_out = self._fallen_out()
        for name in (self._enabled or set()) - set(offered) - fallen_out.keys():
            _log.warning(
                "unknown tool '%s' in enable_funcs: the MCP server of '%s' does not have it", name, self.client.name
            )
        wanted = list(filter(self.wants, offered))
        names = self._free_names(wanted) if self._namesake == "raise" else {}
        turn = _Turn()
        for name in wanted:
            function = self.tool(name) if self._is_own else None
            if function is None:
                function = await self.client.get_callable_function(
                    func_name=name, wrap_tool_result=self._wrap, execution_timeout=self._timeout
                )
            self.register(name, function, self._namesake, names.get(name))
            if turn.is_over:
                await asyncio.sleep(0)
                turn = _Turn()
        self.note_fallen_out()

    def _fallen_out(self) -> dict[str, str]:
        """Return the reasons why tools of the last list are no tools, if the filters select them."""
        skipped = self.client._client.skipped if self._is_own else []
        named = {name if name is not None else f"#{position}": reason for name, position, reason in skipped}
        return {name: reason for name, reason in named.items() if self.wants(name)}

    def note_fallen_out(self) -> None:
        """Bring the reasons up to date with a new list."""
        fallen_out = self._fallen_out()
        skipped = self.registration.skipped
        for name in self._last_fallen_out.keys() - fallen_out.keys():
            if skipped.get(name) == self._last_fallen_out[name]:
                del skipped[name]
        skipped.update(fallen_out)
        self._last_fallen_out = fallen_out

    @property
    def _is_own(self) -> bool:
        """True for a client of toolcrib itself, whose definitions stay in the core."""
        from toolcrib.mcp import McpClient

        # A subclass may list or make other tools.
        methods = ("list_tools", "get_callable_function")
        kind = type(self.client)
        return isinstance(self.client, McpClient) and all(
            getattr(kind, method) is getattr(McpClient, method) for method in methods
        )

    async def _offered(self) -> list[str]:
        """Return the names of the server's tools, after a warning of suspicious definitions."""
        toolkit = self.toolkit()
        assert toolkit is not None
        if self._is_own:
            offered: list[str] = await self.client._names()
            await self.review(toolkit, set(filter(self.wants, offered)))
        else:
            listed = list(await self.client.list_tools())
            offered = [tool.name for tool in listed]
            definitions = [dumped(tool) for tool in listed if self.wants(tool.name)]
            self._warn(await _core._mcp_flags(definitions, list(toolkit.tools)))
        return offered

    async def review(self, toolkit: Toolkit, names: Set[str]) -> None:
        """Warn of suspicious definitions among tools of the last list of toolcrib's own client."""
        registered = self.registration.tools
        ours = {registered[name] for name in names & registered.keys()}
        others = [*(name for name in toolkit.tools if name not in ours), *(registered.keys() - names)]
        flags = await self.client._client.flags(sorted(names), others)
        self.registration.flags[:] = [flag for flag in self.registration.flags if flag.tool not in names]
        self._warn(flags)

    def _warn(self, flags: list[DefinitionFlag]) -> None:
        """Warn of definitions that try to deceive a model or a reviewer."""
        for flag in flags:
            self.registration.flags.append(flag)
            _log.warning(
                "tool %r of the MCP server of '%s' has a suspicious definition: %s at %s: %s",
                flag.tool,
                self.client.name,
                flag.kind,
                flag.path,
                flag.evidence,
            )

    def register(self, name: str, function: Any, namesake: str, registered: str | None = None) -> None:
        """Register one tool.

        Args:
            name: The name at the server.
            function: The tool.
            namesake: The action if its name in the toolkit is taken.
            registered: The name in the toolkit, if it is known.
        """
        toolkit = self.toolkit()
        if toolkit is None:
            return
        if registered is None:
            registered = self._name(toolkit, name, namesake == "rename")
        options = self._options
        if isinstance(function, _core.NativeTool):
            function._set_before_call(self._follow)
        if isinstance(function, AdaptedTool):
            options = {**options, "timeout": function.timeout}
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
                self.registration.skipped.pop(name, None)
            else:
                self.registration.skipped[name] = f"the name '{registered}' is taken"

    def _name(self, toolkit: Toolkit, name: str, avoids_taken: bool) -> str:
        """Return the name in the toolkit: valid for every provider, with a suffix that is the same in each run."""
        taken = toolkit.tools if avoids_taken else ()
        if toolkit._keeps_mcp_names and self._namespace is None and name not in taken:
            return name
        return _core._mcp_tool_name(self.client.name, self._namespace, name, taken)

    def _free_names(self, names: Iterable[str]) -> dict[str, str]:
        """Return the names in the toolkit; raise an exception for one that is taken before any tool is registered."""
        toolkit = self.toolkit()
        assert toolkit is not None
        free, tools = {}, toolkit.tools
        for name in names:
            free[name] = registered = self._name(toolkit, name, avoids_taken=False)
            if registered in tools:
                raise DuplicateToolError(f"A function with name '{registered}' is already registered in the toolkit.")
        return free

    def tool(self, name: str) -> Any:
        """Return a tool of the last list of toolcrib's own client."""
        return self.client._client.tool(name, wrap_tool_result=self._wrap, timeout=self._timeout)


class _Turn:
    """A short time on the running event loop, after which other tasks run; without a loop it does not end."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        with contextlib.suppress(RuntimeError):
            self._loop = asyncio.get_running_loop()
        self._end = time.monotonic() + 0.02
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """True if the rest has to wait."""
        self._is_over = self._is_over or (self._loop is not None and time.monotonic() > self._end)
        return self._is_over

    def go_on(self, function: Callable[[], None]) -> None:
        """Call a function in another turn, if anything was left for it."""
        if self._loop is not None and self._is_over:
            self._loop.call_soon(function)


class _LiveServer:
    """A server of toolcrib's own client, whose tools are kept up to date.

    A tool that is added is registered, and one that is removed goes. A tool whose definition changes is quarantined:
    the server may have been taken over, so that it can be called only when the change is accepted. So is one that was
    removed and comes back with another definition. A tool that the program has removed or replaced is left alone.
    """

    def __init__(self, server: _Server) -> None:
        self._server = server
        server.live = weakref.ref(self)
        self._watch: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_over = False
        self._digests: dict[str, str] = dict(server.client._client.digests)
        self._redefined: dict[str, str] = {}
        self._removed: set[str] = set()
        self._unreviewed: set[str] = set()
        self._review: asyncio.Task[None] | None = None

    def follow(self) -> None:
        """Follow the changes on the running event loop, unless the one that follows them is still there."""
        if self._is_over or (self._loop is not None and not self._loop.is_closed()):
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # The call itself reports it.
        has_followed, self._loop = self._loop is not None, loop
        self._watch_changes()
        if has_followed:
            # Changes between the two loops.
            self.update()

    def _watch_changes(self) -> None:
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
        for name in [name for name in registered if name not in known and self._owns(toolkit, name)]:
            toolkit.remove_tool_function(registered.pop(name))
            self._removed.add(name)
        turn = _Turn()
        for name, digest in known.items():
            if name in registered:
                if self._digests.get(name) == digest:
                    self._redefined.pop(name, None)
                elif self._owns(toolkit, name):
                    self._quarantine(toolkit, name, digest)
            elif turn.is_over:
                continue
            elif name in self._removed:
                self._add(name)
                if self._owns(toolkit, name):
                    self._removed.discard(name)
                    if self._digests.get(name) != digest:
                        self._quarantine(toolkit, name, digest)
            elif self._digests.get(name) != digest:
                self._digests[name] = digest
                if self._server.wants(name):
                    self._add(name)
        self._server.note_fallen_out()
        self._start_review()
        turn.go_on(self.update)

    def _owns(self, toolkit: Toolkit, name: str) -> bool:
        """Return true if a tool in the toolkit is that of the server, and not one that the program put in its place."""
        tool = toolkit.tools.get(self._server.registration.tools.get(name, ""))
        return tool is not None and tool.mcp_name == self._server.client.name

    def _quarantine(self, toolkit: Toolkit, name: str, digest: str) -> None:
        registered = self._server.registration.tools[name]
        if self._redefined.get(name) != digest:
            self._redefined[name] = digest
            self._unreviewed.add(name)
            reason = _core._mcp_redefined(self._server.client.name)
            toolkit.quarantine(registered, reason)
            _log.warning("tool '%s' is quarantined: %s", registered, reason)

    def _add(self, name: str) -> None:
        """Register a tool that the server has added. It never takes the name of another tool."""
        skipped = self._server.registration.skipped
        try:
            self._server.register(name, self._server.tool(name), self._server.namesake_of_added)
        except (DuplicateToolError, UnknownGroupError) as error:
            if skipped.get(name) != str(error):
                skipped[name] = str(error)
                _log.warning("skipping tool %r of the MCP server of '%s': %s", name, self._server.client.name, error)
        else:
            self._unreviewed.add(name)

    def _start_review(self) -> None:
        """Start to look for suspicious definitions among the new ones, unless that is under way."""
        is_under_way = self._review is not None and not (self._review.done() or self._review.get_loop().is_closed())
        if self._unreviewed and not is_under_way:
            # Without a running event loop the next change starts it.
            with contextlib.suppress(RuntimeError):
                self._review = asyncio.get_running_loop().create_task(self._review_all())

    async def _review_all(self) -> None:
        while self._unreviewed and (toolkit := self._server.toolkit()) is not None:
            names, self._unreviewed = self._unreviewed, set()
            await self._server.review(toolkit, names)

    def accept(self, registered: str) -> None:
        """Register the new definition of a tool."""
        toolkit = self._server.toolkit()
        for name in [name for name, ours in self._server.registration.tools.items() if ours == registered]:
            digest = self._redefined.pop(name, None)
            if digest is None or toolkit is None or not self._owns(toolkit, name):
                continue
            self._server.register(name, self._server.tool(name), "override")
            self._digests[name] = digest
            # The server may have changed it again since the quarantine.
            self.update()

    def end(self) -> None:
        """Stop following the changes."""
        self._is_over = True
        if self._watch is not None:
            self._watch.close()
            self._watch = None


def check_filters(enable_funcs: Collection[str] | None, disable_funcs: Collection[str] | None) -> None:
    """Raise an exception for filters that are not collections of names, or that contradict each other."""
    for option, names in (("Enable", enable_funcs), ("Disable", disable_funcs)):
        if names is not None and not (
            isinstance(names, Collection)
            and not isinstance(names, str)
            and all(isinstance(name, str) for name in names)
        ):
            raise InvalidFilterError(f"{option} functions should be a list of strings, but got {names}.")
    both = set(enable_funcs or ()) & set(disable_funcs or ())
    if both:
        raise InvalidFilterError(f"The functions in enable_funcs and disable_funcs should not overlap, but got {both}.")
