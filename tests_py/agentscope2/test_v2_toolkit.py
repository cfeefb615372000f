"""`Toolkit` in place of AgentScope's: its surface, tools that are not toolcrib's, and changes while agents use it."""

import asyncio
import copy
import logging
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import agentscope
import pytest
from agentscope.agent import Agent
from agentscope.event import ExternalExecutionResultEvent, RequireExternalExecutionEvent
from agentscope.exception import DeveloperOrientedException, ToolGroupInactiveError, ToolNotFoundError
from agentscope.message import TextBlock, ToolCallBlock, ToolResultBlock, ToolResultState
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.state import AgentState
from agentscope.tool import FunctionTool, ToolBase, ToolChunk, ToolGroup, ToolResponse
from agentscope.tool import Toolkit as AgentScopeToolkit
from pydantic import BaseModel

import toolcrib
from support.agentscope2.scene import DESIGNS, Design, Scene, crib, settled, text_of, theirs, with_crib
from support.agentscope2.scripted import ScriptedModel, ask, say
from toolcrib.compat import agentscope2
from toolcrib.compat.agentscope2 import Toolkit, install, tools, uninstall


async def ping(word: str = "pong") -> str:
    """Ping."""
    return word


def block(name: str, input: str = "{}", id: str = "c1") -> ToolCallBlock:
    return ToolCallBlock(id=id, name=name, input=input)


async def everything(toolkit: Any, call: ToolCallBlock, state: AgentState | None = None) -> list[Any]:
    return [item async for item in toolkit.call_tool(call, state or AgentState())]


class External(ToolBase):  # type: ignore[misc]
    """A tool without a body."""

    name = "paint"
    description = "Paint a wall."
    input_schema = {"type": "object", "properties": {"colour": {"type": "string"}}}
    is_concurrency_safe = True
    is_read_only = True
    is_external_tool = True

    async def check_permissions(self, *_: Any) -> PermissionDecision:
        return PermissionDecision(behavior=PermissionBehavior.ALLOW, message="")


class Injected(ToolBase):  # type: ignore[misc]
    """A tool that takes the state."""

    name = "whoami"
    description = "Say the session."
    input_schema = {"type": "object", "properties": {}}
    is_concurrency_safe = False
    is_read_only = True
    is_state_injected = True

    async def check_permissions(self, *_: Any) -> PermissionDecision:
        return PermissionDecision(behavior=PermissionBehavior.ALLOW, message="")

    async def call(self, _agent_state: AgentState) -> ToolChunk:
        return ToolChunk(content=[TextBlock(text=f"{len(_agent_state.context)} messages")])


def test_it_is_a_toolkit_of_agentscope_and_always_true() -> None:
    toolkit = Toolkit()

    assert isinstance(toolkit, AgentScopeToolkit)
    assert toolkit
    assert toolkit.builtin_meta_tool.tool.name == "reset_tools"
    assert toolkit.builtin_skill_viewer.tool.name == "Skill"
    assert not hasattr(toolkit, "tools")
    assert agentscope2.FunctionTool is FunctionTool


def test_mistakes_of_the_constructor_are_those_of_agentscope() -> None:
    for make in (AgentScopeToolkit, Toolkit):
        with pytest.raises(ValueError, match="The 'basic' tool group is reserved"):
            make(tool_groups=[ToolGroup("basic")])
        with pytest.raises(ValueError, match="duplicate tool groups"):
            make(tool_groups=[ToolGroup("a", "A"), ToolGroup("a", "A")])


async def test_no_group_is_active_where_none_is_named() -> None:
    groups = [ToolGroup("more", "More.", tools=[FunctionTool(ping)])]
    nothing: Any = None

    for make in (AgentScopeToolkit, Toolkit):
        toolkit = make(tool_groups=groups)
        with pytest.raises(ToolGroupInactiveError):
            await toolkit.check_tool_available("ping", nothing)


