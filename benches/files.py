"""Reading and writing many small files, all calls at once, against AgentScope's tools.

The files are in memory where the system has such a folder, so that the tools are measured and not the disk.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentscope.tool import view_text_file, write_text_file

from benches.figures import Row, at_least
from benches.measure import Bench, Loop
from benches.peers.agentscope import AgentScope
from benches.tools import block
from toolcrib import Toolkit, tools

FILES = 1_000
CONTENT = "a line of a small file\n" * 20
MEMORY = Path("/dev/shm")


async def rows(bench: Bench) -> list[Row]:
    """Measure the raw tools and those beneath a root.

    Args:
        bench: Runs the measurement.

    Returns:
        Four rows.
    """
    os.environ["TOOLCRIB_DANGEROUS_TEXT_IO"] = "allow"
    theirs = AgentScope().kit()
    for function in (view_text_file, write_text_file):
        theirs.register_tool_function(function)
    ours = Toolkit()
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        tools.register(ours, "text_files")
        tools.register(ours, "files", root=folder, write=True)
        for number in range(FILES):
            Path(folder, str(number)).write_text(CONTENT)

        def raw(name: str, **more: Any) -> Callable[[int], dict[str, Any]]:
            return lambda number: block(name, {"file_path": f"{folder}/{number}", **more})

        def beneath(name: str, **more: Any) -> Callable[[int], dict[str, Any]]:
            return lambda number: block(name, {"path": f"/workspace/{number}", **more})

        read = await bench.interleave(
            f"read {FILES} small files",
            {
                "AgentScope": _all(theirs, raw("view_text_file")),
                "raw": _all(ours, raw("view_text_file")),
                "beneath": _all(ours, beneath("read_text_file")),
            },
            wall=True,
        )
        write = await bench.interleave(
            f"write {FILES} small files",
            {
                "AgentScope": _all(theirs, raw("write_text_file", content=CONTENT)),
                "raw": _all(ours, raw("write_text_file", content=CONTENT)),
                "beneath": _all(ours, beneath("write_file", content=CONTENT)),
            },
            wall=True,
        )
    return [
        _row("read 1 000 small files: `view_text_file`", read.ratio("AgentScope", "raw")),
        _row("read 1 000 small files: `read_text_file`, in a root", read.ratio("AgentScope", "beneath")),
        _row("write 1 000 small files: `write_text_file`", write.ratio("AgentScope", "raw")),
        _row("write 1 000 small files: `write_file`, in a root and atomic", write.ratio("AgentScope", "beneath")),
    ]


def _row(work: str, ratio: float) -> Row:
    return Row(work, (at_least(ratio, 3, 3, "{}× faster than AgentScope"),))


def _all(kit: Any, call: Callable[[int], dict[str, Any]]) -> Loop:
    calls = [call(number) for number in range(FILES)]

    async def one(asked: dict[str, Any]) -> None:
        async for _response in await kit.call_tool_function(asked):
            pass

    async def run(times: int) -> None:
        for _ in range(times):
            await asyncio.gather(*map(one, calls))

    return run
