"""Arguments of a call: what a tool receives, and the error that a model gets."""

from __future__ import annotations

import asyncio
import json
from enum import IntEnum
from typing import Any, Literal, Optional, Union

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolcrib import Toolkit, ToolResponse

Schema = dict[str, Any]
Mode = Literal["coerce", "check", "pass"]
REFUSED = object()
HEAD = "Error: Invalid arguments for tool 'tool':"


class Crib:
    """A toolkit with one tool that keeps what it received."""

    def __init__(self, parameters: Schema, mode: Mode = "coerce", preset: dict[str, Any] | None = None) -> None:
        self.received: list[dict[str, Any]] = []

        def tool(**arguments: Any) -> str:
            self.received.append(arguments)
            return "done"

        function = {"name": "tool", "description": "Keep the arguments.", "parameters": parameters}
        self.toolkit = Toolkit(arguments=mode, run_in="inline")
        self.toolkit.register_tool_function(
            tool,
            func_name="tool",
            json_schema={"type": "function", "function": function},
            preset_kwargs=preset,
        )

    def call(self, arguments: Any) -> ToolResponse:
        """Send a block as a model does and return the last response."""

        async def last() -> ToolResponse:
            block = {"type": "tool_use", "id": "1", "name": "tool", "input": arguments}
            responses = [response async for response in self.toolkit.call_tool_function(block)]
            return responses[-1]

        return asyncio.run(last())

    def problems(self, arguments: Any) -> list[str]:
        """Send arguments that are refused and return the problem lines."""
        response = self.call(arguments)
        assert response.code == "invalid_arguments", response.text
        assert self.received == []
        head, *lines = response.text.split("\n")
        assert head == HEAD
        return lines


def of_x(schema: Schema | bool, **more: Any) -> Schema:
    return {"type": "object", "properties": {"x": schema}, "required": ["x"], **more}


def same(one: Any, other: Any) -> bool:
    """Compare values and their types, so that 1, 1.0 and True differ."""
    return type(one) is type(other) and json.dumps(one) == json.dumps(other)


INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
BOOLEAN = {"type": "boolean"}
STRING = {"type": "string"}
INTEGERS = {"type": "array", "items": INTEGER}
OPTIONAL_INTEGER = {"anyOf": [INTEGER, {"type": "null"}]}
OPTIONAL_STRING = {"anyOf": [STRING, {"type": "null"}]}

# Declared type, value, what "coerce" lets the tool receive, what "check" does.
TABLE = [
    (INTEGER, 5, 5, 5),
    (INTEGER, "42", 42, REFUSED),
    (INTEGER, " -7 ", -7, REFUSED),
    (INTEGER, "9" * 40, int("9" * 40), REFUSED),
    (INTEGER, 42.0, 42, 42.0),
    (INTEGER, 42.5, REFUSED, REFUSED),
    (INTEGER, True, REFUSED, REFUSED),
    (INTEGER, "4.0", REFUSED, REFUSED),
    (INTEGER, "٤", REFUSED, REFUSED),
    (INTEGER, None, REFUSED, REFUSED),
    (NUMBER, 1, 1, 1),
    (NUMBER, "1.5", 1.5, REFUSED),
    (NUMBER, "-3e2", -300.0, REFUSED),
    (NUMBER, "nan", REFUSED, REFUSED),
    (NUMBER, "1e999", REFUSED, REFUSED),
    (NUMBER, float("nan"), REFUSED, REFUSED),
    (NUMBER, float("inf"), REFUSED, REFUSED),
    (BOOLEAN, False, False, False),
    (BOOLEAN, "True", True, REFUSED),
    (BOOLEAN, "FALSE", False, REFUSED),
    (BOOLEAN, 1, True, REFUSED),
    (BOOLEAN, 0, False, REFUSED),
    (BOOLEAN, 2, REFUSED, REFUSED),
    (BOOLEAN, "yes", REFUSED, REFUSED),
    (STRING, "42", "42", "42"),
    (STRING, 42, "42", REFUSED),
    (STRING, 1.0, "1.0", REFUSED),
    (STRING, 1e16, "1e+16", REFUSED),
    (STRING, 1e-5, "1e-05", REFUSED),
    (STRING, True, "true", REFUSED),
    (STRING, None, REFUSED, REFUSED),
    (STRING, ["a"], REFUSED, REFUSED),
    (OPTIONAL_STRING, "null", "null", "null"),
    (OPTIONAL_STRING, "", "", ""),
    (OPTIONAL_INTEGER, None, None, None),
    (OPTIONAL_INTEGER, "null", None, REFUSED),
    (OPTIONAL_INTEGER, "", None, REFUSED),
    (OPTIONAL_INTEGER, "7", 7, REFUSED),
    (INTEGERS, [1, 2], [1, 2], [1, 2]),
    (INTEGERS, ["1", 2], [1, 2], REFUSED),
    (INTEGERS, '[1, "2"]', [1, 2], REFUSED),
    (INTEGERS, "{}", REFUSED, REFUSED),
    ({"type": "object"}, '{"a": 1}', {"a": 1}, REFUSED),
    ({"type": "object", "additionalProperties": INTEGER}, {"a": "1"}, {"a": 1}, REFUSED),
    ({"enum": [1, 2]}, "2", 2, REFUSED),
    ({"enum": ["1", "2"]}, 2, "2", REFUSED),
    ({"const": True}, "true", True, REFUSED),
    ({"anyOf": [INTEGER, STRING]}, "42", "42", "42"),
    ({"anyOf": [INTEGER, STRING]}, True, "true", REFUSED),
    ({"type": "string", "format": "email"}, "no address", REFUSED, REFUSED),
    ({"type": "string", "format": "email"}, "ann@example.com", "ann@example.com", "ann@example.com"),
    ({"type": "string", "format": "unknown"}, "anything", "anything", "anything"),
    ({}, object, object, object),
]


