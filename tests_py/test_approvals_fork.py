"""Approvals in memory belong to one process: a forked one has none of them, and with a folder all of them."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


PROGRAM = """
    import asyncio, json, os, sys
    from toolcrib import Approvals, Toolkit

    kit = Toolkit(run_in="inline", {setting})

    @kit.tool(permission="confirm")
    def transfer(amount: int) -> str:
        return f"transferred {{amount}}"

    async def pend():
        return (await kit.call("transfer", amount=1)).metadata["pending"]

    async def resume(pending):
        try:
            async for response in kit.resume(pending, True):
                text = response.text
            return text
        except Exception as error:
            return f"{{type(error).__name__}}: {{error}}"

    def forked(work):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(writer, json.dumps(asyncio.run(work)).encode())
            finally:
                os._exit(0)
        work.close()
        os.close(writer)
        os.waitpid(child, 0)
        with os.fdopen(reader) as file:
            return json.load(file)

    async def own():
        return await resume(await pend())

    {body}
"""


def run(body: str, setting: str = "") -> list[str]:
    program = textwrap.dedent(PROGRAM).format(setting=setting, body=textwrap.dedent(body))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


SETTINGS = pytest.mark.parametrize("setting", ["approvals=Approvals()", "approvals=Approvals(ttl=60)", ""])


@SETTINGS
def test_a_forked_process_refuses_what_its_parent_asked_about(setting: str) -> None:
    ran = run(
        """
        pending = asyncio.run(pend())
        print(forked(resume(pending)))
        print(forked(resume(pending)))
        print(asyncio.run(resume(pending)))
        print(asyncio.run(resume(pending)).split(":")[0])
        """,
        setting,
    )

    refused = "MisplacedPendingError: the pending call of tool `transfer` belongs to the process"
    assert all(line.startswith(refused) for line in ran[:2])
    assert ran[2:] == ["transferred 1", "UsedPendingError"]


@SETTINGS
def test_what_is_asked_about_after_a_fork_counts_in_that_process_only(setting: str) -> None:
    ran = run(
        """
        kit.approvals
        pending = forked(pend())
        print(asyncio.run(resume(pending)).split(":")[0])
        print(forked(resume(pending)).split(":")[0])
        print(forked(own()))
        print(asyncio.run(own()))
        """,
        setting,
    )

    assert ran == ["MisplacedPendingError", "MisplacedPendingError", "transferred 1", "transferred 1"]


def test_with_a_folder_any_process_may_resume_but_only_one_does(tmp_path: Path) -> None:
    ran = run(
        """
        pending = asyncio.run(pend())
        print(forked(resume(pending)))
        print(forked(resume(pending)).split(":")[0])
        print(asyncio.run(resume(pending)).split(":")[0])
        print(asyncio.run(resume(forked(pend()))))
        """,
        f"approvals=Approvals({str(tmp_path / 'approvals')!r})",
    )

    assert ran == ["transferred 1", "UsedPendingError", "UsedPendingError", "transferred 1"]
