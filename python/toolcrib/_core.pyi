"""Type stub and documentation of the compiled core.

Import these names from `toolcrib`. The `Toolkit` there adds `tools`, `groups`, `skills`, `tool`, `run` and background
tasks to the one here.
"""

import builtins
from asyncio import Task
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from os import PathLike
from pathlib import Path
from types import GenericAlias, TracebackType
from typing import Any, Generic, Literal, TypeAlias, TypeVar, final, overload, type_check_only

from _typeshed import SupportsWrite
from typing_extensions import Never, Self, disjoint_base

from toolcrib._failure import FailedCall
from toolcrib._mcp_server import McpServer
from toolcrib._provider import Dumped
from toolcrib.blocks import AudioBlock, ImageBlock, TextBlock, ToolUseBlock, VideoBlock
from toolcrib.context import Question, ToolContext
from toolcrib.dialects import DialectSchemas
from toolcrib.middleware import Middleware
from toolcrib.policy import Approval, ApprovalRequest, ApprovalStore, Rule
from toolcrib.process import ProgramLimits
from toolcrib.sampling import Sampler
from toolcrib.skill import AgentSkill

__all__ = [
    "AgentDefinition",
    "AgentFolder",
    "AgentInput",
    "AgentLimits",
    "AgentOutput",
    "AgentPrompt",
    "AgentRun",
    "Approvals",
    "ArgumentReader",
    "DefinitionFlag",
    "Event",
    "Explanation",
    "Limits",
    "LockChange",
    "LockDifference",
    "LockReport",
    "NativeTool",
    "Policy",
    "RegisteredToolFunction",
    "ResultBudget",
    "Role",
    "Roles",
    "Session",
    "Store",
    "TextParser",
    "ToolCall",
    "ToolGroup",
    "ToolResponse",
    "ToolStream",
    "Toolkit",
    "ToolkitView",
    "Usage",
    "format_tool_result",
    "parse_tool_calls",
]

__version__: str
_Deps = TypeVar("_Deps")
_T = TypeVar("_T")
_ChangeClass: TypeAlias = Literal[
    "look_alike",
    "source",
    "breaking",
    "narrowed",
    "output_breaking",
    "output_widened",
    "riskier",
    "default",
    "widened",
    "added",
    "annotations",
    "output_narrowed",
    "description",
    "removed",
]
_Dialect: TypeAlias = Literal[
    "openai", "openai_strict", "openai_responses", "openai_responses_strict", "anthropic", "gemini", "bedrock", "mcp"
]
_Block: TypeAlias = TextBlock | ImageBlock | AudioBlock | VideoBlock
_Answer: TypeAlias = Literal["once", "run", "always", "no", "cancel"] | bool
_Approver: TypeAlias = Callable[[ApprovalRequest], Any]
_AuditSink: TypeAlias = str | PathLike[str] | Store | Callable[[dict[str, Any]], object] | SupportsWrite[str]
_Kind: TypeAlias = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"]

@type_check_only
class _SessionMaker:
    # The methods that toolkits and views have in common.

    @overload
    def session(
        self,
        *,
        id: str | None = None,
        caller: str | None = None,
        role: Role | str | None = ...,
        roles: Roles | None = None,
        groups: Iterable[str] | None = None,
        names: Iterable[str] | None = None,
        exclude: Iterable[str] = (),
        tags: Iterable[str] | None = None,
        deps: None = None,
        parent: ToolContext[Any] | None = None,
        limits: Limits | None = None,
        result_budget: ResultBudget | int | None = None,
    ) -> Session[None]: ...
    @overload
    def session(
        self,
        *,
        id: str | None = None,
        caller: str | None = None,
        role: Role | str | None = ...,
        roles: Roles | None = None,
        groups: Iterable[str] | None = None,
        names: Iterable[str] | None = None,
        exclude: Iterable[str] = (),
        tags: Iterable[str] | None = None,
        deps: _Deps,
        parent: ToolContext[Any] | None = None,
        limits: Limits | None = None,
        result_budget: ResultBudget | int | None = None,
    ) -> Session[_Deps]:
        """Begin a session: one conversation, with group switches, approvals, limits and state of its own.

        The tools of the session of a view are among those of the view.

        Args:
            id: Its id, which it must have again to resume pending calls; random if it is None.
            caller: The caller, for policies and the audit log; that of the view or role if it is None.
            role: The name of a role, or a role, that limits the tools, as in `Toolkit.view_for`. None shows nothing.
            roles: The roles to find the name in, and their default groups.
            groups: The groups whose tools are visible while they are active, as in `Toolkit.view`.
            names: The visible tools.
            exclude: The hidden tools.
            tags: Tags of which a tool must have one.
            deps: The dependencies of its tools: any object.
            parent: The context of the call that it belongs to, for the session of a sub-agent.
            limits: The limits of each run.
            result_budget: The largest size of the results of its calls: a `ResultBudget`, or a number of characters.

        Raises:
            TypeError: If one of the lists is not a list of strings, or `role` is not a role.
            ValueError: If the id is empty.

        Example:
            session = toolkit.session(id="chat-7", caller="ann", limits=Limits(calls=20))
            response = await session.call("add", a=1, b=2)
        """

    @overload
    def load_session(
        self,
        path: None = None,
        *,
        key: str,
        role: Role | str | None = ...,
        roles: Roles | None = None,
        groups: Iterable[str] | None = None,
        names: Iterable[str] | None = None,
        exclude: Iterable[str] = (),
        tags: Iterable[str] | None = None,
        deps: None = None,
        limits: Limits | None = None,
    ) -> Awaitable[Session[None]]: ...
    @overload
    def load_session(
        self,
        path: None = None,
        *,
        key: str,
        role: Role | str | None = ...,
        roles: Roles | None = None,
        groups: Iterable[str] | None = None,
        names: Iterable[str] | None = None,
        exclude: Iterable[str] = (),
        tags: Iterable[str] | None = None,
        deps: _Deps,
        limits: Limits | None = None,
    ) -> Awaitable[Session[_Deps]]: ...
    @overload
    def load_session(
        self,
        path: Store,
        key: str,
        *,
        role: Role | str | None = ...,
        roles: Roles | None = None,
        groups: Iterable[str] | None = None,
        names: Iterable[str] | None = None,
        exclude: Iterable[str] = (),
        tags: Iterable[str] | None = None,
        deps: None = None,
        limits: Limits | None = None,
    ) -> Awaitable[Session[None]]: ...
    @overload
    def load_session(
        self,
        path: Store,
        key: str,
        *,
        role: Role | str | None = ...,
        roles: Roles | None = None,
        groups: Iterable[str] | None = None,
        names: Iterable[str] | None = None,
        exclude: Iterable[str] = (),
        tags: Iterable[str] | None = None,
        deps: _Deps,
        limits: Limits | None = None,
    ) -> Awaitable[Session[_Deps]]: ...
    @overload
    def load_session(
        self,
        path: str | PathLike[str],
        key: None = None,
        *,
        role: Role | str | None = ...,
        roles: Roles | None = None,
        groups: Iterable[str] | None = None,
        names: Iterable[str] | None = None,
        exclude: Iterable[str] = (),
        tags: Iterable[str] | None = None,
        deps: None = None,
        limits: Limits | None = None,
    ) -> Session[None]: ...
    @overload
    def load_session(
        self,
        path: str | PathLike[str],
        key: None = None,
        *,
        role: Role | str | None = ...,
        roles: Roles | None = None,
        groups: Iterable[str] | None = None,
        names: Iterable[str] | None = None,
        exclude: Iterable[str] = (),
        tags: Iterable[str] | None = None,
        deps: _Deps,
        limits: Limits | None = None,
    ) -> Session[_Deps]:
        """Continue a session that `Session.save` wrote to a file or store: id, caller, switches, counters and state.

        The selection of tools, the dependencies and the limits are not saved: pass them again, as to `session`. The
        tools of a session are among those of the view. With a store, or the `key` alone for the store of the toolkit,
        await the result. The key is the id of the session, unless it was saved under another.

        Raises:
            MissingFileError: If the file does not exist.
            MissingEntryError: If the store has no such entry.
            StoreError: If the store fails.
            FileAccessError: If the operating system refuses, with the fields of an `OSError`.
            ForeignFileError: If it was not written by `Session.save`.
            DamagedFileError: If it was modified or truncated.
            NewerFileError: If a newer version of toolcrib wrote it.
            FileTooLargeError: If it is larger than 16 MiB.
            InvalidStateError: If the view has a caller and the file is that of another.
        """

