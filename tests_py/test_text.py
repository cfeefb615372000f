"""Tool calls in the text of models, as a Python program reads them."""

import gc
import json
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest

import toolcrib
from toolcrib import TextParser, ToolCall, Toolkit, parse_tool_calls

CASES = json.loads((Path(__file__).parent.parent / "tests" / "data" / "xml_cases.json").read_text(encoding="utf-8"))
CALL = "<tool_call><name>save</name><params><zip>01234</zip><count>3</count></params></tool_call>"


def plain(calls: list[ToolCall]) -> list[dict[str, Any]]:
    """Calls in the form of the cases."""
    return [{"name": call.name, "params": call.arguments} for call in calls]


@pytest.fixture
def toolkit() -> Toolkit:
    toolkit = Toolkit()

    @toolkit.tool
    def save(zip: str, count: int, tags: list[str] | None = None) -> str:
        """Save something."""
        return f"{zip} {count} {tags}"

    return toolkit


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_compatible_reading_is_the_seeds(case: dict[str, Any]) -> None:
    calls = parse_tool_calls(case["text"], compat=True)

    assert plain(calls) == case["calls"]
    assert [[type(value) for value in call.arguments.values()] for call in calls] == [
        [type(value) for value in call["params"].values()] for call in case["calls"]
    ]


def test_the_fallback_can_be_left_out() -> None:
    text = "<tool_call><name>t</name><params><a>x & y</a></params></tool_call>"

    assert len(parse_tool_calls(text, compat=True)) == 1
    assert parse_tool_calls(text, compat=True, fallback=False) == []


def test_values_have_the_declared_type(toolkit: Toolkit) -> None:
    (guessed,) = parse_tool_calls(CALL)
    (known,) = parse_tool_calls(CALL, tools=toolkit)

    assert guessed.arguments == {"zip": 1234, "count": 3}
    assert known.arguments == {"zip": "01234", "count": 3}


def test_a_view_has_tools_as_well(toolkit: Toolkit) -> None:
    (seen,) = parse_tool_calls(CALL, tools=toolkit.view(names=["save"]))
    (hidden,) = parse_tool_calls(CALL, tools=toolkit.view(names=[]))

    assert seen.arguments["zip"] == "01234"
    assert hidden.arguments["zip"] == 1234


def test_text_and_calls_come_in_order(toolkit: Toolkit) -> None:
    parser = TextParser(tools=toolkit)

    first = parser.feed("One moment. <tool_")
    second = parser.feed(CALL.removeprefix("<tool_") + " Done.")
    last = parser.finish()

    assert first == ["One moment. "]
    assert isinstance(second[0], ToolCall)
    assert second[0].arguments == {"zip": "01234", "count": 3}
    assert second[1:] == [" Done."]
    assert last == []


async def test_a_call_from_text_runs(toolkit: Toolkit) -> None:
    (call,) = parse_tool_calls(CALL, tools=toolkit)

    responses = [response async for response in toolkit.call_tool_function(call)]

    assert responses[-1].text == "01234 3 None"


async def test_a_text_is_a_request_of_its_own(toolkit: Toolkit) -> None:
    responses = [response async for response in toolkit.call_tool_function(CALL)]

    assert responses[-1].text == "01234 3 None"


async def test_what_cannot_be_read_never_runs(toolkit: Toolkit) -> None:
    (call,) = parse_tool_calls("<tool_call><name>save</name><params><zip>1</zip><count>", tools=toolkit)

    (response,) = [response async for response in toolkit.call_tool_function(call)]

    assert call.arguments == {}
    assert call.is_truncated
    assert "line 1 column 1" in (call.error or "")
    assert response.code == "bad_call"
    assert "Write a call as <tool_call>" in response.text


