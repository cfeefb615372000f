"""Calling through a session, and keeping many of them over one toolkit.

The memory is measured in a process of its own (`python -m benches.sessions`).
"""

from __future__ import annotations

import gc
import subprocess
import sys
from functools import cache
from pathlib import Path

from benches.figures import Row, at_most
from benches.measure import Bench
from benches.peers.toolcrib import Toolcrib
from benches.tools import PAIR, searches, tools
from toolcrib import Limits, Toolkit

TOOLS, GROUPS, SESSIONS, WARM = 1000, 20, 10_000, 10_000


async def rows(bench: Bench) -> list[Row]:
    """Measure a call through a session beside one through its toolkit, and the memory of a session.

    Args:
        bench: Runs the measurement.

    Returns:
        Two rows.
    """
    own = Toolcrib()
    toolkit = Toolkit()
    toolkit.create_tool_group("maths", "Numbers.")
    toolkit.register_tool_function(tools(own.answer).add, "maths")
    toolkit.update_tool_groups(["maths"], active=True)
    plain, switched = toolkit.session(), toolkit.session(limits=Limits(calls=2**62, tokens=2**62))
    switched.update_tool_groups(["maths"], active=True)
    timings = await bench.interleave(
        "call through a session",
        {
            "toolkit": own.loop(toolkit, "add", PAIR),
            "session": own.loop(plain, "add", PAIR),
            "session with switches and limits": own.loop(switched, "add", PAIR),
        },
    )
    more = {name: (timings[name] - timings["toolkit"]) / 1000 for name in timings.best}
    return [
        Row(
            "call a tool through a session",
            (
                at_most(more["session"], 0.2, 0.05, "{} µs more than the toolkit"),
                at_most(more["session with switches and limits"], 0.2, 0.08, "{} µs with switches and limits"),
            ),
        ),
        Row(
            "memory of a session, 10 000 over 1 000 tools",
            (at_most(kilobytes(), 2, 1, "{} KB"),),
        ),
    ]


@cache
def kilobytes() -> float:
    """Measure the resident memory that a session adds, in a fresh process.

    Returns:
        Kilobytes for each session with a caller, limits and all groups switched.
    """
    command = [sys.executable, "-m", "benches.sessions"]
    return float(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.split()[-1])


def _grow() -> float:
    own = Toolcrib()
    toolkit = Toolkit()
    functions = searches(TOOLS, own.answer)
    for number in range(GROUPS):
        toolkit.register_group(f"group_{number}", "Tools.", functions[number::GROUPS])
    names, limits = [f"group_{number}" for number in range(GROUPS)], Limits(calls=10, retries=1)
    toolkit.get_json_schemas_bytes()
    sessions, before = [], 0
    for number in range(WARM + SESSIONS):
        if number == WARM:
            before = _resident()  # what the registration has freed is used up by now
        session = toolkit.session(id=f"conversation-{number}", caller=f"user-{number}", limits=limits)
        session.update_tool_groups(names, active=False)
        session.get_json_schemas_bytes()
        sessions.append(session)
    return (_resident() - before) / SESSIONS / 1024


def _resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


if __name__ == "__main__":
    print(_grow())
