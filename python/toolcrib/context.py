"""The context of a call: the caller, the session and the dependencies that a tool works with, and its way to report."""

from __future__ import annotations

import asyncio
import logging
import time
import warnings
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from toolcrib import _core, errors
from toolcrib._core import ToolResponse
from toolcrib.policy import _answer_of

if TYPE_CHECKING:
    import typing_extensions

    from toolcrib._core import Session, _ServedCall
    from toolcrib.sampling import Sampler, SamplingResult

    # `ToolContext` alone is `ToolContext[Any]`; the module itself does without a package for that.
    Deps = typing_extensions.TypeVar("Deps", default=Any)
else:
    Deps = TypeVar("Deps")

__all__ = ["Answer", "Question", "ToolContext"]

T = TypeVar("T")


@dataclass(frozen=True)
class Question:
    """A question that a tool asks the user while it runs.

    Attributes:
        text: The question.
        schema: The JSON Schema of the answer.
        tool: The name of the tool.
        call_id: The id of the call.
        caller: The name of the caller.
        session: The id of the session.
        deps: The dependencies of the session.
        path: The names of the agents that called each other, from the outermost one, if a sub-agent asks.
    """

    text: str
    schema: dict[str, Any]
    tool: str
    call_id: str
    caller: str | None
    session: str | None
    deps: Any
    path: tuple[str, ...] = ()


class Answer(Generic[T]):
    """The answer to a question: await it in asynchronous tools, and call `result` in synchronous ones."""

    def __init__(self, find: Callable[[], Coroutine[Any, Any, T]], run: Callable[[Coroutine[Any, Any, T]], T]) -> None:
        self._find = find
        self._run = run
        self._is_asked = False

    def __await__(self) -> Generator[Any, None, T]:
        """Wait for the answer."""
        self._is_asked = True
        return self._find().__await__()

    def result(self) -> T:
        """Block until the answer is there; for synchronous tools, which run in a thread or a process."""
        self._is_asked = True
        return self._run(self._find())

    def __del__(self) -> None:
        """Warn as a coroutine does: a question that is not awaited is not asked."""
        if not self._is_asked:
            text = "a question of a tool was never asked: use `await`, or `.result()` in a synchronous tool"
            warnings.warn(text, RuntimeWarning, stacklevel=2)


