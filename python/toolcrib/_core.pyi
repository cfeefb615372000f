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
    "AwaitableJob",
    "DialectTool",
    "Event",
    "EventQueue",
    "Explanation",
    "NativeTool",
    "Policy",
    "RegisteredToolFunction",
    "Role",
    "Roles",
    "TaskBoard",
    "TextParser",
    "ToolCall",
    "ToolGroup",
    "ToolResponse",
    "ToolRoster",
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
    """Keep tools, tell a model about them, and call them.

    A toolkit may be used from several threads and event loops at once. It is always true, also when it is empty.

    Args:
        agent_skill_instruction: What stands before the skills in `get_agent_skill_prompt`; a text of toolcrib's if it
            is empty.
        agent_skill_template: What is said of each skill there: `{name}`, `{description}` and `{dir}` are filled in,
            `{{` and `}}` stand for braces. A text of toolcrib's if it is empty.
        arguments: What is done with the model's arguments before a tool runs: `"coerce"` converts by declared type
            and checks, `"check"` only checks, `"pass"` hands them on. A name that the schema does not show is always
            refused.
        errors: What becomes of a tool's exception: `"respond"` makes it a response, `"raise"` lets it through,
            `"compat"` does as AgentScope does: a function's error responds, a generator's is raised.
        run_in: Where synchronous tools run: `"thread"`, or `"inline"` on the event loop.
        repair: What is done about arguments that have to be mended before they are JSON or fit the schema: `"on"` mends
            them and tells so in the response's metadata, `"explain"` answers with what would have to be mended,
            `"off"` mends nothing. Never done where `arguments` is `"pass"`.
        policy: The rules that every call is judged by.
        approver: Who is asked about calls that need approval: called with an `ApprovalRequest`, in a worker thread
            unless it is a coroutine function, and answers `"once"`, `"run"`, `"always"`, `"no"` or `"cancel"`, a
            boolean, or an `Approval`. Without one, such a call ends with a pending value; see `resume`.
        approver_timeout: After how many seconds no answer is a no; None to wait as long as it takes.
        headless: Whether nobody can be asked, so that what would need approval is denied at once.
        approvals: What makes pending values and lets each be answered once; in memory if it is None.
        audit: Where every decision is noted before it takes effect: the path of a file that is appended to durably, a
            function that is called with a dictionary, or an object whose `write` is called with a line. A call whose
            decision cannot be noted does not run.

    Raises:
        ValueError: If an option has a value that is not listed here.
        SkillTemplateError: If the template has any other placeholder, or a single brace.

    Example:
        toolkit = Toolkit()
        toolkit.register_tool_function(add)
        response = await toolkit.call("add", a=1, b=2)
    """

    policy: Policy | None
    """The rules that every call is judged by; None if there are none."""
    approver: _Approver | None
    """Who is asked about calls that need approval; None if such a call ends with a pending value."""
    approver_timeout: float | None
    """After how many seconds no answer is a no; None to wait as long as it takes."""
    headless: bool
    """Whether nobody can be asked, so that what would need approval is denied at once."""
    audit: _AuditSink | None
    """Where every decision is noted before it takes effect; None if nowhere."""

    @property
    def approvals(self) -> Approvals:
        """What makes pending calls and lets each be answered once; in memory unless it was set."""

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
        """Make a callable a tool.

        What is passed in (a partial, a schema, a dictionary of presets) is copied and never changed, and a registration
        that fails changes nothing.

        Args:
            tool_func: A function, coroutine function, generator function, async generator function, method, partial,
                class or callable object. It may return or yield anything. What a partial has bound is preset.
            group_name: The group it belongs to, which must exist.
            preset_kwargs: Arguments that the developer decides: the model can neither see nor send them. They win over
                what a partial has bound.
            func_name: The name the model calls it by, instead of the callable's own.
            func_description: What the model is told, instead of the docstring's description, which an empty text keeps.
            json_schema: What the model is told, instead of what the signature and the docstring say:
                `{"type": "function", "function": {"name": ..., "parameters": {...}}}`. The name is always the
                tool's own. An empty dictionary means that the schema is derived.
            include_long_description: Whether the paragraphs after the docstring's first are told.
            include_var_positional: Whether the model may send `*args`, as a list under that name.
            include_var_keyword: Whether the model may send `**kwargs`, as an object under that name.
            postprocess_func: Called with the request block and each response, and awaited if it is asynchronous; a true
                result is delivered instead.
            namesake_strategy: What to do when the name is taken: `"raise"` refuses, `"skip"` keeps the old tool,
                `"override"` puts the new one in its place, `"rename"` adds a random ending of five characters.
            async_execution: Whether a call is answered at once and goes on in the background, in a task of the
                event loop that calls it; see `view_task`.
            run_in: Where it runs, instead of the toolkit's own choice: `"thread"`, `"inline"`, or `"process"` for an
                importable function that can be killed.
            timeout: After how many seconds a call is ended. A synchronous tool that runs inline cannot have one.
            groups: More groups that it belongs to, which must exist.
            tags: Words that views and rules choose it by.
            kind: What it does to the world; `"write"` is another word for `"edit"`, and None is `"other"`. The kinds
                `"read"`, `"search"`, `"fetch"` and `"think"` change nothing.
            permission: `"auto"`, or `"confirm"` if somebody has to agree to each call that no rule allows.
            secrets: The parameters whose values are shown as `***` in requests for approval, events and the audit.
            aliases: Other names of parameters that a model may use by mistake, each with the right one.

        Raises:
            TypeError: If `tool_func` cannot be called, or an option has the wrong type.
            ValueError: If an option has a value that is not listed here, or the callable has no signature to read.
            UnknownGroupError: If there is no such group.
            InvalidToolNameError: If the name is empty, or has a control character in it.
            DuplicateToolError: If the name is taken and the strategy is `"raise"`.
            NoFreeNameError: If every new name that was tried is taken.
            InvalidSchemaError: If `json_schema` does not describe a function.
            IncompleteSchemaError: If `json_schema` has no `parameters`, or no `properties` to take presets out of.
            UnsupportedTypeError: If a parameter's annotation has no JSON Schema, or one that no model could read.

        Example:
            toolkit.register_tool_function(search, preset_kwargs={"api_key": key}, timeout=10)
        """

    def remove_tool_function(self, tool_name: str, allow_not_exist: bool = True) -> None:
        """Take a tool out; calls that are running go on.

        Args:
            tool_name: The tool's name.
            allow_not_exist: Whether it may be missing.

        Raises:
            UnknownToolError: If there is no such tool and there must be one.
        """

    def create_tool_group(
        self,
        group_name: str,
        description: str,
        active: bool = False,
        notes: str | None = None,
    ) -> None:
        """Add a group, to register tools in and to switch on and off.

        Args:
            group_name: A name that is new; `basic` is taken by the group of all tools that name no other.
            description: What the group is for.
            active: Whether its tools are shown and may be called from the start.
            notes: How to use its tools; see `get_activated_notes`.

        Raises:
            DuplicateGroupError: If the name is taken.
        """

    def update_tool_groups(self, group_names: list[str], active: bool) -> None:
        """Switch groups on or off.

        A name that no group has is ignored; `basic` is always on, which a warning in the log `toolcrib` says.

        Args:
            group_names: The groups to switch; the others stay as they are.
            active: Whether they are on.

        Raises:
            TypeError: If `group_names` is not a list of strings.
        """

    def remove_tool_groups(self, group_names: str | list[str]) -> None:
        """Remove groups together with their tools.

        A name that no group has is ignored.

        Args:
            group_names: One name or several.

        Raises:
            TypeError: If `group_names` is neither a string nor a list of strings.
            BasicGroupError: If `basic` is among them; then nothing is removed.
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
        """Add a group together with its tools, or put it in the place of the one that has the id.

        A tool may be in several groups: one that is in others stays there as well, and can be called while any of its
        groups is active. Replacing a group is worth a warning in the log `toolcrib`; tools that only the old one held
        are taken out. A registration that fails changes nothing.

        Args:
            id: The group's id, which is its name everywhere else.
            description: What the group is for.
            tools: Names of registered tools, and callables to register.
            reserved: Whether nobody may register or unregister the id from now on.
            active: Whether its tools are shown and may be called.
            notes: How to use its tools; see `get_activated_notes`.

        Raises:
            ReservedGroupError: If the id is reserved, as `basic` always is.
            InvalidGroupError: If `tools` is not a list of such things, or there is no tool of a name.
            DuplicateToolError: If a callable has the name of a tool that another group holds.
            ToolcribError: If a callable cannot be a tool; see `register_tool_function`.
        """

    def unregister_group(self, id: str) -> None:
        """Take a group out, and with it the tools that no other group holds.

        Raises:
            ReservedGroupRemovalError: If the group is reserved, as `basic` always is.
            UnknownGroupError: If there is no such group.
        """

    def list_groups(self) -> list[dict[str, Any]]:
        """Describe all groups, `basic` first, then in the order they were created.

        Returns:
            For each a dictionary with `id`, `description`, `tools` (their names), `tool_count`, `reserved` and
            `active`.
        """

    def tool_group(self, name: str) -> str | None:
        """Name the group that was the latest to take a tool in, of those that hold it; None if none does."""

    def tool_groups_of(self, name: str) -> list[str]:
        """Name all groups that hold a tool, the latest to take it in last."""

    def is_tool_in_groups(self, name: str, ids: Iterable[str]) -> bool:
        """Say whether one of these groups holds a tool, be they active or not.

        Raises:
            TypeError: If `ids` is not a list of strings.
        """

    def all_group_ids(self) -> list[str]:
        """Name all groups, `basic` first, then in the order they were created."""

    def view(
        self,
        groups: Iterable[str] | None = None,
        names: Iterable[str] | None = None,
        exclude: Iterable[str] = (),
        tags: Iterable[str] | None = None,
        *,
        caller: str | None = None,
    ) -> ToolkitView:
        """Show a part of the toolkit: exactly what the view lists can be called through it.

        A view is live and cheap: it holds no tools, only what is chosen. A tool is chosen if everything holds that is
        asked; an empty list chooses nothing, and a name that nothing has chooses nothing until something has it.

        Args:
            groups: The groups whose tools are shown while they are active. `basic` is shown only if it is named.
            names: The tools that are shown.
            exclude: The tools that are not shown.
            tags: Tags of which a tool must carry one.
            caller: Who calls through the view, for policies and audits.

        Raises:
            TypeError: If one of the lists is not a list of strings.
        """

    def view_for(
        self, role: Role | str | None, roles: Roles | None = None, *, caller: str | None = None
    ) -> ToolkitView:
        """Show what a role may use: its groups, or the default ones if it names none.

        The view of a name follows the role: what is changed by `Roles.update` holds at once, and when the role is
        removed the view shows nothing. So does that of a name that no role has, and of None. The role `root` has
        exactly the group `org_management`.

        Args:
            role: The name of a role, or a role.
            roles: Where the name is looked up, and what groups are the default.
            caller: Who calls through the view; the role's name if it is not given.

        Raises:
            TypeError: If `role` is none of these.
        """

    def get_json_schemas(self, group_names: list[str] | None = None) -> list[dict[str, Any]]:
        """Describe the tools of all active groups, in the order they were registered.

        Args:
            group_names: The groups to describe besides `basic`, whether they are active or not.

        Returns:
            One `{"type": "function", "function": {...}}` for each tool. They are copies, yours to change.

        Raises:
            UnknownGroupError: If a name is not that of a group.
        """

    def get_json_schemas_bytes(self) -> bytes:
        """Give the same list as JSON text, which is kept until something changes."""

    def schemas(self, dialect: _Dialect, group_names: list[str] | None = None) -> DialectSchemas:
        """Describe the tools of all active groups in the dialect of a provider.

        What the dialect has no word for is encoded in what it has: a map as a list of entries, say, or a recursive
        part as JSON text. Pass the same dialect to `call_tool_function`, and the tool gets the original shape. What
        cannot be encoded is told in the descriptions and listed in the result's `report`.

        Args:
            dialect: `"openai"`, `"openai_strict"`, `"openai_responses"`, `"openai_responses_strict"`, `"anthropic"`,
                `"gemini"` (a list of function declarations) or `"mcp"`.
            group_names: The groups to describe besides `basic`, whether they are active or not.

        Returns:
            What the provider takes, one dict for each tool. They are copies, yours to change.

        Raises:
            UnknownDialectError: If there is no such dialect.
            UnknownGroupError: If a name is not that of a group.
        """

    def instructions(self, format: Literal["xml", "hermes", "function", "invoke", "fenced", "react"] = "xml") -> str:
        """Tell a model in words about the tools of all active groups, and how to write a call of one.

        Put it into the system prompt of a model that has no tool calling of its own. The same tools give the same text,
        byte for byte. What a tool says of itself cannot break the structure: markup in it is escaped.

        Args:
            format: How calls are written: `"xml"` with every value in CDATA, `"hermes"` as JSON in `<tool_call>`,
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
        """Join the notes of the active groups, or of those that are named, whether they are active or not.

        Args:
            group_names: The groups, whose notes come in the order the groups were created.

        Raises:
            UnknownGroupError: If a name is not that of a group.
        """

    def reset_equipped_tools(self, **kwargs: bool) -> ToolResponse:
        """Choose the tool groups to work with from now on.

        This is the meta tool: the groups that are named with True are switched on and all others off. Register it
        (`toolkit.register_tool_function(toolkit.reset_equipped_tools)`) and the model chooses its groups itself. Its
        schema has one boolean for each group and follows the groups.

        Args:
            **kwargs: A boolean for each group; a group that is left out is switched off.

        Returns:
            What is active now, with the notes of those groups. A name that no group has, and a value that is no
            boolean, are answered with the code `"invalid_arguments"`, and nothing changes.
        """

    @overload
    def set_extended_model(self, func_name: str, model: type[Any] | None) -> None: ...
    @overload
    def set_extended_model(self, *, finish_function_name: str, structured_model: type[Any] | None) -> None:
        """Add the fields of a pydantic model to what a tool asks the model for.

        They are sent to the function if it takes them, by name or by `**kwargs`; the model itself validates nothing,
        see `set_finish_function` for that.

        Args:
            func_name: The tool's name.
            model: A class, or None to take its fields away again.
            finish_function_name: Another spelling of `func_name`.
            structured_model: Another spelling of `model`.

        Raises:
            TypeError: If `model` is not a child class of `pydantic.BaseModel`.
            UnknownToolError: If there is no such tool.
            ExtendedModelError: If the model does not fit the tool; then nothing has changed.
        """

    def set_finish_function(self, name: str, model: type[Any] | None) -> None:
        """Let a tool end a conversation with the data that a pydantic model describes.

        The fields of the model are added to what the tool asks for, and validated at each call. Data that does not fit
        is answered in the stream with a text that begins `Arguments Validation Error: ` and the code
        `"invalid_arguments"`, and the function does not run. Otherwise it runs with the arguments it takes, and its
        last response has `is_last` and this `metadata`: `success`, `structured_output` (the validated data, as
        `model_dump` gives it) and `response_msg` (the function's own, or a message with the response's text).

        Args:
            name: The tool's name.
            model: A class, or None to make it a tool like any other again.

        Raises:
            TypeError: If `model` is not a child class of `pydantic.BaseModel`.
            UnknownToolError: If there is no such tool.
            ExtendedModelError: If the model does not fit the tool; then nothing has changed.

        Example:
            toolkit.set_finish_function("finish", Report)
        """

    def _tell_conflicts_late(self) -> None:
        """Raise for an extended model that does not fit only where the schema is read, from now on.

        That is in `get_json_schemas`, `get_json_schemas_bytes` and `extended_json_schema`, as in AgentScope. Until then
        the tool is called as if it had no model.
        """

    def clear(self) -> None:
        """Remove all tools and all groups but `basic`; skills and middlewares stay."""

    def register_agent_skill(self, skill_dir: str | PathLike[str]) -> None:
        """Add the skill in a folder: its `SKILL.md` says in YAML front matter the `name` and the `description`.

        Only the front matter is read, and it may have 64 KiB. Values are text as they are written: `1.10` stays `1.10`.

        Args:
            skill_dir: The folder, which is kept as it is given.

        Raises:
            SkillDirectoryError: If there is no such folder.
            SkillFileError: If it has no file `SKILL.md`.
            SkillFrontMatterError: If that does not begin with the two fields, or the name is not one line of text.
            DuplicateSkillError: If there is a skill of that name.

        Example:
            toolkit.register_agent_skill("skills/pdf")
        """

    def remove_agent_skill(self, name: str) -> None:
        """Take a skill out; a name that no skill has is only worth a warning in the log `toolcrib`."""

    def get_agent_skill_prompt(self) -> str | None:
        """Say what the agent should know about its skills, for the system prompt.

        Returns:
            The instruction, and the template filled in for each skill; None if there are no skills.
        """

    def state_dict(self) -> dict[str, list[str]]:
        """Say which groups are on, as AgentScope's sessions keep it.

        Returns:
            `{"active_groups": [...]}`, with the names in the order the groups were created.
        """

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Switch on the groups that a state lists, and all others off; names that no group has are ignored.

        Args:
            state_dict: What `state_dict` gave.
            strict: Whether other keys than `active_groups` are refused.

        Raises:
            InvalidStateError: If it is no such state; then nothing changes.
        """

    def save(self, path: str | PathLike[str]) -> None:
        """Keep the groups in a file: names, descriptions, notes, order, and which are on.

        The file is replaced in one step: whoever reads it, also after a crash, finds the old state or the new one. Of
        several that save at once the last wins. Tools and skills are not saved; register them anew.

        Args:
            path: The file. A symbolic link is written through. A file that is there keeps its permissions, a new one is
                for its owner only.

        Raises:
            FileAccessError: If the system refuses; the old state is still there.
            FileTooLargeError: If the state has more than 16 MiB.
        """

    def load(self, path: str | PathLike[str]) -> None:
        """Make the groups what they were when the file was saved, in the order they had.

        A group that is not there is created, and one that is not in the file is switched off; tools stay. Nothing
        changes if the file cannot be used.

        Args:
            path: A file that `save` wrote.

        Raises:
            MissingFileError: If there is no such file.
            FileAccessError: If the system refuses.
            ForeignFileError: If it is not a file that `save` wrote.
            DamagedFileError: If it is not as it was written.
            NewerFileError: If a newer toolcrib wrote it.
            FileTooLargeError: If it has more than 16 MiB.
        """

    def register_middleware(self, middleware: Middleware) -> None:
        """Put a middleware around every call, inside of those registered before.

        It is called with `{"tool_call": block}` and with a handler: `next_handler(**kwargs)` gives the stream of what
        is further in. The middlewares of a call are those that the toolkit has when the call starts.

        Args:
            middleware: An async generator function, or anything that returns a stream or a response, directly or when
                awaited.

        Raises:
            TypeError: If it cannot be called.

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
        """Say what would become of a call; nothing runs, nobody is asked, and nothing is noted.

        Args:
            tool_call: The request, as `call_tool_function` takes it.

        Returns:
            `would` is `"run"`, `"ask"`, `"pending"`, `"deny"`, or `"refuse"` where the request itself is wrong. Beside
            it are the `tool`, the `decision` of the rules with its `rule` and `reason`, what would be decided without
            shadow mode as `shadowed`, the `code` of the refusal, and the `problems` of the arguments as a text.

        Raises:
            TypeError: If `tool_call` can be no call at all.
        """

    def end_run(self) -> None:
        """Forget what was allowed for this run: everything is asked about again."""

    def resume(
        self,
        pending: Mapping[str, Any] | str,
        answer: _Answer | Approval,
        arguments: Mapping[str, Any] | None = None,
        *,
        by: str | None = None,
    ) -> ToolStream:
        """Go on with a call that ended with a pending value, once and in any process that shares the approvals.

        Nothing runs before the first step, which also uses the pending value up: an exception for a value that is
        expired, altered or used comes from there. Middlewares are around the call as around any other; whatever they
        make of the request, what was approved runs.

        Args:
            pending: What was in the response's `metadata["pending"]`, or its JSON text.
            answer: `"once"`, `"run"`, `"always"`, `"no"`, `"cancel"`, a boolean, or an `Approval`.
            arguments: What to run it with instead; checked against the schema and the rules again.
            by: Who answered, for the audit.

        Raises:
            InvalidPendingError: If `pending` is no pending value.
            InvalidAnswerError: If `answer` is none. Edited arguments that do not fit raise it in the first step, before
                anything is used up.
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
    def _tasks(self) -> TaskBoard: ...
    def _find_tool(self, name: str) -> RegisteredToolFunction | None: ...
    def _find_group(self, name: str) -> ToolGroup | None: ...
    def _all_tools(self) -> dict[str, RegisteredToolFunction]: ...
    def _all_groups(self) -> dict[str, ToolGroup]: ...
    def _find_skill(self, name: str) -> AgentSkill | None: ...
    def _all_skills(self) -> dict[str, AgentSkill]: ...

@final
class NativeTool:
    """A tool that is Rust code.

    Register it like a function: `toolkit.register_tool_function(tools.wait)`. Its parameters have a schema of their
    own, so that it is listed, checked, decided about, cancelled and traced like any other tool. It runs on a runtime of
    its own, in threads that never hold Python's lock, and its responses reach the event loop in batches.

    Native tools come with toolcrib, in `toolcrib.tools`; Rust programs write their own with the crate.
    """

    @property
    def name(self) -> str:
        """The name that it is registered under if no other is given."""
    @property
    def description(self) -> str | None:
        """What the model is told about it."""
    @property
    def json_schema(self) -> dict[str, Any]:
        """The schema that the model is told, as a copy."""
    @property
    def permission(self) -> Literal["auto", "confirm"]:
        """Whether each call must be confirmed if no rule says otherwise: `"auto"` or `"confirm"`."""
    @property
    def is_streaming(self) -> bool:
        """Whether it gives a stream of responses, or one."""
    def __call__(self, /, **arguments: Any) -> Any:
        """Call the tool without a toolkit: nothing is checked against its schema, and nobody is asked.

        Args:
            **arguments: JSON values, by the names in the schema.

        Returns:
            An async iterator of responses if the tool streams, otherwise an awaitable of its one response. Nothing runs
            before that is awaited; closing or dropping it ends the tool.

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

    It is made by registering and cannot be changed; register it anew with `"override"` instead.
    """

    @property
    def name(self) -> str:
        """The name a model calls it by."""

    @property
    def groups(self) -> list[str]:
        """The names of all groups it belongs to, in the order they took it in."""

    @property
    def group(self) -> str:
        """The name of the group it belongs to: the first, if it is in several."""

    @property
    def tags(self) -> list[str]:
        """What views can choose it by, besides groups and names."""

    @property
    def source(self) -> Literal["function"]:
        """Where it comes from."""

    @property
    def original_func(self) -> Callable[..., Any]:
        """What was registered, without the partial around it."""

    @property
    def json_schema(self) -> dict[str, Any]:
        """What the model is told without an extended model, as a copy."""

    @property
    def extended_model(self) -> type[Any] | None:
        """The model whose fields are added to the schema; see `Toolkit.set_extended_model`."""

    @property
    def extended_json_schema(self) -> dict[str, Any]:
        """What the model is told, with the fields of the extended model and, for the meta tool, its groups: a copy."""

    @property
    def preset_kwargs(self) -> dict[str, Any]:
        """The arguments that the model cannot see, what a partial has bound included, as a copy."""

    @property
    def original_name(self) -> str | None:
        """The callable's own name, if the tool has another one."""

    @property
    def mcp_name(self) -> str | None:
        """The name of the MCP client whose server offers it."""

    @property
    def postprocess_func(self) -> Callable[[Any, ToolResponse], Any] | None:
        """What is called with each response."""

    @property
    def run_in(self) -> Literal["thread", "inline", "process"]:
        """Where it runs; asynchronous tools run on the caller's event loop, which is `"inline"`."""

    @property
    def timeout(self) -> float | None:
        """After how many seconds a call is ended."""

    @property
    def async_execution(self) -> bool:
        """Whether a call is answered at once and goes on in the background."""

    @property
    def kind(self) -> _Kind:
        """What it does to the world."""

    @property
    def permission(self) -> Literal["auto", "confirm"]:
        """Whether it runs by itself or somebody has to agree, if no rule says otherwise."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The parameters whose values are shown to nobody but the tool."""

    @property
    def aliases(self) -> dict[str, str]:
        """Other names of parameters, each with the name it stands for, as a copy."""

    def call(
        self,
        *,
        arguments: Mapping[str, Any] | str | None,
        stream_print: Callable[[ToolResponse], Any] | None = None,
    ) -> ToolStream:
        """Call this tool, whether its group is on or not.

        Middlewares of the toolkit take no part in it.

        Args:
            arguments: What a model would send: presets cannot be overridden here either.
            stream_print: Called with each response as it passes, and awaited if it is asynchronous.

        Raises:
            TypeError: If `stream_print` cannot be called.

        Example:
            async for response in toolkit.tools["add"].call(arguments={"a": 1, "b": 2}):
                print(response.text)
        """

