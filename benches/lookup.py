"""Finding a tool: one call among many tools and among few."""

from __future__ import annotations

from benches.figures import Row, at_most
from benches.measure import Bench
from benches.peers.toolcrib import Toolcrib
from benches.tools import PAIR, searches, tools

MANY, FEW = 10_000, 10


async def rows(bench: Bench) -> list[Row]:
    """Measure the same call in a large and in a small toolkit.

    Args:
        bench: Runs the measurement.

    Returns:
        One row.
    """
    own = Toolcrib()
    add = tools(own.answer).add
    functions = searches(MANY - 1, own.answer)
    many = await own.filled([*functions[: MANY // 2], add, *functions[MANY // 2 :]])
    few = await own.filled([*functions[: FEW // 2], add, *functions[FEW // 2 : FEW - 1]])
    timings = await bench.interleave(
        "one call among tools", {"many": own.loop(many, "add", PAIR), "few": own.loop(few, "add", PAIR)}
    )
    return [Row("one call among 10 000 tools", (at_most(timings.ratio("many", "few"), 1.1, 1.05, "{}× one among 10"),))]
