"""Strategies for annotations: what a parameter can be, alone and put together."""

# Types are made at run time here, where no type checker can follow.
# mypy: disable-error-code="index, misc, no-redef, valid-type"

from __future__ import annotations

import collections
import collections.abc
import datetime
import decimal
import fractions
import ipaddress
import itertools
import pathlib
import re
import typing
import uuid
from typing import Annotated, Any, Literal, NewType, Optional, TypeVar, Union

import annotated_types as at
from hypothesis import strategies as st
from pydantic import Field
from typing_extensions import LiteralString, Never, TypeAliasType, deprecated

from support.schema import foreign, models, records
from support.schema.records import Typed, small, text

NOTHING = st.none()
ALIASES = itertools.count()

# With a default of `None`, whatever they are.
PLAIN: list[Any] = [
    LiteralString,
    Never,
    typing.NoReturn,
    ipaddress.IPv6Network,
    collections.abc.Hashable,
    collections.deque,
    collections.Counter,
    collections.OrderedDict,
    typing.Iterable,
    typing.Iterator[int],
    re.Pattern,
    type[int],
    type[Union[int, models.Point]],
    type,
    models.Plain,
    models.Late,
    models.Right,
    models.Chain,
    models.Ring,
    models.Ring[int],
    models.Filled,
    models.Sequel,
    models.Cell,
    models.Knot,
    models.Open,
    models.Typed,
    models.Modes,
    models.Bits,
    models.Anything,
    models.Unlisted,
    models.Bare,
    models.OfPoint,
    models.OfColour,
    models.Painted,
    models.Many,
    models.ToPoint,
    models.ToColour,
    Literal["a", 1, True, None, models.Modes.READ],
    Literal["a", 2, "b"],
    Literal[b"a"],
    int | str | None,
    Optional[Annotated[Optional[int], at.Le(3)]],
    Annotated[Optional[models.Colour], Field(description="inner")],
    tuple[()],
]

SCALARS: list[Typed] = [
    (int, st.integers()),
    (str, text),
    # Deliberate difference: a default that is no JSON is left out.
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (bool, st.booleans()),
    (bytes, st.binary(max_size=3)),
    (None, st.none()),
    (Any, st.one_of(small, text, st.none())),
    (object, small),
    (complex, st.builds(complex, small, small)),
    (decimal.Decimal, st.decimals(allow_nan=False, places=2)),
    (fractions.Fraction, st.fractions(max_denominator=9)),
    (uuid.UUID, st.uuids()),
    (datetime.date, st.dates()),
    (datetime.time, st.times()),
    (datetime.datetime, st.datetimes(timezones=st.sampled_from([None, datetime.timezone.utc]))),
    (datetime.timedelta, st.timedeltas(datetime.timedelta(-800), datetime.timedelta(800))),
    (pathlib.Path, st.builds(pathlib.Path, st.just("/a"))),
    (re.Pattern[str], st.just(re.compile("a+"))),
    (ipaddress.IPv4Address, st.ip_addresses(v=4)),
    (typing.AnyStr, text),
    (models.Metres, small),
    (models.Colour, st.sampled_from(models.Colour)),
    (models.Size, st.sampled_from(models.Size)),
    (models.Mixed, st.sampled_from(models.Mixed)),
    (models.Word, st.sampled_from(models.Word)),
    (Literal["a"], st.just("a")),
    (Literal["a", "b", 1, None], st.just(1)),
    (Literal[models.Colour.RED, "x"], st.just(models.Colour.RED)),
    (models.Point, st.builds(models.Point, small)),
    (models.Child, st.builds(models.Child, small)),
    (models.Node, st.builds(models.Node, text)),
    (models.Left, st.builds(models.Left)),
    (models.Box, st.builds(models.Box, small)),
    (models.Movie, st.just({"name": "a", "tags": []})),
    (models.Loose, st.just({"b": "x"})),
    (models.Branch, st.just({"leaves": []})),
    (models.Closed, st.just({"a": 1})),
    (models.Functional, st.just({"a-b": 1})),
    (models.Place, st.builds(models.Place, st.floats(0, 1))),
    (models.Json, st.just({"a": [1]})),
    (models.Ids, st.lists(small, max_size=2)),
    (models.Named, st.builds(models.Point, small)),
    (models.Doubly, st.lists(small, max_size=2)),
    (models.T, small),
    (models.Chosen, small),
    (collections.abc.Callable[[int], str], st.just(str)),
    *[(annotation, NOTHING) for annotation in PLAIN],
]

# With these the whole signature is asked of pydantic.
FOREIGN: list[Typed] = [
    (foreign.Model, st.builds(foreign.Model, number=small)),
    *[(annotation, NOTHING) for annotation in foreign.FOREIGN],
]