@final
class ToolkitView:
    """Show a part of a toolkit: exactly what it lists can be called through it.

    A view is made by `Toolkit.view` and `Toolkit.view_for`. It is live: what is registered, removed or switched later
    shows at once. It is always true, also when it shows nothing.
    """

    @property
    def toolkit(self) -> Toolkit:
        """The toolkit that it shows a part of."""

    @property
    def caller(self) -> str | None:
        """Who calls through it."""

    @property
    def tools(self) -> Mapping[str, RegisteredToolFunction]:
        """The tools it shows by name, in the order they were registered; live."""

    @property
    def groups(self) -> Mapping[str, ToolGroup]:
        """The groups it shows by name, in the order they were created, without `basic`; live."""

    def get_json_schemas(self) -> list[dict[str, Any]]:
        """Describe the tools it shows, in the order they were registered.

        Returns:
            One `{"type": "function", "function": {...}}` for each tool. They are copies, yours to change.
        """

    def schemas(self, dialect: _Dialect) -> DialectSchemas:
        """Describe the tools it shows in the dialect of a provider, as `Toolkit.schemas` does.

        Args:
            dialect: The name of the dialect.

        Raises:
            UnknownDialectError: If there is no such dialect.
        """

    def get_json_schemas_bytes(self) -> bytes:
        """Give the same list as JSON text, which is kept until something changes."""

    def instructions(self, format: Literal["xml", "hermes", "function", "invoke", "fenced", "react"] = "xml") -> str:
        """Tell a model in words about the tools it shows, and how to write a call of one; see `Toolkit.instructions`.

        Args:
            format: How calls are written: `"xml"`, `"hermes"`, `"function"`, `"invoke"`, `"fenced"` or `"react"`.

        Raises:
            ValueError: If there is no such format.
        """

    def get_activated_notes(self) -> str:
        """Join the notes of the active groups it shows, each under the heading `## About Tool Group '<name>'`."""

    def view(
        self,
        groups: Iterable[str] | None = None,
        names: Iterable[str] | None = None,
        exclude: Iterable[str] = (),
        tags: Iterable[str] | None = None,
        *,
        caller: str | None = None,
    ) -> ToolkitView:
        """Show a part of what this view shows; see `Toolkit.view`.

        Args:
            groups: The groups whose tools are still shown.
            names: The tools that are still shown.
            exclude: The tools that are not shown.
            tags: Tags of which a tool must carry one.
            caller: Who calls through the view; the same as through this one if it is not given.

        Raises:
            TypeError: If one of the lists is not a list of strings.
        """

    def reset_equipped_tools(self, **kwargs: bool) -> ToolResponse:
        """Choose the tool groups to work with from now on, among those that the view shows; see `Toolkit`."""

    def __contains__(self, name: object, /) -> bool:
        """Whether a tool of this name can be called through it now."""

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
        """Say what would become of a call through the view; see `Toolkit.check`."""

    def resume(
        self,
        pending: Mapping[str, Any] | str,
        answer: _Answer | Approval,
        arguments: Mapping[str, Any] | None = None,
        *,
        by: str | None = None,
    ) -> ToolStream:
        """Go on with a pending call of this view's caller; see `Toolkit.resume`."""

    def _admit(self, name: str) -> RegisteredToolFunction | ToolResponse: ...
    def _find_tool(self, name: str) -> RegisteredToolFunction | None: ...
    def _find_group(self, name: str) -> ToolGroup | None: ...
    def _all_tools(self) -> dict[str, RegisteredToolFunction]: ...
    def _all_groups(self) -> dict[str, ToolGroup]: ...

