"""For any annotated function and any arguments: a call in a dialect gives the tool what a plain call gives it."""

from __future__ import annotations

import asyncio
import enum
import json
import types
from dataclasses import dataclass
from typing import Any, Literal, Optional, TypedDict, Union

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolcrib import Toolkit

pytestmark = pytest.mark.timeout(1800)

# An annotation, and values of it as JSON has them.
Typed = tuple[Any, st.SearchStrategy[Any]]

TEXT = st.text(max_size=4) | st.sampled_from(["null", "1", '{"a": 1}', "choice"])
NAMES = ["a", "b", "value", "key", "choice"]


class Level(enum.Enum):
    LOW = 1
    HIGH = "high"


class Movie(TypedDict, total=False):
    title: str
    ratings: dict[str, int]


@dataclass
class Point:
    x: int
    label: Optional[str] = "here"


class Tree(TypedDict):
    name: str
    children: list[Tree]


TREES: st.SearchStrategy[Any] = st.recursive(
    st.builds(lambda name: {"name": name, "children": []}, TEXT),
    lambda inner: st.builds(lambda name, it: {"name": name, "children": it}, TEXT, st.lists(inner, max_size=2)),
    max_leaves=6,
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)

LEAVES: list[Typed] = [
    (str, TEXT),
    (int, st.integers(-99, 99)),
    (float, st.sampled_from([0.5, -2.25])),
    (bool, st.booleans()),
    (Any, ANYTHING),
    (dict, st.dictionaries(TEXT, ANYTHING, max_size=2)),
    (Literal["a", 1, None], st.sampled_from(["a", 1, None])),
    (Level, st.sampled_from([1, "high"])),
    (Movie, st.fixed_dictionaries({}, optional={"title": TEXT, "ratings": st.dictionaries(TEXT, st.integers(0, 9))})),
    (Point, st.fixed_dictionaries({"x": st.integers(0, 9)}, optional={"label": st.none() | TEXT})),
    (Tree, TREES),
]


def larger(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    """Types that are made of others."""
    pair = st.tuples(inner, inner)
    alias = types.GenericAlias
    return st.one_of(
        inner.map(lambda it: (alias(list, (it[0],)), st.lists(it[1], max_size=2))),
        inner.map(lambda it: (alias(dict, (str, it[0])), st.dictionaries(TEXT, it[1], max_size=2))),
        inner.map(lambda it: (Optional[it[0]], st.none() | it[1])),
        pair.map(lambda it: (alias(tuple, (it[0][0], it[1][0])), st.tuples(it[0][1], it[1][1]).map(list))),
        pair.map(lambda it: (Union[it[0][0], it[1][0]], it[0][1] | it[1][1])),
    )


TYPES = st.recursive(st.sampled_from(LEAVES), larger, max_leaves=4)


@st.composite
def tools(draw: st.DrawFn) -> tuple[dict[str, tuple[Any, bool]], list[dict[str, Any]]]:
    """Parameters, with whether they have a default, and arguments for them."""
    parameters: dict[str, tuple[Any, bool]] = {}
    values: dict[str, st.SearchStrategy[Any]] = {}
    for name in NAMES[: draw(st.integers(1, 4))]:
        annotation, fitting = draw(TYPES)
        parameters[name] = (annotation, draw(st.booleans()))
        values[name] = fitting
    required = {name: values[name] for name, (_, has_default) in parameters.items() if not has_default}
    optional = {name: values[name] for name, (_, has_default) in parameters.items() if has_default}
    return parameters, [draw(st.fixed_dictionaries(required, optional=optional)) for _ in range(3)]


def registered(parameters: dict[str, tuple[Any, bool]]) -> tuple[Toolkit, list[Any]]:
    """A toolkit with a tool of these parameters, which notes what it gets."""
    seen: list[Any] = []
    ordered = sorted(parameters.items(), key=lambda it: it[1][1])
    signature = ", ".join(f"{name}=DEFAULT" if has_default else name for name, (_, has_default) in ordered)
    body = ", ".join(f"{name!r}: {name}" for name in parameters)
    scope: dict[str, Any] = {"DEFAULT": "a default", "seen": seen}
    exec(f"def tool({signature}):\n    seen.append({{{body}}})", scope)
    function: types.FunctionType = scope["tool"]
    function.__annotations__ = {name: annotation for name, (annotation, _) in parameters.items()}
    toolkit = Toolkit(arguments="check")
    toolkit.register_tool_function(function, run_in="inline")
    return toolkit, seen


async def received(toolkit: Toolkit, seen: list[Any], arguments: dict[str, Any], dialect: Any) -> Any:
    seen.clear()
    block = {"name": "tool", "input": arguments}
    responses = [response async for response in toolkit.call_tool_function(block, dialect=dialect)]
    assert responses[-1].code is None, (responses[-1].text, toolkit.schemas(dialect or "mcp")[0], arguments)
    return list(seen)


@pytest.mark.parametrize("dialect", ["openai", "openai_strict", "openai_responses", "anthropic", "gemini", "mcp"])
@given(drawn=tools())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_call_in_a_dialect_is_the_call(dialect: Any, drawn: tuple[Any, list[dict[str, Any]]]) -> None:
    parameters, samples = drawn
    toolkit, seen = registered(parameters)
    schemas = toolkit.schemas(dialect)

    async def compare() -> None:
        for arguments in samples:
            expected = await received(toolkit, seen, arguments, None)

            sent = json.loads(json.dumps(schemas.encode("tool", arguments)))
            got = await received(toolkit, seen, sent, dialect)

            assert got == expected, (schemas[0], sent)

    asyncio.run(compare())
