"""Everything that can be called can be a tool: partials, methods, objects, classes, builtins and generators."""

import copy
import functools
import operator
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from toolcrib import Toolkit


def area(width: int, height: int = 2, *, unit: str = "m") -> str:
    return f"{width * height} {unit}"


class Shop:
    """Sell things."""

    currency = "€"

    def __init__(self, town: str = "Rome") -> None:
        self.town = town

    def price(self, item: str) -> str:
        return f"{item} in {self.town}"

    @classmethod
    def in_currency(cls, amount: int) -> str:
        return f"{amount} {cls.currency}"

    @staticmethod
    def total(amounts: list[int]) -> int:
        return sum(amounts)


class Adder:
    """Add a number to what comes."""

    def __init__(self, step: int) -> None:
        self.step = step

    def __call__(self, number: int) -> int:
        return number + self.step


class AsyncAdder(Adder):
    async def __call__(self, number: int) -> int:  # type: ignore[override]
        return number + self.step


def wrapped_area() -> Callable[..., Any]:
    @functools.wraps(area)
    def wrapper(*arguments: Any, **named: Any) -> str:
        return "about " + area(*arguments, **named)

    return wrapper


async def coroutine(number: int) -> int:
    return number


def generator(number: int) -> Iterator[int]:
    yield from range(number + 1)


async def async_generator(number: int) -> AsyncIterator[int]:
    for item in range(number + 1):
        yield item


async def coroutine_of_generator(number: int) -> Iterator[int]:
    return generator(number)


async def coroutine_of_async_generator(number: int) -> AsyncIterator[int]:
    return async_generator(number)


@pytest.mark.filterwarnings("ignore:model providers refuse")
@pytest.mark.parametrize(
    ("tool", "name", "arguments", "text"),
    [
        (area, "area", {"width": 3}, "6 m"),
        (lambda number: number, "<lambda>", {"number": 3}, "3"),
        (wrapped_area(), "area", {"width": 3}, "about 6 m"),
        (Shop("Bonn").price, "price", {"item": "tea"}, "tea in Bonn"),
        (Shop.in_currency, "in_currency", {"amount": 3}, "3 €"),
        (Shop.total, "total", {"amounts": [1, 2]}, "3"),
        (Adder(1), "Adder", {"number": 2}, "3"),
        (AsyncAdder(1), "AsyncAdder", {"number": 2}, "3"),
        (complex, "complex", {"real": 1, "imag": 2}, '"(1+2j)"'),
        (operator.add, "add", {"a": 1, "b": 2}, "3"),
        (coroutine, "coroutine", {"number": 3}, "3"),
        (generator, "generator", {"number": 3}, "[0, 1, 2, 3]"),
        (async_generator, "async_generator", {"number": 3}, "[0, 1, 2, 3]"),
        (coroutine_of_generator, "coroutine_of_generator", {"number": 3}, "[0, 1, 2, 3]"),
        (coroutine_of_async_generator, "coroutine_of_async_generator", {"number": 3}, "[0, 1, 2, 3]"),
        (functools.partial(area, 4), "area", {}, "8 m"),
        (functools.partial(area, unit="km"), "area", {"width": 3}, "6 km"),
        (functools.partial(functools.partial(area, 4), 5, unit="km"), "area", {}, "20 km"),
        (functools.partial(Adder(1), 4), "Adder", {}, "5"),
        (functools.partial(coroutine, 4), "coroutine", {}, "4"),
        (functools.partial(Shop("Bonn").price, "tea"), "price", {}, "tea in Bonn"),
        (functools.partial(Shop.price, Shop("Bonn")), "price", {"item": "tea"}, "tea in Bonn"),
        (functools.partial(Shop.price, Shop("Bonn"), "tea"), "price", {}, "tea in Bonn"),
    ],
)
def test_a_callable_of_any_kind_is_called_by_its_name(
    tool: Callable[..., Any], name: str, arguments: dict[str, Any], text: str
) -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(tool)

    assert list(toolkit.tools) == [name]
    assert toolkit.run(name, **arguments).text == text


