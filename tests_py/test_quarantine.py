"""Quarantine: a tool that is registered, and neither shown nor callable until it is accepted."""

import asyncio
from typing import Any

import pytest

from toolcrib import Toolkit, ToolResponse
from toolcrib.errors import UnknownToolError

REASON = "its definition has changed"


def workshop(**options: Any) -> Toolkit:
    toolkit = Toolkit(run_in="inline", **options)
    toolkit.create_tool_group("metal", "Metal.", active=True)

    @toolkit.tool
    def saw(length: int = 1) -> str:
        """Saw a board."""
        return f"sawn {length}"

    @toolkit.tool(group_name="metal", tags=["sharp"])
    def drill() -> str:
        """Drill a hole."""
        return "drilled"

    return toolkit


def names(schemas: list[dict[str, Any]]) -> list[str]:
    return [schema["function"]["name"] for schema in schemas]


def assert_refused(response: ToolResponse) -> None:
    assert response.code == "denied"
    assert response.text == "Error: The tool 'saw' is quarantined and did not run: its definition has changed"


def test_a_quarantined_tool_does_not_run_until_it_is_accepted() -> None:
    toolkit = workshop()
    toolkit.quarantine("saw", REASON)

    refused = toolkit.run("saw")
    toolkit.accept("saw")
    accepted = toolkit.run("saw")

    assert_refused(refused)
    assert accepted.text == "sawn 1"


def test_a_quarantined_tool_is_in_no_listing() -> None:
    toolkit = workshop()
    everything = toolkit.view()
    one = toolkit.view(names=["saw"])
    before = toolkit.get_json_schemas_bytes()

    toolkit.quarantine("saw", REASON)

    assert names(toolkit.get_json_schemas()) == ["drill"]
    assert names(toolkit.get_json_schemas(["metal"])) == ["drill"]
    assert b"saw" in before
    assert b"saw" not in toolkit.get_json_schemas_bytes()
    assert [tool["name"] for tool in toolkit.schemas("anthropic")] == ["drill"]
    assert "saw" not in toolkit.instructions()
    assert names(everything.get_json_schemas()) == ["drill"]
    assert list(everything.tools) == ["drill"]
    assert list(one.tools) == []
    toolkit.accept("saw")
    assert toolkit.get_json_schemas_bytes() == before
    assert list(one.tools) == ["saw"]


def test_a_quarantined_tool_stays_registered() -> None:
    toolkit = workshop()

    toolkit.quarantine("saw", REASON)

    assert list(toolkit.tools) == ["saw", "drill"]
    assert toolkit.tools["saw"].quarantined == REASON
    assert toolkit.tools["drill"].quarantined is None
    assert toolkit.quarantined == {"saw": REASON}


async def test_no_way_of_calling_reaches_a_quarantined_tool() -> None:
    toolkit = workshop()
    tool = toolkit.tools["saw"]
    view, session = toolkit.view(names=["saw"]), toolkit.session()
    toolkit.quarantine("saw", REASON)
    call = {"name": "saw", "input": {}}

    assert_refused(await toolkit.call("saw"))
    assert_refused([response async for response in toolkit.call_tool_function(call)][-1])
    assert_refused([response async for response in view.call_tool_function(call)][-1])
    assert_refused([response async for response in session.call_tool_function(call)][-1])
    assert_refused([response async for response in tool.call(arguments={})][-1])
    assert toolkit.check(call)["would"] == "refuse"


async def test_a_call_that_is_stepped_after_the_quarantine_does_not_run() -> None:
    toolkit = workshop()
    by_name, by_itself = (
        toolkit.call_tool_function({"name": "saw", "input": {}}),
        toolkit.tools["saw"].call(arguments={}),
    )

    toolkit.quarantine("saw", REASON)

    assert_refused([response async for response in by_name][-1])
    assert_refused([response async for response in by_itself][-1])


