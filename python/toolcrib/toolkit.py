"""`Toolkit`: the core's registry and calls, with the short face that Python users like."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

from toolcrib import _core
from toolcrib._background import BackgroundTasks
from toolcrib._mapping import LiveMapping

if TYPE_CHECKING:
    from toolcrib import modules
    from toolcrib._core import Event, RegisteredToolFunction, ToolGroup, ToolResponse
    from toolcrib._mcp import McpClient
    from toolcrib.events import EventStream
    from toolcrib.modules import Module
    from toolcrib.skill import AgentSkill

    _EventType: TypeAlias = Literal[
        "call_start", "chunk", "permission_request", "permission_result", "call_end", "error"
    ]
    _Kind: TypeAlias = Literal[
        "read", "edit", "write", "delete", "move", "search", "execute", "think", "fetch", "other"
    ]

__all__ = ["Toolkit"]

F = TypeVar("F", bound=Callable[..., Any])


class Toolkit(BackgroundTasks):
    """Keep tools, tell a model about them, and call them.

    Args:
        agent_skill_instruction: What stands before the skills in `get_agent_skill_prompt`, instead of toolcrib's text.
        agent_skill_template: What is said of each skill there, with `{name}`, `{description}` and `{dir}` filled in.
        arguments: What is done with the model's arguments before a tool runs: `"coerce"` converts by declared type
            and checks, `"check"` only checks, `"pass"` hands them on.
        errors: What becomes of a tool's exception: `"respond"` makes it a response, `"raise"` lets it through,
            `"compat"` does as AgentScope does: a function's error responds, a generator's is raised.
        run_in: Where synchronous tools run: `"thread"` or `"inline"` on the event loop.
        repair: What is done about arguments that have to be mended: `"on"` mends them and tells so in the response's
            metadata, `"explain"` answers with what would have to be mended, `"off"` mends nothing.
    """

    # The path of a call begins here. It is read in src/bindings/call/path.rs; the methods are made in
    # src/bindings/call/python/methods.rs, because a wrapper would cost a tenth of a call.
    call_tool_function = _core.Toolkit.call_tool_function
    call = _core.Toolkit.call

    @property
    def tools(self) -> Mapping[str, RegisteredToolFunction]:
        """The tools by name, in the order they were registered; live."""
        return LiveMapping(self._all_tools, self._find_tool)

    @property
    def groups(self) -> Mapping[str, ToolGroup]:
        """The groups by name, in the order they were created, without `basic`; live."""
        return LiveMapping(self._all_groups, self._find_group)

    @property
    def skills(self) -> Mapping[str, AgentSkill]:
        """The skills by name, in the order they were registered; live."""
        return LiveMapping(self._all_skills, self._find_skill)

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(
        self,
        function: None = None,
        /,
        *,
        group_name: str = ...,
        preset_kwargs: dict[str, Any] | None = ...,
        func_name: str | None = ...,
        func_description: str | None = ...,
        json_schema: dict[str, Any] | None = ...,
        include_long_description: bool = ...,
        include_var_positional: bool = ...,
        include_var_keyword: bool = ...,
        postprocess_func: Callable[[Any, ToolResponse], Any] | None = ...,
        namesake_strategy: Literal["raise", "skip", "override", "rename"] = ...,
        async_execution: bool = ...,
        run_in: Literal["thread", "inline", "process"] | None = ...,
        timeout: float | None = ...,
        groups: Sequence[str] = ...,
        tags: Sequence[str] = ...,
        kind: _Kind | None = ...,
        permission: Literal["auto", "confirm"] = ...,
        secrets: Sequence[str] = ...,
        aliases: Mapping[str, str] | None = ...,
    ) -> Callable[[F], F]: ...

    def tool(self, function: F | None = None, /, **options: Any) -> F | Callable[[F], F]:
        """Register the decorated function, which stays what it was.

        Args:
            function: The function, when the decorator is used without arguments.
            **options: What `register_tool_function` takes.
        """

        def register(function: F) -> F:
            self.register_tool_function(function, **options)
            return function

        return register if function is None else register(function)

    async def register_mcp_client(
        self,
        mcp_client: McpClient,
        group_name: str = "basic",
        enable_funcs: list[str] | None = None,
        disable_funcs: list[str] | None = None,
        preset_kwargs_mapping: dict[str, dict[str, Any]] | None = None,
        postprocess_func: Callable[[Any, ToolResponse], Any] | None = None,
        namesake_strategy: Literal["raise", "skip", "override", "rename"] = "raise",
        execution_timeout: float | None = None,
        *,
        wrap_tool_result: bool = True,
    ) -> None:
        """Register the tools of an MCP server through a client that the program has connected.

        Args:
            mcp_client: The client; AgentScope's, or any that lists tools and makes callables of them as those do.
            group_name: The group the tools belong to, which must exist.
            enable_funcs: The names of the tools to take; all of them if it is `None`.
            disable_funcs: The names of the tools to leave out.
            preset_kwargs_mapping: For each tool, the arguments that the model can neither see nor send.
            postprocess_func: Called with the request block and each response; a true result is delivered instead.
            namesake_strategy: What to do when a name is taken: `"raise"`, `"skip"`, `"override"` or `"rename"`.
            execution_timeout: After how many seconds a call is given up by the client.
            wrap_tool_result: Whether the client makes blocks of a result; otherwise what the server sent is the
                `value` in the response's metadata.

        Raises:
            RuntimeError: If the client is not connected.
            InvalidFilterError: If the two lists are no lists of names, or name the same tool.
            DuplicateToolError: If a name is taken and that is to be refused; then nothing is registered.
        """
        from toolcrib import _mcp

        await _mcp.register(
            self,
            mcp_client,
            group_name=group_name,
            enable_funcs=enable_funcs,
            disable_funcs=disable_funcs,
            preset_kwargs_mapping=preset_kwargs_mapping,
            postprocess_func=postprocess_func,
            namesake_strategy=namesake_strategy,
            execution_timeout=execution_timeout,
            wrap_tool_result=wrap_tool_result,
        )

    async def remove_mcp_clients(self, client_names: str | list[str]) -> None:
        """Take out every tool that came through one of these clients.

        Raises:
            TypeError: If `client_names` is neither a string nor a list of strings.
        """
        from toolcrib import _mcp

        _mcp.remove(self, client_names)

    register_mcp_server = register_mcp_client
    remove_mcp_servers = remove_mcp_clients

    def events(self, types: Sequence[_EventType] | None = None, size: int = 1024) -> EventStream:
        """Listen to the calls of this toolkit from now on.

        Args:
            types: What to hear of: `"call_start"`, `"chunk"`, `"permission_request"`, `"permission_result"`,
                `"call_end"` and `"error"`; everything if it is None.
            size: How many events wait to be read at most; then the oldest makes room, which `dropped` counts.

        Returns:
            An async iterator, for any thread's event loop.

        Raises:
            ValueError: If there is no such type, or `size` is not positive.

        Example:
            async with toolkit.events(["call_end"]) as events:
                async for event in events:
                    print(event.tool, event.data["outcome"])
        """
        if size < 1:
            raise ValueError(f"size must be a positive number of events, not {size}")
        if isinstance(types, str):
            raise TypeError("types must be a list of event types, not one text")
        from toolcrib.events import EventStream

        return EventStream(self._permissions.listen(None if types is None else list(types), size))

    def subscribe(self, type: _EventType, handler: Callable[[Event], Any]) -> Callable[[], None]:
        """Have a function called with each event of a type.

        A synchronous handler is called at once, between the steps of the call, and should be quick; an asynchronous one
        runs in a task of the event loop that runs the call. What goes wrong in one is told in the log `toolcrib` and
        hurts nobody.

        Args:
            type: `"call_start"`, `"chunk"`, `"permission_request"`, `"permission_result"`, `"call_end"` or `"error"`.
            handler: The function.

        Returns:
            A function that takes the subscription back.

        Raises:
            ValueError: If there is no such type.
            TypeError: If the handler cannot be called.
        """
        from toolcrib.events import Subscription

        permissions = self._permissions
        number = permissions.subscribe(type, Subscription(handler))

        def unsubscribe() -> None:
            permissions.unsubscribe(number)

        return unsubscribe

    async def load_modules(self, modules: Iterable[Module | str] | Mapping[str, Any]) -> modules.Report:
        """Load modules, each of which brings a group of tools; one that fails never stops the others.

        A module whose group exists already, or one of whose tools has a name that is taken, is not loaded: nobody can
        take the place of somebody else's tools.

        Args:
            modules: The modules: objects as `toolcrib.modules` describes them, or names to import such as
                `"package.module"` and `"package.module:object"`; a mapping gives each name its configuration.

        Returns:
            Which were loaded, and why the others were not.
        """
        return await self._module_loader.load(modules, self)

    async def unload_modules(self) -> modules.Report:
        """Take the groups of all modules away and shut the modules down, the last one first; `aclose` does it too."""
        return await self._module_loader.shutdown()

    async def aclose(self) -> None:
        """Cancel what runs in the background, wait until it is over, and unload the modules."""
        await super().aclose()
        if "_module_loader" in vars(self):
            await self.unload_modules()

    @cached_property
    def _module_loader(self) -> modules.Loader:
        from toolcrib import modules

        return modules.loader_for(self)

    def run(self, name: str, /, **arguments: Any) -> ToolResponse:
        """Call a tool from synchronous code and return its last response.

        It may be used anywhere, also in a function that an event loop calls: the tool then runs on an event loop of its
        own in another thread, and the caller waits.
        """
        from toolcrib import _run

        return _run.run(self, name, arguments)
