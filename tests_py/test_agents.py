"""Sub-agents with a loop of the user's own: sessions, tools, lineage, approvals, questions, deadlines, cancellation."""

from __future__ import annotations

import asyncio
import functools
import gc
import weakref
from collections.abc import AsyncIterator
from typing import Any

import pytest

from support import background
from support.agents import activities, finder
from support.loops import LoopFactory
from support.streams import block, read, texts
from support.waiting import turns, until
from toolcrib import AgentLimits, Limits, Question, ToolContext, Toolkit, ToolResponse
from toolcrib.agent import AgentBudget
from toolcrib.errors import UnknownGroupError
from toolcrib.policy import ApprovalRequest


async def echo(text: str) -> str:
    return text


async def start(inputs: Any, session: Any, emit: Any) -> str:
    return f"{inputs['task']}: {sorted(session.tools)}"


def kit_of(*tools: Any, **options: Any) -> Toolkit:
    kit = Toolkit(run_in="inline", **options)
    for tool in tools:
        kit.register_tool_function(tool)
    return kit


async def test_an_agent_is_a_tool_of_the_kind_think() -> None:
    kit = kit_of(echo)
    kit.register_agent(finder(), run=start)

    response = await kit.call("finder", task="birds")
    refused = await kit.call("finder", tsk="birds")

    assert response.text == "birds: ['echo']"
    assert kit.tools["finder"].kind == "think"
    assert kit.get_json_schemas()[1] == {
        "type": "function",
        "function": {
            "name": "finder",
            "parameters": finder().parameters,
            "description": "Finds things.",
        },
    }
    assert refused.code == "invalid_arguments"


async def test_a_loop_in_a_thread_that_stops_an_iteration_fails() -> None:
    def stop(inputs: Any, session: Any, emit: Any) -> str:
        raise StopIteration("over")

    kit = kit_of(echo)
    kit.register_agent(finder(), run=stop)

    response = await asyncio.wait_for(kit.call("finder", task="birds"), 20)

    assert response.code == "failed"
    assert "raised StopIteration" in response.text


class Loop:
    async def method(self, inputs: Any, session: Any, emit: Any) -> str:
        return f"found {inputs['task']}"

    async def __call__(self, inputs: Any, session: Any, emit: Any) -> str:
        return await self.method(inputs, session, emit)


class Called:
    """A class whose objects are called with the query, as those of AgentScope are called with a message."""

    def __init__(self, name: str, sys_prompt: str, toolkit: Any) -> None:
        self.known = (name, sys_prompt, list(toolkit.tools))

    async def __call__(self, query: str) -> str:
        return f"found {query}"


def blocking(inputs: Any, session: Any, emit: Any) -> str:
    assert session.run("echo", text="x").text == "x"  # possible, because it runs in a thread
    return f"found {inputs['task']}"


async def several(inputs: Any, session: Any, emit: Any, *, more: str = "") -> str:
    return f"found {inputs['task']}"


@pytest.mark.parametrize(
    "run",
    [Loop().method, Loop(), blocking, Called, functools.partial(several, more="x"), lambda *given: several(*given)],
    ids=["method", "object", "function", "class", "partial", "lambda"],
)
async def test_any_callable_is_a_loop(run: Any) -> None:
    kit = kit_of(echo)
    kit.register_agent(finder(), run=run)

    assert (await kit.call("finder", task="birds")).text == "found birds"


async def test_what_an_async_generator_yields_are_chunks() -> None:
    async def run(inputs: Any, session: Any, emit: Any) -> AsyncIterator[str]:
        yield "two "
        emit("half way")
        yield inputs["task"]

    kit = kit_of()
    kit.register_agent(finder(), run=run)

    responses = await read(kit.call_tool_function(block("finder", task="birds")))

    assert [response.text for response in responses if response.mode == "progress"] == ["half way"]
    assert responses[-1].text == "two birds"


