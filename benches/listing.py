"""Telling the model: the schemas of many tools, as copies and as JSON text, and those that follow the groups."""

from __future__ import annotations

import copy
import json
from typing import Any

from benches.figures import Row, at_least, at_most
from benches.measure import Bench, Loop
from benches.peers.agentscope import AgentScope
from benches.peers.toolcrib import Toolcrib
from benches.tools import searches
from toolcrib import Toolkit

GROUPS = 5


async def rows(bench: Bench) -> list[Row]:
    """Measure the list of a thousand tools against `copy.deepcopy`, the cached text at two sizes, and the meta tool.

    Args:
        bench: Runs the measurement.

    Returns:
        Two rows.
    """
    own = Toolcrib()
    functions = searches(1_000, own.answer)
    many: Toolkit = await own.filled(functions)
    few: Toolkit = await own.filled(functions[:10])
    schemas = many.get_json_schemas()
    assert json.loads(many.get_json_schemas_bytes()) == schemas

    def copies(times: int) -> None:
        for _ in range(times):
            many.get_json_schemas()

    def deepcopies(times: int) -> None:
        for _ in range(times):
            copy.deepcopy(schemas)

    listed = await bench.interleave("schemas of 1000 tools", {"copies": copies, "deepcopy": deepcopies})
    texts = await bench.interleave("schemas as text", {"1000 tools": _texts(many), "10 tools": _texts(few)})
    chosen = await bench.interleave(
        "schemas with the meta tool",
        {"toolcrib": _lists(_with_meta_tool(Toolkit())), "AgentScope": _lists(_with_meta_tool(AgentScope().kit()))},
    )
    return [
        Row(
            "`get_json_schemas()` of 1 000 tools, as copies; `get_json_schemas_bytes()` in constant time",
            (
                at_least(listed.ratio("deepcopy", "copies"), 8, 12, "{}× faster than `copy.deepcopy`"),
                at_most(texts.ratio("1000 tools", "10 tools"), 1.5, 1.5, "{}× the bytes of 10 tools"),
            ),
        ),
        Row(
            f"`get_json_schemas()` with the meta tool and {GROUPS} groups",
            (at_least(chosen.ratio("AgentScope", "toolcrib"), 20, 100, "{}× faster than AgentScope"),),
        ),
    ]


def _with_meta_tool(kit: Any) -> Any:
    for index in range(GROUPS):
        kit.create_tool_group(f"group_{index}", f"Tools of kind {index}.", active=index % 2 == 0)
    kit.register_tool_function(kit.reset_equipped_tools)
    return kit


def _lists(kit: Any) -> Loop:
    def run(times: int) -> None:
        for _ in range(times):
            kit.get_json_schemas()

    return run


def _texts(kit: Toolkit) -> Loop:
    text = kit.get_json_schemas_bytes

    def run(times: int) -> None:
        for _ in range(times):
            text()

    return run
