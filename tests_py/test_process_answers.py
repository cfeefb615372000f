"""Answers of child processes: every ending of a tool is one, and none reaches another call."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from support import process_tools
from support.processes import process_toolkit
from support.streams import block, texts
from toolcrib import Toolkit
from toolcrib.errors import ToolcribError

ROUNDS = 15


# Endings


@pytest.mark.parametrize("tool", [process_tools.end_by, process_tools.end_later_by, process_tools.end_halfway_by])
@pytest.mark.parametrize(
    ("way", "text"),
    [
        ("exit", "SystemExit: 3"),
        ("exit with text", "SystemExit: no licence"),
        ("exit silently", "SystemExit"),
        ("abandon", "Abandon: left"),
        ("generator exit", "GeneratorExit"),
        ("interrupt", "KeyboardInterrupt"),
        ("interrupt with text", "KeyboardInterrupt: enough"),
        ("interrupt signal", "KeyboardInterrupt"),
        ("interrupting result", "cannot unpickle"),
        ("recursion", "maximum recursion depth exceeded"),
        ("recursion without a limit", "SIGSEGV|recursion"),  # newer versions of Python notice it
        ("deep result", "cannot be sent back"),
        ("odd error", "ErrorThatCannotBeShown"),
        ("memory", "MemoryError"),
        ("all descriptors closed", "ended"),
        ("all descriptors exchanged", "ended"),
        ("template killed", "SIGKILL"),
        ("group killed", "SIGKILL"),
        ("ended with 0", "exit code 0"),
        ("result", "cannot unpickle"),
        ("error", "made elsewhere"),
        ("killed", "SIGKILL"),
        ("crashed", "SIGSEGV"),
        ("quit", "exit code 9"),
    ],
)
def test_no_ending_of_a_tool_is_more_than_an_error(tool: Callable[..., Any], way: str, text: str) -> None:
    async def main() -> tuple[str | None, str, str]:
        toolkit = process_toolkit(tool, process_tools.join)
        response = await toolkit.call(tool.__name__, way=way)
        return response.code, response.text, (await toolkit.call("join", a="next ")).text

    code, answer, after = asyncio.run(main())

    assert code == "failed"
    assert re.search(text, answer)
    assert after == "next b"


def test_an_exit_raises_an_ordinary_error_where_errors_are_raised() -> None:
    toolkit = Toolkit(errors="raise")
    toolkit.register_tool_function(process_tools.end_by, run_in="process")

    with pytest.raises(RuntimeError, match="SystemExit: 3") as raised:
        asyncio.run(toolkit.call("end_by", way="exit"))

    assert "sys.exit(3)" in str(raised.value.__cause__)
    assert not isinstance(raised.value, ToolcribError)


# Answers


@pytest.mark.parametrize(
    ("tool", "answers"),
    [
        (process_tools.fork_and_return, ["parent"]),
        (process_tools.fork_and_raise, ["parent"]),
        (process_tools.fork_in_coroutine, ["parent"]),
        (process_tools.fork_in_generator, ["parent", "parent again", "parentparent again"]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_process_that_a_tool_forks_never_answers(tool: Callable[..., Any], answers: list[str]) -> None:
    async def main() -> list[Any]:
        toolkit = process_toolkit(tool, process_tools.join, process_tools.count)
        got: list[Any] = []
        for _ in range(ROUNDS):
            got.append(await texts(toolkit.call_tool_function(block(tool.__name__))))
            got.append(await texts(toolkit.call_tool_function(block("join", a="a"))))
            got.append(await texts(toolkit.call_tool_function(block("count", limit=3))))
        return got

    assert asyncio.run(main()) == [answers, ["ab"], ["0", "1", "2", "012"]] * ROUNDS


def test_a_process_that_a_tool_forks_may_exit_with_a_code() -> None:
    toolkit = process_toolkit(process_tools.fork_and_exit)

    assert [asyncio.run(toolkit.call("fork_and_exit", code=code)).text for code in (0, 4)] == ["0", "4"]


def test_a_process_that_a_tool_forks_does_not_have_the_socket() -> None:
    assert asyncio.run(process_toolkit(process_tools.sockets_in_fork).call("sockets_in_fork")).text == "0"


@pytest.mark.parametrize("kind", ["zero", "next", "without a number", "text", "huge", "one byte"])
def test_a_forged_answer_is_an_error_of_its_own_call_and_of_no_other(kind: str) -> None:
    async def main() -> tuple[str | None, str, list[str]]:
        toolkit = process_toolkit(process_tools.forge, process_tools.join)
        response = await toolkit.call("forge", kind=kind)
        return response.code, response.text, [(await toolkit.call("join", a=str(n))).text for n in range(3)]

    code, text, after = asyncio.run(main())

    assert code == "failed"
    assert "answer" in text
    assert after == ["0b", "1b", "2b"]


def test_a_second_answer_never_reaches_the_next_call() -> None:
    async def main() -> list[str]:
        toolkit = process_toolkit(process_tools.forge, process_tools.join)
        got = []
        for _ in range(ROUNDS):
            assert (await toolkit.call("forge", kind="same")).text == "forged"
            response = await toolkit.call("join", a="a")
            got.append(response.text if response.code is None else response.code)
        return got

    assert set(asyncio.run(main())) <= {"ab", "failed"}


@pytest.mark.parametrize("delay", [0.0, 0.002, 0.01])
def test_an_answer_that_comes_late_never_reaches_another_call(delay: float) -> None:
    async def main() -> set[str]:
        toolkit = process_toolkit(process_tools.forge_later, process_tools.join, process_tools.count)
        got = set()
        for _ in range(ROUNDS):
            await toolkit.call("forge_later", delay=delay)
            for _ in range(4):
                response = await toolkit.call("join", a="a")
                got.add(response.text if response.code is None else response.code)
            got.add(" ".join(await texts(toolkit.call_tool_function(block("count", limit=20)))))
        return got

    numbers = [str(number) for number in range(20)]
    chunks = " ".join([*numbers, "".join(numbers)])
    assert all(text in ("ab", "failed", chunks) or "another call" in text for text in asyncio.run(main()))
