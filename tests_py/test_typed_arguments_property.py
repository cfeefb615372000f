"""For any signature and any values: a tool gets what pydantic's `validate_call` gives for the same JSON."""

# Types are made at run time here, where no type checker can follow.
# mypy: disable-error-code="index, misc, valid-type"

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import ipaddress
import itertools
import pathlib
import typing
import uuid
from typing import Any, Literal, NamedTuple, Optional, Union

import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from toolcrib import Toolkit

pytestmark = pytest.mark.timeout(1800)

Typed = tuple[Any, st.SearchStrategy[Any]]
COUNT = itertools.count()
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: datetime.timezone(datetime.timedelta(minutes=minutes)))


class Color(enum.Enum):
    """A color."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    """A level."""

    LOW = 1
    HIGH = 2


LEAVES: list[Typed] = [
    (int, st.integers(-(2**70), 2**70)),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (bool, st.booleans()),
    (str, st.text(max_size=8)),
    (datetime.date, st.dates()),
    (datetime.time, st.times(timezones=st.none() | OFFSETS)),
    (datetime.datetime, st.datetimes(timezones=st.none() | OFFSETS)),
    (datetime.timedelta, st.timedeltas(datetime.timedelta(-10_000), datetime.timedelta(10_000))),
    (decimal.Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=3)),
    (uuid.UUID, st.uuids()),
    (pathlib.Path, st.text("ab/.", max_size=6).map(pathlib.Path)),
    (bytes, st.text(max_size=4).map(str.encode)),
    (ipaddress.IPv4Address, st.ip_addresses(v=4)),
    (Color, st.sampled_from(Color)),
    (Level, st.sampled_from(Level)),
    (Literal["a", 1, None], st.sampled_from(["a", 1, None])),
]
KEYS: list[Typed] = [leaf for leaf in LEAVES if leaf[0] in (str, int, datetime.date, uuid.UUID, Color)]


@st.composite
def records(draw: st.DrawFn, inner: st.SearchStrategy[Typed]) -> Typed:
    """A class with fields, some of them with a default."""
    members = draw(st.lists(inner, min_size=1, max_size=3))
    names = [f"f{index}" for index in range(len(members))]
    kind = draw(st.sampled_from(["dataclass", "model", "typed dict", "named tuple"]))
    name = f"Record{next(COUNT)}"
    types = [(field, annotation) for field, (annotation, _) in zip(names, members, strict=True)]
    parts = st.fixed_dictionaries({field: values for field, (_, values) in zip(names, members, strict=True)})
    if kind == "dataclass":
        made: Any = dataclasses.make_dataclass(name, types)
        return made, parts.map(lambda fields: made(**fields))
    if kind == "model":
        fields: dict[str, Any] = {field: (annotation, ...) for field, annotation in types}
        model = pydantic.create_model(name, **fields)
        return model, parts.map(lambda fields: model(**fields))
    if kind == "typed dict":
        typed_dict: Any = TypedDict
        return typed_dict(name, dict(types)), parts
    row: Any = NamedTuple(name, types)
    return row, parts.map(lambda fields: row(**fields))


def containers(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    """What a type can be part of."""
    hashable = st.sampled_from(KEYS)
    return st.one_of(
        inner.map(lambda it: (list[it[0]], st.lists(it[1], max_size=3))),
        inner.map(lambda it: (tuple[it[0], ...], st.lists(it[1], max_size=3).map(tuple))),
        st.tuples(inner, inner).map(lambda two: (tuple[two[0][0], two[1][0]], st.tuples(two[0][1], two[1][1]))),
        hashable.map(lambda it: (set[it[0]], st.sets(it[1], max_size=3))),
        hashable.map(lambda it: (frozenset[it[0]], st.frozensets(it[1], max_size=3))),
        hashable.map(lambda it: (collections.deque[it[0]], st.lists(it[1], max_size=3).map(collections.deque))),
        st.tuples(hashable, inner).map(
            lambda two: (dict[two[0][0], two[1][0]], st.dictionaries(two[0][1], two[1][1], max_size=3))
        ),
        inner.map(lambda it: (Optional[it[0]], st.none() | it[1])),
        records(inner),
    )


TYPES = st.recursive(st.sampled_from(LEAVES), containers, max_leaves=4)


@st.composite
def calls(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """The annotations of a function, and values of these types."""
    chosen = draw(st.lists(TYPES, min_size=1, max_size=3))
    names = ["a", "b", "c"][: len(chosen)]
    annotations = {name: annotation for name, (annotation, _) in zip(names, chosen, strict=True)}
    return annotations, {name: draw(values) for name, (_, values) in zip(names, chosen, strict=True)}


def function_of(annotations: dict[str, Any], got: list[dict[str, Any]]) -> Any:
    """A function of these parameters that keeps what it is called with."""
    namespace: dict[str, Any] = {"got": got}
    names = ", ".join(annotations)
    exec(f"def tool({names}):\n    got.append(dict({', '.join(f'{name}={name}' for name in annotations)}))", namespace)
    function = namespace["tool"]
    function.__annotations__ = dict(annotations)
    return function


def shape_of(value: Any) -> Any:
    """A value with the classes of its parts, so that 1, 1.0 and True differ."""
    if dataclasses.is_dataclass(value):
        return type(value), {field.name: shape_of(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, pydantic.BaseModel):
        return type(value), {name: shape_of(part) for name, part in value}
    if isinstance(value, dict):
        return type(value), {shape_of(key): shape_of(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, collections.deque)):
        return type(value), [shape_of(part) for part in value]
    if isinstance(value, (set, frozenset)):
        return type(value), {shape_of(part) for part in value}
    return type(value), value


@pytest.mark.property
@given(calls())
@settings(deadline=None, suppress_health_check=list(HealthCheck))
def test_a_tool_gets_what_validate_call_gives(call: tuple[dict[str, Any], dict[str, Any]]) -> None:
    annotations, values = call
    sent = to_jsonable_python(values, bytes_mode="utf8", timedelta_mode="iso8601")
    expected: list[dict[str, Any]] = []
    pydantic.validate_call(function_of(annotations, expected))(**sent)
    got: list[dict[str, Any]] = []
    toolkit = Toolkit(run_in="inline")
    toolkit.register_tool_function(function_of(annotations, got))

    response = toolkit.run("tool", **sent)

    assert response.ok, (annotations, sent, response.text)
    assert shape_of(got) == shape_of(expected), (annotations, sent)


@pytest.mark.property
@given(calls())
@settings(deadline=None, suppress_health_check=list(HealthCheck))
def test_the_objects_themselves_arrive(call: tuple[dict[str, Any], dict[str, Any]]) -> None:
    annotations, values = call
    got: list[dict[str, Any]] = []
    toolkit = Toolkit(run_in="inline")
    toolkit.register_tool_function(function_of(annotations, got))

    response = toolkit.run("tool", **values)

    assert response.ok, (annotations, values, response.text)
    assert shape_of(got) == shape_of([values]), (annotations, values)


UNIONS: list[tuple[Any, Any]] = [
    (Union[int, datetime.date], "2026-01-31"),
    (Union[int, datetime.date], 3),
    (Union[str, datetime.date], "2026-01-31"),
    (Union[datetime.date, str], "2026-01-31"),
    (Union[Color, int], "red"),
    (Union[Color, int], 3),
    (Union[list[int], dict[str, int]], {"a": 1}),
    (Union[list[datetime.date], None], ["2026-01-31"]),
    (typing.Union[float, bool], True),
    (typing.Union[int, float], 1.5),
]


@pytest.mark.parametrize(("annotation", "sent"), UNIONS, ids=str)
def test_unions_choose_as_pydantic_does(annotation: Any, sent: Any) -> None:
    expected: list[dict[str, Any]] = []
    pydantic.validate_call(function_of({"a": annotation}, expected))(a=sent)
    got: list[dict[str, Any]] = []
    toolkit = Toolkit(run_in="inline")
    toolkit.register_tool_function(function_of({"a": annotation}, got))

    toolkit.run("tool", a=sent)

    assert shape_of(got) == shape_of(expected)
