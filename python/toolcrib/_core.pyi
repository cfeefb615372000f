"""The compiled core: what it offers to Python, described for editors and type checkers.

Import these names from `toolcrib`; the `Toolkit` there adds `tools`, `groups`, `skills`, `tool`, `run` and the tasks in
the background to the one here.
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
from types import TracebackType
from typing import Any, Literal, TypeAlias, final, overload

from _typeshed import SupportsWrite
from typing_extensions import disjoint_base

from toolcrib._provider import Dumped
from toolcrib.blocks import AudioBlock, ImageBlock, TextBlock, ToolUseBlock, VideoBlock
from toolcrib.dialects import DialectSchemas
from toolcrib.middleware import Middleware
from toolcrib.policy import Approval, ApprovalRequest, Rule
from toolcrib.skill import AgentSkill

__all__ = [
    "Approvals",
    "ArgumentReader",
    "Event",
    "Explanation",
    "NativeTool",
    "Policy",
    "RegisteredToolFunction",
    "Role",
    "Roles",
    "TextParser",
    "ToolCall",
    "ToolGroup",
    "ToolResponse",
    "ToolStream",
    "Toolkit",
    "ToolkitView",
    "format_tool_result",
    "parse_tool_calls",
]

_Dialect: TypeAlias = Literal[
    "openai", "openai_strict", "openai_responses", "openai_responses_strict", "anthropic", "gemini", "mcp"
]
_Block: TypeAlias = TextBlock | ImageBlock | AudioBlock | VideoBlock
_Answer: TypeAlias = Literal["once", "run", "always", "no", "cancel"] | bool
_Approver: TypeAlias = Callable[[ApprovalRequest], Any]
_AuditSink: TypeAlias = str | PathLike[str] | Callable[[dict[str, Any]], object] | SupportsWrite[str]
_Kind: TypeAlias = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"]

@disjoint_base
class Toolkit:
    """Keep tools, describe them to a model, and call them.

    A toolkit may be used from several threads and event loops at once. It is always true, even if it is empty.

    Args:
        agent_skill_instruction: The text before the skills in `get_agent_skill_prompt`; a default if it is empty.
        agent_skill_template: The text of each skill there: `{name}`, `{description}` and `{dir}` are replaced, `{{` and
            `}}` are braces. A default if it is empty.
        arguments: The handling of arguments before a tool runs: `"coerce"` converts them to their declared types and
            checks them, `"check"` only checks them, `"pass"` passes them on. A name that is not in the schema is always
            refused.
        errors: The handling of a tool's exception: `"respond"` makes it a response, `"raise"` raises it, `"compat"`
            does as AgentScope: a function's error becomes a response, a generator's is raised.
        run_in: The place where synchronous tools run: `"thread"`, or `"inline"` on the event loop.
        repair: The handling of arguments that are not valid JSON or do not fit the schema: `"on"` repairs them and
            lists the repairs in the response's metadata, `"explain"` responds with the repairs that would be needed,
            `"off"` repairs nothing. Has no effect if `arguments` is `"pass"`.
        policy: The policy that decides about every call.
        approver: The function that approves calls: called with an `ApprovalRequest`, in a worker thread unless it is a
            coroutine function, it returns `"once"`, `"run"`, `"always"`, `"no"` or `"cancel"`, a boolean, or an
            `Approval`. Without one, a call that needs approval ends with a pending value; see `resume`.
        approver_timeout: The seconds after which a missing answer denies the call; None to wait without limit.
        headless: Deny calls that need approval at once.
        approvals: The store of pending calls, each of which can be answered once; in memory if it is None.
        audit: The sink to which every decision is written before it takes effect: the path of a file, which is appended
            to durably, a function that is called with a dictionary, or an object whose `write` is called with a line. A
            call whose decision cannot be written does not run.

    Raises:
        ValueError: If an option has a value that is not listed here.
        SkillTemplateError: If the template has any other placeholder, or a single brace.

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

    @property
    def approvals(self) -> Approvals:
        """The store of pending calls, each of which can be answered once; in memory unless it was set."""

    @approvals.setter
    def approvals(self, approvals: Approvals | None) -> None: ...
    def __init__(
        self,
        agent_skill_instruction: str | None = None,
        agent_skill_template: str | None = None,
        *,
        arguments: Literal["coerce", "check", "pass"] = "coerce",
        errors: Literal["respond", "raise", "compat"] = "respond",
        run_in: Literal["thread", "inline"] = "thread",
        repair: Literal["on", "explain", "off"] = "on",
        policy: Policy | None = None,
        approver: _Approver | None = None,
        approver_timeout: float | None = None,
        headless: bool = False,
        approvals: Approvals | None = None,
        audit: _AuditSink | None = None,
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
        postprocess_func: Callable[[Any, ToolResponse], Any] | None = None,
        namesake_strategy: Literal["raise", "skip", "override", "rename"] = "raise",
        async_execution: bool = False,
        *,
        run_in: Literal["thread", "inline", "process"] | None = None,
        timeout: float | None = None,
        groups: Sequence[str] = (),
        tags: Sequence[str] = (),
        kind: _Kind | Literal["write"] | None = None,
        permission: Literal["auto", "confirm"] = "auto",
        secrets: Sequence[str] = (),
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        """Register a callable as a tool.

        Arguments (a partial, a schema, a dictionary of presets) are copied and never changed. A registration that fails
        changes nothing.

        Args:
            tool_func: A function, coroutine function, generator function, async generator function, method, partial,
                class or callable object. It may return or yield anything. The arguments that a partial has bound
                become presets.
            group_name: The group it belongs to, which must exist.
            preset_kwargs: Arguments that the developer sets: the model can neither see nor send them. They override
                those that a partial has bound.
            func_name: The name for the model, instead of the callable's own.
            func_description: The description for the model, instead of that in the docstring, which an empty text
                keeps.
            json_schema: The schema for the model, instead of the one derived from the signature and the docstring:
                `{"type": "function", "function": {"name": ..., "parameters": {...}}}`. The name is always the
                tool's own. With an empty dictionary the schema is derived.
            include_long_description: Include the paragraphs after the first one of the docstring.
            include_var_positional: Let the model send `*args`, as a list under that name.
            include_var_keyword: Let the model send `**kwargs`, as an object under that name.
            postprocess_func: Called with the request block and each response, and awaited if it is asynchronous; a true
                result is delivered instead.
            namesake_strategy: The action if the name is taken: `"raise"` refuses, `"skip"` keeps the old tool,
                `"override"` replaces it, `"rename"` adds a random suffix of five characters.
            async_execution: Return from a call at once and continue it in the background, in a task of the caller's
                event loop; see `view_task`.
            run_in: The place where it runs, instead of the toolkit's default: `"thread"`, `"inline"`, or `"process"`
                for an importable function that can be killed.
            timeout: The seconds after which a call is ended. A synchronous tool that runs inline cannot have one.
            groups: Further groups that it belongs to, which must exist.
            tags: Words by which views and rules select it.
            kind: The kind of effect that it has; `"write"` is a synonym of `"edit"`, and None is `"other"`. The kinds
                `"read"`, `"search"`, `"fetch"` and `"think"` change nothing.
            permission: `"auto"`, or `"confirm"` if each call needs approval that no rule allows.
            secrets: The parameters whose values are replaced by `***` in approval requests, events and the audit.
            aliases: Names that a model may use by mistake, each with the name of the parameter.

        Raises:
            TypeError: If `tool_func` is not callable, or an option has the wrong type.
            ValueError: If an option has a value that is not listed here, or the callable has no readable signature.
            UnknownGroupError: If there is no such group.
            InvalidToolNameError: If the name is empty, or has a control character in it.
            DuplicateToolError: If the name is taken and the strategy is `"raise"`.
            NoFreeNameError: If every new name that was tried is taken.
            InvalidSchemaError: If `json_schema` does not describe a function.
            IncompleteSchemaError: If `json_schema` has no `parameters`, or presets but no `properties`.
            UnsupportedTypeError: If a parameter's annotation has no JSON Schema, or too large a one.

        Example:
            toolkit.register_tool_function(search, preset_kwargs={"api_key": key}, timeout=10)
        """

    def remove_tool_function(self, tool_name: str, allow_not_exist: bool = True) -> None:
        """Remove a tool; running calls continue.

        Args:
            tool_name: The tool's name.
            allow_not_exist: Accept an unknown name.

        Raises:
            UnknownToolError: If the tool is unknown and `allow_not_exist` is false.
        """

    def create_tool_group(
        self,
        group_name: str,
        description: str,
        active: bool = False,
        notes: str | None = None,
    ) -> None:
        """Add a group, in which tools can be registered and which can be switched on and off.

        Args:
            group_name: A new name; `basic` is the group of all tools that are registered without a group.
            description: The purpose of the group.
            active: List its tools and allow their calls from the start.
            notes: Notes on the use of its tools; see `get_activated_notes`.

        Raises:
            DuplicateGroupError: If the name is taken.
        """

    def update_tool_groups(self, group_names: list[str], active: bool) -> None:
        """Switch groups on or off.

        Unknown names are ignored. `basic` is always active: naming it logs a warning in `toolcrib`.

        Args:
            group_names: The groups to switch; the others stay as they are.
            active: True to switch them on.

        Raises:
            TypeError: If `group_names` is not a list of strings.
        """

    def remove_tool_groups(self, group_names: str | list[str]) -> None:
        """Remove groups together with their tools.

        Unknown names are ignored.

        Args:
            group_names: One name or several.

        Raises:
            TypeError: If `group_names` is neither a string nor a list of strings.
            BasicGroupError: If `basic` is among them. Then nothing is removed.
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

        A tool may be in several groups: it stays in those that it is in, and can be called while any of its groups is
        active. Replacing a group logs a warning in `toolcrib` and removes the tools that are in no other group. A
        registration that fails changes nothing.

        Args:
            id: The group's id, which is its name everywhere else.
            description: The purpose of the group.
            tools: Names of registered tools, and callables to register.
            reserved: Refuse to register or unregister the id from now on.
            active: List its tools and allow their calls.
            notes: Notes on the use of its tools; see `get_activated_notes`.

        Raises:
            ReservedGroupError: If the id is reserved, as `basic` always is.
            InvalidGroupError: If `tools` is not a list of these, or a name is unknown.
            DuplicateToolError: If a callable has the name of a tool in another group.
            ToolcribError: If a callable cannot be registered; see `register_tool_function`.
        """

    def unregister_group(self, id: str) -> None:
        """Remove a group, and the tools that are in no other group.

        Raises:
            ReservedGroupRemovalError: If the group is reserved, as `basic` always is.
            UnknownGroupError: If there is no such group.
        """

    def list_groups(self) -> list[dict[str, Any]]:
        """Describe all groups: `basic` first, then in the order of their creation.

        Returns:
            A dictionary for each, with `id`, `description`, `tools` (their names), `tool_count`, `reserved` and
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
    ) -> ToolkitView:
        """Select a part of the toolkit: exactly the tools that the view lists can be called through it.

        A view is live and cheap: it holds no tools, only the selection. A tool is selected if it matches all arguments.
        An empty list selects nothing, and an unknown name selects nothing until it is registered.

        Args:
            groups: The groups whose tools are visible while they are active. `basic` is visible only if it is named.
            names: The tools that are visible.
            exclude: The tools that are hidden.
            tags: Tags of which a tool must have one.
            caller: The name of the caller, for policies and audits.

        Raises:
            TypeError: If one of the lists is not a list of strings.
        """

    def view_for(
        self, role: Role | str | None, roles: Roles | None = None, *, caller: str | None = None
    ) -> ToolkitView:
        """Select the tools that a role may use: those of its groups, or of the default ones if it names none.

        The view of a name follows the role: a change by `Roles.update` takes effect at once, and after its removal the
        view shows nothing. The view of an unknown name and of None shows nothing either. The role `root` has exactly
        the group `org_management`.

        Args:
            role: The name of a role, or a role.
            roles: The roles in which the name is looked up, with the default groups.
            caller: The name of the caller; that of the role if it is not given.

        Raises:
            TypeError: If `role` is anything else.
        """

    def get_json_schemas(self, group_names: list[str] | None = None) -> list[dict[str, Any]]:
        """Describe the tools of all active groups, in the order of their registration.

        Args:
            group_names: The groups to describe besides `basic`, even if they are inactive.

        Returns:
            A `{"type": "function", "function": {...}}` for each tool. They are copies, which you may change.

        Raises:
            UnknownGroupError: If a group is unknown.
        """

    def get_json_schemas_bytes(self) -> bytes:
        """Return the schemas as JSON text, which is cached until something changes."""

    def schemas(self, dialect: _Dialect, group_names: list[str] | None = None) -> DialectSchemas:
        """Describe the tools of all active groups in the dialect of a provider.

        Features that the dialect lacks are encoded in those that it has: a map as a list of entries, for example, or a
        recursive part as JSON text. Pass the same dialect to `call_tool_function`, and the tool gets the original
        shape. Features that cannot be encoded are described in words and listed in the result's `report`.

        Args:
            dialect: `"openai"`, `"openai_strict"`, `"openai_responses"`, `"openai_responses_strict"`, `"anthropic"`,
                `"gemini"` (a list of function declarations) or `"mcp"`.
            group_names: The groups to describe besides `basic`, even if they are inactive.

        Returns:
            The declarations for the provider, one dict for each tool. They are copies, which you may change.

        Raises:
            UnknownDialectError: If there is no such dialect.
            UnknownGroupError: If a group is unknown.
        """

    def instructions(self, format: Literal["xml", "hermes", "function", "invoke", "fenced", "react"] = "xml") -> str:
        """Describe the tools of all active groups, and the syntax of calls, as text.

        Put it into the system prompt of a model that has no tool calling of its own. The same tools give the same text,
        byte for byte. The description of a tool cannot break the structure: markup in it is escaped.

        Args:
            format: The syntax of calls: `"xml"` with every value in CDATA, `"hermes"` as JSON in `<tool_call>`,
                `"function"` as JSON in `<function=name>`, `"invoke"` with `<parameter name=...>`, `"fenced"` as JSON
                in a code fence, `"react"` with `Action:` and `Action Input:`.

        Raises:
            ValueError: If there is no such format.
            ExtendedModelError: If an extended model does not fit its tool.

        Example:
            prompt = "You are a helpful assistant. " + toolkit.instructions()
        """

    def get_activated_notes(self) -> str:
        """Join the notes of the active groups, each under the heading `## About Tool Group '<name>'`."""

    def get_tool_group_notes(self, group_names: list[str] | None = None) -> str:
        """Join the notes of the active groups, or of the named ones, even if they are inactive.

        Args:
            group_names: The groups, whose notes are joined in the order of their creation.

        Raises:
            UnknownGroupError: If a group is unknown.
        """

    def reset_equipped_tools(self, **kwargs: bool) -> ToolResponse:
        """Choose the tool groups to work with from now on.

        This is the meta tool: the groups that are named with True are switched on and all others off. Register it
        (`toolkit.register_tool_function(toolkit.reset_equipped_tools)`) and the model chooses its groups itself. Its
        schema has one boolean for each group and follows the groups.

        Args:
            **kwargs: A boolean for each group; a group that is omitted is switched off.

        Returns:
            The active groups with their notes. For an unknown group or a value that is not a boolean the code is
            `"invalid_arguments"`, and nothing changes.
        """

    @overload
    def set_extended_model(self, func_name: str, model: type[Any] | None) -> None: ...
    @overload
    def set_extended_model(self, *, finish_function_name: str, structured_model: type[Any] | None) -> None:
        """Add the fields of a pydantic model to the parameters of a tool.

        They are passed to the function if it takes them, by name or by `**kwargs`. They are not validated; see
        `set_finish_function` for that.

        Args:
            func_name: The tool's name.
            model: A class, or None to remove its fields.
            finish_function_name: Another name of `func_name`.
            structured_model: Another name of `model`.

        Raises:
            TypeError: If `model` is not a child class of `pydantic.BaseModel`.
            UnknownToolError: If the tool is unknown.
            ExtendedModelError: If the model does not fit the tool. Then nothing has changed.
        """

    def set_finish_function(self, name: str, model: type[Any] | None) -> None:
        """Let a tool end a conversation with data that a pydantic model validates.

        The fields of the model are added to the parameters of the tool, and validated at each call. For invalid data
        the response has a text that begins with `Arguments Validation Error: ` and the code `"invalid_arguments"`, and
        the function does not run. Otherwise it runs with the arguments that it takes, and its last response has
        `is_last` and this `metadata`: `success`, `structured_output` (the validated data, by `model_dump`) and
        `response_msg` (the function's own, or a message with the response's text).

        Args:
            name: The tool's name.
            model: A class, or None to make it an ordinary tool again.

        Raises:
            TypeError: If `model` is not a child class of `pydantic.BaseModel`.
            UnknownToolError: If the tool is unknown.
            ExtendedModelError: If the model does not fit the tool. Then nothing has changed.

        Example:
            toolkit.set_finish_function("finish", Report)
        """

    def _defer_conflicts(self) -> None:
        """From now on, raise for an extended model that does not fit only where the schema is read.

        That is in `get_json_schemas`, `get_json_schemas_bytes` and `extended_json_schema`, as in AgentScope. Until then
        the tool is called as if it had no model.
        """

    def clear(self) -> None:
        """Remove all tools and all groups except `basic`; skills and middlewares stay."""

    def register_agent_skill(self, skill_dir: str | PathLike[str]) -> None:
        """Add the skill in a folder, whose `SKILL.md` has `name` and `description` in its YAML front matter.

        Only the front matter is read, at most 64 KiB. Values are taken literally: `1.10` stays `1.10`.

        Args:
            skill_dir: The folder, whose path is kept as given.

        Raises:
            SkillDirectoryError: If the folder does not exist.
            SkillFileError: If it has no file `SKILL.md`.
            SkillFrontMatterError: If the front matter lacks the two fields, or the name is not one line of text.
            DuplicateSkillError: If the name is taken.

        Example:
            toolkit.register_agent_skill("skills/pdf")
        """

    def remove_agent_skill(self, name: str) -> None:
        """Remove a skill; an unknown name logs a warning in `toolcrib`."""

    def get_agent_skill_prompt(self) -> str | None:
        """Return the text about the skills for the system prompt.

        Returns:
            The instruction, and the template filled in for each skill; None if there are no skills.
        """

    def state_dict(self) -> dict[str, list[str]]:
        """Return the active groups in the format of AgentScope's sessions.

        Returns:
            `{"active_groups": [...]}`, with the names in the order of the groups' creation.
        """

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Switch on the groups that a state lists, and switch off all others; unknown names are ignored.

        Args:
            state_dict: The result of `state_dict`.
            strict: Refuse other keys than `active_groups`.

        Raises:
            InvalidStateError: If it is not a valid state. Then nothing changes.
        """

    def save(self, path: str | PathLike[str]) -> None:
        """Save the groups to a file: names, descriptions, notes, order and activity.

        The file is replaced atomically: a reader finds the old state or the new one, even after a crash. Of several
        concurrent saves the last wins. Tools and skills are not saved; register them again.

        Args:
            path: The file. A symbolic link is followed. An existing file keeps its permissions, a new one is readable
                by its owner only.

        Raises:
            FileAccessError: If the operating system refuses; the old state is still there.
            FileTooLargeError: If the state is larger than 16 MiB.
        """

    def load(self, path: str | PathLike[str]) -> None:
        """Restore the groups from a file, in their order.

        Missing groups are created, and groups that are not in the file are switched off; tools stay. Nothing changes if
        the file cannot be used.

        Args:
            path: A file that `save` wrote.

        Raises:
            MissingFileError: If there is no such file.
            FileAccessError: If the operating system refuses.
            ForeignFileError: If it was not written by `save`.
            DamagedFileError: If it was modified or truncated.
            NewerFileError: If a newer version of toolcrib wrote it.
            FileTooLargeError: If it is larger than 16 MiB.
        """

    def register_middleware(self, middleware: Middleware) -> None:
        """Wrap every call in a middleware, inside of those registered before.

        It is called with `{"tool_call": block}` and with a handler: `next_handler(**kwargs)` returns the stream of the
        inner layers. The middlewares of a call are those that the toolkit has when the call starts.

        Args:
            middleware: An async generator function, or anything that returns a stream or a response, directly or when
                awaited.

        Raises:
            TypeError: If it is not callable.

        Example:
            async def log(kwargs, next_handler):
                print("asked:", kwargs["tool_call"]["name"])
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

        Nothing runs before the first step, not even the search for the tool. A mistake of the model is answered with a
        response that has a `code`.

        Args:
            tool_call: `{"type": "tool_use", "id": ..., "name": ..., "input": {...}}`, of which `name` is needed.
                `input` may also be JSON text, or None. A `ToolCall`, or anything that `ToolCall.read` understands.
            dialect: The dialect of `schemas` that the model was told the tools in: its names and its arguments are
                brought to the tool's own before anything else looks at them.

        Raises:
            TypeError: If `tool_call` can be no call at all.
            UnknownDialectError: If there is no such dialect.

        Example:
            async for response in toolkit.call_tool_function(block):
                print(response.text)
        """

    def check(self, tool_call: Mapping[str, Any] | ToolCall | str | Dumped) -> dict[str, Any]:
        """Return the decision about a call; nothing runs, is approved or is written to the audit.

        Args:
            tool_call: The request, as `call_tool_function` takes it.

        Returns:
            `would` is `"run"`, `"ask"`, `"pending"`, `"deny"`, or `"refuse"` if the request itself is invalid. Further
            keys are the `tool`, the `decision` of the rules with its `rule` and `reason`, the decision without shadow
            mode as `shadowed`, the `code` of the refusal, and the `problems` of the arguments as text.

        Raises:
            TypeError: If `tool_call` is not a call.
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

        Nothing runs before the first step, which also uses up the pending value, and raises for a value that is
        expired, altered or used. Middlewares wrap the call as any other; even if they change the request, the approved
        call runs.

        Args:
            pending: The value of the response's `metadata["pending"]`, or its JSON text.
            answer: `"once"`, `"run"`, `"always"`, `"no"`, `"cancel"`, a boolean, or an `Approval`.
            arguments: The arguments to run it with instead; checked against the schema and the rules again.
            by: The name of the approver, for the audit.

        Raises:
            InvalidPendingError: If `pending` is not a pending value.
            InvalidAnswerError: If `answer` is not an answer. Invalid `arguments` raise it in the first step, before the
                approval is used up.
        """

    def call(self, name: str, /, **arguments: Any) -> Coroutine[Any, Any, ToolResponse]:
        """Call a tool and give its last response.

        Args:
            name: The tool's name.
            **arguments: What a model would send: presets cannot be overridden here either.

        Example:
            response = await toolkit.call("add", a=1, b=2)
        """

    @property
    def _permissions(self) -> _Permissions: ...
    @property
    def _tasks(self) -> _TaskBoard: ...
    def _find_tool(self, name: str) -> RegisteredToolFunction | None: ...
    def _find_group(self, name: str) -> ToolGroup | None: ...
    def _all_tools(self) -> dict[str, RegisteredToolFunction]: ...
    def _all_groups(self) -> dict[str, ToolGroup]: ...
    def _find_skill(self, name: str) -> AgentSkill | None: ...
    def _all_skills(self) -> dict[str, AgentSkill]: ...

@final
class NativeTool:
    """A tool that is written in Rust.

    Register it like a function: `toolkit.register_tool_function(tools.wait)`. Its parameters have a schema of their
    own, so that it is listed, checked, decided about, cancelled and traced like any other tool. It runs on a runtime of
    its own, in threads that never hold Python's lock, and its responses reach the event loop in batches.

    Native tools come with toolcrib, in `toolcrib.tools`; Rust programs write their own with the crate.
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
    def permission(self) -> Literal["auto", "confirm"]:
        """The permission that a call needs if no rule matches: `"auto"` or `"confirm"`."""
    @property
    def is_streaming(self) -> bool:
        """True if it returns a stream of responses, false if it returns one."""
    def __call__(self, /, **arguments: Any) -> Any:
        """Call the tool without a toolkit: arguments are not checked, and no permission is needed.

        Args:
            **arguments: JSON values, by the names in the schema.

        Returns:
            An async iterator of responses if the tool streams, otherwise an awaitable of its only response. The tool
            starts when that is first awaited; closing or dropping it ends the tool.

        Raises:
            NativeToolError: If the tool returns an error; raised where its responses are awaited.
        """
    def __copy__(self) -> NativeTool: ...
    def __deepcopy__(self, _memo: Any) -> NativeTool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

def _native_tool(name: str) -> NativeTool: ...

@final
class RegisteredToolFunction:
    """A tool in a toolkit.

    It is made by registration and cannot be changed; register it again with `"override"` instead.
    """

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
    def postprocess_func(self) -> Callable[[Any, ToolResponse], Any] | None:
        """The function that is called with each response."""

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
    def permission(self) -> Literal["auto", "confirm"]:
        """`"auto"`, or `"confirm"` if each call needs approval, unless a rule decides otherwise."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The parameters whose values are redacted."""

    @property
    def aliases(self) -> dict[str, str]:
        """A copy of the alternative names of parameters, each with the parameter."""

    def call(
        self,
        *,
        arguments: Mapping[str, Any] | str | None,
        stream_print: Callable[[ToolResponse], Any] | None = None,
    ) -> ToolStream:
        """Call this tool, even if its group is inactive.

        Middlewares of the toolkit are not called.

        Args:
            arguments: The arguments as a model would send them; presets cannot be overridden.
            stream_print: A function that is called with each response, and awaited if it is asynchronous.

        Raises:
            TypeError: If `stream_print` cannot be called.

        Example:
            async for response in toolkit.tools["add"].call(arguments={"a": 1, "b": 2}):
                print(response.text)
        """

@final
class ToolkitView:
    """A part of a toolkit: exactly the tools that it lists can be called through it.

    A view is made by `Toolkit.view` and `Toolkit.view_for`. It is live: later registrations, removals and switches take
    effect at once. It is always true, even if it shows nothing.
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
            A `{"type": "function", "function": {...}}` for each tool. They are copies, which you may change.
        """

    def schemas(self, dialect: _Dialect) -> DialectSchemas:
        """Describe the tools of the view in the dialect of a provider, as `Toolkit.schemas` does.

        Args:
            dialect: The name of the dialect.

        Raises:
            UnknownDialectError: If there is no such dialect.
        """

    def get_json_schemas_bytes(self) -> bytes:
        """Return the schemas as JSON text, which is cached until something changes."""

    def instructions(self, format: Literal["xml", "hermes", "function", "invoke", "fenced", "react"] = "xml") -> str:
        """Describe the tools of the view, and the syntax of calls, as text; see `Toolkit.instructions`.

        Args:
            format: The syntax of calls: `"xml"`, `"hermes"`, `"function"`, `"invoke"`, `"fenced"` or `"react"`.

        Raises:
            ValueError: If there is no such format.
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
    ) -> ToolkitView:
        """Select a part of this view; see `Toolkit.view`.

        Args:
            groups: The groups whose tools stay visible.
            names: The tools that stay visible.
            exclude: The tools that are hidden.
            tags: Tags of which a tool must have one.
            caller: The name of the caller; that of this view if it is not given.

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

        A tool that the view does not show is answered with the code `"tool_not_available"`, whether there is one of
        that name or not; middlewares and background tasks of the call stay inside the view. See
        `Toolkit.call_tool_function`.
        """

    def call(self, name: str, /, **arguments: Any) -> Coroutine[Any, Any, ToolResponse]:
        """Call a tool and give its last response."""

    def run(self, name: str, /, **arguments: Any) -> ToolResponse:
        """Call a tool from synchronous code and return its last response; see `Toolkit.run`."""

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
class Role:
    """A role: a prompt, and the groups that an agent in this role may use.

    Args:
        name: The name, unique among the roles.
        prompt: The prompt of an agent in this role.
        tool_groups: The groups it may use: None for the default, an empty list for none.
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

    A caller whose role is missing here sees no tools. The object may be used from several threads at once.

    Args:
        default: The groups of roles that name none; None if they are all.

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
            DuplicateRoleError: If there is a role of that name.
            SystemRoleError: If the name is `root`.
            InvalidRoleError: If the name is empty.
        """

    def get(self, name: str) -> Role | None:
        """Find a role by its exact name."""

    def update(self, name: str, *, prompt: str | None = None, tool_groups: Iterable[str] | None = ...) -> Role:
        """Change a role; views that were made for its name change with it.

        Args:
            name: The role's name.
            prompt: The new prompt of an agent in this role.
            tool_groups: The new groups that it may use: None for the default, an empty list for none.

        Returns:
            The changed role. Omitted arguments leave their field unchanged.

        Raises:
            UnknownRoleError: If there is no such role.
            SystemRoleError: If the name is `root`.
            TypeError: If `tool_groups` is not a list of strings.
        """

    def remove(self, name: str) -> Role:
        """Remove a role: its callers see no tools from now on.

        Returns:
            The removed role.

        Raises:
            UnknownRoleError: If there is no such role.
            SystemRoleError: If the name is `root`.
        """

    def save(self, path: str | PathLike[str]) -> None:
        """Save the roles to a JSON file.

        The file is replaced atomically: a reader finds the old roles or the new ones, even after a crash. Other content
        of the file that was loaded is written back.

        Raises:
            FileAccessError: If the operating system refuses, with the fields of an `OSError`.
            FileTooLargeError: If the file would be larger than 16 MiB.
        """

    def load(self, path: str | PathLike[str], *, strict: bool = True) -> list[str]:
        """Replace all roles by those of a file; views that were made for a name change with it.

        Args:
            path: The file.
            strict: Raise for an invalid record. Otherwise it is skipped, and callers with that role see no tools.

        Returns:
            The problems of the records that were skipped.

        Raises:
            RoleFileError: If the file is not valid; the text names each record and field. Then nothing has changed.
            MissingFileError: If there is no such file.
            FileAccessError: If the operating system refuses, with the fields of an `OSError`.
            FileTooLargeError: If it is larger than 16 MiB.
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
            reserved: Refuse to register or unregister the id from now on.

        Returns:
            True if there was a group of that id.

        Raises:
            ReservedGroupError: If the id is reserved, whatever the definition.
            InvalidGroupError: If the definition is not valid.
        """

    def unregister(self, id: str) -> None:
        """Remove a group.

        Raises:
            ReservedGroupRemovalError: If the group is reserved.
            UnknownGroupError: If there is no such group.
        """

    def update(self, id: str, tools: Any) -> None:
        """Replace the tools of a group, reserved or not.

        Raises:
            UnknownGroupError: If there is no such group.
            InvalidGroupError: If `tools` is not a list of definitions.
        """

    def reserve(self, id: str) -> None:
        """Refuse to register or unregister the id of a group from now on.

        Raises:
            UnknownGroupError: If there is no such group.
        """

    def definitions(self, ids: Iterable[str]) -> builtins.list[dict[str, Any]]:
        """Return the definitions of these groups in the order of the ids; of several of one name the first.

        Unknown ids are skipped.
        """

    def list(self) -> builtins.list[dict[str, Any]]:
        """Describe all groups in their order.

        Returns:
            A dictionary for each, with `id`, `description`, `tools` (their names), `tool_count` and `reserved`.
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

    The groups in `Toolkit.groups` are live: setting an attribute takes effect in the toolkit. One that you make
    yourself belongs to no toolkit.

    Args:
        name: The name, unique in its toolkit.
        active: True if its tools are listed and can be called.
        description: The purpose of the group.
        notes: Notes on the use of its tools.
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

@disjoint_base
class ToolResponse:
    """One chunk of the result of a tool call.

    Two responses are equal if their first six fields are, also if one of them is AgentScope's.

    Args:
        content: The blocks for the model, in order.
        metadata: Data for the program, which the model does not see. A tool's value that is not text is kept under
            `"value"`, repairs of the arguments are listed under `"repairs"`.
        stream: True if further chunks follow.
        is_last: True for the last response of a call.
        is_interrupted: True if the call was cancelled.
        id: A unique id; by default the time and six random digits.
        code: The code of a failure: `"bad_call"`, `"unknown_tool"`, `"inactive_group"`, `"invalid_arguments"`,
            `"tool_not_available"`, `"failed"`, `"interrupted"`, `"timeout"`, `"denied"`, `"pending"` or
            `"cancelled"`, and for a task in the background `"unknown_task"`, `"task_running"` or `"task_finished"`;
            None if the call succeeded.

    Example:
        ToolResponse([TextBlock(type="text", text="done")])
    """

    __hash__: None  # type: ignore[assignment]
    content: list[_Block]
    """The blocks for the model, in order."""
    metadata: dict[str, Any] | None
    """Data for the program, which the model does not see."""
    stream: bool
    """True if further chunks follow."""
    is_last: bool
    """True for the last response of a call."""
    is_interrupted: bool
    """True if the call was cancelled."""
    id: str
    """A unique id."""
    code: str | None
    """The code of the failure; None if the call succeeded."""

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
    ) -> ToolResponse: ...
    @property
    def text(self) -> str:
        """The text of all text blocks, joined by line breaks."""

    @property
    def ok(self) -> bool:
        """True if the call succeeded: there is no code, and it was not interrupted."""

    def to_openai(self, call: ToolCall | Mapping[str, Any] | str | Dumped | None = None) -> dict[str, Any]:
        """Return the message with the role `tool` of OpenAI's chat completions, which holds text only.

        Args:
            call: The call of this response, in any format, or its id.

        Raises:
            TypeError: If `call` is missing or not a call.
            ValueError: If `call` has no id.
        """

    def to_openai_responses(self, call: ToolCall | Mapping[str, Any] | str | Dumped | None = None) -> dict[str, Any]:
        """Return the item that answers a call in OpenAI's responses API.

        Args:
            call: The call of this response, in any format, or its id.

        Raises:
            TypeError: If `call` is missing or not a call.
            ValueError: If `call` has no id.
        """

    def to_anthropic(self, call: ToolCall | Mapping[str, Any] | str | Dumped | None = None) -> dict[str, Any]:
        """Return Anthropic's `tool_result` block.

        Args:
            call: The call of this response, in any format, or its id.

        Raises:
            TypeError: If `call` is missing or not a call.
            ValueError: If `call` has no id.
        """

    def to_gemini(
        self, call: ToolCall | Mapping[str, Any] | str | Dumped | None = None, *, name: str | None = None
    ) -> dict[str, Any]:
        """Return Gemini's `functionResponse` part.

        Args:
            call: The call of this response, in any format, or its id.
            name: The tool's name, if `call` does not have it.

        Raises:
            TypeError: If neither has the name of the tool, or `call` is not a call.
        """

    def to_mcp(self) -> dict[str, Any]:
        """Return MCP's `CallToolResult`.

        The value itself is `structuredContent`, where there is one.
        """

    def to_xml(self, call: ToolCall | Mapping[str, Any] | object | None = None, *, name: str | None = None) -> str:
        """Give the element `tool_result` for a model that writes its calls in XML; see `format_tool_result`.

        Args:
            call: The call that this answers, in any form.
            name: The tool's name, if `call` does not have it.

        Raises:
            TypeError: If neither says which tool it was.
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __setstate__(self, state: dict[str, Any], /) -> None: ...

@final
class ToolCall(Mapping[str, Any]):
    """A call that a model asked for, in any format.

    It can be used like its `ToolUseBlock`: `call["name"]`, `dict(call)`. `read` makes one from the output of a provider
    or a model; a call may also be made by hand.

    Args:
        name: The tool's name.
        arguments: The arguments, which must be JSON values.
        id: The id that the model or its provider gave the call.
        raw: The text that the model wrote, if the call came as text.
        error: The reason why the call cannot be run. A toolkit responds to it with the code `bad_call`.
        repairs: The repairs that were made to read it.
        format: The name of the format.
        is_truncated: Whether something is missing at the end.
        has_duplicate_keys: Whether an object had a key twice.

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

        A call that cannot be read has an `error`, to which a toolkit responds with the code `bad_call`.

        Args:
            x: A block or call of any provider, as a dictionary, as JSON text or as the object of a library; or text
                with a call in it.
            format: The format, if it is known: `"anthropic"`, `"openai"`, `"openai_responses"`, `"gemini"`, `"mcp"`,
                `"bare"`, or a format of `TextParser`.
            tools: The toolkit or view whose tools are called. Their schemas declare the types of values in text;
                without them, types are guessed.

        Raises:
            TypeError: If `x` has another type, or `tools` is neither a toolkit nor a view.
            ValueError: If `format` is unknown.
        """

    @staticmethod
    def read_all(x: object, *, format: str | None = None, tools: Toolkit | ToolkitView | None = None) -> list[ToolCall]:
        """Read all calls of a message, of a list of blocks, or of a whole response. Everything else in it is ignored.

        Args:
            x: As for `read`, or a list of that.
            format: The text format, if it is known.
            tools: As for `read`.

        Raises:
            TypeError: If `x` has another type, or `tools` is neither a toolkit nor a view.
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

    Each piece is scanned once, so that all of them together take time in proportion to their length.

    Args:
        name: The name of the tool.
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

        This takes time in proportion to the text so far.
        """

    @property
    def text(self) -> str:
        """The text so far."""

    @property
    def is_complete(self) -> bool:
        """True if the object is complete."""

    def finish(self) -> ToolCall:
        """Parse the whole text, with repairs if it is not valid JSON.

        Returns:
            The call, with the name and id of the reader.
        """

@final
class TextParser:
    """Parse the tool calls in a model's text while it arrives.

    Args:
        format: The format of the calls: `"xml"`, `"hermes"`, `"function"`, `"invoke"`, `"fenced"`, `"react"`, or
            `"auto"` for the format of the first call.
        tools: The toolkit or view whose tools are called. Their schemas declare the types of values; without them,
            types are guessed.
        compat: Whether XML is parsed as ArtifactFlow does: code fences are not recognised, types are guessed, and
            invalid calls are dropped. See `toolcrib.compat.artifactflow`.
        fallback: Whether, with `compat`, a block that is not well-formed XML is searched for a call.

    Raises:
        ValueError: If `format` is unknown, or is neither `"auto"` nor `"xml"` with `compat`.
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
            text: The piece; the message may be cut anywhere.

        Returns:
            The prose and the complete calls so far, in order. A call that cannot be parsed has an `error`.
        """

    def finish(self) -> list[str | ToolCall]:
        """End the message. The next piece begins another one.

        Returns:
            The rest of the message. A call in which the text ends has an `error`.
        """

    @property
    def report(self) -> dict[str, Any]:
        """The format of the message, and a summary of its calls.

        The `format` and `why` it is that one, the line and column `at` which that was seen, the number of `calls`, and
        the number that were `passed_over` because they are in code, quotes, thoughts or comments; `stopped` is the
        reason why no more were looked for.
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
        text: The model's output.
        format: The format of the calls; see `TextParser`.
        tools: The toolkit or view whose tools are called.
        compat: Whether XML is parsed as ArtifactFlow does.
        fallback: Whether, with `compat`, a block that is not well-formed XML is searched for a call.

    Returns:
        The calls in order. One that cannot be parsed has an `error`.

    Raises:
        ValueError: If `format` is unknown, or is neither `"auto"` nor `"xml"` with `compat`.
        TypeError: If `tools` is neither a toolkit nor a view.
    """

def format_tool_result(
    name: str,
    result: ToolResponse | dict[str, Any],
    *,
    format: Literal["xml", "hermes", "function", "invoke", "fenced", "react"] = "xml",
) -> str:
    """Write the result of a call for a model without native tool calling.

    Everything is shown, also `0` and `False`, and lists in lists as elements. The content is escaped, so that nothing
    in it can pass for a tool call, for the end of the result, or for an instruction of the program.

    Args:
        name: The tool's name.
        result: A `ToolResponse`, or a dictionary with `success`, `data` and `error`, of which each may be missing.
        format: The format of the model's calls, which has its own form of results.

    Raises:
        TypeError: If `result` is neither.
        ValueError: If `format` is unknown.

    Example:
        text = format_tool_result("add", await toolkit.call("add", a=1, b=2))
    """

def _frame_instructions(format: str, documents: list[str]) -> str:
    """Write the instructions around the documentation of each tool."""

def _write_call(format: str, name: str, arguments: dict[str, Any]) -> str:
    """Write a call in a format."""

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
            arguments: The arguments of the tool as JSON values.
        """

