"""Every way to call a tool, under random policies, against the decision that the guide says the rules make."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from soak.attack import Outcome, attack
from toolcrib import AgentDefinition, TextParser, Toolkit, ToolResponse, mcp
from toolcrib.agent import ModelReply
from toolcrib.errors import ToolCallError
from toolcrib.policy import Policy, Rule

Decision = Literal["allow", "ask", "deny"]

DECISIONS: tuple[Decision, ...] = ("allow", "ask", "deny")
"""From the mildest to the strictest."""

CODES = {"allow": None, "ask": "pending", "deny": "denied"}
OUTCOMES = {"allow": "run", "ask": "pending", "deny": "denied"}

AGENT = "delegate"
"""The agent tool, which is always allowed: the decision in question is that about the tool that it calls."""


@dataclass(frozen=True)
class Subject:
    """A tool, as rules see it."""

    name: str
    kind: Literal["read", "edit", "execute"]
    group: str
    tag: str
    permission: Literal["auto", "confirm"]


SUBJECTS = [
    Subject("fetch", "read", "basic", "safe", "auto"),
    Subject("fetch_all", "read", "bulk", "safe", "confirm"),
    Subject("store", "edit", "basic", "loud", "auto"),
    Subject("sweep", "execute", "bulk", "loud", "confirm"),
]
"""One of each kind of callable: a coroutine function, an async generator, a function, and a generator."""

WORDS = ["a", "b", "c"]


@dataclass(frozen=True)
class Condition:
    """A rule, and the function that says which calls it is about."""

    rule: Rule
    holds: Callable[[Subject, str], bool]


def draw_condition(rng: random.Random) -> Condition:
    """A random rule of any decision about some of the tools."""
    name = rng.choice([subject.name for subject in SUBJECTS])
    kind, tag, word = rng.choice(["read", "edit", "execute"]), rng.choice(["safe", "loud"]), rng.choice(WORDS)
    about: list[tuple[dict[str, Any], Callable[[Subject, str], bool]]] = [
        ({"tool": name}, lambda subject, _: subject.name == name),
        ({"tool": f"{name[:2]}*"}, lambda subject, _: subject.name.startswith(name[:2])),
        ({"kind": kind}, lambda subject, _: subject.kind == kind),
        ({"group": "bulk"}, lambda subject, _: subject.group == "bulk"),
        ({"tag": tag}, lambda subject, _: subject.tag == tag),
        (
            {"tool": [subject.name for subject in SUBJECTS], "arguments": {"what": word}},
            lambda _, what: what == word,
        ),
    ]
    fields, holds = rng.choice(about)
    options: dict[str, Any] = {"priority": rng.choice([0, 0, 7]), "tier": rng.choice(["project", "user"])}
    return Condition(Rule(rng.choice([*DECISIONS, "deny"]), **fields, **options), holds)


@dataclass(frozen=True)
class Case:
    """A policy, a call, and the way in which it is made."""

    conditions: tuple[Condition, ...]
    default: Decision
    subject: Subject
    what: str
    door: str
    is_layered: bool

    def decision(self) -> Decision:
        """The decision by the order of the guide: tier, priority, strictness; then permission and default."""
        found = [condition.rule for condition in self.conditions if condition.holds(self.subject, self.what)]
        if found:
            first = max(found, key=lambda rule: (rule.tier == "user", rule.priority, DECISIONS.index(rule.decision)))
            return first.decision
        wish: Decision = "ask" if self.subject.permission == "confirm" else "allow"
        return max(wish, self.default, key=DECISIONS.index)

    def policy(self) -> Policy:
        """The rules, and the one that lets the agent be called if there is one."""
        free = [Rule("allow", tool=AGENT, tier="admin")] if self.door == "agent" else []
        return Policy([*free, *(condition.rule for condition in self.conditions)], self.default)

    def __str__(self) -> str:
        rules = [condition.rule for condition in self.conditions]
        layered = " behind a middleware" if self.is_layered else ""
        return f"{self.subject.name}({self.what!r}) by {self.door}{layered} under {rules}, else {self.default}"


@dataclass
class Place:
    """A toolkit with the tools, which record that they ran, and its audit log."""

    case: Case
    ran: list[tuple[str, str]] = field(default_factory=list)
    audit: list[dict[str, Any]] = field(default_factory=list)
    kit: Toolkit = field(init=False)

    def __post_init__(self) -> None:
        """Register one tool of each kind."""
        ran = self.ran

        async def fetch(what: str) -> str:
            ran.append(("fetch", what))
            return what

        async def fetch_all(what: str) -> AsyncIterator[str]:
            ran.append(("fetch_all", what))
            yield what

        def store(what: str) -> str:
            ran.append(("store", what))
            return what

        def sweep(what: str) -> Any:
            ran.append(("sweep", what))
            yield what

        self.kit = Toolkit(policy=self.case.policy(), audit=self.audit.append)
        self.kit.create_tool_group("bulk", "Many at once.", active=True)
        for function, subject in zip((fetch, fetch_all, store, sweep), SUBJECTS, strict=True):
            self.kit.register_tool_function(
                function,
                subject.group,
                kind=subject.kind,
                tags=[subject.tag],
                permission=subject.permission,
                async_execution=self.case.door == "background",
            )
        if self.case.is_layered:
            self.kit.register_middleware(passing)

    @property
    def block(self) -> dict[str, Any]:
        """The call, as a block of a message."""
        return {"type": "tool_use", "id": "1", "name": self.case.subject.name, "input": {"what": self.case.what}}


async def passing(kwargs: dict[str, Any], next_handler: Any) -> AsyncIterator[ToolResponse]:
    """Pass a call on as it is."""
    async for response in await next_handler(**kwargs):
        yield response


async def last(stream: Any) -> ToolResponse:
    """Read a stream to its end."""
    responses: list[ToolResponse] = [response async for response in stream]
    return responses[-1]


Door = Callable[[Place], Awaitable[str | None]]
"""A way to make the call of a place: the code of its last response, or an empty text if this way has no codes."""

NO_CODE = ""


async def by_call(place: Place) -> str | None:
    """Call by name."""
    return (await place.kit.call(place.case.subject.name, what=place.case.what)).code


async def by_run(place: Place) -> str | None:
    """Call from synchronous code."""
    response = await asyncio.to_thread(place.kit.run, place.case.subject.name, what=place.case.what)
    return response.code


async def by_value(place: Place) -> str | None:
    """Call for the bare value."""
    try:
        await place.kit.value(place.case.subject.name, what=place.case.what)
    except ToolCallError as error:
        return error.code
    return None


async def by_block(place: Place) -> str | None:
    """Call by the block of a message."""
    return (await last(place.kit.call_tool_function(place.block))).code


async def by_awaited_block(place: Place) -> str | None:
    """Call by the block of a message, as AgentScope does."""
    return (await last(await place.kit.call_tool_function(place.block))).code


async def by_dialect(place: Place) -> str | None:
    """Call by the function call of a provider, in its dialect."""
    function = {"name": place.case.subject.name, "arguments": json.dumps({"what": place.case.what})}
    call = {"id": "1", "type": "function", "function": function}
    return (await last(place.kit.call_tool_function(call, dialect="openai_strict"))).code


async def by_text(place: Place) -> str | None:
    """Call by a call in the text of a model."""
    parser = TextParser("xml", tools=place.kit)
    text = (
        f"<tool_call><name>{place.case.subject.name}</name><params><what>{place.case.what}</what></params></tool_call>"
    )
    (call,) = (piece for piece in parser.feed(text) + parser.finish() if not isinstance(piece, str))
    return (await last(place.kit.call_tool_function(call))).code


async def by_view(place: Place) -> str | None:
    """Call through a view."""
    return (await place.kit.view(caller="ann").call(place.case.subject.name, what=place.case.what)).code


async def by_session(place: Place) -> str | None:
    """Call in a session."""
    return (await place.kit.session().call(place.case.subject.name, what=place.case.what)).code


async def by_view_of_a_session(place: Place) -> str | None:
    """Call by a block through a view of a session."""
    return (await last(place.kit.session().view().call_tool_function(place.block))).code


async def by_background(place: Place) -> str | None:
    """Call a tool that runs in the background, and wait for its result."""
    response = await place.kit.call(place.case.subject.name, what=place.case.what)
    task = (response.metadata or {}).get("task_id")
    return response.code if task is None else (await place.kit.wait_task(task)).code


async def by_agent(place: Place) -> str | None:
    """Have a sub-agent make the call."""
    calls = [{"name": place.case.subject.name, "arguments": {"what": place.case.what}}]

    async def model(messages: list[dict[str, Any]], schemas: list[dict[str, Any]]) -> ModelReply:
        return ModelReply(calls=[calls.pop()] if calls else [{"name": "complete_task", "arguments": {}}])

    agent = AgentDefinition(
        AGENT,
        "Delegates.",
        inputs={},
        system_prompt="Work.",
        query="Work.",
        tools=[subject.name for subject in SUBJECTS],
    )
    place.kit.register_agent(agent, model=model)
    await last(place.kit.call_tool_function({"name": AGENT, "input": {}}))
    return NO_CODE


async def by_mcp(place: Place) -> str | None:
    """Serve the toolkit, and call it by a client."""
    async with (
        place.kit.serve_mcp("http") as server,
        mcp.connect(server.url, token=server.token) as client,
    ):
        far = Toolkit()
        await far.register_mcp_client(client)
        await far.call(place.case.subject.name, what=place.case.what)
    return NO_CODE


async def by_resuming(place: Place) -> str | None:
    """Have the call approved before the policy is in force."""
    policy, place.kit.policy = place.kit.policy, Policy([Rule("ask", tool="*")])
    response = await place.kit.call(place.case.subject.name, what=place.case.what)
    pending: dict[str, Any] = (response.metadata or {})["pending"]
    place.audit.clear()
    place.kit.policy = policy
    return (await last(place.kit.resume(pending, True))).code


DOORS: dict[str, Door] = {
    door.__name__.removeprefix("by_"): door
    for door in (
        by_call,
        by_run,
        by_value,
        by_block,
        by_awaited_block,
        by_dialect,
        by_text,
        by_view,
        by_session,
        by_view_of_a_session,
        by_background,
        by_agent,
        by_mcp,
        by_resuming,
    )
}


async def complaint(case: Case) -> str | None:
    """Make the call of a case; say what was not as the rules decide."""
    place, decision = Place(case), case.decision()
    if case.door == "resuming" and decision == "ask":
        decision = "allow"  # by the approval
    code = await DOORS[case.door](place)
    expected = [(case.subject.name, case.what)] if decision == "allow" else []
    records = [(record["decision"], record["outcome"]) for record in place.audit if record["tool"] == case.subject.name]
    outcomes = [outcome for _, outcome in records]
    if place.ran != expected or outcomes != [OUTCOMES[decision]] or code not in (NO_CODE, CODES[decision]):
        return f"{case}: decided {decision}, but it ran {place.ran}, gave {code!r} and recorded {records}"
    return None


@attack(
    row="l3",
    promise="by whatever way a tool is called, the policy decides, and the audit log has the decision once",
    unit="calls (14 ways, random policies)",
    release=200_000,
    smallest=20 * len(DOORS),
)
def any_way(number: int) -> Outcome:
    """Make calls in every way in turn, each under a policy of its own."""
    rng, outcome = random.Random(number), Outcome(0)

    async def main() -> None:
        for attempt in range(number):
            case = Case(
                tuple(draw_condition(rng) for _ in range(rng.randint(0, 4))),
                rng.choice(DECISIONS),
                rng.choice(SUBJECTS),
                rng.choice(WORDS),
                list(DOORS)[attempt % len(DOORS)],
                rng.random() < 0.3,
            )
            outcome.attempts += 1
            if (text := await complaint(case)) is not None:
                outcome.broken.append(text)

    asyncio.run(main())
    return outcome
