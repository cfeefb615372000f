"""The rules of a call as a table: policy x arguments x way to call -> what the caller, the audit and the listeners get.

`python tests/data/make_call_cases.py` writes `call_cases.json`, which the Rust and the Python tests read. The expectations are
derived here from the one order of a call, which is the same for every way:

    admit        an unknown, inactive or hidden tool ends the call, whatever the rules and the arguments are
    deny         the rules are tried in order. If one that has no conditions on arguments denies before any that has some,
                 the call is denied, whatever its arguments are: unreadable, cut off or wrong
    arguments    are read, and refused if they are unreadable, uncertain or do not fit
    permission   the rules see the arguments that the tool would get; an approver is asked
    run          the tool gets these arguments

The audit has one record of each decision about permission: of every denial, question, answer and run. A call that ends for
another reason, because the tool is not admitted or its arguments are refused, has no decision and therefore no record, and no
approver is asked. A record of a denial that did not look at the arguments shows them as they were read, and null if they could
not be read; every other record shows those that the tool would get, with defaults.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]

# The tool: send(to: str, amount: int = 1), of the kind `execute` in the group `mail`, returns "sent {amount} to {to}".
TOOL = "send"
DEFAULTS = {"amount": 1}

DENY = {"decision": "deny", "tool": "send", "id": "deny-send", "reason": "mail is sent by hand"}
DENY_LARGE = {"decision": "deny", "arguments": {"amount": {"gt": 100}}, "id": "deny-large", "reason": "it is too much"}
ASK = {"decision": "ask", "tool": "send", "id": "ask-send"}
ASK_LARGE = {"decision": "ask", "arguments": {"amount": {"gt": 100}}, "id": "ask-large"}
ALLOW = {"decision": "allow", "tool": "send", "id": "allow-send"}
ALLOW_SMALL = {"decision": "allow", "arguments": {"amount": {"le": 100}}, "id": "allow-small"}

# `rules`: none for no policy; `answer`: of the approver, none for no approver; `tool`: active, inactive by its group, or unknown.
SETTINGS: Json = {
    "rules": [],
    "default": "allow",
    "permission": "auto",
    "answer": None,
    "headless": False,
    "tool": "active",
}
POLICIES: dict[str, Json] = {
    "none": {"rules": None},
    "allow": {"rules": [ALLOW]},
    "deny by name": {"rules": [DENY]},
    "deny by glob, without a reason": {"rules": [{"decision": "deny", "tool": "s*", "id": "deny-s"}]},
    "deny by group": {"rules": [{"decision": "deny", "group": "mail", "id": "deny-mail", "reason": "no mail"}]},
    "deny by kind": {"rules": [{"decision": "deny", "kind": "execute", "id": "deny-kind", "reason": "only reading"}]},
    "deny before ask and confirm": {"rules": [ASK, DENY], "permission": "confirm", "answer": "once"},
    "deny before deny on an argument": {"rules": [DENY, DENY_LARGE]},
    "deny after deny on an argument": {"rules": [DENY_LARGE, DENY]},
    "deny in shadow": {"rules": [{**DENY, "shadow": True}]},
    "deny by default": {"default": "deny"},
    "deny by default, allow on an argument": {"rules": [ALLOW_SMALL], "default": "deny"},
    "deny on an argument": {"rules": [DENY_LARGE]},
    "ask": {"rules": [ASK]},
    "ask, answered yes": {"rules": [ASK], "answer": "once"},
    "ask, answered no": {"rules": [ASK], "answer": "no"},
    "ask, headless": {"rules": [ASK], "answer": "once", "headless": True},
    "ask on an argument": {"rules": [ASK_LARGE]},
    "ask on an argument, answered yes": {"rules": [ASK_LARGE], "answer": "once"},
    "ask by default": {"default": "ask"},
    "confirm": {"rules": None, "permission": "confirm"},
    "confirm, answered yes": {"rules": None, "permission": "confirm", "answer": "once"},
    "confirm by kind": {"permission": "kind"},
    "deny, inactive group": {"rules": [DENY], "tool": "inactive"},
    "deny, unknown tool": {"rules": [DENY], "tool": "unknown"},
}
POLICIES = {name: {**SETTINGS, **settings} for name, settings in POLICIES.items()}

# What the model sends (a text is JSON text), and what it is read as; `repair` is the switch of the toolkit. `refused` is the code
# and the text of the refusal, for a call that is not denied before. An unreadable text is read as nothing.
QUOTED = "{'to': 'ann', 'amount': 2}"
USAGE = "Send the arguments as one JSON object, with keys and strings in double quotes."
WHOLE = "Send the whole call again, with all of the arguments in one JSON object and nothing around it."
CUT_OFF = (
    "the call is incomplete: the answer was cut off, or a value, a quote or a bracket is missing in the JSON of the arguments, or "
    "an ellipsis stands for a part of them. Send the whole call again, in smaller parts if it is long. The tool 'send' has not run."
)
TWICE = (
    "an object in the JSON of the arguments has the same key twice, so that it is not clear which value is meant. Send the call "
    "again with every key once. The tool 'send' has not run."
)
NEEDS_REPAIR = "Error: The arguments for tool 'send' need to be repaired, and the tool has not run:\n"
MEANT = '\nIf this is what you mean, send it: {"to":"ann","amount":2}'


def unreadable(what: str) -> Json:
    return {"read": None, "refused": ["bad_call", what]}


def misfit(problem: str) -> Json:
    return {"refused": ["invalid_arguments", f"Error: Invalid arguments for tool 'send':\n- {problem}"]}


ARGUMENTS: dict[str, Json] = {
    "fine": {"sent": {"to": "ann", "amount": 2}},
    "a large amount": {"sent": {"to": "ann", "amount": 500}},
    "one left out": {"sent": {"to": "ann"}},
    "coerced": {"sent": {"to": "ann", "amount": "500"}, "coerced": {"to": "ann", "amount": 500}},
    "a wrong type": {
        "sent": {"to": "ann", "amount": "two"},
        **misfit('amount: expected an integer, got "two" (a string)'),
    },
    "one missing": {"sent": {"amount": 2}, **misfit("to: expected a string, got nothing")},
    "one unknown": {
        "sent": {"to": "ann", "urgent": "yes"},
        **misfit("urgent: unknown argument (expected one of: to, amount)"),
    },
    "text": {"sent": '{"to": "ann", "amount": 2}', "read": {"to": "ann", "amount": 2}},
    "repaired": {"sent": QUOTED, "read": {"to": "ann", "amount": 2}},
    "cut off": {
        "sent": '{"to": "ann", "amount": 5',
        "read": {"to": "ann", "amount": 5},
        "refused": ["bad_call", f"Error: Invalid tool call: {CUT_OFF}"],
    },
    "a key twice": {
        "sent": '{"to": "ann", "to": "bob"}',
        "read": {"to": "bob"},
        "refused": ["bad_call", f"Error: Invalid tool call: {TWICE}"],
    },
    "not JSON": {
        "sent": "send it to ann",
        **unreadable(f"the arguments are not valid JSON: expected value at line 1 column 1. {USAGE}"),
    },
    "an uncertain repair": {
        "sent": '{"to": "ann"} "amount": 5',
        **unreadable(f"there is text beside the JSON object of the arguments that may be a part of them. {WHOLE}"),
    },
    "a list as text": {
        "sent": '["ann", 2]',
        **unreadable(f"the arguments must be a JSON object, not an array. {USAGE}"),
    },
    "a list": {"sent": ["ann", 2], "read": None, "refused": ["bad_call", None]},
    "repaired, explained": {
        "sent": QUOTED,
        "read": {"to": "ann", "amount": 2},
        "repair": "explain",
        "refused": [
            "invalid_arguments",
            f"{NEEDS_REPAIR}- other quotes were exchanged for those of JSON (3 times){MEANT}",
        ],
    },
    "coerced, explained": {
        "sent": {"to": "ann", "amount": "2"},
        "coerced": {"to": "ann", "amount": 2},
        "repair": "explain",
        "refused": ["invalid_arguments", f'{NEEDS_REPAIR}- amount: "2" (a string) was read as 2 (an integer){MEANT}'],
    },
}
ARGUMENTS = {
    name: {"read": settings["sent"], "repair": "on", "refused": None, **settings}
    for name, settings in ARGUMENTS.items()
}

# The ways to call. `block`: the call is a block with `name` and `input`, whose own words its refusals use; `objects`: the
# arguments can only be a JSON object; `natural`: values are text that is read by its declared type.
WAYS: dict[str, Json] = {
    "toolkit": {"block": True},
    "view": {"block": True, "view": True, "caller": "ann"},
    "session": {"block": True, "view": True, "caller": "ann", "session": "s1"},
    "middleware": {"block": True},
    "tool": {"block": True},
    "dialect": {"block": True},
    "background": {"block": True},
    "openai": {},
    "call": {"block": True, "objects": True},
    "xml": {"objects": True, "natural": True},
    "hermes": {"objects": True},
    "agent": {"view": True, "path": ["finder"], "session": "any"},
    "mcp": {"objects": True, "caller": "mcp:peer", "session": "any"},
    "check": {"block": True},
    "resume yes": {"block": True, "answer": "once"},
    "resume no": {"block": True, "answer": "no"},
    "middleware, resume yes": {"block": True, "answer": "once"},
    "native": {"native": True},
    "native view": {"native": True, "view": True, "caller": "ann"},
    "native resume yes": {"native": True, "answer": "once"},
    "native resume no": {"native": True, "answer": "no"},
}


def cannot_express(policy: Json, arguments: Json, way: str) -> str | None:
    """The reason why a way has no such case."""
    form = WAYS[way]
    if form.get("objects") and not isinstance(arguments["sent"], dict):
        return "the arguments are an object by the form of the call; text that is no such call is not one"
    if form.get("natural") and "coerced" in arguments and arguments["refused"]:
        return "the text of a value is read by its declared type, so that there is nothing to explain"
    if form.get("native") and arguments["repair"] != "on":
        return "a native toolkit has no switch for repairs"
    if way == "tool" and isinstance(arguments["sent"], list):
        return "the method takes an object or text"
    if way == "tool" and policy["tool"] != "active":
        return "a tool that is called by itself is known, and is called also while its group is off"
    if way == "mcp" and policy["tool"] != "active":
        return "to a client of MCP the tool does not exist, which is an error of the protocol"
    if "answer" in form and decide(policy, arguments, way)["outcome"] != "pending":
        return "only a pending call can be resumed"
    return None


def matches(rule: Json, arguments: Json | None) -> bool:
    """True if a rule matches the tool and these arguments; its conditions on the name, group and kind all fit the tool."""
    conditions = rule.get("arguments", {})
    compare = {"gt": lambda value, limit: value > limit, "le": lambda value, limit: value <= limit}
    return not conditions or (
        arguments is not None
        and all(
            compare[operator](arguments[name], limit)
            for name, condition in conditions.items()
            for operator, limit in condition.items()
        )
    )


def in_order(policy: Json) -> list[Json]:
    """The rules as they are tried: the strictest first."""
    return sorted(policy["rules"] or [], key=lambda rule: ("deny", "ask", "allow").index(rule["decision"]))


def verdict(policy: Json, arguments: Json) -> Json:
    """The decision of the rules about arguments: that of the first that matches, or of the tool's permission and the default."""
    without_rule: Json = {"decision": policy["default"], "rule": None}
    # The kind of a tool, which is `execute` here, asks only where there is a policy.
    asks = policy["permission"] in (("confirm",) if policy["rules"] is None else ("confirm", "kind"))
    if asks and policy["default"] != "deny":
        without_rule["decision"] = "ask"
    found = [rule for rule in in_order(policy) if matches(rule, arguments)]
    live = [rule for rule in found if not rule.get("shadow")]
    decided = dict(without_rule)
    if live:
        decided = {"decision": live[0]["decision"], "rule": live[0]["id"], "reason": live[0].get("reason", "")}
    elif decided["decision"] == "deny":
        decided["reason"] = "no rule allows it"
    if found and found[0].get("shadow") and found[0]["decision"] != decided["decision"]:
        decided["shadow"] = found[0]["decision"]
    return decided


