"""Typed values in many spellings, against the rules of a policy."""

from __future__ import annotations

import datetime
import enum
import fractions
import ipaddress
import pathlib
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple

import attrs
import msgspec
import pydantic
from typing_extensions import TypedDict

from soak.attack import Outcome, attack
from toolcrib import Policy, Toolkit
from toolcrib.policy import Rule

Json = Any


class Level(enum.Enum):
    """A level."""

    LOW = 1
    HIGH = 2


@dataclass
class Payment:
    """A dataclass."""

    amount: Decimal
    when: datetime.date | None = None


class Order(pydantic.BaseModel):
    """A pydantic model."""

    amount: Decimal
    when: datetime.date | None = None


class Transfer(msgspec.Struct):
    """A msgspec struct."""

    amount: Decimal
    when: datetime.date | None = None


class Bill(TypedDict):
    """A typed dictionary."""

    amount: Decimal


class Pair(NamedTuple):
    """A named tuple."""

    amount: Decimal
    times: int = 1


def lower(word: str) -> str:
    """Write a word in one way."""
    return word.strip().lower()


@attrs.define
class Command:
    """An attrs class with a converter."""

    word: str = attrs.field(converter=lower)


class Strict(pydantic.BaseModel):
    """A model that strips its texts."""

    model_config = pydantic.ConfigDict(str_strip_whitespace=True)

    word: str


Shouted = Annotated[str, pydantic.BeforeValidator(lower)]


def _decimals(value: Decimal) -> list[Json]:
    plain = format(value, "f")
    texts = [plain, str(value), f"{value:e}", f" {plain} ", f"{plain}0" if "." in plain else f"{plain}.00"]
    digits = plain.translate({ord(str(digit)): chr(0xFF10 + digit) for digit in range(10)})
    exact = [int(value)] if value == int(value) else []
    return [*texts, digits, *exact, float(value)]


def _fractions(value: fractions.Fraction) -> list[Json]:
    above, below = value.numerator, value.denominator
    return [f"{above}/{below}", f"{above * 3}/{below * 3}", f" {above}/{below} ", *([above] if below == 1 else [])]


def _dates(value: datetime.date) -> list[Json]:
    return [value.isoformat(), f"{value.isoformat()}T00:00:00", f"{value.isoformat()}T00:00"]


def _unix_time(value: datetime.date) -> str:
    return str((value - datetime.date(1970, 1, 1)).days * 86_400)


def _moments(value: datetime.datetime) -> list[Json]:
    zones = [datetime.timezone(datetime.timedelta(minutes=minutes)) for minutes in (0, 60, -300, 345)]
    texts = [value.astimezone(zone).isoformat() for zone in zones]
    return [*texts, texts[0].replace("+00:00", "Z"), texts[0].replace("T", " ")]


def _times(value: datetime.time) -> list[Json]:
    text = value.isoformat()
    return [f"{text}Z", f"{text}+00:00", f"{text}.000000Z" if "." not in text else f"{text}Z"]


def _spans(value: datetime.timedelta) -> list[Json]:
    seconds = int(value.total_seconds())
    hours, rest = divmod(seconds, 3600)
    return [f"PT{seconds}S", f"PT{seconds // 60}M{seconds % 60}S", f"{hours:02}:{rest // 60:02}:{rest % 60:02}"]


def _ids(value: uuid.UUID) -> list[Json]:
    return [str(value), value.hex, value.urn, f"{{{value}}}", str(value).upper()]


def _addresses(value: ipaddress.IPv6Address) -> list[Json]:
    return [str(value), value.exploded, value.exploded.upper()]


def _networks(value: ipaddress.IPv4Network) -> list[Json]:
    return [str(value), value.with_netmask, value.with_hostmask]


def _paths(value: str) -> list[Json]:
    return [
        value,
        value.replace("/", "//", 1) if value.startswith("/") else f"./{value}",
        value.replace("/", "/./"),
        f"{value}/",
    ]


def _links(value: str) -> list[Json]:
    host, path = value.removeprefix("http://").split("/", 1)
    return [value, f"HTTP://{host.upper()}/{path}", f"http://{host}:80/{path}", f"http:\\\\{host}/{path}"]


