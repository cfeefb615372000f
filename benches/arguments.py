"""Checking and building arguments, against pydantic on the same types."""

# Annotations stay objects here, not strings, as in `tools`.

from datetime import date
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter, validate_call
from typing_extensions import TypedDict

from benches.figures import Row, at_least, at_most
from benches.measure import Bench
from benches.peers.toolcrib import Toolcrib
from toolcrib import Toolkit


class Place(TypedDict):
    """Where an order goes."""

    city: str
    street: str
    latitude: float
    longitude: float


class Item(TypedDict):
    """One line of an order."""

    sku: str
    count: int
    price: float


class Order(TypedDict):
    """The arguments of `order`, as pydantic reads them."""

    customer: str
    age: int
    score: float
    active: bool
    kind: Literal["new", "known", "lost"]
    note: str | None
    tags: list[str]
    place: Place
    items: list[Item]
    limits: dict[str, int]


ORDER: dict[str, Any] = {
    "customer": "Ada",
    "age": 36,
    "score": 0.75,
    "active": True,
    "kind": "known",
    "note": None,
    "tags": ["early", "often"],
    "place": {"city": "London", "street": "St James's Square", "latitude": 51.5, "longitude": -0.13},
    "items": [{"sku": "a-1", "count": 2, "price": 9.5}, {"sku": "b-2", "count": 1, "price": 120.0}],
    "limits": {"day": 3, "week": 10},
}


STAY: dict[str, Any] = {
    "guest": "Ada",
    "nights": 3,
    "rate": 99.5,
    "breakfast": True,
    "note": "quiet",
    "arrival": "2026-11-16",
}


class Booking(BaseModel):
    """The same as a model."""

    guest: str
    nights: int
    rate: float
    breakfast: bool
    note: str
    arrival: date


async def rows(bench: Bench) -> list[Row]:
    """Measure what checking and building arguments add to a call, and pydantic on the same types.

    Args:
        bench: Runs the measurement.

    Returns:
        Three rows.
    """
    return [await nested(bench), *await typed(bench)]


async def typed(bench: Bench) -> list[Row]:
    """Measure five scalars and a date, and a model that pydantic validates."""
    own = Toolcrib()
    answer = own.answer

    async def book(guest: str, nights: int, rate: float, breakfast: bool, note: str, arrival: date):  # type: ignore[no-untyped-def]
        """Book a room."""
        return answer

    async def book_model(booking: Booking):  # type: ignore[no-untyped-def]
        """Book a room."""
        return answer

    def bare(guest: str, nights: int, rate: float, breakfast: bool, note: str, arrival: date) -> None:
        """Do nothing."""

    kits = {"pass": Toolkit(arguments="pass"), "coerce": Toolkit()}
    for kit in kits.values():
        kit.register_tool_function(book)
        kit.register_tool_function(book_model)
        assert (await kit.call("book", **STAY)).ok
        assert (await kit.call("book_model", booking=STAY)).ok
    validated = validate_call(bare)
    model = TypeAdapter(Booking).validate_python

    def with_pydantic(times: int) -> None:
        for _ in range(times):
            validated(**STAY)

    def without(times: int) -> None:
        for _ in range(times):
            bare(**STAY)

    def model_alone(times: int) -> None:
        for _ in range(times):
            model(STAY)

    timings = await bench.interleave(
        "typed arguments",
        {
            "validate_call": with_pydantic,
            "bare": without,
            "model": model_alone,
            **{f"book {mode}": own.loop(kit, "book", STAY) for mode, kit in kits.items()},
            **{f"model {mode}": own.loop(kit, "book_model", {"booking": STAY}) for mode, kit in kits.items()},
        },
    )
    added = timings["book coerce"] - timings["book pass"]
    model_added = timings["model coerce"] - timings["model pass"]
    return [
        Row(
            "build 5 scalars and a date",
            (
                at_least(
                    (timings["validate_call"] - timings["bare"]) / added,
                    2,
                    3,
                    "{}× faster than pydantic's `validate_call`",
                ),
            ),
        ),
        Row(
            "build a pydantic model",
            (at_most(model_added / timings["model"], 1.25, 1.1, "{}× pydantic's own validator"),),
        ),
    ]


async def nested(bench: Bench) -> Row:
    """Measure ten nested arguments."""
    own = Toolcrib()
    answer = own.answer

    async def order(  # type: ignore[no-untyped-def]
        customer: str,
        age: int,
        score: float,
        active: bool,
        kind: Literal["new", "known", "lost"],
        note: str | None,
        tags: list[str],
        place: Place,
        items: list[Item],
        limits: dict[str, int],
    ):
        """Take an order."""
        return answer

    kits = {"pass": Toolkit(arguments="pass"), "check": Toolkit(arguments="check"), "coerce": Toolkit()}
    for kit in kits.values():
        kit.register_tool_function(order)
        assert (await kit.call("order", **ORDER)).ok
    for mode in ("check", "coerce"):
        assert (await kits[mode].call("order", **{**ORDER, "limits": {"day": "many"}})).code == "invalid_arguments"
    validate = TypeAdapter(Order).validate_python
    assert validate(ORDER) == dict(ORDER)

    def pydantic(times: int) -> None:
        for _ in range(times):
            validate(ORDER)

    timings = await bench.interleave(
        "ten nested arguments",
        {"pydantic": pydantic, **{mode: own.loop(kit, "order", ORDER) for mode, kit in kits.items()}},
    )
    added = timings["coerce"] - timings["pass"]
    return Row(
        "check 10 nested arguments",
        (at_least(timings["pydantic"] / added, 2, 2.5, "{}× faster than pydantic's TypeAdapter"),),
    )
