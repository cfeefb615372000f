"""Looking through a role: listing takes the time of what the role sees, and a view is made in a moment."""

from __future__ import annotations

from collections.abc import Callable

from benches.figures import Row, at_most
from benches.measure import Bench, Loop
from benches.peers.toolcrib import Toolcrib
from benches.tools import searches
from toolcrib import Role, Roles, Toolkit

MANY, SOME, FEW = 10_000, 100, 10


async def rows(bench: Bench) -> list[Row]:
    """Measure a role's listing and the making of its view, over many tools and over few.

    Args:
        bench: Runs the measurement.

    Returns:
        Two rows.
    """
    own = Toolcrib()
    functions = searches(MANY, own.answer)
    many: Toolkit = await own.filled(functions)
    few: Toolkit = await own.filled(functions[:SOME])
    names = [function.__name__ for function in functions]
    for toolkit in (many, few):
        toolkit.register_group("few", "A few tools.", names[:FEW])
        toolkit.register_group("some", "Some tools.", names[:SOME])
    roles = Roles()
    roles.add(Role("few", "", ["few"]))
    roles.add(Role("some", "", ["some"]))
    views = {
        "10 of 10000": many.view_for("few", roles),
        "100 of 10000": many.view_for("some", roles),
        "10 of 100": few.view_for("few", roles),
    }
    assert [len(view.tools) for view in views.values()] == [FEW, SOME, FEW]
    listed = await bench.interleave(
        "schemas for a role", {name: _repeated(view.get_json_schemas) for name, view in views.items()}
    )
    made = await bench.interleave(
        "a view for a role",
        {
            "many": _repeated(lambda: many.view_for("few", roles)),
            "few": _repeated(lambda: few.view_for("few", roles)),
            "listing": _repeated(views["10 of 10000"].get_json_schemas),
        },
    )
    return [
        Row(
            "`get_json_schemas()` for a role that sees 10 of 10 000 tools",
            (
                at_most(listed.ratio("10 of 10000", "10 of 100"), 1.5, 1.2, "{}× one that sees 10 of 100"),
                at_most(listed.ratio("100 of 10000", "10 of 10000"), 12, 10, "{}× for ten times as many"),
            ),
        ),
        Row(
            "make the view of a role over 10 000 tools",
            (
                at_most(made.ratio("many", "few"), 1.3, 1.1, "{}× one over 100"),
                at_most(made.ratio("many", "listing"), 0.5, 0.1, "{} of listing its 10 tools"),
            ),
        ),
    ]


def _repeated(work: Callable[[], object]) -> Loop:
    def run(times: int) -> None:
        for _ in range(times):
            work()

    return run
