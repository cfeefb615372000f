"""A database that does not answer stops only the calls that need it.

The event loop goes on, and nothing runs before it is stored.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.stalled import Stalled, locked_file, proxied
from toolcrib import ResultBudget, Store, Toolkit, tools
from toolcrib.errors import ApprovalStoreError, StoreError, UsedPendingError
from toolcrib.policy import Policy, Rule


@pytest.fixture(params=["sqlite", "postgresql"])
def stalled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stalled]:
    """A database that can be stopped, once of each kind."""
    if request.param == "sqlite":
        with locked_file(tmp_path / "crib.db") as file:
            yield file
    else:
        server = request.getfixturevalue("postgres")
        with proxied(server.new_database()) as proxy:
            yield proxy


class Shop:
    """A toolkit on a store, whose tools note that they have run."""

    def __init__(self, store: Store, **options: Any) -> None:
        self.runs: list[int] = []
        self.toolkit = Toolkit(store=store, **options)

        @self.toolkit.tool(run_in="inline")
        def look(number: int = 0) -> str:
            self.runs.append(number)
            return "seen"

        @self.toolkit.tool(timeout=0.3)
        async def glance(number: int = 0) -> str:
            self.runs.append(number)
            return "seen"

        @self.toolkit.tool(permission="confirm")
        async def pay(number: int) -> str:
            self.runs.append(number)
            return f"paid {number}"


async def resumed(toolkit: Any, pending: Any, answer: Any = True) -> list[str]:
    return [response.text async for response in toolkit.resume(pending, answer)]


async def longest_pause(during: Any) -> float:
    """Wait for something; return the longest time between two turns of the event loop meanwhile."""
    task, longest, last = asyncio.ensure_future(during), 0.0, time.perf_counter()
    while not task.done():
        await asyncio.sleep(0.005)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    await task
    return longest


async def test_the_event_loop_goes_on_and_deadlines_work_while_a_database_does_not_answer(stalled: Stalled) -> None:
    async with Store.open(stalled.url) as store:
        shop = Shop(store)
        pending = ((await shop.toolkit.call("pay", number=1)).metadata or {})["pending"]
        stalled.stop()
        began = time.perf_counter()

        async def attempt(call: Any) -> None:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(call, 1)

        calls = [shop.toolkit.call("look"), shop.toolkit.call("pay", number=2), resumed(shop.toolkit, pending)]
        calls += [shop.toolkit.session().call("look") for _ in range(20)]
        pause = await longest_pause(asyncio.gather(*map(attempt, calls)))

        assert pause < 0.5, "the loop stands still"
        assert time.perf_counter() - began < 4
        stalled.go_on()
        await store.get("any", "thing")
        assert shop.runs == []


async def test_nothing_runs_before_it_is_recorded(stalled: Stalled) -> None:
    async with Store.open(stalled.url) as store:
        shop = Shop(store)
        stalled.stop()
        calls = [asyncio.ensure_future(shop.toolkit.call("look", number=number)) for number in range(50)]
        await asyncio.sleep(0.3)
        before = list(shop.runs)

        stalled.go_on()
        responses = await asyncio.gather(*calls)

        assert before == []
        assert sorted(shop.runs) == list(range(50))
        assert {response.text for response in responses} == {"seen"}
        assert [record["outcome"] for _, record in await store.audit()] == ["run"] * 50


async def test_a_call_is_denied_when_the_store_takes_too_long(
    stalled: Stalled, caplog: pytest.LogCaptureFixture
) -> None:
    async with Store.open(stalled.url, timeout=0.5) as store:
        shop = Shop(store)
        pending = ((await shop.toolkit.call("pay", number=1)).metadata or {})["pending"]
        stalled.stop()

        with caplog.at_level(logging.WARNING, "toolcrib"):
            response = await shop.toolkit.call("look")
        with pytest.raises(ApprovalStoreError, match=r"did not answer within 0\.5 s"):
            await resumed(shop.toolkit, pending)
        with pytest.raises(ApprovalStoreError, match=r"did not answer within 0\.5 s"):
            await shop.toolkit.call("pay", number=2)
        with pytest.raises(StoreError, match=r"did not answer within 0\.5 s"):
            await store.put("space", "key", 1, version=None)

        assert response.code == "denied"
        assert "could not be recorded" in response.text
        assert "did not answer within 0.5 s" in caplog.text
        stalled.go_on()
        deadline = time.monotonic() + 20
        while True:
            try:
                assert await store.get("space", "key") is None
                break
            except StoreError:
                assert time.monotonic() < deadline
        assert shop.runs == []
        assert await resumed(shop.toolkit, pending) == ["paid 1"]
        with pytest.raises(UsedPendingError):
            await resumed(shop.toolkit, pending)


def test_synchronous_code_waits_no_longer_than_the_store_may_take(stalled: Stalled) -> None:
    with Store.open(stalled.url, timeout=0.5) as store:
        shop = Shop(store)
        stalled.stop()

        response = shop.toolkit.run("look")

        assert response.code == "denied"
        assert shop.runs == []
        stalled.go_on()


async def test_a_call_that_is_cancelled_while_it_is_stored_never_runs(stalled: Stalled) -> None:
    async with Store.open(stalled.url) as store:
        shop = Shop(store)
        pending = ((await shop.toolkit.call("pay", number=1)).metadata or {})["pending"]
        stalled.stop()
        stream = shop.toolkit.call_tool_function({"type": "tool_use", "id": "1", "name": "look", "input": {}})
        starts = [shop.toolkit.call("look"), resumed(shop.toolkit, pending), anext(stream.__aiter__())]
        tasks = [asyncio.ensure_future(start) for start in starts]
        await asyncio.sleep(0.2)

        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)

        assert [type(end) for end in ends[:2]] == [asyncio.CancelledError] * 2
        stalled.go_on()
        await store.get("any", "thing")
        await asyncio.sleep(0.1)
        assert shop.runs == []


async def test_the_time_limit_of_a_tool_holds_while_its_call_is_stored(stalled: Stalled) -> None:
    async with Store.open(stalled.url) as store:
        shop = Shop(store)
        stalled.stop()

        response = await asyncio.wait_for(shop.toolkit.call("glance"), 10)

        stalled.go_on()
        assert response.code == "timeout"
        await store.get("any", "thing")
        assert shop.runs == []
        assert (await shop.toolkit.call("glance")).text == "seen"


async def test_answers_for_always_are_saved_without_stopping_the_loop(stalled: Stalled) -> None:
    async with Store.open(stalled.url) as store:
        shop = Shop(store, approver=lambda _: "always")
        assert (await shop.toolkit.call("look")).text == "seen"
        stalled.stop()

        call = asyncio.ensure_future(shop.toolkit.call("pay", number=3))
        assert await longest_pause(asyncio.wait([call], timeout=0.5)) < 0.5
        assert not call.done()
        stalled.go_on()

        assert (await call).text == "paid 3"
        again = Shop(store)
        assert (await again.toolkit.call("pay", number=4)).text == "paid 4"


async def test_a_result_that_is_kept_does_not_stop_the_loop(stalled: Stalled) -> None:
    async with Store.open(stalled.url, timeout=1) as store:
        toolkit = Toolkit(result_budget=ResultBudget(100, store=store))
        toolkit.register_tool_function(lambda: "word " * 1000, name="talk")
        tools.register(toolkit, "artifacts", store=store)
        stalled.stop()

        call = asyncio.ensure_future(toolkit.call("talk"))
        pause = await longest_pause(asyncio.wait([call]))

        assert pause < 0.5
        assert len((await call).text) <= 100
        stalled.go_on()


async def test_a_denial_by_a_rule_and_a_layered_call_wait_for_their_record(stalled: Stalled) -> None:
    async with Store.open(stalled.url) as store:
        shop = Shop(store, policy=Policy([Rule("deny", tool="look")]))

        async def layer(keywords: Any, following: Any) -> Any:
            async for response in await following(**keywords):
                yield response

        for layers in (0, 1):
            if layers:
                shop.toolkit.register_middleware(layer)
            stalled.stop()
            call = asyncio.ensure_future(shop.toolkit.call("look"))
            assert await longest_pause(asyncio.wait([call], timeout=0.4)) < 0.4
            assert not call.done()
            stalled.go_on()
            assert (await call).code == "denied"
        assert [record["outcome"] for _, record in await store.audit()] == ["denied", "denied"]
        assert shop.runs == []


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_the_time_limit_of_a_store_is_positive(timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout must be a positive number of seconds"):
        Store.open("sqlite::memory:", timeout=timeout)


def test_the_time_limit_of_a_store_is_known() -> None:
    with Store.open("sqlite::memory:", timeout=2.5) as store, Store.open("sqlite::memory:") as other:
        assert (store.timeout, other.timeout) == (2.5, 30)
    with pytest.raises(TypeError, match="timeout must be a number of seconds, not bool"):
        Store.open("sqlite::memory:", timeout=True)


async def test_a_call_that_was_stored_runs_only_if_it_still_may(stalled: Stalled) -> None:
    async with Store.open(stalled.url) as store:
        for change in ("remove", "deny", "ask"):
            policy = Policy([])
            shop = Shop(store, policy=policy)
            stalled.stop()
            call = asyncio.ensure_future(shop.toolkit.call("look"))
            await asyncio.sleep(0.2)

            if change == "remove":
                shop.toolkit.remove_tool_function("look")
            else:
                policy.add(Rule("deny" if change == "deny" else "ask", tool="look"))
            stalled.go_on()

            assert (await call).code == {"remove": "unknown_tool", "deny": "denied", "ask": "pending"}[change]
            assert shop.runs == []