@final
class _TaskBoard:
    """The background tasks of a toolkit, and the outcomes of those that have finished.

    A task is an `asyncio.Task`, an outcome is a response or an exception.
    """

    def start(self, task_id: str, task: Task[ToolResponse]) -> None:
        """Record a running task."""

    def finish(self, task_id: str, outcome: ToolResponse | Exception) -> None:
        """Record the outcome of a task. Nothing is kept of a task that was cancelled."""

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
class Approvals:
    """Issue pending calls, and accept one answer to each.

    It may be shared by toolkits and threads. Two of them on the same folder, in one process or in several, act as one.

    Args:
        path: The folder for the key and the record of answers, so that pending calls survive a restart; created if its
            parent exists. None keeps everything in memory.
        ttl: The number of seconds for which a pending call can be answered.

    Raises:
        ValueError: If `ttl` is not positive.
        FileAccessError: If the folder cannot be created, read or written.
        DamagedFileError: If the key in the folder is invalid.
    """

    def __new__(cls, path: str | PathLike[str] | None = None, ttl: float = 3600) -> Approvals: ...
    @property
    def path(self) -> Path | None:
        """The folder that keeps pending calls across restarts; None if they are kept in memory."""

    @property
    def ttl(self) -> float:
        """The number of seconds for which a pending call can be answered."""