@disjoint_base
class Toolkit(_SessionMaker):
    """Keep tools, describe them to a model, and call them.

    A toolkit may be used from several threads and event loops at once. It is always true, also if it is empty.

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
            durably, a `Store`, a function that is called with a dictionary, or an object whose `write` is called with a
            line. If a decision cannot be recorded, the call does not run.
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

    Raises:
        TypeError: If an option has the wrong type.
        ValueError: If an option has an invalid value.
        SkillTemplateError: If the template has an unknown placeholder, or a single brace.

    Example:
        toolkit = Toolkit()
        toolkit.register_tool_function(add)
        response = await toolkit.call("add", a=1, b=2)
    """

    policy: Policy | None
    """The policy that decides about every call; None if there is none."""
    approver: _Approver | None
    """The function that approves calls; None if a call that needs approval ends with a pending value."""
    approver_timeout: float | None
    """The seconds after which a missing answer denies the call; None to wait without limit."""
    headless: bool
    """True if calls that need approval are denied at once."""
    audit: _AuditSink | None
    """The sink to which every decision is written before it takes effect; None if there is none."""
    asker: Callable[[Question], Any] | None
    """The function that answers the questions of tools; None if they cannot ask."""
    sampler: Sampler | None
    """The function that answers the requests of tools to a model; None if they cannot ask one."""

    @property
    def result_budget(self) -> ResultBudget | None:
        """The largest size of all results; None if it is not limited."""

    @result_budget.setter
    def result_budget(self, budget: ResultBudget | int | None) -> None: ...
    @property
    def store(self) -> Store | None:
        """The store that keeps all that has no place of its own; None if there is none."""

    @property
    def approvals(self) -> Approvals:
        """The store of pending calls, each of which can be answered once; in memory unless it or `store` was set."""

    @approvals.setter
    def approvals(self, approvals: Approvals | None) -> None: ...
    def __init__(
        self,
        agent_skill_instruction: str | None = None,
        agent_skill_template: str | None = None,
        *,
        arguments: Literal["coerce", "check", "pass"] = "coerce",
        errors: Literal["respond", "raise", "compat"] = "respond",
        run_in: Literal["thread", "inline", "process"] = "thread",
        repair: Literal["on", "explain", "off"] = "on",
        policy: Policy | None = None,
        approver: _Approver | None = None,
        approver_timeout: float | None = None,
        headless: bool = False,
        approvals: Approvals | None = None,
        audit: _AuditSink | None = None,
        store: Store | None = None,
        asker: Callable[[Question], Any] | None = None,
        sampler: Sampler | None = None,
        error_formatter: Callable[[BaseException, FailedCall], str] | None = None,
        result_budget: ResultBudget | int | None = None,
        tools: Iterable[Callable[..., Any]] = (),
    ) -> None: ...
    def register_tool_function(
        self,
        tool_func: Callable[..., Any],
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
        *,
        name: str | None = None,
        description: str | None = None,
        run_in: Literal["thread", "inline", "process"] | None = None,
        timeout: float | None = None,
        groups: Sequence[str] = (),
        tags: Sequence[str] = (),
        kind: _Kind | Literal["write"] | None = None,
        permission: Literal["auto", "confirm", "kind"] = "auto",
        secrets: Sequence[str] = (),
        aliases: Mapping[str, str] | None = None,
        chunks: Literal["add", "replace"] | None = None,
        result_budget: ResultBudget | int | None = None,
    ) -> None:
        """Register a callable as a tool.

        The arguments (a partial, a schema, a dictionary of presets) are copied and never modified. A registration that
        fails changes nothing.

        Args:
            tool_func: A function, coroutine function, generator function, async generator function, method, partial,
                class or callable object. It may return or yield any value. Bound arguments of a partial are presets.
            group_name: The group of the tool, which must exist.
            preset_kwargs: Arguments that the model can neither see nor override. They take precedence over the bound
                arguments of a partial.
            func_name: Another name of `name`, as in AgentScope.
            func_description: Another name of `description`, as in AgentScope.
            json_schema: The schema, instead of the one that is generated from the signature and the docstring:
                `{"type": "function", "function": {"name": ..., "parameters": {...}}}`, or the schema of the parameters
                alone, `{"type": "object", ...}`. The name in it is replaced by the tool's name. An empty dictionary is
                ignored.
            include_long_description: If true, the paragraphs after the docstring's first one are part of the
                description.
            include_var_positional: If true, the model may send `*args`, as a list under that name.
            include_var_keyword: If true, the model may send `**kwargs`, as an object under that name.
            postprocess_func: Called with the request block and each response, and awaited if it is asynchronous. A
                true result replaces the response.
            namesake_strategy: What to do if the name is taken: `"raise"` an error, `"skip"` the registration,
                `"override"` the old tool, or `"rename"` the new one by five random characters.
            async_execution: If true, a call returns a task id at once and runs in the background, in a task of the
                caller's event loop; see `view_task`.
            name: The tool's name, instead of the callable's.
            description: The description, instead of the docstring's; ignored if it is empty.
            run_in: Where a synchronous tool runs, instead of the toolkit's setting: `"thread"`, `"inline"`, or
                `"process"` for an importable function, in a child process that can be killed.
            timeout: Seconds after which a call is ended. A synchronous tool that runs inline cannot have one.
            groups: Additional groups of the tool, which must exist.
            tags: Labels that views and rules select by.
            kind: The effect of the tool; `"write"` is a synonym of `"edit"`, and None means `"other"`. The kinds
                `"read"`, `"search"`, `"fetch"` and `"think"` change nothing.
            permission: `"auto"`, `"confirm"` if each call that no rule allows needs approval, or `"kind"` if it does
                where a policy is set and the kind is edit, delete, move or execute.
            secrets: The parameters whose values are redacted (`***`) in approval requests, events and the audit log.
            aliases: Alternative names of parameters that a model may use by mistake, each with the correct name.
            chunks: The meaning of plain values that a generator yields: `"add"`, the default, appends each to the
                result, `"replace"` makes each the result so far.
            result_budget: The largest size of its results: a `ResultBudget`, or a number of characters.

        Raises:
            TypeError: If `tool_func` is not callable or is a method without its object, an option has the wrong type,
                or both names of an option are given.
            ValueError: If an option has an invalid value, a preset or secret is not a parameter, or the callable has no
                signature.
            UnknownGroupError: If a group does not exist.
            InvalidToolNameError: If the name is empty, or contains a control character or a line break.
            DuplicateToolError: If the name is taken and the strategy is `"raise"`.
            NoFreeNameError: If `"rename"` finds no free name.
            InvalidSchemaError: If `json_schema` does not describe a function.
            IncompleteSchemaError: If `json_schema` has no `parameters`, or no `properties` to remove presets from.
            UnsupportedTypeError: If a parameter's annotation has no JSON Schema, or one that is too large.

        Warns:
            UserWarning: If model providers refuse the name, or the docstring describes a parameter that does not exist.

        Example:
            toolkit.register_tool_function(search, preset_kwargs={"api_key": key}, timeout=10)
        """

    def remove_tool_function(self, tool_name: str, allow_not_exist: bool = True) -> None:
        """Remove a tool; running calls continue.

        Args:
            tool_name: The tool's name.
            allow_not_exist: If true, an unknown name is ignored.

        Raises:
            UnknownToolError: If the tool is unknown and `allow_not_exist` is false.
        """

    def set_tags(self, name: str, tags: str | Iterable[str]) -> None:
        """Replace the tags of a tool. Views and rules that name tags follow at once.

        Args:
            name: The name of the tool.
            tags: Its new tags, or one.

        Raises:
            UnknownToolError: If there is no such tool.
            ValueError: If a tag is empty.
        """

    def quarantine(self, name: str, reason: str = "") -> None:
        """Quarantine a tool: it is neither shown to the model nor callable until it is accepted.

        A call gets a response with the code `"denied"` and the reason. Calls that run go on. The quarantine ends with
        `accept`, or when the tool is registered again with `"override"`.

        Args:
            name: The name of the tool.
            reason: The reason, which the model is told.

        Raises:
            UnknownToolError: If there is no such tool.
        """

    def accept(self, name: str) -> None:
        """Lift the quarantine of a tool.

        Call `lock` afterwards to record its definition as reviewed.

        Args:
            name: The name of the tool.

        Raises:
            UnknownToolError: If there is no such tool.
            ValueError: If it is not quarantined.
        """

    @property
    def quarantined(self) -> dict[str, str]:
        """The names of the quarantined tools with the reasons, in the order of registration."""

    def create_tool_group(
        self,
        group_name: str,
        description: str,
        active: bool = False,
        notes: str | None = None,
        *,
        result_budget: ResultBudget | int | None = None,
    ) -> None:
        """Add a group, in which tools can be registered and which can be switched on and off.

        Args:
            group_name: A unique name; `basic` is the group of all tools without another group.
            description: The purpose of the group.
            active: If true, its tools are visible and callable from the start.
            notes: Instructions for its tools; see `get_activated_notes`.
            result_budget: The largest size of the results of its tools: a `ResultBudget`, or a number of characters.

        Raises:
            DuplicateGroupError: If the name is taken.
        """

    def update_tool_groups(self, group_names: str | Iterable[str], active: bool) -> None:
        """Switch groups on or off.

        `basic` is always active; naming it logs a warning on the logger `toolcrib`.

        Args:
            group_names: The groups to switch, or one; all others stay unchanged.
            active: True to switch them on.

        Raises:
            UnknownGroupError: If a group is unknown; then nothing is switched.
            TypeError: If `group_names` is not a list of strings.
        """

    def remove_tool_groups(self, group_names: str | list[str]) -> None:
        """Remove groups together with their tools.

        Args:
            group_names: One name or several.

        Raises:
            TypeError: If `group_names` is neither a string nor a list of strings.
            BasicGroupError: If `basic` is among them; then nothing is removed.
            UnknownGroupError: If a group is unknown; then nothing is removed.
        """

    def register_group(
        self,
        id: str,
        description: str = "",
        tools: Iterable[str | Callable[..., Any]] = (),
        *,
        reserved: bool = False,
        active: bool = True,
        notes: str | None = None,
    ) -> None:
        """Add a group together with its tools, or replace the one that has the id.

        A tool may belong to several groups and can be called while one of them is active. Replacing a group logs a
        warning on the logger `toolcrib`; tools that belong only to the old group are removed. A registration that fails
        changes nothing.

        Args:
            id: The group's id, which is its name in all other methods.
            description: The purpose of the group.
            tools: Names of registered tools, and callables to register.
            reserved: If true, the id can no longer be registered or unregistered.
            active: If true, its tools are visible and callable.
            notes: Instructions for its tools; see `get_activated_notes`.

        Raises:
            ReservedGroupError: If the id is reserved, as `basic` always is.
            InvalidGroupError: If `tools` is not a list of names and callables, or a name is unknown.
            DuplicateToolError: If a callable has the name of a tool in another group.
            ToolcribError: If a callable cannot be registered; see `register_tool_function`.
        """

    def unregister_group(self, id: str) -> None:
        """Remove a group, and the tools that are in no other group.

        Raises:
            ReservedGroupRemovalError: If the group is reserved, as `basic` always is.
            UnknownGroupError: If the group is unknown.
        """

    def list_groups(self) -> list[dict[str, Any]]:
        """Describe all groups: `basic` first, then in the order of their creation.

        Returns:
            One dictionary per group with `id`, `description`, `tools` (the names), `tool_count`, `reserved` and
            `active`.
        """

    def tool_group(self, name: str) -> str | None:
        """Return the group to which a tool was added last; None if it is in none."""

    def tool_groups_of(self, name: str) -> list[str]:
        """Return all groups of a tool, the one to which it was added last at the end."""

    def is_tool_in_groups(self, name: str, ids: Iterable[str]) -> bool:
        """Return True if a tool is in one of these groups, even if they are inactive.

        Raises:
            TypeError: If `ids` is not a list of strings.
        """

    def all_group_ids(self) -> list[str]:
        """Return the ids of all groups: `basic` first, then in the order of their creation."""

    def view(
        self,
        groups: Iterable[str] | None = None,
        names: Iterable[str] | None = None,
        exclude: Iterable[str] = (),
        tags: Iterable[str] | None = None,
        *,
        caller: str | None = None,
        inactive: bool = False,
    ) -> ToolkitView:
        """Select a part of the toolkit: exactly the tools that the view lists can be called through it.

        A view is live and cheap: it stores the conditions, not the tools. A tool is visible if all conditions hold.
        None sets no condition, and an empty list selects nothing. Tools and groups may be named before they exist, with
        a `UserWarning`.

        Args:
            groups: The groups whose tools are visible while they are active; `basic` must be named, too.
            names: The visible tools.
            exclude: The hidden tools.
            tags: Tags of which a tool must have one.
            caller: The caller, for policies and the audit log.
            inactive: True to show the tools of inactive groups, too, for a program that keeps the switches itself.
                Those of the toolkit and of sessions are then neither read nor changed.

        Raises:
            TypeError: If one of the lists is not a list of strings.
        """

    def view_for(
        self, role: Role | str | None, roles: Roles | None = None, *, caller: str | None = None
    ) -> ToolkitView:
        """Select the tools that a role may use: those of its groups, or of the default ones if it names none.

        The view of a name follows the role: changes by `Roles.update` take effect at once. The view of a removed or
        unknown role, or of None, shows nothing. An unknown name, or one without `roles`, gives a `UserWarning`. The
        role `root` has exactly the group `org_management`.

        Args:
            role: The name of a role, or a role.
            roles: The roles to find the name in, and their default groups.
            caller: The caller; the role's name if it is not given.

        Raises:
            TypeError: If `role` has another type.
        """

    def get_json_schemas(self, group_names: list[str] | None = None) -> list[dict[str, Any]]:
        """Describe the tools of all active groups, in the order of their registration.

        Args:
            group_names: The groups to describe besides `basic`, active or not.

        Returns:
            One `{"type": "function", "function": {...}}` per tool. They are copies.

        Raises:
            UnknownGroupError: If a group is unknown.
        """

    def get_json_schemas_bytes(self) -> bytes:
        """Return the schemas as JSON text, which is cached until something changes."""

    def schemas(self, dialect: _Dialect, group_names: list[str] | None = None) -> DialectSchemas:
        """Describe the tools of all active groups in the dialect of a provider.

        Types that the dialect does not support are encoded: a map as a list of entries, for example, or a recursive
        part as JSON text. Pass the same dialect to `call_tool_function`, and the tool receives the original shape.
        Constraints that cannot be encoded are added to the descriptions and listed in the result's `report`.

        Args:
            dialect: `"openai"`, `"openai_strict"`, `"openai_responses"`, `"openai_responses_strict"`, `"anthropic"`,
                `"gemini"` (a list of function declarations), `"bedrock"` or `"mcp"`.
            group_names: The groups to describe besides `basic`, active or not.

        Returns:
            One dictionary per tool, in the provider's format. They are copies.

        Raises:
            UnknownDialectError: If the dialect is unknown.
            UnknownGroupError: If a group is unknown.
        """

    def instructions(self, format: Literal["xml", "hermes", "function", "invoke", "fenced", "react"] = "xml") -> str:
        """Describe the tools of all active groups, and the syntax of calls, as text.

        Add it to the system prompt of a model without a tool API. The same tools give the same text, byte for byte.
        Descriptions are escaped, so that they cannot break the structure.

        Args:
            format: The format of calls: `"xml"` with every value in CDATA, `"hermes"` as JSON in `<tool_call>`,
                `"function"` as JSON in `<function=name>`, `"invoke"` with `<parameter name=...>`, `"fenced"` as JSON
                in a code fence, `"react"` with `Action:` and `Action Input:`.

        Raises:
            ValueError: If the format is unknown.
            ExtendedModelError: If an extended model conflicts with its tool.

        Example:
            prompt = "You are a helpful assistant. " + toolkit.instructions()
        """

    def get_activated_notes(self) -> str:
        """Join the notes of the active groups, each under the heading `## About Tool Group '<name>'`."""

    def get_tool_group_notes(self, group_names: str | Iterable[str] | None = None) -> str:
        """Join the notes of the active groups, or of the named ones, even if they are inactive.

        Args:
            group_names: The groups; their notes are in the order in which the groups were created.

        Raises:
            UnknownGroupError: If a group is unknown.
        """

    def reset_equipped_tools(self, **kwargs: bool) -> ToolResponse:
        """Choose the tool groups to work with from now on.

        This is the meta tool: the groups that are named with True are switched on and all others off. Register it
        (`toolkit.register_tool_function(toolkit.reset_equipped_tools)`) and the model chooses its groups itself. Its
        schema has one boolean for each group and follows the groups.

        Args:
            **kwargs: A boolean for each group; an omitted group is switched off.

        Returns:
            The groups that are active now, with their notes. An unknown group or a value that is not a boolean gives
            the code `"invalid_arguments"` and changes nothing.
        """

    @overload
    def set_extended_model(self, func_name: str, model: type[Any] | None) -> None: ...
    @overload
    def set_extended_model(self, *, finish_function_name: str, structured_model: type[Any] | None) -> None:
        """Add the fields of a pydantic model to the parameters of a tool.

        The function receives them as parameters or in `**kwargs`. The model's validators do not run; see
        `set_finish_function` for that.

        Args:
            func_name: The tool's name.
            model: A model class, or None to remove the fields.
            finish_function_name: Alternative spelling of `func_name`.
            structured_model: Alternative spelling of `model`.

        Raises:
            TypeError: If `model` is not a subclass of `pydantic.BaseModel`.
            UnknownToolError: If the tool is unknown.
            ExtendedModelError: If the model conflicts with the tool; nothing changes.
        """

    def set_finish_function(self, name: str, model: type[Any] | None) -> None:
        """Let a tool end a conversation with data that a pydantic model validates.

        The fields of the model become parameters of the tool and are validated at each call. Invalid data is answered
        with a text that begins with `Arguments Validation Error: ` and the code `"invalid_arguments"`, and the function
        does not run. Otherwise it runs with the arguments that it accepts, and its last response has `is_last` and this
        `metadata`: `success`, `structured_output` (the validated data, from `model_dump`) and `response_msg` (the
        function's own, or a message with the response's text).

        Args:
            name: The tool's name.
            model: A model class, or None to restore an ordinary tool.

        Raises:
            TypeError: If `model` is not a subclass of `pydantic.BaseModel`.
            UnknownToolError: If the tool is unknown.
            ExtendedModelError: If the model conflicts with the tool; nothing changes.

        Example:
            toolkit.set_finish_function("finish", Report)
        """

    def _deliver_as_given(self) -> None:
        """Deliver the chunks of tools that are registered from now on as the tools give them.

        There is no response for the whole result, as in AgentScope 1.x, unless a tool is registered with `chunks`.
        """

    def _defer_conflicts(self) -> None:
        """From now on, raise for an extended model that does not fit only where the schema is read.

        These are `get_json_schemas`, `get_json_schemas_bytes` and `extended_json_schema`, as in AgentScope 1.x. Until
        then the tool is called without the model.
        """

    def clear(self) -> None:
        """Remove all tools and all groups except `basic`; skills and middlewares stay."""

    def register_agent_skill(self, skill_dir: str | PathLike[str]) -> None:
        """Add the skill in a folder, whose `SKILL.md` has `name` and `description` in its YAML front matter.

        Only the front matter is read, at most 64 KiB. Values are literal text: `1.10` stays `1.10`.

        Args:
            skill_dir: The folder; the path is stored as it is.

        Raises:
            SkillDirectoryError: If the folder does not exist.
            SkillFileError: If the folder has no file `SKILL.md`.
            SkillFrontMatterError: If the front matter is invalid or lacks a field, or the name is not one line.
            DuplicateSkillError: If a skill of that name is registered.

        Example:
            toolkit.register_agent_skill("skills/pdf")
        """

    def remove_agent_skill(self, name: str) -> None:
        """Remove a skill; an unknown name logs a warning in `toolcrib`."""

    def get_agent_skill_prompt(self) -> str | None:
        """Return the text about the skills for the system prompt.

        Returns:
            The instruction, followed by the filled-in template for each skill; None without skills.
        """

    def state_dict(self) -> dict[str, list[str]]:
        """Return the active groups in the format of AgentScope's sessions.

        Returns:
            `{"active_groups": [...]}`, with the names in the order in which the groups were created.
        """

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Switch on the groups that a state lists, and switch off all others; unknown names are ignored.

        Args:
            state_dict: The result of `state_dict`.
            strict: If true, keys other than `active_groups` are refused.

        Raises:
            InvalidStateError: If the state is invalid; nothing changes.
        """

    @overload
    def save(self, path: str | PathLike[str], key: None = None) -> None: ...
    @overload
    def save(self, path: Store, key: str, *, version: int | None = None) -> Awaitable[int]: ...
    @overload
    def save(self, path: None = None, key: str | None = None, *, version: int | None = None) -> Awaitable[int]:
        """Save the groups to a file or a store: names, descriptions, notes, order and activity.

        A file is replaced atomically: readers find the old state or the new one, also after a crash. If several
        processes save at once, the last one wins. An entry of a store is replaced only if it is the one that this
        toolkit has loaded or saved last. Tools and skills are not saved.

        Args:
            path: The file, or a store; None for the store of the toolkit. Symbolic links are followed. An existing file
                keeps its permissions, a new one is readable by its owner only.
            key: The name of the entry in the store; `"toolkit"` by default in the store of the toolkit.
            version: The version that the entry must have: 0 if there must be none. By default the one that this
                toolkit has loaded or saved last.

        Returns:
            None for a file; for a store an awaitable of the new version.

        Raises:
            FileAccessError: If the operating system refuses; the old state remains.
            FileTooLargeError: If the state exceeds 16 MiB.
            VersionConflictError: If the entry has another version by now; its `version` is the current one.
            StoreError: If the store fails.
        """

    @overload
    def load(self, path: str | PathLike[str], key: None = None) -> None: ...
    @overload
    def load(self, path: Store, key: str) -> Awaitable[int]: ...
    @overload
    def load(self, path: None = None, key: str | None = None) -> Awaitable[int]:
        """Restore the groups from a file or a store, in their order.

        Missing groups are created, and groups that were not saved are switched off. Tools do not change. An invalid
        file changes nothing.

        Args:
            path: A file that `save` wrote, or a store; None for the store of the toolkit.
            key: The name of the entry in the store; `"toolkit"` by default in the store of the toolkit.

        Returns:
            None for a file; for a store an awaitable of the entry's version.

        Raises:
            MissingFileError: If the file does not exist.
            MissingEntryError: If the store has no such entry.
            StoreError: If the store fails.
            FileAccessError: If the operating system refuses.
            ForeignFileError: If another program wrote the file.
            DamagedFileError: If the file is truncated or modified.
            NewerFileError: If a newer version of toolcrib wrote the file.
            FileTooLargeError: If the file exceeds 16 MiB.
        """

    def register_middleware(self, middleware: Middleware) -> None:
        """Wrap every call in a middleware, inside of those registered before.

        It is called with `{"tool_call": block}` and a handler: `next_handler(**kwargs)` returns the stream of the next
        layer. A call uses the middlewares that are registered when it starts.

        Args:
            middleware: An async generator function, or anything that returns a stream or a response, directly or when
                awaited.

        Raises:
            TypeError: If it is not callable.

        Example:
            async def log(kwargs, next_handler):
                print("request:", kwargs["tool_call"]["name"])
                async for response in await next_handler(**kwargs):
                    yield response

            toolkit.register_middleware(log)
        """

    @property
    def _middlewares(self) -> list[Middleware]: ...
    def call_tool_function(
        self, tool_call: Mapping[str, Any] | ToolCall | str | Dumped, *, dialect: _Dialect | None = None
    ) -> ToolStream:
        """Call a tool the way a model asks for it, and give its responses as they come.

        The call starts with the first step of the iteration. A mistake of the model is answered with a response that
        has a `code`.

        Args:
            tool_call: `{"type": "tool_use", "id": ..., "name": ..., "input": {...}}`, of which only `name` is required;
                `input` may be JSON text or None. Also a `ToolCall`, and anything that `ToolCall.read` accepts.
            dialect: The dialect of the schemas that the model received. Its names and arguments are decoded before any
                other stage.

        Raises:
            TypeError: If `tool_call` has a type that cannot be a call.
            UnknownDialectError: If the dialect is unknown.

        Example:
            async for response in toolkit.call_tool_function(block):
                print(response.text)
        """

    def check(self, tool_call: Mapping[str, Any] | ToolCall | str | Dumped) -> dict[str, Any]:
        """Return the decision about a call; nothing runs, is approved or is written to the audit.

        Args:
            tool_call: The request, as for `call_tool_function`.

        Returns:
            A dictionary. `would` is `"run"`, `"ask"`, `"pending"`, `"deny"`, or `"refuse"` for an invalid request. The
            other keys are `tool`, `decision`, `rule`, `reason`, `cause` (`"rule"`, `"permission"` of the tool, or
            `"default"` of the policy), `text` (of the response to a call that does not run), `shadowed` (the decision
            without shadow mode), `code` (of the refusal) and `problems` (of the arguments, as text).

        Raises:
            TypeError: If `tool_call` has a type that cannot be a call.
            Exception: Any exception of the `should_confirm` of a declared tool, which is asked as for a call.
        """

    def end_run(self) -> None:
        """Revoke the approvals for this run: all calls need approval again."""

    def resume(
        self,
        pending: Mapping[str, Any] | str,
        answer: _Answer | Approval,
        arguments: Mapping[str, Any] | None = None,
        *,
        by: str | None = None,
    ) -> ToolStream:
        """Continue a call that ended with a pending value, once and in any process that shares the approvals.

        The call starts with the first step of the iteration, which also uses up the pending value and raises if it is
        expired, altered or used. Middlewares apply; whatever they change in the request, the approved call runs.

        Args:
            pending: The response's `metadata["pending"]`, or its JSON text.
            answer: `"once"`, `"run"`, `"always"`, `"no"`, `"cancel"`, a boolean, or an `Approval`.
            arguments: Arguments to run instead; they are validated and checked against the rules again.
            by: The person who answered, for the audit log.

        Raises:
            InvalidPendingError: If `pending` is not a pending value.
            InvalidAnswerError: If `answer` is invalid. Invalid edited arguments raise it in the first step, before the
                pending value is used up.
        """

    def call(self, name: str, /, **arguments: Any) -> Coroutine[Any, Any, ToolResponse]:
        """Call a tool and give its last response.

        Args:
            name: The tool's name.
            **arguments: The arguments that a model would send; presets cannot be overridden.

        Example:
            response = await toolkit.call("add", a=1, b=2)
        """

    def value(self, name: str, /, **arguments: Any) -> Coroutine[Any, Any, Any]:
        """Call a tool and give the value that it returned, as it is.

        The call takes the same path as any other, so that permissions, middlewares, limits and events apply. What a
        function or a coroutine function returns is neither converted nor cut; an awaitable that a function returns is
        awaited. A tool that yields responses, such as a generator function, an MCP tool or a sub-agent, has the value
        of its last response: the entry `"value"` of its metadata, or else its text. So has any call through a
        middleware.

        Args:
            name: The tool's name.
            **arguments: The arguments that a model would send; presets cannot be overridden.

        Raises:
            ToolCallError: If the call is refused, or has no value. An exception of the tool is its cause, unless the
                toolkit has `errors="raise"`: then it is raised as it is.

        Example:
            total = await toolkit.value("add", a=1, b=2)
        """

    @property
    def _permissions(self) -> _Permissions: ...
    @property
    def _tasks(self) -> _TaskBoard: ...
    def _lock(self, path: str | PathLike[str]) -> LockReport: ...
    def _verify(
        self, path: str | PathLike[str], allow: _ChangeClass | Iterable[_ChangeClass], quarantine: bool
    ) -> LockReport: ...
    def _find_tool(self, name: str) -> RegisteredToolFunction | None: ...
    def _find_group(self, name: str) -> ToolGroup | None: ...
    def _all_tools(self) -> dict[str, RegisteredToolFunction]: ...
    def _all_groups(self) -> dict[str, ToolGroup]: ...
    def _find_skill(self, name: str) -> AgentSkill | None: ...
    def _all_skills(self) -> dict[str, AgentSkill]: ...
    @property
    def _revision(self) -> int:
        """A number that changes with every change of the tools and groups."""

    @property
    def _switches(self) -> dict[str, Any]:
        """The options of the constructor that are words, for another toolkit."""

    @property
    def _error_formatter(self) -> Callable[..., Any] | None:
        """The function that describes exceptions to the model."""

    @property
    def _group_records(self) -> list[dict[str, Any]]:
        """The groups without `basic` as dictionaries that `_put_group` reads, in the order of their creation."""

    @property
    def _skill_texts(self) -> tuple[str | None, str | None]:
        """The introduction of the skills and the template for each, unless they are the defaults."""

    def _put_tool(self, name: str, record: dict[str, Any]) -> RegisteredToolFunction:
        """Register a tool from its record under a name; one of that name is replaced in its position.

        The schema is listed under the name that it has itself.
        """

    def _put_group(self, record: dict[str, Any]) -> None:
        """Create a group from its record."""

    def _put_skill(self, key: str, skill: dict[str, Any] | AgentSkill) -> None:
        """Add or replace a skill under a name."""

    def _describe_skills(self, instruction: str | None, template: str | None) -> None:
        """Set the introduction of the skills and the template for each; None for the defaults."""

    def _before_use(self, function: Callable[[str | None], object]) -> None:
        """Call a function before tools are listed, and before a tool is called, with the name of that tool or None."""

    def _respond_with(self, response_class: type[Any]) -> None:
        """From now on, deliver responses of this class, which has the first six fields of `ToolResponse`.

        A response of this class that a tool returns is delivered as it is. Call it before anything is registered.
        """

    def _delivered(self, response: Any) -> Any:
        """Return a response in the class that the toolkit delivers."""

    def _trace_with(self, conventions: Any) -> None:
        """Let an object write the spans of calls.

        Its `start(toolkit, tool_call, arguments)` returns a span, or None for none. `record(span, response)` gets the
        last response, or None if the call ended with an exception, and `conclude(span, is_good)` is called before the
        span ends.
        """

@final
class NativeTool:
    """A tool that is written in Rust.

    Register it like a function: `toolkit.register_tool_function(tools.wait)`. It has its own schema and is validated,
    cancelled and traced like any other tool. It runs on a tokio runtime, in threads that never hold Python's
    interpreter lock, and its responses reach the event loop in batches.

    `toolcrib.tools` contains the native tools of toolcrib; Rust programs write their own with the crate.
    """

    @property
    def name(self) -> str:
        """The name under which it is registered by default."""
    @property
    def description(self) -> str | None:
        """The description that the model reads."""
    @property
    def json_schema(self) -> dict[str, Any]:
        """The schema that the model reads, as a copy."""
    @property
    def permission(self) -> Literal["auto", "confirm", "kind"]:
        """The permission that a call needs if no rule matches: `"auto"`, `"confirm"` or `"kind"`."""
    @property
    def mcp_name(self) -> str | None:
        """The name of the MCP client whose server provides it."""
    @property
    def kind(self) -> _Kind:
        """The kind, which rules can match."""
    @property
    def is_streaming(self) -> bool:
        """True if it returns a stream of responses, false if it returns one."""
    __name__: str
    def __call__(self, /, *args: Never, **arguments: Any) -> Any:
        """Call the tool without a toolkit: arguments are not checked, and no permission is needed.

        Args:
            *args: Not accepted; pass every argument by keyword.
            **arguments: JSON values for the parameters of the schema.

        Returns:
            An async iterator of responses if the tool streams, which can be awaited instead for the last one;
            otherwise an awaitable of its one response. The tool
            starts when it is awaited; closing or dropping it ends the tool.

        Raises:
            NativeToolError: If the tool returns an error; raised when its responses are awaited.
        """
    def _set_before_call(self, function: Callable[[], object]) -> None:
        """Set the function that is called before each call, without arguments. It can be set once."""

    def __copy__(self) -> NativeTool: ...
    def __deepcopy__(self, _memo: Any) -> NativeTool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

def _artifact_tools(store: Store) -> list[NativeTool]:
    """Return the tools for the artifacts in a store."""

def _native_tool(name: str) -> NativeTool: ...
def _program_tools(
    *,
    cwd: str | PathLike[str] | None,
    env: Mapping[str, str],
    limits: ProgramLimits,
    python: str | PathLike[str],
    sandbox: tuple[list[str], list[str], bool] | None,
) -> list[NativeTool]:
    """Return the tools that run programs with these settings.

    A sandbox is readable folders, writable folders, and the network.
    """

def _supervisor() -> tuple[int, Path] | None:
    """Return the descriptor of the supervisor's file and the path to execute it by.

    Systems without a supervisor return `None`.
    """

@final
class _FileSystem:
    """Directories under logical names."""

    def __new__(cls, roots: Sequence[tuple[str, Path, Sequence[str], str]]) -> _FileSystem: ...
    def create_handle(self, grants: Sequence[tuple[str, Sequence[str]]]) -> FileHandle: ...

@final
class FileHandle:
    """The grants of a caller on a file system.

    It has the operations that a program calls itself.

    `DiskFileSystem.create_handle` makes one. Every operation waits for the file system, without holding Python's
    interpreter lock, and raises an exception of `toolcrib.files` if it fails.
    """

    @property
    def permissions(self) -> builtins.list[tuple[str, builtins.list[str]]]:
        """The granted prefixes with their operations."""
    def list(self, path: str) -> builtins.list[dict[str, Any]]:
        """List the entries of a directory.

        Args:
            path: The directory; needs the grant `list`.

        Returns:
            Dictionaries with `name`, `type` (`"file"`, `"directory"`, `"link"` or `"other"`) and `size`, which is None
            unless the entry is a file.
        """
    def file(self, path: str) -> dict[str, Any]:
        """Return the metadata of a file or directory.

        Args:
            path: The file; needs the grant `file`.

        Returns:
            A dictionary with `path`, `type`, `size`, `modified` (seconds since 1970) and `mode` (permission bits).
        """
    def read_binary(self, path: str) -> bytes:
        """Read all bytes of a file.

        Args:
            path: The file; needs the grant `read_binary`.
        """
    def read_file(self, path: str, start_line: int = 1, read_lines: int | None = None) -> str:
        """Read lines of a text file.

        Args:
            path: The file; needs the grant `read_file`.
            start_line: The number of the first line, from 1.
            read_lines: The largest number of lines.

        Returns:
            The lines, without a line break at the end.
        """
    def read_re(self, path: str, pattern: str) -> builtins.list[tuple[int, str]]:
        """Return the lines of a text file that match a regular expression, each with its number.

        Args:
            path: The file; needs the grant `read_re`.
            pattern: The expression, in the syntax of Rust's `regex`, which has no backtracking.

        Returns:
            Pairs of a line number, from 1, and the line.
        """
    def write(self, path: str, content: str | bytes) -> int:
        """Create or replace a file in one step.

        Args:
            path: The file; needs the grant `write`.
            content: Text, which is written as UTF-8, or bytes.

        Returns:
            The number of bytes.
        """
    def delete(self, path: str) -> None:
        """Delete a file.

        Args:
            path: The file; needs the grant `delete`.
        """
    def _tools(
        self, *, max_reply_bytes: int, max_file_bytes: int, max_entries: int, hard_links: bool, durable: bool
    ) -> builtins.list[NativeTool]: ...

@final
class RegisteredToolFunction:
    """A tool in a toolkit.

    It is immutable; register the tool again with `namesake_strategy="override"` to change it.
    """

    @property
    def _record(self) -> dict[str, Any]:
        """The tool as a dictionary that `Toolkit._put_tool` reads."""

    @property
    def name(self) -> str:
        """The name by which a model calls it."""

    @property
    def groups(self) -> list[str]:
        """The names of all its groups, in the order in which it was added to them."""

    @property
    def group(self) -> str:
        """The name of its group: the first, if it is in several."""

    @property
    def quarantined(self) -> str | None:
        """The reason why it is quarantined; None if it is not. See `Toolkit.quarantine`."""

    @property
    def tags(self) -> list[str]:
        """The tags by which views and rules select it."""

    @property
    def source(self) -> Literal["function"]:
        """The kind of its source."""

    @property
    def original_func(self) -> Callable[..., Any]:
        """The registered function, without partials."""

    @property
    def json_schema(self) -> dict[str, Any]:
        """A copy of the schema, without the fields of an extended model."""

    @property
    def extended_model(self) -> type[Any] | None:
        """The model whose fields are added to the schema; see `Toolkit.set_extended_model`."""

    @property
    def extended_json_schema(self) -> dict[str, Any]:
        """A copy of the schema, with the fields of the extended model and, for the meta tool, the groups."""

    @property
    def preset_kwargs(self) -> dict[str, Any]:
        """A copy of the arguments that the model cannot see, including those that a partial has bound."""

    @property
    def original_name(self) -> str | None:
        """The name of the callable, if the tool has another one."""

    @property
    def mcp_name(self) -> str | None:
        """The name of the MCP client whose server offers it."""

    @property
    def postprocess_func(self) -> Callable[[Any, Any], Any] | None:
        """The function that is called with each response."""

    @property
    def result_budget(self) -> ResultBudget | None:
        """The largest size of its results, apart from the budgets of other places; None if it has none."""

    @property
    def run_in(self) -> Literal["thread", "inline", "process"]:
        """The place where it runs; `"inline"` for asynchronous tools, which run on the caller's event loop."""

    @property
    def timeout(self) -> float | None:
        """The seconds after which a call is ended."""

    @property
    def async_execution(self) -> bool:
        """True if a call returns at once and continues in the background."""

    @property
    def kind(self) -> _Kind:
        """The kind of effect that it has."""

    @property
    def permission(self) -> Literal["auto", "confirm", "kind"]:
        """`"auto"`, `"confirm"` or `"kind"`: whether each call needs approval, unless a rule decides otherwise."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The parameters whose values are redacted."""

    @property
    def chunks(self) -> Literal["add", "replace"] | None:
        """The meaning of plain values that it yields: `"add"` or `"replace"`; None if chunks are delivered as given."""

    @property
    def aliases(self) -> dict[str, str]:
        """A copy of the alternative names of parameters, each with the parameter."""

    def call(
        self,
        *,
        arguments: Mapping[str, Any] | str | None,
        stream_print: Callable[[ToolResponse], Any] | None = None,
    ) -> ToolStream:
        """Call this tool, even if its group is inactive, but not while it is quarantined.

        The toolkit's middlewares do not apply.

        Args:
            arguments: The arguments that a model would send; presets cannot be overridden.
            stream_print: Called with each response, and awaited if it is asynchronous.

        Raises:
            TypeError: If `stream_print` is not callable.

        Example:
            async for response in toolkit.tools["add"].call(arguments={"a": 1, "b": 2}):
                print(response.text)
        """

