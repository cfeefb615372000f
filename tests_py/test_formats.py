"""Formats of strings: what a tool accepts for an annotation, and for a schema that was supplied."""

import datetime as dt
import ipaddress
import re
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AnyUrl, TypeAdapter, ValidationError

from toolcrib import Toolkit

ANNOTATIONS: list[Any] = [
    dt.date,
    dt.datetime,
    dt.time,
    dt.timedelta,
    uuid.UUID,
    AnyUrl,
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
]
PARTS = [
    "2026-01-01",
    "2024-02-29",
    "2026-02-30",
    "T",
    " ",
    "_",
    "10:00",
    "10:00:00",
    ":30",
    "25:00",
    ".5",
    ",25",
    "Z",
    "+02:00",
    "-0130",
    "P",
    "1D",
    "T2H",
    "1 day",
    ", ",
    "3 days",
    "-",
    "+",
    "90",
    "1.5",
    "urn:uuid:",
    "{",
    "}",
    "2eb8aa08-aa98-11ea-b4aa-73b441d16380",
    "2eb8aa08aa9811eab4aa73b441d16380",
    "http:",
    "//",
    "example.com",
    "/a b",
    "mailto:",
    "a@b.c",
    "::1",
    "fe80::1",
    "%eth0",
    "192.168.0.1",
    "0",
    "x",
]


def kit_of(annotation: Any) -> Toolkit:
    def tool(value: Any) -> str:
        return "ran"

    tool.__annotations__["value"] = annotation
    toolkit = Toolkit(run_in="inline")
    toolkit.register_tool_function(tool)
    return toolkit


def given_for(annotation: Any, text: str) -> Any:
    """The value that a tool with this annotation gets for a text, or the text of the refusal."""
    values: list[Any] = []

    def tool(value: Any) -> None:
        values.append(value)

    tool.__annotations__["value"] = annotation
    toolkit = Toolkit(run_in="inline")
    toolkit.register_tool_function(tool)
    response = toolkit.run("tool", value=text)
    return values[0] if values else response.text


def is_number(text: str) -> bool:
    """True for a number, which is not a moment: it could count seconds or milliseconds, or be a date without dashes."""
    return re.fullmatch(r"[-+]?[0-9.]+", text) is not None


MOMENTS = [dt.date, dt.datetime, dt.time, dt.timedelta]
MARKS = st.sampled_from([*"0123459:.,-+ PYMWDTHSdaysZ", "day", "days", ":30", "00", "59", "2026-01-31"])
KITS = [kit_of(annotation) for annotation in ANNOTATIONS]


@given(index=st.integers(0, len(ANNOTATIONS) - 1), parts=st.lists(st.sampled_from(PARTS), min_size=1, max_size=4))
def test_no_text_is_refused_that_pydantic_accepts(index: int, parts: list[str]) -> None:
    text = "".join(parts)
    try:
        TypeAdapter(ANNOTATIONS[index]).validate_python(text)
    except ValidationError:
        return
    if ANNOTATIONS[index] in MOMENTS and is_number(text):
        return

    response = KITS[index].run("tool", value=text)

    assert response.code is None, (ANNOTATIONS[index], text, response.text)


@given(annotation=st.sampled_from(MOMENTS), text=st.lists(MARKS, min_size=1, max_size=9).map("".join))
def test_a_moment_is_the_one_that_pydantic_reads(annotation: Any, text: str) -> None:
    try:
        expected = TypeAdapter(annotation).validate_python(text)
    except ValidationError:
        return
    if is_number(text):
        return

    assert given_for(annotation, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":30:30", dt.timedelta(minutes=30, seconds=30)),
        ("-:30:30", -dt.timedelta(minutes=30, seconds=30)),
        ("1d:30:30", dt.timedelta(days=1, minutes=30, seconds=30)),
        ("1 day, :30:30", dt.timedelta(days=1, minutes=30, seconds=30)),
    ],
)
def test_a_duration_may_have_no_hours(text: str, expected: dt.timedelta) -> None:
    assert given_for(dt.timedelta, text) == expected


@pytest.mark.parametrize(
    ("annotation", "text", "expected"),
    [
        (dt.date, "tomorrow", "a date (YYYY-MM-DD)"),
        (dt.datetime, "now", "a date and time (YYYY-MM-DDThh:mm:ssZ)"),
        (dt.time, "noon", "a time (hh:mm:ssZ)"),
        (dt.timedelta, "soon", "a duration (P1DT2H30M)"),
        (uuid.UUID, "7", "a UUID"),
        (AnyUrl, "not a url", "a URI (https://example.com/path)"),
        (list[ipaddress.IPv4Address], ["1.2.3"], "an IPv4 address"),
    ],
)
def test_a_text_of_another_format_is_refused_with_its_path(annotation: Any, text: Any, expected: str) -> None:
    response = kit_of(annotation).run("tool", value=text)

    assert response.code == "invalid_arguments"
    at = "value[0]" if isinstance(text, list) else "value"
    shown = text[0] if isinstance(text, list) else text
    assert response.text.splitlines()[1] == f'- {at}: expected {expected}, got "{shown}" (a string)'


@pytest.mark.parametrize(
    ("name", "text", "is_valid"),
    [
        ("date-time", "2026-01-01T10:00:00Z", True),
        ("date-time", "2026-01-01 10:00", False),
        ("uuid", "2eb8aa08aa9811eab4aa73b441d16380", False),
        ("email", "ann@example.com", True),
        ("email", "ann", False),
        ("my-own", "anything", True),
    ],
)
def test_a_supplied_schema_follows_json_schema(name: str, text: str, is_valid: bool) -> None:
    parameters = {"type": "object", "properties": {"value": {"type": "string", "format": name}}, "required": ["value"]}
    function = {"name": "tool", "description": "", "parameters": parameters}
    toolkit = Toolkit(run_in="inline")
    toolkit.register_tool_function(
        lambda value: value, func_name="tool", json_schema={"type": "function", "function": function}
    )

    response = toolkit.run("tool", value=text)

    assert (response.code is None) is is_valid
