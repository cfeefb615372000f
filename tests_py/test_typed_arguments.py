"""Typed arguments: a tool gets what its annotations name, and a wrong value is answered with its path."""

# Annotations stay objects here; `test_annotations_may_be_strings` has the other form.

import asyncio
import collections
import gc
import ipaddress
import pathlib
import re
import uuid
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypedDict, TypeVar

import attrs
import msgspec
import pydantic
import pytest
from pydantic_core import MISSING, MultiHostUrl
from typing_extensions import TypeAliasType

from toolcrib import Policy, Toolkit, ToolResponse, errors
from toolcrib.policy import ApprovalRequest, Rule

T = TypeVar("T")
Letters: Any = TypeAliasType("Letters", Literal["a", "b"])


class Color(Enum):
    """A color."""

    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    """A level."""

    LOW = 1
    HIGH = 2


class Corner(Enum):
    """A corner, whose values are tuples."""

    HERE = (0, 0)
    THERE = (1, 2)


@dataclass
class Item:
    """A line of an order."""

    name: str
    price: float
    tags: set[str] = field(default_factory=set)
    parent: "Item | None" = None

    def __post_init__(self) -> None:
        """Refuse a negative price."""
        if self.price < 0:
            raise ValueError("price must not be negative")


@dataclass(frozen=True, kw_only=True)
class Box(Generic[T]):
    """A box of one thing."""

    content: T
    size: int = 1


@dataclass
class Sum:
    """A record with a field that only the constructor takes, and one that it does not take."""

    start: InitVar[int]
    total: int = field(init=False, default=0)

    def __post_init__(self, start: int) -> None:
        """Keep the sum."""
        self.total = start + 1


class Point(NamedTuple):
    """A point."""

    x: float
    y: float = 2.0


class Stay(TypedDict):
    """A stay."""

    begin: date
    nights: int


class Spot(TypedDict):
    """A spot on a map, and the way to it."""

    height: float
    place: list[float] | None
    before: "Spot | None"


class Order(pydantic.BaseModel):
    """An order."""

    id: int = pydantic.Field(ge=1)
    when: date
    items: list[Item] = []

    @pydantic.field_validator("when")
    @classmethod
    def not_in_the_past(cls, when: date) -> date:
        """Refuse old dates."""
        if when < date(2020, 1, 1):
            raise ValueError("too long ago")
        return when


class Aliased(pydantic.BaseModel):
    """A model whose field has another name in JSON."""

    to_address: str = pydantic.Field(alias="to")
    copies: int = 1


@attrs.define
class Part:
    """A part, with a private field, a converter and a validator."""

    _code: str
    weight: float = attrs.field(default=1.0, converter=float)
    made: date | None = attrs.field(default=None)

    @weight.validator
    def _positive(self, attribute: Any, value: float) -> None:
        if value <= 0:
            raise ValueError("weight must be positive")


class Mail(msgspec.Struct):
    """A mail."""

    to: str
    at: datetime | None = None
    copies: list[str] = []


def received(function: Callable[..., Any], **arguments: Any) -> Any:
    """Call a tool that returns nothing useful, and give what it was called with."""
    got: list[Any] = []

    toolkit = Toolkit(run_in="inline")
    wrapper = _keeping(function, got)
    toolkit.register_tool_function(wrapper)
    response = toolkit.run(function.__name__, **arguments)
    assert response.ok, response.text
    (values,) = got
    return values if len(values) > 1 else next(iter(values.values()))


def refused(function: Callable[..., Any], **arguments: Any) -> list[str]:
    """Call a tool with arguments that are refused, and give the lines of the problems."""
    got: list[Any] = []
    toolkit = Toolkit(run_in="inline")
    toolkit.register_tool_function(_keeping(function, got))

    response = toolkit.run(function.__name__, **arguments)

    assert response.code == "invalid_arguments", response.text
    assert got == []
    return [line.removeprefix("- ") for line in response.text.splitlines()[1:]]


class Strict(pydantic.BaseModel):
    """A model that refuses Python objects of other types."""

    model_config = pydantic.ConfigDict(strict=True)

    day: date | None = None
    number: uuid.UUID | None = None
    color: Color | None = None
    point: tuple[int, str] | None = None
    counts: set[int] | None = None
    price: Decimal | None = None
    data: bytes | None = None
    path: pathlib.Path | None = None
    names: dict[int, str] | None = None
    size: int | None = None