@final
class Role:
    """A role: a prompt, and the groups that whoever has it may use.

    Args:
        name: The name, unique among the roles.
        prompt: What an agent in this role is told.
        tool_groups: The groups it may use: None for the default, an empty list for none.
        details: Everything else that its record says, in JSON's types.

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
        """What an agent in this role is told."""

    @property
    def tool_groups(self) -> list[str] | None:
        """The groups it may use: None for the default, an empty list for none."""

    @property
    def details(self) -> dict[str, Any]:
        """Everything else that its record says, as a copy."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Roles:
    """Roles by name, in the order they were added.

    Who has a role that is not here sees nothing. They may be used from several threads at once.

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
        """Change a role; views that were made for its name follow.

        Args:
            name: The role's name.
            prompt: What an agent in this role is told from now on.
            tool_groups: The groups it may use from now on: None for the default, an empty list for none.

        Returns:
            The role as it is now. What is left out stays as it was.

        Raises:
            UnknownRoleError: If there is no such role.
            SystemRoleError: If the name is `root`.
            TypeError: If `tool_groups` is not a list of strings.
        """

    def remove(self, name: str) -> Role:
        """Take a role away: who has it sees nothing from now on.

        Returns:
            The role that was there.

        Raises:
            UnknownRoleError: If there is no such role.
            SystemRoleError: If the name is `root`.
        """

    def save(self, path: str | PathLike[str]) -> None:
        """Keep the roles in a JSON file.

        The file is replaced in one step: whoever reads it, also after a crash, finds the old roles or the new ones.
        What the file that was loaded had beside the roles in use is written again.

        Raises:
            FileAccessError: If the system refuses, as an `OSError` says.
            FileTooLargeError: If the file would have more than 16 MiB.
        """

    def load(self, path: str | PathLike[str], *, strict: bool = True) -> list[str]:
        """Put the roles of a file in the place of all roles; views that were made for a name follow.

        Args:
            path: The file.
            strict: Whether a record that is no role is an error. Otherwise it is passed over: who has that role sees
                nothing.

        Returns:
            What is wrong with the records that were passed over.

        Raises:
            RoleFileError: If it is no file of roles; the text names each record and field. Then nothing has changed.
            MissingFileError: If there is no such file.
            FileAccessError: If the system refuses, as an `OSError` says.
            FileTooLargeError: If it has more than 16 MiB.
        """

    def __contains__(self, name: object, /) -> bool: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __iter__(self) -> Iterator[str]:
        """Go through the names, in the order the roles were added."""

@final
class ToolRoster:
    """Groups of tool definitions: plain data that is copied in and out.

    It may be used from several threads at once.
    """

    def __new__(cls) -> ToolRoster: ...
    def register(self, id: str, definition: Any, *, reserved: bool = False) -> bool:
        """Add a group, or put it in the place of the one that has the id.

        Args:
            id: The group's id.
            definition: A dictionary with a list `tools` of definitions and perhaps a `description`. Of several
                definitions of one name the last is kept; those without a name are passed over.
            reserved: Whether nobody may register or unregister the id from now on.

        Returns:
            Whether there was a group of that id.

        Raises:
            ReservedGroupError: If the id is reserved, whatever the definition.
            InvalidGroupError: If the definition is none.
        """

    def unregister(self, id: str) -> None:
        """Take a group out.

        Raises:
            ReservedGroupRemovalError: If the group is reserved.
            UnknownGroupError: If there is no such group.
        """

    def update(self, id: str, tools: Any) -> None:
        """Give a group, reserved or not, other tools.

        Raises:
            UnknownGroupError: If there is no such group.
            InvalidGroupError: If `tools` is not a list of definitions.
        """

    def reserve(self, id: str) -> None:
        """Keep the id of a group from being registered or unregistered from now on.

        Raises:
            UnknownGroupError: If there is no such group.
        """

    def definitions(self, ids: Iterable[str]) -> builtins.list[dict[str, Any]]:
        """Give the definitions of these groups in the order of the ids, each name once as the first of them defines it.

        Ids that no group has are passed over.
        """

    def list(self) -> builtins.list[dict[str, Any]]:
        """Describe all groups in their order.

        Returns:
            For each a dictionary with `id`, `description`, `tools` (their names), `tool_count` and `reserved`.
        """

    def get(self, id: str) -> dict[str, Any] | None:
        """Describe one group; None if there is none."""

    def holder(self, name: str) -> str | None:
        """Name the group that was the latest to take a tool in, of those that hold it."""

    def holders(self, name: str) -> builtins.list[str]:
        """Name all groups that hold a tool, the latest to take it in last."""

    def is_in(self, name: str, ids: Iterable[str]) -> bool:
        """Say whether one of these groups holds a tool."""

    def ids(self) -> builtins.list[str]:
        """Name all groups in their order."""

    def tool_names(self) -> builtins.list[str]:
        """Name all tools, each once, in the order of the groups."""

    def is_reserved(self, id: str) -> bool:
        """Say whether an id is reserved."""

    def __contains__(self, id: object, /) -> bool: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...

@final
class ToolGroup:
    """A named set of tools that is on or off.

    The groups in `Toolkit.groups` are live: what is set here takes effect in the toolkit. One that you make yourself
    belongs to no toolkit.

    Args:
        name: The name, unique in its toolkit.
        active: Whether its tools are shown and may be called.
        description: What the group is for.
        notes: How to use its tools.
    """

    __hash__: None  # type: ignore[assignment]
    active: bool
    """Whether its tools are shown and may be called."""
    description: str
    """What the group is for."""
    notes: str | None
    """How to use its tools; see `Toolkit.get_activated_notes`."""

    def __new__(cls, name: str, active: bool, description: str, notes: str | None = None) -> ToolGroup: ...
    @property
    def name(self) -> str:
        """The name, unique in its toolkit."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@disjoint_base