def _words(value: str) -> list[Json]:
    return [value, f" {value} ", value.upper(), f"\t{value.title()}\n"]


def _within(name: str, spell: Callable[[Any], list[Json]]) -> Callable[[Any], list[Json]]:
    return lambda value: [{name: spelling} for spelling in spell(value)]


@dataclass(frozen=True)
class Kind:
    """A type of arguments, with random values of it and the spellings of a value."""

    annotation: Any
    draw: Callable[[random.Random], Any]
    spell: Callable[[Any], list[Json]]


def _decimal(rng: random.Random) -> Decimal:
    return Decimal(rng.randint(-3000, 3000)).scaleb(rng.choice([-3, -1, 0, 0, 2]))


def _day(rng: random.Random) -> datetime.date:
    return datetime.date(2026, 1, 1) + datetime.timedelta(days=rng.randrange(400))


_DECIMALS = {"decimal": Decimal, "optional": Decimal | None, "union": Decimal | datetime.date}
_RECORDS = {"dataclass": Payment, "pydantic": Order, "msgspec": Transfer, "typed dict": Bill}

KINDS: dict[str, Kind] = {
    **{name: Kind(annotation, _decimal, _decimals) for name, annotation in _DECIMALS.items()},
    **{name: Kind(annotation, _decimal, _within("amount", _decimals)) for name, annotation in _RECORDS.items()},
    "named tuple": Kind(Pair, _decimal, lambda value: [[spelling] for spelling in _decimals(value)]),
    "list": Kind(list[Decimal], _decimal, lambda value: [[spelling] for spelling in _decimals(value)]),
    "set": Kind(
        set[Decimal], _decimal, lambda value: [[one, other] for one in _decimals(value) for other in _decimals(value)]
    ),
    "map": Kind(
        dict[int, Decimal],
        _decimal,
        lambda value: [{key: spelling} for key in ("7", "07", "+7") for spelling in _decimals(value)],
    ),
    "fraction": Kind(
        fractions.Fraction, lambda rng: fractions.Fraction(rng.randint(-99, 99), rng.randint(1, 12)), _fractions
    ),
    "float": Kind(
        float,
        lambda rng: rng.choice([0.0, 1.0, 250.0, -7.0]),
        lambda value: [value, int(value), -value if value == 0 else value],
    ),
    "integer": Kind(
        int, lambda rng: rng.randint(-300, 300), lambda value: [value, float(value), str(value), f" {value} "]
    ),
    "date": Kind(datetime.date, _day, _dates),
    "moment": Kind(
        datetime.datetime,
        lambda rng: (
            datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
            + datetime.timedelta(minutes=rng.randrange(10**5))
        ),
        _moments,
    ),
    "time": Kind(datetime.time, lambda rng: datetime.time(rng.randrange(24), rng.randrange(60)), _times),
    "span": Kind(datetime.timedelta, lambda rng: datetime.timedelta(seconds=rng.randrange(86_000)), _spans),
    "pydantic span": Kind(
        pydantic.create_model("Wait", span=(datetime.timedelta, ...)),
        lambda rng: datetime.timedelta(seconds=rng.randrange(86_000)),
        _within("span", _spans),
    ),
    "pydantic date": Kind(
        Order, _day, lambda value: [{"amount": 1, "when": spelling} for spelling in [*_dates(value), _unix_time(value)]]
    ),
    "uuid": Kind(uuid.UUID, lambda rng: uuid.UUID(int=rng.getrandbits(128)), _ids),
    "address": Kind(
        ipaddress.IPv6Address, lambda rng: ipaddress.IPv6Address(rng.getrandbits(rng.choice([8, 128]))), _addresses
    ),
    "network": Kind(
        ipaddress.IPv4Network,
        lambda rng: ipaddress.IPv4Network((rng.getrandbits(24) << 8, rng.randint(24, 30))),
        _networks,
    ),
    "path": Kind(pathlib.Path, lambda rng: rng.choice(["/etc/passwd", "/tmp/x", "home/ann", "a"]), _paths),
    "link": Kind(pydantic.HttpUrl, lambda rng: f"http://{rng.choice(['evil', 'good'])}.com/x", _links),
    "bytes": Kind(bytes, lambda rng: rng.choice(["a", "", "é"]), lambda value: [value, value]),
    "enumeration": Kind(Level, lambda rng: rng.choice([1, 2]), lambda value: [value, float(value), str(value)]),
    "stripped": Kind(
        Strict, lambda rng: rng.choice(["delete", "read"]), lambda value: [{"word": value}, {"word": f" {value}\n"}]
    ),
    "validated": Kind(Shouted, lambda rng: rng.choice(["delete", "read"]), _words),
    "converted": Kind(Command, lambda rng: rng.choice(["delete", "read"]), _within("word", _words)),
}


