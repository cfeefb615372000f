"""Budgets of results: where they apply, what streams of chunks mean under one, and the whole text in a store."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import re
import subprocess
import sys
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.streams import block, read
from toolcrib import ResultBudget, Store, Toolkit, ToolResponse, mcp, tools
from toolcrib.compat.agentscope import Toolkit as CompatToolkit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

ITEMS = [{"id": number, "name": f"item {number}"} for number in range(480)]
LINES = "".join(f"Line {number} of a text.\n" for number in range(500))
IMAGE: Any = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}


def search() -> list[dict[str, Any]]:
    """Search for items."""
    return ITEMS


async def asearch() -> list[dict[str, Any]]:
    return ITEMS


def lines() -> Iterator[str]:
    yield from LINES.splitlines(keepends=True)


async def alines() -> AsyncIterator[str]:
    for line in LINES.splitlines(keepends=True):
        yield line


def facts(response: ToolResponse) -> dict[str, Any]:
    """The metadata, which there has to be."""
    assert response.metadata is not None
    return response.metadata


async def call(function: Any, kit: Toolkit | None = None, **options: Any) -> ToolResponse:
    kit = kit or Toolkit()
    kit.register_tool_function(function, name="tool", **options)
    return await kit.call("tool")


# The class


def test_a_budget_has_its_limits() -> None:
    budget = ResultBudget(characters=2000, tokens=500, count=len)

    assert (budget.characters, budget.tokens, budget.count, budget.store) == (2000, 500, len, None)
    assert repr(budget) == "ResultBudget(characters=2000, tokens=500, count=<built-in function len>)"
    assert ResultBudget(7).characters == 7


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (TypeError, "a result budget needs `characters` or `tokens`", {}),
        (TypeError, "characters must be an integer, not str", {"characters": "9"}),
        (TypeError, "tokens must be an integer, not bool", {"tokens": True}),
        (ValueError, "tokens must be a positive number, not 0", {"tokens": 0}),
        (ValueError, "characters must be a positive number, not -1", {"characters": -1}),
        (TypeError, "count must be callable, not int", {"tokens": 9, "count": 1}),
        (TypeError, "`count` counts tokens, and needs `tokens`", {"characters": 9, "count": len}),
    ],
)
def test_an_invalid_budget_is_refused(error: type[Exception], message: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(error, match=re.escape(message)):
        ResultBudget(**arguments)


def test_every_place_of_a_budget_refuses_other_values() -> None:
    kit = Toolkit()
    message = "result_budget must be a ResultBudget or a number of characters, not str"

    for refused in (
        lambda: Toolkit(result_budget="9"),  # type: ignore[arg-type]
        lambda: kit.session(result_budget="9"),  # type: ignore[call-overload]
        lambda: kit.create_tool_group("g", "d", result_budget="9"),  # type: ignore[arg-type]
        lambda: kit.register_tool_function(search, result_budget="9"),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match=message):
            refused()
    assert not kit.tools
    assert not kit.groups


# Places


async def test_a_tool_has_a_budget() -> None:
    response = await call(search, result_budget=400)

    assert len(response.text) <= 400
    *shown, note = json.loads(response.text)
    assert shown == ITEMS[: len(shown)]
    assert note == f"[{len(shown)} of 480 items; narrow the request to see more]"
    assert facts(response)["value"] == ITEMS
    assert facts(response)["budget"] == {
        "kind": "json",
        "shown": len(shown),
        "total": 480,
        "unit": "items",
        "characters": len(json.dumps(ITEMS)),
    }
    assert response.ok


async def test_a_result_that_fits_is_delivered_as_it_is() -> None:
    given = ToolResponse([{"type": "text", "text": "short"}])

    response = await call(lambda: given, result_budget=5)

    assert response is given
    assert response.metadata is None


async def test_a_budget_may_be_given_at_the_decorator() -> None:
    kit = Toolkit()
    budget = ResultBudget(300)
    kit.tool(result_budget=budget)(search)

    assert kit.tools["search"].result_budget is budget
    assert len((await kit.call("search")).text) <= 300


async def test_groups_sessions_and_toolkits_have_budgets_and_the_smallest_holds() -> None:
    kit = Toolkit(result_budget=900)
    kit.create_tool_group("small", "Small.", active=True, result_budget=500)
    kit.register_tool_function(search)
    kit.register_tool_function(search, "small", name="grouped")
    kit.register_tool_function(search, "small", name="tool", result_budget=800)
    session = kit.session(result_budget=ResultBudget(300))

    sizes = [len((await caller.call(name)).text) for caller in (kit, session) for name in ("search", "grouped", "tool")]

    limits = [900, 500, 500, 300, 300, 300]
    assert all(limit * 0.8 < size <= limit for size, limit in zip(sizes, limits, strict=True)), sizes


async def test_a_budget_can_be_changed_and_removed() -> None:
    kit = Toolkit(tools=[search])
    session = kit.session()
    assert kit.result_budget is None
    assert session.result_budget is None

    kit.result_budget = ResultBudget(300)
    session.result_budget = 200
    sizes = len((await kit.call("search")).text), len((await session.call("search")).text)
    session.result_budget = kit.result_budget = None

    assert 200 < sizes[0] <= 300
    assert sizes[1] <= 200
    assert (await session.call("search")).metadata == {"value": ITEMS}


async def test_a_view_of_a_session_keeps_its_budget_and_a_new_group_has_none() -> None:
    kit = Toolkit()
    kit.create_tool_group("g", "d", active=True, result_budget=300)
    kit.remove_tool_groups("g")
    kit.create_tool_group("g", "d", active=True)
    kit.register_tool_function(search, "g")
    session = kit.session(result_budget=300)

    assert len((await session.view(names=["search"]).call("search")).text) <= 300
    assert "budget" not in facts(await kit.call("search"))


@pytest.mark.parametrize("run_in", ["thread", "inline", "process"])
async def test_a_budget_holds_wherever_a_function_runs(run_in: Any) -> None:
    response = await call(search, run_in=run_in, result_budget=300)

    assert len(response.text) <= 300
    assert facts(response)["budget"]["total"] == 480


async def test_a_budget_holds_for_coroutines_and_native_tools(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text(LINES)
    kit = Toolkit(result_budget=300)
    kit.register_tool_function(asearch)
    tools.register(kit, "files", root=tmp_path)

    coroutine = await kit.call("asearch")
    native = await kit.call("read_text_file", path="/workspace/long.txt")

    assert len(coroutine.text) <= 300
    assert len(native.text) <= 300
    assert facts(native)["budget"]["characters"] > 10_000


SERVER = """
from toolcrib import Toolkit