class ToolResponse:
    """One chunk of what a tool call gives.

    Two responses are equal if their first six fields are, also if one of them is AgentScope's.

    Args:
        content: Blocks, in the order they are shown to the model.
        metadata: Anything for the program, which the model does not see. A tool's value that is not text is kept under
            `"value"`, what was mended in the arguments is told under `"repairs"`.
        stream: Whether more of the same is to come.
        is_last: Whether this is the last response of its call.
        is_interrupted: Whether the call was cancelled.
        id: A text that no other response has; by default the time and six random digits.
        code: Why the call did not go well: `"bad_call"`, `"unknown_tool"`, `"inactive_group"`, `"invalid_arguments"`,
            `"tool_not_available"`, `"failed"`, `"interrupted"`, `"timeout"`, `"denied"`, `"pending"` or
            `"cancelled"`, and of a task in the background `"unknown_task"`,
            `"task_running"` or `"task_finished"`; None if it did.

    Example:
        ToolResponse([TextBlock(type="text", text="done")])
    """

    __hash__: None  # type: ignore[assignment]
    content: list[_Block]
    """Blocks, in the order they are shown to the model."""
    metadata: dict[str, Any] | None
    """Anything for the program, which the model does not see."""
    stream: bool
    """Whether more of the same is to come."""
    is_last: bool
    """Whether this is the last response of its call."""
    is_interrupted: bool
    """Whether the call was cancelled."""
    id: str
    """A text that no other response has."""
    code: str | None
    """Why the call did not go well; None if it did."""

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
        """All text blocks, one to a line."""

    @property
    def ok(self) -> bool:
        """Whether the call went well: it has no code and was not interrupted."""

    def to_openai(self, call: ToolCall | Mapping[str, Any] | str | Dumped | None = None) -> dict[str, Any]:
        """Give the message with the role `tool` of OpenAI's chat completions, which holds text only.

        Args:
            call: The call that this answers, in any form, or its id.

        Raises:
            TypeError: If `call` is missing, or can be no call.
            ValueError: If `call` has no id.
        """

    def to_openai_responses(self, call: ToolCall | Mapping[str, Any] | str | Dumped | None = None) -> dict[str, Any]:
        """Give the item that answers a call of OpenAI's responses.

        Args:
            call: The call that this answers, in any form, or its id.

        Raises:
            TypeError: If `call` is missing, or can be no call.
            ValueError: If `call` has no id.
        """

    def to_anthropic(self, call: ToolCall | Mapping[str, Any] | str | Dumped | None = None) -> dict[str, Any]:
        """Give Anthropic's `tool_result` block.

        Args:
            call: The call that this answers, in any form, or its id.

        Raises:
            TypeError: If `call` is missing, or can be no call.
            ValueError: If `call` has no id.
        """

    def to_gemini(
        self, call: ToolCall | Mapping[str, Any] | str | Dumped | None = None, *, name: str | None = None
    ) -> dict[str, Any]:
        """Give Gemini's `functionResponse` part.

        Args:
            call: The call that this answers, in any form, or its id.
            name: The tool's name, where `call` does not say it.

        Raises:
            TypeError: If neither says which tool it was, or `call` can be no call.
        """

    def to_mcp(self) -> dict[str, Any]:
        """Give MCP's `CallToolResult`.

        The value itself is `structuredContent`, where there is one.
        """

    def to_xml(self, call: ToolCall | Mapping[str, Any] | object | None = None, *, name: str | None = None) -> str:
        """Give the element `tool_result` for a model that writes its calls in XML; see `format_tool_result`.

        Args:
            call: The call that this answers, in any form.
            name: The tool's name, where `call` does not say it.

        Raises:
            TypeError: If neither says which tool it was.
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __setstate__(self, state: dict[str, Any], /) -> None: ...

@final
class ToolCall(Mapping[str, Any]):
    """What a model asked for, from any format.

    It reads like the block that it stands for: `call["name"]`, `dict(call)`. `read` makes one of what a provider or a
    model gave; a call may also be made by hand.

    Args:
        name: The tool's name.
        arguments: The arguments, which JSON must have words for.
        id: What the model or its provider calls this call.
        raw: What the model wrote, where it came as text.
        error: Why the call cannot be run. A toolkit answers such a call with the code `bad_call`.
        repairs: What was mended to read it.
        format: The name of the format it was written in.
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
        """Read the call that something is, or holds.

        What cannot be read gives a call with an `error`, which a toolkit answers with the code `bad_call`.

        Args:
            x: A block or call of any provider, as a dictionary, as JSON text or as the object of a library; or text
                with a call in it.
            format: Which of the formats it is, where that is known: `"anthropic"`, `"openai"`, `"openai_responses"`,
                `"gemini"`, `"mcp"` or `"bare"`.
            tools: The toolkit or view whose tools are called; the values in text are then read by their declared types,
                and guessed otherwise.

        Raises:
            TypeError: If `x` can be nothing of that kind, or `tools` is neither a toolkit nor a view.
            ValueError: If `format` is unknown.
        """

    @staticmethod
    def read_all(x: object, *, format: str | None = None, tools: Toolkit | ToolkitView | None = None) -> list[ToolCall]:
        """Read all calls of a message, of a list of blocks, or of a whole answer. What is no call is passed over.

        Args:
            x: As for `read`, or a list of that.
            format: Which of the text formats to look for, where that is known.
            tools: As for `read`.

        Raises:
            TypeError: If `x` can be nothing of that kind, or `tools` is neither a toolkit nor a view.
        """

    @property
    def id(self) -> str | None:
        """What the model or its provider calls this call."""

    @property
    def name(self) -> str:
        """The tool's name."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments, as a copy."""

    @property
    def raw(self) -> str | None:
        """What the model wrote, where it came as text."""

    @property
    def error(self) -> str | None:
        """Why the call cannot be run; None if it can."""

    @property
    def repairs(self) -> list[dict[str, str]]:
        """What was mended to read it: dictionaries with `what`, `at` and `text`."""

    @property
    def format(self) -> str:
        """The name of the format it was written in."""

    @property
    def is_truncated(self) -> bool:
        """Whether something is missing at the end, so that the arguments may be only a part of what was meant."""

    @property
    def has_duplicate_keys(self) -> bool:
        """Whether an object had a key twice."""

    def to_block(self) -> ToolUseBlock:
        """Give the call as a `ToolUseBlock`."""

    def __getitem__(self, key: str, /) -> Any: ...
    def get(self, key: str, default: Any = None) -> Any:
        """Give what the block has under a key, or a default."""

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
    """Read the arguments of one call as they arrive.

    Each piece is looked at once, so that all of them together take time in proportion to their length.

    Args:
        name: The name of the tool that they are for.
        id: The id of the call.

    Example:
        reader = ArgumentReader("weather")
        reader.feed('{"city": "Be')
        reader.partial  # {'city': 'Be'}
    """

    def __new__(cls, name: str = "", id: str | None = None) -> ArgumentReader: ...
    def feed(self, delta: str) -> None:
        """Take the next piece."""

    @property
    def partial(self) -> dict[str, Any]:
        """What can be shown so far: values that are complete, and strings as far as they go.

        Asking takes time in proportion to what has arrived.
        """

    @property
    def text(self) -> str:
        """What has arrived."""

    @property
    def is_complete(self) -> bool:
        """Whether the object is complete."""

    def finish(self) -> ToolCall:
        """Read all that has arrived, mended where it is no JSON.

        Returns:
            The call, under the name and the id that the reader was made with.
        """

