"""`BaseDeclarativeTool`: tools as classes, with an invocation for each call and a confirmation before it runs."""

from __future__ import annotations

import functools
import inspect
import mimetypes
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar

from toolcrib import declared
from toolcrib._core import ToolResponse
from toolcrib.compat.gemini.bus import (
    MessageBus,
    ToolConfirmationDetails,
    ToolConfirmationOutcome,
    ToolConfirmationRequest,
    UpdatePolicy,
)
from toolcrib.compat.gemini.spelling import read_fields, snake_keys
from toolcrib.declared import CancelSignal, Kind, ToolFailure, ToolLocation, ToolResult
from toolcrib.errors import NativeToolError, ToolDeniedError

__all__ = [
    "BaseDeclarativeTool",
    "BaseToolInvocation",
    "DiscoveredMCPTool",
    "ToolErrorType",
    "ToolInvocation",
    "result_of",
]

P = TypeVar("P")

CONFIRMATION_TIMEOUT = 30
"""The seconds that a confirmation waits for an answer on the bus; after them only the user can confirm."""


class ToolErrorType(Enum):
    """The types of errors in a `ToolResult`."""

    INVALID_TOOL_PARAMS = "invalid_tool_params"
    UNKNOWN = "unknown"
    UNHANDLED_EXCEPTION = "unhandled_exception"
    TOOL_NOT_REGISTERED = "tool_not_registered"
    EXECUTION_FAILED = "execution_failed"
    MCP_TOOL_ERROR = "mcp_tool_error"
    PERMISSION_DENIED = "permission_denied"
    NO_SPACE_LEFT = "no_space_left"


_TYPES = {
    "unknown_tool": ToolErrorType.TOOL_NOT_REGISTERED,
    "tool_not_available": ToolErrorType.TOOL_NOT_REGISTERED,
    "invalid_arguments": ToolErrorType.INVALID_TOOL_PARAMS,
    "denied": ToolErrorType.PERMISSION_DENIED,
    "pending": ToolErrorType.PERMISSION_DENIED,
    "cancelled": ToolErrorType.PERMISSION_DENIED,
}


class ToolInvocation(declared.ToolInvocation[P]):
    """One call of a tool, with parameters that are valid; a subclass overrides `execute`.

    The bus and the names of the tool are filled in by `BaseDeclarativeTool.build`, so that the policy always decides
    by the name of the tool.

    Args:
        params: The parameters.
        message_bus: The bus that is asked before the call runs.
        tool_name: The name of the tool.
        tool_display_name: Its name for people.
        server_name: The MCP server of the tool.
    """

    def __init__(
        self,
        params: P,
        message_bus: MessageBus | None = None,
        tool_name: str | None = None,
        tool_display_name: str | None = None,
        server_name: str | None = None,
    ) -> None:
        """Keep the parameters."""
        self.params = params
        self.message_bus = message_bus
        self.tool_name = tool_name
        self.tool_display_name = tool_display_name
        self.server_name = server_name

    def __init_subclass__(cls, **options: Any) -> None:
        """Accept an `execute` that does not need all arguments, as a function of JavaScript may leave them out."""
        super().__init_subclass__(**options)
        execute = cls.__dict__.get("execute")
        if inspect.isfunction(execute) and (taken := _count_arguments(execute)) < 2:
            cls.execute = _called_with(execute, taken)  # type: ignore[method-assign]

    def get_description(self) -> str:
        """Describe the call to people."""
        return self.tool.describe(self.params)

    def tool_locations(self) -> Sequence[ToolLocation]:
        """Return the places that the call affects."""
        return ()

    async def get_confirmation_details(self, signal: CancelSignal) -> ToolConfirmationDetails | bool:
        """Return the details that the user confirms, or False if the tool itself does not need a confirmation."""
        return False

    async def should_confirm_execute(self, signal: CancelSignal | None = None) -> ToolConfirmationDetails | bool:
        """Decide if the call runs: False if it may, or the details that the user has to confirm before.

        Without a bus the tool decides. If there is a bus but no answer to its request, the user decides.

        Raises:
            ToolDeniedError: If the policy or a subscriber of the bus denies the call.
            asyncio.CancelledError: If the signal is set while it waits.
        """
        signal = signal or CancelSignal()
        if self.message_bus is None:
            return await self.get_confirmation_details(signal)
        tool_call = {"name": self.tool_name or type(self).__name__, "args": self.params}
        request = ToolConfirmationRequest(tool_call, server_name=self.server_name)
        response = await self.message_bus.request(request, CONFIRMATION_TIMEOUT, signal)
        if response is not None and response.confirmed is True:
            return False
        if response is not None and not response.requires_user_confirmation:
            raise ToolDeniedError(f'Tool execution for "{self.tool_display_name or self.tool_name}" denied by policy.')
        details = await self.get_confirmation_details(signal)
        return details if details is not False else self._details()

    def _details(self) -> ToolConfirmationDetails:
        """The details of a tool that has none, and that the policy asks about."""
        title = f"Confirm: {self.tool_display_name or self.tool_name}"
        return ToolConfirmationDetails("info", title, self.publish_outcome, {"prompt": self.get_description()})

    def publish_outcome(self, outcome: ToolConfirmationOutcome, payload: object = None) -> None:
        """Publish that the tool is always allowed, if that is the answer of the user."""
        if outcome is ToolConfirmationOutcome.PROCEED_ALWAYS and self.message_bus is not None and self.tool_name:
            self.message_bus.publish(UpdatePolicy(self.tool_name))

    def describe(self) -> str:
        """Describe the call to the approver of a `Toolkit`."""
        return self.get_description()

    def locations(self) -> Sequence[ToolLocation]:
        """Return the places that the call affects to the approver of a `Toolkit`."""
        return self.tool_locations()

    def should_confirm(self, signal: CancelSignal) -> Any:
        """Decide for a `Toolkit` if a call needs approval."""
        own, base = type(self), ToolInvocation
        if (
            self.message_bus is None
            and own.should_confirm_execute is base.should_confirm_execute
            and own.get_confirmation_details is base.get_confirmation_details
        ):
            return False  # The most common case needs no coroutine.
        return self.should_confirm_execute(signal)


