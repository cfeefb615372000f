"""MCP servers that misbehave, as a program sees it: what it is told, and what it costs."""

from __future__ import annotations

import asyncio
import copy
import logging
import pickle
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from toolcrib import Toolkit, mcp
from toolcrib._mcp import McpRegistration

SCRIPT = Path(__file__).parents[1] / "tests" / "data" / "mcp" / "scripted_server.py"


@asynccontextmanager
async def scripted(
    *arguments: str, toolkit: Toolkit | None = None, **options: Any
) -> AsyncIterator[tuple[Toolkit, McpRegistration]]:
    """Connect to a scripted server and register its tools."""
    kit = toolkit or Toolkit()
    async with mcp.connect([sys.executable, str(SCRIPT), *arguments], name="scripted", **options) as client:
        yield kit, await kit.register_mcp_client(client)


async def until(condition: Any) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the condition never held")


async def test_tools_that_fall_out_of_the_list_are_skipped_with_their_reasons() -> None:
    async with scripted("invalid-tools") as (toolkit, registration):
        assert "echo" in toolkit.tools

    position = len(registration.tools)
    assert registration.skipped == {
        f"#{position + 1}": "a tool must be an object",
        f"#{position + 2}": "`name` must be text",
        "list": "`inputSchema` must be an object",
        f"#{position + 4}": "`name` must be text",
    }


async def test_a_name_that_is_listed_twice_is_registered_and_skipped() -> None:
    async with scripted("duplicate-names") as (toolkit, registration):
        described = next(s for s in toolkit.get_json_schemas() if s["function"]["name"] == "echo")["function"][
            "description"
        ]

    assert described == "Echoes its arguments."
    assert registration.tools["echo"] == "echo"
    assert "before it" in registration.skipped["echo"]


async def test_definitions_that_are_too_deep_or_too_large_are_skipped_alone() -> None:
    async with scripted("deep-tools") as (_, deep), scripted("heavy-tool") as (_, heavy):
        pass

    assert deep.skipped.keys() == {"deep_130", "deep_5000"}
    assert "levels deep" in deep.skipped["deep_130"]
    assert "too many values" in heavy.skipped["heavy_tool"]
    assert "echo" in deep.tools
    assert "echo" in heavy.tools


async def test_the_filters_decide_about_skipped_tools_too(caplog: pytest.LogCaptureFixture) -> None:
    async with mcp.connect([sys.executable, str(SCRIPT), "invalid-tools"], name="scripted") as client:
        chosen = await Toolkit().register_mcp_client(client, enable_funcs=["echo", "list"])
        left_out = await Toolkit().register_mcp_client(client, disable_funcs=["list"])

    assert chosen.skipped == {"list": "`inputSchema` must be an object"}
    assert "list" not in left_out.skipped
    assert "unknown tool 'list'" not in caplog.text


async def test_a_tool_that_becomes_invalid_is_removed_and_skipped_until_it_is_valid_again() -> None:
    async with scripted("well") as (toolkit, registration):
        await toolkit.call("change", kind="replaced", tool={"name": "victim", "inputSchema": []})
        await until(lambda: "victim" in registration.skipped)
        is_removed = "victim" not in toolkit.tools
        await toolkit.call("change", kind="added")
        await until(lambda: "victim" in registration.tools)

        assert is_removed
        assert "victim" not in registration.skipped


async def test_structured_content_is_converted_when_it_is_asked_for() -> None:
    value = {"id": 7, "n": 123456789012345678901234567890, "f": 1.5, "s": "é😀", "l": [None, True, [], {}], "-": -0.0}
    async with scripted("well") as (toolkit, _):
        response = await toolkit.call("echo", **value)
        copied, deep, pickled = copy.copy(response), copy.deepcopy(response), pickle.loads(pickle.dumps(response))
        whole = await toolkit.value("echo", **value)

    expected = {"structured_content": {"arguments": value}, "value": {"arguments": value}}
    assert copied.metadata == deep.metadata == pickled.metadata == response.metadata == expected
    assert response.metadata is response.metadata
    assert whole == {"arguments": value}
    assert copied == response


