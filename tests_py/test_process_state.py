"""The state in which a call in a child process begins, whatever the calls before it have done."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import process_tools
from support.processes import process_toolkit


async def look(toolkit: Any) -> dict[str, Any]:
    seen: dict[str, Any] = json.loads((await toolkit.call("see_traces")).text)
    return seen


def traces(tmp_path: Path) -> dict[str, Any]:
    """Call a tool that changes all it can, and then look from another call in the same child."""
    (tmp_path / "this_module_is_left.py").write_text("value = 'fresh'\n")

    async def main() -> dict[str, Any]:
        toolkit = process_toolkit(process_tools.leave_traces, process_tools.see_traces)
        first = await toolkit.call("leave_traces", folder=str(tmp_path))
        seen = await look(toolkit)
        assert (first.code, seen["template"]) == (None, first.text)
        return seen

    return asyncio.run(main())


def test_a_call_sees_nothing_of_the_one_before_it(tmp_path: Path) -> None:
    async def main() -> dict[str, Any]:
        return await look(process_toolkit(process_tools.see_traces))

    untouched = asyncio.run(main())
    after = traces(tmp_path)

    assert {**after, "template": None} == {**untouched, "template": None}


def test_a_call_begins_in_the_environment_and_folder_of_the_program(tmp_path: Path) -> None:
    seen = traces(tmp_path)

    assert seen["environment"] is None
    assert seen["home"] == os.environ.get("HOME")
    assert seen["folder"] == os.getcwd()
    assert str(tmp_path) not in seen["path"]


def test_a_call_begins_with_signals_and_timers_as_they_were(tmp_path: Path) -> None:
    seen = traces(tmp_path)

    assert seen["ignored"] == []
    assert seen["blocked"] == 0
    assert seen["timer"] == 0


def test_a_call_begins_with_the_outputs_and_the_mask_for_new_files_as_they_were(tmp_path: Path) -> None:
    seen = traces(tmp_path)

    assert seen["umask"] != 0o777
    assert seen["output"] == "TextIOWrapper"


def test_a_call_begins_with_context_variables_unset(tmp_path: Path) -> None:
    assert traces(tmp_path)["setting"] == "unset"


def test_a_call_begins_with_the_variables_of_modules_as_they_were_loaded(tmp_path: Path) -> None:
    seen = traces(tmp_path)

    assert seen["remembered"] == []
    assert not seen["cached"]
    assert not seen["attributes"]
    assert not seen["modules"]


def test_a_call_begins_without_the_threads_and_files_of_another(tmp_path: Path) -> None:
    seen = traces(tmp_path)

    assert seen["threads"] == 1
    assert seen["files"] != 100


def test_calls_draw_different_random_numbers() -> None:
    async def main() -> set[str]:
        toolkit = process_toolkit(process_tools.draw)
        return {(await toolkit.call("draw")).text for _ in range(10)}

    assert len(asyncio.run(main())) == 10


def test_calls_draw_different_random_numbers_from_libraries_that_do_not_notice_a_fork(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(
        "import os\nseeded = 0\ndef seed():\n    global seeded\n    seeded = os.getpid()\n"
    )
    (tmp_path / "dice.py").write_text(
        "import os, torch\ndef is_seeded() -> bool:\n    return torch.seeded == os.getpid()\n"
    )
    program = """
import asyncio, dice
from toolcrib import Toolkit
toolkit = Toolkit()
toolkit.register_tool_function(dice.is_seeded, run_in="process")
print(*(asyncio.run(toolkit.call("is_seeded")).text for _ in range(3)))
"""

    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert (done.stdout, done.stderr) == ("true true true\n", "")


def test_a_module_that_starts_threads_has_them_in_every_call(tmp_path: Path) -> None:
    (tmp_path / "threaded.py").write_text(
        "import queue, threading\n"
        "tasks, results = queue.Queue(), queue.Queue()\n"
        "calls = []\n"
        "def work():\n"
        "    while True: results.put(tasks.get() * 2)\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        "def double(value: int) -> str:\n"
        "    calls.append(value)\n"
        "    tasks.put(value)\n"
        "    return f'{results.get(timeout=20)} {len(calls)}'\n"
    )
    program = """
import asyncio, threaded
from toolcrib import Toolkit
toolkit = Toolkit()
toolkit.register_tool_function(threaded.double, run_in="process")
print(*(asyncio.run(toolkit.call("double", value=value)).text for value in (1, 2, 3)), sep=",")
"""

    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert (done.stdout, done.stderr) == ("2 1,4 1,6 1\n", "")


def test_a_module_that_changes_signals_when_it_is_loaded_does_not_disturb_calls(tmp_path: Path) -> None:
    (tmp_path / "deaf.py").write_text(
        "import signal\n"
        "for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM): signal.signal(number, signal.SIG_IGN)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])\n"
        "signal.alarm(1)\n"
        "def state() -> str:\n    return str(signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL)\n"
    )
    program = """
import asyncio, deaf, signal
signal.alarm(0)
from toolcrib import Toolkit
toolkit = Toolkit()
toolkit.register_tool_function(deaf.state, run_in="process")
for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM): signal.signal(number, signal.SIG_DFL)
print(*(asyncio.run(toolkit.call("state")).text for _ in range(3)))
"""

    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert (done.stdout, done.stderr) == ("True True True\n", "")


def test_what_a_module_prints_while_it_is_loaded_is_printed_once(tmp_path: Path) -> None:
    (tmp_path / "chatty.py").write_text("print('loaded', __name__)\ndef echo(text: str) -> str:\n    return text\n")
    program = """
import asyncio, chatty
from toolcrib import Toolkit
toolkit = Toolkit()
toolkit.register_tool_function(chatty.echo, run_in="process")
print(*(asyncio.run(toolkit.call("echo", text=text)).text for text in "abc"))
"""

    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert (done.stdout, done.stderr) == ("loaded chatty\na b c\n", "loaded chatty\n")


def test_a_change_of_the_environment_reaches_the_child_that_is_there_already(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> list[str]:
        toolkit = process_toolkit(process_tools.read_environment)
        got = []
        for value in ("one", "two"):
            monkeypatch.setenv("OF_THE_PROGRAM", value)
            got.append((await toolkit.call("read_environment", name="OF_THE_PROGRAM")).text)
        monkeypatch.delenv("OF_THE_PROGRAM")
        got.append((await toolkit.call("read_environment", name="OF_THE_PROGRAM")).text)
        return got

    assert asyncio.run(main()) == ["one", "two", "nothing"]


def test_a_change_of_the_working_folder_reaches_the_child_that_is_there_already(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = os.getcwd()

    async def main() -> list[str]:
        toolkit = process_toolkit(os.getcwd)
        first = (await toolkit.call("getcwd")).text
        monkeypatch.chdir(tmp_path)
        return [first, (await toolkit.call("getcwd")).text]

    assert asyncio.run(main()) == [before, str(tmp_path)]