class ToolContext(Generic[Deps]):
    """The context of one call, for a tool that has a parameter of this type.

    The parameter is hidden from the model and filled at each call. `ToolContext[Deps]` names the type of the
    dependencies, which come from `Toolkit.session(deps=...)`.

    Attributes:
        tool_name: The name of the tool.
        call_id: The id of the call.
        caller: The name of the caller; None if none is named.
        session: The session that the call is part of; None outside of sessions and in a process of its own.
        session_id: The id of that session.
        deps: The dependencies of the session; None outside of sessions.
        deadline: The time of `time.monotonic()` at which the call times out, or the sub-agent that made it; None
            without a timeout.
        parent: The context of the call that the session belongs to, for sessions of sub-agents.
    """

    __slots__ = (
        "_asker",
        "_client",
        "_confirmation",
        "_loop",
        "_port",
        "_sampler",
        "call_id",
        "caller",
        "deadline",
        "deps",
        "parent",
        "session",
        "session_id",
        "tool_name",
    )

    tool_name: str
    call_id: str
    caller: str | None
    session: Session[Deps] | None
    session_id: str | None
    deps: Deps
    deadline: float | None
    parent: ToolContext[Any] | None

    def __init__(
        self,
        port: Any,
        tool_name: str,
        call_id: str,
        caller: str | None,
        session: Session[Deps] | None,
        timeout: float | None,
        asker: Callable[[Question], Any] | None,
        sampler: Sampler | None = None,
        client: _ServedCall | None = None,
    ) -> None:
        self._port = port
        self._asker = asker
        self._sampler = sampler
        # The MCP client that is sent log messages.
        self._client = client
        # Set by the call, if its tool has confirmed it.
        self._confirmation: Any = None
        self.tool_name = tool_name
        self.call_id = call_id
        self.caller = caller
        self.session = session
        self.session_id = None if session is None else session.id
        self.deps = None if session is None else session.deps  # type: ignore[assignment]
        self.parent = None if session is None else session.parent
        self.deadline = None if timeout is None else time.monotonic() + timeout
        above = None if self.parent is None else self.parent.deadline
        if above is not None and (self.deadline is None or above < self.deadline):
            self.deadline = above
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None

    def __repr__(self) -> str:
        """Name the call."""
        known = {"caller": self.caller, "session": self.session_id}
        more = "".join(f", {name}={value!r}" for name, value in known.items() if value is not None)
        return f"ToolContext(tool_name={self.tool_name!r}, call_id={self.call_id!r}{more})"

    def time_left(self) -> float | None:
        """Return the seconds until the call times out; None without a timeout."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def progress(self, done: float, total: float | None = None, text: str | None = None) -> None:
        """Report the progress of the call: the stream gives a response of mode `"progress"`.

        It is not part of the result, and the model does not see it. It may be called from any thread and any task.

        Args:
            done: The amount of work that is done.
            total: The amount of all work; None if it is not known.
            text: A text for people; made of the numbers if it is None.
        """
        self._port.report(progress_response(done, total, text))

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger below `toolcrib.tool`, whose records have the tool, call id, caller and session as attributes.

        An MCP client that calls the tool is sent the records too, if it wants their level.
        """
        known = {
            "tool": self.tool_name,
            "call_id": self.call_id,
            "caller": self.caller,
            "session": self.session_id,
        }
        logger = logging.getLogger(f"toolcrib.tool.{self.tool_name}")
        return logging.LoggerAdapter(logger if self._client is None else _ClientLogger(logger, self._client), known)

    @overload
    def ask(self, question: str) -> Answer[str]: ...

    @overload
    def ask(self, question: str, schema: type[T]) -> Answer[T]: ...

    @overload
    def ask(self, question: str, schema: Any) -> Answer[Any]: ...

    def ask(self, question: str, schema: Any = str) -> Answer[Any]:
        """Ask the user a question in the middle of the call, by the toolkit's `asker`.

        Args:
            question: The question.
            schema: The type of the answer, such as `bool`, `Literal["a", "b"]` or a dataclass, or a JSON Schema.

        Returns:
            The answer: `await context.ask(...)`, or `context.ask(...).result()` in a synchronous tool.

        Raises:
            NoAskerError: If the toolkit has no `asker`; when the answer is awaited.
            TypeError: If the schema is neither a type nor a JSON Schema; when the answer is awaited.
            WrongAnswerError: If the answer does not fit the schema; when it is awaited.
        """
        return Answer(lambda: self._answer(question, schema), self._run)

    async def _answer(self, text: str, schema: Any) -> Any:
        if self._asker is None:
            raise errors.NoAskerError(f"tool `{self.tool_name}` asks a question: pass `asker=` to the toolkit")
        shape = _AnswerShape(schema)
        path = () if self.session is None else self.session.path
        question = Question(
            text, shape.schema, self.tool_name, self.call_id, self.caller, self.session_id, self.deps, path
        )
        return await shape.read(await _answer_of(self._asker, question))

    def sample(
        self,
        messages: str | Sequence[Mapping[str, Any]],
        *,
        system_prompt: str | None = None,
        max_tokens: int = 1024,
        temperature: float | None = None,
        stop_sequences: Sequence[str] = (),
        model_preferences: Mapping[str, Any] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> Answer[SamplingResult]:
        """Ask a model in the middle of the call: that of the MCP client that calls, or else the toolkit's `sampler`.

        Args:
            messages: A text, or messages with `role` and `content`, which is text or blocks in the form of MCP.
            system_prompt: The system prompt.
            max_tokens: The most tokens that the answer may have.
            temperature: The temperature.
            stop_sequences: Texts that end the answer.
            model_preferences: The model that the tool would like, as MCP describes it.
            tools: Tools that the model may call, as MCP defines them. The tool has to call them itself.

        Returns:
            The answer: `await context.sample(...)`, or `context.sample(...).result()` in a synchronous tool.

        Raises:
            NoSamplerError: If there is no model; when the answer is awaited.
            UnansweredError: If the MCP client refuses, or its answer is invalid; when it is awaited.
        """
        from toolcrib import sampling

        request = sampling.written(
            messages,
            system_prompt=system_prompt,
            max_tokens=max_tokens,
            temperature=temperature,
            stop_sequences=stop_sequences,
            model_preferences=model_preferences,
            tools=tools,
        )

        async def sample() -> SamplingResult:
            return sampling.SamplingResult._read(await self._sampled(request))

        return Answer(sample, self._run)

    async def _sampled(self, request: dict[str, Any]) -> dict[str, Any]:
        """Have a request to a model answered, both in the form of MCP."""
        from toolcrib import sampling

        if self._sampler is None:
            where = "pass `sampler=` to the toolkit"
            if self._client is not None:
                where = f"its MCP client has no model, and without one, {where}"
            raise errors.NoSamplerError(f"tool `{self.tool_name}` asks a model: {where}")
        return await sampling.sampled(self._sampler, request)

    def _run(self, answer: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine from a synchronous tool: on the event loop of the call, if it runs in another thread."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            answer.close()
            raise RuntimeError("this tool runs on the event loop, which must not be blocked: make it asynchronous")
        if self._loop is not None and self._loop.is_running():
            future = asyncio.run_coroutine_threadsafe(answer, self._loop)
            result: T = _core._call_held(future.result)
            return result
        return asyncio.run(answer)

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to a child process, without the session: its reports and questions come back to this one."""
        fields = (self.tool_name, self.call_id, self.caller, self.session_id, self.deps, self.deadline)
        return _in_child, fields


def progress_response(done: float, total: float | None, text: str | None) -> ToolResponse:
    """Make the response that reports progress, with a text made of the numbers if there is none."""
    if text is None:
        text = _number(done) if total is None else f"{_number(done)} of {_number(total)}"
    report = {"done": done, "total": total, "text": text}
    return ToolResponse([{"type": "text", "text": text}], {"progress": report}, True, False, mode="progress")


def _number(number: float) -> str:
    """Write a number for people: a count with all of its digits, any other without the noise of binary fractions."""
    if not isinstance(number, (int, float)):
        raise TypeError(f"progress is reported in numbers, not {type(number).__qualname__}")
    return str(int(number)) if isinstance(number, int) else f"{number:.15g}"


class ChildPort:
    """The way of a context in a child process to the process that made the call."""

    def __init__(self, exchange: Callable[..., Any]) -> None:
        self._exchange = exchange

    def report(self, response: ToolResponse) -> None:
        """Send a response to the stream of the call."""
        self._exchange("report", response)

    def ask(self, text: str, schema: Any) -> Any:
        """Have a question asked in the process that made the call."""
        return self._exchange("ask", (text, schema))

    def sample(self, request: dict[str, Any]) -> dict[str, Any]:
        """Have a model asked in the process that made the call."""
        answer: dict[str, Any] = self._exchange("sample", request)
        return answer

    def log(self, record: logging.LogRecord) -> None:
        """Have a record logged in the process that made the call."""
        self._exchange("log", record)


child_port: ChildPort | None = None
"""The port of the call that this process runs, if it is a child process."""


class _ClientLogger(logging.Logger):
    """The logger of a tool that an MCP client has called: the client is sent the records of the level that it wants.

    The level of the program's own logger decides only about its own handlers.
    """

    def __init__(self, logger: logging.Logger, client: _ServedCall) -> None:
        super().__init__(logger.name)
        self._logger = logger
        self._client = client

    def isEnabledFor(self, level: int) -> bool:
        return self._client.wants_log(level) or self._logger.isEnabledFor(level)

    def handle(self, record: logging.LogRecord) -> None:
        if self._client.wants_log(record.levelno):
            self._client.log(record.levelno, record.getMessage())
        if self._logger.isEnabledFor(record.levelno):
            self._logger.handle(record)


class _ChildContext(ToolContext[Any]):
    __slots__ = ()

    def _run(self, answer: Coroutine[Any, Any, T]) -> T:
        return asyncio.run(answer)

    async def _answer(self, text: str, schema: Any) -> Any:
        return self._port.ask(text, schema)

    async def _sampled(self, request: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self._port.sample(request)
        return answer

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        logger = super().log
        root = logging.getLogger("toolcrib.tool")
        if not any(isinstance(handler, _ChildHandler) for handler in root.handlers):
            root.addHandler(_ChildHandler())
            root.setLevel(logging.DEBUG)
            root.propagate = False
        return logger


class _ChildHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        record.msg, record.args = record.getMessage(), ()
        if record.exc_info:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
            record.exc_info = None
        if child_port is not None:
            child_port.log(record)


def _in_child(
    tool_name: str, call_id: str, caller: str | None, session_id: str | None, deps: Any, deadline: float | None
) -> ToolContext[Any]:
    context: ToolContext[Any] = _ChildContext(child_port, tool_name, call_id, caller, None, None, None)
    context.session_id, context.deps, context.deadline = session_id, deps, deadline
    return context


class _AnswerShape:
    """The type or schema of an answer. It is described and validated as the argument of a tool is."""

    def __init__(self, schema: Any) -> None:
        from toolcrib import Toolkit

        self._value: Any = None

        def answer(answer):  # type: ignore[no-untyped-def]
            self._value = answer
            return ""

        self._toolkit = Toolkit(run_in="inline")
        if isinstance(schema, dict):
            parameters = {"type": "object", "properties": {"answer": schema}, "required": ["answer"]}
            function = {"name": "answer", "description": "", "parameters": parameters}
            self._toolkit.register_tool_function(answer, json_schema={"type": "function", "function": function})
        elif isinstance(schema, str):
            # An annotation that is text is code.
            raise TypeError(f"invalid schema: expected a type or a JSON Schema, got the text {schema!r}")
        else:
            answer.__annotations__ = {"answer": schema}
            self._toolkit.register_tool_function(answer)
        (described,) = self._toolkit.get_json_schemas()
        parameters = described["function"]["parameters"]
        self.schema: dict[str, Any] = dict(parameters["properties"]["answer"])
        if "$defs" in parameters:
            self.schema["$defs"] = parameters["$defs"]

    async def read(self, answer: Any) -> Any:
        response = await self._toolkit.call("answer", answer=answer)
        if response.code is not None:
            problems = "; ".join(line.removeprefix("- ") for line in response.text.splitlines()[1:])
            raise errors.WrongAnswerError(f"invalid answer: {problems}")
        return self._value
