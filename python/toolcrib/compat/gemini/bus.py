"""`MessageBus`: the messages about confirmations between tools, the policy and the user interface."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar
from uuid import uuid4

from toolcrib.compat.gemini.policy import PolicyDecision, PolicyEngine, PolicyRule
from toolcrib.compat.gemini.spelling import read_fields
from toolcrib.declared import CancelSignal

__all__ = [
    "Message",
    "MessageBus",
    "MessageBusType",
    "ToolConfirmationDetails",
    "ToolConfirmationOutcome",
    "ToolConfirmationRequest",
    "ToolConfirmationResponse",
    "ToolExecutionFailure",
    "ToolExecutionSuccess",
    "ToolPolicyRejection",
    "UpdatePolicy",
    "create_policy_updater",
]

ALWAYS_ALLOW_PRIORITY = 2.95
"""The priority of the rule that an answer "always" adds."""

ABORTED = "Tool confirmation aborted"

_log = logging.getLogger("toolcrib")


class MessageBusType(Enum):
    """The types of messages; `ERROR` is the type of the errors of the bus itself."""

    TOOL_CONFIRMATION_REQUEST = "tool-confirmation-request"
    TOOL_CONFIRMATION_RESPONSE = "tool-confirmation-response"
    TOOL_POLICY_REJECTION = "tool-policy-rejection"
    TOOL_EXECUTION_SUCCESS = "tool-execution-success"
    TOOL_EXECUTION_FAILURE = "tool-execution-failure"
    UPDATE_POLICY = "update-policy"
    ERROR = "error"


@dataclass(frozen=True)
class Message:
    """A message; its class says its type."""

    type: ClassVar[MessageBusType]


@dataclass(frozen=True)
class ToolConfirmationRequest(Message):
    """The question if a call may run.

    Args:
        tool_call: The call, with `name` and `args`.
        correlation_id: The id that the response repeats.
        server_name: The MCP server of the tool.
    """

    tool_call: Any
    correlation_id: str = field(default_factory=lambda: uuid4().hex)
    server_name: str | None = None
    type = MessageBusType.TOOL_CONFIRMATION_REQUEST


@dataclass(frozen=True)
class ToolConfirmationResponse(Message):
    """The answer to a question.

    Args:
        correlation_id: The id of the question.
        confirmed: True if the call may run.
        requires_user_confirmation: True if only the user can answer.
    """

    correlation_id: str
    confirmed: bool
    requires_user_confirmation: bool = False
    type = MessageBusType.TOOL_CONFIRMATION_RESPONSE


@dataclass(frozen=True)
class ToolPolicyRejection(Message):
    """A call that the policy has denied."""

    tool_call: Any
    type = MessageBusType.TOOL_POLICY_REJECTION


@dataclass(frozen=True)
class ToolExecutionSuccess(Message):
    """A call that has succeeded, with its result."""

    tool_call: Any
    result: Any = None
    type = MessageBusType.TOOL_EXECUTION_SUCCESS


@dataclass(frozen=True)
class ToolExecutionFailure(Message):
    """A call that has failed, with its error."""

    tool_call: Any
    error: Any = None
    type = MessageBusType.TOOL_EXECUTION_FAILURE


@dataclass(frozen=True)
class UpdatePolicy(Message):
    """The wish of the user that a tool is always allowed."""

    tool_name: str
    type = MessageBusType.UPDATE_POLICY


class ToolConfirmationOutcome(Enum):
    """The answer of the user to the details of a confirmation."""

    PROCEED_ONCE = "proceed_once"
    PROCEED_ALWAYS = "proceed_always"
    PROCEED_ALWAYS_SERVER = "proceed_always_server"
    PROCEED_ALWAYS_TOOL = "proceed_always_tool"
    MODIFY_WITH_EDITOR = "modify_with_editor"
    CANCEL = "cancel"


@dataclass(frozen=True)
class ToolConfirmationDetails:
    """The details of a call that the user is shown before it runs.

    Args:
        type: `"edit"`, `"exec"`, `"mcp"` or `"info"`.
        title: The title.
        on_confirm: Called with the `ToolConfirmationOutcome` and a payload when the user has answered; may be a
            coroutine function.
        fields: The fields of the type, such as `fileDiff`, `command`, `serverName` or `prompt`.
    """

    type: str
    title: str
    on_confirm: Callable[..., Any] | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


Listener = Callable[[Any], Any]


class MessageBus:
    """Connects tools, the policy and the user interface.

    A request for confirmation is decided by the policy first. If it asks the user, the request reaches the subscribers,
    one of which publishes the response; if there are none, the response at once requires the user's confirmation.
    No request is ever confirmed because it was not answered. Subscribers run in the thread that publishes, in the order
    of their subscription; one that fails is logged.

    Args:
        policy_engine: The policy.
    """

    def __init__(self, policy_engine: PolicyEngine) -> None:
        """Start without subscribers."""
        self._policy = policy_engine
        self._listeners: dict[MessageBusType, list[Listener]] = {}
        self._running: set[asyncio.Future[Any]] = set()

    def subscribe(self, type: MessageBusType | str, listener: Listener) -> None:
        """Call a function or a coroutine function with each message of a type."""
        self._listeners.setdefault(MessageBusType(type), []).append(listener)

    def unsubscribe(self, type: MessageBusType | str, listener: Listener) -> None:
        """Undo a subscription."""
        with suppress(ValueError):
            self._listeners.get(MessageBusType(type), []).remove(listener)

    def publish(self, message: Message | Mapping[str, Any]) -> None:
        """Publish a message; an invalid one is an error for the subscribers of `"error"`, and raises nothing.

        Args:
            message: An object of a class of messages, or a mapping of its fields with the `type`.
        """
        try:
            message = _read(message)
        except (TypeError, ValueError) as error:
            self._emit(MessageBusType.ERROR, ValueError(f"invalid message: {error}"))
            return
        if isinstance(message, ToolConfirmationRequest):
            self._decide(message)
        else:
            self._emit(message.type, message)

    async def request(
        self, request: ToolConfirmationRequest, timeout: float | None = 60, signal: CancelSignal | None = None
    ) -> ToolConfirmationResponse | None:
        """Publish a request and wait for its response.

        Args:
            request: The request.
            timeout: The seconds to wait; None to wait without limit.
            signal: Ends the waiting with a `CancelledError`.

        Returns:
            The first response, or None if there is none in time.
        """
        loop, thread = asyncio.get_running_loop(), threading.get_ident()
        answer: asyncio.Future[ToolConfirmationResponse] = loop.create_future()

        def listen(response: ToolConfirmationResponse) -> None:
            if response.correlation_id != request.correlation_id:
                return
            if threading.get_ident() == thread:
                _resolve(answer, response)
            else:
                loop.call_soon_threadsafe(_resolve, answer, response)

        signal = signal or CancelSignal()
        if signal.is_cancelled:
            raise asyncio.CancelledError(ABORTED)
        take_back = signal.on_cancel(lambda: loop.call_soon_threadsafe(answer.cancel, ABORTED))
        self.subscribe(MessageBusType.TOOL_CONFIRMATION_RESPONSE, listen)
        try:
            self.publish(request)
            if not answer.done():
                await asyncio.wait({answer}, timeout=timeout)
            return answer.result() if answer.done() else None
        finally:
            take_back()
            self.unsubscribe(MessageBusType.TOOL_CONFIRMATION_RESPONSE, listen)

    def _decide(self, request: ToolConfirmationRequest) -> None:
        decision = self._policy.check(request.tool_call, request.server_name).decision
        if decision is PolicyDecision.ASK_USER and self._listeners.get(request.type):
            self._emit(request.type, request)
            return
        if decision is PolicyDecision.DENY:
            self._emit(MessageBusType.TOOL_POLICY_REJECTION, ToolPolicyRejection(request.tool_call))
        response = ToolConfirmationResponse(
            request.correlation_id,
            confirmed=decision is PolicyDecision.ALLOW,
            requires_user_confirmation=decision is PolicyDecision.ASK_USER,
        )
        self._emit(response.type, response)

    def _emit(self, type: MessageBusType, message: object) -> None:
        listeners = tuple(self._listeners.get(type, ()))
        if type is MessageBusType.ERROR and not listeners:
            _log.warning("message bus: %s", message)
        for listener in listeners:
            try:
                work = listener(message)
                if inspect.isawaitable(work):
                    self._run(work)
            except Exception:
                _log.exception("a subscriber of '%s' failed", type.value)

    def _run(self, work: Any) -> None:
        """Run the coroutine of a subscriber, and hold it until it ends."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Future[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a subscriber failed", exc_info=error)


