"""Tool calls in a model's text, parsed the way ArtifactFlow parses them.

Model output is untrusted. Each block is parsed inside a root element of its own, so that expat refuses a `DOCTYPE` in
it and there are no entity definitions to expand; external entities are never loaded. Every search goes through the
text once, so that the time grows in proportion to its length, also for floods of tags that are never closed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import toolcrib

__all__ = ["ToolCall", "XMLToolCallParser", "parse_tool_calls"]

OPEN, CLOSE = "<tool_call>", "</tool_call>"
OPENING = re.compile(OPEN, re.IGNORECASE | re.ASCII)
CLOSING = re.compile(CLOSE, re.IGNORECASE | re.ASCII)
PLAIN_TAG = re.compile(r"<(\w+)>")
PLAIN_CLOSING_TAG = re.compile(r"</(\w+)>")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass
class ToolCall:
    """A call: the tool's name, the parameters, and the block that they were parsed from."""

    name: str
    params: dict[str, Any]
    raw_text: str = ""


class XMLToolCallParser:
    """Find calls in text.

    The types of values are guessed: `true` and `false` become booleans, and anything that looks like a number becomes
    one, also a postal code. `toolcrib.TextParser` converts each value to the declared type of its parameter instead.
    """

    @staticmethod
    def parse_tool_calls(text: str, *, fallback: bool = True) -> list[ToolCall]:
        """Find the calls in a text and ignore everything around them. A block without a name is not a call.

        Args:
            text: The model's output.
            fallback: Whether a block that is not well-formed XML is searched for parameters with patterns, as
                ArtifactFlow does. Parameters may be lost: one with an attribute, for example, or all of them if
                `</params>` is missing. Without it such a block is ignored.
        """
        stream = CallStream(fallback)
        pieces = [*stream.feed(text), *stream.finish()]
        return [piece for piece in pieces if isinstance(piece, ToolCall)]


def parse_tool_calls(text: str, *, fallback: bool = True) -> list[ToolCall]:
    """Find the calls in a text; see `XMLToolCallParser.parse_tool_calls`."""
    return XMLToolCallParser.parse_tool_calls(text, fallback=fallback)


class CallStream:
    """Split a message that arrives in pieces into prose and calls.

    Args:
        fallback: As for `XMLToolCallParser.parse_tool_calls`.
    """

    def __init__(self, fallback: bool = True) -> None:
        self.fallback = fallback
        # The end of the text so far, which may be the beginning of the next tag.
        self.edge = ""
        # The opening tag of an unfinished block and the text after it, without the edge.
        self.block: list[str] = []

    def feed(self, text: str) -> list[str | ToolCall]:
        """Add the next piece of the message and return the prose and calls that are complete."""
        pieces: list[str | ToolCall] = []
        text = self.edge + LONE_SURROGATE.sub("\ufffd", text)
        start = 0
        while tag := (CLOSING if self.block else OPENING).search(text, start):
            before = text[start : tag.start()]
            if self.block:
                inner = "".join(self.block[1:]) + before
                self.block = []
                pieces += _parse_block(inner, self.fallback)
            else:
                _add_prose(pieces, before)
                self.block = [tag.group()]
            start = tag.end()
        end = _end_of_certain(text, start, CLOSE if self.block else OPEN)
        self.edge = text[end:]
        if self.block:
            self.block.append(text[start:end])
        else:
            _add_prose(pieces, text[start:end])
        return pieces

    def finish(self) -> list[str | ToolCall]:
        """End the message and return the rest of it. A block that is not closed is prose."""
        rest = "".join(self.block) + self.edge
        self.edge, self.block = "", []
        return [rest] if rest else []