def denies_outright(policy: Json) -> bool:
    """True if the rules deny the tool before one is tried that has conditions on arguments."""
    for rule in in_order(policy):
        if rule.get("arguments"):
            return False
        if not rule.get("shadow"):
            return bool(rule["decision"] == "deny")
    return bool(policy["default"] == "deny")


def decide(policy: Json, arguments: Json, way: str) -> Json:
    """The end of a call before an answer to a pending one: its outcome and reason, and the arguments that it is about."""
    if policy["tool"] == "inactive":
        return {"outcome": "inactive_group"}
    if policy["tool"] == "unknown" and arguments["read"] is None:
        return {"outcome": arguments["refused"][0]}  # it may be no call of a tool at all
    if policy["tool"] == "unknown":
        return {"outcome": "tool_not_available" if WAYS[way].get("view") else "unknown_tool"}
    # A value in XML is text without a type, so that nothing has to be coerced in it.
    read = arguments["coerced"] if WAYS[way].get("natural") and "coerced" in arguments else arguments["read"]
    if denies_outright(policy):
        return {**verdict(policy, {**DEFAULTS}), "outcome": "denied", "about": read}
    if arguments["refused"]:
        return {"outcome": arguments["refused"][0]}
    about = {**DEFAULTS, **(arguments["coerced"] if "coerced" in arguments else arguments["read"])}
    decided = {**verdict(policy, about), "about": about}
    if decided["decision"] == "deny":
        return {**decided, "outcome": "denied"}
    if decided["decision"] == "allow":
        return {**decided, "outcome": "run"}
    if policy["headless"]:
        reason = "it needs approval, and no approver is available"
        return {**decided, "outcome": "denied", "by": "headless", "reason": reason}
    if policy["answer"] is None:
        return {**decided, "outcome": "pending"}
    return answered({**decided, "asked": True}, policy["answer"], "approver")


