"""The table of calls: its cases, a toolkit for each, and every way to call as a function that runs one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

from support.agents import Script, done, finder
from support.events import record_events
from support.mcp.peers import connected
from support.middleware import passing
from support.streams import block, last
from toolcrib import Toolkit, ToolResponse
from toolcrib.events import Event
from toolcrib.policy import Policy, Rule

GENERATOR = Path(__file__).parents[2] / "tests" / "data" / "make_call_cases.py"
TABLE: dict[str, Any] = json.loads(GENERATOR.with_name("call_cases.json").read_text(encoding="utf-8"))

SESSION = "s1"

Outcome = dict[str, Any]
Run = Callable[["Desk", Any], Awaitable[Outcome]]


class Desk:
    """A toolkit with the tool of the table, and what came of its calls."""

    def __init__(self, policy: dict[str, Any], repair: Any, *, in_background: bool = False) -> None:
        self.ran: list[Any] = []
        self.asked: list[Any] = []
        self.audit: list[dict[str, Any]] = []
        self.answer = policy["answer"]
        rules = policy["rules"]
        self.kit = Toolkit(
            run_in="inline",
            repair=repair,
            policy=None if rules is None else Policy([Rule(**rule) for rule in rules], policy["default"]),
            approver=None if self.answer is None else self.approve,
            audit=self.audit.append,
        )
        self.kit.headless = policy["headless"]
        self.kit.create_tool_group("mail", "Mail.", active=policy["tool"] != "inactive")
        if policy["tool"] != "unknown":
            self.kit.register_tool_function(
                self.send, "mail", kind="execute", permission=policy["permission"], async_execution=in_background
            )
        self.events: list[Event] = record_events(self.kit)

    async def send(self, to: str, amount: int = 1) -> str:
        self.ran.append({"to": to, "amount": amount})
        return f"sent {amount} to {to}"

    async def approve(self, request: Any) -> Any:
        self.asked.append(request)
        return self.answer

    def traces(self) -> Outcome:
        """The effects of the calls so far, as the table writes them; those of an agent around them are left out."""
        return {
            "audit": [_record(record) for record in self.audit if record["tool"] == "send"],
            "events": [_event(event) for event in self.events if event.tool == "send"],
            "asked": len(self.asked),
            "ran": self.ran,
        }


def _record(record: dict[str, Any]) -> dict[str, Any]:
    fields = ("rule", "decision", "shadow", "answered_by", "answer", "outcome", "caller", "session", "path")
    shown = {name: record[name] for name in fields if record[name] not in (None, [])}
    if shown.get("session") not in (None, SESSION):
        shown["session"] = "any"
    return {**shown, "arguments": record["arguments"]}


def _event(event: Event) -> str:
    word = {"permission_result": "decision", "error": "error", "call_end": "outcome"}.get(event.type)
    return event.type if word is None else f"{event.type} {event.data[word]}"


def _sent(input: Any) -> dict[str, Any]:
    return {**block("send"), "input": input}


def _said(response: ToolResponse) -> Outcome:
    return {"code": response.code, "text": response.text}


async def _toolkit(desk: Desk, input: Any) -> Outcome:
    return _said(await last(desk.kit.call_tool_function(_sent(input))))


async def _view(desk: Desk, input: Any) -> Outcome:
    return _said(await last(desk.kit.view(caller="ann").call_tool_function(_sent(input))))


async def _session(desk: Desk, input: Any) -> Outcome:
    return _said(await last(desk.kit.session(id=SESSION, caller="ann").call_tool_function(_sent(input))))


async def _middleware(desk: Desk, input: Any) -> Outcome:
    desk.kit.register_middleware(passing)
    return await _toolkit(desk, input)


async def _tool(desk: Desk, input: Any) -> Outcome:
    return _said(await last(desk.kit.tools["send"].call(arguments=input)))


async def _dialect(desk: Desk, input: Any) -> Outcome:
    desk.kit.schemas("openai_strict")
    # In this dialect a parameter that is left out is null.
    encoded = {**input, "amount": input.get("amount")} if isinstance(input, dict) else input
    return _said(await last(desk.kit.call_tool_function(_sent(encoded), dialect="openai_strict")))


async def _background(desk: Desk, input: Any) -> Outcome:
    response = await last(desk.kit.call_tool_function(_sent(input)))
    if response.ok and response.metadata is not None:
        response = await desk.kit.wait_task(response.metadata["task_id"])
    return _said(response)


async def _openai(desk: Desk, input: Any) -> Outcome:
    call = {"id": "call-1", "type": "function", "function": {"name": "send", "arguments": input}}
    return _said(await last(desk.kit.call_tool_function(call)))


async def _call(desk: Desk, input: Any) -> Outcome:
    return _said(await desk.kit.call("send", **input))


async def _xml(desk: Desk, input: Any) -> Outcome:
    def text(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value)

    values = "".join(f"<{name}><![CDATA[{text(value)}]]></{name}>" for name, value in input.items())
    call = f"<tool_call><name>send</name><params>{values}</params></tool_call>"
    return _said(await last(desk.kit.call_tool_function(call)))


async def _hermes(desk: Desk, input: Any) -> Outcome:
    call = f"<tool_call>{json.dumps({'name': 'send', 'arguments': input})}</tool_call>"
    return _said(await last(desk.kit.call_tool_function(call)))


async def _agent(desk: Desk, input: Any) -> Outcome:
    script = Script([{"name": "send", "arguments": input}], [done()])
    desk.kit.register_agent(finder(), model=script)
    if desk.kit.policy is not None:
        # The agent is a tool itself.
        desk.kit.policy.add(Rule("allow", tool="finder", priority=1))
    await last(desk.kit.call_tool_function(block("finder", task="birds")))
    (result,) = [message for message in script.messages[-1] if message["role"] == "tool"]
    response: ToolResponse = result.response  # type: ignore[attr-defined]
    return _said(response)


async def _mcp(desk: Desk, input: Any) -> Outcome:
    async with desk.kit.serve_mcp("http") as server:
        peer = await connected(server)
        result = await asyncio.to_thread(peer.call, "send", **input)
    text = "".join(part["text"] for part in result["content"])
    # The protocol has no codes; listeners get them.
    code = desk.events[-1].data["code"]
    assert result["isError"] == (code is not None)
    return {"code": code, "text": text}


async def _check(desk: Desk, input: Any) -> Outcome:
    outlook = desk.kit.check(_sent(input))
    return {name: outlook[name] for name in ("would", "code", "text")}


def _resumed(answer: Literal["once", "no"]) -> Run:
    async def run(desk: Desk, input: Any) -> Outcome:
        response = await last(desk.kit.call_tool_function(_sent(input)))
        assert response.metadata is not None
        return _said(await last(desk.kit.resume(response.metadata["pending"], answer)))

    return run


async def _resumed_in_middleware(desk: Desk, input: Any) -> Outcome:
    desk.kit.register_middleware(passing)
    return await _resumed("once")(desk, input)


WAYS: dict[str, Run] = {
    "toolkit": _toolkit,
    "view": _view,
    "session": _session,
    "middleware": _middleware,
    "tool": _tool,
    "dialect": _dialect,
    "background": _background,
    "openai": _openai,
    "call": _call,
    "xml": _xml,
    "hermes": _hermes,
    "agent": _agent,
    "mcp": _mcp,
    "check": _check,
    "resume yes": _resumed("once"),
    "resume no": _resumed("no"),
    "middleware, resume yes": _resumed_in_middleware,
}


async def differing_rows(way: str) -> dict[str, Outcome]:
    """Run every row of a way: those that differ from the table, with what came and what the table has."""
    differing: dict[str, Outcome] = {}
    for row in TABLE["rows"]:
        if row["way"] != way:
            continue
        arguments, wanted = TABLE["arguments"][row["arguments"]], TABLE["results"][row["expected"]]
        desk = Desk(TABLE["policies"][row["policy"]], arguments["repair"], in_background=way == "background")
        came = {**await WAYS[way](desk, arguments["sent"]), **desk.traces()}
        if came != wanted:
            pairs = {name: (came.get(name), wanted[name]) for name in wanted}
            case = f"{row['policy']} / {row['arguments']}"
            differing[case] = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    return differing
