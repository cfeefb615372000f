"""Types whose schema would be larger than any model reads: refused with a clear error, and quickly."""

from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from typing import Annotated, Any, Generic, List, NewType, TypeVar

import pydantic
import pytest

from toolcrib import Toolkit, errors

T = TypeVar("T")
LEVELS = 40


def doubled(double: Callable[[Any], Any], innermost: Any = int, levels: int = LEVELS) -> Any:
    annotation = innermost
    for _ in range(levels):
        annotation = double(annotation)
    return annotation


def taking(annotation: Any) -> Callable[..., None]:
    def target(a: Any, b: int = 1) -> None: ...

    target.__annotations__ = {"a": annotation, "b": int}
    return target


class Model(pydantic.BaseModel):
    n: int


def new_type(inner: Any) -> Any:
    make: Any = NewType
    return make("N", inner)


@dataclass
class Grown(Generic[T]):
    value: T
    more: "Grown[tuple[T, T]] | None" = None


# Types that are put together here, not by a type checker.
TUPLE: Any = tuple
LIST: Any = list
DICT: Any = dict
TYPING_LIST: Any = List
ANNOTATED: Any = Annotated

DOUBLES: dict[str, Any] = {
    "tuple": doubled(lambda inner: TUPLE[inner, inner]),
    "dict": doubled(lambda inner: DICT[str, TUPLE[inner, inner]]),
    "list_of_tuples": doubled(lambda inner: LIST[TUPLE[inner, inner]]),
    # `typing` itself takes as long as there are parts.
    "typing": doubled(lambda inner: TUPLE[TYPING_LIST[inner], inner], levels=17),
    "annotated": doubled(lambda inner: TUPLE[ANNOTATED[inner, "text"], inner], levels=17),
    "new_type": doubled(lambda inner: new_type(TUPLE[inner, inner])),
    "pydantic_inside": doubled(lambda inner: TUPLE[inner, inner], Model),
    "string_inside": doubled(lambda inner: TUPLE[inner, inner], "Model"),
    "unsupported_inside": doubled(lambda inner: TUPLE[inner, inner], Callable[..., Any]),
    "deep": doubled(lambda inner: TUPLE[inner, inner], doubled(lambda inner: LIST[TUPLE[LIST[inner], inner]])),
    "generic": Grown[int],
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", DOUBLES)
def test_a_type_that_doubles_is_refused(name: str) -> None:
    toolkit = Toolkit()

    with pytest.raises(errors.UnsupportedTypeError, match=r"parameter `a`.*too large") as raised:
        toolkit.register_tool_function(taking(DOUBLES[name]))

    assert len(str(raised.value)) < 1_000
    assert dict(toolkit.tools) == {}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", DOUBLES)
def test_a_type_that_doubles_may_be_hidden(name: str) -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(taking(DOUBLES[name]), preset_kwargs={"a": 1})

    assert toolkit.tools["target"].json_schema["function"]["parameters"]["properties"] == {
        "b": {"default": 1, "type": "integer"}
    }


@pytest.mark.timeout(60)
def test_strings_that_double_are_refused() -> None:
    names = {"g0": "int", **{f"g{level}": f"tuple[g{level - 1}, g{level - 1}]" for level in range(1, LEVELS)}}
    scope: dict[str, Any] = dict(names)
    exec(f"def target(a: 'g{LEVELS - 1}') -> None: ...", scope)

    with pytest.raises(errors.UnsupportedTypeError, match="too large"):
        Toolkit().register_tool_function(scope["target"])


@pytest.mark.timeout(60)
def test_records_that_share_their_parts_stay_small() -> None:
    record = make_dataclass("Leaf", [("n", int)])
    for level in range(LEVELS):
        record = make_dataclass(f"Level{level}", [("one", record), ("other", record)])
    toolkit = Toolkit()

    toolkit.register_tool_function(taking(record))

    definitions = toolkit.tools["target"].json_schema["function"]["parameters"]["$defs"]
    assert len(definitions) == LEVELS + 1


@pytest.mark.timeout(60)
def test_a_large_type_that_is_not_absurd_is_described() -> None:
    fields: Any = [(f"field_{index}", list[dict[str, tuple[int, str]]]) for index in range(1_000)]
    toolkit = Toolkit()

    toolkit.register_tool_function(taking(make_dataclass("Wide", fields)))

    wide = toolkit.tools["target"].json_schema["function"]["parameters"]["properties"]["a"]
    assert "field_999" in str(wide) or "$ref" in str(wide)
