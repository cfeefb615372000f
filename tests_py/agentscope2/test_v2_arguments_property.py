"""Arguments are parsed as by AgentScope, whatever the model has sent."""

import json
from typing import Any

import pytest
from agentscope.tool._toolkit import _json_loads_with_repair
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.compat.agentscope2.arguments import fit_of, parser_of

TYPES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "description": "A number."},
        {"type": "number", "default": 0.5},
        {"type": "boolean"},
        {"type": "string", "enum": ["a", "b"]},
        {"type": "string", "minLength": 2},
        {"type": "array", "items": {"type": "integer"}},
        {"type": "array"},
        {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {},
    ]
)
NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats()
    | st.sampled_from(["a", "5", "", "true", "é", "\ud800"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["x", "y"]), inner, max_size=2),
    max_leaves=4,
)


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a schema of an object."""
    properties = draw(st.dictionaries(NAMES, TYPES, max_size=3))
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if draw(st.booleans()):
        schema["required"] = sorted(draw(st.sets(st.sampled_from(sorted(properties) or ["a"]))))
    if draw(st.integers(0, 5)) == 0:
        schema["additionalProperties"] = False
    return schema


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Draw what a model sends: mostly an object, at times with a piece missing or added."""
    sent = draw(st.dictionaries(NAMES | st.just("other"), VALUES, max_size=3) | VALUES)
    text = json.dumps(sent, ensure_ascii=draw(st.booleans()))
    cut = draw(st.integers(0, 12))
    if cut == 0:
        return text[: draw(st.integers(0, len(text)))]
    return text + draw(st.sampled_from([" ", "\n", "}", "x"])) if cut == 1 else text


def outcome(parse: Any, *arguments: Any) -> Any:
    """Return what a parser gives, or the class of what it raises."""
    try:
        return json.dumps(parse(*arguments), sort_keys=True)
    except Exception as error:
        return type(error)


@pytest.mark.timeout(600)
@given(schemas(), texts())
def test_any_text_is_parsed_as_by_agentscope(schema: dict[str, Any], text: str) -> None:
    assert outcome(parser_of(schema), text) == outcome(_json_loads_with_repair, text, schema)


PAIR = {
    "type": "object",
    "properties": {
        "a": {"anyOf": [{"type": "integer"}, {"type": "boolean"}, {"type": "null"}, {"type": "string"}]},
        "b": {"type": "string"},
    },
}

# Texts that are plain objects, and texts that differ from one in a detail.
TEXTS = [
    # The whole text.
    "", "{", "}", "{}", "{}{}", "{,}", "[]", "null", " {}", "{} ", "{ }", "{\n}", "\ufeff{}",
    # The members.
    '{"a": 1}', '{"a": 1, "b": "x"}', '{"a": 1,}', '{"a": 1 "b": "x"}', '{"a" 1}', '{"a": }', '{"a": 1}}', '{"a": 1]',
    '{"a": 1;}', '{"a": 1}\n```', '{"a": 1, // why\n"b": "x"}',
    # The spaces, also those that JSON does not have.
    '{"a":1}', '{ "a" : 1 , "b" : "x" }', '{"a":\t1,\r\n"b":"x"}', '{"a": 1\u00a0}', '{"a": 1\x0b}',
    # The names: twice, empty, with escapes, without quotes.
    '{"a": 1, "a": 2}', '{"a": 1, "a": "x", "b": "y"}', '{"": 1}', '{"a\\u0062": 1}', "{b: 1}", "{'b': 'x'}",
    # The numbers.
    '{"a": -0}', '{"a": 01}', '{"a": -}', '{"a": +1}', '{"a": 1.0}', '{"a": 1e3}', '{"a": 1_0}', '{"a": ١}',
    '{"a": NaN}', *(f'{{"a": {number}}}' for number in (10**18 - 1, 10**18, -(10**18), 2**63, 2**64, 10**30)),
    # The other words.
    '{"a": true}', '{"a": false}', '{"a": null}', '{"a": True}', '{"a": nul}', '{"a": truefalse}',
    # The strings.
    '{"b": ""}', '{"b": "}"}', '{"b": ","}', '{"b": "open}', '{"b": "\\""}', '{"b": "é"}', '{"b": "é\\n"}',
    '{"b": "a\tb"}', '{"b": "a\x7fb"}', '{"b": "\u2028"}', '{"b": "\\ud83d\\ude00"}', '{"b": "\\ud83d"}',
    '{"b": "\ud83d"}',
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_plain_objects_are_read_as_by_agentscope(text: str) -> None:
    assert outcome(parser_of(PAIR), text) == outcome(_json_loads_with_repair, text, PAIR)


def test_simple_arguments_need_no_repair() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        "required": ["a"],
    }

    fits = fit_of(schema)

    assert fits is not None
    assert fits({"a": 1, "b": None})
    assert not fits({"a": True})
    assert not fits({"b": "x"})
    assert not fits({"a": 1, "c": 2})
    assert not fits([1])
