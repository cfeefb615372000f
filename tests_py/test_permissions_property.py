"""For any signature, presets and arguments: no key of the model reaches a preset, and none a hidden parameter unless
arguments are passed on as they are.

Cases are made from a seed rather than by hypothesis, because there are many and each is quick. A failing case shows the
seed and everything that makes it up.
"""

import json
import os
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from toolcrib import Toolkit, ToolResponse

PROPERTY_CASES = int(os.environ.get("TOOLCRIB_PROPERTY_CASES", "500"))
CASES = max(20_000, 20 * PROPERTY_CASES)
CALLS_OF_A_TOOL = 25

NAMES = ["a", "b", "c", "self_", "token", "café", "名"]
STRANGE = ["A", "a ", "cafe\u0301", "ａ", "", "__class__", "rest", "more", "properties", "name"]


@dataclass(frozen=True)
class Sentinel:
    """A value that no model can send."""

    of: str


@dataclass
class Tool:
    """A function with what is known about it."""

    source: str
    named: dict[str, bool] = field(default_factory=dict)
    """The parameters that have names, and whether they have defaults."""
    positional_only: list[str] = field(default_factory=list)
    takes_rest: bool = False
    takes_more: bool = False
    shows_rest: bool = False
    shows_more: bool = False
    presets: dict[str, Sentinel] = field(default_factory=dict)
    schema: dict[str, Any] | None = None
    shown: list[str] = field(default_factory=list)
    is_open: bool = False


def some(chance: random.Random, names: list[str], probability: float = 0.5) -> list[str]:
    return [name for name in names if chance.random() < probability]


def make_tool(chance: random.Random) -> Tool:
    names = chance.sample(NAMES, chance.randint(0, 5))
    only, either = sorted(chance.choices(range(len(names) + 1), k=2))
    takes_rest, takes_more = chance.random() < 0.4, chance.random() < 0.4
    first_default = chance.randint(0, either)
    named = {name: first_default <= at < either for at, name in enumerate(names)}
    named.update({name: chance.random() < 0.5 for name in names[either:]})
    written = [name + (f"=defaults[{name!r}]" if named[name] else "") for name in names]
    parts = written[:only] + (["/"] if only else []) + written[only:either]
    if takes_rest:
        parts.append("*rest")
    elif either < len(names):
        parts.append("*")
    parts += written[either:] + (["**more"] if takes_more else [])
    tool = Tool(f"def tool({', '.join(parts)}): seen.append(locals())", named, names[:only], takes_rest, takes_more)
    tool.presets = {
        name: Sentinel(name)
        for name in some(chance, names, 0.3) + (some(chance, ["extra", "more"], 0.1) if takes_more else [])
    }
    if chance.random() < 0.5:
        tool.shows_rest = takes_rest and chance.random() < 0.7
        tool.shows_more = takes_more and "more" not in tool.presets and chance.random() < 0.7
        tool.shown = [name for name in names if name not in tool.presets]
    else:
        supply_schema(chance, tool)
    return tool


def supply_schema(chance: random.Random, tool: Tool) -> None:
    properties: dict[str, Any] = {name: {} for name in some(chance, [*tool.named, *tool.presets], 0.7)}
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    match chance.choice(["closed", "plain", "open", "schema", "pattern", "bare"]):
        case "closed":
            parameters["additionalProperties"] = False
        case "open":
            parameters["additionalProperties"] = True
        case "schema":
            parameters["additionalProperties"] = {"type": "integer"}
        case "pattern":
            parameters["patternProperties"] = {"": {}}
        case "bare" if not tool.presets:
            parameters = {"type": "object"}
    tool.schema = {"type": "function", "function": {"parameters": parameters}}
    tool.shown = [name for name in parameters.get("properties", {}) if name not in tool.presets]
    rest = parameters.get("additionalProperties", False)
    tool.is_open = "properties" not in parameters or "patternProperties" in parameters or rest is not False


def make_arguments(chance: random.Random, tool: Tool) -> dict[str, Any]:
    keys = some(chance, tool.shown, 0.9)
    if chance.random() < 0.5:
        variadic = {name for name, is_shown in (("rest", tool.shows_rest), ("more", tool.shows_more)) if is_shown}
        keys += [name for name in some(chance, [*NAMES, "extra", *STRANGE], 0.08) if name not in variadic]
    arguments: dict[str, Any] = {name: chance.randint(0, 99) for name in chance.sample(keys, len(keys))}
    if tool.shows_rest and chance.random() < 0.7:
        arguments["rest"] = [chance.randint(0, 99) for _ in range(chance.randint(0, 3))]
    if tool.shows_more and chance.random() < 0.7:
        arguments["more"] = dict.fromkeys(some(chance, [*NAMES, "extra", "x", *STRANGE], 0.1), 1)
    return arguments


def last_response(toolkit: Toolkit, arguments: dict[str, Any], as_text: bool) -> ToolResponse:
    """Step a call that never waits."""
    block = {"type": "tool_use", "id": "1", "name": "tool", "input": json.dumps(arguments) if as_text else arguments}
    steps = [toolkit.call("tool", **arguments), toolkit.call_tool_function(block).__anext__()]
    for other in steps[as_text + 1 :] + steps[:as_text]:
        other.close()
    try:
        steps[as_text].send(None)
    except StopIteration as stop:
        response: ToolResponse = stop.value
        return response
    raise AssertionError("an inline tool does not wait")