@final
class TextParser:
    """Read the tool calls in the text of a model, as it comes.

    Args:
        format: How the calls are written: `"xml"`, `"hermes"`, `"function"`, `"invoke"`, `"fenced"`, `"react"`, or
            `"auto"` for whichever the first call is written in.
        tools: The toolkit or view whose tools are called; values are then read by their declared types, and guessed
            otherwise.
        compat: Whether XML is read as ArtifactFlow reads it: code fences do not count, values are guessed, and what is
            wrong is dropped.
        fallback: Whether compatible reading searches a block that is not XML for what looks like a call.

    Raises:
        ValueError: If `format` is unknown, or another than `"auto"` and `"xml"` is to be read in the compatible way.
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
        """Take the next piece of the message.

        Args:
            text: What came; it may be cut anywhere.

        Returns:
            What is certain by now, in order: prose, and calls that are complete. A call that cannot be read has an
            `error`.
        """

    def finish(self) -> list[str | ToolCall]:
        """End the message. What is fed afterwards is another one.

        Returns:
            What is left. A call that the text ends in is one with an `error`.
        """

    @property
    def report(self) -> dict[str, Any]:
        """What has been found out about the message.

        Its `format` and `why` it is that one, `at` which line and column that was seen, how many `calls` there were,
        and how many were `passed_over` because they stand in code, quotes, thoughts or
        comments; `stopped` says why no more were looked for, if so.
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
        text: What the model wrote.
        format: How the calls are written; see `TextParser`.
        tools: The toolkit or view whose tools are called.
        compat: Whether XML is read as ArtifactFlow reads it.
        fallback: Whether compatible reading searches a block that is not XML for what looks like a call.

    Returns:
        The calls in order. One that cannot be read has an `error`.

    Raises:
        ValueError: If `format` is unknown, or another than `"auto"` and `"xml"` is to be read in the compatible way.
        TypeError: If `tools` is neither a toolkit nor a view.
    """

def format_tool_result(
    name: str,
    result: ToolResponse | dict[str, Any],
    *,
    format: Literal["xml", "hermes", "function", "invoke", "fenced", "react"] = "xml",
) -> str:
    """Write what a call gave, for a model that has no tool calling of its own.

    Everything is shown, also `0` and `False`, and lists in lists as elements. The content is escaped, so that nothing
    in it can pass for a tool call, for the end of the result, or for an instruction of the program.

    Args:
        name: The tool's name.
        result: A `ToolResponse`, or a dictionary with `success`, `data` and `error`, of which each may be missing.
        format: How the model writes calls; the result is written in the form that belongs to it.

    Raises:
        TypeError: If `result` is neither.
        ValueError: If there is no such format.

    Example:
        text = format_tool_result("add", await toolkit.call("add", a=1, b=2))
    """

def _format_plain_result(name: str, result: dict[str, Any]) -> str:
    """Write what a call gave without escaping anything, as ArtifactFlow does."""

def _frame_instructions(format: str, documents: list[str]) -> str:
    """Put texts about tools between what a model must know about calls."""

def _write_call(format: str, name: str, arguments: dict[str, Any]) -> str:
    """Write a call as a model is to write it."""

def _as_response(*value: object) -> ToolResponse:
    """Make a response of what a tool gave, as a stream does; nothing gives one without content."""

@final
class DialectTool:
    """A tool in the dialect of a provider; `Toolkit.schemas` makes them."""

    @property
    def name(self) -> str:
        """The name that the provider is told."""

    @property
    def tool_name(self) -> str:
        """The name that the tool has in its toolkit."""

    @property
    def report(self) -> list[tuple[str, str, str]]:
        """What the dialect cannot say: where, what, and how the model is told instead."""

    def decode(self, arguments: dict[str, Any] | str) -> dict[str, Any]:
        """Bring arguments that a model sent to the shape that the tool expects.

        Args:
            arguments: A dict, or its JSON text.

        Raises:
            UnreadableArgumentsError: If they cannot be brought back.
        """

    def encode(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Bring arguments of the tool to the shape in which a model sends them.

        Args:
            arguments: What the tool would be called with, as JSON has it.
        """

