"""For any signature: the schema is the one that pydantic gives."""

# Types are made at run time here, where no type checker can follow.
# mypy: disable-error-code="index, misc, no-redef, valid-type"

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import datetime
import decimal
import enum
import fractions
import ipaddress
import itertools
import pathlib
import re
import sys
import types
import typing
import uuid
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypeVar, Union

import annotated_types as at
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, PositiveInt
from typing_extensions import NotRequired, Required, TypeAliasType, TypedDict

import schema_models as models
from schema_oracle import described, expected

# Thousands of cases, each of them a question to pydantic.
pytestmark = pytest.mark.timeout(1800)

# Every record has a module of its own, so that definitions of one name have to be told apart. (Known difference: two
# classes of one name in one module, which is one class defined twice, are numbered in another order than pydantic's.)
RECORDS = itertools.count()

T = TypeVar("T")
U = TypeVar("U")

# A type together with a strategy for its values.
Typed = tuple[Any, st.SearchStrategy[Any]]


class Model(BaseModel):
    """A model."""

    number: int = 1
    other: Optional[models.Point] = None


text = st.text("ab_é", max_size=4)
small = st.integers(-3, 3)

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
    (Literal[1, 2], st.just(2)),
    (Literal[models.Colour.RED, "x"], st.just(models.Colour.RED)),
    (models.Point, st.builds(models.Point, small)),
    (models.Plain, st.none()),
    (models.Late, st.none()),
    (models.Child, st.builds(models.Child, small)),
    (models.Node, st.builds(models.Node, text)),
    (models.Left, st.builds(models.Left)),
    (models.Right, st.none()),
    (models.Box, st.builds(models.Box, small)),
    (models.Filled, st.none()),
    (models.Movie, st.just({"name": "a", "tags": []})),
    (models.Loose, st.just({"b": "x"})),
    (models.Sequel, st.none()),
    (models.Branch, st.just({"leaves": []})),
    (models.Cell, st.none()),
    (models.Closed, st.just({"a": 1})),
    (models.Functional, st.just({"a-b": 1})),
    (models.Place, st.builds(models.Place, st.floats(0, 1))),
    (models.Typed, st.none()),
    (models.Json, st.just({"a": [1]})),
    (models.Ids, st.lists(small, max_size=2)),
    (models.Named, st.builds(models.Point, small)),
    (models.Doubly, st.lists(small, max_size=2)),
    (models.T, small),
    (models.Chosen, small),
    (collections.abc.Callable[[int], str], st.just(str)),
]

# With these the whole signature is asked of pydantic.
FOREIGN: list[Typed] = [(Model, st.builds(Model, number=small)), (PositiveInt, small)]


def _is_open(annotation: Any) -> bool:
    return isinstance(annotation, TypeVar) or bool(getattr(annotation, "__parameters__", ()))


def _list(inner: Typed) -> st.SearchStrategy[Typed]:
    annotation, values = inner
    made = st.lists(values, max_size=2)
    hashable = st.lists(small, max_size=3)
    return st.sampled_from(
        [
            (list[annotation], made),
            (typing.List[annotation], made),
            (collections.abc.Sequence[annotation], made.map(tuple)),
            (typing.Iterable[annotation], made),
            (collections.deque[annotation], made.map(collections.deque)),
            (tuple[annotation, ...], made.map(tuple)),
            (set[annotation], hashable.map(set)),
            (typing.FrozenSet[annotation], hashable.map(frozenset)),
            (collections.abc.Mapping[str, annotation], st.dictionaries(text, values, max_size=2)),
            (dict[str, annotation], st.dictionaries(text, values, max_size=2)),
            (dict[annotation, int], st.just({})),
            (collections.defaultdict[str, annotation], st.just(collections.defaultdict(int))),
            (typing.OrderedDict[str, annotation], st.just(collections.OrderedDict(b=1, a=2))),
            (collections.Counter[annotation], st.just(collections.Counter("ab"))),
            (Optional[annotation], st.one_of(st.none(), values)),
            (Annotated[annotation, object()], values),
            (NewType("Fresh", annotation), values),
            (type[int], st.none()),
            (TypeVar("Free", bound=annotation), values),
            (models.Box[annotation], st.none()),
            (models.Cell[annotation], st.none()),
            (models.Many[annotation], values),
            # Known difference: pydantic keeps an alias of a bare generic or a TypeVar apart from what it stands for.
            (TypeAliasType("Alias", int if _is_open(annotation) else annotation), values),
        ]
    )


