"""Types with names, for the schema tests."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import Annotated, Any, ClassVar, Final, Generic, Literal, NamedTuple, NewType, Optional, TypeVar, Union

import annotated_types as at
import typing_extensions
from typing_extensions import NotRequired, ReadOnly, Required, Self, TypeAliasType, TypedDict

T = TypeVar("T")
U = TypeVar("U")
Bounded = TypeVar("Bounded", bound="Point")
Chosen = TypeVar("Chosen", int, str)

Metres = NewType("Metres", float)


@dataclass
class Point:
    """A point."""

    x: int
    y: int = 0


@dataclass
class Plain:
    a: Annotated[str, at.MinLen(2)] = "ab"
    b: list[Point] = field(default_factory=list)
    c: ClassVar[int] = 3
    d: InitVar[float] = 1.5
    e: int = field(default=3, init=False)
    f: int = field(init=False)
    g: str = field(default="q", metadata={"description": "the g", "unit": "m"})
    _: KW_ONLY
    h: bool
    i: Optional[Plain] = None


@dataclass
class Late:
    first: int = 0
    second: str = field(kw_only=True)
    third: Point = field(default_factory=lambda: Point(1))


@dataclass(slots=True)
class Child(Point):
    """A point that is
    a child.

        With more.
    """

    z: float = 1.5
    y: str = "why"  # type: ignore[assignment]


@dataclass
class Node:
    name: str
    children: list[Node] = field(default_factory=list)
    parent: Optional[Node] = None


@dataclass
class Chain:
    """A link."""

    weight: Final[float] = 1.0
    next: Optional[Self] = None
    others: tuple[Self, ...] = ()


@dataclass
class Ring(Generic[T]):
    item: T
    next: Optional[Self] = None


@dataclass
class Left:
    right: Optional[Right] = None


@dataclass
class Right:
    """The right."""

    left: Left


@dataclass
class Box(Generic[T]):
    """A box."""

    item: T
    more: Sequence[T] = ()
    inner: Optional[Box[T]] = None


@dataclass
class Pair(Generic[T, U]):
    first: T
    second: Box[U]
    both: Union[T, U, None] = None


@dataclass
class Filled(Box[int]):
    n: int = 1


@dataclass
class Label(Generic[T]):
    text: Annotated[T, at.MaxLen(9)]
    fixed: Final[T]  # type: ignore[misc]  # pydantic allows it
    first: InitVar[T]
    none: Optional[T] = field(default=None, metadata={"examples": [2]})


class Movie(TypedDict):
    """A movie."""

    name: str
    year: NotRequired[int]
    tags: ReadOnly[list[str]]


class Loose(TypedDict, total=False):
    a: int
    b: Required[str]
    c: Annotated[NotRequired[int], at.Ge(1)]


class Sequel(Movie):
    part: int


class Branch(TypedDict):
    leaves: list[Branch]


class Cell(TypedDict, Generic[T]):
    value: T
    others: list[T]


class Drawer(TypedDict, Generic[T]):
    front: NotRequired[T]
    back: Annotated[ReadOnly[T], at.MaxLen(9)]


class Knot(TypedDict, total=False):
    next: Required[Optional[Knot]]
    self: list[Self]  # type: ignore[misc]  # pydantic knows what it means


class Closed(TypedDict, closed=True):
    a: int


class Open(TypedDict, extra_items=int):  # type: ignore[call-arg]  # mypy does not know it yet
    a: str


Functional = TypedDict("Functional", {"a-b": int, "class": NotRequired[str]})


class Place(NamedTuple):
    """A place."""

    latitude: float
    long_name: str = "x"
    point: Optional[Point] = None


class Slot(typing_extensions.NamedTuple, Generic[T]):
    value: T
    more: Optional[T] = None


class Typed(NamedTuple):
    value: Any
    colour: Colour
    size: Annotated[int, at.Ge(3)] = 4


class Colour(enum.Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    BIG = 2


class Mixed(enum.Enum):
    A = 1
    B = "b"
    C = (1, "c")
    D = None


class Word(str, enum.Enum):
    HELLO = "hello"
    HI = "hello"  # noqa: PIE796 - an alias


class Bits(enum.Flag):
    ONE = 1
    TWO = 2


class Modes(enum.IntFlag):
    READ = 1
    WRITE = 2


class Anything(enum.Enum):
    """Every kind."""

    A = 1
    B = "b"
    C = 2.5
    D = False
    E = None


class Unlisted(enum.Enum):
    """Nothing yet."""


class Ratio(float, enum.Enum):
    HALF = 0.5


class Single(enum.Enum):
    ONLY = "only"


ToPoint = TypeVar("ToPoint", bound=Point)
ToColour = TypeVar("ToColour", bound=Colour)

Json = TypeAliasType("Json", "Union[dict[str, Json], list[Json], str, int, float, bool, None]")
Ids = TypeAliasType("Ids", list[int])
Letters = TypeAliasType("Letters", Literal["a", "b"])
MoreLetters = TypeAliasType("MoreLetters", Literal[Letters, "c"])
Many = TypeAliasType("Many", Union[list[T], T], type_params=(T,))
Named = TypeAliasType("Named", Point)
Doubly = TypeAliasType("Doubly", Ids)
Bare = TypeAliasType("Bare", Box)
OfPoint = TypeAliasType("OfPoint", ToPoint)  # type: ignore[valid-type]  # a variable without a value
OfColour = TypeAliasType("OfColour", ToColour)  # type: ignore[valid-type]
Painted = TypeAliasType("Painted", Colour)
