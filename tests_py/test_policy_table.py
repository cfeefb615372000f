"""Every combination of group, view, rule, permission, default, answer and way in, against an oracle of a few lines."""

from __future__ import annotations

import itertools
from typing import Any

from support.streams import block, last
from toolcrib import Toolkit
from toolcrib.policy import Policy, Rule

GROUPS = ("on", "off")
VIEWS = ("none", "shows", "hides")
RULES = ("none", "allow", "ask", "deny", "deny by argument")
PERMISSIONS = ("auto", "confirm")
DEFAULTS = ("allow", "ask", "deny")
ANSWERS = ("nobody", "headless", "yes", "no", "nonsense")
WAYS = ("call", "stream", "middleware")

STRICTNESS = ("allow", "ask", "deny")


def expected(group: str, view: str, rule: str, permission: str, default: str, answer: str) -> str | None:
    """The code that a call must end with; none if it must run."""
    if view == "hides":
        return "tool_not_available"
    if group == "off":
        return "inactive_group"
    decision = {"deny by argument": "deny"}.get(rule, rule)
    if decision == "none":
        wish = "ask" if permission == "confirm" else "allow"
        decision = max(wish, default, key=STRICTNESS.index)
    if decision == "ask":
        return {"nobody": "pending", "yes": None}.get(answer, "denied")
    return "denied" if decision == "deny" else None


def rules(rule: str) -> list[Rule]:
    if rule == "none":
        return []
    if rule == "deny by argument":
        return [Rule("deny", tool="work", arguments={"what": "this"}), Rule("allow", tool="work")]
    return [Rule(rule, tool="work")]  # type: ignore[arg-type]


async def came(way: str, counter: Any) -> str | None:
    if way == "call":
        code: str | None = (await counter.call("work", what="this")).code
    else:
        code = (await last(counter.call_tool_function(block("work", what="this")))).code
    return code


async def test_every_cell_of_the_table_is_as_the_oracle_says() -> None:
    wrong: list[Any] = []
    cells = 0
    for cell in itertools.product(GROUPS, VIEWS, RULES, PERMISSIONS, DEFAULTS, ANSWERS):
        group, view, rule, permission, default, answer = cell
        for way in WAYS:
            ran: list[str] = []

            async def work(what: str, ran: list[str] = ran) -> str:
                ran.append(what)
                return what

            kit = Toolkit(policy=Policy(rules(rule), default))  # type: ignore[arg-type]
            kit.create_tool_group("shop", "", active=group == "on")
            kit.register_tool_function(
                work,
                "shop",
                preset_kwargs={"ran": ran},
                permission=permission,  # type: ignore[arg-type]
            )
            kit.headless = answer == "headless"
            said = {"yes": "once", "no": "no", "nonsense": "sure"}.get(answer)
            if said is not None:
                kit.approver = lambda request, said=said: said
            if way == "middleware":
                kit.register_middleware(passing)
            counter = {"none": kit, "shows": kit.view(names=["work"]), "hides": kit.view(exclude=["work"])}[view]

            code = await came(way, counter)

            cells += 1
            should = expected(*cell)
            if code != should or ran != (["this"] if should is None else []):
                wrong.append((*cell, way, code, should, ran))

    assert wrong == []
    assert cells == 2700


async def passing(kwargs: dict[str, Any], next_handler: Any) -> Any:
    return await next_handler(**kwargs)