class Celsius:
    """A class that pydantic builds from JSON alone."""

    def __init__(self, degrees: float) -> None:
        self.degrees = degrees

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Celsius) and self.degrees == other.degrees

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        from_json = core_schema.no_info_after_validator_function(cls, core_schema.float_schema())
        return core_schema.json_or_python_schema(from_json, core_schema.is_instance_schema(cls))


def _keeping(function: Callable[..., Any], got: list[Any]) -> Callable[..., Any]:
    import functools

    @functools.wraps(function)
    def tool(*args: Any, **kwargs: Any) -> str:
        names = list(function.__annotations__)
        got.append({**dict(zip(names, args, strict=False)), **kwargs})
        return "done"

    return tool


def one(annotation: Any) -> Callable[..., Any]:
    """Make a tool with one parameter `x` of a type."""

    def tool(x): ...  # type: ignore[no-untyped-def]

    tool.__annotations__ = {"x": annotation}
    return tool


PARIS = timezone(timedelta(hours=1))
UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")

BUILT: list[tuple[Any, Any, Any]] = [
    (date, "2026-01-31", date(2026, 1, 31)),
    (date, "2026-01-31T00:00:00", date(2026, 1, 31)),
    (time, "10:30", time(10, 30)),
    (time, "10:30:15.25Z", time(10, 30, 15, 250_000, timezone.utc)),
    (datetime, "2026-01-31T10:30:00+01:00", datetime(2026, 1, 31, 10, 30, tzinfo=PARIS)),
    (datetime, "2026-01-31 10:30", datetime(2026, 1, 31, 10, 30)),
    (datetime, "2026-01-31", datetime(2026, 1, 31)),
    (timedelta, "PT1H30M", timedelta(hours=1, minutes=30)),
    (Literal["c", Letters], "b", "b"),
    (MultiHostUrl, "redis://a:1,b:2/", MultiHostUrl("redis://a:1,b:2/")),
    (timedelta, "-P1DT1S", -timedelta(days=1, seconds=1)),
    (Decimal, "1.10", Decimal("1.10")),
    (Decimal, 3, Decimal(3)),
    (Decimal, 1.1, Decimal("1.1")),
    (Fraction, "1/3", Fraction(1, 3)),
    (uuid.UUID, str(UUID), UUID),
    (pathlib.Path, "a/b", pathlib.Path("a/b")),
    (pathlib.PurePosixPath, "a/b", pathlib.PurePosixPath("a/b")),
    (bytes, "é", "é".encode()),
    (re.Pattern, "a+", re.compile("a+")),
    (ipaddress.IPv4Address, "127.0.0.1", ipaddress.IPv4Address("127.0.0.1")),
    (Color, "red", Color.RED),
    (Level, 2, Level.HIGH),
    (Corner, [1, 2], Corner.THERE),
    (Literal["a", Color.RED], "red", Color.RED),
    (Literal["a", Color.RED], "a", "a"),
    (float, 3, 3.0),
    (list[float], [1, 2.5], [1.0, 2.5]),
    (set[int], [1, 2], {1, 2}),
    (frozenset[Color], ["red"], frozenset([Color.RED])),
    (tuple[int, date], [1, "2026-01-31"], (1, date(2026, 1, 31))),
    (tuple[date, ...], ["2026-01-31"], (date(2026, 1, 31),)),
    (tuple, [1, 2], (1, 2)),
    (collections.deque[int], [1, 2], collections.deque([1, 2])),
    (Sequence[date], ["2026-01-31"], [date(2026, 1, 31)]),
    (dict[str, date], {"a": "2026-01-31"}, {"a": date(2026, 1, 31)}),
    (dict[int, str], {"1": "a"}, {1: "a"}),
    (dict[Color, int], {"red": 1}, {Color.RED: 1}),
    (Mapping[date, list[Level]], {"2026-01-31": [1]}, {date(2026, 1, 31): [Level.LOW]}),
    (collections.OrderedDict[str, int], {"b": 1, "a": 2}, collections.OrderedDict([("b", 1), ("a", 2)])),
    (collections.Counter[str], {"a": 2}, collections.Counter({"a": 2})),
    (Item, {"name": "a", "price": 3}, Item("a", 3.0)),
    (
        Item,
        {"name": "a", "price": 3, "tags": ["x"], "parent": {"name": "b", "price": 1}},
        Item("a", 3, {"x"}, Item("b", 1)),
    ),
    (Box[date], {"content": "2026-01-31", "size": 2}, Box(content=date(2026, 1, 31), size=2)),
    (list[Item], [{"name": "a", "price": 3}], [Item("a", 3.0)]),
    (Point, [1], Point(1.0, 2.0)),
    (Stay, {"begin": "2026-01-31", "nights": 2}, {"begin": date(2026, 1, 31), "nights": 2}),
    (Part, {"code": "x", "made": "2026-01-31"}, Part("x", made=date(2026, 1, 31))),
    (Mail, {"to": "a", "at": "2026-01-31T10:30:00"}, Mail("a", datetime(2026, 1, 31, 10, 30))),
    (Order, {"id": 1, "when": "2026-01-31"}, Order(id=1, when=date(2026, 1, 31))),
    (Order | None, None, None),
    (Order | None, {"id": 1, "when": "2026-01-31"}, Order(id=1, when=date(2026, 1, 31))),
    (Annotated[Decimal, "a price"], "1.5", Decimal("1.5")),
    (Annotated[int, pydantic.AfterValidator(lambda x: x + 1)], 1, 2),
    (date | None, "2026-01-31", date(2026, 1, 31)),
    (int | date, "2026-01-31", date(2026, 1, 31)),
    (int | date, 3, 3),
    (date | str, "2026-01-31", "2026-01-31"),
    (Item | Point, [1, 2], Point(1.0, 2.0)),
    (list[date | int], [1, "2026-01-31"], [1, date(2026, 1, 31)]),
    (Strict, {"day": "2026-01-31"}, Strict(day=date(2026, 1, 31))),
    (Strict, {"number": str(UUID)}, Strict(number=UUID)),
    (Strict, {"color": "red"}, Strict(color=Color.RED)),
    (Strict, {"point": [1, "a"]}, Strict(point=(1, "a"))),
    (Strict, {"counts": [1, 2]}, Strict(counts={1, 2})),
    (Strict, {"price": "1.50"}, Strict(price=Decimal("1.50"))),
    (Strict, {"data": "x"}, Strict(data=b"x")),
    (Strict, {"path": "/etc"}, Strict(path=pathlib.Path("/etc"))),
    (Strict, {"names": {"1": "a"}}, Strict(names={1: "a"})),
    (list[Strict], [{"day": "2026-01-31"}], [Strict(day=date(2026, 1, 31))]),
    (dict[str, Strict] | None, {"a": {"color": "red"}}, {"a": Strict(color=Color.RED)}),
    (Annotated[date, pydantic.Strict()], "2026-01-31", date(2026, 1, 31)),
    (Celsius, 21.5, Celsius(21.5)),
    (list[Celsius], [1.5], [Celsius(1.5)]),
    (collections.deque[Part], [{"code": "x"}], collections.deque([Part("x")])),
]


