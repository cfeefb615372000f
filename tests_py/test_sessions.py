"""Sessions: one conversation over a shared toolkit, whose switches, counters and state no other conversation sees."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import threading
import weakref
from typing import TYPE_CHECKING, Any, get_origin

import pytest

import toolcrib
from support.sessions import listed, service
from support.streams import block, last
from support.toolkits import named_tool
from toolcrib import Limits, Role, Roles, Session, Toolkit, ToolkitView, ToolResponse
from toolcrib.errors import UnknownGroupError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


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

    session.update_tool_groups(["web"], True)
    session.groups["data"].active = True

    assert [session.groups[name].active for name in ("web", "data")] == [True, True]
    assert [other.groups[name].active for name in ("web", "data")] == [False, False]
    assert not toolkit.groups["web"].active
    session.update_tool_groups(["web"], False)
    assert listed(session) == ["look", "query", "reset_equipped_tools"]
    session.update_tool_groups("data", False)
    assert not session.groups["data"].active
    with pytest.raises(UnknownGroupError, match="did you mean `web`"):
        session.update_tool_groups(["wbe"], True)


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
    with pytest.warns(UserWarning, match="unknown role `clrk`, the view shows nothing: did you mean `clerk`?"):
        assert listed(toolkit.session(role="clrk", roles=roles)) == []


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
            kind()

    class Mine(ToolkitView):
        pass

    with pytest.raises(TypeError):
        Mine()
    with pytest.raises(TypeError):
        object.__new__(Mine)


def test_session_is_generic_in_annotations() -> None:
    assert get_origin(Session[int]) is Session


def test_the_names_are_public() -> None:
    assert {"Limits", "Session", "Usage"} <= set(toolcrib.__all__)
