"""The ready-made loop of a sub-agent: a model function, the agent's tools, and `complete_task`."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from toolcrib import _core, errors
from toolcrib._core import ToolCall, ToolResponse
from toolcrib._model_message import ModelMessage, ModelReply, assistant_message, read_reply

if TYPE_CHECKING:
    from toolcrib._core import AgentDefinition, AgentRun, Session
    from toolcrib.toolkit import Toolkit

    _Run: TypeAlias = Callable[[Mapping[str, Any], Session[Any], AgentRun], Coroutine[Any, Any, "AgentResult"]]

__all__ = ["AgentBudget", "AgentResult", "agent_loop"]

T = TypeVar("T")

ModelFunction: TypeAlias = Callable[..., Any]
"""`async model(messages, schemas, **settings)`; see `agent_loop`."""

_CODES = {
    "TIMEOUT": "timeout",
    "MAX_TURNS": "limit_exceeded",
    "MAX_TOKENS": "limit_exceeded",
    "BUDGET": "limit_exceeded",
    "ABORTED": "cancelled",
}
_UNAVAILABLE = {"unknown_tool", "tool_not_available", "inactive_group"}
_SHOWN = 2000
_SHOWN_THOUGHT = 200


@dataclass(frozen=True)
class AgentBudget:
    """The turns, calls and tokens that an agent and all agents below it may use together; None is no limit.

    The budget of the outermost agent applies to the whole tree.

    Args:
        turns: The most requests to models.
        calls: The most tool calls.
        tokens: The most tokens.
    """

    turns: int | None = 1_000
    calls: int | None = 10_000
    tokens: int | None = None


@dataclass(frozen=True)
class AgentResult:
    """The result of a run of the ready-made loop.

    Attributes:
        agent: The name of the agent.
        termination: The reason for the end: `"GOAL"`, `"TIMEOUT"`, `"MAX_TURNS"`, `"MAX_TOKENS"`, `"BUDGET"`,
            `"ABORTED"` or `"ERROR_NO_COMPLETE_TASK_CALL"`. The reason of an interruption stays if the run is recovered.
        recovered: True if the run was interrupted and completed its task in the recovery turn.
        text: The result as text.
        output: The output that `complete_task` was called with; None if there is none.
        turns: The number of requests to the model.
        tokens: The tokens that the model has reported.
        path: The names of the agents that called each other, from the outermost one.
    """

    agent: str
    termination: str
    recovered: bool
    text: str
    output: Any
    turns: int
    tokens: int
    path: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """True if the task was completed, in time or in the recovery turn."""
        return self.termination == "GOAL" or self.recovered

    def __tool_response__(self) -> ToolResponse:
        """Convert it to the response of the tool that the agent is."""
        known = {
            "name": self.agent,
            "termination": self.termination,
            "recovered": self.recovered,
            "turns": self.turns,
            "tokens": self.tokens,
            "path": list(self.path),
        }
        text = _core._wrapped_result(self.agent, self.termination, self.recovered, self.text)
        metadata: dict[str, Any] = {"agent": known, "display": self.text}
        if self.output is not None:
            metadata["value"] = self.output
        code = None if self.ok else _CODES.get(self.termination, "failed")
        return ToolResponse([{"type": "text", "text": text}], metadata, code=code)


def agent_loop(
    definition: AgentDefinition,
    model: ModelFunction,
    *,
    grace: float | None = 60.0,
    settings: Mapping[str, Any] | None = None,
) -> _Run:
    """Make the loop of an agent: it calls the model and its tools in turns, until `complete_task` ends it.

    The model function is called with `messages`, a list of `ModelMessage`, and `schemas`, the tools as
    `Toolkit.get_json_schemas` gives them, with `complete_task`. It returns a `ModelReply`, a text, or a message of a
    provider as a dict or an object of its library. `toolcrib.models` has functions for the clients of providers.

    Args:
        definition: The agent.
        model: The model function, a coroutine function.
        grace: The seconds of the recovery turn, which a run gets once if it reaches its limit of turns or time, or
            stops without completing its task; None for no recovery turn.
        settings: Further keyword arguments of the model function.

    Returns:
        A coroutine function `run(inputs, session, emit)`, as `Toolkit.register_agent` accepts it.

    Raises:
        TypeError: If `model` is not callable.
    """
    if not callable(model):
        raise TypeError(f"model must be a model function, not {type(model).__name__}")
    given = dict(settings or {})
    if isinstance(definition.model, str) and _accepts(model, "model"):
        given.setdefault("model", definition.model)
    finisher = _Finisher(definition)

    async def run(inputs: Mapping[str, Any], session: Session[Any], emit: AgentRun) -> AgentResult:
        loop = _Loop(definition, model, given, finisher, session, emit)
        return await loop.run(inputs, grace)

    return run


class _TimeUp(Exception):
    """The time of a run is over."""


class _Finisher:
    """The tool `complete_task` of an agent, in each dialect, and its rules."""

    def __init__(self, definition: AgentDefinition) -> None:
        from toolcrib.toolkit import Toolkit

        output = definition.output
        self.output = output
        if output is None:
            self.rules = _core._AgentCompletion()
        else:
            self.rules = _core._AgentCompletion(output.name, output.description, output.schema)
        self.toolkit: Toolkit = Toolkit()
        self.toolkit.register_tool_function(
            _complete_task,
            name=_core._COMPLETE_TASK,
            description=self.rules.description,
            json_schema=self.rules.parameters,
        )

    def schemas(self, dialect: Any) -> list[dict[str, Any]]:
        """Describe the tool."""
        return self.toolkit.get_json_schemas() if dialect is None else list(self.toolkit.schemas(dialect))

    def check(self, call: ToolCall, dialect: Any) -> tuple[str | None, Any]:
        """Decide about a call: the reason why it does not complete the task, and the output."""
        if call.error is not None:
            return call.error, None
        arguments = call.arguments
        if dialect is not None:
            try:
                arguments = self.toolkit.schemas(dialect).decode(call.name, arguments)
            except errors.UnreadableArgumentsError as error:
                return str(error), None
        return self.rules.check(arguments)

    async def text(self, output: Any, said: str) -> str:
        """Write an output as text; an agent without one has said its result."""
        if output is None:
            return said.strip() or _core._completion_text(None)
        process = None if self.output is None else self.output.process
        if process is None:
            return _core._completion_text(output)
        value = output
        if self.output is not None and self.output.type is not None:
            from toolcrib.context import _AnswerShape

            value = await _AnswerShape(self.output.type).read(output)
        processed = process(value)
        if inspect.isawaitable(processed):
            processed = await processed
        return processed if isinstance(processed, str) else _core._completion_text(processed)


async def _complete_task(**arguments: Any) -> None:
    """Stand for the tool, which the loop itself carries out."""


class _Loop:
    """One run."""

    def __init__(
        self,
        definition: AgentDefinition,
        model: ModelFunction,
        settings: Mapping[str, Any],
        finisher: _Finisher,
        session: Session[Any],
        emit: AgentRun,
    ) -> None:
        self.definition = definition
        self.model = model
        self.settings = settings
        self.finisher = finisher
        self.session = session
        self.emit = emit
        self.dialect = getattr(model, "dialect", None)
        self.messages: list[ModelMessage] = []
        self.turns = 0
        self.tokens = 0
        self.text: str | None = None
        self.output: Any = None
        self.exhausted = ""

    async def run(self, inputs: Mapping[str, Any], grace: float | None) -> AgentResult:
        """Run the turns, and the recovery turn if it is needed."""
        prompt = self.definition.render(inputs)
        if prompt.system_prompt is not None:
            self.messages.append(ModelMessage(role="system", content=prompt.system_prompt))
        self.messages += [ModelMessage(message) for message in prompt.initial_messages]
        self.messages.append(ModelMessage(role="user", content=prompt.query))
        self.emit("START", text=_core._run_description(self.definition.name, dict(inputs)))
        try:
            reason = await _within(self.emit.context.time_left(), self.take_turns())
        except _TimeUp:
            reason = "TIMEOUT"
        recovered = False
        if reason != "GOAL":
            await self.report_end(reason)
            if grace is not None and _core._is_recoverable(reason):
                recovered = await self.recover(reason, grace)
        return AgentResult(
            agent=self.definition.name,
            termination=reason,
            recovered=recovered,
            text=self.text if self.text is not None else self.final_text(reason),
            output=self.output,
            turns=self.turns,
            tokens=self.tokens,
            path=self.emit.path,
        )

    async def take_turns(self) -> str:
        """Take turns until the task is completed or a limit is reached, and return the reason for the end."""
        limits = self.definition.limits
        while True:
            if limits.turns is not None and self.turns >= limits.turns:
                return "MAX_TURNS"
            if limits.tokens is not None and self.tokens >= limits.tokens:
                return "MAX_TOKENS"
            if (exhausted := self.emit.take_turn()) is not None:
                self.exhausted = exhausted
                return "BUDGET"
            ended = await self.take_turn(self.schemas())
            if ended is not None:
                return ended

    async def take_turn(self, schemas: list[dict[str, Any]], *, is_recovery: bool = False) -> str | None:
        """Ask the model once and run its calls side by side; the reason for the end, if this is the last turn.

        In the recovery turn only `complete_task` is available.
        """
        reply = await self.ask(schemas)
        self.turns += 1
        self.tokens += reply.tokens
        self.session.add_tokens(reply.tokens)
        for thought in reply.thoughts:
            subject, rest = _core._thought(thought)
            if text := subject or rest[:_SHOWN_THOUGHT]:
                self.emit("THOUGHT_CHUNK", text=text)
        calls: Sequence[ToolCall] = reply.calls
        ids = [call.id or f"call_{self.turns}_{number}" for number, call in enumerate(calls, 1)]
        self.messages.append(assistant_message(reply, calls, ids))
        if not calls:
            return "ERROR_NO_COMPLETE_TASK_CALL"
        answers = self.complete(calls)
        others = [call for call, answer in zip(calls, answers, strict=True) if answer is None]
        if is_recovery:
            responses = iter([self.refused(call, "tool_not_available") for call in others])
        else:
            responses = iter(await _side_by_side([self.call(call) for call in others]))
        answered = [next(responses) if answer is None else answer for answer in answers]
        for call, id, response in zip(calls, ids, answered, strict=True):
            message = ModelMessage(response.to_openai(id))
            message.call, message.response = call, response
            self.messages.append(message)
        if any(response.code == "cancelled" for response in answered):
            return "ABORTED"
        if any(answer is not None and answer.ok for answer in answers):
            self.text = await self.finisher.text(self.output, reply.text)
            return "GOAL"
        return None

    def schemas(self) -> list[dict[str, Any]]:
        """Describe the tools of the agent and `complete_task`."""
        session, dialect = self.session, self.dialect
        tools = session.get_json_schemas() if dialect is None else list(session.schemas(dialect))
        own = [schema for schema in tools if _name_of(schema) != _core._COMPLETE_TASK]
        return own + self.finisher.schemas(dialect)

    async def ask(self, schemas: list[dict[str, Any]]) -> ModelReply:
        """Call the model function and read its reply."""
        try:
            reply = self.model(list(self.messages), schemas, **self.settings)
            if inspect.isawaitable(reply):
                reply = await reply
            return read_reply(reply)
        except Exception as error:
            self.emit("ERROR", error=str(error) or type(error).__name__, context="model")
            raise

    def complete(self, calls: Sequence[ToolCall]) -> list[ToolResponse | None]:
        """Answer the calls of `complete_task` in their order: the first valid one completes the task."""
        answers: list[ToolResponse | None] = []
        is_complete = False
        for call in calls:
            if call.name != _core._COMPLETE_TASK:
                answers.append(None)
                continue
            if is_complete:
                answers.append(_response(_core._DUPLICATE_COMPLETION, "bad_call"))
                continue
            problem, output = self.finisher.check(call, self.dialect)
            if problem is None:
                is_complete, self.output = True, output
                answers.append(_response("Task completed."))
            else:
                self.emit("ERROR", error=problem, context="tool_call", name=call.name)
                answers.append(_response(problem, "invalid_arguments"))
        return answers

    async def call(self, call: ToolCall) -> ToolResponse:
        """Run a call through the session, and report it."""
        self.emit("TOOL_CALL_START", name=call.name, args=call.arguments)
        last: ToolResponse | None = None
        async for given in self.session.call_tool_function(call, dialect=self.dialect):
            # A toolkit in another library's place gives responses of its class.
            response = _core._as_response(given)
            if response.mode != "progress":
                last = response
            elif "activity" in (response.metadata or {}):
                self.emit(response)  # the event of an agent below this one
            else:
                self.emit("TOOL_CALL_PROGRESS", name=call.name, text=response.text)
        if last is None:
            last = _response("")
        if last.code in _UNAVAILABLE:
            return self.refused(call, last.code)
        if not last.ok:
            self.emit("ERROR", error=last.text, context="tool_call", name=call.name)
        else:
            self.emit("TOOL_CALL_END", name=call.name, output=last.text[:_SHOWN])
        return last

    def refused(self, call: ToolCall, code: str) -> ToolResponse:
        """Answer a call of a tool that the agent does not have, and report it."""
        response = _response(_core._unauthorized_text(call.name), code)
        self.emit("ERROR", error=response.text, context="tool_call_unauthorized", name=call.name)
        return response

    async def report_end(self, reason: str) -> None:
        """Report the end of a run that has not completed its task."""
        contexts = {"TIMEOUT": "timeout", "MAX_TURNS": "max_turns", "ERROR_NO_COMPLETE_TASK_CALL": "protocol_violation"}
        error = self.final_text(reason)
        if reason == "ERROR_NO_COMPLETE_TASK_CALL":
            error = f"Agent stopped without calling '{_core._COMPLETE_TASK}'."
        self.emit("ERROR", error=error, context=contexts.get(reason, reason.lower()))

    async def recover(self, reason: str, grace: float) -> bool:
        """Give the model one more turn, in which it can only complete its task; true if it does."""
        if self.emit.take_turn() is not None:
            return False
        why = {
            "TIMEOUT": "Your time is up.",
            "MAX_TURNS": "You have used all of your turns.",
            "ERROR_NO_COMPLETE_TASK_CALL": f"You have stopped without calling `{_core._COMPLETE_TASK}`.",
        }[reason]
        content = (
            f"{why} This is your last turn: call `{_core._COMPLETE_TASK}` now with the best answer that you have, \
and say in it what is missing. No other tool is available."
        )
        self.settle_calls()
        self.messages.append(ModelMessage(role="user", content=content))
        try:
            ended = await _within(grace, self.take_turn(self.finisher.schemas(self.dialect), is_recovery=True))
        except _TimeUp:
            self.emit(
                "ERROR", error=f"The recovery turn has taken more than {grace:g} seconds.", context="recovery_turn"
            )
        except Exception as error:
            self.emit("ERROR", error=str(error) or type(error).__name__, context="recovery_turn")
        else:
            if ended == "GOAL":
                return True
            self.emit("ERROR", error="The task was not completed in the recovery turn.", context="recovery_turn")
        return False

    def settle_calls(self) -> None:
        """Answer the calls that were interrupted: a provider refuses messages with calls that have no answer."""
        for place in range(len(self.messages) - 1, -1, -1):
            message = self.messages[place]
            if message.get("role") != "assistant":
                continue
            answered = {later.get("tool_call_id") for later in self.messages[place + 1 :]}
            for call in message.get("tool_calls", ()):
                if call["id"] not in answered:
                    made = ToolCall(call["function"]["name"], json.loads(call["function"]["arguments"]), call["id"])
                    response = _response("The call was interrupted.", "interrupted")
                    settled = ModelMessage(response.to_openai(call["id"]))
                    settled.call, settled.response = made, response
                    self.messages.append(settled)
            return

    def final_text(self, reason: str) -> str:
        """The result of a run that ends without one."""
        limits = self.definition.limits
        if reason == "BUDGET":
            return self.exhausted
        minutes = None if limits.time is None else limits.time / 60
        limit = {"TIMEOUT": minutes, "MAX_TURNS": limits.turns, "MAX_TOKENS": limits.tokens}.get(reason)
        return _core._final_text(reason, limit)


def _response(text: str, code: str | None = None) -> ToolResponse:
    return ToolResponse([{"type": "text", "text": text}], code=code)


def _name_of(schema: Mapping[str, Any]) -> Any:
    function = schema.get("function", schema)
    return function.get("name") if isinstance(function, Mapping) else None


def _accepts(function: Callable[..., Any], name: str) -> bool:
    """True if a function has a keyword parameter of this name."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(parameter.name == name or parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


async def _side_by_side(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines at the same time; if one fails or this is cancelled, the others are cancelled and awaited."""
    if len(work) < 2:
        return [await one for one in work]
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in tasks:
            if task.done():
                task.result()  # raises the exception of a call that failed
        return [task.result() for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _within(seconds: float | None, work: Coroutine[Any, Any, T]) -> T:
    """Await work, and raise `_TimeUp` if it is not done in time. The work is cancelled and finalised before that."""
    if seconds is None:
        return await work
    if sys.version_info >= (3, 11):
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await work
        except TimeoutError:
            if limit.expired():
                raise _TimeUp from None
            raise
    end = asyncio.get_running_loop().time() + seconds
    try:
        return await asyncio.wait_for(cast("Awaitable[T]", work), seconds)
    except asyncio.TimeoutError:
        if asyncio.get_running_loop().time() >= end:
            raise _TimeUp from None
        raise