toolkit = Toolkit()

@toolkit.tool
def search() -> list[dict[str, int]]:
    "Search for items."
    return [{"id": number} for number in range(480)]

toolkit.serve_mcp("stdio").run()
"""


async def test_a_budget_holds_for_the_tools_of_mcp_servers() -> None:
    kit = Toolkit()
    kit.create_tool_group("remote", "A server.", active=True, result_budget=300)

    async with mcp.connect([sys.executable, "-c", SERVER], name="server") as client:
        await kit.register_mcp_client(client, "remote")
        response = await kit.call("search")

    assert len(response.text) <= 300
    assert facts(response)["budget"]["total"] == 480


async def test_a_tool_that_is_called_by_itself_and_by_middlewares_keeps_to_its_budget() -> None:
    kit = Toolkit(result_budget=300, tools=[search])
    alone = (await read(kit.tools["search"].call(arguments={})))[-1]

    async def around(kwargs: Any, next_handler: Any) -> AsyncIterator[ToolResponse]:
        async for response in await next_handler(**kwargs):
            yield response

    kit.register_middleware(around)

    assert len(alone.text) <= 300
    assert len((await kit.call("search")).text) <= 300


async def test_the_result_of_a_background_task_keeps_to_its_budget() -> None:
    kit = Toolkit()
    kit.register_tool_function(asearch, async_execution=True, result_budget=300)
    started = await kit.call("asearch")

    response = await kit.wait_task(facts(started)["task_id"])

    assert "480 items" in response.text
    assert len(response.text) <= 400


# Content


async def test_errors_are_cut_too() -> None:
    def fail() -> None:
        raise ValueError("A long message. " * 100)

    response = await call(fail, result_budget=200)

    assert response.code == "failed"
    assert isinstance(response.exception, ValueError)
    assert len(response.text) <= 200
    assert "of 1612 characters" in response.text


async def test_replies_to_invalid_calls_are_cut_too() -> None:
    kit = Toolkit(result_budget=150, tools=[search])

    unknown = (await read(kit.call_tool_function(block("unknown" * 100))))[-1]
    invalid = (await read(kit.call_tool_function(block("search", **{"x" * 1000: 1}))))[-1]

    assert (unknown.code, invalid.code) == ("unknown_tool", "invalid_arguments")
    assert len(unknown.text) <= 150
    assert len(invalid.text) <= 150


async def test_only_text_is_cut_and_the_response_of_the_tool_stays_as_it_is() -> None:
    content: Any = [IMAGE, {"type": "text", "text": LINES, "cache": True}, {"type": "text", "text": "short"}]
    given = ToolResponse(content, {"own": 1})

    response = await call(lambda: given, result_budget=300)

    image, cut, short = response.content
    assert image is IMAGE
    assert cut["cache"] is True  # type: ignore[typeddict-item]
    assert short["text"] == "short"  # type: ignore[typeddict-item]
    assert len(response.text) <= 300
    assert facts(response)["own"] == 1
    assert given.content[1]["text"] == LINES  # type: ignore[typeddict-item]
    assert given.metadata == {"own": 1}


async def test_many_blocks_of_text_say_how_many_are_left() -> None:
    given = ToolResponse([{"type": "text", "text": f"Block {number}."} for number in range(200)])

    response = await call(lambda: given, result_budget=300)

    assert response.text.startswith("Block 0.\nBlock 1.\n")
    assert response.text.endswith("of 200 blocks of text; narrow the request to see more]")
    assert len(response.text) <= 300


async def test_a_postprocess_function_sees_the_whole_result() -> None:
    seen = []

    def postprocess(_call: Any, response: ToolResponse) -> ToolResponse:
        seen.append(len(response.text))
        return ToolResponse([{"type": "text", "text": response.text + LINES}])

    response = await call(lambda: LINES, postprocess_func=postprocess, result_budget=300)

    assert seen == [len(LINES)]
    assert len(response.text) <= 300


# Tokens


async def test_tokens_are_counted_by_a_function() -> None:
    def words(text: str) -> int:
        return len(text.split())

    response = await call(lambda: LINES, result_budget=ResultBudget(tokens=80, count=words))

    assert 60 < words(response.text) <= 80


async def test_tokens_are_estimated_without_a_function() -> None:
    chinese, english = [
        await call(lambda text=text: text * 2000, result_budget=ResultBudget(tokens=200)) for text in ("東京", "word ")
    ]

    assert len(chinese.text) <= 200
    assert 500 < len(english.text) <= 800


async def test_a_counter_that_fails_is_logged_and_tokens_are_estimated(caplog: pytest.LogCaptureFixture) -> None:
    def broken(text: str) -> int:
        raise KeyError("vocabulary")

    with caplog.at_level(logging.WARNING, "toolcrib"):
        response = await call(lambda: LINES, result_budget=ResultBudget(tokens=100, count=broken))

    assert len(response.text) < 500
    assert "the token counter of a result budget failed: 'vocabulary'" in caplog.text


# Streams


@pytest.mark.parametrize("function", [lines, alines])
async def test_additions_and_the_last_response_are_within_the_budget(function: Any) -> None:
    kit = Toolkit()
    kit.register_tool_function(function, name="tool", result_budget=300)

    responses = await read(kit.call_tool_function(block("tool")))

    additions = "".join(response.text for response in responses if response.mode == "addition")
    assert LINES.startswith(additions.partition("\n[the rest of this stream is left out]")[0])
    assert 200 < len(additions) <= 300
    assert responses[-1].is_last
    assert len(responses[-1].text) <= 300
    assert responses[-1].text.endswith("Line 499 of a text.\n")
    assert facts(responses[-1])["budget"]["characters"] == len(LINES)
    assert len(responses) == 501


async def test_each_result_so_far_is_within_the_budget() -> None:
    kit = Toolkit()
    kit.register_tool_function(lines, name="tool", result_budget=200, chunks="replace")

    def growing() -> Iterator[str]:
        text = ""
        for line in lines():
            text += line
            yield text

    kit.register_tool_function(growing, result_budget=200, chunks="replace")

    responses = await read(kit.call_tool_function(block("growing")))

    assert all(len(response.text) <= 200 for response in responses)
    assert responses[0].text == "Line 0 of a text.\n"


async def test_progress_is_not_part_of_the_budget() -> None:
    def reporting() -> Iterator[ToolResponse]:
        yield ToolResponse([{"type": "text", "text": LINES}], mode="progress")
        yield ToolResponse([{"type": "text", "text": "done"}])

    kit = Toolkit()
    kit.register_tool_function(reporting, result_budget=200)

    progress, _, last = await read(kit.call_tool_function(block("reporting")))

    assert progress.text == LINES
    assert last.text == "done"
    assert last.metadata is None


async def test_an_interrupted_call_repeats_its_result_within_the_budget() -> None:
    started = asyncio.Event()

    async def endless() -> AsyncIterator[str]:
        yield LINES
        started.set()
        await asyncio.sleep(100)

    kit = Toolkit()
    kit.register_tool_function(endless, result_budget=400)
    responses: list[ToolResponse] = []

    async def consume() -> None:
        async for response in kit.call_tool_function(block("endless")):
            responses.append(response)

    task = asyncio.create_task(consume())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert responses[-1].is_interrupted
    assert len(responses[-1].text) <= 400
    assert "<system-info>" in responses[-1].text


async def test_the_chunks_of_agentscope_are_each_within_the_budget() -> None:
    kit = CompatToolkit()
    kit.register_tool_function(lambda: iter([LINES]), name="one", result_budget=200)
    kit.register_tool_function(lines, name="many", result_budget=200)

    def growing() -> Iterator[ToolResponse]:
        for end in range(100, 2000, 100):
            yield ToolResponse([{"type": "text", "text": LINES[:end]}])

    kit.register_tool_function(growing, result_budget=200)

    responses = await read(await kit.call_tool_function(block("growing")))

    assert len(responses) == 19
    assert all(len(response.text) <= 200 for response in responses)


# The store


async def spilled(kit: Any, name: str = "search") -> tuple[ToolResponse, str]:
    response = await kit.call(name)
    found = re.search(r'read_artifact\(id=\\?"(result-[0-9a-f]{12})\\?"\)', response.text)
    assert found, response.text
    return response, found[1]


async def test_the_whole_result_is_read_by_lines_path_and_pattern(store_url: str) -> None:
    kit = Toolkit()
    with Store.open(store_url) as store:
        tools.register(kit, "artifacts", store=store)
        budget = ResultBudget(400, store=store)
        kit.register_tool_function(search, result_budget=budget)
        kit.register_tool_function(lambda: LINES, name="text", result_budget=budget)

        response, found = await spilled(kit)
        _, text = await spilled(kit, "text")
        whole = await kit.call("read_artifact", id=found)
        path = await kit.call("read_artifact", id=found, path="[479].name")
        some = await kit.call("read_artifact", id=text, first_line=100, last_line=101)
        matching = await kit.call("read_artifact", id=text, pattern=r"Line 42\d ")

    assert len(response.text) <= 400
    assert json.loads(response.text)[-1].endswith(f' of 480 items; read the rest with read_artifact(id="{found}")]')
    assert facts(response)["budget"]["whole"] == f'read_artifact(id="{found}")'
    assert json.loads(facts(whole)["value"]["content"]) == ITEMS
    assert facts(whole)["value"]["title"] == "The whole result of search"
    assert facts(whole)["value"]["content_type"] == "json"
    assert json.loads(facts(path)["value"]["content"]) == "item 479"
    assert facts(some)["value"]["content"] == "Line 99 of a text.\nLine 100 of a text.\n"
    assert facts(matching)["value"]["content"].splitlines()[0] == "421: Line 420 of a text."


async def test_the_whole_result_belongs_to_the_session_of_its_call() -> None:
    store = Store.open("sqlite::memory:")
    kit = Toolkit(result_budget=ResultBudget(400, store=store), tools=[search])
    tools.register(kit, "artifacts", store=store)
    one, other = kit.session(id="one"), kit.session(id="other")

    _, found = await spilled(one)

    assert (await one.call("read_artifact", id=found, path="[0].id")).ok
    assert (await other.call("read_artifact", id=found)).text == f"Error: Artifact '{found}' not found"


async def test_what_read_artifact_gives_is_cut_but_not_kept_again() -> None:
    store = Store.open("sqlite::memory:")
    kit = Toolkit(result_budget=ResultBudget(400, store=store), tools=[search])
    tools.register(kit, "artifacts", store=store)
    _, found = await spilled(kit)

    response = await kit.call("read_artifact", id=found)

    assert len(response.text) <= 400
    assert json.loads(response.text)["id"] == found
    assert "whole" not in facts(response)["budget"]
    listed = await kit.call("list_artifacts")
    assert len(facts(listed)["value"]["artifacts"]) == 1


async def test_the_store_of_any_budget_that_applies_is_used() -> None:
    store = Store.open("sqlite::memory:")
    kit = Toolkit(result_budget=ResultBudget(9000, store=store))
    kit.register_tool_function(search, result_budget=300)

    response, _ = await spilled(kit)

    assert len(response.text) <= 300


@pytest.mark.parametrize("function", [lines, alines, asearch])
async def test_the_whole_result_of_a_stream_is_kept_once(function: Any) -> None:
    store = Store.open("sqlite::memory:")
    kit = Toolkit()
    tools.register(kit, "artifacts", store=store)
    kit.register_tool_function(function, name="tool", result_budget=ResultBudget(300, store=store), timeout=60)

    responses = await read(kit.call_tool_function(block("tool")))

    found = facts(responses[-1])["budget"]["whole"][len('read_artifact(id="') : -2]
    whole = await kit.call("read_artifact", id=found)
    expected = LINES if function is not asearch else json.dumps(ITEMS)
    assert facts(whole)["value"]["content"] == expected
    assert len(facts(await kit.call("list_artifacts"))["value"]["artifacts"]) == 1
    assert responses[-1].is_last
    assert sum(response.is_last for response in responses) == 1


async def test_a_result_that_fits_is_not_kept() -> None:
    store = Store.open("sqlite::memory:")
    kit = Toolkit(result_budget=ResultBudget(400, store=store))
    tools.register(kit, "artifacts", store=store)
    kit.register_tool_function(lambda: "short", name="tool")

    assert (await kit.call("tool")).metadata is None
    assert facts(await kit.call("list_artifacts"))["value"] == {"artifacts": []}


def talk(size: int) -> str:
    return "word " * size


async def kept_ids(kit: Toolkit) -> list[str]:
    return [artifact["id"] for artifact in facts(await kit.call("list_artifacts"))["value"]["artifacts"]]


async def test_the_oldest_results_are_removed_when_there_are_too_many(store_url: str) -> None:
    with Store.open(store_url) as store:
        kit = Toolkit(result_budget=ResultBudget(300, store=store))
        tools.register(kit, "artifacts", store=store)
        kit.register_tool_function(talk)
        store.limit_results(count=3)
        ids = []
        for _ in range(6):
            await kit.call("talk", size=1000)
            ids += [id for id in await kept_ids(kit) if id not in ids]

        assert sorted(await kept_ids(kit)) == sorted(ids[3:])

        store.limit_results(count=100, bytes=12_000)
        await kit.call("talk", size=1000)
        assert len(await kept_ids(kit)) == 2
        await kit.call("talk", size=20_000)
        assert len(await kept_ids(kit)) == 1

        store.limit_results(age=0)
        await asyncio.sleep(0.01)
        await kit.call("talk", size=1000)
        assert len(await kept_ids(kit)) == 1


async def test_a_result_that_was_edited_is_not_removed(store_url: str) -> None:
    with Store.open(store_url) as store:
        kit = Toolkit(result_budget=ResultBudget(300, store=store))
        tools.register(kit, "artifacts", store=store)
        kit.register_tool_function(talk)
        store.limit_results(count=1)
        await kit.call("talk", size=1000)
        (edited,) = await kept_ids(kit)
        assert (await kit.call("rewrite_artifact", id=edited, content="mine")).ok

        await kit.call("talk", size=1000)
        await kit.call("talk", size=1000)

        ids = await kept_ids(kit)
        assert edited in ids
        assert len(ids) == 2


def test_the_limits_of_kept_results_are_checked() -> None:
    with Store.open("sqlite::memory:") as store:
        with pytest.raises(ValueError, match="age must be a non-negative number of seconds"):
            store.limit_results(age=-1)
        with pytest.raises(OverflowError):
            store.limit_results(count=-1)


async def test_a_store_that_fails_is_logged_and_the_result_is_delivered(caplog: pytest.LogCaptureFixture) -> None:
    store = Store.open("sqlite::memory:")
    store.close()

    with caplog.at_level(logging.WARNING, "toolcrib"):
        response = await call(search, result_budget=ResultBudget(400, store=store))

    assert len(json.loads(response.text)) > 2
    assert "whole" not in facts(response)["budget"]
    assert "the whole text of a result was not kept: Failed to create artifact: " in caplog.text


# Another process, because locks of files do not hold within one.
LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
input()
"""


