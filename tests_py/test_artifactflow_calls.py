"""ArtifactFlow's calls in text: the cases that its own parser was run on, and the hazards."""

import json
from pathlib import Path
from typing import Any

import pytest

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