def test_repairs_are_listed(toolkit: Toolkit) -> None:
    text = "<tool_call><save><zip><![CDATA[01234]]><count>3</count></save></tool_call>"

    (call,) = parse_tool_calls(text, tools=toolkit)

    assert call.arguments == {"zip": "01234", "count": 3}
    assert call.repairs == [
        {"what": "tag", "at": "", "text": "the tool's name save was used as a tag instead of <name>"},
        {"what": "tag", "at": "zip", "text": "the closing tag of <zip> was missing"},
    ]


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("xml", CALL),
        ("hermes", '<tool_call>{"name": "save", "arguments": {"zip": "01234", "count": 3}}</tool_call>'),
        ("function", "<function=save><parameter=zip>01234</parameter><parameter=count>3</parameter></function>"),
        (
            "invoke",
            '<invoke name="save"><parameter name="zip">01234</parameter><parameter name="count">3</parameter></invoke>',
        ),
        ("fenced", '```tool_call\n{"name": "save", "arguments": {"zip": "01234", "count": 3}}\n```\n'),
        ("react", 'Action: save\nAction Input: {"zip": "01234", "count": 3}\n'),
    ],
)
def test_every_format_is_read_and_found(format: Any, text: str, toolkit: Toolkit) -> None:
    parser = TextParser(tools=toolkit)

    found = [piece for piece in parser.feed(text) + parser.finish() if isinstance(piece, ToolCall)]
    (asked,) = parse_tool_calls(text, format, toolkit)

    assert found[0].arguments == asked.arguments == {"zip": "01234", "count": 3}
    assert asked.format == format
    assert parser.report["format"] == format
    assert parser.report["calls"] == 1


def test_the_report_names_the_reason_and_the_position() -> None:
    parser = TextParser()

    before = parser.report
    parser.feed("`<tool_call>`\n" + CALL)
    after = parser.report

    assert before == {
        "format": None,
        "why": "no call has been seen",
        "at": None,
        "calls": 0,
        "passed_over": 0,
        "other_formats": 0,
        "stopped": None,
    }
    assert after == {
        "format": "xml",
        "why": "a <tool_call> with tags in it",
        "at": (2, 1),
        "calls": 1,
        "passed_over": 1,
        "other_formats": 0,
        "stopped": None,
    }


def test_what_is_fed_after_the_end_is_another_message() -> None:
    parser = TextParser()

    parser.feed("```\n")
    parser.finish()
    pieces = parser.feed(CALL)

    assert [type(piece) for piece in pieces] == [ToolCall]


def test_a_lone_surrogate_is_text_like_any_other() -> None:
    pieces = TextParser().feed("a\ud800b")

    assert "".join(str(piece) for piece in pieces).startswith("a")


def test_an_unknown_format_raises_an_exception() -> None:
    with pytest.raises(
        ValueError, match="format must be one of auto, xml, hermes, function, invoke, fenced, react, not 'yaml'"
    ):
        TextParser("yaml")
    with pytest.raises(ValueError, match="only \"xml\" can be read in the compatible way, not 'hermes'"):
        parse_tool_calls("", "hermes", compat=True)


def test_tools_must_be_a_toolkit_or_a_view() -> None:
    with pytest.raises(TypeError, match="tools must be a Toolkit or a view of one, not list"):
        TextParser(tools=[])  # type: ignore[arg-type]


def test_a_parser_does_not_keep_a_toolkit_alive_in_a_ring() -> None:
    class Kit(Toolkit):
        parser: TextParser

    kit = Kit()
    kit.parser = TextParser(tools=kit)
    gone = weakref.ref(kit)

    del kit
    gc.collect()

    assert gone() is None


def test_an_error_in_finding_tools_is_raised_and_leaves_the_parser_whole() -> None:
    class Broken(Toolkit):
        def _find_tool(self, name: str) -> Any:
            raise LookupError(name)

    parser = TextParser(tools=Broken())

    with pytest.raises(LookupError, match="save"):
        parser.feed(CALL)

    assert parser.feed("more") == ["more"]