def answered(decided: Json, answer: str, by: str) -> Json:
    """The end of a call that was asked about."""
    said = {**decided, "answer": answer, "by": by}
    if answer == "no":
        return {**said, "outcome": "denied", "reason": "the approver declined it"}
    return {**said, "outcome": "run"}


def refusal(arguments: Json, way: str) -> str:
    """The text about refused arguments. What cannot be read is described in the words of the form of the call."""
    text, is_block = arguments["refused"][1], WAYS[way].get("block")
    if arguments["read"] is not None:
        return str(text)
    if text is None:
        words = "the `input` of 'send' must be an object, not list"
        if not is_block:
            words = "the call of 'send': the arguments of 'send' must be an object, not a list. Send a JSON object."
    else:
        words = f"the `input` of 'send' cannot be read: {text}" if is_block else f"the call of 'send': {text}"
    return f"Error: Invalid tool call: {words}"


def reply(decided: Json, arguments: Json, way: str) -> tuple[str | None, str]:
    """The code and the text of the last response."""
    match decided["outcome"]:
        case "run":
            return None, "sent {amount} to {to}".format(**decided["about"])
        case "bad_call" | "invalid_arguments" as code:
            return code, refusal(arguments, way)
        case "pending":
            return "pending", "The call of 'send' is waiting for approval and has not run yet."
        case "inactive_group" | "tool_not_available" as code if "path" in WAYS[way]:
            # An agent has the tools of its definition, whatever else there is.
            return code, "Unauthorized tool call: 'send' is not available to this agent."
        case "inactive_group" as code:
            return code, (
                "FunctionInactiveError: The function 'send' is in the inactive group 'mail'. Activate the tool group by calling "
                "'reset_equipped_tools' first to use this tool."
            )
        case "unknown_tool" as code:
            return code, "FunctionNotFoundError: Cannot find the function named send"
        case "tool_not_available" as code:
            return code, "Error: The tool 'send' is not available."
    reason = f": {decided['reason']}" if decided["reason"] else "."
    return "denied", f"Error: The call of 'send' was denied and did not run{reason}"