@final
class TaskBoard:
    """What a toolkit runs in the background and what came of it.

    A task is an `asyncio.Task`, an outcome is a response or an exception.
    """

    def start(self, task_id: str, task: Task[ToolResponse]) -> None:
        """Note that a task runs."""

    def finish(self, task_id: str, outcome: ToolResponse | Exception) -> None:
        """Note what a task came to. Nothing is kept of a task that was cancelled."""

    def forget(self, task_id: str) -> None:
        """Note that a task has come to its end without an outcome."""

    def lose(self, task_id: str) -> None:
        """Note that a task will not come to its end, because its event loop is closed."""

    def fetch(self, task_id: str) -> ToolResponse | Exception:
        """Take the outcome of a task, or say why there is none."""

    def cancel(self, task_id: str) -> tuple[Task[ToolResponse] | None, ToolResponse]:
        """Give the task to cancel, if there is one, and say so."""

    @staticmethod
    def still_running(task_id: str, seconds: str) -> ToolResponse:
        """Say that somebody has waited long enough."""

    @staticmethod
    def cancelled(task_id: str) -> ToolResponse:
        """Say that a task was cancelled while somebody waited for it."""

    def task(self, task_id: str) -> Task[ToolResponse] | None:
        """Find a running task."""

    def tasks(self) -> dict[str, Task[ToolResponse]]:
        """List the running tasks."""

    def leaving(self) -> dict[str, Task[ToolResponse]]:
        """List the tasks that are cancelled, but not yet at their end."""

    def outcome(self, task_id: str) -> ToolResponse | None:
        """Look at an outcome that nobody has fetched."""

    def outcomes(self) -> dict[str, ToolResponse]:
        """List the outcomes that nobody has fetched."""

    def limit(self, count: int, age: float) -> None:
        """Set how many outcomes are kept, and for how many seconds."""