@disjoint_base
class Policy:
    """Rules that allow or deny calls or ask the approver, and the default decision.

    Rules are evaluated by tier, then by priority; of equal ones those that deny go first, then those that ask. If no
    rule matches, a tool with `permission="confirm"` asks and the default applies, whichever is stricter. A policy may
    be shared by toolkits and threads, and changed at any time.

    Args:
        rules: `Rule` objects, or dictionaries of their fields.
        default: The decision if no rule matches: `"allow"`, `"ask"` or `"deny"`.
        shadow: True if the policy only records its decisions; see `shadowed`.

    Raises:
        ValueError: If `default` is not a decision.
        InvalidRuleError: If one of the rules is invalid.
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

        Errors in a file are listed in `problems`; an invalid rule never allows a call.

        Args:
            default: The file of the program's own rules.
            project: The file of the project's rules.
            user: The file of the user's rules, to which an answer `"always"` is saved.
            admin: The file of the machine's rules, which go before all others.
            otherwise: The decision if no rule matches.
            optional: True if files may be missing.

        Raises:
            ValueError: If `otherwise` is not a decision.
        """

    def reload(self) -> bool:
        """Read the files again; if one of them has an error, the rules stay as they are.

        Returns:
            True if the rules were replaced; otherwise `problems` lists the errors.
        """

    def add(self, rule: Rule | Mapping[str, Any]) -> str:
        """Add a rule.

        Args:
            rule: A `Rule`, or a dictionary of its fields.

        Returns:
            Its id, which is generated if it has none.

        Raises:
            InvalidRuleError: If it is not a valid rule; then nothing changes.
            DuplicateRuleError: If another rule has its id; then nothing changes.
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

    def explain(self, call: object, *, toolkit: Toolkit | None = None, caller: str | None = None) -> Explanation:
        """Evaluate every rule for a call, and explain which one decides.

        `Toolkit.check` also tests that the tool exists.

        Args:
            call: The request, in any form that `ToolCall.read` understands.
            toolkit: The toolkit of the tool, which knows its groups, tags, kind and permission.
            caller: The name of the caller.

        Raises:
            ValueError: If it cannot be read as a call.
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
class _AwaitableJob(Awaitable[Any]):
    """One call in a worker thread, to be awaited once. Dropping it abandons the call."""

    def __new__(cls, function: Callable[[Any], Any], argument: object) -> _AwaitableJob: ...
    def __await__(self) -> Generator[Any, None, Any]: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...

@final
class _Permissions:
    """The policy, approver, approvals and audit that a toolkit shares with its tools, and its listeners."""

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
    def time(self) -> float:
        """The time of the event, in seconds since 1970."""

    @property
    def data(self) -> dict[str, Any]:
        """The details, by their names.

        `call_start` has `arguments` as the model sent them, with secrets redacted, and `resumed`, which is true for a
        call that was pending; `chunk` has the `response`.
        `permission_request` has `arguments`, `rule`, `reason`, `kind` and, if the call is pending, its id in `pending`;
        `permission_result` has `decision`, `answer`, `rule`, `reason` and `by`. `error` has `error` and `message`, and
        `call_end` has `outcome`, `code`, `chunks` and `seconds`.
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

    Awaiting it gives the stream itself and runs nothing; iterating it runs the call. It has the interface of an async
    generator. Whoever stops reading before the end closes it, by `aclose` or by letting go of it, and the tool's
    generator is finalised at once.
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
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
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
    """Set how calls are traced; `toolcrib.tracing.configure` says what each of these means."""

def _resolve() -> None:
    """Resolve the objects of the package, once it is imported."""
