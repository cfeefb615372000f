"""`toolcrib.compat.gemini`: agents as data, and the wrapper that makes tools of them."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from support.agents import Script, call, done
from support.gemini import CASES, ReadFileTool
from toolcrib import Toolkit
from toolcrib.agent import ModelReply
from toolcrib.compat.gemini import (
    AgentDefinition,
    AgentRegistry,
    CancelSignal,
    Config,
    Kind,
    MessageBus,
    PolicyEngine,
    SubagentToolWrapper,
    convert_input_config_to_json_schema,
)
from toolcrib.errors import AgentDefinitionError, AgentTemplateError

INVESTIGATOR = {
    "name": "codebase_investigator",
    "displayName": "Codebase Investigator",
    "description": "Finds files.",
    "inputConfig": {
        "inputs": {
            "objective": {"description": "Investigation goal", "type": "string", "required": True},
            "max_files": {"description": "Maximum files to analyze", "type": "integer", "required": False},
        }
    },
    "promptConfig": {"systemPrompt": "You find files.", "query": "Find ${objective}"},
    "toolConfig": {"tools": ["read_file"]},
}


def wrapper_of(definition: Any = INVESTIGATOR, **options: Any) -> SubagentToolWrapper:
    config = Config(**options)
    config.get_tool_registry().register_tool(ReadFileTool())
    return SubagentToolWrapper(definition, config)


def changed(**fields: Any) -> dict[str, Any]:
    return {**INVESTIGATOR, **fields}


@pytest.mark.parametrize("case", CASES["schema"])
def test_inputs_become_the_schemas_of_the_cases(case: dict[str, Any]) -> None:
    if "throws" in case:
        with pytest.raises(AgentDefinitionError) as raised:
            convert_input_config_to_json_schema({"inputs": case["inputs"]})
        assert str(raised.value) == case["throws"]
    else:
        assert convert_input_config_to_json_schema({"inputs": case["inputs"]}) == {"required": [], **case["result"]}


def test_an_unknown_type_is_a_string_where_that_is_asked_for() -> None:
    inputs = {"day": {"type": "date", "description": "A day.", "required": True}}

    schema = convert_input_config_to_json_schema({"inputs": inputs}, lenient=True)
    tool = wrapper_of(changed(inputConfig={"inputs": inputs}, lenient=True), run=len)

    assert schema["properties"] == {"day": {"type": "string", "description": "A day."}}
    assert tool.parameter_schema == schema


def test_a_missing_type_is_a_string_where_that_is_asked_for() -> None:
    config = {"inputs": {"day": {"description": "A day."}}}

    schema = convert_input_config_to_json_schema(config, lenient=True)

    assert schema["properties"] == {"day": {"type": "string", "description": "A day."}}
    with pytest.raises(ValueError, match="input `day`: missing `type`"):
        convert_input_config_to_json_schema(config)


@pytest.mark.parametrize("name", ["type", "properties", "inputs", "required"])
def test_an_input_may_have_any_name(name: str) -> None:
    schema = convert_input_config_to_json_schema({"inputs": {name: {"type": "string", "required": True}}})

    assert (list(schema["properties"]), schema["required"]) == ([name], [name])


def test_an_input_is_required_only_if_it_says_so() -> None:
    schema = convert_input_config_to_json_schema({"inputs": {"a": {"type": "string", "description": "d"}}})

    assert schema == {"type": "object", "properties": {"a": {"type": "string", "description": "d"}}, "required": []}


def test_inputs_may_be_a_json_schema() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    assert convert_input_config_to_json_schema({"inputSchema": schema}) == schema


@pytest.mark.parametrize("case", CASES["template"], ids=lambda case: case["template"])
def test_prompts_are_filled_as_in_the_cases(case: dict[str, Any]) -> None:
    agent = AgentDefinition("a", "d", prompt_config={"query": case["template"]}).to_toolcrib()

    if "throws" in case:
        with pytest.raises(AgentTemplateError) as raised:
            agent.render(case["inputs"])
        assert str(raised.value) == case["throws"]
    else:
        assert agent.render(case["inputs"]).query == case["result"]


def test_a_definition_has_the_defaults_of_the_original() -> None:
    agent = AgentDefinition("a", "d").to_toolcrib()

    assert (agent.display_name, agent.query) == ("a", "Get Started!")
    assert (agent.limits.turns, agent.limits.time) == (30, 600.0)
    assert agent.parameters == {"type": "object", "properties": {}, "required": []}


def test_the_configurations_reach_the_agent() -> None:
    agent = AgentDefinition(
        "a",
        "d",
        prompt_config={"initialMessages": [{"role": "model", "parts": [{"text": "Hi "}, {"text": "${x}"}]}]},
        model_config={"model": "big"},
        run_config={"max_time_minutes": 2, "max_turns": 3},
        output_config={"outputName": "report", "description": "The report.", "schema": {"type": "string"}},
        process_output=str.upper,
    ).to_toolcrib()

    assert agent.render({"x": 1}).initial_messages == [{"role": "assistant", "content": "Hi 1"}]
    assert (agent.model, agent.limits.turns, agent.limits.time) == ("big", 3, 120.0)
    assert agent.output is not None
    assert (agent.output.name, agent.output.process) == ("report", str.upper)


def test_a_registry_skips_what_has_no_name_or_description(caplog: pytest.LogCaptureFixture) -> None:
    agents = AgentRegistry()

    with caplog.at_level(logging.WARNING, "toolcrib"):
        agents.register_agent(AgentDefinition("", "d"))
        agents.register_agent({"name": "a", "description": ""})
        agents.register_agent({"name": "a", "description": "1"})
        agents.register_agent(AgentDefinition("b", "1"))
        agents.register_agent(AgentDefinition("a", "2"))

    assert len(caplog.records) == 2
    assert agents.get_all_definitions() == [AgentDefinition("a", "2"), AgentDefinition("b", "1")]
    assert agents.get_definition("b") == AgentDefinition("b", "1")
    assert agents.get_definition("c") is None


def test_a_wrapper_is_a_tool_that_thinks() -> None:
    tool = wrapper_of(run=len)

    assert (tool.name, tool.display_name, tool.kind) == ("codebase_investigator", "Codebase Investigator", Kind.THINK)
    assert (tool.is_output_markdown, tool.can_update_output) == (True, True)
    assert tool.schema == {
        "name": "codebase_investigator",
        "description": "Finds files.",
        "parametersJsonSchema": {
            "type": "object",
            "properties": {
                "objective": {"type": "string", "description": "Investigation goal"},
                "max_files": {"type": "integer", "description": "Maximum files to analyze"},
            },
            "required": ["objective"],
        },
    }


def test_a_run_is_described_with_its_inputs_shortened() -> None:
    tool = wrapper_of(run=len)

    short = tool.build({"objective": "auth", "max_files": 3}).get_description()
    long = tool.build({"objective": "x" * 300, "more": "y" * 300, "even_more": "z" * 300, "last": "w" * 300})

    assert short == "Running subagent 'codebase_investigator' with inputs: { objective: auth, max_files: 3 }"
    assert len(long.get_description()) == 200
    assert "x" * 50 + "," in long.get_description()


async def test_an_agent_runs_and_shows_its_thoughts_alone() -> None:
    async def run(inputs: Any, session: Any, emit: Any) -> str:
        emit("THOUGHT_CHUNK", text="Planning")
        emit("TOOL_CALL_START", name="x", args={})
        emit("THOUGHT_CHUNK", text="")
        return f"{inputs['objective']} {sorted(session.tools)}"

    shown: list[object] = []

    result = await wrapper_of(run=run).build({"objective": "auth"}).execute(CancelSignal(), shown.append)

    assert shown == ["Subagent starting...\n", "🤖💭 Planning"]
    assert result.llm_content == [{"text": "auth ['read_file']"}]
    assert (result.return_display, result.error) == ("auth ['read_file']", None)


async def test_the_ready_made_loop_runs_an_agent_with_its_tools() -> None:
    script = Script([call("read_file", path="a")], ModelReply(text="Found it.", calls=[done()]))
    tool = wrapper_of(model=script)

    result = await tool.build({"objective": "auth"}).execute(CancelSignal())

    assert script.schemas[0] == ["read_file", "complete_task"]
    assert "content of a" in script.seen[-1]
    assert "Find auth" in script.seen[1]
    assert result.llm_content == [
        {"text": "Subagent 'codebase_investigator' finished.\nTermination Reason: GOAL\nResult:\nFound it."}
    ]
    assert (result.return_display, result.error) == ("Found it.", None)


@pytest.mark.parametrize("case", CASES["thought"], ids=lambda case: case["text"])
async def test_the_subject_of_a_thought_is_shown(case: dict[str, Any]) -> None:
    shown: list[object] = []
    tool = wrapper_of(model=Script(ModelReply(thoughts=[case["text"]], calls=[done()])))

    await tool.build({"objective": "auth"}).execute(CancelSignal(), shown.append)

    expected = case["result"]["subject"] or case["result"]["description"]
    assert shown[1:] == ([f"🤖💭 {expected}"] if expected else [])


async def test_a_run_that_reaches_its_limit_is_reported_as_a_failure_with_the_reason() -> None:
    script = Script([call("read_file", path="a")], [call("read_file", path="b")])
    tool = wrapper_of(changed(runConfig={"max_turns": 1}), model=script)

    result = await tool.build({"objective": "auth"}).execute(CancelSignal())

    assert result.error is not None
    assert "Termination Reason: MAX_TURNS" in result.llm_content[0]["text"]
    assert result.return_display == "Agent reached max turns limit (1)."


async def test_any_error_of_an_agent_is_a_result() -> None:
    async def run(inputs: Any, session: Any, emit: Any) -> str:
        raise RuntimeError("boom")

    result = await wrapper_of(run=run).build({"objective": "auth"}).execute(CancelSignal())
    unready = await wrapper_of().build({"objective": "auth"}).execute(CancelSignal())

    assert result.llm_content == "Subagent 'codebase_investigator' failed. Error: boom"
    assert result.return_display == "Subagent Failed: codebase_investigator\nError: boom"
    assert result.error is not None
    assert (result.error.message, result.error.type) == ("boom", "execution_failed")
    assert unready.error is not None
    assert "expected either `run`, the loop, or `model`" in unready.error.message


async def test_a_signal_forgets_a_run_that_is_over() -> None:
    async def run(inputs: Any, session: Any, emit: Any) -> str:
        return "done"

    signal = CancelSignal()

    await wrapper_of(run=run).build({"objective": "auth"}).execute(signal)

    assert signal._callbacks == []


async def test_a_signal_ends_a_run() -> None:
    ended: list[str] = []

    async def run(inputs: Any, session: Any, emit: Any) -> str:
        emit("THOUGHT_CHUNK", text="here")
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("closed")
        return "never"

    signal = CancelSignal()
    invocation = wrapper_of(run=run).build({"objective": "auth"})

    result = await invocation.execute(signal, lambda text: signal.cancel() if "here" in str(text) else None)

    assert result.error is not None
    assert ended == ["closed"]


async def test_cancelling_the_task_ends_a_run() -> None:
    started = asyncio.Event()

    async def run(inputs: Any, session: Any, emit: Any) -> str:
        started.set()
        await asyncio.sleep(3600)
        return "never"

    task = asyncio.ensure_future(wrapper_of(run=run).build({"objective": "auth"}).execute(CancelSignal()))
    await started.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_agent_never_has_agents_or_unknown_tools() -> None:
    async def run(inputs: Any, session: Any, emit: Any) -> str:
        return str(sorted(session.tools))

    grep = ReadFileTool("grep")
    tools = ["read_file", "no_such_tool", "codebase_investigator", grep, {"name": "declared"}]
    config = Config(run=run, agents=[changed(toolConfig={"tools": tools})])
    registry = config.get_tool_registry()
    registry.register_tool(ReadFileTool())

    result = await registry.execute_tool_call({"name": "codebase_investigator", "args": {"objective": "x"}})

    assert result.llm_content == "['grep', 'read_file']"


async def test_the_policy_holds_inside_of_an_agent() -> None:
    async def run(inputs: Any, session: Any, emit: Any) -> str:
        return str((await session.call("read_file", path=inputs["objective"])).text)

    rules = [{"toolName": "codebase_investigator", "decision": "allow"}]
    engine = PolicyEngine({"rules": rules, "defaultDecision": "deny"})
    config = Config(run=run, agents=[INVESTIGATOR], policy_engine=engine)
    tool = ReadFileTool()
    registry = config.get_tool_registry()
    registry.register_tool(tool)

    result = await registry.execute_tool_call({"name": "codebase_investigator", "args": {"objective": "x"}})

    assert result.llm_content == 'Error: Tool execution for "Read File" denied by policy.'
    assert tool.ran == []


async def test_each_agent_has_rules_of_its_own() -> None:
    bus = MessageBus(PolicyEngine({"rules": [{"toolName": "one", "decision": "allow"}], "defaultDecision": "deny"}))
    config = Config(run=len)
    one, two = (SubagentToolWrapper(changed(name=name), config, bus) for name in ("one", "two"))

    assert await one.build({"objective": "x"}).should_confirm_execute() is False
    with pytest.raises(PermissionError):
        await two.build({"objective": "x"}).should_confirm_execute()


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["a", "b", "c"]),
        ({"allowed_tools": ["a", "c"]}, ["a", "c"]),
        ({"allowed_tools": []}, []),
        ({"exclude_tools": ["a"]}, ["b", "c"]),
        ({"allowed_tools": ["a", "b"], "exclude_tools": ["a"]}, ["b"]),
        ({"enable_subagents": False}, []),
    ],
)
def test_the_lists_decide_which_agents_become_tools(options: dict[str, Any], names: list[str]) -> None:
    config = Config(run=len, agents=[AgentDefinition(name, "d") for name in "abc"], **options)

    assert config.get_tool_registry().get_all_tool_names() == names
    assert len(config.get_agent_registry().get_all_definitions()) == 3


def test_the_standard_tools_are_registered_before_the_agents() -> None:
    tool = ReadFileTool()

    config = Config(run=len, tools=[tool], agents=[AgentDefinition("a", "d")], policy_engine=PolicyEngine())

    assert config.get_tool_registry().get_all_tool_names() == ["read_file", "a"]
    assert tool.message_bus is config.get_message_bus()


def test_a_configuration_tells_its_settings() -> None:
    config = Config(allowed_tools=["b", "a"], exclude_tools=["c"], policy_engine=PolicyEngine())
    bare = Config(enable_subagents=False)

    assert (config.get_allowed_tools(), config.get_exclude_tools()) == (["a", "b"], ["c"])
    assert (config.get_enable_subagents(), config.get_enable_message_bus_integration()) == (True, True)
    assert (bare.get_allowed_tools(), bare.get_exclude_tools()) == (None, [])
    assert (bare.get_enable_subagents(), bare.get_enable_message_bus_integration()) == (False, False)


def test_an_agent_that_cannot_be_wrapped_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    bad = AgentDefinition("bad", "d", input_config={"inputs": {"x": {"type": "date"}}})

    registry = Config(run=len, agents=[bad, AgentDefinition("good", "d")]).get_tool_registry()

    assert registry.get_all_tool_names() == ["good"]
    assert "Failed to wrap agent 'bad' as a tool: Unsupported input type 'date'" in caplog.text


async def test_a_model_function_is_given_the_settings_that_it_takes() -> None:
    seen: list[Any] = []

    async def model(messages: Any, schemas: Any, *, temperature: float, model: str) -> Any:
        seen.append((temperature, model))
        return ModelReply(calls=[done()])

    definition = changed(modelConfig={"model": "big", "temp": 0.1, "top_p": 0.9, "thinkingBudget": -1})

    await wrapper_of(definition, model=model).build({"objective": "x"}).execute(CancelSignal())

    assert seen == [(0.1, "big")]


async def test_a_wrapper_is_a_tool_of_a_toolkit() -> None:
    async def run(inputs: Any, session: Any, emit: Any) -> str:
        emit("THOUGHT_CHUNK", text="hm")
        return "found"

    toolkit = Toolkit(tools=[wrapper_of(run=run)])

    responses = [
        (response.mode, response.text)
        async for response in toolkit.call_tool_function({"name": "codebase_investigator", "args": {"objective": "x"}})
    ]

    assert responses == [("progress", "Subagent starting...\n"), ("progress", "🤖💭 hm"), ("result", "found")]