@final
class Approvals:
    """Make pending calls, and let each of them be answered once.

    It may be shared by toolkits and threads. Two of them on one folder, in one process or in several, are as good as
    one.

    Args:
        path: The folder that keeps the key and what was answered, so that pending calls survive a restart; made if its
            parent is there. None keeps everything in memory.
        ttl: After how many seconds an answer does not count any more.

    Raises:
        ValueError: If `ttl` is not positive.
        FileAccessError: If the system refuses.
        DamagedFileError: If the key in the folder is none.
    """

    def __new__(cls, path: str | PathLike[str] | None = None, ttl: float = 3600) -> Approvals: ...
    @property
    def path(self) -> Path | None:
        """The folder that survives a restart; None if nothing does."""

    @property
    def ttl(self) -> float:
        """After how many seconds an answer does not count any more."""

@disjoint_base
class Policy:
    """Rules, and what to do where none of them says anything.

    Rules are tried by tier, then by priority; of equal ones those that deny go first, then those that ask. Below all
    rules a tool with `permission="confirm"` asks, and below that is the default; the stricter of the two holds. A
    policy may be shared by toolkits and threads, and changed at any time.

    Args:
        rules: `Rule` objects, or dictionaries of their fields.
        default: What to do where no rule says anything: `"allow"`, `"ask"` or `"deny"`.
        shadow: Whether it only records what it would do; see `shadowed`.

    Raises:
        ValueError: If `default` is no decision.
        InvalidRuleError: If one of the rules is none.
        DuplicateRuleError: If two rules have the same id.

    Example:
        Policy([Rule("deny", tool="shell_*"), Rule("ask", kind=["edit", "delete"])], default="allow")
    """

    default: Literal["allow", "ask", "deny"]
    """What is done where no rule says anything: `"allow"`, `"ask"` or `"deny"`."""
    shadow: bool
    """Whether the policy only records what it would do; a tool that asks by itself still does."""

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

        What is wrong with one is told in `problems`, and opens nothing.

        Args:
            default: The file of the program's own rules.
            project: The file of the project's rules.
            user: The file of the user's rules, which is also where an answer `"always"` is saved.
            admin: The file of the machine's rules, which go before all others.
            otherwise: What to do where no rule says anything.
            optional: Whether files may be missing.

        Raises:
            ValueError: If `otherwise` is no decision.
        """

    def reload(self) -> bool:
        """Read the files again; if anything is wrong with them, the rules stay as they are.

        Returns:
            Whether the rules are those of the files now; `problems` says why not.
        """

    def add(self, rule: Rule | Mapping[str, Any]) -> str:
        """Add a rule.

        Args:
            rule: A `Rule`, or a dictionary of its fields.

        Returns:
            Its id, which is made if it has none.

        Raises:
            InvalidRuleError: If it is no rule; then nothing changes.
            DuplicateRuleError: If another one has its id; then nothing changes.
        """

    def remove(self, id: str) -> bool:
        """Take a rule out; false if no rule has the id."""

    @property
    def rules(self) -> list[dict[str, Any]]:
        """The rules in the order in which they are tried, as dictionaries of their fields."""

    @property
    def problems(self) -> list[str]:
        """What is wrong with the files, one text for each fault with its file, rule and reason."""

    @property
    def shadowed(self) -> list[dict[str, Any]]:
        """What would have been decided without shadow mode: the last thousand times that was something else."""

    def explain(self, call: object, *, toolkit: Toolkit | None = None, caller: str | None = None) -> Explanation:
        """Say what every rule makes of a call, and which one decides.

        Whether there is such a tool, `Toolkit.check` says.

        Args:
            call: The request, in any form that `ToolCall.read` understands.
            toolkit: Where the tool is registered, so that its groups, tags, kind and permission are known.
            caller: Who calls.

        Raises:
            ValueError: If it cannot be read as a call.
        """

@final
class Explanation:
    """Why a call is decided as it is, rule by rule."""

    @property
    def decision(self) -> Literal["allow", "ask", "deny"]:
        """What is decided: `"allow"`, `"ask"` or `"deny"`."""

    @property
    def rule(self) -> str | None:
        """The id of the rule that decides; None if the tool's own permission or the default does."""

    @property
    def reason(self) -> str:
        """Why."""

    @property
    def shadowed(self) -> Literal["allow", "ask", "deny"] | None:
        """What would be decided if nothing were in shadow mode; None if it is the same."""

    @property
    def tried(self) -> list[dict[str, Any]]:
        """Every rule in the order in which it is tried, and what came of it."""