async def test_events_are_progress_in_the_stream_of_the_call() -> None:
    async def run(inputs: Any, session: Any, emit: Any) -> str:
        emit("thought_chunk", text="Planning")
        emit("TOOL_CALL_START", name="echo", args={"text": "x", "raw": b"\x00"})
        emit("my own", text="shown", step=1)
        return "done"

    kit = kit_of()
    kit.register_agent(finder(), run=run)

    responses = await read(kit.call_tool_function(block("finder", task="birds")))

    assert [response.text for response in responses] == ["🤖💭 Planning", "🤖🔧 echo", "shown", "done"]
    assert activities(responses)[0] == ("THOUGHT_CHUNK", {"text": "Planning"})
    assert responses[2].metadata == {
        "activity": {"agent": "finder", "path": ["finder"], "type": "my own", "data": {"text": "shown", "step": 1}}
    }


async def test_an_exception_of_the_loop_is_answered() -> None:
    async def run(inputs: Any, session: Any, emit: Any) -> str:
        raise LookupError("no birds")

    kit = kit_of()
    kit.register_agent(finder(), run=run)

    response = await kit.call("finder", task="birds")

    assert (response.text, response.code) == ("Subagent 'finder' failed. Error: no birds", "failed")
    assert isinstance(response.exception, LookupError)


async def test_a_run_over_its_time_is_ended() -> None:
    ended = []

    async def run(inputs: Any, session: Any, emit: Any) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(inputs["task"])

    kit = kit_of()
    kit.register_agent(finder(limits=AgentLimits(time=0.03)), run=run)

    response = await kit.call("finder", task="birds")

    assert (response.text, response.code) == ("Agent timed out after 0 minutes.", "timeout")
    assert ended == ["birds"]


# The tools of an agent


def grouped(**options: Any) -> Toolkit:
    """`echo` in basic, `search` and `index` in web, which is off, and another agent in both."""
    kit = kit_of(echo, **options)
    kit.create_tool_group("web", "The web.")
    for name in ("search", "index"):
        kit.register_tool_function(echo, "web", name=name)
    kit.register_agent(finder("other"), run=start, groups=["web"])
    return kit


@pytest.mark.filterwarnings("ignore:unknown tool `unknown` of agent")
@pytest.mark.parametrize(
    ("options", "tools"),
    [
        ({}, ["echo"]),
        ({"tools": ["search"]}, ["search"]),
        ({"groups": ["web"]}, ["index", "search"]),
        ({"tools": ["echo", "other"], "groups": ["web"]}, ["echo", "index", "other", "search"]),
        ({"tools": ["unknown"]}, []),
    ],
    ids=["default", "names", "groups", "both", "unknown"],
)
async def test_an_agent_has_the_tools_that_it_names(options: Any, tools: list[str]) -> None:
    kit = grouped()
    kit.register_agent(finder(**options), run=start)

    response = await kit.call("finder", task="birds")

    assert response.text == f"birds: {tools}"
    assert kit.groups["web"].active is False


async def test_an_agent_has_the_tools_of_a_view() -> None:
    kit = grouped()
    kit.update_tool_groups(["web"], active=True)
    kit.register_agent(finder(view=kit.view(names=["search", "other"])), run=start)

    assert (await kit.call("finder", task="birds")).text == "birds: ['search']"
    with pytest.raises(ValueError, match="its view is that of another toolkit"):
        kit.register_agent(finder("x", view=Toolkit().view()), run=start)


async def test_an_agent_without_a_list_has_the_tools_of_its_caller() -> None:
    kit = grouped()
    kit.register_agent(finder(), run=start)
    session = kit.session(exclude=["index"])
    session.update_tool_groups(["web"], active=True)

    assert (await session.call("finder", task="birds")).text == "birds: ['echo', 'search']"
    assert (await kit.view(names=["finder"]).call("finder", task="birds")).text == "birds: []"


async def test_a_tool_outside_of_its_view_cannot_be_called() -> None:
    async def run(inputs: Any, session: Any, emit: Any) -> Any:
        return (await session.call("search", text="x")).code

    kit = grouped()
    kit.register_agent(finder(tools=["echo"]), run=run)

    assert (await kit.call("finder", task="birds")).text == "tool_not_available"