BaseToolInvocation = ToolInvocation
"""The name of the class in gemini-cli, where `ToolInvocation` is its interface."""


def _count_arguments(execute: Callable[..., Any]) -> int:
    """Count the positional arguments that a method accepts, two at most."""
    given = inspect.signature(execute).parameters.values()
    if any(each.kind is each.VAR_POSITIONAL for each in given):
        return 2
    return min(2, sum(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in given) - 1)


def _called_with(execute: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Return an `execute` that passes on the first of its arguments."""
    if inspect.iscoroutinefunction(execute):

        @functools.wraps(execute)
        async def awaited(self: Any, *arguments: Any) -> Any:
            return await execute(self, *arguments[:count])

        return awaited

    @functools.wraps(execute)
    def called(self: Any, *arguments: Any) -> Any:
        return execute(self, *arguments[:count])

    return called


class BaseDeclarativeTool(declared.DeclaredTool[P]):
    """A tool with a schema, whose subclass makes an invocation for each call.

    It can be registered in a `toolcrib.Toolkit` as it is.

    Args:
        name: The name for the model.
        display_name: The name for people.
        description: The description for the model.
        kind: The kind of effect that it has.
        parameter_schema: The JSON Schema of the parameters.
        is_output_markdown: True if the output for people is Markdown.
        can_update_output: True if it shows parts of its output while it runs.
        message_bus: The bus that is asked before a call runs.

    Attributes:
        server_name: The MCP server of the tool; None if it has none.
    """

    server_name: str | None = None

    def __init__(
        self,
        name: str,
        display_name: str,
        description: str,
        kind: Kind | str,
        parameter_schema: Any,
        is_output_markdown: bool = True,
        can_update_output: bool = False,
        message_bus: MessageBus | None = None,
    ) -> None:
        """Check the fields and compile the schema."""
        super().__init__(
            name,
            description,
            display_name=display_name,
            kind=kind,
            parameters=parameter_schema,
            is_output_markdown=is_output_markdown,
            can_update_output=can_update_output,
        )
        self.message_bus = message_bus

    @property
    def parameter_schema(self) -> dict[str, Any]:
        """The JSON Schema of the parameters."""
        return self._schema.schema

    def create_invocation(self, params: P) -> ToolInvocation[P]:
        """Return the invocation for valid parameters."""
        raise NotImplementedError(f"the tool `{self.name}` does not override `create_invocation`")

    def validate_tool_param_values(self, params: P) -> str | None:
        """Return the problem of parameters that fit the schema, or None."""
        return None

    def validate_tool_params(self, params: Any) -> str | None:
        """Return the first problem of parameters, by the schema and then by their values, or None."""
        return self._schema.problem(params) or self.validate_tool_param_values(params)

    def check_params(self, params: P) -> str | None:
        """Return the problem of parameters that fit the schema, or None."""
        return self.validate_tool_param_values(params)

    def build(self, params: Mapping[str, Any]) -> ToolInvocation[P]:
        """Validate parameters and return the invocation.

        Raises:
            InvalidParametersError: With the first problem, such as `params/n must be integer`.
            TypeError: If `create_invocation` returns something else.
        """
        invocation = super().build(params)
        if not isinstance(invocation, ToolInvocation):
            given = type(invocation).__name__
            raise TypeError(f"`create_invocation` of tool `{self.name}`: expected a ToolInvocation, got {given}")
        invocation.tool = self
        invocation.message_bus = invocation.message_bus or self.message_bus
        invocation.tool_name = invocation.tool_name or self.name
        invocation.tool_display_name = invocation.tool_display_name or self.display_name
        invocation.server_name = invocation.server_name or self.server_name
        return invocation

    async def _execute(self, invocation: declared.ToolInvocation[P], signal: CancelSignal, update_output: Any) -> Any:
        result = await super()._execute(invocation, signal, update_output)
        return _read_result(result) if isinstance(result, dict) else result

    def __tool_confirm__(self, arguments: dict[str, Any], decide: bool) -> Any:
        """Decide for a `Toolkit` if a call needs approval; a denial of the bus is its answer."""
        confirmation = super().__tool_confirm__(arguments, decide)
        return _answered(confirmation) if inspect.iscoroutine(confirmation) else confirmation


def _read_result(value: dict[str, Any]) -> Any:
    """Return the result that a dictionary has the fields of; any other dictionary is the content for the model."""
    fields = snake_keys(value) if value.keys() & {"llmContent", "llm_content"} else {}
    if not fields.keys() <= {"llm_content", "return_display", "error", "metadata"} or not fields:
        return value
    if fields.get("error") is not None:
        fields["error"] = read_fields(ToolFailure, fields["error"])
    return ToolResult(**fields)


async def _answered(confirmation: Any) -> Any:
    try:
        return await confirmation
    except ToolDeniedError as error:
        failure = ToolFailure(str(error), ToolErrorType.PERMISSION_DENIED.value)
        response = ToolResult(f"Error: {error}", str(error), failure).__tool_response__()
        response.code = "denied"
        return response


class _McpInvocation(ToolInvocation[dict[str, Any]]):
    """A call of a tool of an MCP server."""

    tool: DiscoveredMCPTool

    async def get_confirmation_details(self, signal: CancelSignal) -> ToolConfirmationDetails | bool:
        """Return the details, unless the server is trusted."""
        if self.tool.trust:
            return False
        fields = {
            "serverName": self.server_name,
            "toolName": self.tool.server_tool_name,
            "toolDisplayName": self.tool_display_name,
        }
        return ToolConfirmationDetails("mcp", "Confirm MCP Tool Execution", self.publish_outcome, fields)

    def publish_outcome(self, outcome: ToolConfirmationOutcome, payload: object = None) -> None:
        """Publish that the tool, or all tools of its server, are always allowed."""
        if self.message_bus is None:
            return
        if outcome is ToolConfirmationOutcome.PROCEED_ALWAYS_SERVER:
            self.message_bus.publish(UpdatePolicy(f"{self.server_name}__*"))
        elif outcome in (ToolConfirmationOutcome.PROCEED_ALWAYS, ToolConfirmationOutcome.PROCEED_ALWAYS_TOOL):
            assert self.tool_name is not None
            self.message_bus.publish(UpdatePolicy(self.tool_name))

    async def execute(self, signal: CancelSignal, update_output: Any = None) -> Any:
        """Call the server."""
        try:
            return await self._call(update_output)
        except NativeToolError as error:
            failure = ToolFailure(str(error), ToolErrorType.MCP_TOOL_ERROR.value)
            return ToolResult(f"Error: {error}", str(error), failure)

    async def _call(self, update_output: Any) -> Any:
        result = self.tool.mcp_tool(**self.params)
        if inspect.isawaitable(result):
            result = await result
        elif hasattr(result, "__aiter__"):
            responses, result = result, None
            async for response in responses:
                if response.mode != "progress":
                    result = response
                elif update_output is not None:
                    update_output(response.text)
        return result_of(result, ToolErrorType.MCP_TOOL_ERROR) if isinstance(result, ToolResponse) else result


class DiscoveredMCPTool(BaseDeclarativeTool[dict[str, Any]]):
    """A tool of an MCP server.

    Rules of a policy name it `SERVER__TOOL`. Each call needs a confirmation unless the server is trusted.

    Args:
        mcp_tool: The function that calls it, such as `await client.get_callable_function(name)` of `toolcrib.mcp`.
        server_name: The name of the server.
        server_tool_name: The name of the tool on the server.
        description: The description for the model.
        parameter_schema: The JSON Schema of the parameters.
        trust: True if the calls need no confirmation of the tool itself.
        name_override: The name for the model, if it is not that of the server.
        message_bus: The bus that is asked before a call runs.
    """

    def __init__(
        self,
        mcp_tool: Callable[..., Any],
        server_name: str,
        server_tool_name: str,
        description: str,
        parameter_schema: Any,
        trust: bool = False,
        name_override: str | None = None,
        message_bus: MessageBus | None = None,
    ) -> None:
        """Keep the tool of the server."""
        super().__init__(
            name_override or server_tool_name,
            f"{server_tool_name} ({server_name} MCP Server)",
            description,
            Kind.OTHER,
            parameter_schema,
            can_update_output=True,
            message_bus=message_bus,
        )
        self.mcp_tool = mcp_tool
        self.server_name = server_name
        self.server_tool_name = server_tool_name
        self.trust = trust

    def create_invocation(self, params: dict[str, Any]) -> ToolInvocation[dict[str, Any]]:
        """Return the invocation, which the policy knows as `SERVER__TOOL`."""
        return _McpInvocation(params, tool_name=f"{self.server_name}__{self.server_tool_name}")

    def as_fully_qualified_tool(self) -> DiscoveredMCPTool:
        """Return the tool under the name `SERVER__TOOL`."""
        assert self.server_name is not None
        return DiscoveredMCPTool(
            self.mcp_tool,
            self.server_name,
            self.server_tool_name,
            self.description,
            self.parameter_schema,
            self.trust,
            f"{self.server_name}__{self.server_tool_name}",
            self.message_bus,
        )


def result_of(response: ToolResponse, failure: ToolErrorType = ToolErrorType.EXECUTION_FAILED) -> ToolResult:
    """Convert the response of a toolkit to a result.

    Args:
        response: The response.
        failure: The type of the error, if the code of the response has none.
    """
    metadata = dict(response.metadata or {})
    display, error = metadata.pop("display", None), metadata.pop("error", None)
    is_text = all(block["type"] == "text" for block in response.content)
    content = response.text if is_text else [_part(block) for block in response.content]
    if response.code is None:
        return ToolResult(content, response.text if display is None else display, metadata=metadata)
    error = error or {"message": response.text, "type": _TYPES.get(response.code, failure).value}
    return ToolResult(content, display or error["message"], ToolFailure(**error), metadata)


def _part(block: Any) -> Any:
    """Convert a block to a part of Gemini; one that has no part stays as it is."""
    if block["type"] == "text":
        return {"text": block["text"]}
    source = block.get("source") or {}
    if source.get("type") == "base64":
        return {"inlineData": {"mimeType": source["media_type"], "data": source["data"]}}
    if source.get("type") == "url":
        guessed, _ = mimetypes.guess_type(source["url"])
        return {"fileData": {**({"mimeType": guessed} if guessed else {}), "fileUri": source["url"]}}
    return block