def _resolve(answer: asyncio.Future[ToolConfirmationResponse], response: ToolConfirmationResponse) -> None:
    if not answer.done():
        answer.set_result(response)


def create_policy_updater(policy_engine: PolicyEngine, message_bus: MessageBus) -> None:
    """Add a rule to the policy for each `UpdatePolicy`: its tool is always allowed."""

    def update(message: UpdatePolicy) -> None:
        policy_engine.add_rule(PolicyRule("allow", message.tool_name, priority=ALWAYS_ALLOW_PRIORITY))

    message_bus.subscribe(MessageBusType.UPDATE_POLICY, update)


_CLASSES: dict[MessageBusType, type[Message]] = {
    cls.type: cls
    for cls in (
        ToolConfirmationRequest,
        ToolConfirmationResponse,
        ToolPolicyRejection,
        ToolExecutionSuccess,
        ToolExecutionFailure,
        UpdatePolicy,
    )
}


def _read(message: Any) -> Message:
    if isinstance(message, Mapping):
        fields = dict(message)
        cls = _CLASSES.get(MessageBusType(fields.pop("type", None)))
        if cls is None:
            raise ValueError("a message of this type cannot be published")
        if cls is ToolConfirmationRequest and not {"correlationId", "correlation_id"} & fields.keys():
            raise ValueError("a request needs a `correlationId`")
        message = read_fields(cls, fields)
    if not isinstance(message, Message) or type(message) is Message:
        raise TypeError(f"expected a message, got {type(message).__name__}")
    id = getattr(message, "correlation_id", "-")
    if not isinstance(id, str) or not id:
        raise ValueError("a request needs a `correlationId`")
    return message