def _list(inner: Typed) -> st.SearchStrategy[Typed]:
    annotation, values = inner
    made = st.lists(values, max_size=2)
    hashable = st.lists(small, max_size=3)
    return st.sampled_from(
        [
            (list[annotation], made),
            (typing.List[annotation], made),
            (collections.abc.Sequence[annotation], made.map(tuple)),
            (typing.MutableSequence[annotation], made),
            (typing.Iterable[annotation], made),
            (collections.abc.Generator[annotation, None, None], NOTHING),
            (collections.deque[annotation], made.map(collections.deque)),
            (tuple[annotation, ...], made.map(tuple)),
            (set[annotation], hashable.map(set)),
            (typing.FrozenSet[annotation], hashable.map(frozenset)),
            (typing.AbstractSet[annotation], hashable.map(frozenset)),
            (collections.abc.MutableSet[annotation], NOTHING),
            (collections.abc.Mapping[str, annotation], st.dictionaries(text, values, max_size=2)),
            (typing.MutableMapping[str, annotation], st.dictionaries(text, values, max_size=2)),
            (dict[str, annotation], st.dictionaries(text, values, max_size=2)),
            (dict[annotation, int], st.just({})),
            (collections.defaultdict[str, annotation], st.just(collections.defaultdict(int))),
            (typing.OrderedDict[str, annotation], st.just(collections.OrderedDict(b=1, a=2))),
            (collections.Counter[annotation], st.just(collections.Counter("ab"))),
            (Optional[annotation], st.one_of(st.none(), values)),
            (_or_none(annotation), st.one_of(st.none(), values)),
            (Annotated[annotation, object()], values),
            (NewType("Fresh", annotation), values),
            (TypeVar("Free", bound=annotation), values),
            (TypeVar("Either", annotation, int), values),
            (models.Box[annotation], NOTHING),
            (models.Ring[annotation], NOTHING),
            (models.Cell[annotation], NOTHING),
            (models.Label[annotation], NOTHING),
            (models.Drawer[annotation], NOTHING),
            (models.Slot[annotation], NOTHING),
            (models.Many[annotation], values),
            # Known difference: two aliases of one name may take each other's place.
            (TypeAliasType(f"Alias{next(ALIASES)}", annotation), values),
        ]
    )


def _or_none(annotation: Any) -> Any:
    try:
        return annotation | None
    except TypeError:
        return Optional[annotation]


def _several(inner: list[Typed]) -> st.SearchStrategy[Typed]:
    annotations = tuple(annotation for annotation, _ in inner)
    values = [value for _, value in inner]
    choices: list[Typed] = [
        (Union[annotations], st.one_of(values)),
        (tuple[annotations], st.tuples(*values)),
    ]
    if len(annotations) == 2:
        choices.append((dict[annotations], st.just({})))
        choices.append((models.Pair[annotations], NOTHING))
    return st.sampled_from(choices)


LIMITS = [
    at.Ge(1),
    at.Gt(0),
    at.Le(9),
    at.Lt(9.5),
    at.MultipleOf(2),
    at.MinLen(1),
    at.MaxLen(9),
    at.Len(1, 2),
    at.Interval(ge=0, lt=5),
    Field(ge=2, description="a field"),
    Field(max_length=5),
    Field(pattern="^a"),
    Field(examples=[1, "a"]),
    Field(json_schema_extra={"z": 1, "a": 2}),
    at.Predicate(bool),
    Field(description="text"),
    Field(deprecated=True),
    deprecated("no more"),
]


@st.composite
def _limited(draw: st.DrawFn, inner: Typed) -> Typed:
    limits = draw(st.lists(st.sampled_from(LIMITS), min_size=1, max_size=2))
    return Annotated[tuple([inner[0], *limits])], inner[1]  # noqa: C409


def _extend(record: Any) -> Any:
    return lambda inner: st.one_of(
        inner.flatmap(_list),
        st.lists(inner, min_size=2, max_size=3).flatmap(_several),
        inner.flatmap(_limited),
        record(inner),
    )


def _wrapped(inner: Typed) -> Typed:
    try:
        return foreign.Wrapped[inner[0]], NOTHING
    except Exception:
        # Not every type goes into a model.
        return inner


def _extend_with_models(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return st.one_of(_extend(records.record)(inner), records.model(inner), inner.map(_wrapped))


types_of_a_signature = st.recursive(st.sampled_from(SCALARS), _extend(records.record), max_leaves=6)
types_with_foreign = st.recursive(st.sampled_from(SCALARS + FOREIGN), _extend_with_models, max_leaves=4)