@pytest.mark.parametrize(("schema", "value", "coerced", "checked"), TABLE)
def test_a_value_arrives_by_its_declared_type_or_not_at_all(
    schema: Schema, value: Any, coerced: Any, checked: Any
) -> None:
    modes: list[tuple[Mode, Any]] = [("coerce", coerced), ("check", checked)]
    for mode, expected in modes:
        crib = Crib(of_x(schema), mode)

        response = crib.call({"x": value})

        if expected is REFUSED:
            assert (response.code, crib.received) == ("invalid_arguments", []), (mode, response.text)
        else:
            assert response.code is None, (mode, response.text)
            (received,) = crib.received
            assert received["x"] is value or same(received["x"], expected), (mode, received)


@pytest.mark.parametrize(("schema", "value"), [(schema, value) for schema, value, *_ in TABLE])
def test_mode_pass_hands_everything_on(schema: Schema, value: Any) -> None:
    crib = Crib(of_x(schema), "pass")

    crib.call({"x": value})

    assert crib.received[0]["x"] is value


def test_what_was_sent_is_never_changed() -> None:
    arguments = {"x": ["1", 2], "y": {"z": ["3"]}}
    before = json.dumps(arguments)
    crib = Crib(
        {
            "type": "object",
            "properties": {"x": INTEGERS, "y": {"type": "object", "additionalProperties": INTEGERS}},
        }
    )

    crib.call(arguments)

    assert crib.received == [{"x": [1, 2], "y": {"z": [3]}}]
    assert json.dumps(arguments) == before


ORDER: Schema = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "limit": {"type": "integer", "minimum": 1},
        "mode": {"enum": ["r", "w"]},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"price": {"type": "number"}, "name": {"type": "string"}},
                "required": ["name"],
            },
        },
        "tag": OPTIONAL_STRING,
    },
    "required": ["query"],
}


def test_every_problem_is_listed_with_its_path() -> None:
    arguments = {"limit": 0, "mode": "x", "items": [{"name": "a"}, {"price": "cheap"}, 3], "tag": [1], "lmit": 5}

    lines = Crib(ORDER).problems(arguments)

    assert lines == [
        "- lmit: unknown argument (did you mean limit? expected one of: query, limit, mode, items, tag)",
        "- query: expected a string, got nothing",
        "- limit: expected an integer >= 1, got 0 (an integer)",
        '- mode: expected one of "r", "w", got "x" (a string)',
        "- items[1].name: expected a string, got nothing",
        '- items[1].price: expected a number, got "cheap" (a string)',
        "- items[2]: expected an object with name, got 3 (an integer)",
        "- tag: expected a string or null, got [1] (an array)",
    ]