class NativeCallStream:
    """Wrap a `CallStream` for `toolcrib.TextParser(compat=True)`, whose calls are `toolcrib.ToolCall` objects.

    Args:
        fallback: As for `XMLToolCallParser.parse_tool_calls`.
    """

    def __init__(self, fallback: bool) -> None:
        self.stream = CallStream(fallback)
        self.calls = 0
        self.is_finished = False

    def feed(self, text: str) -> list[str | toolcrib.ToolCall]:
        """Add the next piece of the message; after `finish`, the first piece of another one."""
        if self.is_finished:
            self.calls, self.is_finished = 0, False
        return self._converted(self.stream.feed(text))

    def finish(self) -> list[str | toolcrib.ToolCall]:
        """End the message."""
        self.is_finished = True
        return self._converted(self.stream.finish())

    @property
    def report(self) -> dict[str, Any]:
        """The same entries as `TextParser.report`."""
        report = {"format": "xml", "why": "it was asked for", "at": None, "calls": self.calls}
        return {**report, "passed_over": 0, "other_formats": 0, "stopped": None}

    def _converted(self, pieces: list[str | ToolCall]) -> list[str | toolcrib.ToolCall]:
        self.calls += sum(isinstance(piece, ToolCall) for piece in pieces)
        return [piece if isinstance(piece, str) else _native_call(piece) for piece in pieces]


def _native_call(call: ToolCall) -> toolcrib.ToolCall:
    try:
        return toolcrib.ToolCall(call.name, call.params, raw=call.raw_text, format="xml")
    except ValueError as error:
        # A number that is too large for a float, which has no form in JSON.
        return toolcrib.ToolCall(call.name, raw=call.raw_text, format="xml", error=str(error))


def _add_prose(pieces: list[str | ToolCall], text: str) -> None:
    last = pieces[-1] if pieces else None
    if text and isinstance(last, str):
        pieces[-1] = last + text
    elif text:
        pieces.append(text)


def _end_of_certain(text: str, start: int, tag: str) -> int:
    """Return where the end of a text may be the beginning of a tag; the length of the text if it cannot be."""
    edge = text.rfind("<", max(start, len(text) - len(tag) + 1))
    return edge if edge >= 0 and tag.startswith(text[edge:].lower()) else len(text)


def _parse_block(inner: str, fallback: bool) -> Iterator[ToolCall]:
    try:
        parsed = _parse_xml(inner)
    except ElementTree.ParseError:
        parsed = _search(inner) if fallback else None
    if parsed is not None:
        yield ToolCall(*parsed, f"{OPEN}{inner}{CLOSE}")


def _parse_xml(inner: str) -> tuple[str, dict[str, Any]] | None:
    root = ElementTree.fromstring(f"{OPEN}{inner}{CLOSE}")
    name = (root.findtext("name") or "").strip()
    params = root.find("params")
    return (name, {param.tag: _value(param) for param in (() if params is None else params)}) if name else None


def _value(param: ElementTree.Element) -> Any:
    """Convert the text of an element, or give the list of its children's texts."""
    if len(param):
        return [_convert((child.text or "").strip()) for child in param]
    return _convert((param.text or "").strip())


def _search(inner: str) -> tuple[str, dict[str, Any]] | None:
    """Find the name and the parameters of a block that is not well-formed."""
    name = _between(inner, "<name>", "</name>")
    if name is None:
        return None
    params = _between(inner, "<params>", "</params>") or ""
    return name.strip(), {tag: _searched_value(content) for tag, content in _pairs(params)}


def _searched_value(content: str) -> Any:
    if PLAIN_TAG.search(content):
        return [_searched_text(item) for _, item in _pairs(content)]
    return _searched_text(content)


def _searched_text(content: str) -> Any:
    """Convert the first CDATA section as it is, or else the stripped text."""
    data = _between(content, "<![CDATA[", "]]>")
    return _convert(content.strip() if data is None else data)


def _between(text: str, opening: str, closing: str) -> str | None:
    _, found, rest = text.partition(opening)
    inside, closed, _ = rest.partition(closing)
    return inside if found and closed else None


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Pair each plain tag with the next closing tag of its name and skip the tags in between.

    The closing tags are collected first: a pattern with a back reference would search to the end for every open tag.
    """
    closings: dict[str, list[int]] = {}
    for closing in PLAIN_CLOSING_TAG.finditer(text):
        closings.setdefault(closing[1], []).append(closing.start())
    after = 0
    for opening in PLAIN_TAG.finditer(text):
        places = closings.get(opening[1], [])
        index = bisect_left(places, opening.end())
        if opening.start() >= after and index < len(places):
            yield opening[1], text[opening.end() : places[index]]
            after = places[index] + len(opening[1]) + len("</>")


def _convert(text: str) -> Any:
    """Guess the type of a text: a boolean, a number in Python's notation, or text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text) if "." in text or "e" in text.lower() else int(text)
    except ValueError:
        return text