def _several(inner: list[Typed]) -> st.SearchStrategy[Typed]:
    annotations = tuple(annotation for annotation, _ in inner)
    values = [value for _, value in inner]
    choices: list[Typed] = [
        (Union[annotations], st.one_of(values)),
        (tuple[annotations], st.tuples(*values)),
    ]
    if len(annotations) == 2:
        choices.append((dict[annotations], st.just({})))
        choices.append((models.Pair[annotations], st.none()))
    return st.sampled_from(choices)


# Known difference: a limit that does not apply to its type (`ge` of an enumeration) goes into pydantic's schema under
# the name it has in Python; toolcrib does the same, but not beside a member that has no schema.
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
]


@st.composite
def _limited(draw: st.DrawFn, inner: Typed) -> Typed:
    if isinstance(inner[0], enum.EnumMeta):
        return inner
    limits = draw(st.lists(st.sampled_from(LIMITS), min_size=1, max_size=2))
    return Annotated[tuple([inner[0], *limits])], inner[1]  # noqa: C409


@st.composite
def _record(draw: st.DrawFn, inner: st.SearchStrategy[Typed]) -> Typed:
    name = draw(st.sampled_from(["Thing", "Item"]))
    module = types.ModuleType(f"schema_property_{next(RECORDS)}")
    sys.modules[module.__name__] = module
    doc = draw(st.sampled_from([None, "A thing.", "  More\n    lines.\n"]))
    members = draw(st.lists(inner, min_size=1, max_size=3))
    fields = list(zip("xyz", members, strict=False))
    kind = draw(st.sampled_from(["dataclass", "generic", "typed_dict", "named_tuple", "enum"]))
    made: Any
    if kind in ("dataclass", "generic"):
        specified: list[Any] = []
        for at_, (field, (annotation, values)) in enumerate(fields):
            if annotation is None:
                annotation = type(None)
            default = draw(st.sampled_from(["none", "value", "factory", "described"]))
            options: dict[str, Any] = {"kw_only": draw(st.booleans())}
            if default == "value":
                options["default_factory"] = list
                value = draw(values)
                if type(value).__hash__ is not None:
                    del options["default_factory"]
                    options["default"] = value
            elif default == "factory":
                options["default_factory"] = list
            elif default == "described":
                options |= {"metadata": {"description": "described"}, "kw_only": True}
            else:
                options["kw_only"] = True
            if kind == "generic" and at_ == 0:
                annotation = draw(st.sampled_from([T, list[T], Optional[T], Union[T, str], models.Box[T]]))
                options.pop("default", None)
                options |= {"kw_only": True}
            specified.append((field, annotation, dataclasses.field(**options)))
        bases = (Generic[T],) if kind == "generic" else ()
        made = types.new_class(
            name,
            bases,
            {},
            lambda namespace: namespace.update(
                __module__=module.__name__,
                __annotations__={field: annotation for field, annotation, _ in specified},
                __doc__=doc,
                **{field: default for field, _, default in specified},
            ),
        )
        made = dataclasses.dataclass(made)
        if kind == "generic" and draw(st.booleans()):
            made = made[draw(inner)[0]]
    elif kind == "typed_dict":
        made = TypedDict(
            name,
            {
                field: draw(st.sampled_from([annotation, NotRequired[annotation], Required[annotation]]))
                for field, (annotation, _) in fields
            },
            total=draw(st.booleans()),
        )
        made.__module__ = module.__name__
        made.__doc__ = doc
    elif kind == "named_tuple":
        made = NamedTuple(name, [(field, annotation) for field, (annotation, _) in fields])
        made.__module__ = module.__name__
        made.__doc__ = doc
    else:
        made = enum.Enum(name, [(letter, draw(st.one_of(small, text))) for letter in "AB"], module=module.__name__)
    return made, st.none()


