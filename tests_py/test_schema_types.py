"""Every annotation toolcrib understands, next to what pydantic makes of it."""

from __future__ import annotations

import collections
import collections.abc
import datetime
import decimal
import fractions
import ipaddress
import os
import pathlib
import re
import typing
import uuid
import zoneinfo
from typing import Annotated, Any, Literal, Optional, Union

import annotated_types as at
import pydantic_core
import pytest
from pydantic import AfterValidator, BaseModel, Field, HttpUrl, PositiveInt, SecretStr, Strict, WithJsonSchema
from pydantic.dataclasses import dataclass as pydantic_dataclass
from typing_extensions import deprecated

from support.schema import models
from support.schema.oracle import described, expected, function_of


class Model(BaseModel):
    """A model."""

    x: int = Field(1, alias="ex", ge=0)
    point: models.Point | None = None


@pydantic_dataclass
class Checked:
    n: PositiveInt = 1


# A type that shows its notes as a parameter or a field only.
NOTED = Annotated[re.Pattern[str], Field(examples=[1, "a"])]

ANNOTATIONS: dict[str, Any] = {
    # scalars
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "none": None,
    "none_type": type(None),
    "any": Any,
    "object": object,
    "bytes": bytes,
    "complex": complex,
    "decimal": decimal.Decimal,
    "fraction": fractions.Fraction,
    "uuid": uuid.UUID,
    "date": datetime.date,
    "time": datetime.time,
    "datetime": datetime.datetime,
    "timedelta": datetime.timedelta,
    "path": pathlib.Path,
    "pure_path": pathlib.PurePath,
    "posix_path": pathlib.PurePosixPath,
    "path_like": os.PathLike,
    "path_like_str": os.PathLike[str],
    "pattern": re.Pattern,
    "pattern_str": re.Pattern[str],
    "typing_pattern": typing.Pattern,
    "zone": zoneinfo.ZoneInfo,
    "ipv4": ipaddress.IPv4Address,
    "ipv4i": ipaddress.IPv4Interface,
    "ipv4n": ipaddress.IPv4Network,
    "ipv6": ipaddress.IPv6Address,
    "ipv6i": ipaddress.IPv6Interface,
    "ipv6n": ipaddress.IPv6Network,
    "hashable": collections.abc.Hashable,
    "builtin_any": any,
    "never": typing.NoReturn,
    "class_of": type[int],
    "class_of_either": type[Union[int, str]],
    "any_str": typing.AnyStr,
    # unions
    "optional": Optional[int],
    "union": Union[int, str],
    "pipe": int | str,
    "pipe_none": int | None,
    "union_none": Union[int, str, None],
    "nested": Union[int, Optional[Union[str, bytes]]],
    "only_none": Optional[None],
    "same": Union[list[int], typing.List[int]],
    "with_any": Union[int, Any],
    "union_decimal": Union[decimal.Decimal, str],
    "skipped": Union[int, collections.abc.Callable[[], int]],
    "skipped_all": Union[collections.abc.Callable[[], int], collections.abc.Callable[[str], int], None],
    "skipped_none": Union[int, str, collections.abc.Callable[[], int], None],
    # literals and enumerations
    "literal": Literal["a", "b"],
    "one": Literal["a"],
    "integers": Literal[1, 2],
    "mixed": Literal["a", 1, None],
    "flags": Literal[True, False],
    "true_one": Literal[True, 1],
    "null": Literal[None],
    "bytes_literal": Literal[b"a"],
    "enum_literal": Literal[models.Colour.RED, models.Size.BIG],
    "literals": Union[Literal["a"], Literal["b"]],
    "literal_of_alias": Literal["c", models.Letters, "d"],
    "literal_of_aliases": Literal[models.MoreLetters, "a"],
    "enum": models.Colour,
    "int_enum": models.Size,
    "mixed_enum": models.Mixed,
    "str_enum": models.Word,
    "flag": models.Bits,
    "float_enum": models.Ratio,
    "single_enum": models.Single,
    "int_flag": models.Modes,
    "any_enum": models.Anything,
    "unlisted_enum": models.Unlisted,
    "maybe_unlisted": Optional[models.Unlisted],
    "limited_enum": Annotated[models.Colour, at.Ge(1)],
    # collections
    "list": list,
    "list_of": list[int],
    "List": typing.List,
    "List_of": typing.List[int],
    "lists": list[list[int]],
    "tuple": tuple,
    "Tuple": typing.Tuple,
    "tuple_of": tuple[int, str],
    "tuple_any": tuple[int, ...],
    "tuple_none": tuple[()],
    "Tuple_of": typing.Tuple[int, ...],
    "Tuple_none": typing.Tuple[()],
    "set": set,
    "set_of": set[int],
    "Set": typing.Set[str],
    "frozenset": frozenset[int],
    "FrozenSet": typing.FrozenSet,
    "AbstractSet": typing.AbstractSet[int],
    "mutable_set": collections.abc.MutableSet[int],
    "sequence": collections.abc.Sequence[int],
    "Sequence": typing.Sequence,
    "mutable_sequence": collections.abc.MutableSequence[int],
    "iterable": collections.abc.Iterable[int],
    "Iterable": typing.Iterable,
    "generator": collections.abc.Generator[int, None, None],
    "deque": collections.deque[int],
    "Deque": typing.Deque,
    "dict": dict,
    "dict_of": dict[str, int],
    "Dict": typing.Dict[str, Any],
    "int_keys": dict[int, str],
    "mapping": collections.abc.Mapping[str, int],
    "Mapping": typing.Mapping,
    "mutable_mapping": collections.abc.MutableMapping[str, list[int]],
    "defaultdict": collections.defaultdict[str, int],
    "DefaultDict": typing.DefaultDict[str, list[int]],
    "ordered": collections.OrderedDict[str, int],
    "OrderedDict": typing.OrderedDict[str, int],
    "counter": collections.Counter[str],
    "Counter": typing.Counter,
    "uuid_keys": dict[uuid.UUID, int],
    "date_keys": dict[datetime.date, int],
    "enum_keys": dict[models.Colour, int],
    "literal_keys": dict[Literal["a", "b"], int],
    "short_keys": dict[Annotated[str, at.MaxLen(3)], int],
    "pattern_keys": dict[Annotated[str, Field(pattern="^a")], int],
    "pattern_keys_any": dict[Annotated[str, Field(pattern="^a", min_length=2)], Any],
    # records
    "dataclass": models.Point,
    "plain": models.Plain,
    "late": models.Late,
    "child": models.Child,
    "node": models.Node,
    "self": models.Chain,
    "self_in_typed_dict": models.Knot,
    "self_in_generic": models.Ring[int],
    "self_in_bare_generic": models.Ring,
    "left": models.Left,
    "right": models.Right,
    "points": list[models.Point],
    "either": Union[models.Point, models.Node],
    "maybe": Optional[models.Point],
    "typed_dict": models.Movie,
    "loose": models.Loose,
    "sequel": models.Sequel,
    "branch": models.Branch,
    "closed": models.Closed,
    "open": models.Open,
    "functional": models.Functional,
    "named_tuple": models.Place,
    "typed": models.Typed,
    "bare_tuple": collections.namedtuple("bare_tuple", "a b"),
    # generics
    "box": models.Box,
    "box_int": models.Box[int],
    "box_list": models.Box[list[str]],
    "box_box": models.Box[models.Box[int]],
    "box_union": models.Box[Union[int, str]],
    "box_optional": models.Box[Optional[int]],
    "box_pipe": models.Box[int | None],
    "box_literal": models.Box[Literal["a", "b"]],
    "box_point": models.Box[models.Point],
    "box_any": models.Box[Any],
    "box_dict": models.Box[typing.Dict[str, int]],
    "box_annotated": models.Box[Annotated[int, at.Ge(1)]],
    "pair": models.Pair[int, str],
    "pair_any": models.Pair[int, Any],
    "pair_never": models.Pair[int, typing.NoReturn],
    "filled": models.Filled,
    "cell": models.Cell[int],
    "bare_cell": models.Cell,
    "two_boxes": tuple[models.Box[int], models.Box[str]],
    "variable": models.T,
    "bounded": typing.TypeVar("bounded", bound=models.Point),
    "chosen": models.Chosen,
    "chosen_union": typing.TypeVar("chosen_union", Optional[list[int]], int),
    "new_type": models.Metres,
    "list_of_new": list[models.Metres],
    # aliases
    "json": models.Json,
    "ids": models.Ids,
    "many": models.Many[int],
    "named": models.Named,
    "doubly": models.Doubly,
    "ids_twice": tuple[models.Ids, models.Ids],
    "named_and": tuple[models.Named, models.Point],
    "bare_many": models.Many,
    "bare_box": models.Bare,
    "of_bounded": models.OfPoint,
    "of_bounded_twice": tuple[models.OfPoint, models.OfPoint],
    "of_bounded_and": tuple[models.OfPoint, models.Point],
    "of_bounded_enum": models.OfColour,
    "enum_alias": models.Painted,
    "enum_alias_and": tuple[models.Painted, models.Colour],
    "bounded_by_alias": typing.TypeVar("bounded_by_alias", bound=models.Named),
    # limits
    "ge": Annotated[int, at.Ge(1)],
    "interval": Annotated[float, at.Interval(gt=0, le=1.5)],
    "length": Annotated[list[int], at.Len(1, 3)],
    "exact": Annotated[str, at.Len(2, 2)],
    "multiple": Annotated[int, at.MultipleOf(3)],
    "pattern_field": Annotated[str, Field(pattern="^a$")],
    "optional_ge": Annotated[Optional[int], at.Ge(1)],
    "ge_optional": Optional[Annotated[int, at.Ge(1)]],
    "union_ge": Annotated[Union[int, str], at.Ge(1)],
    "set_length": Annotated[set[int], at.MinLen(1)],
    "dict_length": Annotated[dict[str, int], at.MinLen(1)],
    "deque_length": Annotated[collections.deque[int], at.MaxLen(2)],
    "tuple_length": Annotated[tuple[int, ...], at.MinLen(1)],
    "bytes_length": Annotated[bytes, at.MaxLen(4)],
    "sequence_length": Annotated[collections.abc.Sequence[int], at.MinLen(1)],
    "iterable_length": Annotated[collections.abc.Iterable[int], at.MinLen(1)],
    "default_length": Annotated[collections.defaultdict[str, int], at.MinLen(1)],
    "decimal_ge": Annotated[decimal.Decimal, at.Ge(1)],
    "fraction_ge": Annotated[fractions.Fraction, at.Gt(0)],
    "date_ge": Annotated[datetime.date, at.Ge(datetime.date(2020, 1, 1))],
    "path_length": Annotated[pathlib.Path, at.MinLen(1)],
    "list_ge": Annotated[list[int], at.Ge(1)],
    "any_ge": Annotated[Any, at.Ge(1)],
    "bool_ge": Annotated[bool, at.Ge(1)],
    "literal_ge": Annotated[Literal[1, 2], at.Ge(1)],
    "twice": Annotated[int, at.Ge(1), at.Ge(2)],
    "predicate": Annotated[int, at.Predicate(bool), at.Ge(1)],
    "int_pattern": Annotated[int, Field(pattern="a")],
    "new_ge": Annotated[models.Metres, at.Ge(0)],
    "list_of_ge": list[Annotated[int, at.Ge(1)]],
    "infinite": Annotated[float, at.Lt(float("inf"))],
    # fields
    "field": Annotated[int, Field(description="a number", ge=1)],
    "examples": Annotated[str, Field(examples=["a", "b"])],
    "extra": Annotated[int, Field(json_schema_extra={"unit": "m", "x": [1]})],
    "inner_field": list[Annotated[int, Field(description="inner", gt=0)]],
    "titled": Annotated[int, Field(title="Title")],
    "inner_title": Union[Annotated[int, Field(title="T")], str],
    "inner_default": list[Annotated[int, Field(default=3)]],
    "deprecated": Annotated[int, Field(deprecated=True)],
    "echo": Annotated[models.Point, Field(description="A point.")],
    "no_echo": Annotated[models.Point, Field(description="Another.")],
    "two_fields": Annotated[int, Field(ge=1), Field(le=2)],
    "noted_optional": Optional[Annotated[models.Point, Field(description="inner")]],
    "field_and_limit": Annotated[int, at.Ge(1), Field(le=3)],
    "other_metadata": Annotated[int, object(), ["x"], 3],
    # metadata of the arguments of generic types
    "box_noted": models.Box[NOTED],
    "ring_noted": models.Ring[NOTED],
    "cell_noted": models.Cell[NOTED],
    "label_noted": models.Label[NOTED],
    "drawer_noted": models.Drawer[NOTED],
    "slot_noted": models.Slot[NOTED],
    "many_noted": models.Many[NOTED],
    "inner_noted": models.Ring[models.Label[Optional[NOTED]]],
    "box_noted_address": models.Box[Annotated[ipaddress.IPv4Address, Field(description="an address")]],
    "box_noted_date": models.Box[Annotated[datetime.date, Field(description="a date")]],
    "box_noted_point": models.Box[Annotated[models.Point, Field(description="another")]],
    "box_noted_echo": models.Box[Annotated[models.Point, Field(description="A point.")]],
    "box_extra": models.Box[Annotated[zoneinfo.ZoneInfo, Field(json_schema_extra={"unit": "h"})]],
    "box_limited": models.Label[Annotated[str, Field(min_length=2, examples=["ab"])]],
    "box_titled": models.Box[Annotated[int, Field(title="Title")]],
    "box_default": models.Box[Annotated[int, Field(default=3)]],
    "box_alias": models.Box[Annotated[int, Field(alias="other", description="aliased")]],
    "box_deprecated": models.Box[Annotated[int, deprecated("no more")]],
    "box_deprecated_field": models.Box[Annotated[re.Pattern[str], Field(deprecated=True)]],
    "box_text": models.Box[Annotated[int, "a text", object()]],
    "inner_format": list[Annotated[pathlib.Path, Field(json_schema_extra={"format": "url", "unit": "m"})]],
    "place_format": models.Slot[Annotated[pathlib.Path, Field(json_schema_extra={"format": "url", "unit": "m"})]],
    # what only pydantic knows
    "model": Model,
    "models": list[Model],
    "model_or": Union[Model, models.Point, None],
    "checked": Checked,
    "positive": PositiveInt,
    "url": HttpUrl,
    "core_url": pydantic_core.Url,
    "multi_host_url": pydantic_core.MultiHostUrl,
    "hosts": Union[pydantic_core.MultiHostUrl, None],
    "missing": Union[int, pydantic_core.MISSING],
    "secret": SecretStr,
    "validated": Annotated[int, AfterValidator(abs)],
    "with_schema": Annotated[int, WithJsonSchema({"type": "string"})],
    "strict": Annotated[pathlib.Path, Strict()],
    "point_ge": Annotated[models.Point, at.Ge(1)],
    "model_box": models.Box[Model],
}

