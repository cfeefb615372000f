"""Reading the arguments of a call: as JSON, repaired, and piece by piece; against `json` and `json_repair`."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from benches.figures import Row, at_least, at_most
from benches.measure import Bench
from toolcrib import ArgumentReader, ToolCall

VALUE = {
    "path": "src/main.py",
    "content": "def main() -> None:\n    print('it works')\n" * 20,
    "options": {"create": True, "mode": None, "lines": [1, 2, 3], "tags": ["a", "b"]},
}
GOOD = json.dumps(VALUE)
BROKEN = "```json\n" + repr(VALUE).replace("]}}", "],},}") + "\n```"
LONG = json.dumps({"content": "x = 1\n" * 4000})
DELTAS = [LONG[start : start + 16] for start in range(0, len(LONG), 16)]


async def rows(bench: Bench) -> list[Row]:
    """Measure what reading costs beside the standard library, and repairs beside `json_repair`.

    Args:
        bench: Runs the measurement.

    Returns:
        Three rows.
    """
    repair_elsewhere: Any = import_module("json_repair").loads
    good = {"id": "1", "type": "function", "function": {"name": "write", "arguments": GOOD}}
    broken = {"id": "1", "type": "function", "function": {"name": "write", "arguments": BROKEN}}
    assert ToolCall.read(good).arguments == ToolCall.read(broken).arguments == VALUE
    assert {repair["what"] for repair in ToolCall.read(broken).repairs} == {"fence", "quotes", "literal", "comma"}

    def strict(times: int) -> None:
        for _ in range(times):
            json.loads(GOOD)

    def read(times: int) -> None:
        for _ in range(times):
            _ = ToolCall.read(good).arguments

    def repaired(times: int) -> None:
        for _ in range(times):
            _ = ToolCall.read(broken).arguments

    def repaired_elsewhere(times: int) -> None:
        for _ in range(times):
            repair_elsewhere(BROKEN)

    def whole(times: int) -> None:
        for _ in range(times):
            json.loads(LONG)

    def pieces(times: int) -> None:
        for _ in range(times):
            reader = ArgumentReader()
            for delta in DELTAS:
                reader.feed(delta)
            _ = reader.finish().arguments

    timings = await bench.interleave(
        "arguments as text",
        {"json": strict, "read": read, "repaired": repaired, "json_repair": repaired_elsewhere},
    )
    streamed = await bench.interleave("arguments in 16-byte pieces", {"json, whole": whole, "pieces": pieces})
    return [
        Row(
            "read a call with 1 KB of JSON arguments",
            (at_most(timings.ratio("read", "json"), 6, 3, "{} × json.loads"),),
        ),
        Row(
            "repair 1 KB of broken arguments, with a list of the repairs",
            (at_least(timings.ratio("json_repair", "repaired"), 5, 10, "{}× faster than json_repair"),),
        ),
        Row(
            "read 28 KB of arguments in 1750 pieces",
            (at_most(streamed.ratio("pieces", "json, whole"), 30, 15, "{} × json.loads of the whole"),),
        ),
    ]