async def test_the_session_of_a_run_has_the_caller_and_the_dependencies_of_its_caller() -> None:
    seen: list[Any] = []

    async def look(context: ToolContext) -> str:
        seen.append((context.caller, context.deps, context.parent and context.parent.tool_name, context.session))
        return ""

    async def run(inputs: Any, session: Any, emit: Any) -> None:
        await session.call("look")
        seen.append((session.caller, session.id, session.path, emit.context is session.parent))

    kit = kit_of(look)
    kit.register_agent(finder(), run=run)
    outer = kit.session(id="chat", caller="ann", deps={"db": 1})

    await outer.call("finder", task="birds")

    assert seen[0][:3] == ("ann", {"db": 1}, "finder")
    assert seen[0][3] is not outer
    caller, id, path, is_parent = seen[1]
    assert (caller, path, is_parent) == ("ann", ("finder",), True)
    assert id.startswith("chat/finder-")


async def test_the_groups_that_a_run_switches_are_its_own() -> None:
    async def run(inputs: Any, session: Any, emit: Any) -> str:
        session.update_tool_groups(["web"], True)
        return str(sorted(session.tools))

    kit = grouped()
    kit.register_agent(finder(), run=run)
    session = kit.session()

    assert (await session.call("finder", task="birds")).text == "['echo', 'index', 'search']"
    assert (session.groups["web"].active, kit.groups["web"].active) == (False, False)


# Lineage and budget


def nested(*names: str, last: Any = start, **options: Any) -> Toolkit:
    """Agents that each call the next."""
    kit = kit_of(echo)

    def calling(name: str) -> Any:
        async def run(inputs: Any, session: Any, emit: Any) -> Any:
            return await session.call(name, **inputs)

        return run

    for name, following in zip(names, [*names[1:], None], strict=True):
        definition = finder(name, tools=[following] if following else ["echo"])
        kit.register_agent(definition, run=last if following is None else calling(following), **options)
    return kit


async def test_agents_call_each_other_with_a_path() -> None:
    async def leaf(inputs: Any, session: Any, emit: Any) -> str:
        emit("THOUGHT_CHUNK", text="deep")
        return f"{session.path} {emit.path} {emit.agent} {list(session.tools)}"

    kit = nested("one", "two", "three", last=leaf)

    response = await kit.call("one", task="birds")

    path = ("one", "two", "three")
    assert response.text == f"{path} {path} three ['echo']"


async def test_an_agent_is_not_called_by_itself() -> None:
    async def again(inputs: Any, session: Any, emit: Any) -> Any:
        return await session.call("one", **inputs)

    kit = nested("one", "two")
    kit.register_agent(finder("two", tools=["one"]), run=again, namesake_strategy="override")

    response = await kit.call("one", task="birds")

    assert response.code == "limit_exceeded"
    assert (
        response.text == "Error: The agent 'one' cannot be called by itself (one → two → one): do this part yourself."
    )


async def test_agents_call_each_other_to_a_limited_depth() -> None:
    response = await nested("one", "two", "three", depth=2).call("one", task="birds")

    assert response.code == "limit_exceeded"
    assert "at most 2 agents may call each other (one → two → three)" in response.text


async def test_all_agents_of_a_tree_share_a_budget() -> None:
    used = []

    async def leaf(inputs: Any, session: Any, emit: Any) -> Any:
        answers = [await session.call("echo", text="x") for _ in range(3)]
        session.add_tokens(10)
        used.append(emit.used)
        return answers[-1]

    kit = nested("one", "two", last=leaf, budget=AgentBudget(calls=3))
    session = kit.session(limits=Limits(tokens=100))

    response = await session.call("one", task="birds")

    assert response.code == "limit_exceeded"
    assert response.text.startswith(
        "Error: The total budget of 3 tool calls for this agent and its sub-agents is used up."
    )
    assert used == [{"turns": 0, "calls": 3, "tokens": 10}]
    assert (session.usage.tokens, session.usage.calls) == (10, 4), "the calls of agents count for the session, too"