async def test_a_call_can_be_cancelled_while_its_whole_text_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "crib.db"
    with Store.open(f"sqlite:{path}") as store:
        kit = Toolkit(result_budget=ResultBudget(400, store=store), tools=[asearch])
        await spilled(kit, "asearch")  # the tables are made
        writer = subprocess.Popen([sys.executable, "-c", LOCK, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert writer.stdout
        assert writer.stdout.readline() == b"locked\n"

        task = asyncio.create_task(kit.call("asearch"))
        done, _ = await asyncio.wait([task], timeout=0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        writer.communicate(b"\n")

        assert not done
        await spilled(kit, "asearch")


async def test_a_repaired_call_lists_its_repairs_beside_its_budget() -> None:
    def echo(count: int) -> str:
        return "word " * count

    store = Store.open("sqlite::memory:")
    kit = Toolkit()
    kit.register_tool_function(echo, result_budget=ResultBudget(300, store=store))

    response = (await read(kit.call_tool_function(block("echo", count="500"))))[-1]

    assert facts(response)["repairs"]
    assert facts(response)["budget"]["whole"]


# Memory, and any result


def test_a_counter_that_refers_to_its_toolkit_is_collected() -> None:
    class Agent:
        def __init__(self) -> None:
            budget = ResultBudget(tokens=9, count=self.count)
            self.kit = Toolkit(result_budget=budget)
            self.kit.create_tool_group("g", "d", result_budget=budget)
            self.kit.register_tool_function(search, result_budget=budget)
            self.session = self.kit.session(result_budget=budget)

        def count(self, text: str) -> int:
            return len(text)

    agent = weakref.ref(Agent())
    gc.collect()

    assert agent() is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=6), inner, max_size=8),
    max_leaves=40,
)


@given(value=JSON, most=st.integers(60, 600))
def test_any_value_stays_json_within_its_budget(value: Any, most: int) -> None:
    response = asyncio.run(call(lambda: value, run_in="inline", result_budget=most))

    assert len(response.text) <= most
    if not isinstance(value, str):
        whole = "budget" not in facts(response)
        left = json.loads(response.text)
        assert not whole or left == value


@given(text=st.text(max_size=400), most=st.integers(1, 300))
def test_any_text_is_within_its_budget(text: str, most: int) -> None:
    response = asyncio.run(call(lambda: text, run_in="inline", result_budget=most))

    assert len(response.text) <= most
    if len(text) <= most:
        assert response.text == text
