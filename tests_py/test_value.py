"""`Toolkit.value`: the bare value of a call, on the same path as any other call."""

import asyncio
import pickle
from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass
from typing import Any

import pytest

from toolcrib import Limits, Policy, Toolkit, ToolResponse, tools
from toolcrib.context import ToolContext
from toolcrib.errors import ToolCallError
from toolcrib.policy import Rule


@dataclass
class Board:
    """A value that has a response of its own, which must not be asked for it."""

    length: int

    def __tool_response__(self) -> ToolResponse:
        raise AssertionError("no response is needed")


class Word(str):
    """A text that a response would not keep as it is."""


def toolkit_of(*tools: Any, **options: Any) -> Toolkit:
    return Toolkit(tools=tools, run_in="inline", **options)


def returning(value: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    def function() -> Any:
        return value

    async def coroutine() -> Any:
        await asyncio.sleep(0)
        return value

    return function, coroutine


RESPONSE = ToolResponse([{"type": "text", "text": "shown"}], code="failed")
VALUES: list[Any] = [3, None, "text", "\ud800", Word("text"), b"\x00", [1], {"value": 1}, Board(3), object(), RESPONSE]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
async def test_the_value_of_a_function_is_what_it_returned(value: Any) -> None:
    toolkit = toolkit_of(*returning(value))

    assert await toolkit.value("function") is value
    assert await toolkit.value("coroutine") is value


async def test_a_function_in_a_thread_and_one_in_a_view_have_values_too() -> None:
    board = Board(3)
    toolkit = Toolkit()
    toolkit.register_tool_function(lambda: board, name="saw", run_in="thread")

    assert await toolkit.value("saw") is board
    assert await toolkit.view(names=["saw"]).value("saw") is board
    assert await toolkit.session().value("saw") is board


async def test_what_a_function_returns_is_awaited_but_not_iterated() -> None:
    def numbers() -> Generator[int, None, None]:
        yield 1

    async def letters() -> AsyncGenerator[str, None]:
        yield "a"

    async def seven() -> int:
        return 7

    toolkit = toolkit_of()
    toolkit.register_tool_function(lambda: numbers(), name="numbers")
    toolkit.register_tool_function(lambda: letters(), name="letters")
    toolkit.register_tool_function(lambda: seven(), name="seven")

    async def give() -> Any:
        return seven()

    toolkit.register_tool_function(give)

    assert list(await toolkit.value("numbers")) == [1]
    assert [letter async for letter in await toolkit.value("letters")] == ["a"]
    assert await toolkit.value("seven") == 7
    assert await (await toolkit.value("give")) == 7


async def test_a_tool_that_yields_responses_has_the_value_of_the_last_one() -> None:
    def numbers() -> Generator[int, None, None]:
        yield 1
        yield 2

    async def words() -> AsyncGenerator[str, None]:
        yield "a"
        yield "b"

    def response() -> Generator[ToolResponse, None, None]:
        yield ToolResponse([{"type": "text", "text": "shown"}], {"value": {"kept": True}})

    toolkit = toolkit_of(numbers, words, response)
    toolkit.register_tool_function(lambda: toolkit.call_tool_function({"name": "numbers"}), name="passed_on")

    assert await toolkit.value("numbers") == [1, 2]
    assert await toolkit.value("words") == "ab"
    assert await toolkit.value("response") == {"kept": True}
    assert await toolkit.value("passed_on") == [1, 2]


@pytest.mark.parametrize("listens", [False, True])
async def test_a_native_tool_has_the_value_of_its_response(listens: bool) -> None:
    toolkit = Toolkit()
    tools.register(toolkit, "artifacts")
    toolkit.register_tool_function(tools.wait)
    if listens:
        toolkit.subscribe("call_end", lambda event: None)

    assert await toolkit.value("wait", seconds=0) == "Waited 0 seconds."
    assert (await toolkit.value("create_artifact", id="a", title="A", content="x"))["message"]
    with pytest.raises(ToolCallError, match="Artifact 'b' not found") as failure:
        await toolkit.value("read_artifact", id="b")
    assert failure.value.code == "failed"


@pytest.mark.parametrize("errors", ["respond", "raise"])
async def test_an_exception_of_the_tool_is_raised_or_the_cause(errors: Any) -> None:
    reason = ValueError("stuck")

    def jam() -> None:
        raise reason

    async def break_down() -> None:
        raise reason

    def begin() -> Generator[int, None, None]:
        yield 1
        raise reason

    toolkit = toolkit_of(jam, break_down, begin, errors=errors)

    for name in ("jam", "break_down", "begin"):
        with pytest.raises((ValueError, ToolCallError), match="stuck") as raised:
            await toolkit.value(name)
        assert reason is (raised.value.__cause__ if errors == "respond" else raised.value)


async def test_secrets_are_not_in_the_text_of_a_failure() -> None:
    def enter(password: str) -> None:
        raise ValueError(f"wrong: {password}")

    toolkit = toolkit_of()
    toolkit.register_tool_function(enter, preset_kwargs={"password": "sesame-open"})

    with pytest.raises(ToolCallError) as failed:
        await toolkit.value("enter")

    assert "sesame" not in str(failed.value)
    assert failed.value.code == "failed"


async def test_a_call_that_is_refused_raises_with_the_response() -> None:
    def saw(length: int) -> int:
        return length

    toolkit = toolkit_of(saw)

    with pytest.raises(ToolCallError, match="length") as invalid:
        await toolkit.value("saw", length="short")
    with pytest.raises(ToolCallError) as unknown:
        await toolkit.value("drill")
    toolkit.policy = Policy([Rule("deny", tool="saw", reason="it is late")])
    with pytest.raises(ToolCallError, match="it is late") as denied:
        await toolkit.value("saw", length=3)

    assert [error.value.code for error in (invalid, unknown, denied)] == ["invalid_arguments", "unknown_tool", "denied"]
    assert not str(unknown.value).startswith("Error: ")
    copied = pickle.loads(pickle.dumps(unknown.value))
    assert (str(copied), copied.code) == (str(unknown.value), "unknown_tool")


async def test_a_call_that_waits_for_approval_has_no_value_yet() -> None:
    def saw(length: int) -> Board:
        return Board(length)

    toolkit = toolkit_of()
    toolkit.register_tool_function(saw, permission="confirm")

    with pytest.raises(ToolCallError) as pending:
        await toolkit.value("saw", length=3)

    assert pending.value.code == "pending"
    toolkit.approver = lambda request: True
    assert (await toolkit.value("saw", length=3)) == Board(3)


async def test_arguments_are_coerced_checked_and_preset_as_in_any_call() -> None:
    def saw(length: int, wood: str = "oak") -> tuple[int, str]:
        return length, wood

    toolkit = toolkit_of()
    toolkit.register_tool_function(saw, preset_kwargs={"wood": "ash"})

    assert await toolkit.value("saw", length="3") == (3, "ash")
    with pytest.raises(ToolCallError):
        await toolkit.value("saw", length=3, wood="oak")


async def test_listeners_and_the_audit_log_see_the_call_and_the_value_stays_itself() -> None:
    events: list[Any] = []
    records: list[Any] = []
    word = Word("cut")
    toolkit = toolkit_of(*returning(word), audit=records.append)
    toolkit.policy = Policy([Rule("allow", tool="*")])
    for kind in ("call_start", "chunk", "call_end"):
        toolkit.subscribe(kind, events.append)

    given = await toolkit.value("coroutine")

    assert given is word
    assert [event.type for event in events] == ["call_start", "chunk", "call_end"]
    assert events[1].data["response"].text == "cut"
    assert len(records) == 1


async def test_a_middleware_sees_responses_and_may_replace_them() -> None:
    toolkit = toolkit_of(*returning({"length": 3}))

    async def shorten(kwargs: Any, next_handler: Any) -> AsyncGenerator[ToolResponse, None]:
        async for response in await next_handler(**kwargs):
            response.metadata = {"value": {"length": response.metadata["value"]["length"] - 1}}
            yield response

    toolkit.register_middleware(shorten)

    assert await toolkit.value("function") == {"length": 2}
    assert await toolkit.value("coroutine") == {"length": 2}


async def test_an_exception_comes_through_a_middleware() -> None:
    def jam() -> None:
        raise KeyError("stuck")

    async def pass_on(kwargs: Any, next_handler: Any) -> AsyncGenerator[ToolResponse, None]:
        async for response in await next_handler(**kwargs):
            yield response

    toolkit = toolkit_of(jam)
    toolkit.register_middleware(pass_on)

    with pytest.raises(ToolCallError, match="stuck") as failed:
        await toolkit.value("jam")
    assert isinstance(failed.value.__cause__, KeyError)


async def test_a_postprocess_function_decides_about_the_value() -> None:
    def replace(block: Any, response: ToolResponse) -> ToolResponse | None:
        assert block["name"] == "saw"
        return ToolResponse([{"type": "text", "text": "done"}])

    toolkit = toolkit_of()
    toolkit.register_tool_function(lambda: Word("cut"), name="saw", postprocess_func=replace)

    assert await toolkit.value("saw") == "done"


async def test_a_value_is_not_cut_to_a_budget() -> None:
    toolkit = toolkit_of(*returning("long" * 1000), result_budget=100)

    assert len(await toolkit.value("function")) == 4000
    assert len((await toolkit.call("function")).text) < 4000


async def test_reports_of_a_tool_are_not_its_value() -> None:
    async def saw(context: ToolContext[None]) -> Word:
        context.progress(1, 2, "half")
        await asyncio.sleep(0)
        return Word("cut")

    value = await toolkit_of(saw).value("saw")

    assert type(value) is Word


async def test_limits_of_a_session_count_values() -> None:
    def jam() -> None:
        raise ValueError("stuck")

    toolkit = toolkit_of(jam, *returning(3))
    calls, retries = toolkit.session(limits=Limits(calls=1)), toolkit.session(limits=Limits(retries=0))

    assert (await calls.value("function"), await retries.value("function")) == (3, 3)
    with pytest.raises(ToolCallError) as refused:
        await calls.value("function")
    assert refused.value.code == "limit_exceeded"
    for code in ("failed", "limit_exceeded"):
        with pytest.raises(ToolCallError) as failed:
            await retries.value("jam")
        assert failed.value.code == code


async def test_a_call_in_the_background_has_the_text_of_its_task() -> None:
    toolkit = toolkit_of()
    toolkit.register_tool_function(lambda: 3, name="saw", async_execution=True)

    assert "saw" in await toolkit.value("saw")


async def test_a_timeout_has_no_value() -> None:
    toolkit = toolkit_of()
    toolkit.register_tool_function(lambda: asyncio.sleep(3600), name="wait", timeout=0.01, run_in="thread")

    with pytest.raises(ToolCallError) as late:
        await toolkit.value("wait")

    assert late.value.code == "timeout"


async def test_a_cancellation_reaches_the_tool_and_the_caller() -> None:
    ended = asyncio.Event()

    async def wait() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    task = asyncio.ensure_future(toolkit_of(wait).value("wait"))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


def test_mistakes_in_its_use_are_named() -> None:
    toolkit = toolkit_of(*returning(3))

    with pytest.raises(TypeError, match=r"value\(name, \*\*arguments\): arguments are passed by keyword"):
        toolkit.value("function", 3)  # type: ignore[call-arg, unused-coroutine]
    with pytest.warns(RuntimeWarning, match="call of tool 'function' was never awaited"):
        toolkit.value("function")  # type: ignore[unused-coroutine]
    call = toolkit.value("function")
    with pytest.raises(TypeError, match=r"await toolkit.value"):
        iter(call)  # type: ignore[call-overload]
    with pytest.raises(AttributeError, match=r"await toolkit.call"):
        _ = call.text  # type: ignore[attr-defined]
    call.close()