@disjoint_base
class ToolkitView(_SessionMaker):
    """A part of a toolkit: exactly the tools that it lists can be called through it.

    `Toolkit.view` and `Toolkit.view_for` create views. A view is live: it follows every change of the toolkit. It is
    always true, also if it shows nothing.
    """

    @property
    def toolkit(self) -> Toolkit:
        """The toolkit of the view."""

    @property
    def caller(self) -> str | None:
        """The name of the caller."""

    @property
    def tools(self) -> Mapping[str, RegisteredToolFunction]:
        """A live mapping of the tools of the view by name, in the order of their registration."""

    @property
    def groups(self) -> Mapping[str, ToolGroup]:
        """A live mapping of the groups of the view by name, in the order of their creation, without `basic`."""

    def get_json_schemas(self) -> list[dict[str, Any]]:
        """Describe the tools of the view, in the order of their registration.

        Returns:
            One `{"type": "function", "function": {...}}` per tool. They are copies.
        """

    def schemas(self, dialect: _Dialect) -> DialectSchemas:
        """Describe the tools of the view in the dialect of a provider, as `Toolkit.schemas` does.

        Args:
            dialect: The name of the dialect.

        Raises:
            UnknownDialectError: If the dialect is unknown.
        """

    def get_json_schemas_bytes(self) -> bytes:
        """Return the schemas as JSON text, which is cached until something changes."""

    def instructions(self, format: Literal["xml", "hermes", "function", "invoke", "fenced", "react"] = "xml") -> str:
        """Describe the tools of the view, and the syntax of calls, as text; see `Toolkit.instructions`.

        Args:
            format: The format of calls: `"xml"`, `"hermes"`, `"function"`, `"invoke"`, `"fenced"` or `"react"`.

        Raises:
            ValueError: If the format is unknown.
        """

    def get_activated_notes(self) -> str:
        """Join the notes of the active groups of the view, each under the heading `## About Tool Group '<name>'`."""

    def view(
        self,
        groups: Iterable[str] | None = None,
        names: Iterable[str] | None = None,
        exclude: Iterable[str] = (),
        tags: Iterable[str] | None = None,
        *,
        caller: str | None = None,
        inactive: bool = False,
    ) -> ToolkitView:
        """Select a part of this view; see `Toolkit.view`.

        Args:
            groups: The groups whose tools stay visible.
            names: The tools that stay visible.
            exclude: The hidden tools.
            tags: Tags of which a tool must have one.
            caller: The caller; the same as of this view if it is not given.
            inactive: True to show the tools of inactive groups, too; it stays true if it is for this view.

        Raises:
            TypeError: If one of the lists is not a list of strings.
        """

    def reset_equipped_tools(self, **kwargs: bool) -> ToolResponse:
        """Choose the tool groups to work with from now on, among those of the view; see `Toolkit`."""

    def __contains__(self, name: object, /) -> bool:
        """Return True if a tool of this name can be called through the view now."""

    def call_tool_function(
        self, tool_call: Mapping[str, Any] | ToolCall | str | Dumped, *, dialect: _Dialect | None = None
    ) -> ToolStream:
        """Call a tool the way a model asks for it, and give its responses as they come.

        A name that the view does not show is answered with the code `"tool_not_available"`, whether such a tool exists
        or not. Middlewares and background tasks of the call stay inside the view. See `Toolkit.call_tool_function`.
        """

    def call(self, name: str, /, **arguments: Any) -> Coroutine[Any, Any, ToolResponse]:
        """Call a tool and give its last response."""

    def value(self, name: str, /, **arguments: Any) -> Coroutine[Any, Any, Any]:
        """Call a tool and give the value that it returned, as it is.

        See `Toolkit.value`.
        """

    def run(self, name: str, /, **arguments: Any) -> ToolResponse:
        """Call a tool from synchronous code and return its last response; see `Toolkit.run`."""

    def serve_mcp(self, transport: Literal["stdio", "http"], **options: Any) -> McpServer:
        """Serve the tools of the view to MCP clients; see `Toolkit.serve_mcp`.

        Clients of a session share it. Those of a view have sessions of their own, with the caller of the view if it has
        one. See `Toolkit.serve_mcp`.
        """

    @property
    def _revision(self) -> int: ...
    def _hosted_by(
        self, asker: Callable[[Question], Any] | None, sampler: Sampler | None, log: _ServedCall | None
    ) -> ToolkitView:
        """The same view for the calls of an MCP client; what the client does not have is the toolkit's."""

    def check(self, tool_call: Mapping[str, Any] | ToolCall | str | Dumped) -> dict[str, Any]:
        """Return the decision about a call; nothing runs, is approved or is written to the audit.

        See `Toolkit.check`.
        """

    def resume(
        self,
        pending: Mapping[str, Any] | str,
        answer: _Answer | Approval,
        arguments: Mapping[str, Any] | None = None,
        *,
        by: str | None = None,
    ) -> ToolStream:
        """Continue a call that ended with a pending value, once and in any process that shares the approvals.

        See `Toolkit.resume`.
        """

    def _find_tool(self, name: str) -> RegisteredToolFunction | None: ...
    def _find_group(self, name: str) -> ToolGroup | None: ...
    def _all_tools(self) -> dict[str, RegisteredToolFunction]: ...
    def _all_groups(self) -> dict[str, ToolGroup]: ...