@pytest.mark.parametrize("names", [("one",), ("one", "two"), ("one", "two", "three")])
async def test_the_limit_of_a_session_holds_for_all_agents_below_it(names: tuple[str, ...]) -> None:
    codes: list[str | None] = []

    async def leaf(inputs: Any, session: Any, emit: Any) -> str:
        codes.extend([(await session.call("echo", text="x")).code for _ in range(10)])
        return "done"

    session = nested(*names, last=leaf).session(limits=Limits(calls=5))

    await session.call("one", task="birds")

    ran = 5 - len(names)
    assert codes == [None] * ran + ["limit_exceeded"] * (10 - ran)
    assert session.usage.calls == 5
    assert (await session.call("echo", text="x")).code == "limit_exceeded"
    session.end_run()
    assert (await session.call("echo", text="x")).code is None


async def test_agents_that_run_at_the_same_time_share_the_limit_of_their_session() -> None:
    codes: list[str | None] = []

    async def leaf(inputs: Any, session: Any, emit: Any) -> str:
        answers = await asyncio.gather(*(session.call("echo", text="x") for _ in range(10)))
        codes.extend(answer.code for answer in answers)
        return "done"

    session = nested("one", "two", last=leaf).session(limits=Limits(calls=20))

    await asyncio.gather(*(session.call("two", task="birds") for _ in range(4)))

    assert codes.count(None) == 20 - 4
    assert session.usage.calls == 20


async def test_the_session_of_a_loop_of_its_own_counts_for_its_parent() -> None:
    kit = kit_of(echo)
    codes: list[str | None] = []

    @kit.tool
    async def delegate(context: ToolContext) -> str:
        inner = kit.session(parent=context)
        codes.extend([(await inner.call("echo", text="x")).code for _ in range(5)])
        return "done"

    session = kit.session(limits=Limits(calls=3))

    await session.call("delegate")

    assert codes == [None, None, "limit_exceeded", "limit_exceeded", "limit_exceeded"]


async def test_a_refused_call_of_an_agent_does_not_count() -> None:
    async def leaf(inputs: Any, session: Any, emit: Any) -> str:
        return str((await session.call("echo", txt="x")).code)

    session = nested("one", last=leaf).session(limits=Limits(calls=5))

    response = await session.call("one", task="birds")

    assert (response.text, session.usage.calls) == ("invalid_arguments", 1)


async def test_an_unknown_tool_of_an_agent_gives_a_warning_in_its_first_run() -> None:
    kit = kit_of(echo)
    kit.register_agent(finder("late", tools=["later"]), run=start)
    kit.register_agent(finder("typo", tools=["ech"], groups=["fils"]), run=start)
    kit.create_tool_group("files", "Files.")

    @kit.tool
    def later() -> str:
        return "later"

    await kit.call("late", task="birds")
    with pytest.warns(UserWarning, match="of agent `typo`") as warned:
        await kit.call("typo", task="birds")
    await kit.call("typo", task="birds")

    assert sorted(str(warning.message) for warning in warned) == [
        "unknown group `fils` of agent `typo`: did you mean `files`?",
        "unknown tool `ech` of agent `typo`: did you mean `echo`?",
    ]


# Approvals and questions


async def test_the_approvals_of_a_run_go_to_the_approver_with_the_path() -> None:
    asked: list[ApprovalRequest] = []

    async def approver(request: ApprovalRequest) -> bool:
        asked.append(request)
        return len(asked) == 1

    async def leaf(inputs: Any, session: Any, emit: Any) -> Any:
        return [(await session.call("remove", text="x")).code for _ in range(2)]

    kit = nested("one", "two", last=leaf)
    kit.register_agent(finder("two", tools=["remove"]), run=leaf, namesake_strategy="override")
    kit.register_tool_function(echo, name="remove", permission="confirm")
    kit.approver = approver

    response = await kit.session(caller="ann", deps="db").call("one", task="birds")

    assert response.metadata == {"value": [None, "denied"]}
    assert [(request.tool, request.caller, request.path, request.deps) for request in asked] == [
        ("remove", "ann", ("one", "two"), "db")
    ] * 2