async def test_metadata_that_is_set_replaces_what_was_not_asked_for() -> None:
    async with scripted("well") as (toolkit, _):
        response = await toolkit.call("echo", a=1)
        response.metadata = {"own": 1}
        other = await toolkit.call("echo", a=1)
        other.metadata = None

    assert (response.metadata, other.metadata) == ({"own": 1}, None)


async def test_large_honest_answers_arrive() -> None:
    async with scripted("heavy") as (toolkit, _):
        numbers = await toolkit.call("heavy", unit="0.25", count=1_000_000, where="structured")
        text = await toolkit.call("echo", text="é" * 1_000_000)

    assert numbers.metadata is not None
    assert numbers.metadata["value"]["a"] == [0.25] * 1_000_000
    assert text.text == "é" * 1_000_000


async def test_an_answer_that_cannot_be_read_is_an_error_at_once_and_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, logger="toolcrib")
    async with scripted("heavy") as (toolkit, _):
        response = await toolkit.call("line", text='{"jsonrpc":"2.0","id":$ID,"result":{"content":nothing}}')
        await until(lambda: "dropped a message of MCP server `scripted`" in caplog.text)

    assert response.code == "failed"
    assert "its answer cannot be read" in response.text
    assert "not JSON" in caplog.text


async def test_a_number_that_python_cannot_read_makes_the_answer_an_error() -> None:
    line = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"structuredContent":{"a":%s}}}'
    async with scripted("heavy") as (toolkit, _):
        longest = await toolkit.value("line", text=line % ("-" + "7" * 4300))
        response = await toolkit.call("line", text=line % ("7" * 4301))

    assert longest == {"a": -int("7" * 4300)}
    assert (response.code, response.metadata) == ("failed", None)
    assert "4300 digits" in response.text


async def test_a_long_error_is_cut_for_the_model_and_whole_in_the_metadata() -> None:
    async with scripted("heavy") as (toolkit, _):
        response = await toolkit.call("heavy", unit="é", count=1_000_000, where="message")

    assert response.code == "failed"
    assert len(response.text) < 5000
    assert response.metadata == {"error": "é" * 1_000_000}


async def test_numbers_that_json_does_not_have_are_none() -> None:
    line = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"structuredContent":{"a":[NaN,-Infinity,1e400]}}}'
    async with scripted("heavy") as (toolkit, _):
        response = await toolkit.call("line", text=line)

    assert response.metadata is not None
    assert response.metadata["value"] == {"a": [None, None, float("inf")]}


@pytest.mark.parametrize(("encoding_errors", "text"), [("replace", "a\ufffdb"), ("ignore", "ab"), ("strict", None)])
async def test_bytes_that_are_not_text(encoding_errors: Any, text: str | None) -> None:
    async with scripted("bad-utf8-reply", encoding_errors=encoding_errors) as (toolkit, _):
        response = await toolkit.call("echo")

    assert (response.text == text) if text else ("not UTF-8" in response.text and response.code == "failed")


@pytest.mark.parametrize("protocol", ["2025-11-25", "2026-07-28"])
async def test_a_server_may_ask_so_often_and_no_more(protocol: str) -> None:
    asked = 0

    async def answer(question: Any) -> Any:
        nonlocal asked
        asked += 1
        return {"name": "Ann"}

    toolkit = Toolkit(asker=answer)
    async with scripted("well", "--protocol", protocol, toolkit=toolkit, max_requests=3):
        few = await toolkit.call("ask", times=3)
        many = await toolkit.call("ask", times=5000)

    assert few.ok
    assert "Ann" in few.text
    assert many.code == "failed"
    assert "more than 3 questions and model requests" in many.text
    assert asked <= 6


@pytest.mark.parametrize("number", [-1, "many", 1.5, None])
def test_an_invalid_number_of_requests_is_an_error(number: Any) -> None:
    with pytest.raises(ValueError, match="max_requests"):
        mcp.connect("x", max_requests=number)


async def test_many_tools_are_registered_while_other_tasks_run() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    toolkit = Toolkit()
    async with mcp.connect([sys.executable, str(SCRIPT), "many-tools"], name="many") as client:
        await client.list_tools()
        counting = asyncio.create_task(count())
        await toolkit.register_mcp_client(client)
        counting.cancel()

    assert len(toolkit.tools) > 10_000
    assert turns > 5