# Values are dumped by what they are, whatever the annotation says.
DEFAULTS: dict[str, Any] = {
    "none": None,
    "int": 1,
    "bool": True,
    "float": 1.5,
    "whole": 2.0,
    "text": "é",
    "big": 10**40,
    "tiny": 1e-7,
    "huge": 1e16,
    "nan": float("nan"),
    "infinite": float("-inf"),
    "nan_inside": [float("nan")],
    "bytes": b"ab",
    "no_text": b"\xff",
    "complex": 1 + 2j,
    "imaginary": 1j,
    "decimal": decimal.Decimal("1.50"),
    "fraction": fractions.Fraction(1, 3),
    "uuid": uuid.UUID(int=5),
    "date": datetime.date(2020, 1, 2),
    "time": datetime.time(1, 2, 3, 40),
    "datetime": datetime.datetime(2020, 1, 2, 3, 4, 5),
    "utc": datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc),
    "zone": datetime.datetime(
        2020, 1, 2, 3, 4, 5, 60, tzinfo=datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    ),
    "zero": datetime.timedelta(0),
    "duration": datetime.timedelta(days=1, seconds=3661, microseconds=5),
    "negative": datetime.timedelta(seconds=-5),
    "years": datetime.timedelta(days=800, microseconds=500000),
    "minutes": datetime.timedelta(minutes=5),
    "path": pathlib.Path("/a"),
    "pure": pathlib.PurePosixPath("b"),
    "pure_inside": [pathlib.PurePosixPath("b")],
    "pattern": re.compile("x+"),
    "bytes_pattern": re.compile(b"x"),
    "address": ipaddress.ip_address("1.2.3.4"),
    "network": ipaddress.ip_network("::/8"),
    "enum": models.Colour.RED,
    "int_enum": models.Size.BIG,
    "mixed_enum": models.Mixed.C,
    "flag": models.Bits.ONE,
    "str_enum": models.Word.HELLO,
    "dataclass": models.Point(1),
    "dataclasses": [models.Point(1), models.Child(1)],
    "place": models.Place(1.0),
    "model": Model(ex=3),
    "list": [1, "a", None],
    "tuple": (1, (2,)),
    "set": {3, 1, 2},
    "words": {"b", "a"},
    "mixed_set": {1, "a"},
    "frozen": frozenset({2, 1}),
    "deque": collections.deque([1]),
    "dict": {"a": {"b": [1]}},
    "ordered": collections.OrderedDict(a=1),
    "default": collections.defaultdict(int, a=1),
    "counter": collections.Counter("aab"),
    "keys": {1: 1, None: 2, False: 3, 1.5: 4, (1, "a"): 5, models.Colour.RED: 6, b"k": 7, datetime.date(2020, 1, 1): 8},
    "bytearray": bytearray(b"ab"),
    "range": range(3),
    "object": object(),
    "class": int,
    "function": len,
    "lambda": lambda: 1,
    "objects": [object()],
    "not_implemented": NotImplemented,
}