def register(toolkit: Toolkit, tool: Tool, seen: list[dict[str, Any]]) -> dict[str, Sentinel]:
    """Register a tool that appends the arguments of each call to `seen`, and return its defaults."""
    defaults = {name: Sentinel(f"default {name}") for name in tool.named}
    scope: dict[str, Any] = {"seen": seen, "defaults": defaults}
    exec(tool.source, scope)
    toolkit.register_tool_function(
        scope["tool"],
        preset_kwargs=dict(tool.presets),
        json_schema=tool.schema,
        include_var_positional=tool.shows_rest,
        include_var_keyword=tool.shows_more,
    )
    return defaults


def complaint(
    tool: Tool, mode: str, arguments: dict[str, Any], seen: list[dict[str, Any]], response: ToolResponse
) -> str | None:
    """The rule that a call has broken, if any."""
    # Names that are passed on as they are reach every parameter that has no preset.
    reachable = [name for name in tool.named if name not in tool.presets] if mode == "pass" else tool.shown
    more: dict[str, Any] = arguments.get("more", {}) if tool.shows_more else {}
    rest: list[Any] = arguments.get("rest", []) if tool.shows_rest else []
    variadic = {name for name, is_shown in (("rest", tool.shows_rest), ("more", tool.shows_more)) if is_shown}
    sent = {name: value for name, value in arguments.items() if name not in variadic}
    foreign = [name for name in sent if name not in reachable]
    extra = {name: value for name, value in tool.presets.items() if name not in tool.named}
    expected: dict[str, Any] = {}
    for name, has_default in tool.named.items():
        if name in tool.presets:
            expected[name] = tool.presets[name]
        elif name in reachable and name in sent:
            expected[name] = sent[name]
        elif has_default:
            expected[name] = Sentinel(f"default {name}")
    may_run = len(expected) == len(tool.named)
    may_run &= not foreign or tool.is_open or mode == "pass"
    may_run &= not any(name in tool.named or name in tool.presets for name in foreign)
    may_run &= tool.takes_more or not (extra or [name for name in foreign if name not in tool.named])
    may_run &= not any(name in tool.named or name in tool.presets for name in more)
    if not seen:
        return "it did not run" if may_run or response.ok else None
    if not may_run:
        return "it ran"
    if tool.takes_rest:
        expected["rest"] = tuple(rest)
    if tool.takes_more:
        expected["more"] = {**more, **{name: sent[name] for name in foreign}, **extra}
    return None if seen == [expected] else "it ran with something else"


@pytest.mark.hypothesis
@pytest.mark.timeout(120 + CASES // 200)
@pytest.mark.parametrize("mode", ["coerce", "check", "pass"])
def test_no_key_of_a_model_reaches_a_preset_or_a_hidden_parameter(mode: Any) -> None:
    ran = 0

    for seed in range(CASES // CALLS_OF_A_TOOL // 3 + 1):
        chance, seen = random.Random(f"{mode} {seed}"), list[dict[str, Any]]()
        tool = make_tool(chance)
        toolkit = Toolkit(arguments=mode, run_in="inline", repair="off")
        register(toolkit, tool, seen)
        for _ in range(CALLS_OF_A_TOOL):
            seen.clear()
            arguments = make_arguments(chance, tool)
            response = last_response(toolkit, arguments, as_text=chance.random() < 0.3)
            wrong = complaint(tool, mode, arguments, seen, response)
            assert wrong is None, f"{wrong}: seed {seed}, {tool}, {arguments} gave {seen} and {response}"
            ran += len(seen)

    assert ran > CASES // 12


def misspelt(chance: random.Random, name: str) -> str:
    return chance.choice([name.upper(), name.title(), "_" + name, name.replace("_", "-")])


@pytest.mark.hypothesis
@pytest.mark.timeout(120 + CASES // 200)
def test_no_name_is_repaired_into_a_preset_or_a_hidden_parameter() -> None:
    ran = 0

    for seed in range(CASES // CALLS_OF_A_TOOL // 3 + 1):
        chance, seen = random.Random(f"mended {seed}"), list[dict[str, Any]]()
        tool = make_tool(chance)
        toolkit = Toolkit(run_in="inline")
        defaults = register(toolkit, tool, seen)
        for _ in range(CALLS_OF_A_TOOL):
            seen.clear()
            arguments = make_arguments(chance, tool)
            arguments = {misspelt(chance, name): value for name, value in arguments.items()}
            last_response(toolkit, arguments, as_text=chance.random() < 0.3)
            for call in seen:
                kept = {name: call[name] for name in tool.named if name not in tool.shown}
                expected = {name: tool.presets.get(name, defaults[name]) for name in kept}
                assert kept == expected, f"seed {seed}, {tool}, {arguments} gave {call}"
            ran += len(seen)

    assert ran > CASES // 100
