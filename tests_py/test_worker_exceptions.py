"""Exceptions of user code in a worker thread arrive as exceptions, whatever they mean to Python elsewhere."""

import asyncio
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import Any

import pytest

from toolcrib import Toolkit


class Finished(StopIteration):
    """A subclass, as libraries have them."""


ANSWERS: list[Any] = ["once", True, "always", None]
SIGNALS = [StopIteration, Finished, StopAsyncIteration, GeneratorExit]


def shop(approver: Callable[[Any], Any]) -> tuple[Toolkit, list[str]]:
    toolkit, sold = Toolkit(run_in="inline"), list[str]()

    @toolkit.tool(permission="confirm")
    def buy() -> str:
        """Buy something."""
        sold.append("something")
        return "bought"

    toolkit.approver = approver
    return toolkit, sold


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_approver_that_raises_has_not_agreed(signal: type[BaseException], answer: Any) -> None:
    def approve(request: Any) -> Any:
        raise signal(answer) if answer is not None else signal()

    toolkit, sold = shop(approve)

    response = asyncio.run(toolkit.call("buy"))

    assert (sold, response.code) == ([], "denied")


def test_a_generator_of_answers_that_has_run_dry_has_not_agreed() -> None:
    def answers() -> Generator[str, None, str]:
        yield "no"
        return "once"

    prepared = answers()
    toolkit, sold = shop(lambda request: next(prepared))

    codes = [asyncio.run(toolkit.call("buy")).code for _ in range(3)]

    assert (sold, codes) == ([], ["denied"] * 3)


def test_an_approver_that_returns_a_generator_has_not_agreed() -> None:
    def approve(request: Any) -> Iterator[str]:
        yield "once"

    toolkit, sold = shop(approve)

    response = asyncio.run(toolkit.call("buy"))

    assert (sold, response.code) == ([], "denied")


def test_the_signal_that_an_approver_raised_is_the_cause_of_what_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def approve(request: Any) -> Any:
        raise StopIteration("once")

    toolkit, _ = shop(approve)

    asyncio.run(toolkit.call("buy"))

    [record] = [record for record in caplog.records if record.exc_info]
    assert record.exc_info is not None
    error = record.exc_info[1]
    assert isinstance(error, RuntimeError)
    assert isinstance(error.__cause__, StopIteration)


@pytest.mark.parametrize("run_in", ["thread", "inline"])
@pytest.mark.parametrize("signal", [StopIteration, Finished, StopAsyncIteration])
def test_a_tool_that_raises_a_signal_of_iterators_has_failed(run_in: Any, signal: type[Exception]) -> None:
    def tool() -> str:
        raise signal("a value")

    toolkit = Toolkit()
    toolkit.register_tool_function(tool, run_in=run_in)

    response = asyncio.run(toolkit.call("tool"))

    assert response.code == "failed"


def test_a_system_exit_ends_neither_the_thread_nor_the_loop() -> None:
    threads = set[threading.Thread]()

    def leave() -> str:
        threads.add(threading.current_thread())
        raise SystemExit(3)

    def stay() -> str:
        return "here"

    toolkit = Toolkit()
    toolkit.register_tool_function(leave)
    toolkit.register_tool_function(stay)

    async def main() -> list[str]:
        texts = []
        for _ in range(20):
            await asyncio.wait([asyncio.ensure_future(outcome(toolkit))])
            texts.append((await toolkit.call("stay")).text)
        return texts

    async def outcome(toolkit: Toolkit) -> None:
        with suppress(SystemExit):  # The loop gets the answer of the call, of whichever kind it is.
            await toolkit.call("leave")

    assert asyncio.run(main()) == ["here"] * 20
    assert threads <= set(threading.enumerate())
