"""Telling the model: the schemas of many tools, as copies and as JSON text."""

from __future__ import annotations

import copy
import json

from benches.figures import Row, at_least, at_most
from benches.measure import Bench, Loop
from benches.peers.toolcrib import Toolcrib
from benches.tools import searches
from toolcrib import Toolkit


async def rows(bench: Bench) -> list[Row]:
    """Measure the list of a thousand tools against `copy.deepcopy`, and the cached text at two sizes.

    Args:
        bench: Runs the measurement.

    Returns:
        One row.
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
    return [
        Row(
            "`get_json_schemas()` of 1 000 tools, as copies; `get_json_schemas_bytes()` in constant time",
            (
                at_least(listed.ratio("deepcopy", "copies"), 8, 12, "{}× faster than `copy.deepcopy`"),
                at_most(texts.ratio("1000 tools", "10 tools"), 1.5, 1.5, "{}× the bytes of 10 tools"),
            ),
        )
    ]


def _texts(kit: Toolkit) -> Loop:
    text = kit.get_json_schemas_bytes

    def run(times: int) -> None:
        for _ in range(times):
            text()

    return run
