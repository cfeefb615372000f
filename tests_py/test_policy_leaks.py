"""References held by rules, approvers, listeners and pending calls: none, once they are unused."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from support.policy import Shop, answering
from support.streams import block, last
from toolcrib import Approvals, Policy, Toolkit
from toolcrib.policy import ApprovalRequest, Rule


class Loop:
    """Something that knows its toolkit and is known by it."""

    def __init__(self, kit: Toolkit) -> None:
        self.kit = kit

    def __call__(self, *arguments: Any) -> bool:
        return True

    def write(self, text: str) -> None:
        pass

    def itself(self) -> Any:
        return [self]


class Rules(Policy):
    """A policy that can be part of a circle."""

    kit: Toolkit


@pytest.mark.parametrize("part", ["approver", "audit", "writer", "handler", "policy", "queue", "tool"])
def test_a_toolkit_in_a_circle_is_collected(part: str) -> None:
    kit = Toolkit()
    loop = Loop(kit)
    if part == "approver":
        kit.approver = loop
    elif part == "audit":
        kit.audit = loop.__call__
    elif part == "writer":
        kit.audit = loop
    elif part == "handler":
        kit.subscribe("chunk", loop)
    elif part == "policy":
        kit.policy = Rules()
        kit.policy.kit = kit
    elif part == "queue":
        kit.events_of_mine = kit.events()  # type: ignore[attr-defined]
    else:
        kit.register_tool_function(loop, func_name="loop")
    gone = weakref.ref(kit)

    del kit, loop
    gc.collect()

    assert gone() is None


async def test_a_queue_of_events_that_know_the_toolkit_is_collected() -> None:
    kit = Toolkit(run_in="inline")
    kit.mine = kit.events()  # type: ignore[attr-defined]
    kit.register_tool_function(Loop(kit).itself)
    await kit.call("itself")
    kit.remove_tool_function("itself")
    gone = weakref.ref(kit)

    del kit
    gc.collect()

    assert gone() is None


async def test_a_call_that_waits_for_ever_is_collected_with_its_loop() -> None:
    shop = Shop()

    async def approve(request: ApprovalRequest) -> bool:
        await asyncio.get_running_loop().create_future()
        return True

    shop.kit.approver = approve
    stream = shop.kit.call_tool_function(block("remove", path="a"))
    step = stream.__anext__()
    step.send(None)
    gone = weakref.ref(shop.kit)
    for _ in range(2):
        await asyncio.sleep(0)

    del stream, step, shop, approve
    for _ in range(3):
        await asyncio.sleep(0)
    gc.collect()

    assert gone() is None


@pytest.mark.parametrize("way", ["allowed", "denied", "asked", "pending", "audited", "events", "view"])
async def test_many_calls_leave_nothing_behind(way: str) -> None:
    approve, asked = answering("once")
    noted: list[Any] = []
    shop = Shop(policy=Policy([Rule("deny", arguments={"path": "no"})]))
    counter: Any = shop.kit
    if way == "asked":
        shop.kit.approver = approve
    elif way == "audited":
        shop.kit.audit = noted.append
    elif way == "events":
        shop.kit.subscribe("chunk", noted.append)
        events = shop.kit.events(size=4)
        assert events.dropped == 0
    elif way == "view":
        counter = shop.kit.view(caller="ann")
    name, path = ("remove" if way in ("asked", "pending") else "look"), ("no" if way == "denied" else "yes")

    async def some() -> None:
        for _ in range(200):
            response = await counter.call(name, path=path)
            if way == "pending":
                await last(shop.kit.resume(response.metadata["pending"], "once"))
        for kept in (asked, noted, shop.ran):
            kept.clear()
        gc.collect()

    await some()
    before = len(gc.get_objects())
    await some()

    assert len(gc.get_objects()) - before < 30


def test_unused_approvals_and_policies_are_collected() -> None:
    policy, approvals = Policy(), Approvals()
    gone: list[Any] = [weakref.ref(policy), weakref.ref(approvals)]
    kit = Toolkit(policy=policy, approvals=approvals)

    del policy, approvals
    assert [reference() is not None for reference in gone] == [True, True]
    kit.policy = None
    kit.approvals = None
    gc.collect()

    assert [reference() for reference in gone] == [None, None]
