"""Schemas for providers: a hundred tools in each dialect, kept and for the first time, and a call in a dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benches.figures import Row, at_most
from benches.peers.toolcrib import Toolcrib
from benches.tools import searches
from toolcrib import Toolkit

if TYPE_CHECKING:
    from benches.measure import Bench
    from toolcrib._core import _Dialect

DIALECTS: tuple[_Dialect, ...] = ("openai", "openai_strict", "openai_responses", "anthropic", "gemini", "mcp")
TOOLS = 100


async def rows(bench: Bench) -> list[Row]:
    """Measure the listing of a hundred tools in each dialect against `get_json_schemas`, kept and for the first time.

    Args:
        bench: Runs the measurement.

    Returns:
        Two rows.
    """
    own = Toolcrib()
    functions = searches(TOOLS, own.answer)
    kit: Toolkit = await own.filled(functions)

    def plain(times: int) -> None:
        for _ in range(times):
            kit.get_json_schemas()

    def in_dialect(dialect: _Dialect) -> Callable[[int], None]:
        def listing(times: int) -> None:
            for _ in range(times):
                kit.schemas(dialect)

        return listing

    loops: dict[str, Any] = {"own": plain, **{dialect: in_dialect(dialect) for dialect in DIALECTS}}
    kept = await bench.interleave(f"{TOOLS} tools in each dialect", loops)

    def register(times: int) -> None:
        for _ in range(times):
            _registered(functions[:10]).get_json_schemas()

    def register_and_list(dialect: _Dialect) -> Callable[[int], None]:
        def loop(times: int) -> None:
            for _ in range(times):
                _registered(functions[:10]).schemas(dialect)

        return loop

    first = await bench.interleave(
        "10 tools registered, and listed for the first time",
        {
            "register": register,
            "openai_strict": register_and_list("openai_strict"),
            "gemini": register_and_list("gemini"),
        },
    )
    slowest = max(DIALECTS, key=lambda it: kept.ratio(it, "own"))
    return [
        Row(
            f"`schemas(dialect)` of {TOOLS} tools, kept; the slowest dialect, `{slowest}`",
            (at_most(kept.ratio(slowest, "own"), 2, 1.5, "{}× `get_json_schemas()`"),),
        ),
        Row(
            "10 tools registered, and listed in a dialect for the first time",
            (
                at_most(first.ratio("openai_strict", "register"), 3, 2, "`openai_strict` {}× `get_json_schemas()`"),
                at_most(first.ratio("gemini", "register"), 3, 2, "`gemini` {}× `get_json_schemas()`"),
            ),
        ),
    ]


def _registered(functions: list[Any]) -> Toolkit:
    kit = Toolkit()
    for function in functions:
        kit.register_tool_function(function)
    return kit
