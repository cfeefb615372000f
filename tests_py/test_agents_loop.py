"""The ready-made loop of sub-agents: turns, `complete_task`, limits, the recovery turn, bad models."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from support.agents import Script, call, done, finder, run_agent
from support.streams import block, read
from support.waiting import turns
from toolcrib import AgentLimits, AgentOutput, ToolCall, Toolkit
from toolcrib.agent import AgentBudget, ModelReply, agent_loop

NUMBER = AgentOutput("report", "The number of birds.", {"type": "integer"})


async def count(kind: str) -> int:
    """Count birds."""
    return len(kind)


async def test_a_run_calls_tools_until_the_task_is_completed() -> None:
    response, events, script = await run_agent(
        finder(output=NUMBER),
        ModelReply("I count.", [call("count", kind="wren")], ["**Counting** all of them"], 30),
        ModelReply("", [done(report=4)], tokens=12),
        tools=(count,),
    )

    assert response.text == "Subagent 'finder' finished.\nTermination Reason: GOAL\nResult:\n4"
    assert response.metadata is not None
    assert response.metadata["value"] == 4
    assert response.metadata["display"] == "4"
    assert response.metadata["agent"] == {
        "name": "finder",
        "termination": "GOAL",
        "recovered": False,
        "turns": 2,
        "tokens": 42,
        "path": ["finder"],
    }
    assert events == [
        ("START", {"text": "Running subagent 'finder' with inputs: { task: birds }"}),
        ("THOUGHT_CHUNK", {"text": "Counting"}),
        ("TOOL_CALL_START", {"name": "count", "args": {"kind": "wren"}}),
        ("TOOL_CALL_END", {"name": "count", "output": "4"}),
    ]
    assert script.schemas == [["count", "complete_task"]] * 2


async def test_the_model_gets_the_messages_so_far() -> None:
    _, _, script = await run_agent(
        finder(initial_messages=[{"role": "user", "content": "Hello ${task}"}]),
        [call("count", kind="wren")],
        [done()],
        tools=(count,),
    )

    assert script.messages[1] == [
        {"role": "system", "content": "Find it."},
        {"role": "user", "content": "Hello birds"},
        {"role": "user", "content": "birds"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_1_1", "type": "function", "function": {"name": "count", "arguments": '{"kind": "wren"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_1_1", "content": "4"},
    ]


FUNCTION = {
    "id": "1",
    "type": "function",
    "function": {"name": "complete_task", "arguments": '{"result": "two"}'},
}


@pytest.mark.parametrize(
    "reply",
    [
        {"calls": [done(result="two")]},
        {"role": "assistant", "content": [{**block("complete_task", result="two")}]},
        {"choices": [{"message": {"role": "assistant", "tool_calls": [FUNCTION]}}]},
        '<tool_call>{"name": "complete_task", "arguments": {"result": "two"}}</tool_call>',
        ModelReply(calls=[ToolCall("complete_task", {"result": "two"})]),
    ],
    ids=["dict", "anthropic", "openai", "text", "reply"],
)
async def test_a_model_function_returns_any_kind_of_reply(reply: Any) -> None:
    response, _, _ = await run_agent(finder(), reply)

    assert response.text.endswith("Result:\ntwo")


async def test_the_text_of_the_last_turn_is_the_result_of_a_run_without_one() -> None:
    said, _, _ = await run_agent(finder(), ModelReply("Two birds.", [done()]))
    silent, _, _ = await run_agent(finder(), [done()])

    assert said.text.endswith("Result:\nTwo birds.")
    assert silent.text.endswith("Result:\nTask completed successfully.")


async def test_calls_of_one_turn_run_side_by_side() -> None:
    started: list[str] = []
    both = asyncio.Event()

    async def wait(name: str) -> str:
        started.append(name)
        if len(started) == 2:
            both.set()
        await both.wait()
        return name

    response, _, script = await run_agent(
        finder(), [call("wait", name="a"), call("wait", name="b")], [done()], tools=(wait,)
    )

    assert response.ok
    assert script.seen[-2:] == ["a", "b"]


# complete_task


async def test_the_first_valid_completion_of_a_turn_wins() -> None:
    response, events, script = await run_agent(
        finder(output=NUMBER), [done(report="many"), done(report="5"), done(report=6)]
    )

    assert response.metadata is not None
    assert response.metadata["value"] == 5
    assert [data["context"] for kind, data in events if kind == "ERROR"] == ["tool_call"]
    assert script.replies == []


async def test_an_output_that_does_not_fit_goes_back_to_the_model() -> None:
    response, _, script = await run_agent(
        finder(output=NUMBER), [done(report="many")], [done()], [done(report=1), done(report=2)]
    )

    assert response.metadata is not None
    assert response.metadata["value"] == 1
    contents = script.seen
    assert "Output validation failed: report: expected an integer, got " in contents[-3]
    assert contents[-1] == "Missing required argument 'report' for completion."


async def test_other_tools_run_beside_a_completion() -> None:
    ran = []

    async def note(text: str) -> str:
        ran.append(text)
        return text

    response, _, _ = await run_agent(finder(), [done(result="x"), call("note", text="y")], tools=(note,))

    assert (response.ok, ran) == (True, ["y"])


class Report(BaseModel):
    birds: int
    names: list[str] = []


async def test_an_output_is_processed_to_text() -> None:
    def write(report: Report) -> str:
        return f"{report.birds} birds: {', '.join(report.names)}"

    output = AgentOutput("report", "The birds.", Report, write)

    response, _, _ = await run_agent(finder(output=output), [done(report={"birds": 1, "names": ["wren"]})])
    plain, _, _ = await run_agent(finder(output=AgentOutput("r", "", Report)), [done(r={"birds": 1})])

    assert response.text.endswith("Result:\n1 birds: wren")
    assert plain.text.endswith('Result:\n{\n  "birds": 1\n}')


async def test_a_tool_outside_of_its_tools_is_refused_to_the_model() -> None:
    response, events, script = await run_agent(
        finder(tools=["count"]), [call("remove", path="/"), call("count", kind="x")], [done()], tools=(count,)
    )

    text = "Unauthorized tool call: 'remove' is not available to this agent."
    assert script.seen[-2:] == [text, "1"]
    assert ("ERROR", {"error": text, "context": "tool_call_unauthorized", "name": "remove"}) in events
    assert response.ok


async def test_a_tool_that_fails_is_reported_and_the_run_goes_on() -> None:
    async def fail() -> None:
        raise OSError("no disk")

    response, events, script = await run_agent(finder(), [call("fail")], [done()], tools=(fail,))

    assert script.seen[-1] == "OSError: no disk"
    assert ("ERROR", {"error": "OSError: no disk", "context": "tool_call", "name": "fail"}) in events
    assert response.ok


# Limits and the recovery turn


async def endless_turn() -> list[Any]:
    return [call("count", kind="x")]


def contexts(events: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [data["context"] for kind, data in events if kind == "ERROR"]


async def test_a_run_over_its_turns_is_recovered_and_stays_interrupted() -> None:
    response, events, script = await run_agent(
        finder(limits=AgentLimits(turns=2)), endless_turn, endless_turn, [done(result="one")], tools=(count,)
    )

    assert response.ok
    assert response.metadata is not None
    assert response.metadata["agent"]["termination"] == "MAX_TURNS"
    assert response.metadata["agent"]["recovered"] is True
    assert "Termination Reason: MAX_TURNS (interrupted: the result was given in a recovery turn" in response.text
    assert response.text.endswith("Result:\none")
    assert contexts(events) == ["max_turns"]
    assert script.schemas[-1] == ["complete_task"]
    assert script.seen[-1].startswith("You have used all of your turns. This is your last turn")


async def test_no_other_tool_runs_in_the_recovery_turn() -> None:
    counted: list[str] = []

    async def count(kind: str) -> str:
        counted.append(kind)
        return "two"

    response, events, _ = await run_agent(
        finder(limits=AgentLimits(turns=1)),
        endless_turn,
        [call("count", kind="more"), done(result="one")],
        tools=(count,),
    )

    assert counted == ["x"]
    assert response.ok
    assert contexts(events) == ["max_turns", "tool_call_unauthorized"]


async def test_a_run_that_is_not_recovered_has_the_code_of_its_limit() -> None:
    response, events, _ = await run_agent(
        finder(limits=AgentLimits(turns=1)), endless_turn, ModelReply("I give up."), tools=(count,)
    )

    assert response.code == "limit_exceeded"
    assert response.text.endswith("Termination Reason: MAX_TURNS\nResult:\nAgent reached max turns limit (1).")
    assert contexts(events) == ["max_turns", "recovery_turn"]


async def test_a_model_that_stops_without_completing_is_recovered_or_fails() -> None:
    recovered, events, _ = await run_agent(finder(), ModelReply("Two birds."), [done(result="two")])
    failed, _, _ = await run_agent(finder(), ModelReply("Two birds."), ValueError("no more"))

    assert recovered.metadata is not None
    assert recovered.metadata["agent"]["termination"] == "ERROR_NO_COMPLETE_TASK_CALL"
    assert (recovered.ok, contexts(events)) == (True, ["protocol_violation"])
    assert failed.code == "failed"
    assert failed.text.endswith("Result:\nAgent execution was terminated before completion.")


async def test_a_model_that_never_ends_is_stopped_at_the_time_limit() -> None:
    ended = []

    async def never() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    response, events, script = await run_agent(finder(limits=AgentLimits(time=0.03)), never, [done(result="x")])

    assert (response.ok, ended, contexts(events)) == (True, [True], ["timeout"])
    assert response.metadata is not None
    assert response.metadata["agent"]["termination"] == "TIMEOUT"
    assert script.seen[-1].startswith("Your time is up.")


async def test_a_recovery_turn_that_never_ends_is_stopped_too() -> None:
    async def never() -> None:
        await asyncio.sleep(60)

    kit = Toolkit()
    definition = finder(limits=AgentLimits(time=0.02))
    kit.register_agent(definition, run=agent_loop(definition, Script(never, never), grace=0.02))

    response = await kit.call("finder", task="birds")

    assert response.code == "timeout"


async def test_a_call_that_was_interrupted_is_answered_for_the_provider() -> None:
    async def sleep() -> None:
        await asyncio.sleep(60)

    response, _, script = await run_agent(
        finder(limits=AgentLimits(time=0.03)), [call("sleep")], [done()], tools=(sleep,)
    )

    assert response.ok
    assert [message["role"] for message in script.messages[-1]][-3:] == ["assistant", "tool", "user"]
    assert script.seen[-2] == "The call was interrupted."


async def test_tokens_are_limited() -> None:
    response, _, _ = await run_agent(
        finder(limits=AgentLimits(tokens=100)), ModelReply("", [call("count", kind="x")], tokens=101), tools=(count,)
    )

    assert response.code == "limit_exceeded"
    assert response.text.endswith("Termination Reason: MAX_TOKENS\nResult:\nAgent reached max tokens limit (100).")


async def test_the_budget_of_the_tree_ends_a_run() -> None:
    kit = Toolkit(run_in="inline")
    kit.register_tool_function(count)
    kit.register_agent(finder(), model=Script(endless_turn, endless_turn), budget=AgentBudget(turns=1))

    response = await kit.call("finder", task="birds")

    assert response.code == "limit_exceeded"
    assert response.text.endswith("The total budget of 1 turns for this agent and its sub-agents is used up.")


async def test_an_approver_that_cancels_aborts_the_run() -> None:
    kit = Toolkit(run_in="inline", approver=lambda request: "cancel")
    kit.register_tool_function(count, permission="confirm")
    kit.register_agent(finder(), model=Script(endless_turn))

    response = await kit.call("finder", task="birds")

    assert response.code == "cancelled"
    assert "Termination Reason: ABORTED" in response.text


# Bad models


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (ConnectionError("no model"), "no model"),
        (42, "invalid reply: expected a ModelReply, a text or a provider's message, got int"),
        (None, "got NoneType"),
        ({"nonsense": 1}, "got dict"),
        ({"text": "x", "cals": []}, "the model function returned a reply with the unknown key `cals`"),
        ({"calls": "x"}, "the model function returned a reply with an invalid `calls`: expected a list, got str"),
        ({"text": 5}, "the model function returned a reply with an invalid `text`: expected str, got int"),
        (ModelReply(tokens=-1), "negative `tokens`"),
        (ModelReply(thoughts=[5]), "a thought that is not text"),  # type: ignore[list-item]
        (ModelReply(calls=[5]), "the model function returned a reply with an invalid call: "),
    ],
)
async def test_a_model_that_fails_fails_its_run(reply: Any, error: str) -> None:
    response, events, _ = await run_agent(finder(), reply)

    assert response.code == "failed"
    assert response.text.startswith("Subagent 'finder' failed. Error: ")
    assert error in response.text
    assert contexts(events) == ["model"]


async def test_a_call_that_cannot_be_read_goes_back_to_the_model() -> None:
    response, _, script = await run_agent(
        finder(), [{"name": "count", "arguments": [1]}, call("count")], [done()], tools=(count,)
    )

    assert response.ok
    assert script.seen[-2].startswith("Error: Invalid tool call: ")
    assert "expected a string, got nothing" in script.seen[-1]


async def test_missing_template_values_fail_the_run() -> None:
    kit = Toolkit()
    kit.register_agent(finder(system_prompt="Find ${nothing}."), model=Script([done()]))

    response = await kit.call("finder", task="birds")

    assert response.code == "failed"
    assert response.text == (
        "Subagent 'finder' failed. Error: Template validation failed: Missing required input parameters: nothing. "
        "Available inputs: task"
    )


async def test_the_events_of_agents_below_come_through() -> None:
    kit = Toolkit(run_in="inline")
    kit.register_tool_function(count)
    kit.register_agent(finder("inner"), model=Script(ModelReply("", [done(result="4")], ["**Inside**"])))
    kit.register_agent(finder("outer", tools=["inner"]), model=Script([call("inner", task="x")], [done()]))

    responses = await read(kit.call_tool_function(block("outer", task="birds")))

    events = [
        response.metadata["activity"] for response in responses if response.mode == "progress" and response.metadata
    ]
    assert [event["path"] for event in events if event["type"] == "THOUGHT_CHUNK"] == [["outer", "inner"]]
    assert responses[-1].ok


async def test_cancelling_a_run_leaves_nothing_behind() -> None:
    running: list[str] = []
    never = asyncio.Event()

    async def hold(name: str) -> None:
        running.append(name)
        try:
            await never.wait()
        finally:
            running.remove(name)

    kit = Toolkit(run_in="inline")
    kit.register_tool_function(hold)
    kit.register_agent(finder(), model=Script([call("hold", name="a"), call("hold", name="b")]))
    task = asyncio.ensure_future(kit.call("finder", task="birds"))
    while len(running) < 2:
        await turns(1)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert running == []
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_the_model_of_a_definition_is_used() -> None:
    seen = []

    async def model(messages: Any, schemas: Any, *, model: str) -> Any:
        seen.append(model)
        return [done()][0] and ModelReply(calls=[done()])

    kit = Toolkit()
    kit.register_agent(finder(model="bird-1"), model=model)
    kit.register_agent(finder("own", model=Script([done(result="x")])))

    assert (await kit.call("finder", task="birds")).ok
    assert (await kit.call("own", task="birds")).ok
    assert seen == ["bird-1"]
