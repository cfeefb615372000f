"""The state in which a call in a child process begins, also after other calls in the same process."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from support import process_tools
from support.processes import process_toolkit


def traces(tmp_path: Path) -> dict[str, Any]:
    """Call a tool that changes all it can, and then look from another call in the same process."""

    async def main() -> dict[str, Any]:
        toolkit = process_toolkit(process_tools.leave_traces, process_tools.see_traces)
        first = (await toolkit.call("leave_traces", folder=str(tmp_path))).text
        seen: dict[str, Any] = json.loads((await toolkit.call("see_traces")).text)
        assert str(seen["pid"]) == first
        return seen

    return asyncio.run(main())


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


def test_the_variables_of_modules_live_as_long_as_the_process(tmp_path: Path) -> None:
    assert traces(tmp_path)["remembered"][-1] == "called"


def test_a_change_of_the_environment_reaches_the_process_that_is_there_already(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_change_of_the_working_folder_reaches_the_process_that_is_there_already(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = os.getcwd()

    async def main() -> list[str]:
        toolkit = process_toolkit(os.getcwd)
        first = (await toolkit.call("getcwd")).text
        monkeypatch.chdir(tmp_path)
        return [first, (await toolkit.call("getcwd")).text]

    assert asyncio.run(main()) == [before, str(tmp_path)]