def record(decided: Json, way: str) -> Json:
    """The record of a decision in the audit, without fields that are null; of the arguments, null is kept."""
    form = WAYS[way]
    fields = {
        "rule": decided.get("rule"),
        "decision": decided["decision"],
        "shadow": decided.get("shadow"),
        "answered_by": decided.get("by"),
        "answer": decided.get("answer"),
        "outcome": decided["outcome"],
        "caller": form.get("caller"),
        "session": form.get("session"),
        "path": form.get("path"),
    }
    return {**{name: value for name, value in fields.items() if value is not None}, "arguments": decided["about"]}


def events(decided: Json, code: str | None) -> list[str]:
    """The events of a call, each with the word that matters in it. A refusal is an error; a decision is none."""
    found = ["call_start"]
    if decided.get("asked") or decided["outcome"] == "pending":
        found.append("permission_request")
    if decided.get("asked") or decided.get("resumed") or decided["outcome"] == "denied":
        found.append("permission_result " + ("allow" if decided["outcome"] == "run" else "deny"))
    found.append("chunk")
    if "decision" not in decided:
        found.append(f"error {code}")
    return [*found, f"call_end {code or 'completed'}"]


def outlook(policy: Json, decided: Json, arguments: Json, way: str) -> Json:
    """The result of a dry run, which has no effect."""
    code, text = reply(decided, arguments, way)
    nothing: Json = {"audit": [], "events": [], "asked": 0, "ran": []}
    if "decision" not in decided:
        return {"would": "refuse", "code": code, "text": text, **nothing}
    if decided.get("asked"):
        return {"would": "ask", "code": None, "text": None, **nothing}
    would = {"denied": "deny"}.get(decided["outcome"], decided["outcome"])
    return {"would": would, "code": None, "text": text if would == "deny" else None, **nothing}


