"""Pending calls that outlive their process: a thousand of them across a restart, and processes that race for one."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

from support.streams import python

PROGRAM = """
    import asyncio, json, sys
    from pathlib import Path
    from toolcrib import Approvals, Toolkit
    from toolcrib.errors import ApprovalError

    here = Path(sys.argv[1])
    ran = []

    async def remove(path: str) -> str:
        ran.append(path)
        return path

    kit = Toolkit(approvals=Approvals(here / "approvals", ttl=600))
    kit.register_tool_function(remove, permission="confirm")
    view = kit.view(caller="ann")
"""

ASK = (
    PROGRAM
    + """
    async def main():
        values = []
        for number in range(1000):
            response = await view.call("remove", path=str(number))
            values.append(response.metadata["pending"])
        (here / "pending.json").write_text(json.dumps(values))

    asyncio.run(main())
    assert ran == []
"""
)

ANSWER = (
    PROGRAM
    + """
    async def main():
        values = json.loads((here / "pending.json").read_text())
        for number, value in enumerate(values):
            async for response in view.resume(value, number % 3 != 0):
                assert response.code == (None if number % 3 else "denied"), response
        again = 0
        for value in values:
            try:
                async for response in view.resume(value, True):
                    pass
            except ApprovalError:
                again += 1
        return again

    again = asyncio.run(main())
    print(json.dumps([len(ran), ran == [str(number) for number in range(1000) if number % 3], again]))
"""
)

RACE = (
    PROGRAM
    + """
    async def main():
        won = 0
        for value in json.loads((here / "pending.json").read_text()):
            try:
                async for response in view.resume(value, True):
                    won += 1
            except ApprovalError:
                pass
        return won

    print(asyncio.run(main()))
"""
)


def run(program: str, folder: Path) -> str:
    done = python(program.replace("sys.argv[1]", repr(str(folder))), seconds=100)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_thousand_pending_calls_go_on_in_another_process(tmp_path: Path) -> None:
    run(ASK, tmp_path)

    assert json.loads(run(ANSWER, tmp_path)) == [666, True, 1000]


def test_of_processes_that_race_for_each_pending_call_one_wins(tmp_path: Path) -> None:
    run(ASK.replace("1000", "100"), tmp_path)
    program = textwrap.dedent(RACE)

    racers = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    won = [int(racer.communicate(timeout=100)[0]) for racer in racers]

    assert sum(won) == 100