def test_a_class_is_called_like_a_function() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(Shop)

    response = toolkit.run("Shop", town="Oslo")

    assert response.metadata is not None
    assert response.metadata["value"].town == "Oslo"


def test_what_a_partial_has_bound_is_preset() -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(functools.partial(area, 4, unit="km"))

    tool = toolkit.tools["area"]
    assert tool.preset_kwargs == {"width": 4, "unit": "km"}
    assert tool.original_func is area
    assert list(tool.json_schema["function"]["parameters"]["properties"]) == ["height"]


def test_an_outer_partial_wins_over_an_inner_one_and_presets_win_over_both() -> None:
    toolkit = Toolkit()
    inner = functools.partial(area, unit="km", height=3)

    toolkit.register_tool_function(functools.partial(inner, unit="mm"), preset_kwargs={"height": 5})

    assert toolkit.run("area", width=2).text == "10 mm"


def test_a_partial_of_a_subclass_is_taken_apart_too() -> None:
    class Marked(functools.partial):  # type: ignore[type-arg]
        pass

    toolkit = Toolkit()

    toolkit.register_tool_function(functools.partial(Marked(area, 4), 5))

    assert toolkit.tools["area"].preset_kwargs == {"width": 4, "height": 5}
    assert toolkit.run("area").text == "20 m"


def test_a_partial_is_never_changed() -> None:
    toolkit, part = Toolkit(), functools.partial(area, 4, unit="km")
    before = copy.deepcopy((part.args, part.keywords))

    toolkit.register_tool_function(part, preset_kwargs={"height": 3})
    toolkit.run("area")

    assert (part.args, part.keywords) == before
    assert part() == "8 km"


def test_a_partial_may_bind_what_goes_to_var_positional() -> None:
    def total(*numbers: int, scale: int = 1) -> int:
        return sum(numbers) * scale

    toolkit = Toolkit()

    toolkit.register_tool_function(functools.partial(total, 1, 2))

    assert list(toolkit.tools) == ["total"]
    assert toolkit.run("total", scale=10).text == "30"


def test_an_object_without_a_name_goes_by_its_class() -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(Adder(1), func_name="increment")

    assert toolkit.tools["increment"].original_name == "Adder"
    assert toolkit.run("increment", number=2).text == "3"


def test_positional_only_parameters_can_be_sent_by_name() -> None:
    def divide(a: float, b: float = 2, /) -> float:
        return a / b

    toolkit = Toolkit()
    toolkit.register_tool_function(divide)

    assert toolkit.run("divide", a=9.0, b=3.0).text == "3.0"
    assert toolkit.run("divide", a=9.0).text == "4.5"


def test_a_method_that_was_never_bound_can_be_given_its_receiver_as_a_preset() -> None:
    toolkit = Toolkit()

    with pytest.raises(TypeError, match=r"`Shop\.price` is a method without its object"):
        toolkit.register_tool_function(Shop.price)
    toolkit.register_tool_function(Shop.price, func_name="priced", preset_kwargs={"self": Shop("Bonn")})

    assert list(toolkit.tools) == ["priced"]
    assert list(toolkit.tools["priced"].json_schema["function"]["parameters"]["properties"]) == ["item"]
    assert toolkit.run("priced", item="tea").text == "tea in Bonn"


def test_a_builtin_without_a_signature_is_refused() -> None:
    toolkit = Toolkit()

    with pytest.raises(ValueError, match="no signature found for builtin"):
        toolkit.register_tool_function(min)

    assert dict(toolkit.tools) == {}


def test_the_same_function_may_be_several_tools() -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(area)
    toolkit.register_tool_function(area, func_name="square_miles", preset_kwargs={"unit": "mi²"})

    assert toolkit.run("area", width=1).text == "2 m"
    assert toolkit.run("square_miles", width=1).text == "2 mi²"


def test_two_toolkits_keep_their_tools_apart() -> None:
    one, other = Toolkit(), Toolkit(run_in="inline")
    one.register_tool_function(area, preset_kwargs={"unit": "cm"})
    other.register_tool_function(area)

    one.remove_tool_function("area")

    assert dict(one.tools) == {}
    assert other.tools["area"].run_in == "inline"
    assert other.run("area", width=1).text == "2 m"