@final
class AwaitableJob(Awaitable[Any]):
    """One call in a worker thread, to be awaited once. Dropping it abandons the work."""

    def __new__(cls, function: Callable[[Any], Any], argument: object) -> AwaitableJob: ...
    def __await__(self) -> Generator[Any, None, Any]: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...

@final
class _Permissions:
    """The policy, approver, approvals and audit that a toolkit shares with its tools, and its listeners."""

    def __new__(cls) -> _Permissions: ...
    def listen(self, types: Sequence[str] | None, size: int) -> EventQueue:
        """Open a queue for the events of these types, or of all."""

    def subscribe(self, type: str, handler: Callable[[Event], Any]) -> int:
        """Call a function with each event of a type; gives the number to unsubscribe it by."""

    def unsubscribe(self, number: int) -> bool:
        """Unsubscribe a function; false if that was done before."""

@final
class Event:
    """One thing that happened to a call."""

    @property
    def type(self) -> Literal["call_start", "chunk", "permission_request", "permission_result", "call_end", "error"]:
        """What happened."""

    @property
    def call_id(self) -> str:
        """The id that the model gave the call, or one that was made up for it."""

    @property
    def tool(self) -> str | None:
        """The name of the tool that the request asks for; None if it asks for none."""

    @property
    def caller(self) -> str | None:
        """The caller of the view through which the call came."""

    @property
    def time(self) -> float:
        """When it happened, in seconds since 1970."""

    @property
    def data(self) -> dict[str, Any]:
        """What there is to say about it.

        `call_start` has `arguments` as the model sent them, with secrets masked, and whether the call goes on with one
        that was pending as `resumed`; `chunk` has the `response`.
        `permission_request` has `arguments`, `rule`, `reason`, `kind` and, if the call is pending, its id in `pending`;
        `permission_result` has `decision`, `answer`, `rule`, `reason` and `by`. `error` has `error` and `message`, and
        `call_end` has `outcome`, `code`, `chunks` and `seconds`.
        """

@final
class EventQueue:
    """One listener's end of the events of a toolkit, for `toolcrib.events` to wait at."""

    @property
    def dropped(self) -> int:
        """How many events made room for newer ones before anybody took them."""

    @property
    def is_closed(self) -> bool:
        """Whether nothing more will come."""

    def take(self) -> Event | None:
        """Take the oldest event, if there is one."""

    def wake(self, waker: Callable[[], object]) -> None:
        """Have a function called when the next event comes or the queue is closed; at once if that is so already."""

    def forget(self, waker: Callable[[], object]) -> None:
        """Take back what `wake` was given, if it was not called yet."""

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
    """Look up what the core uses of the package, which is imported by now."""