def expected(policy: Json, arguments: Json, way: str) -> Json:
    """The row of a case."""
    decided = decide(policy, arguments, way)
    if way == "check":
        return outlook(policy, decided, arguments, way)
    ends = [decided]
    if "answer" in WAYS[way]:
        ends.append({**answered(decided, WAYS[way]["answer"], "resume"), "resumed": True})
    replies = [reply(end, arguments, way) for end in ends]
    return {
        "code": replies[-1][0],
        "text": replies[-1][1],
        "audit": [record(end, way) for end in ends if "decision" in end],
        "events": [event for end, (code, _) in zip(ends, replies, strict=True) for event in events(end, code)],
        "asked": sum(bool(end.get("asked")) for end in ends),
        "ran": [end["about"] for end in ends if end["outcome"] == "run"],
    }


def rows() -> Iterator[Json]:
    """Every case that can be expressed."""
    for way in WAYS:
        for policy, rules in POLICIES.items():
            for name, arguments in ARGUMENTS.items():
                if cannot_express(rules, arguments, way) is None:
                    yield {"way": way, "policy": policy, "arguments": name, "expected": expected(rules, arguments, way)}


def table() -> str:
    """The text of the file: one line for each policy, spelling of the arguments, result and row; rows share results."""

    def line(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    results: dict[str, str] = {}
    cases: list[str] = []
    for row in rows():
        number = results.setdefault(line(row["expected"]), str(len(results)))
        cases.append(line({**row, "expected": number}))
    sections = {
        "policies": [f"{line(name)}: {line(policy)}" for name, policy in POLICIES.items()],
        "arguments": [
            f"{line(name)}: {line({'sent': it['sent'], 'repair': it['repair']})}" for name, it in ARGUMENTS.items()
        ],
        "results": [f'"{number}": {result}' for result, number in results.items()],
    }
    blocks = [f'"{name}": {{\n{JOINT.join(lines)}\n}}' for name, lines in sections.items()]
    blocks.append(f'"rows": [\n{JOINT.join(cases)}\n]')
    return f"{{\n{JOINT.join(blocks)}\n}}\n"


JOINT = ",\n"
FILE = Path(__file__).with_name("call_cases.json")

if __name__ == "__main__":
    FILE.write_text(table(), encoding="utf-8")