def conditions(rng: random.Random, operand: Json) -> Json:
    """A condition of any kind on a value that may be like the operand."""
    text = operand if isinstance(operand, str) else str(operand)
    letters = text[: rng.randint(1, 5)] or "a"
    number = rng.choice([-100, 0, 7, 100, 0.5])
    return rng.choice(
        [
            {"equals": operand},
            {"not_equals": operand},
            {"in": [operand, "x"]},
            {"contains": operand if text else "x"},
            {"prefix": letters},
            {"suffix": text[-3:] or "a"},
            {"glob": "".join(letter if letter.isalnum() else "?" for letter in letters) + "*"},
            {"matches": r"^[0-9a-f]{3}"},
            {"gt": number},
            {"ge": number},
            {"lt": number},
            {"le": number},
            {"gt": number, "lt": 1000},
            {"type": rng.choice(["string", "number", "integer", "object", "array"])},
        ]
    )


@dataclass(frozen=True)
class Case:
    """Two spellings of one value, and a rule on it."""

    kind: str
    spellings: tuple[Json, Json]
    rule: Rule
    default: Literal["allow", "deny"]

    def outcomes(self) -> tuple[list[Any], list[Any]]:
        """Call a tool with both spellings: the codes of the responses, and the values that it got without the rule."""
        built: list[Any] = []

        def work(what: Any) -> str:
            built.append(what)
            return "ran"

        work.__annotations__ = {"what": KINDS[self.kind].annotation, "return": str}
        free, ruled = Toolkit(run_in="inline"), Toolkit(run_in="inline", policy=Policy([self.rule], self.default))
        for toolkit in (free, ruled):
            toolkit.register_tool_function(work)
        for spelling in self.spellings:
            free.run("work", what=spelling)
        values = built[:]
        return [ruled.run("work", what=spelling).code for spelling in self.spellings], values


def draw_case(rng: random.Random) -> Case:
    """A random case of any kind."""
    name = rng.choice(list(KINDS))
    kind = KINDS[name]
    value = kind.draw(rng)
    spellings = kind.spell(value)
    one, other = rng.choice(spellings), rng.choice(spellings)
    operand = rng.choice(kind.spell(rng.choice([value, kind.draw(rng)])))
    path = "what"
    while isinstance(operand, dict | list) and operand and rng.random() < 0.8:
        key = next(iter(operand)) if isinstance(operand, dict) else 0
        operand = operand[key]
        path += rng.choice(["[*]", f"[{key!r}]".replace("'", '"')])
    decisions: list[Literal["deny", "ask", "allow"]] = ["deny", "ask", "allow"]
    decision = rng.choice(decisions)
    arguments = (
        {"args_pattern": r"[05][^0-9]"} if rng.random() < 0.1 else {"arguments": {path: conditions(rng, operand)}}
    )
    return Case(
        name, (one, other), Rule(decision, tool="work", **arguments), "deny" if decision == "allow" else "allow"
    )


@attack(
    row="l2",
    promise="a rule decides on the value that the tool gets, however the model spelled it",
    unit="pairs of spellings",
    release=50_000,
    smallest=300,
)
def spellings(number: int) -> Outcome:
    """Call a tool with two spellings of one value, under a rule with any condition."""
    rng = random.Random(number)
    outcome = Outcome(0)
    while outcome.attempts < number:
        case = draw_case(rng)
        codes, built = case.outcomes()
        if len(built) != 2 or built[0] != built[1]:
            continue  # one of them is not a spelling of the value
        outcome.attempts += 1
        if codes[0] != codes[1]:
            outcome.broken.append(f"{case}: {codes}")
    return outcome