async def test_events_and_audit_records_of_a_run_have_the_path() -> None:
    audit: list[dict[str, Any]] = []
    events: list[tuple[str, str | None, tuple[str, ...]]] = []

    async def leaf(inputs: Any, session: Any, emit: Any) -> str:
        return str((await session.call("echo", text="x")).text)

    kit = nested("one", "two", last=leaf)
    kit.register_agent(finder("two", tools=["echo"]), run=leaf, namesake_strategy="override")
    kit.register_tool_function(echo, namesake_strategy="override", permission="confirm")
    kit.approver, kit.audit = (lambda request: True), audit.append
    for type in ("call_start", "permission_request", "call_end"):
        kit.subscribe(type, lambda event: events.append((event.type, event.tool, event.path)))

    await kit.call("one", task="birds")

    assert {(record["tool"], tuple(record["path"])) for record in audit} >= {("echo", ("one", "two"))}
    assert [record["path"] for record in audit if record["tool"] == "one"] in ([], [[]])
    assert events == [
        ("call_start", "one", ()),
        ("call_start", "two", ("one",)),
        ("call_start", "echo", ("one", "two")),
        ("permission_request", "echo", ("one", "two")),
        ("call_end", "echo", ("one", "two")),
        ("call_end", "two", ("one",)),
        ("call_end", "one", ()),
    ]


async def test_the_questions_of_a_run_go_to_the_asker_with_the_path() -> None:
    asked: list[Question] = []

    async def asker(question: Question) -> str:
        asked.append(question)
        return "blue"

    async def paint(context: ToolContext) -> str:
        return str(await context.ask("Which colour?"))

    async def run(inputs: Any, session: Any, emit: Any) -> str:
        own = await emit.context.ask("Which wall?")
        return f"{own} {(await session.call('paint')).text}"

    kit = kit_of(paint, asker=asker)
    kit.register_agent(finder(), run=run)

    assert (await kit.call("finder", task="birds")).text == "blue blue"
    assert [(question.text, question.path) for question in asked] == [
        ("Which wall?", ()),
        ("Which colour?", ("finder",)),
    ]


# Deadlines and cancellation


async def test_the_deadline_of_a_call_is_handed_down() -> None:
    seen: list[Any] = []

    async def look(context: ToolContext) -> str:
        seen.append((context.deadline, context.parent and context.parent.deadline))
        return ""

    async def run(inputs: Any, session: Any, emit: Any) -> None:
        await session.call("look")
        await session.call("quick")

    kit = kit_of(look)
    kit.register_tool_function(look, name="quick", timeout=1)
    kit.register_agent(finder(), run=run, timeout=50)

    await kit.call("finder", task="birds")

    (deadline, above), (sooner, _) = seen
    assert deadline == above
    assert sooner < deadline


async def test_the_end_of_the_time_reaches_every_agent_below() -> None:
    ended: list[tuple[str, ...]] = []

    async def leaf(inputs: Any, session: Any, emit: Any) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(session.path)

    kit = nested("one", "two", "three", last=leaf, timeout=0.05)

    response = await kit.call("one", task="birds")

    assert response.code == "timeout"
    assert ended == [("one", "two", "three")]


class Tree:
    """Agents of three levels, each of which calls two of the next, and generators in the last."""

    def __init__(self) -> None:
        self.running = 0
        self.kit = kit_of()
        self.kit.register_tool_function(self.endless)
        for name, below in (("one", "two"), ("two", "three"), ("three", "endless")):
            self.kit.register_agent(finder(name, tools=[below]), run=functools.partial(self.run, below))

    async def endless(self, task: str) -> AsyncIterator[str]:
        self.running += 1
        try:
            yield "first"
            await asyncio.sleep(60)
        finally:
            self.running -= 1

    async def run(self, below: str, inputs: Any, session: Any, emit: Any) -> Any:
        return await asyncio.gather(*[session.call(below, **inputs) for _ in range(2)])


