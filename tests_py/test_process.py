"""Tools that run in a child process, which ends when its call is cancelled."""

import asyncio
import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import process_tools
from support.processes import TESTS, is_running, parent_of, pids, process_toolkit
from support.streams import block, texts
from support.waiting import UNBOUNDED_HANG, until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="process mode needs a POSIX system")


# What comes back


def test_a_result_comes_back_from_another_process_in_a_group_of_its_own() -> None:
    pid, group = asyncio.run(process_toolkit(process_tools.whereabouts).call("whereabouts")).text.split()

    assert int(pid) != os.getpid()
    assert pid == group


def test_arguments_are_passed_on() -> None:
    assert asyncio.run(process_toolkit(process_tools.join).call("join", a="x", b="y")).text == "xy"


def test_a_coroutine_function_runs_there() -> None:
    assert asyncio.run(process_toolkit(process_tools.join_later).call("join_later", a="x")).text == "x!"


@pytest.mark.parametrize("tool", [process_tools.count, process_tools.count_later])
def test_a_generator_sends_its_chunks(tool: Callable[..., Any]) -> None:
    assert asyncio.run(texts(process_toolkit(tool).call_tool_function(block(tool.__name__, limit=100)))) == [
        *(str(number) for number in range(100)),
        "".join(str(number) for number in range(100)),
    ]


def test_an_exception_comes_back_with_its_text() -> None:
    response = asyncio.run(process_toolkit(process_tools.fail).call("fail"))

    assert response.code == "failed"
    assert "not there" in response.text


def test_an_exception_halfway_comes_after_the_chunks() -> None:
    first, *_, last = asyncio.run(
        texts(process_toolkit(process_tools.fail_halfway).call_tool_function(block("fail_halfway")))
    )

    assert first == "half"
    assert "no more" in last


def test_an_exception_that_cannot_be_sent_keeps_its_text() -> None:
    response = asyncio.run(process_toolkit(process_tools.fail_oddly).call("fail_oddly"))

    assert response.code == "failed"
    assert "one and two" in response.text


def test_a_result_that_cannot_be_sent_is_an_error_that_says_so() -> None:
    toolkit = process_toolkit(process_tools.give_function, process_tools.join)

    response = asyncio.run(toolkit.call("give_function"))

    assert response.code == "failed"
    assert "cannot be sent back" in response.text
    assert asyncio.run(toolkit.call("join", a="still ")).text == "still b"


def test_a_process_that_dies_is_an_error_and_the_next_call_has_another() -> None:
    toolkit = process_toolkit(process_tools.crash, process_tools.join)

    response = asyncio.run(toolkit.call("crash"))

    assert response.code == "failed"
    assert "exit code 7" in response.text
    assert asyncio.run(toolkit.call("join", a="a")).text == "ab"


def test_a_large_result_comes_back_whole() -> None:
    assert len(asyncio.run(process_toolkit(process_tools.large).call("large", size=5_000_000)).text) == 5_000_000


def test_what_a_tool_prints_is_not_taken_for_an_answer() -> None:
    assert asyncio.run(process_toolkit(process_tools.chat).call("chat")).text == "read ''"


def test_many_calls_have_one_template_and_a_process_each() -> None:
    async def main() -> list[tuple[str, str]]:
        toolkit = process_toolkit(process_tools.whereabouts, process_tools.template)
        return [((await toolkit.call("template")).text, (await toolkit.call("whereabouts")).text) for _ in range(10)]

    templates, processes = zip(*asyncio.run(main()), strict=True)
    assert len(set(templates)) == 1
    assert len(set(processes)) == 10


def test_calls_at_the_same_time_get_their_own_answers() -> None:
    async def main() -> list[str]:
        toolkit = process_toolkit(process_tools.join)
        responses = await asyncio.gather(*(toolkit.call("join", a=str(number)) for number in range(12)))
        return [response.text for response in responses]

    assert asyncio.run(main()) == [f"{number}b" for number in range(12)]


# Closing


@pytest.mark.parametrize("tool", [process_tools.write_at_the_end, process_tools.write_at_the_end_later])
def test_the_finally_block_has_run_in_the_process_when_aclose_returns(tool: Callable[..., Any], tmp_path: Path) -> None:
    async def main() -> None:
        toolkit = process_toolkit(tool, process_tools.template)
        before = (await toolkit.call("template")).text
        for number in range(3):
            file = tmp_path / str(number)
            stream = toolkit.call_tool_function(block(tool.__name__, file=str(file)))
            await anext(stream)

            await stream.aclose()

            assert file.read_text() == "closed"
        assert (await toolkit.call("template")).text == before  # the child is used again

    asyncio.run(main())


