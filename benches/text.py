"""Calls in text: an answer with five of them against `xml.etree` and `re`, and texts that are meant to hurt."""

from __future__ import annotations

import re
import time
import xml.etree.ElementTree as ET
from typing import Any

from benches.figures import Row, at_least, at_most
from benches.measure import Bench
from toolcrib import TextParser, Toolkit, parse_tool_calls

PROSE = "The next step is to look at what the others wrote about it, since that decides what is to be done. "
CODE = """def area(width: float, height: float) -> float:
    if width < 0 & height < 0:
        raise ValueError
    return width * height


"""
BLOCK = re.compile(r"<tool_call>(.*?)</tool_call>", re.IGNORECASE | re.DOTALL)
MEGABYTE = 1 << 20


def answer() -> str:
    """Write an answer of 10 KB with five calls, as a model would."""
    calls = [
        f"<tool_call>\n  <name>save</name>\n  <params>\n    <path><![CDATA[src/part_{number}.py]]></path>\n"
        f"    <content><![CDATA[{CODE * 8}]]></content>\n    <line><![CDATA[{number * 10}]]></line>\n"
        "    <tags>\n      <item><![CDATA[new]]></item>\n      <item><![CDATA[draft]]></item>\n    </tags>\n"
        "    <force><![CDATA[true]]></force>\n  </params>\n</tool_call>\n"
        for number in range(5)
    ]
    return "".join(f"{PROSE * 5}\n\n{call}\n" for call in calls)


def etree_calls(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Do what ArtifactFlow's parser is described to do, by the standard library."""
    calls = []
    for match in BLOCK.finditer(text):
        root = ET.fromstring(f"<tool_call>{match.group(1)}</tool_call>")
        name, params = root.find("name"), root.find("params")
        if name is None or not (name.text or "").strip():
            continue
        values = {child.tag: _value(child) for child in params} if params is not None else {}
        calls.append(((name.text or "").strip(), values))
    return calls


def _value(element: ET.Element) -> Any:
    return [_guess(child.text or "") for child in element] if len(element) else _guess(element.text or "")


def _guess(text: str) -> Any:
    text = text.strip()
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text) if "." in text or "e" in text.lower() else int(text)
    except ValueError:
        return text


def hostile(size: int) -> dict[str, str]:
    """Write texts of about so many bytes that are meant to take long.

    Args:
        size: How many bytes.

    Returns:
        The texts by what they try.
    """
    opening = "<tool_call><name>t</name><params>"
    closing = "</params></tool_call>"
    return {
        "nesting": opening + "<a>" * (size // 3) + closing,
        "open CDATA": opening + "<a><![CDATA[" + "x" * size,
        "entities": opening + "<!ENTITY a '&a;&a;'>&a;" * (size // 23) + closing,
        "`<` flood": "<" * size,
        "fake openers": "<tool_call>" * (size // 11),
        "attributes": opening + "<a" + " b='1'" * (size // 6) + ">" + closing,
    }


async def rows(bench: Bench) -> list[Row]:
    """Measure the reading of an answer, and how the time for hostile texts grows.

    Args:
        bench: Runs the measurement.

    Returns:
        Two rows.
    """
    text = answer()
    kit = Toolkit()

    @kit.tool
    def save(path: str, content: str, line: int, tags: list[str], force: bool) -> None:
        """Save a file."""

    expected = etree_calls(text)
    assert [(call.name, call.arguments) for call in parse_tool_calls(text)] == expected
    assert [call.name for call in parse_tool_calls(text, tools=kit)] == ["save"] * 5

    def etree(times: int) -> None:
        for _ in range(times):
            etree_calls(text)

    def own(times: int) -> None:
        for _ in range(times):
            parse_tool_calls(text)

    def declared(times: int) -> None:
        for _ in range(times):
            parse_tool_calls(text, tools=kit)

    readers = {"etree": etree, "own": own, "declared": declared}
    timings = await bench.interleave("10 KB with 5 calls", readers)
    worst = max(_growth(kind) for kind in hostile(1))
    slowest = max(_spent(each) for each in hostile(10 * MEGABYTE).values())
    return [
        Row(
            "read 5 calls in 10 KB of text",
            (
                at_least(timings.ratio("etree", "own"), 5, 8, "{}× faster than `xml.etree` and `re`"),
                at_least(timings.ratio("etree", "declared"), 4, 6, "{}× with values read by their declared types"),
            ),
        ),
        Row(
            "read 10 MB of hostile text (nesting, open CDATA, entities, `<` flood, …)",
            (
                at_most(worst, 2.5, 2.2, "{}× the time for 2× the text"),
                at_most(slowest * 1e3, 600, 100, "{} ms for the slowest"),
            ),
        ),
    ]


def _growth(kind: str) -> float:
    """Tell how many times as long twice the text takes."""
    return _spent(hostile(10 * MEGABYTE)[kind]) / max(_spent(hostile(5 * MEGABYTE)[kind]), 1e-6)


def _spent(text: str) -> float:
    """Tell how many seconds a text takes that comes in pieces of 64 KB, at best of five."""
    pieces = [text[start : start + 65536] for start in range(0, len(text), 65536)]
    best = float("inf")
    for _ in range(5):
        parser = TextParser()
        start = time.process_time()
        for piece in pieces:
            parser.feed(piece)
        parser.finish()
        best = min(best, time.process_time() - start)
    return best