def test_an_unknown_name_is_refused_with_at_most_ten_known_ones() -> None:
    crib = Crib({"type": "object", "properties": {f"p{index}": {} for index in range(12)}})

    (line,) = crib.problems({"foo": 1})

    names = ", ".join(f"p{index}" for index in range(10))
    assert line == f"- foo: unknown argument (expected one of: {names}, … (2 more))"


def test_many_problems_are_counted() -> None:
    lines = Crib(of_x(INTEGERS), "check").problems({"x": ["a"] * 60})

    assert len(lines) == 51
    assert lines[-1] == "- and 10 more"


@pytest.mark.parametrize("mode", ["coerce", "check"])
def test_a_preset_can_be_neither_named_nor_overridden(mode: Mode) -> None:
    crib = Crib(of_x(INTEGER), mode, preset={"key": "secret"})

    lines = crib.problems({"x": 1, "key": "mine"})
    crib.call({"x": 1})

    assert lines == ["- key: unknown argument (expected one of: x)"]
    assert crib.received == [{"x": 1, "key": "secret"}]


@pytest.mark.parametrize("mode", ["coerce", "check"])
def test_a_preset_is_hidden_also_where_other_names_are_allowed(mode: Mode) -> None:
    crib = Crib(of_x(INTEGER, additionalProperties=True), mode, preset={"key": "secret"})

    (line,) = crib.problems({"x": 1, "key": "mine"})

    assert line.startswith("- key: unknown argument")
    assert "secret" not in line


def test_input_may_be_json_text() -> None:
    crib = Crib(of_x(INTEGER))

    crib.call('{"x": "42"}')

    assert crib.received == [{"x": 42}]


def search(
    query: str,
    limit: int = 10,
    mode: Literal["fast", "deep"] = "fast",
    tags: Optional[list[str]] = None,
    window: Union[int, str, None] = None,
) -> str:
    """Search for something.

    Args:
        query: What to search for.
        limit: How many results.
        mode: How hard to try.
        tags: Only these.
        window: A time.
    """
    return json.dumps([query, limit, mode, tags, window])


def test_a_signature_is_a_schema_too() -> None:
    toolkit = Toolkit(run_in="inline")
    toolkit.register_tool_function(search)

    good = asyncio.run(toolkit.call("search", query=5, limit="3", tags='["a"]', window="soon"))
    bad = asyncio.run(toolkit.call("search", limit="many", mode="slow"))

    assert json.loads(good.text) == ["5", 3, "fast", ["a"], "soon"]
    assert bad.text.split("\n") == [
        "Error: Invalid arguments for tool 'search':",
        "- query: expected a string, got nothing",
        '- limit: expected an integer, got "many" (a string)',
        '- mode: expected one of "fast", "deep", got "slow" (a string)',
    ]


class Level(IntEnum):
    LOW = 1