@pytest.mark.parametrize(("annotation", "sent", "expected"), BUILT, ids=lambda value: str(value)[:40])
def test_a_tool_gets_what_its_annotation_names(annotation: Any, sent: Any, expected: Any) -> None:
    got = received(one(annotation), x=sent)

    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize(
    ("annotation", "sent", "expected"),
    [case for case in BUILT if case[2] != 2],  # a validator that adds 1 does so to any integer
    ids=lambda value: str(value)[:40],
)
def test_own_code_may_pass_the_object_itself(annotation: Any, sent: Any, expected: Any) -> None:
    got = received(one(annotation), x=expected)

    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize(
    ("annotation", "sent", "expected"),
    [
        (dict[str, float], {"a": 1, "b": 2.5}, {"a": 1.0, "b": 2.5}),
        (dict[str, list[float | None]], {"a": [1, None]}, {"a": [1.0, None]}),
        (Annotated[float, pydantic.Field(ge=0)] | None, 3, 3.0),
        (list[Annotated[float, pydantic.Field(ge=0)]], [3, 4.5], [3.0, 4.5]),
        (
            Spot,
            {"height": 1, "place": [1, 2.5], "before": {"height": 2.0, "place": None, "before": None}},
            {"height": 1.0, "place": [1.0, 2.5], "before": {"height": 2.0, "place": None, "before": None}},
        ),
        (
            Spot,
            {"height": 1.0, "place": None, "before": {"height": 2, "place": [3], "before": None}},
            {"height": 1.0, "place": None, "before": {"height": 2.0, "place": [3.0], "before": None}},
        ),
        (list[int] | list[float], [1, 2], [1, 2]),
        (list[float | int], [1, 2.5], [1, 2.5]),
        (list[float], (1.0, 2.0), [1.0, 2.0]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_integer_becomes_a_float_at_any_depth(annotation: Any, sent: Any, expected: Any) -> None:
    got = received(one(annotation), x=sent)

    assert repr(got) == repr(expected)


def test_a_value_whose_numbers_are_floats_is_passed_as_it_is() -> None:
    sent = {"height": 1.0, "place": [1.0, 2.5], "before": None}

    got = received(one(list[Spot]), x=[sent])

    assert got[0] is sent


def test_an_object_that_is_passed_is_the_one_that_arrives() -> None:
    item, order = Item("a", 1.0), Order(id=1, when=date(2026, 1, 31))

    def tool(item: Item, orders: list[Order], again: Item | None = None) -> None: ...

    got = received(tool, item=item, orders=[order], again=item)

    assert got["item"] is item
    assert got["orders"][0] is order
    assert got["again"] is item


def test_values_that_a_model_sends_are_coerced_before_they_are_built() -> None:
    def tool(stay: Stay, item: Item) -> None: ...

    got = received(tool, stay={"begin": "2026-01-31", "nights": "2"}, item='{"name": "a", "price": "3"}')

    assert got == {"stay": {"begin": date(2026, 1, 31), "nights": 2}, "item": Item("a", 3.0)}


def test_a_class_that_contains_itself_is_built_to_any_depth() -> None:
    sent: dict[str, Any] = {"name": "0", "price": 0}
    for depth in range(1, 30):
        sent = {"name": str(depth), "price": depth, "parent": sent}

    item = received(one(Item), x=sent)

    names = []
    while item is not None:
        names.append(item.name)
        item = item.parent
    assert names == [str(depth) for depth in range(29, -1, -1)]


def test_a_constructor_decides_about_its_own_fields() -> None:
    assert received(one(Sum), x={"start": 2}).total == 3


def test_annotations_may_be_strings() -> None:
    namespace: dict[str, Any] = {}
    source = "from __future__ import annotations\nfrom datetime import date\ndef tool(x: list[date]) -> None: ..."
    exec(source, namespace)

    assert received(namespace["tool"], x=["2026-01-31"]) == [date(2026, 1, 31)]


def test_star_arguments_are_built_too() -> None:
    got: list[Any] = []

    def tool(*days: date, **levels: Level) -> str:
        got.append((days, levels))
        return "done"

    toolkit = Toolkit(run_in="inline")
    toolkit.register_tool_function(tool, include_var_positional=True, include_var_keyword=True)

    toolkit.run("tool", days=["2026-01-31"], levels={"a": 2})

    assert got == [((date(2026, 1, 31),), {"a": Level.HIGH})]


def test_a_supplied_schema_does_not_change_what_the_tool_gets() -> None:
    got: list[Any] = []

    def tool(day: date) -> str:
        got.append(day)
        return "done"

    parameters = {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]}
    toolkit = Toolkit(run_in="inline")
    toolkit.register_tool_function(
        tool, json_schema={"type": "function", "function": {"name": "tool", "parameters": parameters}}
    )

    toolkit.run("tool", day="2026-01-31")

    assert got == [date(2026, 1, 31)]


@pytest.mark.parametrize("mode", ["check", "pass"])
def test_the_other_modes_pass_json_values(mode: Literal["check", "pass"]) -> None:
    got: list[Any] = []

    def tool(day: date, item: Item) -> str:
        got.append((day, item))
        return "done"

    toolkit = Toolkit(arguments=mode, run_in="inline")
    toolkit.register_tool_function(tool)

    toolkit.run("tool", day="2026-01-31", item={"name": "a", "price": 1})

    assert got == [("2026-01-31", {"name": "a", "price": 1})]


@pytest.mark.parametrize(
    ("annotation", "sent", "line"),
    [
        (date, "20260131", "x: expected a date"),
        (date, "2026-02-30", "x: expected a date"),
        (time, "25:00", "x: expected a time"),
        (datetime, "1769817600", "x: expected a date and time"),
        (timedelta, "soon", "x: expected a duration"),
        (uuid.UUID, "12", "x: expected a UUID"),
        (ipaddress.IPv4Address, "300.0.0.1", "x: expected an "),
        (list[date], ["2026-01-31", "x"], "x[1]: expected a date"),
        (dict[int, str], {"one": "a"}, "x.one: expected an integer as key"),
        (Item, {"name": "a", "price": -1}, "x: expected a valid Item (price must not be negative)"),
        (Item, {"name": "a", "price": 1, "colour": "red"}, "x.colour: unknown field"),
        (
            list[Item],
            [{"name": "a", "price": 1, "parent": {"name": "b", "price": -1}}],
            "x[0].parent: expected a valid Item",
        ),
        (Order, {"id": 0, "when": "2026-01-31"}, "x.id: expected "),
        (Order, {"id": 1, "when": "2001-01-31"}, "x.when: expected a valid value (too long ago)"),
        (list[Order], [{"id": 1, "when": "2001-01-31"}], "x[0].when: expected a valid value (too long ago)"),
        (Part, {"code": "x", "weight": -1}, "x: expected a valid Part (weight must be positive)"),
        (Annotated[str, pydantic.AfterValidator(int)], "a", "x: expected a valid value"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_value_that_cannot_be_built_is_answered_with_its_path(annotation: Any, sent: Any, line: str) -> None:
    problems = refused(one(annotation), x=sent)

    assert len(problems) == 1
    assert problems[0].startswith(line), problems


def test_a_strict_model_refuses_what_its_json_must_not_be() -> None:
    problems = refused(one(Strict), x={"size": 1.5, "color": "green"})

    assert {line.split(":")[0] for line in problems} == {"x.size", "x.color"}


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_a_number_that_json_does_not_have_is_refused_by_its_name(number: float) -> None:
    expected = [f"x: expected a number, got {number} (not a number that JSON has)"]

    assert refused(one(float), x=number) == expected


def test_a_sentinel_is_a_default_and_no_value() -> None:
    optional: Any = int | MISSING

    def tool(x: optional = MISSING) -> str:
        return repr(x)

    toolkit = Toolkit(run_in="inline", tools=[tool])

    assert [toolkit.run("tool", x=3).text, toolkit.run("tool").text] == ["3", "MISSING"]
    assert refused(tool, x="three") == ['x: expected an integer, got "three" (a string)']
    assert toolkit.get_json_schemas()[0]["function"]["parameters"]["properties"] == {"x": {"type": "integer"}}


def test_a_sentinel_alone_is_refused() -> None:
    with pytest.raises(errors.UnsupportedTypeError, match=r"parameter `x` .* a sentinel is not a JSON value"):
        Toolkit().register_tool_function(one(MISSING))


def test_every_problem_is_listed() -> None:
    def tool(items: list[Item], order: Order) -> None: ...

    wrong, right = {"name": "a", "price": -1}, {"name": "a", "price": 1}
    problems = refused(tool, items=[wrong, right, wrong], order={"id": 1, "when": "2001-01-31"})

    assert [problem.split(":")[0] for problem in problems] == ["items[0]", "items[2]", "order.when"]


def test_a_secret_stays_out_of_the_problem() -> None:
    toolkit = Toolkit(run_in="inline")

    @toolkit.tool(secrets=["day"])
    def tool(day: date) -> str:
        return "done"

    response = toolkit.run("tool", day="2026-99-99")

    assert response.code == "invalid_arguments"
    assert "2026-99-99" not in response.text


def test_an_interrupt_in_a_constructor_is_not_a_problem_of_the_value() -> None:
    @dataclass
    class Stop:
        name: str

        def __post_init__(self) -> None:
            raise KeyboardInterrupt

    toolkit = Toolkit(run_in="inline")

    @toolkit.tool
    def tool(x: Stop) -> str:
        return "done"

    async def call() -> ToolResponse:
        return await toolkit.call("tool", x={"name": "a"})

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(call())


def test_a_model_is_validated_once() -> None:
    count = 0

    class Counted(pydantic.BaseModel):
        name: str

        @pydantic.model_validator(mode="after")
        def counted(self) -> "Counted":
            nonlocal count
            count += 1
            return self

    received(one(Counted), x={"name": "a"})

    assert count == 1


def test_a_model_is_validated_once_when_a_rule_looks_at_it() -> None:
    count = 0

    class Counted(pydantic.BaseModel):
        name: str

        @pydantic.model_validator(mode="after")
        def counted(self) -> "Counted":
            nonlocal count
            count += 1
            return self

    toolkit = Toolkit(run_in="inline", policy=Policy([Rule("allow", tool="tool", arguments={"x.name": "a"})]))
    got: list[Any] = []

    @toolkit.tool
    def tool(x: Counted) -> str:
        got.append(x)
        return "done"

    toolkit.run("tool", x={"name": "a"})

    assert isinstance(got[0], Counted)
    assert count == 1


def approved(**options: Any) -> tuple[list[Any], list[ApprovalRequest], ToolResponse]:
    """Call a tool that takes an item and a mail after approval, and give what it got and what was asked."""
    got: list[Any] = []
    asked: list[ApprovalRequest] = []

    def approver(request: ApprovalRequest) -> Any:
        asked.append(request)
        return options.get("answer", "once")

    toolkit = Toolkit(run_in="inline", approver=approver)

    @toolkit.tool(permission="confirm")
    def tool(item: Item, mail: Aliased, day: date = date(2026, 1, 31), color: Color = Color.RED) -> str:
        got.append((item, mail, day, color))
        return "done"

    response = toolkit.run("tool", item={"name": "a", "price": 1}, mail={"to": "ann"})
    return got, asked, response


def test_an_approver_sees_every_default_in_its_json_form() -> None:
    got, asked, _ = approved()

    assert asked[0].arguments == {
        "item": {"name": "a", "price": 1, "tags": [], "parent": None},
        "mail": {"to": "ann", "copies": 1},
        "day": "2026-01-31",
        "color": "red",
    }
    item, mail, day, color = got[0]
    assert (item, mail.to_address, day, color) == (Item("a", 1.0), "ann", date(2026, 1, 31), Color.RED)


def test_arguments_that_an_approver_edits_are_the_ones_that_are_built() -> None:
    from toolcrib.policy import Approval

    edited = {"item": {"name": "b", "price": 2}, "mail": {"to": "bob"}}

    got, _, _ = approved(answer=Approval("once", arguments=edited))

    assert got[0][0] == Item("b", 2.0)
    assert got[0][1].to_address == "bob"


def test_a_rule_sees_a_default_inside_of_a_record() -> None:
    toolkit = Toolkit(run_in="inline", policy=Policy([Rule("deny", tool="send", arguments={"mail.copies": 1})]))

    @toolkit.tool
    def send(mail: Aliased) -> str:
        return "sent"

    assert toolkit.run("send", mail={"to": "ann"}).code == "denied"
    assert toolkit.run("send", mail={"to": "ann", "copies": 2}).ok


def test_typed_arguments_reach_threads_and_coroutines() -> None:
    toolkit = Toolkit()

    @toolkit.tool
    def in_thread(day: date) -> str:
        return type(day).__name__

    @toolkit.tool
    async def on_loop(day: date) -> str:
        return type(day).__name__

    assert toolkit.run("in_thread", day="2026-01-31").text == "date"
    assert toolkit.run("on_loop", day="2026-01-31").text == "date"


def test_a_list_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)

    assert refused(one(list[Item]), x=loop)


def test_a_tool_does_not_keep_its_classes_alive() -> None:
    @dataclass
    class Local:
        name: str

    toolkit = Toolkit(run_in="inline")

    def tool(x: Local, y: list[Local] | None = None) -> str:
        return x.name

    tool.__annotations__["z"] = toolkit
    toolkit.register_tool_function(tool)
    assert toolkit.run("tool", x={"name": "a"}).text == "a"
    gone = weakref.ref(Local)

    del toolkit, tool, Local
    gc.collect()

    assert gone() is None
