"""`Toolkit`: the core's registry and calls, with decorators, mappings, events, modules and background tasks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NoReturn, SupportsIndex, TypeAlias, TypeVar, overload

from toolcrib import _core
from toolcrib._background import BackgroundTasks
from toolcrib._mapping import LiveMapping
from toolcrib._serve import serve_mcp
from toolcrib.errors import LockMismatchError

if TYPE_CHECKING:
    from typing_extensions import Self

    from toolcrib import modules
    from toolcrib._agent_loop import AgentBudget
    from toolcrib._agents import AgentRegistration
    from toolcrib._core import (
        AgentDefinition,
        AgentFolder,
        Event,
        RegisteredToolFunction,
        ResultBudget,
        ToolGroup,
        ToolResponse,
        _ChangeClass,
    )
    from toolcrib._mcp import McpRegistration, McpRegistrations, Registrations
    from toolcrib.events import EventStream
    from toolcrib.lock import LockReport
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
    """Keep tools, describe them to a model, and call them.

    Args:
        agent_skill_instruction: The introduction of `get_agent_skill_prompt`; a default text if it is empty.
        agent_skill_template: The text for each skill, with the placeholders `{name}`, `{description}` and `{dir}`;
            `{{` and `}}` are literal braces. A default text if it is empty.
        arguments: The treatment of the model's arguments before a tool runs: `"coerce"` coerces them to the declared
            types, validates them and builds the objects that the annotations name, `"check"` only validates them,
            `"pass"` passes them on unchecked: only names that are preset are refused. Otherwise an argument that is
            not in the schema is refused, unless the schema allows it by `additionalProperties`.
        errors: The treatment of a tool's exceptions: `"respond"` converts them to responses, `"raise"` propagates
            them, `"compat"` does as AgentScope 1.x: exceptions of functions become responses, those of generators
            propagate.
        run_in: Where synchronous tools run: `"thread"`, `"inline"` on the event loop, or `"process"`.
        repair: The treatment of arguments that are not valid JSON or do not fit the schema: `"on"` repairs them and
            lists the repairs in the response's metadata, `"explain"` does not run the tool and lists the necessary
            repairs, `"off"` repairs nothing. Nothing is repaired if `arguments` is `"pass"`.
        policy: The rules that decide about every call.
        approver: The function that is asked about calls that need approval. It is called with an `ApprovalRequest`,
            in a worker thread unless it is a coroutine function, and returns `"once"`, `"run"`, `"always"`, `"no"`,
            `"cancel"`, a boolean, or an `Approval`. Without one, such a call ends with a pending value; see `resume`.
        approver_timeout: Seconds after which a missing answer denies the call; None to wait without a limit.
        headless: If true, calls that need approval are denied at once.
        approvals: The pending values, each of which can be answered once; in memory if it and `store` are None.
        audit: The audit log, which records every decision before it takes effect: the path of a file that is appended
            durably, a `Store`, a function that is called with a dictionary, or an object whose `write` is called with
            a line. If a decision cannot be recorded, the call does not run.
        store: The store that keeps all that has no place of its own: the audit log, the pending values of `approvals`,
            the answers `"always"` of the policy, the whole text of results that are cut, the artifacts of
            `tools.register`, and what `save` of the toolkit and its sessions is given no path for.
        asker: The function that answers the questions of tools, see `ToolContext.ask`. It is called with a `Question`,
            in a worker thread unless it is a coroutine function, and returns the answer.
        sampler: The function that answers the requests of tools to a model, see `ToolContext.sample`. It is called with
            a `SamplingRequest`, in a worker thread unless it is a coroutine function, and returns text, or the answer
            in the form of MCP. The tools that an MCP client calls ask the client's own model, if it has one.
        error_formatter: The function that describes a tool's exception to the model. It is called with the exception
            and a `FailedCall`, and returns the text. Without one, the text is `KeyError: 'k'`. Presets and secrets are
            masked in either.
        result_budget: The largest size of all results: a `ResultBudget`, or a number of characters.
        tools: The callables to register.
    """

    # True if tools of MCP servers keep names that a provider may refuse.
    _keeps_mcp_names = False

    # A call starts here. src/call/path.rs has its path. src/bindings/call/python/methods.rs defines the
    # methods, because a Python wrapper would add a tenth to the cost of a call.
    call_tool_function = _core.Toolkit.call_tool_function
    call = _core.Toolkit.call

    # A registration starts here: src/bindings/toolkit/registration.rs.
    register_tool_function = _core.Toolkit.register_tool_function

    @property
    def tools(self) -> Mapping[str, RegisteredToolFunction]:
        """A live mapping of the tools by name, in the order of registration."""
        return LiveMapping(self._all_tools, self._find_tool)

    @property
    def groups(self) -> Mapping[str, ToolGroup]:
        """A live mapping of the groups by name, in the order of creation, without `basic`."""
        return LiveMapping(self._all_groups, self._find_group)

    @property
    def skills(self) -> Mapping[str, AgentSkill]:
        """A live mapping of the skills by name, in the order of registration."""
        return LiveMapping(self._all_skills, self._find_skill)

    def __repr__(self) -> str:
        """Count the tools and groups."""
        return f"{type(self).__name__}({len(self.tools)} tools, {len(self.groups)} groups)"

    def _configure(self) -> None:
        """Complete the construction of a toolkit or a copy, before it has tools."""

    def _settle(self) -> None:
        """Complete what a subclass has put off, before the toolkit is copied."""

    def __copy__(self) -> Self:
        from toolcrib import _copies

        return _copies.shallow(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        from toolcrib import _copies

        return _copies.deep(self, memo)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        from copyreg import __newobj__  # type: ignore[attr-defined]

        from toolcrib import _copies

        return __newobj__, (type(self),), _copies.state_of(self)

    def __setstate__(self, parts: dict[str, Any]) -> None:
        from toolcrib import _copies

        _copies.restore(self, parts)

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(
        self,
        function: None = None,
        /,
        *,
        name: str | None = ...,
        description: str | None = ...,
        group_name: str = ...,
        preset_kwargs: dict[str, Any] | None = ...,
        func_name: str | None = ...,
        func_description: str | None = ...,
        json_schema: dict[str, Any] | None = ...,
        include_long_description: bool = ...,
        include_var_positional: bool = ...,
        include_var_keyword: bool = ...,
        postprocess_func: Callable[[Any, Any], Any] | None = ...,
        namesake_strategy: Literal["raise", "skip", "override", "rename"] = ...,
        async_execution: bool = ...,
        run_in: Literal["thread", "inline", "process"] | None = ...,
        timeout: float | None = ...,
        groups: Sequence[str] = ...,
        tags: Sequence[str] = ...,
        kind: _Kind | None = ...,
        permission: Literal["auto", "confirm", "kind"] = ...,
        secrets: Sequence[str] = ...,
        aliases: Mapping[str, str] | None = ...,
        chunks: Literal["add", "replace"] | None = ...,
        result_budget: ResultBudget | int | None = ...,
    ) -> Callable[[F], F]: ...

    def tool(
        self,
        function: F | None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        group_name: str = "basic",
        preset_kwargs: dict[str, Any] | None = None,
        func_name: str | None = None,
        func_description: str | None = None,
        json_schema: dict[str, Any] | None = None,
        include_long_description: bool = True,
        include_var_positional: bool = False,
        include_var_keyword: bool = False,
        postprocess_func: Callable[[Any, Any], Any] | None = None,
        namesake_strategy: Literal["raise", "skip", "override", "rename"] = "raise",
        async_execution: bool = False,
        run_in: Literal["thread", "inline", "process"] | None = None,
        timeout: float | None = None,
        groups: Sequence[str] = (),
        tags: Sequence[str] = (),
        kind: _Kind | None = None,
        permission: Literal["auto", "confirm", "kind"] = "auto",
        secrets: Sequence[str] = (),
        aliases: Mapping[str, str] | None = None,
        chunks: Literal["add", "replace"] | None = None,
        result_budget: ResultBudget | int | None = None,
        **unknown: Any,
    ) -> F | Callable[[F], F]:
        """Register the decorated function and return it unchanged.

        Args:
            function: The function, if the decorator is used without arguments.
            name: The name for the model, instead of the function's own.
            description: The description for the model, instead of that in the docstring.
            group_name: The group it belongs to, which must exist.
            preset_kwargs: Arguments that the developer sets: the model can neither see nor send them.
            func_name: Another name of `name`, as in AgentScope.
            func_description: Another name of `description`, as in AgentScope.
            json_schema: The schema for the model, instead of the one derived from the signature and the docstring.
            include_long_description: Include the paragraphs after the first one of the docstring.
            include_var_positional: Let the model send `*args`, as a list under that name.
            include_var_keyword: Let the model send `**kwargs`, as an object under that name.
            postprocess_func: Called with the request block and each response; a true result is delivered instead.
            namesake_strategy: The action if the name is taken: `"raise"`, `"skip"`, `"override"` or `"rename"`.
            async_execution: Return from a call at once and continue it in the background; see `view_task`.
            run_in: The place where it runs, instead of the toolkit's default: `"thread"`, `"inline"` or `"process"`.
            timeout: The seconds after which a call is ended.
            groups: Further groups that it belongs to, which must exist.
            tags: Words by which views and rules select it.
            kind: The kind of effect that it has, such as `"read"` or `"edit"`.
            permission: `"auto"`, `"confirm"` if each call needs approval, or `"kind"` if it does where a policy is set
                and the kind is edit, delete, move or execute.
            secrets: The parameters whose values are replaced by `***` in events, logs and approval requests.
            aliases: Names that a model may use by mistake, each with the name of the parameter.
            chunks: The meaning of plain values that a generator yields: `"add"`, the default, appends each to the
                result, `"replace"` makes each the result so far.
            result_budget: The largest size of its results: a `ResultBudget`, or a number of characters.
            **unknown: Not an option; refused with the option that was probably meant.

        Raises:
            TypeError: If an option is unknown or has the wrong type.
        """
        options: dict[str, Any] = {
            "name": name,
            "description": description,
            "group_name": group_name,
            "preset_kwargs": preset_kwargs,
            "func_name": func_name,
            "func_description": func_description,
            "json_schema": json_schema,
            "include_long_description": include_long_description,
            "include_var_positional": include_var_positional,
            "include_var_keyword": include_var_keyword,
            "postprocess_func": postprocess_func,
            "namesake_strategy": namesake_strategy,
            "async_execution": async_execution,
            "run_in": run_in,
            "timeout": timeout,
            "groups": groups,
            "tags": tags,
            "kind": kind,
            "permission": permission,
            "secrets": secrets,
            "aliases": aliases,
            "chunks": chunks,
            "result_budget": result_budget,
        }
        for option in unknown:
            raise TypeError(f"tool() got an unknown option `{option}`{_core._did_you_mean(option, list(options))}")
        # A subclass may accept fewer options.
        defaults = Toolkit.tool.__kwdefaults__ or {}
        given = {option: value for option, value in options.items() if value is not defaults[option]}

        def register(function: F) -> F:
            self.register_tool_function(function, **given)
            return function

        return register if function is None else register(function)

    def register_agent(
        self,
        definition: AgentDefinition,
        *,
        run: Callable[..., Any] | None = None,
        model: Callable[..., Any] | None = None,
        group_name: str = "basic",
        depth: int = 5,
        budget: AgentBudget | None = None,
        preset_kwargs: dict[str, Any] | None = None,
        postprocess_func: Callable[[Any, Any], Any] | None = None,
        namesake_strategy: Literal["raise", "skip", "override", "rename"] = "raise",
        async_execution: bool = False,
        timeout: float | None = None,
        groups: Sequence[str] = (),
        tags: Sequence[str] = (),
        permission: Literal["auto", "confirm", "kind"] = "auto",
        secrets: Sequence[str] = (),
    ) -> None:
        """Register a sub-agent as a tool of the kind `"think"`.

        A call opens a session for the run, with the tools that the definition names, or else those of the caller;
        agents are among them only if the definition names them. Approvals, questions, dependencies and the caller are
        those of the session that calls. What the loop emits is progress in the stream of the call.

        Args:
            definition: The agent.
            run: The loop, called with the inputs, the session and an `AgentRun` that emits events: a coroutine
                function, an async generator function, a class of AgentScope agents, or any callable, which runs in a
                thread. Its result is the result of the tool.
            model: A model function, which the ready-made loop uses; see `toolcrib.agent.agent_loop`.
            group_name: The group it belongs to, which must exist.
            depth: The most agents that may call each other, with this one.
            budget: The turns, calls and tokens of this agent and all agents below it; that of the outermost agent
                applies.
            preset_kwargs: Inputs that the developer sets: the model can neither see nor send them.
            postprocess_func: Called with the request block and each response; a true result is delivered instead.
            namesake_strategy: The action if the name is taken: `"raise"`, `"skip"`, `"override"` or `"rename"`.
            async_execution: Return from a call at once and continue it in the background; see `view_task`.
            timeout: The seconds after which a call is ended, with everything that it runs.
            groups: Further groups that it belongs to, which must exist.
            tags: Words by which views and rules select it.
            permission: `"auto"`, or `"confirm"` if each call needs approval.
            secrets: The inputs whose values are replaced by `***` in events, logs and approval requests.

        Raises:
            TypeError: If not exactly one of `run` and `model` is given, or it is not callable.
            ToolcribError: If the group or the name is wrong; see `toolcrib.errors`.
        """
        from toolcrib._agent_run import agent_tool

        options: dict[str, Any] = {
            "group_name": group_name,
            "preset_kwargs": preset_kwargs,
            "postprocess_func": postprocess_func,
            "namesake_strategy": namesake_strategy,
            "async_execution": async_execution,
            "timeout": timeout,
            "groups": groups,
            "tags": tags,
            "permission": permission,
            "secrets": secrets,
        }
        # A subclass may accept fewer options.
        defaults = Toolkit.register_agent.__kwdefaults__ or {}
        given = {option: value for option, value in options.items() if value is not defaults[option]}
        self.register_tool_function(agent_tool(self, definition, run, model, depth, budget), **given)

    def register_agents(
        self,
        definitions: Iterable[AgentDefinition] | AgentFolder,
        *,
        allow: Iterable[str] | None = None,
        exclude: Iterable[str] = (),
        run: Callable[..., Any] | Mapping[str, Callable[..., Any]] | None = None,
        model: Callable[..., Any] | None = None,
        **options: Any,
    ) -> AgentRegistration:
        """Register several sub-agents; one that cannot be registered is reported, and the others are.

        Args:
            definitions: The agents, or a folder of them.
            allow: The names of the agents to register; all of them if it is None.
            exclude: The names of agents to leave out, also if they are allowed.
            run: The loop of all agents, or of each by its name; the others use the model.
            model: The model function of agents without a loop.
            **options: Options of `register_agent`, for each of them.

        Returns:
            The names of the agents that were registered, those that were left out, and the problems by name.
        """
        from toolcrib import _agents

        return _agents.register_agents(self, definitions, allow, exclude, run, model, options)

    def register_call_subagent(
        self,
        agents: Iterable[str | AgentDefinition] | None = None,
        *,
        mode: Literal["run", "route"] = "run",
        name: str = "call_subagent",
        **options: Any,
    ) -> None:
        """Register one tool that calls all agents, with the parameters `agent_name` and `instruction`.

        Calling this again replaces the tool, with the agents that there are by then.

        Args:
            agents: The agents, by name or definition; all agents of this toolkit if it is None.
            mode: `"run"` calls the agent, `"route"` only returns the route in `metadata["routing"]`, for a graph that
                takes over.
            name: The name of the tool.
            **options: Options of `register_tool_function`.

        Raises:
            ValueError: If there are no agents, one of them is not registered, or none of them takes one instruction. An
                agent that does not is left out with a warning.
        """
        from toolcrib import _agents

        _agents.register_call_subagent(self, agents, mode, name, options)

    async def register_mcp_client(
        self,
        mcp_client: Any,
        group_name: str = "basic",
        enable_funcs: Collection[str] | None = None,
        disable_funcs: Collection[str] | None = None,
        preset_kwargs_mapping: dict[str, dict[str, Any]] | None = None,
        postprocess_func: Callable[[Any, Any], Any] | None = None,
        namesake_strategy: Literal["raise", "skip", "override", "rename"] = "raise",
        execution_timeout: float | None = None,
        *,
        wrap_tool_result: bool = True,
        namespace: str | bool = False,
        result_budget: ResultBudget | int | None = None,
    ) -> McpRegistration:
        """Register the tools of an MCP server through a connected client.

        The tools of toolcrib's own clients follow the server while the event loop runs: tools that it adds are
        registered, tools that it removes go, and a tool that it redefines is quarantined; see `accept`.

        Args:
            mcp_client: A client of `toolcrib.mcp`, `mcp`, `fastmcp` or AgentScope.
            group_name: The group of the tools, which must exist.
            enable_funcs: The names of the tools to register; all of them if it is `None`.
            disable_funcs: The names of the tools to leave out.
            preset_kwargs_mapping: For each tool, the arguments that the model can neither see nor override.
            postprocess_func: Called with the request block and each response. A true result replaces the response.
            namesake_strategy: What to do if a name is taken: `"raise"`, `"skip"`, `"override"` or `"rename"`, which
                appends a suffix that is the same in each run.
            execution_timeout: Seconds after which a call ends.
            wrap_tool_result: If true, a result becomes blocks; otherwise the server's result is the `value` in the
                response's metadata.
            namespace: A text to put before each name, as in `"text__name"`; true for the name of the client.
            result_budget: The largest size of each result: a `ResultBudget`, or a number of characters.

        Returns:
            The names of the tools that were registered, and the reasons why others were not.

        Raises:
            RuntimeError: If the client is not connected.
            InvalidFilterError: If one of the two lists is not a list of names, or both name the same tool.
            UnknownGroupError: If the group does not exist.
            DuplicateToolError: If a name is taken and the strategy is `"raise"`; nothing is registered.
        """
        return await self._mcp.register(
            mcp_client,
            group_name=group_name,
            enable_funcs=enable_funcs,
            disable_funcs=disable_funcs,
            preset_kwargs_mapping=preset_kwargs_mapping,
            postprocess_func=postprocess_func,
            namesake_strategy=namesake_strategy,
            execution_timeout=execution_timeout,
            wrap_tool_result=wrap_tool_result,
            namespace=namespace,
            result_budget=result_budget,
        )

    async def register_mcp_clients(
        self,
        mcp_clients: Iterable[Any] | Mapping[str, Any] | str | PathLike[str],
        *,
        group_name: str = "basic",
        postprocess_func: Callable[[Any, Any], Any] | None = None,
        namesake_strategy: Literal["raise", "skip", "override", "rename"] = "raise",
        execution_timeout: float | None = None,
        namespace: bool = True,
        result_budget: ResultBudget | int | None = None,
    ) -> McpRegistrations:
        """Register the tools of several MCP servers at once; one that fails is reported, and the others are registered.

        Args:
            mcp_clients: Clients, which are connected if they are not; or a configuration with `mcpServers`, or the path
                of its file. The servers of a configuration end when their tools are removed.
            group_name: The group of the tools, which must exist.
            postprocess_func: Called with the request block and each response. A true result replaces the response.
            namesake_strategy: What to do if a name is taken.
            execution_timeout: Seconds after which a call ends.
            namespace: True to put the name of the client before each name, as in `"client__name"`.
            result_budget: The largest size of each result: a `ResultBudget`, or a number of characters.

        Returns:
            The registrations by the names of the clients, and the exceptions of those that failed.
        """
        return await self._mcp.register_several(
            mcp_clients,
            group_name=group_name,
            postprocess_func=postprocess_func,
            namesake_strategy=namesake_strategy,
            execution_timeout=execution_timeout,
            namespace=namespace,
            result_budget=result_budget,
        )

    async def remove_mcp_clients(self, client_names: str | list[str]) -> None:
        """Remove every tool of these clients. The clients themselves stay connected.

        Raises:
            TypeError: If `client_names` is neither a string nor a list of strings.
        """
        self._mcp.remove(client_names)

    def accept(self, name: str) -> None:
        """Lift the quarantine of a tool; one that its MCP server has redefined gets the new definition.

        Call `lock` afterwards to record its definition as reviewed.

        Raises:
            UnknownToolError: If there is no such tool.
            ValueError: If it is not quarantined.
        """
        super().accept(name)
        self._mcp.accept(name)

    def lock(self, path: str | PathLike[str] = "toolcrib.lock") -> LockReport:
        """Write the definitions of all tools to a file, for review.

        The file is replaced atomically and sorted, so that its diff shows what changed. A quarantined tool is not
        written; if it was reviewed before, that definition stays in the file.

        Args:
            path: The file.

        Returns:
            The changes since the file was written before, and warnings about the definitions.

        Raises:
            FileAccessError: If the operating system refuses, with the fields of an `OSError`.
            DamagedFileError: If the existing file cannot be read; it stays as it is. So for `ForeignFileError`,
                `NewerFileError` and `FileTooLargeError`.
        """
        return self._lock(path)

    def verify(
        self,
        path: str | PathLike[str] = "toolcrib.lock",
        *,
        allow: _ChangeClass | Iterable[_ChangeClass] = (),
        quarantine: bool = False,
    ) -> LockReport:
        """Compare the tools with their reviewed definitions.

        Args:
            path: The file that `lock` wrote.
            allow: The classes of changes to accept, or one, such as `"removed"` or `"output_narrowed"`. A change that
                is of another class, too, is not accepted.
            quarantine: If true, do not raise, but quarantine the tools that have changed or are not in the file; see
                `quarantine`.

        Returns:
            The changes, and warnings about the definitions. It is `ok` if every change is allowed.

        Raises:
            LockMismatchError: If a change is not allowed, unless `quarantine` is true.
            ValueError: If a class is unknown.
            MissingFileError: If there is no such file.
            DamagedFileError: If the file was truncated, or edited without its digests. So for `ForeignFileError`,
                `NewerFileError` and `FileTooLargeError`.
        """
        report = self._verify(path, allow, quarantine)
        if not report.ok and not quarantine:
            raise LockMismatchError(str(report), report.changes)
        return report

    register_mcp_server = register_mcp_client
    remove_mcp_servers = remove_mcp_clients

    serve_mcp = serve_mcp

    @cached_property
    def _mcp(self) -> Registrations:
        from toolcrib._mcp import Registrations

        return Registrations(self)

    def events(self, types: Sequence[_EventType] | None = None, size: int = 1024) -> EventStream:
        """Open a stream of the events of this toolkit's calls.

        Args:
            types: The event types: `"call_start"`, `"chunk"`, `"permission_request"`, `"permission_result"`,
                `"call_end"` and `"error"`; all of them if it is None.
            size: The capacity of the queue. If it is full, the oldest event is dropped and counted in `dropped`.

        Returns:
            An async iterator, for any thread's event loop.

        Raises:
            ValueError: If a type is unknown, or `size` is not positive.

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
        """Call a handler with each event of a type.

        A synchronous handler is called between the steps of the call and should be fast. An asynchronous handler runs
        in a task of the event loop that runs the call. Exceptions of handlers are logged on the logger `toolcrib` and
        do not affect the call.

        Args:
            type: `"call_start"`, `"chunk"`, `"permission_request"`, `"permission_result"`, `"call_end"` or `"error"`.
            handler: The function.

        Returns:
            A function that unsubscribes the handler.

        Raises:
            ValueError: If the type is unknown.
            TypeError: If the handler is not callable.
        """
        from toolcrib.events import Subscription

        permissions = self._permissions
        number = permissions.subscribe(type, Subscription(handler))

        def unsubscribe() -> None:
            permissions.unsubscribe(number)

        return unsubscribe

    async def load_modules(self, modules: Iterable[Module | str] | Mapping[str, Any]) -> modules.Report:
        """Load modules, each with a group of tools; a module that fails does not stop the others.

        A module is not loaded if its group exists or one of its tools has a name that is taken, so that a module cannot
        replace existing tools.

        Args:
            modules: The modules: objects as described in `toolcrib.modules`, or import paths such as
                `"package.module"` and `"package.module:object"`; a mapping gives each path its configuration.

        Returns:
            The loaded modules, and the errors of the others.
        """
        return await self._module_loader.load(modules, self)

    async def unload_modules(self) -> modules.Report:
        """Remove the groups of all modules and shut the modules down, in reverse order; `aclose` does it too."""
        return await self._module_loader.shutdown()

    async def aclose(self) -> None:
        """Cancel all background tasks, wait for their end, and unload the modules."""
        await super().aclose()
        if "_module_loader" in vars(self):
            await self.unload_modules()

    @cached_property
    def _module_loader(self) -> modules.Loader:
        from toolcrib import modules

        return modules.loader_for(self)

    def run(self, name: str, /, *misplaced: NoReturn, **arguments: Any) -> ToolResponse:
        """Call a tool from synchronous code and return its last response, the whole result.

        The event loop is kept for the next call in the same thread, so that async clients can be shared. It also works
        inside a running event loop: the tool then runs on an event loop in another thread, and the caller blocks.

        Args:
            name: The tool's name.
            *misplaced: Refused: arguments are passed by keyword.
            **arguments: What a model would send: presets cannot be overridden here either.

        Raises:
            TypeError: If the arguments are not passed by keyword, or `name` is not a string.
        """
        from toolcrib import _run

        return _run.run(self, name, misplaced, arguments)