@pytest.mark.parametrize("annotation", ANNOTATIONS.values(), ids=ANNOTATIONS.keys())
def test_an_annotation_gives_what_pydantic_gives(annotation: Any) -> None:
    assert described(function_of({"a": (annotation, ...)})) == expected({"a": (annotation, ...)})


@pytest.mark.parametrize("annotation", ANNOTATIONS.values(), ids=ANNOTATIONS.keys())
def test_an_optional_parameter_gives_what_pydantic_gives(annotation: Any) -> None:
    parameters: dict[str, tuple[Any, Any]] = {
        "a": (annotation, None),
        "b": (list[annotation], ...),
        "c": (dict[str, annotation], {}),
    }

    assert described(function_of(parameters)) == expected(parameters)


@pytest.mark.parametrize("default", DEFAULTS.values(), ids=DEFAULTS.keys())
def test_a_default_gives_what_pydantic_gives(default: Any) -> None:
    assert described(function_of({"a": (Any, default)})) == expected({"a": (Any, default)})


def test_all_types_together_give_what_pydantic_gives() -> None:
    parameters = {f"p{index}": (annotation, ...) for index, annotation in enumerate(ANNOTATIONS.values())}

    assert described(function_of(parameters)) == expected(parameters)


@pytest.mark.parametrize("member", [collections.abc.Callable[[int], str], "str"], ids=["callable", "text"])
def test_a_choice_beside_a_type_of_pydantic_stays_as_it_is_written(member: Any) -> None:
    choice = Annotated[Union[int, Any, member], Field(description="A choice.")]
    parameters: dict[str, tuple[Any, Any]] = {"a": (Annotated[models.Colour, at.Ge(1)], ...), "b": (list[choice], ...)}

    assert described(function_of(parameters)) == expected(parameters)
