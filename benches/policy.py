"""What rules cost: a call that one allows beside a call without any, and a decision among a thousand of them."""

from __future__ import annotations

from benches.figures import Row, at_most
from benches.measure import Bench, Loop
from benches.peers.toolcrib import Toolcrib
from benches.tools import PAIR, tools
from toolcrib import Policy, Toolkit, ToolkitView
from toolcrib.policy import Rule

RULES = 1000


async def rows(bench: Bench) -> list[Row]:
    """Measure calls with and without rules, and through a view.

    Args:
        bench: Runs the measurement.

    Returns:
        Three rows.
    """
    own = Toolcrib()
    add = tools(own.answer).add
    many = [Rule("deny", tool=f"tool_{number}") for number in range(RULES - 1)]
    looking = [Rule("deny", tool="add", arguments={"a": {"gt": number + 10}}) for number in range(3)]
    kits = {
        "none": Toolkit(),
        "allow": Toolkit(policy=Policy([Rule("allow", tool="add")], default="deny")),
        "many": Toolkit(policy=Policy([*many, Rule("allow", tool="add")], default="deny")),
        "looking": Toolkit(policy=Policy([*many[3:], *looking, Rule("allow", tool="add")], default="deny")),
    }
    for kit in kits.values():
        kit.register_tool_function(add)
    view = kits["many"].view(caller="agent-7")

    async def bare(times: int) -> None:
        for _ in range(times):
            await add(**PAIR)

    timings = await bench.interleave(
        "call with rules",
        {
            "BK": bare,
            **{name: _direct(kit) for name, kit in kits.items()},
            "view, no rules": _direct(kits["none"].view(caller="agent-7")),
            "view": _direct(view),
        },
    )
    more = {name: timings[name] - timings["none"] for name in ("allow", "many", "looking")}
    return [
        Row(
            "`await toolkit.call(...)` with a rule that allows it",
            (
                at_most(timings.ratio("allow", "none"), 1.5, 1.1, "{}× one without a policy"),
                at_most(more["allow"], 300, 50, "{} ns more"),
            ),
        ),
        Row(
            f"the same among {RULES:,} rules".replace(",", " "),
            (
                at_most(timings.ratio("many", "none"), 1.5, 1.1, "{}× one without a policy"),
                at_most(more["looking"] / 1000, 6, 2, "{} µs more where rules look at the arguments"),
            ),
        ),
        Row(
            "`await view.call(...)` for a caller",
            (
                at_most(timings.ratio("view, no rules", "none"), 1.5, 1.1, "{}× the toolkit's own"),
                at_most(timings["view"] - timings["none"], 600, 300, "{} ns more with 1 000 rules"),
            ),
        ),
    ]


def _direct(kit: Toolkit | ToolkitView) -> Loop:
    call = kit.call

    async def run(times: int) -> None:
        for _ in range(times):
            await call("add", **PAIR)

    return run
