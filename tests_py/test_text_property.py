"""Properties of any text, however it is split."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from toolcrib import TextParser, ToolCall, parse_tool_calls

WORDS = [
    "<tool_call>",
    "</tool_call>",
    "<name>",
    "</name>",
    "t",
    "<params>",
    "</params>",
    "<a>",
    "</a>",
    "<![CDATA[",
    "]]>",
    "&",
    "<",
    "\n",
    "```\n",
    "`",
    "> ",
    "~~~",
    '{"name": "t", "arguments": {"a": 1}}',
    "<function=t>",
    "</function>",
    "<parameter=a>",
    "</parameter>",
    '<invoke name="t">',
    "</invoke>",
    "Action: t\n",
    "Action Input: ",
    "é☃",
    "<tool_call><name>t</name><params><a>1</a></params></tool_call>",
]
FORMATS = ["auto", "xml", "hermes", "function", "invoke", "fenced", "react"]

texts = st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=20).map("".join)


def joined(pieces: list[str | ToolCall]) -> list[Any]:
    """Calls in a form that can be compared, and neighbouring prose as one."""
    result: list[Any] = []
    for piece in pieces:
        if isinstance(piece, str) and result and isinstance(result[-1], str):
            result[-1] += piece
        else:
            result.append(piece if isinstance(piece, str) else (piece.name, piece.arguments, piece.error, piece.raw))
    return result


def read(parts: list[str], **options: Any) -> list[Any]:
    """Read a text that comes in parts."""
    parser = TextParser(**options)
    pieces = [piece for part in parts for piece in parser.feed(part)]
    return joined([*pieces, *parser.finish()])


@given(text=texts, format=st.sampled_from(FORMATS), data=st.data())
def test_any_cutting_gives_the_same(text: str, format: Any, data: st.DataObject) -> None:
    places = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    parts = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]

    whole = read([text], format=format)

    assert read(parts, format=format) == whole
    assert read(list(text), format=format) == whole


@given(text=texts, fallback=st.booleans())
def test_the_compatible_reading_does_not_mind_cuts_either(text: str, fallback: bool) -> None:
    assert read(list(text), compat=True, fallback=fallback) == read([text], compat=True, fallback=fallback)


@given(text=texts, format=st.sampled_from(FORMATS))
def test_a_call_with_an_error_has_no_arguments(text: str, format: Any) -> None:
    for call in parse_tool_calls(text, format):
        assert call.error is None or call.arguments == {}
