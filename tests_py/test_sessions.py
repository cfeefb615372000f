"""Sessions: one conversation over a shared toolkit, whose switches, counters and state no other conversation sees."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import threading
import weakref
from typing import TYPE_CHECKING, Any

import pytest

import toolcrib
from support.streams import block, last, read
from support.toolkits import named_tool
from toolcrib import Limits, Role, Roles, Session, Toolkit, ToolkitView, ToolResponse, errors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


def service(**options: Any) -> Toolkit:
    """Make `look` in `basic`, `search` and `fetch` in `web`, `query` in `data`; both groups are off."""
    toolkit = Toolkit(run_in="inline", **options)
    toolkit.register_tool_function(named_tool("look"))
    toolkit.register_group("web", "The web.", [named_tool("search"), named_tool("fetch")], active=False, notes="Cite.")
    toolkit.register_group("data", "Numbers.", [named_tool("query")], active=False, notes="Round.")
    toolkit.register_tool_function(toolkit.reset_equipped_tools)
    return toolkit


def listed(view: ToolkitView) -> list[str]:
    names = [schema["function"]["name"] for schema in view.get_json_schemas()]
    assert names == list(view.tools)
    assert json.loads(view.get_json_schemas_bytes()) == view.get_json_schemas()
    assert all(name in view for name in names)
    return names


def test_a_session_is_a_view_of_the_whole_toolkit() -> None:
    toolkit = service()

    session = toolkit.session(id="s1", caller="ann")

    assert isinstance(session, Session)
    assert isinstance(session, ToolkitView)
    assert (session.id, session.caller, session.toolkit, session.deps) == ("s1", "ann", toolkit, None)
    assert listed(session) == ["look", "reset_equipped_tools"]
    assert session.run("look").text == "look"
    assert repr(session) == 'Session(id="s1", caller="ann")'


def test_an_id_is_random_unless_it_is_given() -> None:
    toolkit = Toolkit()

    ids = {toolkit.session().id for _ in range(100)}

    assert len(ids) == 100
    with pytest.raises(ValueError, match="id must be a text that is not empty"):
        toolkit.session(id="")


async def test_the_meta_tool_switches_its_own_session_only() -> None:
    toolkit = service()
    ann, bob = toolkit.session(), toolkit.session()

    answer = await last(ann.call_tool_function(block("reset_equipped_tools", web=True)))

    assert answer.ok
    assert "Cite." in answer.text
    assert listed(ann) == ["look", "search", "fetch", "reset_equipped_tools"]
    assert listed(bob) == ["look", "reset_equipped_tools"]
    assert [group.active for group in toolkit.groups.values()] == [False, False]
    assert (await ann.call("search")).text == "search"
    assert (await bob.call("search")).code == "inactive_group"
    assert (await toolkit.call("search")).code == "inactive_group"
    assert (ann.get_activated_notes(), bob.get_activated_notes()) == ("## About Tool Group 'web'\nCite.", "")


async def test_two_sessions_choose_their_tools_at_the_same_time() -> None:
    toolkit = service()

    async def converse(group: str, tool: str) -> list[str]:
        session = toolkit.session()
        seen = []
        for _ in range(50):
            await session.call("reset_equipped_tools", **{group: True})
            await asyncio.sleep(0)
            seen.append((await session.call(tool)).text)
            await session.call("reset_equipped_tools")
            await asyncio.sleep(0)
            seen.append(str((await session.call(tool)).code))
        return seen

    web, data = await asyncio.gather(converse("web", "search"), converse("data", "query"))

    assert web == ["search", "inactive_group"] * 50
    assert data == ["query", "inactive_group"] * 50


def test_groups_are_switched_through_methods_and_attributes() -> None:
    toolkit = service()
    session, other = toolkit.session(), toolkit.session()

    session.update_tool_groups(["web", "nowhere"], True)
    session.groups["data"].active = True

    assert [session.groups[name].active for name in ("web", "data")] == [True, True]
    assert [other.groups[name].active for name in ("web", "data")] == [False, False]
    assert not toolkit.groups["web"].active
    session.update_tool_groups(["web"], False)
    assert listed(session) == ["look", "query", "reset_equipped_tools"]
    with pytest.raises(TypeError, match="group_names must be a list of strings, not str"):
        session.update_tool_groups("web", True)


def test_basic_is_always_active(caplog: pytest.LogCaptureFixture) -> None:
    session = service().session()

    with caplog.at_level(logging.WARNING, "toolcrib"):
        session.update_tool_groups(["basic"], False)

    assert "the 'basic' tool group is always active" in caplog.text
    assert listed(session) == ["look", "reset_equipped_tools"]


def test_a_switch_of_the_toolkit_reaches_sessions_without_a_switch_of_their_own() -> None:
    toolkit = service()
    session = toolkit.session()
    session.update_tool_groups(["web"], False)

    toolkit.update_tool_groups(["web", "data"], True)

    assert listed(session) == ["look", "query", "reset_equipped_tools"]


def test_a_session_selects_as_a_view_does() -> None:
    toolkit = service()
    toolkit.update_tool_groups(["web", "data"], True)
    roles = Roles()
    roles.add(Role("clerk", "", ["data"]))

    assert listed(toolkit.session(groups=["web"])) == ["search", "fetch"]
    assert listed(toolkit.session(names=["query", "look"])) == ["look", "query"]
    assert listed(toolkit.view(groups=["web"]).session(exclude=["fetch"])) == ["search"]
    assert listed(toolkit.session(role="clerk", roles=roles)) == ["query"]
    assert listed(toolkit.session(role=Role("clerk", "", ["web"]), names=["fetch"])) == ["fetch"]
    assert listed(toolkit.view(groups=["web"]).session(role="clerk", roles=roles)) == []
    assert listed(toolkit.session(role=None)) == [], "a caller without a role sees nothing"
    assert listed(toolkit.session(role="stranger", roles=roles)) == []


def test_the_caller_is_that_of_the_view_or_the_role() -> None:
    toolkit, roles = service(), Roles()
    roles.add(Role("clerk", "", ["data"]))

    assert toolkit.session(role="clerk", roles=roles).caller == "clerk"
    assert toolkit.session(role="clerk", roles=roles, caller="ann").caller == "ann"
    assert toolkit.view(caller="ann").session(role="clerk", roles=roles).caller == "ann"
    assert toolkit.session(caller="ann").view(groups=["web"]).caller == "ann"


def test_a_session_follows_its_role() -> None:
    toolkit, roles = service(), Roles()
    roles.add(Role("clerk", "", ["data"]))
    session = toolkit.session(role="clerk", roles=roles)
    session.update_tool_groups(["web", "data"], True)

    assert listed(session) == ["query"]
    roles.update("clerk", tool_groups=["web"])

    assert listed(session) == [], "web was not among its groups when it was switched"
    session.update_tool_groups(["web"], True)
    assert listed(session) == ["search", "fetch"]


async def test_a_narrowed_view_stays_in_the_session() -> None:
    toolkit = service()
    session = toolkit.session(limits=Limits(calls=2))
    narrow = session.view(groups=["web"])

    narrow.reset_equipped_tools(web=True)

    assert type(narrow) is ToolkitView
    assert listed(narrow) == ["search", "fetch"]
    assert listed(session) == ["look", "search", "fetch", "reset_equipped_tools"]
    assert [(await narrow.call("search")).code for _ in range(3)] == [None, None, "limit_exceeded"]
    assert (await session.call("look")).code == "limit_exceeded"


def test_a_session_of_a_session_is_a_conversation_of_its_own() -> None:
    outer = service().session(groups=["web", "basic"], limits=Limits(calls=0))
    outer.update_tool_groups(["web"], True)

    inner = outer.session()

    assert inner.id != outer.id
    assert listed(inner) == ["look", "reset_equipped_tools"]
    assert (inner.run("look").code, inner.run("query").code) == (None, "tool_not_available")


class Overriding(Toolkit):
    def reset_equipped_tools(self, **kwargs: Any) -> ToolResponse:
        return super().reset_equipped_tools(**kwargs)


def test_a_meta_tool_that_a_subclass_overrides_is_hidden() -> None:
    toolkit = Overriding(run_in="inline")
    toolkit.create_tool_group("web", "The web.")
    toolkit.register_tool_function(toolkit.reset_equipped_tools)

    session = toolkit.session()

    assert listed(session) == [], "it would switch the groups of every session"
    assert session.run("reset_equipped_tools", web=True).code == "tool_not_available"
    assert not toolkit.groups["web"].active


def test_dialects_and_instructions_follow_the_session() -> None:
    toolkit = service()
    session, other = toolkit.session(), toolkit.session()
    session.update_tool_groups(["data"], True)

    for dialect in ("openai", "anthropic", "gemini", "mcp"):
        assert "query" in json.dumps(session.schemas(dialect))
        assert "query" not in json.dumps(other.schemas(dialect)).replace('"data"', "")
    assert "### query" in session.instructions()
    assert "### query" not in other.instructions()


def test_the_listing_of_a_session_is_never_stale() -> None:
    toolkit = service()
    session = toolkit.session()
    assert session.get_json_schemas_bytes() is toolkit.get_json_schemas_bytes(), "it is shared while it is the same"

    for names, active in [(["web"], True), (["data"], True), (["web"], False)]:
        session.update_tool_groups(names, active)
        listed(session)
    toolkit.register_tool_function(named_tool("later"))

    assert "later" in listed(session)


async def test_a_tool_of_a_session_is_called_in_it() -> None:
    session = service().session(limits=Limits(calls=1))
    tool = session.tools["look"]

    codes = [(await last(tool.call(arguments={}))).code for _ in range(2)]

    assert codes == [None, "limit_exceeded"]
    assert session.usage.calls == 1


async def test_middlewares_and_background_calls_stay_in_the_session() -> None:
    toolkit = service()
    toolkit.register_tool_function(named_tool("slow"), async_execution=True)
    seen = []

    async def around(keywords: dict[str, Any], following: Any) -> AsyncIterator[ToolResponse]:
        seen.append(keywords["tool_call"]["name"])
        async for response in await following(**keywords):
            yield response

    toolkit.register_middleware(around)
    session = toolkit.session(limits=Limits(calls=2))
    session.update_tool_groups(["web"], True)

    codes = [(await last(session.call_tool_function(block(name)))).code for name in ("search", "slow", "look")]
    await toolkit.aclose()

    assert (codes, seen) == ([None, None, "limit_exceeded"], ["search", "slow", "look"])


def test_sessions_are_used_from_many_threads() -> None:
    toolkit = service()
    problems: list[str] = []

    def converse(group: str, tool: str) -> None:
        session = toolkit.session()
        for _ in range(100):
            session.update_tool_groups([group], True)
            problems.extend([tool] if tool not in session or session.run(tool).code else [])
            session.update_tool_groups([group], False)
            problems.extend([tool] if tool in session else [])

    threads = [threading.Thread(target=converse, args=pair) for pair in [("web", "search"), ("data", "query")] * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert problems == []


def test_many_sessions_copy_no_tools() -> None:
    toolkit = Toolkit()
    for number in range(1000):
        toolkit.register_tool_function(named_tool(f"tool_{number}"))
    gc.collect()
    tools = sum(1 for kept in gc.get_objects() if type(kept).__name__ == "RegisteredToolFunction")

    sessions = [toolkit.session(caller="ann") for _ in range(10_000)]
    texts = {id(session.get_json_schemas_bytes()) for session in sessions}

    assert sum(1 for kept in gc.get_objects() if type(kept).__name__ == "RegisteredToolFunction") == tools
    assert len(texts) == 1, "they share the text of the toolkit"


class Deps:
    """Refers to the session that it belongs to."""

    session: Any = None


def test_a_session_that_its_dependencies_refer_to_is_collected() -> None:
    toolkit = service()
    session = toolkit.session(deps=Deps())
    session.deps.session = session
    session.state["of"] = session
    narrow = session.view(names=["look"])
    session.state["narrow"] = narrow
    reference, kept = weakref.ref(session), weakref.ref(session.deps)
    del session, narrow

    gc.collect()

    assert (reference(), kept()) == (None, None)


def test_a_narrowed_view_keeps_its_session() -> None:
    session = service().session(deps=Deps())
    reference = weakref.ref(session)
    narrow = session.view(names=["look"])
    del session

    gc.collect()

    assert reference() is not None
    assert narrow.run("look").ok


def test_neither_class_can_be_made_by_hand() -> None:
    for kind in (Session, ToolkitView):
        with pytest.raises(TypeError):
            kind()  # type: ignore[abstract]

    class Mine(ToolkitView):
        pass

    with pytest.raises(TypeError):
        Mine()
    with pytest.raises(TypeError):
        object.__new__(Mine)


def test_session_is_generic_in_annotations() -> None:
    assert Session[int].__origin__ is Session


# Limits and counters.


def failing() -> tuple[Toolkit, list[Exception | None]]:
    """Make a toolkit whose tool `flaky` raises the exceptions of a list, one a call."""
    toolkit = Toolkit(run_in="inline")
    outcomes: list[Exception | None] = []

    @toolkit.tool
    async def flaky(number: int = 1) -> str:
        outcome = outcomes.pop(0) if outcomes else None
        if outcome is not None:
            raise outcome
        return "done"

    @toolkit.tool
    async def other() -> str:
        return "other"

    return toolkit, outcomes


async def test_calls_over_the_limit_are_answered_and_do_not_run() -> None:
    toolkit, _ = failing()
    session = toolkit.session(limits=Limits(calls=2))

    responses = [await session.call("other") for _ in range(4)]

    assert [response.code for response in responses] == [None, None, "limit_exceeded", "limit_exceeded"]
    assert responses[-1].text == (
        "Error: The limit of 2 tool calls is reached. Do not call any more tools: answer with what you have."
    )
    assert (await toolkit.call("other")).ok, "the limit is the session's"
    session.end_run()
    assert (await session.call("other")).ok
    assert (session.usage.calls, session.usage.total_calls) == (1, 3)


async def test_calls_at_the_same_time_do_not_pass_the_limit() -> None:
    toolkit, running = Toolkit(), []

    @toolkit.tool
    async def wait() -> str:
        running.append(1)
        await asyncio.sleep(0)
        return "done"

    session = toolkit.session(limits=Limits(calls=5))

    responses = await asyncio.gather(*(session.call("wait") for _ in range(20)))

    assert (len(running), sum(response.ok for response in responses)) == (5, 5)


async def test_calls_that_are_not_admitted_are_not_counted() -> None:
    toolkit = service()
    session = toolkit.session(groups=["basic", "web"], limits=Limits(calls=1))

    codes = [(await session.call(name)).code for name in ("nowhere", "query", "search", "look", "look")]

    assert codes == ["tool_not_available", "tool_not_available", "inactive_group", None, "limit_exceeded"]


async def test_tokens_that_are_used_up_end_the_run() -> None:
    toolkit, _ = failing()
    session = toolkit.session(limits=Limits(tokens=100))

    session.add_tokens(99)
    first = await session.call("other")
    session.add_tokens(1)
    second = await session.call("other")

    assert (first.code, second.code) == (None, "limit_exceeded")
    assert second.text.startswith("Error: The limit of 100 tokens is used up.")
    session.end_run()
    assert (session.usage.tokens, session.usage.total_tokens) == (0, 100)
    assert (await session.call("other")).ok


async def test_a_tool_may_be_retried_as_often_as_the_limit_says() -> None:
    toolkit, outcomes = failing()
    session = toolkit.session(limits=Limits(retries=1))
    outcomes += [KeyError("k"), None, KeyError("k"), KeyError("k")]

    responses = [await session.call("flaky") for _ in range(5)]

    assert [response.code for response in responses] == ["failed", None, "failed", "failed", "limit_exceeded"]
    refusal = (
        "The tool 'flaky' failed 2 times in a row and may not be called again: use another tool, or answer without it."
    )
    assert responses[3].content[-1]["text"] == refusal  # type: ignore[typeddict-item]
    assert responses[4].text == f"Error: {refusal}"
    assert session.usage.failures == {"flaky": 2}
    assert (await session.call("other")).ok
    session.end_run()
    assert (await session.call("flaky")).ok


async def test_wrong_arguments_and_timeouts_are_failures_too() -> None:
    toolkit = Toolkit()

    @toolkit.tool(timeout=0.01)
    async def wait(seconds: int) -> None:
        await asyncio.sleep(seconds)

    session = toolkit.session(limits=Limits(retries=1))

    codes = [(await last(session.call_tool_function(block("wait", seconds=it)))).code for it in ("long", 60, 0)]

    assert codes == ["invalid_arguments", "timeout", "limit_exceeded"]


async def test_a_generator_fails_with_its_last_response() -> None:
    toolkit = Toolkit()

    @toolkit.tool
    async def numbers() -> AsyncIterator[str]:
        yield "1"
        raise ValueError("no more")

    session = toolkit.session(limits=Limits(retries=0))

    first = await read(session.call_tool_function(block("numbers")))

    assert [response.code for response in first] == [None, "failed"]
    assert "may not be called again" in first[-1].text
    assert (await session.call("numbers")).code == "limit_exceeded"


async def test_exceptions_that_are_raised_are_failures() -> None:
    toolkit = Toolkit(errors="raise")

    @toolkit.tool
    async def fail() -> None:
        raise ValueError("no")

    session = toolkit.session(limits=Limits(retries=0))

    with pytest.raises(ValueError, match="no"):
        await session.call("fail")

    assert (await session.call("fail")).code == "limit_exceeded"


async def test_denied_and_cancelled_calls_are_no_failures() -> None:
    toolkit = Toolkit(headless=True)

    @toolkit.tool(permission="confirm")
    async def pay() -> None: ...

    @toolkit.tool
    async def wait() -> None:
        await asyncio.sleep(60)

    session = toolkit.session(limits=Limits(retries=0))

    assert (await session.call("pay")).code == "denied"
    task = asyncio.ensure_future(read(session.call_tool_function(block("wait"))))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert session.usage.failures == {}


async def test_failures_in_the_background_are_counted() -> None:
    toolkit = Toolkit()

    @toolkit.tool(async_execution=True)
    async def fail() -> None:
        raise ValueError("no")

    session = toolkit.session(limits=Limits(retries=0))

    started = await session.call("fail")
    assert started.metadata is not None
    await toolkit.view_task(started.metadata["task_id"])
    await asyncio.sleep(0.01)

    assert session.usage.failures == {"fail": 1}


def test_a_check_says_that_a_limit_is_reached_and_counts_nothing() -> None:
    toolkit, _ = failing()
    session = toolkit.session(limits=Limits(calls=1))

    before = session.check(block("other"))
    session.run("other")
    after = session.check(block("other"))

    assert (before["would"], after["would"], after["code"]) == ("run", "refuse", "limit_exceeded")
    assert session.usage.calls == 1


def test_limits_are_values() -> None:
    limits = Limits(calls=3, tokens=7)

    assert (limits.calls, limits.retries, limits.tokens) == (3, None, 7)
    assert limits == Limits(tokens=7, calls=3) != Limits(calls=3)
    assert len({limits, Limits(calls=3, tokens=7)}) == 1
    assert repr(limits) == "Limits(calls=3, tokens=7)"


@pytest.mark.parametrize("name", ["calls", "retries", "tokens"])
def test_a_limit_is_a_number_that_is_not_negative(name: str) -> None:
    for wrong, kind in [(True, TypeError), ("3", TypeError), (1.5, TypeError), (-1, ValueError), (2**64, ValueError)]:
        with pytest.raises(kind, match=f"{name} must be"):
            Limits(**{name: wrong})  # type: ignore[arg-type]


def test_limits_can_be_changed_while_counters_stay() -> None:
    toolkit, _ = failing()
    session = toolkit.session(limits=Limits(calls=1))
    session.run("other")

    session.limits = Limits(calls=2)

    assert session.run("other").ok
    assert session.run("other").code == "limit_exceeded"
    session.limits = None
    assert session.limits == Limits()
    assert session.run("other").ok
    with pytest.raises(ValueError, match="count must be from 0"):
        session.add_tokens(-1)


# Saving.


def used_session(toolkit: Toolkit) -> Session[None]:
    session = toolkit.session(id="chat-7", caller="ann", limits=Limits(calls=5))
    session.update_tool_groups(["web"], True)
    session.run("look")
    session.end_run()
    session.run("search")
    session.add_tokens(12)
    session.state["topic"] = {"birds": [1, 2.5, None, True, "é"]}
    return session


def test_the_state_of_a_session_is_plain_data() -> None:
    session = used_session(service())

    state = session.state_dict()

    assert (
        json.loads(json.dumps(state))
        == state
        == {
            "id": "chat-7",
            "caller": "ann",
            "groups": {"web": True},
            "usage": {"calls": 1, "tokens": 12, "total_calls": 2, "total_tokens": 12, "failures": {}},
            "state": {"topic": {"birds": [1, 2.5, None, True, "é"]}},
        }
    )


def test_a_session_goes_on_in_another_process(tmp_path: Path) -> None:
    used_session(service()).save(tmp_path / "chat-7.json")
    toolkit, deps = service(), Deps()

    session = toolkit.load_session(tmp_path / "chat-7.json", deps=deps, limits=Limits(calls=2))

    assert (session.id, session.caller, session.deps) == ("chat-7", "ann", deps)
    assert session.state == {"topic": {"birds": [1, 2.5, None, True, "é"]}}
    assert listed(session) == ["look", "search", "fetch", "reset_equipped_tools"]
    assert [group.active for group in toolkit.groups.values()] == [False, False]
    assert [session.run("look").code for _ in range(2)] == [None, "limit_exceeded"]
    assert (session.usage.calls, session.usage.total_calls) == (2, 3)


def test_a_state_is_loaded_into_its_own_session_only() -> None:
    toolkit = service()
    state = used_session(toolkit).state_dict()

    again = toolkit.session(id="chat-7", caller="ann")
    again.state["before"] = 1
    again.load_state_dict(state)

    assert again.state_dict() == state
    for other in (toolkit.session(id="chat-8", caller="ann"), toolkit.session(id="chat-7", caller="bob")):
        with pytest.raises(errors.InvalidStateError, match="the state is that of"):
            other.load_state_dict(state)
        assert (other.state, other.usage.total_calls, listed(other)) == ({}, 0, ["look", "reset_equipped_tools"])


def test_a_view_with_a_caller_continues_its_own_sessions_only(tmp_path: Path) -> None:
    toolkit = service()
    used_session(toolkit).save(tmp_path / "s.json")

    assert toolkit.view(caller="ann", names=["look"]).load_session(tmp_path / "s.json").caller == "ann"
    with pytest.raises(errors.InvalidStateError, match="that of caller `ann`, not of caller `eve`"):
        toolkit.view(caller="eve").load_session(tmp_path / "s.json")


def test_a_state_that_is_not_json_is_refused(tmp_path: Path) -> None:
    session = service().session(id="s1")
    session.state["lock"] = threading.Lock()

    with pytest.raises(errors.InvalidStateError, match="invalid state of session `s1`: expected JSON values only"):
        session.save(tmp_path / "s.json")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda text: text[: len(text) // 2], errors.DamagedFileError),
        (lambda text: text.replace('"ann"', '"eve"'), errors.DamagedFileError),
        (lambda text: text.replace("toolcrib-session", "toolcrib-state"), errors.ForeignFileError),
        (lambda text: text.replace('"version": 1', '"version": 9'), errors.NewerFileError),
        (lambda text: "", errors.DamagedFileError),
    ],
)
def test_a_file_that_is_not_whole_is_refused(change: Any, error: type[Exception], tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    used_session(service()).save(path)
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")

    with pytest.raises(error):
        service().load_session(path)


def test_a_missing_file_and_that_of_a_toolkit_are_refused(tmp_path: Path) -> None:
    toolkit = service()
    toolkit.save(tmp_path / "toolkit.json")

    with pytest.raises(errors.MissingFileError):
        toolkit.load_session(tmp_path / "nothing.json")
    with pytest.raises(errors.ForeignFileError):
        toolkit.load_session(tmp_path / "toolkit.json")


def test_the_state_of_the_toolkit_is_as_before() -> None:
    toolkit = service()
    used_session(toolkit)

    assert toolkit.state_dict() == {"active_groups": []}


def test_the_names_are_public() -> None:
    assert {"Limits", "Session", "Usage"} <= set(toolcrib.__all__)