def _extend(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return st.one_of(
        inner.flatmap(_list),
        st.lists(inner, min_size=2, max_size=3).flatmap(_several),
        inner.flatmap(_limited),
        _record(inner),
    )


types_of_a_signature = st.recursive(st.sampled_from(SCALARS), _extend, max_leaves=6)
# Known difference: where pydantic is asked and a member of a union has no schema, the names of definitions may differ.
types_with_foreign = st.recursive(st.sampled_from(SCALARS[:-1] + FOREIGN), _extend, max_leaves=4)

FIELDS = [
    Field(description="from a field"),
    Field(3, ge=1),
    Field(default_factory=list),
    Field(alias="other"),
    Field(default=None, title="T", examples=[1]),
    Field(max_length=3),
]


@st.composite
def signatures(draw: st.DrawFn, of: st.SearchStrategy[Typed]) -> dict[str, tuple[Any, Any]]:
    """Parameters by name, each with its annotation and its default (or `...`)."""
    chosen = draw(st.lists(of, min_size=1, max_size=4))
    signature = {}
    for name, (annotation, values) in zip(["a", "schema", "title", "properties"], chosen, strict=False):
        kind = draw(st.sampled_from(["required", "default", "none", "required", "field"]))
        default: Any = ...
        if kind == "default":
            default = draw(values)
        elif kind == "none":
            default = None
        elif kind == "field" and draw(st.booleans()):
            default = draw(st.sampled_from(FIELDS))
        signature[name] = (annotation, default)
    return signature


def _function(draw: st.DrawFn, signature: dict[str, tuple[Any, Any]]) -> Any:
    """Write the signature as source, with annotations as objects or as strings, and parameters of any kind."""
    module = types.ModuleType("schema_property_function")
    required = [name for name in signature if signature[name][1] is ...]
    optional = [name for name in signature if signature[name][1] is not ...]
    names = required + optional
    written = {}
    for index, name in enumerate(names):
        annotation, default = signature[name]
        setattr(module, f"A{index}", annotation)
        setattr(module, f"D{index}", default)
        written[name] = f"{name}: A{index}" + ("" if default is ... else f" = D{index}")
    positional_only = draw(st.integers(0, len(names)))
    keyword_only = draw(st.integers(positional_only, len(names)))
    parts = [written[name] for name in names]
    if keyword_only < len(names):
        parts.insert(keyword_only, "*")
    if positional_only:
        parts.insert(positional_only, "/")
    future = "from __future__ import annotations\n" if draw(st.booleans()) else ""
    sys.modules[module.__name__] = module
    exec(f"{future}def target({', '.join(parts)}): ...", module.__dict__)
    return module.target, {name: signature[name] for name in names}


@st.composite
def functions(draw: st.DrawFn, of: st.SearchStrategy[Typed]) -> tuple[Any, dict[str, tuple[Any, Any]]]:
    """A function and the parameters it has."""
    made: tuple[Any, dict[str, tuple[Any, Any]]] = _function(draw, draw(signatures(of)))
    return made


def _compare(function: Any, signature: dict[str, tuple[Any, Any]]) -> None:
    # Synthetic names: some of the real ones mean something to pydantic.
    names = {f"p{index}": name for index, name in enumerate(signature)}
    asked = {short: signature[name] for short, name in names.items()}
    asked = {short: (annotation, _without_alias(default)) for short, (annotation, default) in asked.items()}
    try:
        want = expected(asked)
    except Exception:
        want = None
    if want is not None and '{"anyOf": []}' not in str(want).replace("'", '"'):
        want["properties"] = {names[short]: inner for short, inner in want["properties"].items()}
        if "required" in want:
            want["required"] = [names[short] for short in want["required"]]
        assert described(function) == want
        return
    # What pydantic refuses, toolcrib may understand; if not, it says so.
    try:
        described(function)
    except TypeError as error:
        assert "has no JSON Schema" in str(error)  # noqa: PT017 - it need not be raised


def _without_alias(default: Any) -> Any:
    return Field() if getattr(default, "alias", None) else default


# Large on purpose: that is where names clash.
SETTINGS = settings(suppress_health_check=list(HealthCheck))


@SETTINGS
@given(functions(types_of_a_signature))
def test_any_signature_gives_what_pydantic_gives(case: tuple[Any, dict[str, tuple[Any, Any]]]) -> None:
    _compare(*case)


@SETTINGS
@given(functions(types_with_foreign))
def test_any_signature_with_models_gives_what_pydantic_gives(case: tuple[Any, dict[str, tuple[Any, Any]]]) -> None:
    _compare(*case)