def test_the_error_of_a_finally_block_in_the_process_is_raised_by_aclose() -> None:
    async def main() -> None:
        stream = process_toolkit(process_tools.fail_at_the_end).call_tool_function(
            block("fail_at_the_end", file="no such file")
        )
        await anext(stream)

        with pytest.raises(LookupError, match="no such file"):
            await stream.aclose()

    asyncio.run(main())


def test_a_process_that_does_not_close_in_time_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pids"
    monkeypatch.setattr("toolcrib._process.CLOSING", 0.05)

    async def main() -> None:
        stream = process_toolkit(process_tools.stay_in_generator).call_tool_function(
            block("stay_in_generator", file=str(file))
        )
        await anext(stream)
        left = await pids(file)

        await asyncio.wait_for(stream.aclose(), UNBOUNDED_HANG)

        await until(lambda: not any(map(is_running, left)))

    asyncio.run(main())


# Killing


@pytest.mark.parametrize("tool", [process_tools.stay, process_tools.stay_in_generator])
def test_a_cancelled_call_leaves_no_process(tool: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "pids"

    async def main() -> None:
        call = asyncio.ensure_future(
            texts(process_toolkit(tool).call_tool_function(block(tool.__name__, file=str(file))))
        )
        left = await pids(file)
        call.cancel()
        done, _ = await asyncio.wait([call], timeout=UNBOUNDED_HANG)
        assert done
        await until(lambda: not any(map(is_running, left)))

    asyncio.run(main())


def test_a_call_in_the_background_leaves_no_process_when_the_toolkit_is_closed(tmp_path: Path) -> None:
    file = tmp_path / "pids"

    async def main() -> None:
        async with process_toolkit(process_tools.stay, async_execution=True) as toolkit:
            await toolkit.call("stay", file=str(file))
            left = await pids(file)
        await until(lambda: not any(map(is_running, left)))

    asyncio.run(main())


def test_a_timeout_leaves_no_process(tmp_path: Path) -> None:
    file = tmp_path / "pids"

    async def main() -> str | None:
        # A fresh process may need a while to begin, so the time is given generously.
        response = await process_toolkit(process_tools.stay, timeout=3.0).call("stay", file=str(file))
        left = await pids(file)
        await until(lambda: not any(map(is_running, left)))
        return response.code

    assert asyncio.run(main()) == "timeout"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors through /proc")
def test_killed_calls_leave_no_descriptor_and_no_zombie(tmp_path: Path) -> None:
    async def killed(number: int) -> int:
        file = tmp_path / f"pids{number}"
        call = asyncio.ensure_future(
            texts(process_toolkit(process_tools.stay).call_tool_function(block("stay", file=str(file))))
        )
        child, _ = await pids(file)
        template = parent_of(child)
        tree = [child, template, parent_of(template)]
        call.cancel()
        await asyncio.wait([call])
        await until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in tree))
        gc.collect()  # the garbage of other tests may have descriptors
        return len(os.listdir("/proc/self/fd"))

    async def main() -> list[int]:
        return [await killed(number) for number in range(5)]

    counts = asyncio.run(main())
    assert len(set(counts[1:])) == 1


# Scripts


def test_a_script_may_run_its_own_functions(tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text(
        """
import asyncio, os
from toolcrib import Toolkit

def far(value: int) -> str:
    return f"{value + 1} {__name__}"

if __name__ == "__main__":
    tk = Toolkit()
    tk.register_tool_function(far, run_in="process")
    print(asyncio.run(tk.call("far", value=1)).text)
"""
    )

    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "2 __mp_main__\n", "")


def test_children_end_with_their_parent(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    program = f"""
import sys
sys.path.insert(0, {TESTS!r})
import asyncio
from support import process_tools
from toolcrib import Toolkit
tk = Toolkit()
tk.register_tool_function(process_tools.stay, run_in="process")
asyncio.run(tk.call("stay", file={str(file)!r}))
"""

    async def main() -> None:
        parent = subprocess.Popen([sys.executable, "-c", program])
        try:
            left = await pids(file)
        finally:
            parent.kill()
            parent.wait()
        await until(lambda: not is_running(left[0]))
        await until(lambda: not is_running(left[1]))

    asyncio.run(main())


# Registration

BOUND = process_tools.Counter(40)


def test_a_method_of_an_object_that_can_be_sent_is_taken() -> None:
    assert asyncio.run(process_toolkit(BOUND.add).call("add", value=2)).text == "42"


def local() -> Callable[..., Any]:
    def inner() -> str:
        return "never found"

    return inner


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        (lambda: "x", "lambda"),
        (local(), "inside another function"),
        (process_tools.Unpicklable(1).add, "stays here"),
        (process_tools.original, "qualified name"),
    ],
    ids=["lambda", "local", "method", "renamed"],
)
def test_a_function_that_no_process_would_find_is_refused(tool: Callable[..., Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        process_toolkit(tool, func_name="tool")