async def test_warnings_are_those_of_agentscope(caplog: pytest.LogCaptureFixture) -> None:
    class Unreachable:
        name, is_stateful, is_connected = "far", False, False

        async def list_tools(self) -> list[ToolBase]:
            raise ConnectionError("no route")

    logger = logging.getLogger("as")
    logger.addHandler(caplog.handler)
    messages = []
    try:
        for make in (AgentScopeToolkit, Toolkit):
            caplog.clear()
            await make(tools=[FunctionTool(ping), FunctionTool(ping)], mcps=[Unreachable()]).get_tool_schemas()
            messages.append([(record.name, record.getMessage()) for record in caplog.records])
    finally:
        logger.removeHandler(caplog.handler)

    assert messages[1] == messages[0]
    assert len(set(messages[1])) == 2


async def test_a_result_that_is_not_a_chunk_is_the_mistake_that_agentscope_reports() -> None:
    class Wrong(Injected):
        async def call(self, _agent_state: AgentState) -> Any:
            return "text"

    mistakes = []

    for make in (AgentScopeToolkit, Toolkit):
        with pytest.raises(DeveloperOrientedException) as mistake:
            await everything(make(tools=[Wrong()]), block("whoami"))
        mistakes.append(str(mistake.value))

    assert mistakes[1] == mistakes[0]


async def test_foreign_tools_work_as_in_agentscope() -> None:
    async def stream(limit: int) -> AsyncIterator[str]:
        """Stream."""
        for number in range(limit):
            yield str(number)

    def fail() -> str:
        """Fail."""
        raise KeyError("k")

    transcripts = []
    for make in (AgentScopeToolkit, Toolkit):
        toolkit = make(
            tools=[FunctionTool(ping), FunctionTool(stream), FunctionTool(fail), Injected()],
            tool_groups=[ToolGroup("more", "More.", tools=[FunctionTool(ping, name="pong")])],
        )
        model = ScriptedModel(
            ask(("ping", {}), ("stream", {"limit": 3}), ("fail", {}), ("pong", {})),
            ask(("whoami", {}), ("reset_tools", {"more": True})),
            ask(("pong", {"word": "x"})),
            say("done"),
        )
        scene = Scene(toolkit, model)
        await scene.send()
        transcripts.append(scene.transcript())

    assert transcripts[1] == transcripts[0]


async def test_external_tools_work_as_in_agentscope() -> None:
    transcripts = []

    for make in (AgentScopeToolkit, Toolkit):
        scene = Scene(make(tools=[External()]), ScriptedModel(ask(("paint", {"colour": "red"})), say("done")))
        events = await scene.send()
        (asked,) = [it for it in events if isinstance(it, RequireExternalExecutionEvent)]
        result = ToolResultBlock(
            id=asked.tool_calls[0].id, name="paint", output="painted", state=ToolResultState.SUCCESS
        )
        await scene.send(ExternalExecutionResultEvent(reply_id=asked.reply_id, execution_results=[result]))
        transcripts.append(scene.transcript())

    assert transcripts[1] == transcripts[0]
    assert "painted" in str(transcripts[1])


