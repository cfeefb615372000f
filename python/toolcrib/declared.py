"""Declared tools: classes with a name, a schema, a check of their own, and an invocation for each call."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from itertools import count
from typing import Any, Generic, TypeVar

from toolcrib import errors
from toolcrib._core import ToolResponse, _as_response, _DeclaredSchema
from toolcrib._worker import in_thread
from toolcrib.context import ToolContext

__all__ = [
    "CancelSignal",
    "DeclaredTool",
    "Kind",
    "ToolFailure",
    "ToolInvocation",
    "ToolLocation",
    "ToolParameter",
    "ToolResult",
]

P = TypeVar("P")
T = TypeVar("T")

UpdateOutput = Callable[[object], None]
"""A function that shows a part of the output while a tool runs."""

_log = logging.getLogger("toolcrib")

# The JSON Schema types for the names that developers write.
JSON_TYPES = {
    "string": "string",
    "str": "string",
    "integer": "integer",
    "int": "integer",
    "number": "number",
    "float": "number",
    "boolean": "boolean",
    "bool": "boolean",
    "object": "object",
    "dict": "object",
    "array": "array",
    "list": "array",
}


class Kind(Enum):
    """The kind of effect that a tool has; `Kind.WRITE` is another name of `Kind.EDIT`."""

    READ = "read"
    EDIT = "edit"
    WRITE = "edit"  # noqa: PIE796 an alias
    DELETE = "delete"
    MOVE = "move"
    SEARCH = "search"
    EXECUTE = "execute"
    THINK = "think"
    FETCH = "fetch"
    OTHER = "other"

    @classmethod
    def _missing_(cls, value: object) -> "Kind | None":
        return cls.EDIT if value == "write" else None


@dataclass(frozen=True)
class ToolParameter:
    """A declared parameter; a default of None means that there is none.

    Args:
        name: The name.
        type: `"string"`, `"number"`, `"integer"`, `"boolean"`, `"object"`, `"array"`, or a list such as `"string[]"` or
            `"array[string]"`.
        description: The description for the model.
        required: True if a call needs it, unless it has a default.
        default: The value of a call that does not send it.
    """

    name: str
    type: str
    description: str = ""
    required: bool = True
    default: Any = None


@dataclass(frozen=True)
class ToolLocation:
    """A place that a call affects, for the approver.

    Args:
        path: The file or folder.
        line: The line, if there is one.
    """

    path: str
    line: int | None = None


@dataclass(frozen=True)
class ToolFailure:
    """The error of a failed call.

    Args:
        message: The reason.
        type: A word for programs, such as `"invalid_tool_params"`, `"execution_failed"`, `"unhandled_exception"`,
            `"permission_denied"` or `"unknown"`.
    """

    message: str
    type: str = "unknown"


@dataclass(frozen=True)
class ToolResult:
    """The result of a declared tool; a result with an error is a failure.

    Args:
        llm_content: The content for the model: text, a list of blocks, a list of parts as Gemini has them (`text`,
            `inlineData`, `fileData`), or any value.
        return_display: The content for people; that for the model if it is None.
        error: The error of a failed call.
        metadata: Further data for programs.
    """

    llm_content: Any
    return_display: Any = None
    error: ToolFailure | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __tool_response__(self) -> ToolResponse:
        """Convert the result to the response of a `Toolkit`."""
        blocks = _blocks(self.llm_content)
        response = ToolResponse(blocks) if blocks else _as_response(self.llm_content)
        more = dict(self.metadata)
        if self.return_display is not None:
            more["display"] = self.return_display
        if self.error is not None:
            more["error"] = {"message": self.error.message, "type": self.error.type}
            response.code = "invalid_arguments" if self.error.type == "invalid_tool_params" else "failed"
        response.metadata = {**(response.metadata or {}), **more} or None
        return response


@dataclass(frozen=True)
class Declaration:
    """The facts about a tool that a `Toolkit` reads when the tool is registered.

    Args:
        confirms: True if the tool itself decides whether a call needs approval.
        accepts: The schema that arguments are checked against; that for the model if it is None.
        calls_agents: True if it calls agents.
    """

    confirms: bool
    accepts: Mapping[str, Any] | None = None
    calls_agents: bool = False


class Confirmation:
    """The part of a tool in the approval of a call.

    Args:
        tool: The name of the tool.
        asks: True if the call needs approval.
        details: The details for the approver.
        invocation: The call, which runs if its arguments stay as they are.
    """

    def __init__(self, tool: str, asks: bool, details: Any, invocation: "ToolInvocation[Any]") -> None:
        self.tool = tool
        self.asks = asks
        self.details = details
        self.invocation = invocation

    @property
    def summary(self) -> str | None:
        """The description for the approver."""
        return self._description[0]

    @property
    def locations(self) -> tuple[Any, ...]:
        """The places that the call affects."""
        return self._description[1]

    @cached_property
    def _description(self) -> tuple[str | None, tuple[Any, ...]]:
        """The description and the places: only calls that an approver sees need them."""
        try:
            return self.invocation.describe(), tuple(self.invocation.locations())
        except (Exception, SystemExit):
            _log.exception("the declared tool '%s' cannot describe a call", self.tool)
            return None, ()


class CancelSignal:
    """Tells a running tool that its call is cancelled, in any thread.

    It is set before the tool's coroutine sees a `CancelledError`.
    """

    def __init__(self) -> None:
        self._callbacks: list[Callable[[], object]] = []
        self._is_cancelled = False

    @property
    def is_cancelled(self) -> bool:
        """True once the call is cancelled."""
        return self._is_cancelled

    def cancel(self) -> None:
        """Cancel the call; the callbacks run once."""
        self._is_cancelled = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback()
            except Exception:
                _log.exception("a callback of a CancelSignal failed")

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call a function without arguments when the call is cancelled; at once if it is.

        Returns:
            A function that takes the callback back, for a signal that outlives the work.
        """
        self._callbacks.append(callback)
        if self._is_cancelled:
            self.cancel()

        def take_back() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return take_back

    def raise_if_cancelled(self) -> None:
        """Raise `asyncio.CancelledError` if the call is cancelled."""
        if self._is_cancelled:
            raise asyncio.CancelledError


