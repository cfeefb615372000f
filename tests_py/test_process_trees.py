"""Processes that a tool in a child process has started, which end with its call or with the program."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import process_tools
from support.processes import TESTS, is_running, parent_of, pids, process_toolkit
from support.streams import block, texts
from support.waiting import UNBOUNDED_HANG, until

MODES = ["child", "shell", "session", "orphan", "group", "daemon"]
if sys.platform != "linux":
    MODES = ["child", "shell", "orphan"]  # elsewhere those that leave the process group are not found

HOST = """
import asyncio, os, sys
sys.path.insert(0, {folder!r})
from support import process_tools
from toolcrib import Toolkit

async def main():
    toolkit = Toolkit()
    toolkit.register_tool_function(process_tools.stay_with, run_in="process")
    call = asyncio.ensure_future(toolkit.call("stay_with", mode={mode!r}, file={file!r}, then={then!r}))
    while not os.path.exists({file!r}):
        await asyncio.sleep(0.01)
    {end}
    await asyncio.sleep(600)

asyncio.run(main())
"""


def host(mode: str, file: Path, *, then: str = "stay", end: str = "pass") -> subprocess.Popen[bytes]:
    program = HOST.format(folder=TESTS, mode=mode, file=str(file), then=then, end=end)
    return subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)


async def ended(left: list[int]) -> None:
    await until(lambda: not any(map(is_running, left)))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "pids"


# Endings of a call


@pytest.mark.parametrize("mode", MODES)
def test_a_cancelled_call_leaves_nothing(mode: str, file: Path) -> None:
    async def main() -> None:
        toolkit = process_toolkit(process_tools.stay_with)
        call = asyncio.ensure_future(texts(toolkit.call_tool_function(block("stay_with", mode=mode, file=str(file)))))
        left = await pids(file)
        call.cancel()
        done, _ = await asyncio.wait([call], timeout=UNBOUNDED_HANG)
        assert done
        await ended(left)

    asyncio.run(main())


@pytest.mark.parametrize("mode", MODES)
def test_a_call_that_takes_too_long_leaves_nothing(mode: str, file: Path) -> None:
    async def main() -> str | None:
        toolkit = process_toolkit(process_tools.stay_with, timeout=5.0)
        response = await toolkit.call("stay_with", mode=mode, file=str(file))
        await ended(await pids(file))
        return response.code

    assert asyncio.run(main()) == "timeout"


@pytest.mark.parametrize("mode", MODES)
def test_a_closed_toolkit_leaves_nothing(mode: str, file: Path) -> None:
    async def main() -> None:
        async with process_toolkit(process_tools.stay_with, async_execution=True) as toolkit:
            await toolkit.call("stay_with", mode=mode, file=str(file))
            left = await pids(file)
        await ended(left)

    asyncio.run(main())


@pytest.mark.parametrize("mode", MODES)
def test_a_tool_that_crashes_leaves_nothing(mode: str, file: Path) -> None:
    async def main() -> str:
        response = await process_toolkit(process_tools.stay_with).call(
            "stay_with", mode=mode, file=str(file), then="crash"
        )
        await ended(await pids(file))
        return response.text

    assert "exit code 7" in asyncio.run(main())


def test_a_tool_that_holds_the_interpreter_lock_is_killed(file: Path) -> None:
    async def main() -> str | None:
        toolkit = process_toolkit(process_tools.stay_with, timeout=5.0)
        response = await toolkit.call("stay_with", mode="child", file=str(file), then="hog")
        await ended(await pids(file))
        return response.code

    assert asyncio.run(main()) == "timeout"


# Endings of the program


async def ends_with_its_program(mode: str, then: str, number: signal.Signals, file: Path) -> None:
    parent = host(mode, file, then=then)
    try:
        left = await pids(file)
        parent.send_signal(number)
        parent.wait(UNBOUNDED_HANG)
        await ended(left)
    finally:
        parent.kill()
        parent.wait()


@pytest.mark.parametrize("mode", MODES)
def test_a_program_that_is_killed_leaves_nothing(mode: str, file: Path) -> None:
    asyncio.run(ends_with_its_program(mode, "stay", signal.SIGKILL, file))


@pytest.mark.parametrize("then", ["stay", "hog", "return"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_program_leaves_nothing_whatever_its_tool_does(then: str, number: signal.Signals, file: Path) -> None:
    asyncio.run(ends_with_its_program(MODES[-1], then, number, file))


@pytest.mark.parametrize("end", ["os._exit(0)", "os.abort()", "sys.exit()", "os.execv('/bin/sleep', ['sleep', '0'])"])
def test_a_program_that_ends_itself_leaves_nothing(end: str, file: Path) -> None:
    async def main() -> None:
        parent = host(MODES[-1], file, then="hog", end=end)
        left = await pids(file)
        parent.wait(UNBOUNDED_HANG)
        await ended(left)

    asyncio.run(main())


def test_a_program_that_has_forked_leaves_nothing_when_it_ends(file: Path) -> None:
    copy = file.with_suffix(".copy")
    # The copy is_running on, with all that the program has open.
    end = (
        f"pid = os.fork(); part = {str(copy)!r} + '.part'; "
        f"pid and (open(part, 'w').write(str(pid)), os.rename(part, {str(copy)!r}), os._exit(0)); "
        "__import__('time').sleep(600)"
    )

    async def main() -> None:
        parent = host(MODES[-1], file, end=end)
        left = await pids(file)
        [forked] = await pids(copy)
        try:
            parent.wait(UNBOUNDED_HANG)
            await ended(left)
            assert is_running(forked)
        finally:
            os.kill(forked, signal.SIGKILL)

    asyncio.run(main())


# What is kept


def test_what_a_tool_leaves_running_lives_as_long_as_its_child(file: Path) -> None:
    async def main() -> tuple[str, bool, bool]:
        toolkit = process_toolkit(process_tools.stay_with, process_tools.join)
        text = (await toolkit.call("stay_with", mode="child", file=str(file), then="return")).text
        await toolkit.call("join", a="a")  # after the end of the process that has run the tool
        worker, left = await pids(file)
        return text, is_running(worker), is_running(left)

    assert asyncio.run(main()) == ("left", False, True)


def test_a_thread_of_the_program_may_end_before_the_children_it_has_started() -> None:
    program = f"""