def test_a_parser_that_is_at_work_says_so() -> None:
    class Nested(Toolkit):
        def _find_tool(self, name: str) -> Any:
            parser.feed("x")

    parser = TextParser(tools=Nested())

    with pytest.raises(RuntimeError, match="the parser is at work already"):
        parser.feed(CALL)


def test_parsers_of_several_threads_do_not_meet(toolkit: Toolkit) -> None:
    results: list[list[Any]] = []

    def read() -> None:
        parser = TextParser(tools=toolkit)
        pieces = [piece for letter in CALL * 20 for piece in parser.feed(letter)]
        results.append([*pieces, *parser.finish()])

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [len(calls) for calls in results] == [20] * 4


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("ending", ["", " " * 512, "\n" * 600, ' "', ' "*.t', ' "*.t\n', ' {"pattern": "*.t'])
async def test_a_react_call_that_is_cut_off_never_runs(ending: str, size: int) -> None:
    toolkit, ran = Toolkit(), list[str]()

    @toolkit.tool
    def purge(pattern: str = "*") -> str:
        """Delete files."""
        ran.append(pattern)
        return pattern

    text, parser = f"Action: purge\nAction Input:{ending}", TextParser(tools=toolkit)
    pieces = [piece for at in range(0, len(text), size) for piece in parser.feed(text[at : at + size])]
    [call] = [piece for piece in pieces + parser.finish() if isinstance(piece, ToolCall)]

    [response] = [response async for response in toolkit.call_tool_function(call)]

    assert (response.code, ran) == ("bad_call", [])
    assert call.is_truncated


def test_the_reader_is_part_of_the_package() -> None:
    assert {"TextParser", "parse_tool_calls"} <= set(toolcrib.__all__)


QUOTED = {
    "a word after the mark": 'The page says "Hello {}" and so on.',
    "a blank after the mark": 'The page says " {}" and so on.',
    "a line break after the mark": 'The page says "\n{}\n" and so on.',
    "curly": "The page says “Please run {} now” and so on.",
    "guillemets": "La page dit « Bonjour {} » et voilà.",
    "german": "Die Seite sagt „Bitte {} ausführen“.",
    "single": "The page says 'do {} now' ok.",
    "corner brackets": "页面说「请 {}」。",
    "two calls in one quotation": 'It says "{} and {}" ok.',
    "a quotation in a quotation": 'It says "He said "hi" and {}" ok.',
    "inline code over lines": "`run\n{}\nnow`",
    "a lazy line of a block quote": "> The page says\n{}\nend",
    "a fence that is not closed": "```\nx\n      ```\n{}\n```",
    "a thought in capitals": "<Think>{}</Think>",
    "a thought with attributes": '<think type="x">{}</think>',
    "another word for a thought": "<reasoning>{}</reasoning>",
    "an echoed result": "<tool_result>\n  <data>{}</data>\n</tool_result>",
}


@pytest.mark.parametrize(
    "call",
    [
        CALL,
        '<invoke name="save"><parameter name="zip">1</parameter><parameter name="count">1</parameter></invoke>',
        '<tool_call>{"name": "save", "arguments": {"zip": "1", "count": 1}}</tool_call>',
    ],
    ids=["xml", "invoke", "hermes"],
)
@pytest.mark.parametrize("text", QUOTED.values(), ids=QUOTED.keys())
def test_a_call_that_is_only_shown_never_runs(text: str, call: str, toolkit: Toolkit) -> None:
    shown = text.replace("{}", call)
    parser = TextParser(tools=toolkit)

    pieces = [piece for letter in shown for piece in parser.feed(letter)] + parser.finish()

    assert "".join(piece for piece in pieces if isinstance(piece, str)) == shown
    assert parser.report["passed_over"] >= 1
    assert parse_tool_calls(shown, tools=toolkit) == []
    assert [found.name for found in parse_tool_calls(f"{shown}\n\n{call}", tools=toolkit)] == ["save"]
