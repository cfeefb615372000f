"""`DataFormatter`, side by side with Agently's."""

import collections
import copy
import datetime
import decimal
import enum
import pathlib
import typing
from typing import Annotated, Any, Literal, Optional, Union

import pytest
from agently.utils import RuntimeData, Settings
from pydantic import BaseModel, Field, PositiveInt, RootModel

from support.agently.script import OURS, transcript
from support.agently.transcript import THEIRS, Difference, compare


class Inner(BaseModel):
    tags: list[str] = Field(description="labels")
    score: float


class Outer(BaseModel):
    inner: Optional[Inner] = None
    later: "Inner"
    noted: Annotated[int, Field(description="a number")] = 3
    by_name: dict[str, Inner] = Field(default={}, description="")
    choice: Literal["a", "b"] = "a"


class Limited(BaseModel):
    count: int = Field(ge=1, le=5, description="pieces")
    name: Annotated[str, "of the wood"]
    codes: Annotated[list[PositiveInt], Field(max_length=3)] = []
    strict: int = Field(default=1, strict=True)


class Node(BaseModel):
    child: "Optional[Node]" = None


class Color(str, enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Plain(enum.Enum):
    A = "a"


class Options(typing.TypedDict):
    a: int


T = typing.TypeVar("T")
Identity = typing.NewType("Identity", int)
Pair = collections.namedtuple("Pair", "a b")

VALUES: list[Any] = [
    None,
    True,
    1,
    1.5,
    "text",
    b"bytes",
    bytearray(b"bytes"),
    1 + 2j,
    ...,
    datetime.datetime(2024, 1, 2, 3, 4, 5),
    datetime.date(2024, 1, 2),
    datetime.time(1, 2),
    datetime.timedelta(1),
    decimal.Decimal("1.5"),
    pathlib.PurePosixPath("a/b"),
    range(3),
    len,
    Exception("x"),
    Color.RED,
    Level.LOW,
    Plain.A,
    Inner(tags=["x"], score=1),
    *(str, int, list, dict, type(None), Exception, Color, Plain, Options, Inner, Outer, Limited, RootModel[int]),
    *(Any, T, Identity, typing.Callable, typing.NoReturn, typing.ForwardRef("X")),
    *(list[int], dict[str, int], dict[str, Optional[int]], tuple[int, str], tuple[int, ...], tuple[()], set[int]),
    *(typing.List[int], typing.Dict[str, Inner], typing.Tuple, typing.Type[int], typing.Sequence[int]),
    *(
        Optional[int],
        Optional[Inner],
        Optional[Limited],
        Union[int, str, None],
        int | None,
        Inner | None,
        list[int] | None,
    ),
    *(Literal["a", 1, None, True], Optional[Literal["a"]], list[Literal["a"]], list["Inner"], list[list[Inner]]),
    *(Annotated[int, "x"], typing.Callable[[int], str], typing.Iterable[Inner], typing.Final[int], type[int]),
    {"a": str, 1: (int, "desc"), None: [Inner, {"deep": (datetime.date(2024, 1, 2),)}]},
    [str, (int, "d"), {1}],
    {str},
    frozenset([1]),
    Pair(1, str),
    collections.OrderedDict(a=int),
    collections.defaultdict(list, {"a": [str]}),
    Settings({"a": {"b": str}}),
    Settings({"a": {"b": str}})["a"],
    RuntimeData({"z": int}),
    typing.List,
    typing.Dict,
    tuple[Inner, ...],
]

BARE = "a list or dictionary of anything has no arguments"
WITH_A_MODEL = "Agently joins the text of the other arguments with the dictionary of the model"
DIFFERENCES = {
    repr(tuple[Inner, ...]): Difference(
        "TypeError: sequence item 0: expected str instance, dict found",
        repr("tuple[{'tags': ('list[str]', 'labels'), 'score': ('float',)}, Ellipsis]"),
        WITH_A_MODEL,
    ),
    "typing.List": Difference("IndexError: tuple index out of range", "'list'", BARE),
    "typing.Dict": Difference("IndexError: tuple index out of range", "'dict'", BARE),
}


@pytest.mark.parametrize("remain_type", [False, True])
@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:40])
def test_values_are_sanitized_equally(value: Any, remain_type: bool) -> None:
    compare(
        lambda classes: classes.formatter.sanitize(value, remain_type=remain_type),
        None if remain_type else DIFFERENCES.get(repr(value)),
    )


def test_a_model_that_contains_itself_is_named_there() -> None:
    with pytest.raises(RecursionError):
        THEIRS.formatter.sanitize(Node)

    assert OURS.formatter.sanitize(Node) == {"child": ("Node | NoneType",)}


def of(properties: Any = None, **keywords: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **keywords}


OTHERS: list[Any] = [True, False, None, 0, [], "odd", {}, {"title": "T"}]
SCHEMAS: list[Any] = [
    None,
    {},
    {"type": "object"},
    of(),
    of({}),
    of([]),
    {"properties": {"a": {"type": "string"}}},
    {"type": "string"},
    {"type": ["object", "null"]},
    of({"a": {"type": "string", "title": "A"}, "b": {}}),
    of({"a": {"type": None}}),
    of({"a": {"type": ["string", "null"], "description": "", "default": None, "enum": ["x"]}}),
    of({"a": {"anyOf": [{"type": "string"}, {"type": "null"}], "title": "A"}}, required=["a"]),
    of({"a": {"$ref": "#/$defs/A"}}, **{"$defs": {"A": {"type": "string"}}}),
    of({"a": {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]}}),
    *(of({}, additionalProperties=others) for others in OTHERS),
    of({"a": {"type": "integer"}}, additionalProperties={"type": "number", "title": "X", "minimum": 1}),
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: repr(schema)[:60])
def test_schemas_are_converted_equally_and_not_modified(schema: Any) -> None:
    given = copy.deepcopy(schema)

    # Agently modifies the schema.
    compare(lambda classes: classes.formatter.from_schema_to_kwargs_format(copy.deepcopy(schema)), None)
    transcript(lambda classes: classes.formatter.from_schema_to_kwargs_format(given), OURS)

    assert given == schema