@final
class AgentRun:
    """The run of a sub-agent, as its loop sees it: call it to emit an event, which is progress in the stream.

    A loop gets it as its third argument: `emit("THOUGHT_CHUNK", text="I look for birds")`.
    """

    def __call__(self, kind: str | ToolResponse, /, **data: Any) -> None:
        """Emit an event of the agent: the stream of its call gives a response of mode `"progress"`.

        The response's `metadata["activity"]` has the name of the agent, the path of callers, the kind and the data.

        Args:
            kind: The kind of event: `"THOUGHT_CHUNK"` (`text`), `"TOOL_CALL_START"` (`name`, `args`),
                `"TOOL_CALL_END"` (`name`, `output`), `"ERROR"` (`error`, `context`), or any text of your own; or a
                response of mode `"progress"`, which is passed on.
            **data: The data of the event, as JSON values.
        """

    @property
    def agent(self) -> str:
        """The name of the agent."""

    @property
    def path(self) -> tuple[str, ...]:
        """The names of the agents that called each other, from the outermost one to this one."""

    @property
    def context(self) -> ToolContext[Any]:
        """The context of the call that started the run."""

    @property
    def used(self) -> dict[str, int]:
        """The turns, calls and tokens that all agents of the tree have used so far."""

    def take_turn(self) -> str | None:
        """Take a turn of the budget that all agents of the tree share.

        Returns:
            None, or a text if the budget is used up: then the run has to end.
        """

@final
class _AgentTool:
    """The function of a registered agent. Calling it returns the inputs, with which the call then starts the run."""

    def __new__(
        cls,
        name: str,
        description: str,
        parameters: dict[str, Any],
        run: Callable[..., Any],
        *,
        tools: Iterable[str] | None = None,
        groups: Iterable[str] | None = None,
        view: ToolkitView | None = None,
        depth: int = 5,
        turns: int | None = None,
        calls: int | None = None,
        budget_tokens: int | None = None,
        tokens: int | None = None,
        time: float | None = None,
        is_timed: bool = False,
    ) -> _AgentTool: ...
    @property
    def name(self) -> str: ...
    @property
    def __name__(self) -> str: ...
    @property
    def json_schema(self) -> dict[str, Any]: ...
    @property
    def run(self) -> Callable[..., Any]: ...
    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, Any]: ...

@final
class _AgentCompletion:
    """The rules of `complete_task` for one agent."""

    def __new__(
        cls, name: str | None = None, description: str = "", schema: dict[str, Any] | None = None
    ) -> _AgentCompletion: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> dict[str, Any]: ...
    def check(self, arguments: dict[str, Any]) -> tuple[str | None, Any]: ...

_COMPLETE_TASK: str
_DUPLICATE_COMPLETION: str

def _thought(text: str) -> tuple[str, str]: ...
def _run_description(agent: str, inputs: object) -> str: ...
def _completion_text(output: object) -> str: ...
def _final_text(reason: str, limit: float | None = None) -> str: ...
def _is_recoverable(reason: str) -> bool: ...
def _wrapped_result(agent: str, reason: str, is_recovered: bool, result: str) -> str: ...
def _unauthorized_text(tool: str) -> str: ...

@final
class Session(ToolkitView, Generic[_Deps]):
    """One conversation over a shared toolkit: a view with its own group switches, approvals, limits and state.

    `Toolkit.session` and `ToolkitView.session` make sessions, and `load_session` continues a saved one. What is
    switched, approved or counted in one session does not affect another. `session.view(...)` narrows it and stays in
    the session.
    """

    deps: _Deps
    """The dependencies of its tools: any object. They are not saved."""

    @property
    def id(self) -> str:
        """The id, which is part of approvals, events, audit records and spans."""

    @property
    def parent(self) -> ToolContext[Any] | None:
        """The context of the call that the session belongs to, if a sub-agent works in it."""

    @property
    def path(self) -> tuple[str, ...]:
        """The names of the agents that called each other, from the outermost one; empty outside of sub-agents."""

    @property
    def state(self) -> dict[str, Any]:
        """Your own values, which are saved with the session: a dict of JSON values."""

    @property
    def limits(self) -> Limits:
        """The limits of each run; setting them keeps the counters."""

    @limits.setter
    def limits(self, limits: Limits | None) -> None: ...
    @property
    def result_budget(self) -> ResultBudget | None:
        """The largest size of the results of its calls; None if it has no budget. It is not saved."""

    @result_budget.setter
    def result_budget(self, budget: ResultBudget | int | None) -> None: ...
    @property
    def usage(self) -> Usage:
        """The counters of calls, tokens and failures, as they are now."""

    def add_tokens(self, count: int) -> None:
        """Count tokens that were used for this session, for the limit `tokens`.

        Raises:
            TypeError: If `count` is not an integer.
            ValueError: If it is negative.
        """

    def end_run(self) -> None:
        """End the run: revoke its approvals, and let the counters of the limits begin again.

        Group switches, `state` and the totals of `usage` stay.
        """

    def update_tool_groups(self, group_names: str | Iterable[str], active: bool) -> None:
        """Switch groups on or off, for this session only.

        Groups that the session does not show are ignored. `basic` is always active: naming it logs a warning in
        `toolcrib`.

        Args:
            group_names: The names of the groups, or one name.
            active: True to switch them on.

        Raises:
            TypeError: If `group_names` is neither a string nor a list of strings.
            UnknownGroupError: If a group is unknown. Then nothing changes.
        """

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the session as JSON values: `id`, `caller`, `groups`, `usage` and `state`.

        The selection of tools, `limits`, `deps` and approvals are not part of it.

        Raises:
            InvalidStateError: If `state` has a value that JSON cannot represent.
        """

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` returned; approvals of the run are revoked.

        Raises:
            InvalidStateError: If it is not a valid state, or that of another session or caller. Then nothing changes.
        """

    @overload
    def save(self, path: str | PathLike[str], key: None = None) -> None: ...
    @overload
    def save(self, path: Store | None = None, key: str | None = None, *, version: int | None = None) -> Awaitable[int]:
        """Save the session to a file, which is replaced atomically, or to a store; see `Toolkit.load_session`.

        Args:
            path: The file, or a store; None for the store of the toolkit.
            key: The name of the entry in the store, by default the id of the session.
            version: The version that the entry must have: 0 if there must be none. By default the one that this
                session has loaded or saved last.

        Returns:
            None for a file; for a store an awaitable of the new version.

        Raises:
            InvalidStateError: If `state` has a value that JSON cannot represent.
            FileAccessError: If the operating system refuses, with the fields of an `OSError`.
            FileTooLargeError: If the state is larger than 16 MiB.
            VersionConflictError: If the entry has another version by now; its `version` is the current one.
            StoreError: If the store fails.
        """

    def __class_getitem__(cls, item: Any) -> GenericAlias:
        """Support `Session[Deps]` in annotations."""