class Word(str):
    """A subclass of str that makes trouble when it is compared."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    def __hash__(self) -> int:
        return 7


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (INTEGER, Level.LOW),
        (STRING, Word("a")),
        ({"type": "string", "pattern": "^a"}, Word("a")),
        ({"enum": ["a"]}, Word("a")),
        (INTEGERS, (1, 2)),
        (STRING, "\ud800"),
        ({"type": "string", "maxLength": 1}, "\ud800"),
    ],
)
def test_subclasses_tuples_and_odd_text_are_what_they_look_like(schema: Schema, value: Any) -> None:
    crib = Crib(of_x(schema), "check")

    response = crib.call({"x": value})

    assert response.code is None, response.text
    assert crib.received[0]["x"] is value


def deep(depth: int, wrap: Any) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)
    return value


def cyclic() -> list[Any]:
    value: list[Any] = [1]
    value.append(value)
    return value


@pytest.mark.parametrize("mode", ["coerce", "check"])
@pytest.mark.parametrize(
    "value",
    [
        deep(100_000, lambda value: [value]),
        deep(100_000, lambda value: {"a": value}),
        cyclic(),
        {1: 2},
        {("a",): 2},
        {Word("a"): 1},
        "9" * 1_000_000,
        "[" * 1_000_000,
        int("9" * 4000) ** 50,
        "\ud800",
        float("nan"),
        object(),
        [object()],
        {"a": object()},
        b"bytes",
        {1, 2},
        "x\n- y: expected nothing, got everything\u202e",
    ],
    ids=lambda value: type(value).__name__,
)
def test_hostile_values_are_answered_in_bounds(mode: Mode, value: Any) -> None:
    recursive = {
        "anyOf": [
            {"type": "array", "items": {"$ref": "#/$defs/r"}},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/r"}},
        ]
    }
    schema = {"anyOf": [{"$ref": "#/$defs/r"}, {"type": "integer", "maximum": 5}]}
    crib = Crib(of_x(schema, **{"$defs": {"r": recursive}}), mode)

    lines = crib.problems({"x": value})

    assert 1 <= len(lines) <= 3
    assert all(len(line) < 700 and line.startswith("- ") for line in lines)


def test_a_deep_value_is_one_problem() -> None:
    lines = Crib(of_x(INTEGERS)).problems({"x": deep(100_000, lambda value: [value])})

    assert lines == ["- arguments: expected at most 128 levels of nesting, got more"]


def test_what_json_has_no_word_for_is_named_by_its_class() -> None:
    lines = Crib(of_x(INTEGER)).problems({"x": Crib(of_x(INTEGER))})

    assert lines == ["- x: expected an integer, got <Crib object>"]


def test_a_pattern_takes_linear_time() -> None:
    lines = Crib(of_x({"type": "string", "pattern": "^(a+)+$"})).problems({"x": "a" * 50_000 + "!"})

    assert len(lines) == 1


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 6),
    st.sampled_from([2**53, 2**63, -(2**70), 10**30]),
    st.sampled_from([0.0, 1.0, 2.5, -1.5, 1e300]),
    st.sampled_from(["", "a", "bb", "1", "é", "true"]),
)
KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=10,
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(lambda items, least: {"type": "array", "items": items, "minItems": least}, inner, st.integers(0, 2)),
        st.builds(
            lambda first, rest: {"prefixItems": first, "items": rest}, st.lists(inner, min_size=1, max_size=2), inner
        ),
        st.builds(lambda branches: {"anyOf": branches}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda branches: {"oneOf": branches}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda parts: {"allOf": parts}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda schema: {"not": schema}, inner),
        st.builds(
            lambda properties, required, rest: {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": rest,
            },
            st.dictionaries(KEYS, inner, max_size=3),
            st.lists(KEYS, max_size=2, unique=True),
            st.one_of(st.booleans(), inner),
        ),
        st.builds(lambda schema: {"type": "array", "contains": schema, "uniqueItems": True}, inner),
        st.builds(lambda schema: {"patternProperties": {"^a": schema}, "propertyNames": {"maxLength": 1}}, inner),
    )


SCHEMAS = st.recursive(
    st.one_of(
        st.builds(lambda name: {"type": name}, TYPES),
        st.builds(lambda names: {"type": names}, st.lists(TYPES, min_size=1, max_size=3, unique=True)),
        st.builds(
            lambda least, most: {"type": "string", "minLength": least, "maxLength": most},
            st.integers(0, 2),
            st.integers(0, 2),
        ),
        st.builds(lambda low: {"type": "integer", "minimum": low}, st.integers(-2, 3)),
        st.builds(lambda high: {"type": "number", "exclusiveMaximum": high}, st.sampled_from([0, 1.5, 2**53, 1e300])),
        st.builds(lambda members: {"enum": members}, st.lists(SCALARS, min_size=1, max_size=3)),
        st.builds(lambda member: {"const": member}, SCALARS),
        st.just({"pattern": "^[ab]*$"}),
        st.just({"multipleOf": 2}),
        st.just({"$ref": "#/$defs/tree"}),
        st.booleans(),
        st.just({}),
    ),
    containers,
    max_leaves=6,
)
TREE = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(schema=SCHEMAS, values=st.lists(VALUES, min_size=1, max_size=6))
def test_accepted_means_valid(schema: Any, values: list[Any]) -> None:
    parameters = of_x(schema, **{"$defs": {"tree": TREE}})
    oracle = jsonschema.Draft202012Validator(parameters)
    for value in values:
        crib = Crib(parameters, "check")

        response = crib.call({"x": value})

        assert (response.code is None) == oracle.is_valid({"x": value}), (schema, value, response.text)
