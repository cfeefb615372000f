"""`Toolkit(store=…)`: one store for all that has no place of its own."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from toolcrib import Approvals, Policy, ResultBudget, Store, Toolkit, errors, tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with Store.open(store_url) as store:
        yield store


def confirming(**options: Any) -> Toolkit:
    kit = Toolkit(run_in="inline", **options)

    @kit.tool(permission="confirm")
    def transfer(amount: int) -> str:
        """Transfer money."""
        return f"transferred {amount}"

    return kit


async def test_the_state_of_a_toolkit_and_its_sessions_is_saved_without_a_place(store: Store, store_url: str) -> None:
    kit = Toolkit(store=store)
    kit.create_tool_group("orders", "Look up orders.", active=True)
    session = kit.session(id="chat-7", caller="ann")
    session.state["step"] = 2

    assert await kit.save() == 1
    assert await kit.save(key="other") == 1
    assert await session.save() == 1

    assert kit.store is store
    with Store.open(store_url) as second:
        again = Toolkit(store=second)
        assert await again.load() == 1
        assert list(again.groups) == ["orders"]
        continued = await again.load_session(key="chat-7")
        assert (continued.caller, continued.state) == ("ann", {"step": 2})
        assert await continued.save() == 2
        assert (await again.view(caller="ann").load_session(key="chat-7")).id == "chat-7"
        with pytest.raises(errors.VersionConflictError):
            await session.save()
        assert await Toolkit().load(store, "toolkit") == 1
        assert await Toolkit().load(store, "other") == 1


async def test_a_place_that_is_given_wins(store: Store, tmp_path: Path) -> None:
    kit = Toolkit(store=store)
    kit.save(tmp_path / "groups.json")
    kit.session(id="s").save(tmp_path / "session.json")

    with pytest.raises(errors.MissingEntryError):
        await kit.load()
    with pytest.raises(errors.MissingEntryError):
        await kit.load_session(key="s")
    assert kit.load_session(tmp_path / "session.json").id == "s"


async def test_without_a_store_a_place_is_needed() -> None:
    kit: Any = Toolkit()

    for call in (kit.save, kit.load, kit.session().save, kit.load_session):
        with pytest.raises(TypeError, match="the toolkit has no store"):
            call()
    with Store.open("sqlite::memory:") as store, pytest.raises(TypeError, match="missing `key`"):
        Toolkit(store=store).load_session()  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="store must be an object of the class `Store`, not str"):
        Toolkit(store="sqlite:crib.db")  # type: ignore[arg-type]


async def test_pending_calls_are_answered_after_a_restart(store: Store, store_url: str) -> None:
    kit = confirming(store=store)
    pending = ((await kit.call("transfer", amount=1)).metadata or {})["pending"]

    with Store.open(store_url) as second:
        again = confirming(store=second)

        assert await again.approvals.pending() == [pending]
        assert [response.text async for response in again.resume(pending, True)] == ["transferred 1"]
        with pytest.raises(errors.UsedPendingError):
            await anext(kit.resume(pending, True))


async def test_decisions_are_in_the_audit_log_unless_it_has_another_place(store: Store) -> None:
    records: list[dict[str, Any]] = []
    for options in ({}, {"audit": records.append}):
        await confirming(store=store, approver=lambda request: True, **options).call("transfer", amount=1)
    silent = confirming(store=store, approver=lambda request: True)
    assert silent.audit is store
    silent.audit = None
    await silent.call("transfer", amount=1)

    assert [record["tool"] for _, record in await store.audit()] == ["transfer"]
    assert [record["tool"] for record in records] == ["transfer"]


async def test_approvals_that_are_given_win(store: Store) -> None:
    approvals = Approvals()

    await confirming(store=store, approvals=approvals).call("transfer", amount=1)

    assert confirming(store=store, approvals=approvals).approvals is approvals
    assert await confirming(store=store).approvals.pending() == []


@pytest.mark.parametrize("has_policy", [False, True])
async def test_answers_that_last_are_there_after_a_restart(store: Store, store_url: str, has_policy: bool) -> None:
    def policy() -> dict[str, Any]:
        return {"policy": Policy()} if has_policy else {}

    kit = confirming(store=store, approver=lambda request: "always", **policy())
    assert (await kit.call("transfer", amount=1)).text == "transferred 1"

    with Store.open(store_url) as second:
        again = confirming(store=second, headless=True, **policy())
        assert (await again.call("transfer", amount=2)).text == "transferred 2"
        later = confirming(store=second, headless=True)
        later.policy = Policy()
        assert (await later.call("transfer", amount=2)).text == "transferred 2"
    assert (await confirming(headless=True).call("transfer", amount=2)).code == "denied"


async def test_a_policy_with_a_store_of_its_own_keeps_it(store: Store) -> None:
    with Store.open("sqlite::memory:") as own:
        policy = Policy()
        policy.use_store(own)
        kit = confirming(store=store, policy=policy, approver=lambda request: "always")
        await kit.call("transfer", amount=1)

        assert (await confirming(store=own, headless=True).call("transfer", amount=1)).code is None
    assert Toolkit(store=store).policy is None


async def test_whole_results_are_kept_where_the_model_can_read_them(store: Store) -> None:
    kit = Toolkit(store=store, result_budget=200)
    kit.register_tool_function(lambda: list(range(480)), name="numbers")

    alone = await kit.call("numbers")
    assert tools.register(kit, "artifacts")[-1] == "delete_artifact"
    cut = await kit.call("numbers")

    assert "whole" not in (alone.metadata or {})["budget"]
    found = re.search('id="(.*)"', json.loads(cut.text)[-1])
    assert found is not None
    whole = await kit.call("read_artifact", id=found[1], path="[479]")
    assert (whole.metadata or {})["value"]["content"] == "479"


async def test_the_store_of_a_budget_and_of_artifacts_wins(store: Store) -> None:
    with Store.open("sqlite::memory:") as own:
        kit = Toolkit(store=store, result_budget=ResultBudget(200, store=own))
        kit.register_tool_function(lambda: list(range(480)), name="numbers")
        tools.register(kit, "artifacts", store=own)
        await kit.call("numbers")

        listed = ((await kit.call("list_artifacts")).metadata or {})["value"]["artifacts"]
        assert len(listed) == 1
    other = Toolkit(store=store)
    tools.register(other, "artifacts")
    assert ((await other.call("list_artifacts")).metadata or {})["value"]["artifacts"] == []


async def test_a_store_that_fails_lets_nothing_run(store: Store) -> None:
    kit = confirming(store=store, approver=lambda request: True)
    store.close()

    assert (await kit.call("transfer", amount=1)).code == "denied"
    with pytest.raises(errors.StoreError, match="it is closed"):
        await kit.save()
    with pytest.raises(errors.StoreError, match="it is closed"):
        Toolkit(store=store, policy=Policy())