class ToolInvocation(Generic[P]):
    """One call of a declared tool, with parameters that are valid.

    The methods are those of the tool. A subclass that `DeclaredTool.create_invocation` returns may override them.

    Attributes:
        tool: The tool.
        params: The parameters: a dict, or an object of the pydantic model.
    """

    def __init__(self, tool: "DeclaredTool[P]", params: P) -> None:
        self.tool = tool
        self.params = params

    def describe(self) -> str:
        """Describe the call to people."""
        return self.tool.describe(self.params)

    def locations(self) -> Sequence[ToolLocation]:
        """Return the places that the call affects."""
        return self.tool.locations(self.params)

    def should_confirm(self, signal: CancelSignal) -> Any:
        """Return False if the call needs no approval, else True or details for the approver; may be a coroutine."""
        return self.tool.should_confirm(self.params, signal)

    def execute(self, signal: CancelSignal, update_output: UpdateOutput | None = None) -> Any:
        """Run the call; may be a coroutine. A plain function runs in a thread."""
        return self.tool.execute(self.params, signal, update_output)


class DeclaredTool(Generic[P]):
    """A tool as a class: its name, its schema, a check of its own, and an invocation for each call.

    The fields are attributes of a subclass or arguments. A subclass overrides `execute`, and the other methods if it
    needs them. `toolkit.register_tool_function(tool)` registers it like any other tool.

    Args:
        name: The name for the model.
        description: The description for the model.
        display_name: The name for people; the name if it is None.
        kind: The kind of effect that it has.
        parameters: A list of `ToolParameter`, a JSON Schema with `"type": "object"`, or a pydantic model.
        is_output_markdown: True if the output for people is Markdown.
        can_update_output: True if it shows parts of its output while it runs.
        permission: `"auto"`, `"confirm"` if each call needs approval, or `"kind"` if it does where a policy is set and
            the kind is edit, delete, move or execute.

    Raises:
        TypeError: If a field has the wrong type.
        ValueError: If a field is missing, or the kind or the type of a parameter is unknown.
        InvalidSchemaError: If the schema is invalid.
    """

    name: str = ""
    description: str = ""
    display_name: str | None = None
    kind: Kind | str = Kind.OTHER
    parameters: Any = ()
    is_output_markdown: bool = True
    can_update_output: bool = False
    permission: str = "kind"

    def __init__(
        self,
        name: str | None = None,
        description: str | None = None,
        *,
        display_name: str | None = None,
        kind: Kind | str | None = None,
        parameters: Any = None,
        is_output_markdown: bool | None = None,
        can_update_output: bool | None = None,
        permission: str | None = None,
    ) -> None:
        given = {
            "name": name,
            "description": description,
            "display_name": display_name,
            "kind": kind,
            "parameters": parameters,
            "is_output_markdown": is_output_markdown,
            "can_update_output": can_update_output,
            "permission": permission,
        }
        for key, value in given.items():
            if value is not None:
                setattr(self, key, value)
        for key in ("name", "description"):
            text = getattr(self, key)
            if not isinstance(text, str):
                raise TypeError(f"{key} must be a string, not {type(text).__name__}")
            if not text.strip():
                raise ValueError(f"missing `{key}` of the declared tool `{self.name or type(self).__name__}`")
        try:
            self.kind = Kind(self.kind)
        except ValueError:
            words = ", ".join(f"'{kind.value}'" for kind in Kind)
            raise ValueError(f"tool `{self.name}`: kind must be one of {words}, not {self.kind!r}") from None
        self.display_name = self.display_name or self.name
        _ = self._schema

    @cached_property
    def _schema(self) -> _DeclaredSchema:
        parameters = self.parameters
        if not isinstance(parameters, (type, Mapping)):
            parameters = _schema_of(self.name, parameters)
        return _DeclaredSchema(dict(parameters) if isinstance(parameters, Mapping) else parameters)

    @property
    def schema(self) -> dict[str, Any]:
        """The name, the description and the JSON Schema of the parameters."""
        return {"name": self.name, "description": self.description, "parametersJsonSchema": self._schema.schema}

    @property
    def json_schema(self) -> dict[str, Any]:
        """The schema of the tool in a `Toolkit`."""
        function = {"name": self.name, "description": self.description, "parameters": self._schema.schema}
        return {"type": "function", "function": function}

    def check_params(self, params: P) -> str | None:
        """Return what is wrong with parameters that fit the schema, or None."""
        return None

    def describe(self, params: P) -> str:
        """Describe a call to people."""
        shown = params if isinstance(params, Mapping) else getattr(params, "__dict__", {})
        inside = ", ".join(f"{name}: {_short(value, 50)}" for name, value in shown.items())
        return _short(f"{self.display_name} with {{ {inside} }}" if inside else str(self.display_name), 200)

    def locations(self, params: P) -> Sequence[ToolLocation]:
        """Return the places that a call affects."""
        return ()

    def should_confirm(self, params: P, signal: CancelSignal) -> Any:
        """Return False if a call needs no approval, otherwise True or details for the approver; may be a coroutine.

        It is called unless a rule of the policy allows or denies the call.
        """
        return False

    def execute(self, params: P, signal: CancelSignal, update_output: UpdateOutput | None = None) -> Any:
        """Run a call; may be a coroutine. A plain function runs in a thread.

        Args:
            params: The parameters.
            signal: Set when the call is cancelled.
            update_output: Shows a part of the output; None if `can_update_output` is false.

        Returns:
            A `ToolResult`, or any value that a tool may return.
        """
        raise NotImplementedError(f"the declared tool `{self.name}` does not override `execute`")

    def create_invocation(self, params: P) -> ToolInvocation[P]:
        """Return the invocation for valid parameters."""
        return ToolInvocation(self, params)

    def build(self, params: Mapping[str, Any]) -> ToolInvocation[P]:
        """Validate parameters, by the JSON Schema and then by `check_params`, and return the invocation.

        Nothing is coerced, and names that the schema does not list are accepted unless it forbids them.

        Raises:
            InvalidParametersError: With the first problem, such as `params/n must be integer`.
        """
        if type(params) is dict or isinstance(params, Mapping):
            params = dict(params)
            if type(self.parameters) is not dict and not isinstance(self.parameters, (type, Mapping)):
                for parameter in self.parameters:
                    if parameter.default is not None:
                        params.setdefault(parameter.name, deepcopy(parameter.default))
        problem = self._schema.problem(params)
        if problem is not None:
            raise errors.InvalidParametersError(problem)
        checked: Any = params
        if isinstance(self.parameters, type):
            try:
                checked = self.parameters.model_validate(params)  # type: ignore[attr-defined]
            except ValueError as error:
                raise errors.InvalidParametersError(_first_problem(error)) from error
        problem = self.check_params(checked)
        if problem is not None:
            raise errors.InvalidParametersError(problem)
        return self.create_invocation(checked)

    async def build_and_execute(
        self,
        params: Mapping[str, Any],
        signal: CancelSignal | None = None,
        update_output: UpdateOutput | None = None,
    ) -> ToolResult:
        """Build an invocation and run it.

        Raises:
            InvalidParametersError: If the parameters are invalid.
            Exception: Any exception of the tool.
        """
        return _as_result(await self._execute(self.build(params), signal or CancelSignal(), update_output))

    async def validate_build_and_execute(
        self,
        params: Mapping[str, Any],
        signal: CancelSignal | None = None,
        update_output: UpdateOutput | None = None,
    ) -> ToolResult:
        """Build an invocation and run it; invalid parameters and any exception become a result with an error."""
        try:
            invocation = self.build(params)
        except Exception as error:
            return self._refused(error)
        try:
            return _as_result(await self._execute(invocation, signal or CancelSignal(), update_output))
        except Exception as error:
            return _failed("Tool call execution failed", error, "execution_failed")

    def _refused(self, error: Exception) -> ToolResult:
        """The result for invalid parameters."""
        return _failed("Invalid parameters provided", error, "invalid_tool_params")

    async def _execute(
        self, invocation: ToolInvocation[P], signal: CancelSignal, update_output: UpdateOutput | None
    ) -> Any:
        update = update_output if self.can_update_output else None
        body = _body_of(invocation)
        code = getattr(body, "__code__", None)  # Those of most tools are found without the longer search.
        if (code is not None and code.co_flags & inspect.CO_COROUTINE) or inspect.iscoroutinefunction(body):
            return await _Guarded(invocation.execute(signal, update), signal)
        result = await _Guarded(in_thread(invocation.execute, signal, update), signal)
        return await _Guarded(result, signal) if inspect.iscoroutine(result) else result

    async def __call__(self, _context: ToolContext[Any], /, **_declared: Any) -> Any:
        """Run a call of a `Toolkit`: updates become its progress, and its cancellation reaches the signal."""
        try:
            invocation = self._invocation(_context, _declared)
        except errors.InvalidParametersError as error:
            return self._refused(error)

        def update_output(output: object) -> None:
            response = copy(output) if isinstance(output, ToolResponse) else _as_response(output)
            response.mode, response.stream, response.is_last = "progress", True, False
            _context._port.report(response)

        return await self._execute(invocation, CancelSignal(), update_output)

    def _invocation(self, context: ToolContext[Any], arguments: Mapping[str, Any]) -> ToolInvocation[P]:
        """Return the invocation of a call of a `Toolkit`: the one that was confirmed, or a new one."""
        confirmed: Confirmation | None = context._confirmation
        return self.build(arguments) if confirmed is None else confirmed.invocation

    @property
    def __tool_declaration__(self) -> Declaration:
        """The facts that a `Toolkit` reads."""
        own, base = type(self), DeclaredTool
        return Declaration(
            own.should_confirm is not base.should_confirm or own.create_invocation is not base.create_invocation
        )

    def __tool_confirm__(self, arguments: dict[str, Any], decide: bool) -> Any:
        """Describe a call to the approver of a `Toolkit`, and decide whether it needs approval."""
        try:
            invocation = self.build(arguments)
        except errors.InvalidParametersError as error:
            return self._refused(error).__tool_response__()
        if not decide:
            return Confirmation(self.name, False, None, invocation)
        signal = CancelSignal()
        details = invocation.should_confirm(signal)
        if not isinstance(details, bool) and inspect.isawaitable(details):
            return self._confirmed(details, signal, invocation)
        return self._confirmation(details, invocation)

    async def _confirmed(
        self, details: Awaitable[Any], signal: CancelSignal, invocation: ToolInvocation[P]
    ) -> Confirmation:
        awaited = await (_Guarded(details, signal) if inspect.iscoroutine(details) else details)
        return self._confirmation(awaited, invocation)

    def _confirmation(self, details: Any, invocation: ToolInvocation[P]) -> Confirmation:
        shown = None if isinstance(details, bool) else details
        return Confirmation(self.name, bool(details), shown, invocation)