import asyncio, sys, threading
sys.path.insert(0, {TESTS!r})
from support import process_tools
from toolcrib import Toolkit
toolkit = Toolkit()
toolkit.register_tool_function(process_tools.template, run_in="process")
answers = []
for _ in range(3):
    thread = threading.Thread(target=lambda: answers.append(asyncio.run(toolkit.call("template")).text))
    thread.start()
    thread.join()
print(len(answers), len(set(answers)))
"""

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert (done.stdout, done.stderr) == ("3 1\n", "")


def test_a_supervisor_that_is_terminated_ends_its_tool(file: Path) -> None:
    async def main() -> str | None:
        toolkit = process_toolkit(process_tools.stay_with)
        call = asyncio.ensure_future(toolkit.call("stay_with", mode=MODES[-1], file=str(file)))
        left = await pids(file)
        os.kill(parent_of(parent_of(left[0])), signal.SIGTERM)
        response: Any = await call
        await ended(left)
        return str(response.code)

    assert asyncio.run(main()) == "failed"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has supervisors")
@pytest.mark.parametrize("generations", [1, 2], ids=["template", "supervisor"])
def test_a_worker_ends_with_the_processes_above_it(generations: int, file: Path) -> None:
    async def main() -> str | None:
        toolkit = process_toolkit(process_tools.stay)
        call = asyncio.ensure_future(toolkit.call("stay", file=str(file)))
        worker, _ = await pids(file)
        above = worker
        for _ in range(generations):
            above = parent_of(above)
        os.kill(above, signal.SIGKILL)
        response = await asyncio.wait_for(call, UNBOUNDED_HANG)
        await ended([worker])
        return response.code

    assert asyncio.run(main()) == "failed"


def test_a_fork_of_the_program_has_children_of_its_own() -> None:
    program = f"""
import asyncio, os, sys, warnings
warnings.simplefilter("ignore")  # Python warns about forking with threads
sys.path.insert(0, {TESTS!r})
from support import process_tools
from toolcrib import Toolkit
toolkit = Toolkit()
toolkit.register_tool_function(process_tools.template, run_in="process")
def template():
    return asyncio.run(toolkit.call("template")).text
first = template()
fork = os.fork()
if fork == 0:
    os._exit(0 if template() != first and template() != first else 1)
print(os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]), template() == first)
"""

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert (done.stdout, done.stderr) == ("0 True\n", "")
