"""Limits of sessions: calls, retries and tokens of a run are counted, and what is over a limit does not run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from support.sessions import service
from support.streams import block, last, read
from toolcrib import Limits, Toolkit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def failing() -> tuple[Toolkit, list[Exception | None]]:
    """Make a toolkit whose tool `flaky` raises the exceptions of a list, one a call."""
    toolkit = Toolkit(run_in="inline")
    outcomes: list[Exception | None] = []

    @toolkit.tool
    async def flaky(number: int = 1) -> str:
        outcome = outcomes.pop(0) if outcomes else None
        if outcome is not None:
            raise outcome
        return "done"

    @toolkit.tool
    async def other() -> str:
        return "other"

    return toolkit, outcomes


async def test_calls_over_the_limit_are_answered_and_do_not_run() -> None:
    toolkit, _ = failing()
    session = toolkit.session(limits=Limits(calls=2))

    responses = [await session.call("other") for _ in range(4)]

    assert [response.code for response in responses] == [None, None, "limit_exceeded", "limit_exceeded"]
    assert responses[-1].text == (
        "Error: The limit of 2 tool calls is reached. Do not call any more tools: answer with what you have."
    )
    assert (await toolkit.call("other")).ok, "the limit is the session's"
    session.end_run()
    assert (await session.call("other")).ok
    assert (session.usage.calls, session.usage.total_calls) == (1, 3)


async def test_calls_at_the_same_time_do_not_pass_the_limit() -> None:
    toolkit, running = Toolkit(), []

    @toolkit.tool
    async def wait() -> str:
        running.append(1)
        await asyncio.sleep(0)
        return "done"

    session = toolkit.session(limits=Limits(calls=5))

    responses = await asyncio.gather(*(session.call("wait") for _ in range(20)))

    assert (len(running), sum(response.ok for response in responses)) == (5, 5)


async def test_calls_that_are_not_admitted_are_not_counted() -> None:
    toolkit = service()
    session = toolkit.session(groups=["basic", "web"], limits=Limits(calls=1))

    codes = [(await session.call(name)).code for name in ("nowhere", "query", "search", "look", "look")]

    assert codes == ["tool_not_available", "tool_not_available", "inactive_group", None, "limit_exceeded"]


@pytest.mark.parametrize("run_in", ["inline", "thread"])
@pytest.mark.parametrize("permission", ["auto", "confirm"])
async def test_calls_whose_arguments_are_refused_are_not_counted(run_in: Any, permission: Any) -> None:
    toolkit = Toolkit(run_in=run_in, approver=lambda request: "once")

    @toolkit.tool(permission=permission)
    def double(number: int) -> int:
        return 2 * number

    session = toolkit.session(limits=Limits(calls=1))

    codes = [
        (await session.call("double", **sent)).code for sent in ({"number": "x"}, {}, {"number": 1}, {"number": 1})
    ]

    assert codes == ["invalid_arguments", "invalid_arguments", None, "limit_exceeded"]
    assert (session.usage.calls, session.usage.total_calls) == (1, 1)


async def test_usage_is_a_value() -> None:
    toolkit = service()
    session, other = toolkit.session(), toolkit.session()

    assert session.usage == other.usage
    session.add_tokens(1)
    assert session.usage != other.usage


async def test_tokens_that_are_used_up_end_the_run() -> None:
    toolkit, _ = failing()
    session = toolkit.session(limits=Limits(tokens=100))

    session.add_tokens(99)
    first = await session.call("other")
    session.add_tokens(1)
    second = await session.call("other")

    assert (first.code, second.code) == (None, "limit_exceeded")
    assert second.text.startswith("Error: The limit of 100 tokens is used up.")
    session.end_run()
    assert (session.usage.tokens, session.usage.total_tokens) == (0, 100)
    assert (await session.call("other")).ok


async def test_a_tool_may_be_retried_as_often_as_the_limit_says() -> None:
    toolkit, outcomes = failing()
    session = toolkit.session(limits=Limits(retries=1))
    outcomes += [KeyError("k"), None, KeyError("k"), KeyError("k")]

    responses = [await session.call("flaky") for _ in range(5)]

    assert [response.code for response in responses] == ["failed", None, "failed", "failed", "limit_exceeded"]
    refusal = (
        "The tool 'flaky' failed 2 times in a row and may not be called again: use another tool, or answer without it."
    )
    assert responses[3].content[-1]["text"] == refusal  # type: ignore[typeddict-item]
    assert responses[4].text == f"Error: {refusal}"
    assert session.usage.failures == {"flaky": 2}
    assert (await session.call("other")).ok
    session.end_run()
    assert (await session.call("flaky")).ok


async def test_wrong_arguments_and_timeouts_are_failures_too() -> None:
    toolkit = Toolkit()

    @toolkit.tool(timeout=0.01)
    async def wait(seconds: int) -> None:
        await asyncio.sleep(seconds)

    session = toolkit.session(limits=Limits(retries=1))

    codes = [(await last(session.call_tool_function(block("wait", seconds=it)))).code for it in ("long", 60, 0)]

    assert codes == ["invalid_arguments", "timeout", "limit_exceeded"]


async def test_a_generator_fails_with_its_last_response() -> None:
    toolkit = Toolkit()

    @toolkit.tool
    async def numbers() -> AsyncIterator[str]:
        yield "1"
        raise ValueError("no more")

    session = toolkit.session(limits=Limits(retries=0))

    first = await read(session.call_tool_function(block("numbers")))

    assert [response.code for response in first] == [None, "failed"]
    assert "may not be called again" in first[-1].text
    assert (await session.call("numbers")).code == "limit_exceeded"


async def test_exceptions_that_are_raised_are_failures() -> None:
    toolkit = Toolkit(errors="raise")

    @toolkit.tool
    async def fail() -> None:
        raise ValueError("no")

    session = toolkit.session(limits=Limits(retries=0))

    with pytest.raises(ValueError, match="no"):
        await session.call("fail")

    assert (await session.call("fail")).code == "limit_exceeded"


async def test_denied_and_cancelled_calls_are_no_failures() -> None:
    toolkit = Toolkit(headless=True)

    @toolkit.tool(permission="confirm")
    async def pay() -> None: ...

    @toolkit.tool
    async def wait() -> None:
        await asyncio.sleep(60)

    session = toolkit.session(limits=Limits(retries=0))

    assert (await session.call("pay")).code == "denied"
    task = asyncio.ensure_future(read(session.call_tool_function(block("wait"))))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert session.usage.failures == {}


async def test_failures_in_the_background_are_counted() -> None:
    toolkit = Toolkit()

    @toolkit.tool(async_execution=True)
    async def fail() -> None:
        raise ValueError("no")

    session = toolkit.session(limits=Limits(retries=0))

    started = await session.call("fail")
    assert started.metadata is not None
    await toolkit.view_task(started.metadata["task_id"])
    await asyncio.sleep(0.01)

    assert session.usage.failures == {"fail": 1}


def test_a_check_says_that_a_limit_is_reached_and_counts_nothing() -> None:
    toolkit, _ = failing()
    session = toolkit.session(limits=Limits(calls=1))

    before = session.check(block("other"))
    session.run("other")
    after = session.check(block("other"))

    assert (before["would"], after["would"], after["code"]) == ("run", "refuse", "limit_exceeded")
    assert session.usage.calls == 1


def test_limits_are_values() -> None:
    limits = Limits(calls=3, tokens=7)

    assert (limits.calls, limits.retries, limits.tokens) == (3, None, 7)
    assert limits == Limits(tokens=7, calls=3) != Limits(calls=3)
    assert len({limits, Limits(calls=3, tokens=7)}) == 1
    assert repr(limits) == "Limits(calls=3, tokens=7)"


@pytest.mark.parametrize("name", ["calls", "retries", "tokens"])
def test_a_limit_is_a_number_that_is_not_negative(name: str) -> None:
    for wrong, kind in [(True, TypeError), ("3", TypeError), (1.5, TypeError), (-1, ValueError), (2**64, ValueError)]:
        with pytest.raises(kind, match=f"{name} must be"):
            Limits(**{name: wrong})  # type: ignore[arg-type]


def test_limits_can_be_changed_while_counters_stay() -> None:
    toolkit, _ = failing()
    session = toolkit.session(limits=Limits(calls=1))
    session.run("other")

    session.limits = Limits(calls=2)

    assert session.run("other").ok
    assert session.run("other").code == "limit_exceeded"
    session.limits = None
    assert session.limits == Limits()
    assert session.run("other").ok
    with pytest.raises(ValueError, match="count must be from 0"):
        session.add_tokens(-1)