class _Guarded(Awaitable[T]):
    """Runs a coroutine in the same task, and sets a signal before a cancellation reaches it.

    A cancellation is thrown in, or it is that of the future that the coroutine waits for.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, T], signal: CancelSignal) -> None:
        self._coroutine = coroutine
        self._signal = signal

    def __await__(self) -> Generator[Any, Any, T]:
        coroutine, sent = self._coroutine, None
        before = _cancel_requests()
        try:
            waiting = coroutine.send(None)
            while True:
                try:
                    sent = yield waiting
                except GeneratorExit:
                    self._signal.cancel()
                    coroutine.close()
                    raise
                except BaseException as error:
                    self._signal.cancel()
                    waiting = coroutine.throw(error)
                else:
                    if isinstance(waiting, asyncio.Future) and waiting.cancelled() and _cancel_requests() > before:
                        self._signal.cancel()
                    waiting = coroutine.send(sent)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]


def _cancel_requests() -> int:
    """The number of times that the task was asked to cancel; unknown before Python 3.11, where each look counts."""
    requests: Callable[[], int] | None = getattr(asyncio.current_task(), "cancelling", None)
    return next(_looks) if requests is None else requests()


_looks = count()


def _body_of(invocation: ToolInvocation[Any]) -> Callable[..., Any]:
    """The function that runs a call: that of the invocation, or of the tool that it passes on to."""
    is_own = type(invocation).execute is not ToolInvocation.execute
    return invocation.execute if is_own else invocation.tool.execute


def _blocks(content: object) -> list[Any]:
    """The blocks of a content that is a list of blocks or parts; no blocks for any other value."""
    if not isinstance(content, (list, tuple)):
        return []
    blocks = [_block(item) for item in content]
    return [] if None in blocks else blocks


def _block(item: object) -> Any:
    """The block of a block or a part; None for any other value."""
    if not isinstance(item, dict):
        return None
    if "type" in item:
        return item
    if item.keys() == {"text"}:
        return {"type": "text", "text": str(item["text"])}
    if isinstance(data := item.get("inlineData"), dict) and {"mimeType", "data"} <= data.keys():
        source = {"type": "base64", "media_type": data["mimeType"], "data": data["data"]}
        return _media(data["mimeType"], source)
    if isinstance(file := item.get("fileData"), dict) and {"mimeType", "fileUri"} <= file.keys():
        return _media(file["mimeType"], {"type": "url", "url": file["fileUri"]})
    return None


def _media(mime_type: str, source: dict[str, Any]) -> Any:
    kind = mime_type.partition("/")[0]
    return {"type": kind, "source": source} if kind in ("image", "audio", "video") else None


def _as_result(value: Any) -> ToolResult:
    if isinstance(value, ToolResult):
        return value
    return ToolResult("" if value is None else value)


def _failed(what: str, error: Exception, type: str) -> ToolResult:
    reason = str(error)
    return ToolResult(f"Error: {what}. Reason: {reason}", reason, ToolFailure(reason, type))


def _first_problem(error: ValueError) -> str:
    """The first problem that pydantic found, with its place."""
    problems = error.errors() if callable(getattr(error, "errors", None)) else []  # type: ignore[attr-defined]
    if not problems:
        return str(error)
    place = "".join(f"/{step}" for step in problems[0]["loc"])
    return f"params{place}: {problems[0]['msg']}"


def _short(value: object, most: int) -> str:
    text = str(value)
    return text if len(text) <= most else text[: most - 3] + "..."


def _schema_of(tool: str, parameters: Iterable[Any]) -> dict[str, Any]:
    """The JSON Schema of declared parameters."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    if isinstance(parameters, str) or not isinstance(parameters, Iterable):
        kind = type(parameters).__name__
        raise TypeError(f"parameters of `{tool}` must be a list, a JSON Schema or a pydantic model, not {kind}")
    for parameter in parameters:
        if not all(hasattr(parameter, name) for name in ("name", "type", "description", "required", "default")):
            kind = type(parameter).__name__
            raise TypeError(f"parameters of `{tool}` must be a list of ToolParameter, and one of them is {kind}")
        property = _type_of(tool, parameter.name, parameter.type)
        if parameter.description:
            property["description"] = parameter.description
        if parameter.default is not None:
            property["default"] = parameter.default
        elif parameter.required:
            required.append(parameter.name)
        properties[parameter.name] = property
    return {"type": "object", "properties": properties, "required": required}


def _type_of(tool: str, parameter: str, name: str) -> dict[str, Any]:
    """Parse a type such as `string`, `string[]` or `array[string]`."""
    name = name.strip()
    if name.endswith("[]"):
        return {"type": "array", "items": _type_of(tool, parameter, name[:-2])}
    outer, bracket, inner = name.partition("[")
    known = JSON_TYPES.get(outer.lower())
    if known is None or (bracket and (known != "array" or not inner.endswith("]"))):
        words = ", ".join(sorted(set(JSON_TYPES.values())))
        raise ValueError(
            f"parameter `{parameter}` of `{tool}`: unknown type '{name}': expected {words}, or a list of them"
        )
    return {"type": known, "items": _type_of(tool, parameter, inner[:-1])} if bracket else {"type": known}