async def test_a_quarantine_while_the_approver_thinks_denies_the_call() -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def approve(_: object) -> str:
        asked.set()
        await answer.wait()
        return "once"

    toolkit = Toolkit(approver=approve)

    @toolkit.tool(permission="confirm")
    async def saw() -> str:
        """Saw."""
        raise AssertionError("a quarantined tool ran")

    for is_by_name in (True, False):
        asked.clear()
        answer.clear()
        by_itself = toolkit.tools["saw"].call(arguments={})
        call = asyncio.ensure_future(toolkit.call("saw") if is_by_name else last(by_itself))
        await asked.wait()
        toolkit.quarantine("saw", REASON)
        answer.set()

        assert_refused(await call)
        toolkit.accept("saw")


async def last(stream: Any) -> ToolResponse:
    responses: list[ToolResponse] = [response async for response in stream]
    return responses[-1]


async def test_a_pending_call_is_not_resumed_in_quarantine() -> None:
    toolkit = Toolkit()

    @toolkit.tool(permission="confirm")
    async def saw() -> str:
        """Saw."""
        raise AssertionError("a quarantined tool ran")

    metadata = (await toolkit.call("saw")).metadata or {}
    pending = metadata["pending"]
    toolkit.quarantine("saw", REASON)

    response = await last(toolkit.resume(pending, "once"))

    assert_refused(response)


async def test_a_running_call_goes_on() -> None:
    toolkit = Toolkit()
    started, end = asyncio.Event(), asyncio.Event()

    @toolkit.tool
    async def saw() -> str:
        """Saw."""
        started.set()
        await end.wait()
        return "sawn"

    call = asyncio.ensure_future(toolkit.call("saw"))
    await started.wait()
    toolkit.quarantine("saw", REASON)
    end.set()

    assert (await call).text == "sawn"


def test_a_view_without_the_tool_does_not_learn_of_its_quarantine() -> None:
    toolkit = workshop()
    toolkit.quarantine("saw", REASON)

    response = toolkit.view(names=["drill"]).run("saw")

    assert response.code == "tool_not_available"


def test_switching_groups_does_not_end_a_quarantine() -> None:
    toolkit = workshop()
    toolkit.quarantine("drill", REASON)

    toolkit.update_tool_groups("metal", active=False)
    toolkit.update_tool_groups("metal", active=True)
    toolkit.register_group("wood", tools=["drill"])

    assert toolkit.run("drill").code == "denied"
    assert toolkit.quarantined == {"drill": REASON}


def test_an_extended_tool_stays_in_quarantine() -> None:
    pydantic = pytest.importorskip("pydantic")
    toolkit = workshop()
    toolkit.quarantine("saw", REASON)

    toolkit.set_extended_model("saw", pydantic.create_model("More", why=(str, "")))

    assert_refused(toolkit.run("saw"))


def test_a_tool_that_is_registered_again_is_free() -> None:
    toolkit = workshop()
    toolkit.quarantine("saw", REASON)

    @toolkit.tool(namesake_strategy="override")
    def saw() -> str:
        """Saw."""
        return "the new saw"

    assert toolkit.run("saw").text == "the new saw"
    assert toolkit.quarantined == {}


def test_the_name_of_a_quarantined_tool_is_not_suggested() -> None:
    toolkit = workshop()
    toolkit.quarantine("saw", REASON)

    assert "Did you mean" not in toolkit.run("saww").text


def test_a_new_reason_replaces_the_old_one_and_may_be_empty() -> None:
    toolkit = workshop()
    toolkit.quarantine("saw", REASON)

    toolkit.quarantine("saw")

    assert toolkit.quarantined == {"saw": ""}
    assert toolkit.run("saw").text == "Error: The tool 'saw' is quarantined and did not run"


def test_a_middleware_cannot_reach_a_quarantined_tool() -> None:
    toolkit = workshop()
    toolkit.quarantine("saw", REASON)

    @toolkit.register_middleware
    async def through(kwargs: dict[str, Any], next_handler: Any) -> Any:
        async for response in await next_handler(**kwargs):
            yield response

    assert_refused(toolkit.run("saw"))


def test_mistakes_raise() -> None:
    toolkit = workshop()

    with pytest.raises(UnknownToolError):
        toolkit.quarantine("hammer")
    with pytest.raises(UnknownToolError):
        toolkit.accept("hammer")
    with pytest.raises(ValueError, match="`saw` is not quarantined"):
        toolkit.accept("saw")
    with pytest.raises(TypeError, match="name must be"):
        toolkit.quarantine(1)  # type: ignore[arg-type]
