"""ArtifactFlow's calls in text: the cases that its own parser was run on, and the hazards."""

import json
from pathlib import Path
from typing import Any

import pytest

import toolcrib
from toolcrib.compat.artifactflow import ToolCall, XMLToolCallParser, parse_tool_calls

CASES = json.loads((Path(__file__).parent.parent / "tests" / "data" / "xml_cases.json").read_text(encoding="utf-8"))
STRICT = [case for case in CASES if not case["id"].startswith("fb_")]
FALLBACK = [case for case in CASES if case["id"].startswith("fb_")]


def plain(calls: list[ToolCall]) -> list[dict[str, Any]]:
    return [{"name": call.name, "params": call.params} for call in calls]


def same(one: Any, other: Any) -> bool:
    """Compare as JSON does: 1 is neither 1.0 nor true."""
    return json.dumps(one) == json.dumps(other)


@pytest.mark.parametrize("case", STRICT, ids=lambda case: case["id"])
def test_a_strict_case_is_read_with_the_fallback_and_without(case: dict[str, Any]) -> None:
    assert same(plain(parse_tool_calls(case["text"])), case["calls"])
    assert same(plain(parse_tool_calls(case["text"], fallback=False)), case["calls"])


@pytest.mark.parametrize("case", FALLBACK, ids=lambda case: case["id"])
def test_the_fallback_parses_text_that_is_not_xml(case: dict[str, Any]) -> None:
    assert same(plain(XMLToolCallParser.parse_tool_calls(case["text"])), case["calls"])


@pytest.mark.parametrize("case", FALLBACK, ids=lambda case: case["id"])
def test_without_the_fallback_what_is_no_xml_is_no_call(case: dict[str, Any]) -> None:
    is_xml = case["id"] == "fb_thinking_quote"

    assert same(plain(parse_tool_calls(case["text"], fallback=False)), case["calls"] if is_xml else [])


def test_without_the_fallback_no_call_lacks_a_part() -> None:
    text = "<tool_call><name>t</name><params><a>1</a></tool_call>"

    assert plain(parse_tool_calls(text)) == [{"name": "t", "params": {}}]
    assert parse_tool_calls(text, fallback=False) == []


def test_a_call_knows_the_block_it_was_read_from() -> None:
    calls = parse_tool_calls("Well: <TOOL_CALL><name>a</name><params><n>007</n></params></TOOL_CALL>")

    assert calls == [
        ToolCall("a", {"n": 7}, "<tool_call><name>a</name><params><n>007</n></params></tool_call>"),
    ]
    assert ToolCall("a", {}).raw_text == ""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", ""),
        ("-7", -7),
        ("+5", 5),
        ("007", 7),
        ("1_000", 1000),
        ("1__0", "1__0"),
        ("1,000", "1,000"),
        ("- 3", "- 3"),
        ("٣٤", 34),
        ("²", "²"),
        ("2.", 2.0),
        (".e5", ".e5"),
        ("1_0.5_0e1_0", 105_000_000_000.0),
        ("２.５", 2.5),
        ("1e400", float("inf")),
        ("inf", "inf"),
        ("NaN", "NaN"),
        ("0x10", "0x10"),
        ("TRUE", True),
        ("null", "null"),
        ("1" * 4301, "1" * 4301),
    ],
)
def test_values_are_guessed_by_pythons_grammar(text: str, value: Any) -> None:
    (call,) = parse_tool_calls(f"<tool_call><name>t</name><params><a>{text}</a></params></tool_call>")

    assert call.params == {"a": value}
    assert type(call.params["a"]) is type(value)


def test_a_number_that_json_has_not_is_an_error_of_a_native_call() -> None:
    (call,) = toolcrib.parse_tool_calls(
        "<tool_call><name>t</name><params><a>1e400</a></params></tool_call>", compat=True
    )

    assert (call.name, call.arguments) == ("t", {})
    assert "not JSON" in (call.error or "")


@pytest.mark.parametrize("fallback", [True, False])
def test_no_entity_is_ever_expanded(fallback: bool) -> None:
    laughs = "".join(f'<!ENTITY l{n} "&l{n + 1};&l{n + 1};">' for n in range(100))
    declared = f'<!DOCTYPE a [{laughs}<!ENTITY b SYSTEM "file:///etc/passwd">]>'

    for prolog in (declared, f"</tool_call >{declared}"):
        calls = parse_tool_calls(
            f"<tool_call>{prolog}<name>t</name><params><a>&l0;&b;</a></params></tool_call>", fallback=fallback
        )

        assert plain(calls) == ([{"name": "t", "params": {"a": "&l0;&b;"}}] if fallback else [])


@pytest.mark.parametrize("fallback", [True, False])
def test_openers_without_an_end_are_one_piece_of_prose(fallback: bool) -> None:
    text = "<tool_call>" * 100_000
    parser = toolcrib.TextParser(compat=True, fallback=fallback)

    assert parser.feed(text) == []
    assert parser.finish() == [text]


def test_calls_of_any_length_and_number_are_read() -> None:
    long = f"<tool_call><name>t</name><params><a>{'x' * (1 << 21)}</a></params></tool_call>"
    deep = f"<tool_call><name>t</name><params>{'<a>' * 50_000}{'</a>' * 50_000}</params></tool_call>"

    calls = parse_tool_calls(long + deep + "<tool_call><name>t</name></tool_call>" * 200)

    assert [call.name for call in calls] == ["t"] * 202


def test_tags_that_are_never_closed_take_linear_work() -> None:
    tags = "".join(f"<a{n % 7}>" for n in range(50_000))

    (call,) = parse_tool_calls(f"<tool_call><name>t</name><params>&{tags}</params></tool_call>")

    assert call.params == {}


def test_a_lone_surrogate_is_replaced() -> None:
    (call,) = parse_tool_calls("<tool_call><name>a\ud800</name></tool_call>")

    assert call.name == "a\ufffd"


def test_a_message_may_come_in_pieces() -> None:
    text = "Well: <TOOL_CALL><name>a</name></Tool_Call> <tool_cal <tool_call><name>b</name></tool_call> <tool_call>c"
    parser = toolcrib.TextParser(compat=True)

    pieces = [piece for letter in text for piece in parser.feed(letter)] + parser.finish()

    assert [piece.name for piece in pieces if not isinstance(piece, str)] == ["a", "b"]
    assert "".join(piece for piece in pieces if isinstance(piece, str)) == "Well:  <tool_cal  <tool_call>c"
    assert parser.report == {
        "format": "xml",
        "why": "it was asked for",
        "at": None,
        "calls": 2,
        "passed_over": 0,
        "other_formats": 0,
        "stopped": None,
    }