async def test_skills_work_as_in_agentscope(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("---\nname: cooking\ndescription: Cook eggs.\n---\nBoil them.\n")
    transcripts = []

    for make in (AgentScopeToolkit, Toolkit):
        toolkit = make(skills_or_loaders=[str(tmp_path)])
        scene = Scene(toolkit, ScriptedModel(ask(("Skill", {"skill": "cooking"})), say("done")))
        await scene.send()
        transcripts.append({**scene.transcript(), "prompt": await toolkit.get_skill_instructions()})

    assert transcripts[1] == transcripts[0]
    assert "Boil them." in str(transcripts[1])


async def test_a_developer_exception_passes() -> None:
    async def misuse() -> str:
        """Raise."""
        raise DeveloperOrientedException("not like this")

    seen = []
    for toolkit in (theirs([misuse]), with_crib("A", crib([misuse])), with_crib("B", crib([misuse]))):
        given: list[Any] = []

        async def read(toolkit: Any = toolkit, given: list[Any] = given) -> None:
            async for item in toolkit.call_tool(block("misuse"), AgentState()):
                given.append(settled(item))

        with pytest.raises(DeveloperOrientedException):
            await read()
        seen.append(given)

    assert seen[0] == seen[1] == seen[2]


async def test_structured_output_comes_and_goes() -> None:
    class Answer(BaseModel):
        number: int

    kit = crib([ping])
    scene = Scene(
        Toolkit(toolkit=kit),
        ScriptedModel(ask(("GenerateStructuredOutput", {"number": 4})), say("4"), say("bye")),
    )

    await scene.send("a number", structured_schema=Answer)
    await scene.send("thanks")

    names = [[tool["function"]["name"] for tool in shown["tools"]] for shown in scene.model.shown]
    assert names[0] == ["ping", "GenerateStructuredOutput"]
    assert names[-1] == ["ping"]
    assert scene.states() == ["success"]


async def test_registrations_are_seen_at_once() -> None:
    kit = toolcrib.Toolkit()
    toolkit = Toolkit(toolkit=kit)
    state = AgentState()

    async def names(groups: list[str] | None = None) -> list[str]:
        return [schema["function"]["name"] for schema in await toolkit.get_tool_schemas(groups)]

    assert await names() == []
    toolkit.register_tool_function(ping)
    assert await names() == ["ping"]
    toolkit.create_tool_group("more", "More.", notes="Care.")

    @toolkit.tool(group_name="more", name="pang")
    async def decorated() -> str:
        """Pang."""
        return "pang!"

    assert await names(["more"]) == ["reset_tools", "ping", "pang"]
    assert [group.name for group in toolkit.tool_groups] == ["basic", "more"]
    assert [tool.name for tool in toolkit.tool_groups[1].tools] == ["pang"]
    assert toolkit.tool_groups[1].instructions == "Care."
    with pytest.raises(ToolGroupInactiveError):
        await toolkit.check_tool_available("pang", [])
    await toolkit.add_tool(FunctionTool(ping, name="peng"), "more")
    await toolkit.remove_tool(["ping", "nothing"])
    assert await names(["more"]) == ["reset_tools", "pang", "peng"]
    with pytest.raises(ToolNotFoundError):
        await toolkit.check_tool_available("ping", ["more"])
    assert await toolkit.get_tool("ping") is None
    toolkit.register_tool_function(ping)
    assert text_of((await everything(toolkit, block("ping"), state))[-1]) == "pong"
    kit.remove_tool_groups("more")
    assert await names(["more"]) == ["reset_tools", "ping", "peng"]
    toolkit.clear()
    assert await names(["more"]) == []


async def test_a_tool_that_is_registered_again_is_the_new_one() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(ping)
    before = await toolkit.get_tool("ping")

    async def other(number: int) -> str:
        """Another one."""
        return str(number)

    toolkit.register_tool_function(other, name="ping", namesake_strategy="override")

    after = await toolkit.get_tool("ping")
    assert before is not None
    assert after is not None
    assert after.input_schema != before.input_schema
    assert text_of((await everything(toolkit, block("ping", '{"number": 7}')))[-1]) == "7"


@pytest.mark.parametrize("design", DESIGNS)
async def test_a_tool_that_was_removed_answers_that_it_is_gone(design: Design) -> None:
    kit = crib([ping])
    toolkit = with_crib(design, kit)
    await toolkit.get_tool_schemas()
    kit.remove_tool_function("ping")

    response = (await everything(toolkit, block("ping")))[-1]

    assert response.state == ToolResultState.ERROR
    assert "ping" in text_of(response)


async def test_a_foreign_tool_takes_the_place_of_a_namesake() -> None:
    toolkit = Toolkit(toolkit=crib([ping]))

    await toolkit.add_tool(FunctionTool(ping, description="Mine."))

    (schema,) = await toolkit.get_tool_schemas()
    assert schema["function"]["description"] == "Mine."
    assert "ping" not in toolkit.toolkit.tools


async def test_the_tools_of_a_view_stay_when_they_are_removed_here() -> None:
    async def pong() -> str:
        """Pong."""
        return "ping"

    kit = crib([ping, pong])
    toolkit = Toolkit(toolkit=kit.view(caller="ann"))
    await toolkit.get_tool_schemas()

    await toolkit.remove_tool("ping")

    assert [schema["function"]["name"] for schema in await toolkit.get_tool_schemas()] == ["pong"]
    assert [tool.name for tool in toolkit.tool_groups[0].tools] == ["pong"]
    assert text_of((await everything(toolkit, block("pong")))[-1]) == "ping"
    assert "ping" in kit.tools
    with pytest.raises(TypeError, match="register them with its toolkit"):
        toolkit.register_tool_function(ping)


async def test_schemas_are_copies_and_lists_of_groups_are_live() -> None:
    toolkit = Toolkit(toolkit=crib([ping]))
    first = await toolkit.get_tool_schemas()
    first[0]["function"]["parameters"].clear()

    toolkit.tool_groups[0].tools.append(FunctionTool(ping, name="appended"))

    names = [schema["function"]["name"] for schema in await toolkit.get_tool_schemas()]
    assert names == ["ping", "appended"]
    assert (await toolkit.get_tool_schemas())[0]["function"]["parameters"]
    assert text_of((await everything(toolkit, block("appended")))[-1]) == "pong"


async def test_a_deep_copy_has_tools_of_its_own() -> None:
    kit = crib([ping], {"more": []})
    toolkit = Toolkit(tools=[FunctionTool(ping, name="pong")], toolkit=kit)

    copied = copy.deepcopy(toolkit)

    assert await copied.get_tool_schemas(["more"]) == await toolkit.get_tool_schemas(["more"])
    await copied.remove_tool(["ping", "pong"])
    assert [tool.name for tool in toolkit.tool_groups[0].tools] == ["pong", "ping"]
    assert text_of((await everything(toolkit, block("ping")))[-1]) == "pong"
    assert [tool.name for tool in copied.tool_groups[0].tools] == []


@pytest.mark.parametrize("design", DESIGNS)
async def test_a_deep_copy_with_the_tools_of_a_view_calls_them(design: Design) -> None:
    kit = crib([ping])
    toolkit = with_crib(design, kit.view(caller="ann"))

    copied = copy.deepcopy(toolkit)

    assert text_of((await everything(copied, block("ping")))[-1]) == "pong"


async def test_calls_have_the_id_and_the_session() -> None:
    kit = crib([ping])
    seen = []
    kit.subscribe("call_end", lambda event: seen.append((event.call_id, event.session)))
    toolkit = Toolkit(toolkit=kit)
    state = AgentState(session_id="chat-7")

    response = (await everything(toolkit, block("ping", id="call-9"), state))[-1]

    assert seen == [("call-9", "chat-7")]
    assert isinstance(response, ToolResponse)
    assert response.id == "call-9"


async def test_a_session_of_toolcrib_is_the_session_of_the_calls() -> None:
    kit = crib([ping], {"web": []})
    session = kit.session(id="mine", caller="ann")
    seen = []
    kit.subscribe("call_end", lambda event: seen.append((event.caller, event.session)))

    await everything(Toolkit(toolkit=session), block("ping"))

    assert seen == [("ann", "mine")]
    assert session.usage.calls == 1


async def test_a_stream_that_is_closed_early_closes_the_tool() -> None:
    closed = []

    async def stream() -> AsyncIterator[str]:
        """Stream."""
        try:
            while True:
                yield "more"
                await asyncio.sleep(0)
        finally:
            closed.append(True)

    for toolkit in (Toolkit(toolkit=crib([stream])), Toolkit(tools=[FunctionTool(stream)])):
        call = toolkit.call_tool(block("stream"), AgentState())
        assert text_of(await anext(call)) == "more"
        await call.aclose()

    # AgentScope's adapter does not close the function's generator itself: it is finalised by the event loop.
    for _ in range(5):
        await asyncio.sleep(0)
    assert closed == [True, True]


async def test_functions_take_the_state_of_the_agent() -> None:
    toolkit = Toolkit()

    @toolkit.tool
    def count(word: str, _agent_state: AgentState) -> str:
        """Count the messages."""
        return f"{word}: {_agent_state.session_id}"

    (schema,) = await toolkit.get_tool_schemas()
    states = [AgentState(session_id=id) for id in ("one", "two")]
    calls = [toolkit.call_tool(block("count", '{"word": "s"}'), state) for state in states]
    texts = []
    for call in calls:
        texts.append([text_of(item) async for item in call][-1])

    assert list(schema["function"]["parameters"]["properties"]) == ["word"]
    assert texts == ["s: one", "s: two"]


class Counter:
    """Count the messages."""

    async def __call__(self, word: str, _agent_state: AgentState) -> str:
        return f"{word}: {_agent_state.session_id}"

    def method(self, word: str, _agent_state: AgentState) -> str:
        """Count the messages."""
        return f"{word}: {_agent_state.session_id}"


def count_twice(word: str, times: int, _agent_state: AgentState) -> str:
    """Count the messages."""
    return f"{word}: {_agent_state.session_id}"


@pytest.mark.parametrize(
    ("function", "name"),
    [(Counter(), "Counter"), (Counter().method, "method"), (partial(count_twice, times=2), "count_twice")],
)
async def test_callables_of_any_kind_take_the_state_of_the_agent(function: Any, name: str) -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(function)

    items = await everything(toolkit, block(name, '{"word": "s"}'), AgentState(session_id="one"))

    (schema,) = await toolkit.get_tool_schemas()
    assert schema["function"]["description"] == "Count the messages."
    assert list(schema["function"]["parameters"]["properties"]) == ["word"]
    assert text_of(items[-1]) == "s: one"


async def test_a_state_that_is_bound_stays() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(partial(count_twice, times=2, _agent_state=AgentState(session_id="bound")))

    items = await everything(toolkit, block("count_twice", '{"word": "s"}'), AgentState(session_id="one"))

    assert text_of(items[-1]) == "s: bound"


async def test_a_schema_without_properties_does_not_hide_the_others() -> None:
    kit = crib([ping])
    for name, schema in {
        "bare": {"type": "object"},
        "referring": {"$ref": "#/$defs/P", "$defs": {"P": {"type": "object", "properties": {"a": {"type": "string"}}}}},
    }.items():
        described = {"type": "function", "function": {"name": name, "parameters": schema}}
        kit.register_tool_function(lambda **kwargs: "ok", name=name, json_schema=described)

    for design in DESIGNS:
        toolkit = with_crib(design, kit)
        schemas = {it["function"]["name"]: it["function"]["parameters"] for it in await toolkit.get_tool_schemas()}
        assert list(schemas) == ["ping", "bare", "referring"]
        assert schemas["bare"]["properties"] == {}
        assert schemas["referring"]["properties"] == {"a": {"type": "string"}}


def test_install_reaches_the_loaded_modules_and_uninstall_takes_it_back() -> None:
    original = AgentScopeToolkit
    replaced = install()
    try:
        assert "agentscope.tool" in replaced
        assert agentscope.tool.Toolkit is Toolkit
        agent = Agent("Friday", "Help.", ScriptedModel())
        assert type(agent.toolkit) is Toolkit
        assert install() == []
    finally:
        assert uninstall() == replaced
    assert agentscope.tool.Toolkit is original
    assert not any(
        value is Toolkit
        for name, module in sys.modules.items()
        if name.startswith("agentscope")
        for value in vars(module).values()
    )


def test_other_names_are_those_of_agentscope() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = agentscope2.nonsense
    assert [tool.name for tool in tools(toolcrib.Toolkit(tools=[ping]))] == ["ping"]