@final
class Limits:
    """Limit the calls, retries and tokens of each run of a session.

    A run lasts until `Session.end_run`. A call over a limit is answered with the code `"limit_exceeded"`, and the tool
    does not run.

    Args:
        calls: The number of calls that may run, whether they succeed or not.
        retries: The number of times that a tool may be called again after a failure, until it succeeds.
        tokens: The number of tokens that are reported with `Session.add_tokens`.

    Raises:
        TypeError: If a limit is not an integer.
        ValueError: If it is negative.
    """

    def __new__(cls, *, calls: int | None = None, retries: int | None = None, tokens: int | None = None) -> Limits: ...
    @property
    def calls(self) -> int | None:
        """The number of calls that may run; None for no limit."""

    @property
    def retries(self) -> int | None:
        """The number of times that a tool may be called again after a failure, until it succeeds; None for no limit."""

    @property
    def tokens(self) -> int | None:
        """The number of tokens that may be reported with `Session.add_tokens`; None for no limit."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: Any, /) -> bool: ...
    def __le__(self, other: Any, /) -> bool: ...
    def __gt__(self, other: Any, /) -> bool: ...
    def __ge__(self, other: Any, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Usage:
    """The counters of a session at one moment."""

    @property
    def calls(self) -> int:
        """The calls of this run that were permitted and had valid arguments, whether they succeeded or not."""

    @property
    def tokens(self) -> int:
        """The tokens of this run."""

    @property
    def total_calls(self) -> int:
        """The calls of all runs."""

    @property
    def total_tokens(self) -> int:
        """The tokens of all runs."""

    @property
    def failures(self) -> dict[str, int]:
        """The failures in a row of each tool whose last call failed; counted only while `retries` are limited."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: Any, /) -> bool: ...
    def __le__(self, other: Any, /) -> bool: ...
    def __gt__(self, other: Any, /) -> bool: ...
    def __ge__(self, other: Any, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class AgentInput:
    """One input of an agent.

    Args:
        type: `"string"`, `"number"`, `"integer"`, `"boolean"`, `"string[]"` or `"number[]"`.
        description: The description for the calling model.
        required: True if the agent cannot be called without it.
    """

    def __new__(cls, type: str, description: str = "", required: bool = True) -> AgentInput: ...
    @property
    def type(self) -> str:
        """The name of its type."""

    @property
    def description(self) -> str:
        """The description for the calling model."""

    @property
    def required(self) -> bool:
        """True if the agent cannot be called without it."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class AgentLimits:
    """The limits of one run of an agent; None is without limit.

    Args:
        turns: The most requests to its model.
        time: The longest time, in seconds.
        tokens: The most tokens.

    Raises:
        ValueError: If a limit is not positive.
    """

    def __new__(cls, turns: int | None = 30, time: float | None = 600.0, tokens: int | None = None) -> AgentLimits: ...
    @property
    def turns(self) -> int | None:
        """The most requests to its model."""

    @property
    def time(self) -> float | None:
        """The longest time, in seconds."""

    @property
    def tokens(self) -> int | None:
        """The most tokens."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class AgentOutput:
    """The value that an agent has to give when it has completed its task.

    Args:
        name: The name of the argument that carries it.
        description: The description for the agent's model.
        schema: Its JSON Schema, a pydantic model or a type.
        process: A function that turns the value into the text of the result.
    """

    def __new__(
        cls, name: str, description: str, schema: Any, process: Callable[[Any], object] | None = None
    ) -> AgentOutput: ...
    @property
    def name(self) -> str:
        """The name of the argument that carries it."""

    @property
    def description(self) -> str:
        """The description for the agent's model."""

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema, as a copy."""

    @property
    def type(self) -> Any:
        """The pydantic model or the type that was given in place of a schema."""

    @property
    def process(self) -> Callable[[Any], object] | None:
        """The function that turns the value into the text of the result."""

@final
class AgentPrompt:
    """The prompt of an agent for given inputs."""

    @property
    def system_prompt(self) -> str | None:
        """The system prompt, if there is one."""

    @property
    def query(self) -> str:
        """The first message of the user."""

    @property
    def initial_messages(self) -> list[dict[str, Any]]:
        """The messages before it, as a copy."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class AgentDefinition:
    """An agent as data: what the calling model sees of it, its prompt, its tools, its output and its limits.

    Args:
        name: The name of the tool that the calling model sees.
        description: The description for the calling model.
        display_name: The name for people; the name if it is None.
        inputs: A mapping of names to `AgentInput` or a dict with the same keys, a JSON Schema with `"type": "object"`,
            or a pydantic model.
        system_prompt: The system prompt, in which `${name}` stands for an input.
        query: The first message of the user, with the same placeholders; `"Get Started!"` if it is None.
        initial_messages: Messages before it, with the same placeholders.
        tools: The names of the tools that it may use.
        groups: The groups whose tools it may use.
        view: A view whose tools it may use.
        output: The value that it has to give.
        limits: The limits of one run.
        model: Its model: a name or a model function.
        lenient: Treat an input of an unknown type as a string.

    Raises:
        AgentDefinitionError: If a field is missing or invalid, or an input has an unknown type.
        InvalidSchemaError: If a JSON Schema is invalid.
    """

    def __new__(
        cls,
        name: str,
        description: str,
        *,
        display_name: str | None = None,
        inputs: Mapping[str, Any] | builtins.type | None = None,
        system_prompt: str | None = None,
        query: str | None = None,
        initial_messages: Iterable[Mapping[str, Any]] = (),
        tools: Iterable[str] = (),
        groups: Iterable[str] = (),
        view: ToolkitView | None = None,
        output: AgentOutput | None = None,
        limits: AgentLimits | None = None,
        model: Any = None,
        lenient: bool = False,
    ) -> AgentDefinition: ...
    @staticmethod
    def from_file(path: str | PathLike[str]) -> AgentDefinition:
        """Read a definition from a Markdown file: its fields as YAML front matter, and the system prompt below it.

        Raises:
            AgentFileError: If the file does not hold a valid definition.
            FileAccessError: If it cannot be read; `MissingFileError` if it does not exist.
        """

    @property
    def name(self) -> str:
        """The name of the tool that the calling model sees."""

    @property
    def description(self) -> str:
        """The description for the calling model."""

    @property
    def display_name(self) -> str:
        """The name for people."""

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs: a dict of `AgentInput`, or a JSON Schema, as a copy."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of the inputs, which the calling model sees, as a copy; its `required` is always a list."""

    @property
    def system_prompt(self) -> str | None:
        """The system prompt with its placeholders."""

    @property
    def query(self) -> str:
        """The first message of the user with its placeholders."""

    @property
    def initial_messages(self) -> list[dict[str, Any]]:
        """The messages before it with their placeholders, as a copy."""

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that it may use."""

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups whose tools it may use."""

    @property
    def view(self) -> ToolkitView | None:
        """The view whose tools it may use."""

    @property
    def output(self) -> AgentOutput | None:
        """The value that it has to give."""

    @property
    def limits(self) -> AgentLimits:
        """The limits of one run."""

    @property
    def model(self) -> Any:
        """Its model: a name or a model function."""

    @property
    def lenient(self) -> bool:
        """True if an input of an unknown type is a string."""

    def render(self, inputs: Mapping[str, Any]) -> AgentPrompt:
        """Fill in the placeholders. An input that is missing has the default in the schema, if there is one.

        Raises:
            AgentTemplateError: If an input is missing; the text names all of them.
        """

@final
class AgentFolder:
    """The definitions in a folder: every file `*.md` in it, except `README.md` and names that begin with `.` or `_`.

    Raises:
        FileAccessError: If the folder cannot be read; `MissingFileError` if it does not exist.
    """

    def __new__(cls, path: str | PathLike[str]) -> AgentFolder: ...
    @property
    def path(self) -> Path:
        """The folder."""

    @property
    def definitions(self) -> list[AgentDefinition]:
        """The valid definitions, by file name."""

    @property
    def problems(self) -> dict[str, str]:
        """The files without a valid definition, each with the reason."""

    def reload(self) -> list[str]:
        """Read the folder again.

        Returns:
            The names of the agents that are new, different or gone. A definition that has not changed stays the same
            object.

        Raises:
            FileAccessError: If the folder cannot be read; then nothing changes.
        """

@final
class Role:
    """A role: a prompt, and the groups that an agent in this role may use.

    Args:
        name: The name, unique among the roles.
        prompt: The prompt for agents in this role.
        tool_groups: The allowed groups: None for the default, an empty list for none.
        details: The other fields of its record, as JSON values.

    Raises:
        TypeError: If `tool_groups` is not a list of strings.
    """

    def __new__(
        cls,
        name: str,
        prompt: str = "",
        tool_groups: Iterable[str] | None = None,
        details: dict[str, Any] | None = None,
    ) -> Role: ...
    @property
    def name(self) -> str:
        """The name, unique among the roles."""

    @property
    def prompt(self) -> str:
        """The prompt of an agent in this role."""

    @property
    def tool_groups(self) -> list[str] | None:
        """The groups it may use: None for the default, an empty list for none."""

    @property
    def details(self) -> dict[str, Any]:
        """The other fields of its record, as a copy."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Roles:
    """Roles by name, in the order they were added.

    An unknown role sees nothing. The object may be used from several threads at once.

    Args:
        default: The groups of roles without a list; None for all.

    Raises:
        TypeError: If `default` is not a list of strings.
    """

    def __new__(cls, default: Iterable[str] | None = None) -> Roles: ...
    @property
    def default(self) -> list[str] | None:
        """The groups of roles that name none; None if they are all."""

    def add(self, role: Role) -> None:
        """Add a role; its record gets an id and the time.

        Raises:
            DuplicateRoleError: If a role of that name exists.
            SystemRoleError: If the name is `root`.
            InvalidRoleError: If the name is empty.
        """

    def get(self, name: str) -> Role | None:
        """Find a role by its exact name."""

    def update(self, name: str, *, prompt: str | None = None, tool_groups: Iterable[str] | None = ...) -> Role:
        """Change a role; views that were made for its name change with it.

        Args:
            name: The role's name.
            prompt: The new prompt for agents in this role.
            tool_groups: The new list of allowed groups: None for the default, an empty list for none.

        Returns:
            The changed role. Omitted fields stay unchanged.

        Raises:
            UnknownRoleError: If the role is unknown.
            SystemRoleError: If the name is `root`.
            TypeError: If `tool_groups` is not a list of strings.
        """

    def remove(self, name: str) -> Role:
        """Remove a role: its callers see no tools from now on.

        Returns:
            The removed role.

        Raises:
            UnknownRoleError: If the role is unknown.
            SystemRoleError: If the name is `root`.
        """

    @overload
    def save(self, path: str | PathLike[str], key: None = None) -> None: ...
    @overload
    def save(self, path: Store, key: str, *, version: int | None = None) -> Awaitable[int]:
        """Save the roles to a JSON file or a store.

        A file is replaced atomically: readers find the old roles or the new ones, also after a crash. An entry of a
        store is replaced only if it is the one that was loaded or saved last. Other content that was loaded is
        preserved.

        Args:
            path: The file, or a store.
            key: The name of the entry in the store.
            version: The version that the entry must have: 0 if there must be none. By default the one that was loaded
                or saved last.

        Returns:
            None for a file; for a store an awaitable of the new version.

        Raises:
            FileAccessError: If the operating system refuses.
            FileTooLargeError: If the file would exceed 16 MiB.
            VersionConflictError: If the entry has another version by now; its `version` is the current one.
            StoreError: If the store fails.
        """

    @overload
    def load(self, path: str | PathLike[str], key: None = None, *, strict: bool = True) -> list[str]: ...
    @overload
    def load(self, path: Store, key: str, *, strict: bool = True) -> Awaitable[list[str]]:
        """Replace all roles by those of a file or a store; views that were made for a name change with it.

        Args:
            path: The file, or a store.
            key: The name of the entry in the store.
            strict: If true, an invalid record is an error. Otherwise it is skipped, and that role sees nothing.

        Returns:
            The problems of the skipped records; for a store an awaitable of them.

        Raises:
            RoleFileError: If the file is invalid; the text names each record and field. Nothing changes.
            MissingFileError: If the file does not exist.
            FileAccessError: If the operating system refuses.
            FileTooLargeError: If the file exceeds 16 MiB.
        """

    def __contains__(self, name: object, /) -> bool: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, in the order the roles were added."""

@final
class _ToolRoster:
    """Groups of tool definitions: plain data, which is copied in and out.

    It may be used from several threads at once.
    """

    def __new__(cls) -> _ToolRoster: ...
    def register(self, id: str, definition: Any, *, reserved: bool = False) -> bool:
        """Add a group, or replace the one that has the id.

        Args:
            id: The group's id.
            definition: A dictionary with a list `tools` of definitions and an optional `description`. Of several
                definitions of one name the last is kept; those without a name are skipped.
            reserved: If true, the id can no longer be registered or unregistered.

        Returns:
            True if a group of that id existed.

        Raises:
            ReservedGroupError: If the id is reserved.
            InvalidGroupError: If the definition is invalid.
        """

    def unregister(self, id: str) -> None:
        """Remove a group.

        Raises:
            ReservedGroupRemovalError: If the group is reserved.
            UnknownGroupError: If the group is unknown.
        """

    def update(self, id: str, tools: Any) -> None:
        """Replace the tools of a group, reserved or not.

        Raises:
            UnknownGroupError: If the group is unknown.
            InvalidGroupError: If `tools` is not a list of definitions.
        """

    def reserve(self, id: str) -> None:
        """Refuse to register or unregister the id of a group from now on.

        Raises:
            UnknownGroupError: If the group is unknown.
        """

    def definitions(self, ids: Iterable[str]) -> builtins.list[dict[str, Any]]:
        """Return the definitions of these groups in the order of the ids; of several of one name the first.

        Unknown ids are skipped.
        """

    def list(self) -> builtins.list[dict[str, Any]]:
        """Describe all groups in their order.

        Returns:
            One dictionary per group with `id`, `description`, `tools` (the names), `tool_count` and `reserved`.
        """

    def get(self, id: str) -> dict[str, Any] | None:
        """Describe one group; None if it is unknown."""

    def holder(self, name: str) -> str | None:
        """Return the group to which a tool was added last."""

    def holders(self, name: str) -> builtins.list[str]:
        """Return all groups of a tool, the one to which it was added last at the end."""

    def is_in(self, name: str, ids: Iterable[str]) -> bool:
        """Return True if one of these groups holds a tool."""

    def ids(self) -> builtins.list[str]:
        """Return the ids of all groups in their order."""

    def tool_names(self) -> builtins.list[str]:
        """Return the names of all tools without repetition, in the order of the groups."""

    def is_reserved(self, id: str) -> bool:
        """Return True if an id is reserved."""

    def __contains__(self, id: object, /) -> bool: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...

@final
class ToolGroup:
    """A named set of tools that is on or off.

    The groups in `Toolkit.groups` are live: setting an attribute changes the toolkit, and setting `active` of a group
    in `Session.groups` changes that session only. A group that you create yourself belongs to no toolkit.

    Args:
        name: The name, unique in its toolkit.
        active: If true, its tools are visible and callable.
        description: The purpose of the group.
        notes: Instructions for its tools.
    """

    __hash__: None  # type: ignore[assignment]
    active: bool
    """True if its tools are listed and can be called."""
    description: str
    """The purpose of the group."""
    notes: str | None
    """Notes on the use of its tools; see `Toolkit.get_activated_notes`."""

    def __new__(cls, name: str, active: bool, description: str, notes: str | None = None) -> ToolGroup: ...
    @property
    def name(self) -> str:
        """The name, unique in its toolkit."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class ResultBudget:
    """Limit the size of results that a model reads.

    A longer result is cut by its structure: JSON stays JSON and says `"12 of 480 items"`, tables keep their header,
    logs their errors, diffs the names of files, and text its beginning and end. The note on what is missing is part of
    the budget. Only text is cut; `metadata["value"]` keeps the whole value for the program, and `metadata["budget"]`
    describes the cut.

    Of all budgets that apply to a call, those of the tool, its groups, the session and the toolkit, the smallest holds.

    Args:
        characters: The most characters.
        tokens: The most tokens. With both, both hold.
        count: A function that counts the tokens of a text. It is called several times for a result that is too long.
            Without one, tokens are estimated, rather too high than too low.
        store: The store that keeps the whole text of results that are cut, as artifacts of the session. The model reads
            them with the tool `read_artifact`.

    Raises:
        TypeError: If neither limit is given, or an argument has the wrong type.
        ValueError: If a limit is not positive.

    Example:
        toolkit.register_tool_function(search, result_budget=ResultBudget(tokens=2000, store=store))
    """

    def __new__(
        cls,
        characters: int | None = None,
        *,
        tokens: int | None = None,
        count: Callable[[str], int] | None = None,
        store: Store | None = None,
    ) -> ResultBudget: ...
    @property
    def characters(self) -> int | None:
        """The most characters; None if they are not limited."""

    @property
    def tokens(self) -> int | None:
        """The most tokens; None if they are not limited."""

    @property
    def count(self) -> Callable[[str], int] | None:
        """The function that counts the tokens of a text; None if they are estimated."""

    @property
    def store(self) -> Store | None:
        """The store that keeps the whole text of results that are cut, as artifacts."""

@disjoint_base
class ToolResponse:
    """One chunk of the result of a tool call.

    Two responses are equal if their first six fields and their modes are equal; AgentScope's has no mode.

    Args:
        content: The blocks for the model, in order.
        metadata: Data for the program, which the model does not see. `"value"` holds a tool's value that is not text,
            `"repairs"` lists the repairs of the arguments, `"budget"` describes what was cut; see `ResultBudget`.
        stream: True if the response is part of a stream of several.
        is_last: True for the last response of a call.
        is_interrupted: True if the call was cancelled.
        id: A unique text; by default the time and six random digits.
        code: The error code: `"bad_call"`, `"unknown_tool"`, `"inactive_group"`, `"invalid_arguments"`,
            `"tool_not_available"`, `"failed"`, `"interrupted"`, `"timeout"`, `"denied"`, `"pending"`,
            `"cancelled"`, `"limit_exceeded"` or `"busy"`, and for background tasks `"unknown_task"`,
            `"task_running"` or `"task_finished"`; None if the call succeeded.
        mode: The relation to the result of the call: `"progress"` is a notice for people and not part of the result,
            `"addition"` is appended to the result, `"result"` is the result so far and replaces everything before it.

    Example:
        ToolResponse([TextBlock(type="text", text="done")])
    """

    __hash__: None  # type: ignore[assignment]
    content: list[_Block]
    """The blocks for the model, in order."""
    metadata: dict[str, Any] | None
    """Data for the program, which the model does not see."""
    stream: bool
    """True if the response is part of a stream of several."""
    is_last: bool
    """True for the last response of a call."""
    is_interrupted: bool
    """True if the call was cancelled."""
    id: str
    """A unique id."""
    code: str | None
    """The code of the failure; None if the call succeeded."""
    mode: Literal["progress", "addition", "result"]
    """The relation to the result of the call: `"progress"`, `"addition"` or `"result"`."""
    exception: BaseException | None
    """The exception that the tool raised; None if it raised none.

    It is neither compared nor pickled. It keeps the frames of its traceback alive, with their variables: set it to None
    to release them.
    """

    def __new__(
        cls,
        content: Sequence[_Block],
        metadata: dict[str, Any] | None = None,
        stream: bool = False,
        is_last: bool = True,
        is_interrupted: bool = False,
        id: str | None = None,
        *,
        code: str | None = None,
        mode: Literal["progress", "addition", "result"] = "result",
    ) -> ToolResponse: ...
    def __copy__(self) -> ToolResponse:
        """Copy the response, with its exception."""

    @property
    def text(self) -> str:
        """The text of all text blocks, joined by line breaks."""

    @property
    def ok(self) -> bool:
        """True if the call succeeded: there is no code, and it was not interrupted."""

    def to_openai(self, call: ToolCall | Mapping[str, Any] | str | Dumped | None = None) -> dict[str, Any]:
        """Return the message with the role `tool` of OpenAI's chat completions, which holds text only.

        Args:
            call: The call that this response answers, in any form, or its id.

        Raises:
            TypeError: If `call` is missing, or has a type that cannot be a call.
            ValueError: If `call` has no id.
        """

    def to_openai_responses(self, call: ToolCall | Mapping[str, Any] | str | Dumped | None = None) -> dict[str, Any]:
        """Return the item that answers a call in OpenAI's responses API.

        Args:
            call: The call that this response answers, in any form, or its id.

        Raises:
            TypeError: If `call` is missing, or has a type that cannot be a call.
            ValueError: If `call` has no id.
        """

    def to_anthropic(self, call: ToolCall | Mapping[str, Any] | str | Dumped | None = None) -> dict[str, Any]:
        """Return Anthropic's `tool_result` block.

        Args:
            call: The call that this response answers, in any form, or its id.

        Raises:
            TypeError: If `call` is missing, or has a type that cannot be a call.
            ValueError: If `call` has no id.
        """

    def to_gemini(
        self, call: ToolCall | Mapping[str, Any] | str | Dumped | None = None, *, name: str | None = None
    ) -> dict[str, Any]:
        """Return Gemini's `functionResponse` part.

        Args:
            call: The call that this response answers, in any form, or its id.
            name: The tool's name, if `call` does not contain it.

        Raises:
            TypeError: If the tool's name is missing, or `call` has a type that cannot be a call.
        """

    def to_bedrock(self, call: ToolCall | Mapping[str, Any] | str | Dumped | None = None) -> dict[str, Any]:
        """Return the `toolResult` block of Amazon Bedrock's Converse, with images as bytes.

        Args:
            call: The call that this response answers, in any form, or its id.

        Raises:
            TypeError: If `call` is missing, or has a type that cannot be a call.
            ValueError: If `call` has no id.
        """

    def to_mcp(self) -> dict[str, Any]:
        """Return MCP's `CallToolResult`.

        A value in the metadata becomes `structuredContent`.
        """

    def to_xml(self, call: ToolCall | Mapping[str, Any] | object | None = None, *, name: str | None = None) -> str:
        """Write the element `tool_result` for a model that writes its calls in XML; see `format_tool_result`.

        Args:
            call: The call that this response answers, in any form.
            name: The tool's name, if `call` does not contain it.

        Raises:
            TypeError: If the tool's name is missing.
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __setstate__(self, state: dict[str, Any], /) -> None: ...

@final
class ToolCall(Mapping[str, Any]):
    """A call that a model asked for, in any format.

    It is a mapping with the keys of a `ToolUseBlock`: `call["name"]`, `dict(call)`. `read` parses the output of a
    provider or a model; a call may also be created directly.

    Args:
        name: The tool's name.
        arguments: The arguments, as JSON values.
        id: The id that the model or its provider gave the call.
        raw: The model's text, if the call came as text.
        error: The reason why the call cannot run. A toolkit answers such a call with the code `bad_call`.
        repairs: The repairs that were made to parse it.
        format: The name of its format.
        is_truncated: True if its end is missing.
        has_duplicate_keys: True if an object had a duplicate key.

    Example:
        call = ToolCall.read({"function": {"name": "add", "arguments": '{"a": 1}'}})
    """

    __hash__: None  # type: ignore[assignment]

    def __new__(
        cls,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        id: str | None = None,
        *,
        raw: str | None = None,
        error: str | None = None,
        repairs: Sequence[Mapping[str, str]] | None = None,
        format: str = "bare",
        is_truncated: bool = False,
        has_duplicate_keys: bool = False,
    ) -> ToolCall: ...
    @staticmethod
    def read(x: object, *, format: str | None = None, tools: Toolkit | ToolkitView | None = None) -> ToolCall:
        """Read the only call in an object or text.

        Invalid input gives a call with an `error`, which a toolkit answers with the code `bad_call`.

        Args:
            x: A block or call of any provider, as a dictionary, JSON text or an SDK object; or text that contains a
                call.
            format: The format, if it is known: `"anthropic"`, `"openai"`, `"openai_responses"`, `"gemini"`,
                `"bedrock"`, `"mcp"` or `"bare"`.
            tools: The toolkit or view with the tools. Values in text are parsed by their declared types; without it,
                types are guessed.

        Raises:
            TypeError: If `x` has a type that cannot be a call, or `tools` is neither a toolkit nor a view.
            ValueError: If `format` is unknown.
        """

    @staticmethod
    def read_all(x: object, *, format: str | None = None, tools: Toolkit | ToolkitView | None = None) -> list[ToolCall]:
        """Read all calls of a message, of a list of blocks, or of a whole response. Everything else in it is ignored.

        Args:
            x: As for `read`, or a list of such values.
            format: The text format, if it is known.
            tools: As for `read`.

        Raises:
            TypeError: If `x` has a type that cannot be a call, or `tools` is neither a toolkit nor a view.
        """

    @property
    def id(self) -> str | None:
        """The id that the model or its provider gave the call."""

    @property
    def name(self) -> str:
        """The tool's name."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments, as a copy."""

    @property
    def raw(self) -> str | None:
        """The text that the model wrote, if the call came as text."""

    @property
    def error(self) -> str | None:
        """The reason why the call cannot be run; None if it can."""

    @property
    def repairs(self) -> list[dict[str, str]]:
        """The repairs that were made to read it: dictionaries with `what`, `at` and `text`."""

    @property
    def format(self) -> str:
        """The name of the format."""

    @property
    def is_truncated(self) -> bool:
        """True if the end is missing, so that the arguments may be incomplete."""

    @property
    def has_duplicate_keys(self) -> bool:
        """True if an object had a key twice."""

    def to_block(self) -> ToolUseBlock:
        """Return the call as a `ToolUseBlock`."""

    def __getitem__(self, key: str, /) -> Any: ...
    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key of the block, or a default."""

    def keys(self) -> list[str]: ...  # type: ignore[override]
    def values(self) -> list[Any]: ...  # type: ignore[override]
    def items(self) -> list[tuple[str, Any]]: ...  # type: ignore[override]
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __contains__(self, key: object, /) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]: ...

@final
class ArgumentReader:
    """Parse the arguments of one call while they arrive.

    Each piece is parsed once, so the total time is linear.

    Args:
        name: The tool's name.
        id: The id of the call.

    Example:
        reader = ArgumentReader("weather")
        reader.feed('{"city": "Be')
        reader.partial  # {'city': 'Be'}
    """

    def __new__(cls, name: str = "", id: str | None = None) -> ArgumentReader: ...
    def feed(self, delta: str) -> None:
        """Add the next piece."""

    @property
    def partial(self) -> dict[str, Any]:
        """The arguments so far: complete values, and strings as far as they have arrived.

        The time is linear in the length of the text.
        """

    @property
    def text(self) -> str:
        """The text so far."""

    @property
    def is_complete(self) -> bool:
        """True if the text is one complete object. Text behind it may be more of the arguments."""

    def finish(self) -> ToolCall:
        """Parse the whole text, with repairs if it is not valid JSON.

        Returns:
            The call, with the name and the id of the reader.
        """

@final
class TextParser:
    """Parse the tool calls in a model's text while it arrives.

    Args:
        format: The format of the calls: `"xml"`, `"hermes"`, `"function"`, `"invoke"`, `"fenced"`, `"react"`, or
            `"auto"` for the format of the first call.
        tools: The toolkit or view with the tools. Values are parsed by their declared types; without it, types are
            guessed.
        compat: If true, XML is parsed as by ArtifactFlow: calls in code fences run, types are guessed, and invalid
            calls are dropped.
        fallback: If true, the compatible parser searches blocks that are not valid XML for calls.

    Raises:
        ValueError: If `format` is unknown, or if `compat` is true and `format` is neither `"auto"` nor `"xml"`.
        TypeError: If `tools` is neither a toolkit nor a view.

    Example:
        parser = TextParser(tools=toolkit)
        for piece in parser.feed(delta):
            print(piece) if isinstance(piece, str) else calls.append(piece)
    """

    def __new__(
        cls,
        format: str = "auto",
        tools: Toolkit | ToolkitView | None = None,
        *,
        compat: bool = False,
        fallback: bool = True,
    ) -> TextParser: ...
    def feed(self, text: str) -> list[str | ToolCall]:
        """Add the next piece of the message.

        Args:
            text: The next piece; it may be cut anywhere.

        Returns:
            The unambiguous part, in order: prose, and complete calls. An invalid call has an `error`.
        """

    def finish(self) -> list[str | ToolCall]:
        """End the message. The next piece begins another one.

        Returns:
            The rest. A call that is incomplete has an `error`.
        """

    @property
    def report(self) -> dict[str, Any]:
        """The format of the message, and a summary of its calls.

        The keys are `format`, `why` (the reason for the format), `at` (its line and column), `calls` (their number),
        `passed_over` (the number of quoted calls: in code, quotes, thoughts or comments), `other_formats` (the number
        of calls in another format, which were left in the text), and `stopped` (the reason why parsing ended early).
        """

def parse_tool_calls(
    text: str,
    format: str = "auto",
    tools: Toolkit | ToolkitView | None = None,
    *,
    compat: bool = False,
    fallback: bool = True,
) -> list[ToolCall]:
    """Find the tool calls in a whole text.

    Args:
        text: The model's text.
        format: The format of the calls; see `TextParser`.
        tools: The toolkit or view with the tools.
        compat: If true, XML is parsed as by ArtifactFlow.
        fallback: If true, the compatible parser searches blocks that are not valid XML for calls.

    Returns:
        The calls in order. An invalid call has an `error`.

    Raises:
        ValueError: If `format` is unknown, or if `compat` is true and `format` is neither `"auto"` nor `"xml"`.
        TypeError: If `tools` is neither a toolkit nor a view.
    """

def format_tool_result(
    name: str,
    result: ToolResponse | dict[str, Any],
    *,
    format: Literal["xml", "hermes", "function", "invoke", "fenced", "react"] = "xml",
) -> str:
    """Write the result of a call for a model without native tool calling.

    All values are shown, `0` and `False` included. The content is escaped, so that it cannot imitate a tool call, the
    end of the result, or an instruction of the program.

    Args:
        name: The tool's name.
        result: A `ToolResponse`, or a dictionary with the optional keys `success`, `data` and `error`.
        format: The format of the model's calls, which determines the format of the result.

    Raises:
        TypeError: If `result` has another type.
        ValueError: If the format is unknown.

    Example:
        text = format_tool_result("add", await toolkit.call("add", a=1, b=2))
    """

def _frame_instructions(format: str, documents: list[str]) -> str:
    """Write the instructions around the documentation of each tool."""

def _write_call(format: str, name: str, arguments: dict[str, Any]) -> str:
    """Write a call in a format."""

def _check_call(method: str, name: object, misplaced: Sequence[object]) -> None:
    """Raise an exception if the arguments of `run` are not a name, and arguments by keyword."""

def _nesting() -> int:
    """Return the number of calls that wait for the synchronous code of this thread: 0 outside of tools.

    Raises:
        RecursionError: If there are too many.
    """

def _call_nested(depth: int, function: Callable[[], _T]) -> _T:
    """Call a function in a thread that other calls wait for."""

def _call_held(function: Callable[[], _T]) -> _T:
    """Call a function that waits for another call: the worker thread that calls it does not count as an active one."""

def _keep_for_ever(object: object) -> None:
    """Keep an object for ever, also while the interpreter ends."""

def _read_toml(text: str) -> dict[str, Any]:
    """Parse TOML text; Python 3.10 has no parser of its own."""

def _name_list(parameter: str, names: str | Iterable[str]) -> list[str]:
    """Return a list of names, given as any iterable of strings. A single string is one name."""

def _did_you_mean(word: str, known: list[str]) -> str:
    """Return `: did you mean ...?` for an unknown word, or an empty string."""

def _as_response(*value: object) -> ToolResponse:
    """Convert the result of a tool to a response, as a stream does; without an argument the response is empty."""

@final
class _DialectTool:
    """A tool in the dialect of a provider; `Toolkit.schemas` makes them."""

    @property
    def name(self) -> str:
        """The name of the tool in the dialect."""

    @property
    def tool_name(self) -> str:
        """The name of the tool in its toolkit."""

    @property
    def report(self) -> list[tuple[str, str, str]]:
        """The losses of the dialect: the path, the keyword, and its replacement."""

    def decode(self, arguments: dict[str, Any] | str) -> dict[str, Any]:
        """Decode arguments that a model sent to the shape that the tool expects.

        Args:
            arguments: A dict, or its JSON text.

        Raises:
            UnreadableArgumentsError: If they cannot be decoded.
        """

    def encode(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Encode arguments of the tool to the shape in which a model sends them.

        Args:
            arguments: The tool's arguments, as JSON values.
        """

@final
class _ArgumentParser:
    """Parses arguments. Valid JSON that fits the schema is left as it is; anything else goes to the other parser."""

    def __new__(
        cls,
        scan: Callable[[str, int], tuple[Any, int]],
        required: list[str],
        types: dict[str, type],
        checks: dict[str, Callable[[Any], bool]],
        repair: Callable[[str], dict[str, Any]],
    ) -> _ArgumentParser: ...
    def __call__(self, text: str) -> dict[str, Any]:
        """Parse arguments.

        Args:
            text: The JSON text.
        """

@final
class _ResponseModels:
    """The models of another library: for a block of text, a chunk and the result of a call."""

    def __new__(
        cls, text: Any, chunk: Any, response: Any, new_id: tuple[Any, str], now: tuple[Any, str]
    ) -> _ResponseModels: ...
    def renew_ids(self) -> None:
        """Begin with other ids, in a forked process."""

    def id(self) -> Any:
        """Make an id."""

    def text(self, text: str) -> Any:
        """Make a block of text."""

    def chunk(self, content: list[Any]) -> Any:
        """Make a chunk of blocks, of a call that goes on."""

    def response(self, id: Any, content: list[Any]) -> Any:
        """Make the response of a call that has succeeded."""

@final
class _ModelCalls:
    """The calls of one tool in these models."""

    def __new__(
        cls,
        models: _ResponseModels,
        name: str,
        parse: Callable[[str], dict[str, Any]],
        take_state: Callable[[Any], object] | None,
        in_their_words: bool,
        take_over: Callable[..., AsyncGenerator[Any]],
    ) -> _ModelCalls:
        """Make the calls of a tool.

        Args:
            models: The models.
            name: The name of the tool.
            parse: Parses the arguments.
            take_state: Called with the state of the agent before that.
            in_their_words: True to describe exceptions as the other library does.
            take_over: Makes the object that takes a call over if it is not a plain one.
        """

    def begin(self, view: ToolkitView, call: Any, state: Any) -> _ModelStream:
        """Begin a call. Its arguments are parsed at the first step.

        Args:
            view: The toolkit, view or session to call through.
            call: The other library's block of the call. Rules were suggested to a user who has approved it.
            state: The state of the agent.
        """

@final
class _ModelStream(AsyncGenerator[Any]):
    """The chunks of a call, and then its result, with the interface of an async generator."""

    def __aiter__(self) -> _ModelStream: ...
    def __anext__(self) -> Coroutine[Any, Any, Any]: ...
    def __await__(self) -> _ModelStream: ...
    def __iter__(self) -> _ModelStream: ...
    def __next__(self) -> Any: ...
    def send(self, _value: Any) -> Any:
        """Resume the step that is awaited."""

    def throw(self, *exception: Any) -> Any:
        """Raise an exception in the step that is awaited."""

    def close(self) -> None:
        """Close the step that is awaited."""

    def asend(self, _value: Any) -> Coroutine[Any, Any, Any]:
        """Do as `__anext__`."""

    def athrow(self, *exception: Any) -> Coroutine[Any, Any, Any]:
        """Close the tool, and raise the exception."""

    def aclose(self) -> Coroutine[Any, Any, None]:
        """Close the tool."""

@final
class _TaskBoard:
    """The background tasks of a toolkit, and the outcomes of those that have finished.

    A task is an `asyncio.Task`; an outcome is a response or an exception.
    """

    def start(self, task_id: str, task: Task[ToolResponse]) -> None:
        """Record a running task."""

    def finish(self, task_id: str, outcome: ToolResponse | Exception) -> None:
        """Record the outcome of a task. That of a cancelled task is kept only in AgentScope's place."""

    def forget(self, task_id: str) -> None:
        """Remove a task that has ended without an outcome."""

    def lose(self, task_id: str) -> None:
        """Record that a task will never end, because its event loop is closed."""

    def fetch(self, task_id: str) -> ToolResponse | Exception:
        """Remove and return the outcome of a task, or a response that explains why there is none."""

    def cancel(self, task_id: str) -> tuple[Task[ToolResponse] | None, ToolResponse]:
        """Return the task to cancel, if there is one, and the response to the request."""

    @staticmethod
    def still_running(task_id: str, seconds: str) -> ToolResponse:
        """The response to a wait that timed out."""

    @staticmethod
    def cancelled(task_id: str) -> ToolResponse:
        """The response to a wait whose task was cancelled."""

    def task(self, task_id: str) -> Task[ToolResponse] | None:
        """Find a running task."""

    def tasks(self) -> dict[str, Task[ToolResponse]]:
        """List the running tasks."""

    def leaving(self) -> dict[str, Task[ToolResponse]]:
        """List the cancelled tasks that have not ended yet."""

    def outcome(self, task_id: str) -> ToolResponse | None:
        """Return an outcome that was not fetched yet, and keep it."""

    def outcomes(self) -> dict[str, ToolResponse]:
        """List the outcomes that were not fetched yet."""

    def limit(self, count: int, age: float) -> None:
        """Set the number of outcomes to keep, and the number of seconds."""

@final
class Store:
    """Keep data in a database: SQLite in a file, or PostgreSQL for several machines.

    Toolkits, sessions, roles, approvals, saved answers, the audit log and artifacts are kept in it. Each value has a
    version, and a writer that has not seen the current one is refused. A store has one connection and one thread of its
    own: operations never block the event loop, and what is written at the same time is committed together. It may be
    shared by threads and event loops, and used on in a forked process.

    A store is a context manager, synchronous and asynchronous, which closes it.

    Example:
        async with Store.open("sqlite:crib.db") as store:
            await session.save(store)
    """

    @staticmethod
    def open(url: str, *, timeout: float = 30) -> Store:
        """Open a store, and create its file and tables if they do not exist.

        Args:
            url: `"sqlite:crib.db"`, `"sqlite::memory:"`, or `"postgresql://user:password@host:port/database"`.
            timeout: The number of seconds within which an operation has to be done. After that a `StoreError` is
                raised, and a call that waits for its audit record is denied.

        Raises:
            InvalidStoreError: If the URL is invalid.
            StoreError: If the database cannot be opened, or the server does not answer.
            FileAccessError: If the operating system refuses, with the fields of an `OSError`.
            ForeignFileError: If the file is not a SQLite database.
            NewerFileError: If a newer version of toolcrib made the tables.
        """

    @property
    def url(self) -> str:
        """The URL, without the password."""

    @property
    def timeout(self) -> float:
        """The number of seconds within which an operation has to be done."""

    @property
    def closed(self) -> bool:
        """True after `close`."""

    def close(self) -> None:
        """Close the connection, after the operations that have begun."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_error: object) -> None: ...
    def __aenter__(self) -> Awaitable[Self]: ...
    def __aexit__(self, *_error: object) -> Awaitable[None]: ...
    def get(self, space: str, key: str) -> Awaitable[tuple[Any, int] | None]:
        """Read a value.

        Args:
            space: The name of a set of keys, of your own choice.
            key: The key.

        Returns:
            The value and its version; None if there is none.
        """

    def put(self, space: str, key: str, value: Any, *, version: int | None) -> Awaitable[int]:
        """Write a value, if its version is the expected one.

        Args:
            space: The name of a set of keys, of your own choice.
            key: The key.
            value: A JSON value.
            version: The version that you have read: 0 if there was no value, None to replace any version.

        Returns:
            The new version.

        Raises:
            VersionConflictError: If the value has another version by now; its `version` is the current one.
        """

    def delete(self, space: str, key: str, *, version: int | None) -> Awaitable[bool]:
        """Remove a value, if its version is the expected one.

        Args:
            space: The name of a set of keys.
            key: The key.
            version: The version that you have read; None to remove any version.

        Returns:
            True if there was a value.

        Raises:
            VersionConflictError: If the value has another version by now.
        """

    def keys(self, space: str) -> Awaitable[list[str]]:
        """List the keys of a space, sorted."""

    def audit(self, *, after: int = 0, limit: int = 1000) -> Awaitable[list[tuple[int, dict[str, Any]]]]:
        """Read the audit log, oldest record first.

        Args:
            after: The number of the record to begin after.
            limit: The most records to read.

        Returns:
            Pairs of a record's number and the record.
        """

    def limit_results(self, *, count: int = 10000, bytes: int = 268435456, age: float = 604800.0) -> None:
        """Limit the whole texts of results that are kept because a `ResultBudget` has cut them.

        The oldest are removed for new ones, except those that were edited. Each process sets its own limits.

        Args:
            count: The most results.
            bytes: The most bytes of their texts together.
            age: The number of seconds for which a result is kept.

        Raises:
            ValueError: If `age` is not a number that is at least zero.
        """

    def claim(self, key: str, expires: float) -> bool:
        """Claim a key, as `Approvals` does for an answered call.

        This blocks until the claim is durable.

        Args:
            key: The key.
            expires: The time in seconds since 1970 from which the key may be forgotten.

        Returns:
            True for the first claim of this key by any process, False for all others.
        """

@final
class Approvals:
    """Issue pending calls, and accept one answer to each.

    It may be shared by toolkits and threads. Two objects on one folder, in one process or in several, are equivalent.

    Args:
        path: The folder of the signing key and the answers, so that pending calls survive a restart. It is created if
            its parent exists. None keeps everything in memory, for this process only.
        ttl: Seconds after which a pending call expires.
        store: A database in place of the folder, for several processes or machines: a `Store`, which also keeps the
            pending calls and the signing key; or any object with a method `claim(key, expires)`, which returns True for
            the first claim of a key by any process and False for all others. The key may be forgotten at `expires`, in
            seconds since 1970.
        key: With a store, the secret that signs pending calls: at least 32 bytes, the same in all processes. A `Store`
            has one of its own.

    Raises:
        TypeError: If `store` has no method `claim`, or `path`, `store` and `key` do not go together.
        ValueError: If `ttl` is not positive, or `key` is too short.
        FileAccessError: If the operating system refuses.
        DamagedFileError: If the key in the folder is invalid.
    """

    def __new__(
        cls,
        path: str | PathLike[str] | None = None,
        ttl: float = 3600,
        *,
        store: ApprovalStore | None = None,
        key: bytes | None = None,
    ) -> Approvals: ...
    @property
    def path(self) -> Path | None:
        """The folder that keeps pending calls across restarts; None if they are kept in memory."""

    @property
    def ttl(self) -> float:
        """The number of seconds for which a pending call can be answered."""

    @property
    def store(self) -> ApprovalStore | None:
        """The store that records the answered calls; None if they are recorded in memory or in a folder."""

    def pending(self) -> Awaitable[list[dict[str, Any]]]:
        """List the calls that wait for an answer, oldest first.

        Only a `Store` keeps them; all processes on it see the same list. Pass one of them to `Toolkit.resume`.

        Returns:
            The pending values, as in `metadata["pending"]`.

        Raises:
            TypeError: If the approvals are not in a `Store`.
            StoreError: If the store fails.
        """

@disjoint_base
class Policy:
    """Rules that allow or deny calls or ask the approver, and the default decision.

    The first rule that matches decides. Rules are tried by tier, then by priority; among equal rules `deny` goes first,
    then `ask`. If no rule matches, the stricter of the tool's own permission (`"confirm"` asks) and the default
    applies. A policy may be shared by toolkits and threads, and changed at any time.

    Args:
        rules: `Rule` objects, or dictionaries of their fields.
        default: The decision if no rule matches: `"allow"`, `"ask"` or `"deny"`.
        shadow: If true, the policy only records its decisions; see `shadowed`.

    Raises:
        ValueError: If `default` is not a decision.
        InvalidRuleError: If a rule is invalid.
        DuplicateRuleError: If two rules have the same id.

    Example:
        Policy([Rule("deny", tool="shell_*"), Rule("ask", kind=["edit", "delete"])], default="allow")
    """

    default: Literal["allow", "ask", "deny"]
    """The decision if no rule matches: `"allow"`, `"ask"` or `"deny"`."""
    shadow: bool
    """True if the policy only records its decisions; a tool with `permission="confirm"` still asks."""

    def __new__(
        cls,
        rules: Iterable[Rule | Mapping[str, Any]] | None = (),
        default: Literal["allow", "ask", "deny"] = "allow",
        *,
        shadow: bool = False,
    ) -> Policy: ...
    @staticmethod
    def from_files(
        *,
        default: str | PathLike[str] | None = None,
        project: str | PathLike[str] | None = None,
        user: str | PathLike[str] | None = None,
        admin: str | PathLike[str] | None = None,
        otherwise: Literal["allow", "ask", "deny"] = "allow",
        optional: bool = False,
    ) -> Policy:
        """Read rules from TOML files.

        `problems` lists the errors in their content. An invalid file never allows more than a valid one.

        Args:
            default: The rules of the program.
            project: The rules of the project.
            user: The rules of the user; answers `"always"` are saved here.
            admin: The rules of the machine, which go first.
            otherwise: The decision if no rule matches.
            optional: If true, files may be missing.

        Raises:
            MissingFileError: If a file does not exist and is not optional.
            FileAccessError: If the operating system does not let a file be read.
            ValueError: If `otherwise` is not a decision.
        """

    def use_store(self, store: Store) -> None:
        """Add the saved answers of a store, and save answers `"always"` in it from now on.

        If a file of the user's rules is loaded, answers are saved there instead.

        Raises:
            StoreError: If the store fails; then nothing changes.
            DamagedFileError: If the store has an invalid answer.
        """

    def reload(self) -> bool:
        """Read the files again; if one of them has an error, the rules stay as they are.

        Returns:
            True if the files were loaded; otherwise `problems` has the reasons.
        """

    def add(self, rule: Rule | Mapping[str, Any]) -> str:
        """Add a rule.

        Args:
            rule: A `Rule`, or a dictionary of its fields.

        Returns:
            Its id, which is generated if it has none.

        Raises:
            InvalidRuleError: If the rule is invalid; nothing changes.
            DuplicateRuleError: If another rule has its id; nothing changes.
        """

    def remove(self, id: str) -> bool:
        """Remove a rule; false if no rule has the id."""

    @property
    def rules(self) -> list[dict[str, Any]]:
        """The rules in the order in which they are evaluated, as dictionaries of their fields."""

    @property
    def problems(self) -> list[str]:
        """The errors in the files, each as a text with its file, rule and reason."""

    @property
    def shadowed(self) -> list[dict[str, Any]]:
        """The last thousand decisions that would have been different without shadow mode."""

    def check(self, toolkit: Toolkit) -> list[str]:
        """Find rules that never match a tool of a toolkit, because a name or a value in them is misspelt.

        These are the errors in the files (see `problems`), names of tools, servers, groups, tags and arguments that no
        tool has, and values that are not written as rules see them. Register all tools before.

        Args:
            toolkit: The toolkit that the policy is for.

        Returns:
            The problems, each as a text with its rule, field and reason; an empty list if there are none.
        """

    def explain(self, call: object, *, toolkit: Toolkit | None = None, caller: str | None = None) -> Explanation:
        """Evaluate every rule for a call, and explain which one decides.

        It does not check that the tool exists; `Toolkit.check` does.

        Args:
            call: The request, in any form that `ToolCall.read` accepts.
            toolkit: The toolkit of the tool: its groups, tags, kind and permission are used, and secrets are redacted.
            caller: The caller.

        Raises:
            ValueError: If `call` is not a valid call.
        """

@final
class Explanation:
    """The decision about a call, with the evaluation of each rule."""

    @property
    def decision(self) -> Literal["allow", "ask", "deny"]:
        """The decision: `"allow"`, `"ask"` or `"deny"`."""

    @property
    def rule(self) -> str | None:
        """The id of the rule that decides; None if the tool's own permission or the default does."""

    @property
    def reason(self) -> str:
        """The reason, as text."""

    @property
    def shadowed(self) -> Literal["allow", "ask", "deny"] | None:
        """The decision without shadow mode; None if it is the same."""

    @property
    def tried(self) -> list[dict[str, Any]]:
        """Every rule in the order of evaluation, with its outcome."""

@final
class _McpServer(Awaitable[_ServedCall | int | str]):
    """A server, and the async iterator of its calls. Dropping it ends the server."""

    def __new__(
        cls,
        tools: Toolkit | ToolkitView,
        name: str,
        version: str | None,
        title: str | None,
        instructions: str | None,
        deps: object,
    ) -> _McpServer: ...
    def serve_stdio(self) -> None:
        """Serve one client on standard input and output, as they are now."""

    def serve_http(
        self,
        host: str,
        port: int,
        path: str,
        token: str | None,
        allowed_hosts: Sequence[str],
        allowed_origins: Sequence[str],
        max_sessions: int,
        max_connections: int,
        session_timeout: float,
    ) -> None:
        """Serve clients over HTTP. The first item of the iterator is the address."""

    def stop(self) -> None:
        """End the server: the iterator ends when all calls are cancelled and all connections are closed."""

    def __aiter__(self) -> _McpServer: ...
    def __anext__(self) -> _McpServer: ...
    def __await__(self) -> Generator[Any, None, _ServedCall | int | str]: ...
    def __iter__(self) -> Generator[Any, None, _ServedCall | int | str]: ...
    def __next__(self) -> Any: ...

@final
class _ServedCall:
    """A call of a client."""

    @property
    def number(self) -> int:
        """The number by which it is cancelled."""
    @property
    def tools(self) -> ToolkitView:
        """The session that is called; the toolkit or view if all clients share one."""
    @property
    def request(self) -> dict[str, Any]:
        """The request, as a tool use block."""
    @property
    def can_ask(self) -> bool:
        """True if the client shows forms to its user."""
    @property
    def can_sample(self) -> bool:
        """True if the client has a model that answers requests."""
    @property
    def can_log(self) -> bool:
        """True if the client may want log messages."""
    def enter_trace(self) -> None:
        """Make the span that the client sent the parent of the spans of the running task."""

    def wants_log(self, level: int) -> bool:
        """True if the client wants log messages of a level of Python's `logging` at present."""

    def log(self, level: int, text: str) -> None:
        """Send a log message to the client, if it wants it."""

    def send(self, response: ToolResponse) -> Awaitable[None] | None:
        """Send a response to the client. Return an awaitable if the client is slow, and None otherwise."""

    def end(self) -> None:
        """End the call: the last response is its result."""

    def ask(self, text: str, schema: Mapping[str, Any]) -> Awaitable[Any]:
        """Ask the user of the client. Return an awaitable of the answer.

        Raises:
            NoAskerError: If the client cannot ask such a question; when it is awaited.
            UnansweredError: If there is no answer; when it is awaited.
        """

    def sample(self, request: Mapping[str, Any]) -> Awaitable[Any]:
        """Ask the model of the client. Return an awaitable of the `CreateMessageResult`.

        Raises:
            NoAskerError: If the client has no model; when it is awaited.
            UnansweredError: If there is no answer; when it is awaited.
        """

@final
class _Completion:
    """The last item of a finish function: makes the last response out of the whole result."""

    def __new__(cls, function: Callable[[ToolResponse], object]) -> _Completion: ...

@final
class _AwaitableJob(Awaitable[Any]):
    """One call in a worker thread, to be awaited once. Dropping it abandons the call."""

    def __new__(cls, function: Callable[[Any], Any], argument: object) -> _AwaitableJob: ...
    def __await__(self) -> Generator[Any, None, Any]: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...

@final
class _NativeFuture(Awaitable[Any]):
    """The awaitable of a future, which has started. Cancelling the task that awaits it drops the future."""

    def __await__(self) -> Generator[Any, None, Any]: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def send(self, _value: Any) -> Any:
        """Resume; the value is ignored."""

    def throw(self, error: Any, value: Any = None, traceback: Any = None) -> Any:
        """Abandon it, and raise an exception such as a cancellation.

        `throw(class, value, traceback)` is accepted as generators do.
        """

    def close(self) -> None:
        """Abandon it."""

@final
class _Reply:
    """The receiver of an answer; only the first is taken."""

    def answer(self, value: Any) -> None:
        """Give the answer, a JSON value."""

    def decline(self) -> None:
        """Report that the user declined to answer."""

    def fail(self, reason: str) -> None:
        """Report that there is no answer because of a failure."""

@final
class _McpClient:
    """The client of one MCP server."""

    def __new__(
        cls,
        name: str,
        target: str | dict[str, Any],
        *,
        headers: list[tuple[str, str]],
        token: str | None,
        ca: str | None,
        env: list[tuple[str, str]],
        cwd: str | None,
        encoding_errors: str,
        connect_timeout: float,
        call_timeout: float,
        max_requests: int,
        sampler: Callable[[Any], Any] | None,
        stateless: bool,
        allow_private_addresses: bool,
    ) -> _McpClient: ...
    @property
    def is_connected(self) -> bool:
        """True if tools can be listed and called."""
    @property
    def is_open(self) -> bool:
        """True from `connect` to `close`."""
    @property
    def server_info(self) -> dict[str, Any] | None:
        """The facts that the server stated about itself."""
    @property
    def stray_messages(self) -> int:
        """The number of messages of the server that were dropped."""
    @property
    def digests(self) -> dict[str, str]:
        """The tools of the last list by name, each with its digest."""
    @property
    def skipped(self) -> list[tuple[str | None, int, str]]:
        """The tools of the last list that were skipped: the name, the position in the list, and the reason of each."""
    def connect(self) -> _NativeFuture:
        """Connect; the result is awaited."""

    def close(self) -> _NativeFuture:
        """Close the connection; the result is awaited."""

    def list_tools(self) -> _NativeFuture:
        """List the tools: the fields of each, and the tools that were skipped with the reasons. To be awaited."""

    def list_names(self) -> _NativeFuture:
        """List the tools: the name of each, and the tools that were skipped with the reasons. To be awaited."""

    def flags(self, names: Sequence[str], others: Sequence[str]) -> _NativeFuture:
        """Find suspicious definitions among tools of the last list; see `_mcp_flags`."""

    def tool(self, name: str, *, wrap_tool_result: bool, timeout: float | None) -> NativeTool | None:
        """A tool of the last list; None if it is not there."""

    def watch(self, callback: Callable[[], Any]) -> _McpWatch:
        """Call a function on the running event loop whenever the list of tools has changed."""

@final
class _McpWatch:
    """A function that an event loop calls whenever a counter goes up, until the loop ends or the watch is closed."""

    def _changed(self, _waiter: Any) -> None:
        """Called by the event loop when there may be news."""

    def close(self) -> None:
        """End the notifications."""

def _mcp_target_name(target: str | dict[str, Any]) -> str:
    """The name of a client that is given none: the host of a URL, or the program."""

def _mcp_tool_name(server: str, namespace: str | None, name: str, taken: Any) -> str:
    """The name under which a tool of a server is registered: valid for every provider, and not among the `taken`."""

def _mcp_redefined(client: str) -> str:
    """The reason of the quarantine of a tool whose server has changed its definition."""

def _mcp_definition(tool: dict[str, Any]) -> tuple[Any, ...]:
    """The fields of a tool as a server lists it, in the order of `toolcrib.mcp.McpTool`."""

def _mcp_flags(tools: list[dict[str, Any]], others: list[str]) -> _NativeFuture:
    """Find suspicious definitions. The result, a list of `DefinitionFlag`, is awaited.

    Each tool is compared with all others, which takes long for many, and so the event loop does not wait for it.
    """

def _mcp_response(client: str, result: dict[str, Any], tool: dict[str, Any]) -> ToolResponse:
    """The response for a `CallToolResult` of a tool."""

@final
class _DeclaredSchema:
    """The compiled JSON Schema of a declared tool's parameters."""

    def __new__(cls, parameters: Any) -> _DeclaredSchema: ...
    @property
    def schema(self) -> dict[str, Any]:
        """The schema, as a copy."""

    def problem(self, params: object) -> str | None:
        """Describe the first problem of parameters; None if they fit."""

@final
class _Permissions:
    """Settings that a toolkit shares with its tools: permissions, error formatter and result budgets; and its listeners."""  # noqa: E501 # the words of the class

    def __new__(cls) -> _Permissions: ...
    def listen(self, types: Sequence[str] | None, size: int) -> _EventQueue:
        """Open a queue for events of these types, or of all types."""

    def subscribe(self, type: str, handler: Callable[[Event], Any]) -> int:
        """Call a function with each event of a type; return the number to unsubscribe it by."""

    def unsubscribe(self, number: int) -> bool:
        """Unsubscribe a function; return False if that was done before."""

@final
class Event:
    """An event of a call."""

    @property
    def type(self) -> Literal["call_start", "chunk", "permission_request", "permission_result", "call_end", "error"]:
        """The type of event."""

    @property
    def call_id(self) -> str:
        """The id of the call, from the model or generated."""

    @property
    def tool(self) -> str | None:
        """The name of the tool; None if the request has none."""

    @property
    def caller(self) -> str | None:
        """The caller of the view that was called."""

    @property
    def session(self) -> str | None:
        """The id of the session that was called."""

    @property
    def path(self) -> tuple[str, ...]:
        """The names of the agents that called each other until the call, from the outermost one."""

    @property
    def time(self) -> float:
        """The time of the event, in seconds since 1970."""

    @property
    def data(self) -> dict[str, Any]:
        """The details, by their names.

        `call_start` has `arguments` as the model sent them, with secrets redacted, and `resumed`, which is true for a
        resumed call. `chunk` has the `response`. `permission_request` has `arguments`, `rule`, `reason`, `kind` and, if
        the call is pending, its id in `pending`. `permission_result` has `decision`, `answer`, `rule`, `reason` and
        `by`. `error` has `error` and `message`. `call_end` has `outcome`, `code`, `chunks` and `seconds`.
        """

@final
class _EventQueue:
    """The queue of one listener, for `toolcrib.events` to wait on."""

    @property
    def dropped(self) -> int:
        """The number of unread events that were dropped for newer ones."""

    @property
    def is_closed(self) -> bool:
        """True if no more events will come."""

    def take(self) -> Event | None:
        """Remove and return the oldest event, if there is one."""

    def wake(self, waker: Callable[[], object]) -> None:
        """Call a function once, when the next event comes or the queue is closed; at once if either has happened."""

    def forget(self, waker: Callable[[], object]) -> None:
        """Remove a function that was passed to `wake` and was not called yet."""

    def close(self) -> None:
        """Stop listening."""

@final
class ToolStream(AsyncGenerator[ToolResponse, Any], Awaitable["ToolStream"]):
    """The responses of one tool call, as they come.

    Awaiting it returns the stream itself and runs nothing; iterating it with `async for` runs the call. It has the
    interface of an async generator. A consumer that stops early closes it with `aclose` or by dropping it, and the
    tool's generator is finalised at once.
    """

    @property
    def __name__(self) -> str:
        """The name of the tool that is called."""

    @property
    def __qualname__(self) -> str:
        """The name of the tool that is called."""

    def __await__(self) -> Generator[Any, None, ToolStream]:
        """Give the stream itself."""

    def __aiter__(self) -> ToolStream: ...
    def __anext__(self) -> Coroutine[Any, Any, ToolResponse]: ...
    # A plain `for` and `next` raise a TypeError. The slots exist for `await`, and no object has the type `Never`.
    def __iter__(self: Never) -> Never: ...  # type: ignore[misc]
    def __next__(self: Never) -> Never: ...  # type: ignore[misc]
    def asend(self, value: Any, /) -> Coroutine[Any, Any, ToolResponse]:
        """Send a value into the tool's generator and get the next response."""

    @overload
    def athrow(
        self,
        typ: type[BaseException],
        val: BaseException | object = None,
        tb: TracebackType | None = None,
        /,
    ) -> Coroutine[Any, Any, ToolResponse]: ...
    @overload
    def athrow(
        self,
        typ: BaseException,
        val: None = None,
        tb: TracebackType | None = None,
        /,
    ) -> Coroutine[Any, Any, ToolResponse]:
        """Raise an exception in the tool's generator and get the next response."""

    def aclose(self) -> Coroutine[Any, Any, None]:
        """End the call and finalise the tool's generator."""

    def send(self, value: Any, /) -> Any:
        """Go on until the next response or the next wait."""

    @overload
    def throw(
        self,
        typ: type[BaseException],
        val: BaseException | object = None,
        tb: TracebackType | None = None,
        /,
    ) -> Any: ...
    @overload
    def throw(self, typ: BaseException, val: None = None, tb: TracebackType | None = None, /) -> Any:
        """Raise an exception where the call waits."""

    def close(self) -> None:
        """Give the call up from synchronous code."""

def _configure_tracing(
    enabled: bool,
    tracer_provider: Any | None,
    record_arguments: bool,
    record_results: bool,
    limit: int,
) -> None:
    """Configure tracing; see `toolcrib.tracing.configure`."""

def _resolve() -> None:
    """Resolve the objects of the package, once it is imported."""

@final
class LockReport:
    """The comparison of a toolkit with its lock file."""

    @property
    def ok(self) -> bool:
        """True if every change is of the allowed classes."""

    @property
    def changes(self) -> tuple[LockChange, ...]:
        """The tools that differ, sorted by name."""

    @property
    def flags(self) -> tuple[DefinitionFlag, ...]:
        """Warnings about the definitions of all tools, for a reviewer."""

    @property
    def quarantined(self) -> tuple[str, ...]:
        """The names of the tools that `verify` has quarantined."""

@final
class LockChange:
    """A tool that differs from the reviewed one."""

    @property
    def tool(self) -> str:
        """The name of the tool."""

    @property
    def source(self) -> str:
        """The source of the tool: `"local"` or `"mcp:<client>"`."""

    @property
    def classes(self) -> tuple[_ChangeClass, ...]:
        """The classes of the change, the most serious first."""

    @property
    def differences(self) -> tuple[LockDifference, ...]:
        """The differences; none for a tool that was added or removed."""

@final
class LockDifference:
    """A place at which the definition of a tool differs from the reviewed one."""

    @property
    def path(self) -> str:
        """The place, as a JSON pointer into the definition, such as `/inputSchema/properties/to/type`."""

    @property
    def change_class(self) -> _ChangeClass:
        """The class of this difference alone."""

    @property
    def before(self) -> Any:
        """The reviewed value; None if there was none."""

    @property
    def after(self) -> Any:
        """The present value; None if there is none."""

@final
class DefinitionFlag:
    """A warning about the definition of a tool, for its reviewer."""

    @property
    def tool(self) -> str:
        """The name of the tool."""

    @property
    def kind(
        self,
    ) -> Literal[
        "hidden_characters",
        "bidi_controls",
        "tag_characters",
        "look_alike_name",
        "mixed_scripts",
        "other_tool",
        "instructions",
        "sensitive_data",
        "conversation_content",
        "long_text",
        "remote_reference",
        "contradicting_hints",
    ]:
        """The kind of the warning."""

    @property
    def path(self) -> str:
        """The place, as a JSON pointer into the definition."""

    @property
    def evidence(self) -> str:
        """The text that the warning is about, with invisible characters escaped."""
