"""Checking arguments: ten of them, nested, against pydantic on the same types."""

# Annotations stay objects here, not strings, as in `tools`.

from typing import Any, Literal

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from benches.figures import Row, at_least
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
    """The arguments of `order`, as pydantic is told about them."""

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


async def rows(bench: Bench) -> list[Row]:
    """Measure what a check adds to a call, and pydantic's check of the same object.

    Args:
        bench: Runs the measurement.

    Returns:
        One row.
    """
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
    return [
        Row(
            "check 10 nested arguments",
            (at_least(timings["pydantic"] / added, 2, 2.5, "{}× faster than pydantic's TypeAdapter"),),
        )
    ]