async def test_cancelling_the_parent_finalises_the_whole_tree(loop_factory: LoopFactory) -> None:
    tree = Tree()
    task = asyncio.ensure_future(read(tree.kit.call_tool_function(block("one", task="birds"))))
    await until(lambda: tree.running == 8)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await turns()

    assert tree.running == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_closing_the_stream_finalises_the_run() -> None:
    ended = []

    async def run(inputs: Any, session: Any, emit: Any) -> AsyncIterator[str]:
        try:
            async for response in session.call_tool_function(block("numbers")):
                yield response.text
        finally:
            ended.append("run")

    async def numbers() -> AsyncIterator[str]:
        try:
            yield "1"
            yield "2"
        finally:
            ended.append("tool")

    kit = kit_of(numbers)
    kit.register_agent(finder(), run=run)
    stream = kit.call_tool_function(block("finder", task="birds"))

    assert (await anext(stream)).text == "1"
    await stream.aclose()
    gc.collect()
    await turns()

    assert sorted(ended) == ["run", "tool"]


async def test_an_interrupted_run_is_reported() -> None:
    async def run(inputs: Any, session: Any, emit: Any) -> None:
        raise asyncio.CancelledError

    kit = kit_of()
    kit.register_agent(finder(), run=run)

    assert (await kit.call("finder", task="birds")).is_interrupted


# Mistakes of the developer


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({}, TypeError, "agent `finder`: expected either `run`, the loop, or `model`, a model function, got neither"),
        ({"run": start, "model": start}, TypeError, "got both"),
        ({"run": 5}, TypeError, "agent `finder`: run must be callable, not int"),
        ({"model": 5}, TypeError, "model must be a model function, not int"),
        ({"run": start, "depth": 0}, ValueError, "depth must be a positive number of agents, not 0"),
        ({"run": start, "group_name": "x"}, UnknownGroupError, "Tool group 'x' not found."),
        ({"run": start, "budget": AgentBudget(calls=-1)}, ValueError, "calls must not be negative"),
    ],
)
def test_mistakes_in_the_registration_are_refused(options: Any, error: type[Exception], text: str) -> None:
    kit = kit_of()

    with pytest.raises(error, match=text):
        kit.register_agent(finder(), **options)
    assert list(kit.tools) == []


async def test_an_agent_runs_in_the_background() -> None:
    kit = kit_of(echo)
    kit.register_agent(finder(), run=start, async_execution=True)

    task = await background.start(kit, "finder", task="birds")

    assert (await kit.wait_task(task)).text == "birds: ['echo']"


async def test_a_run_leaves_nothing_behind() -> None:
    sessions: list[Any] = []

    async def run(inputs: Any, session: Any, emit: Any) -> None:
        sessions.append(weakref.ref(session))
        emit("THOUGHT_CHUNK", text="x")
        assert emit.context.session is outer
        await session.call("echo", text="x")

    kit = kit_of(echo)
    kit.register_agent(finder(), run=run)
    outer = kit.session()

    await outer.call("finder", task="birds")
    await read(outer.call_tool_function(block("finder", task="birds")))

    assert [session() for session in sessions] == [None, None]


async def test_the_id_of_the_call_is_that_of_the_request() -> None:
    ids: list[str] = []

    async def run(inputs: Any, session: Any, emit: Any) -> None:
        ids.append(emit.context.call_id)

    kit = kit_of()
    kit.register_agent(finder(), run=run)

    await read(kit.call_tool_function(block("finder", task="birds")))
    async with kit.events(["call_end"]) as events:
        await kit.call("finder", task="birds")
        event = await anext(events)

    assert ids == ["call-1", event.call_id]


async def test_responses_of_a_loop_stay_as_they_are() -> None:
    async def run(inputs: Any, session: Any, emit: Any) -> ToolResponse:
        return ToolResponse([{"type": "text", "text": "two birds"}], {"count": 2})

    kit = kit_of()
    kit.register_agent(finder(), run=run)

    response = await kit.call("finder", task="birds")

    assert (response.text, response.metadata) == ("two birds", {"count": 2})
    assert await texts(kit.call_tool_function(block("finder", task="birds"))) == ["two birds"]
