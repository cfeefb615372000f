"""Definitions of one name: which of them gets which, next to what pydantic does."""

# Types are made at run time here, where no type checker can follow.
# mypy: disable-error-code="misc, valid-type"

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, Optional, TypeVar, Union

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypeAliasType

from support.schema.oracle import described, expected, function_of
from toolcrib.errors import UnsupportedTypeError


def _enumeration(*values: Any) -> Any:
    return enum.Enum("Thing", [(f"M{index}", value) for index, value in enumerate(values)], module="namesakes")


def _record(**fields: Any) -> Any:
    made = dataclasses.make_dataclass("Thing", list(fields.items()))
    made.__module__ = "namesakes"
    return made


def _row(**fields: Any) -> Any:
    made = NamedTuple("Thing", list(fields.items()))
    made.__module__ = "namesakes"
    return made


class Model(BaseModel):
    number: int = 1


Action = Callable[[], int]
FIRST, SECOND = _enumeration(1), _enumeration(2)
LEAF, BRANCH = _record(x=str), _record(x=int)
# The choice that has no schema is three definitions deep.
HOLDER = _record(x=Union[_record(x=_record(x=Optional[Action])), Action, None])

SIGNATURES: dict[str, dict[str, tuple[Any, Any]]] = {
    "enums_as_fields": {"a": (FIRST, ...), "b": (SECOND, ...), "c": (FIRST, None)},
    "enum_behind_an_alias": {"a": (FIRST, ...), "b": (TypeAliasType("Thing", SECOND), ...), "c": (SECOND, None)},
    "enums_inside_others": {"a": (list[FIRST], ...), "b": (Optional[SECOND], ...), "c": (dict[str, SECOND], ...)},
    "enums_in_records": {
        "a": (_record(x=FIRST, y=Optional[_record(x=Optional[SECOND], y=list[SECOND], z=SECOND)]), ...)
    },
    "noted_place_of_a_row": {
        "a": (FIRST, ...),
        "b": (_row(x=Annotated[LEAF, Field(description="noted")], y=BRANCH), ...),
    },
    "noted_list": {
        "a": (_row(x=TypeVar("V", bound=Annotated[list[_record(x=LEAF)], Field(description="noted")]), y=LEAF), ...),
        "b": (BRANCH, None),
    },
    "bounded_variable": {"a": (BRANCH, ...), "b": (TypeVar("V", bound=LEAF), ...)},
    "choice_without_a_schema": {"a": (LEAF, ...), "b": (HOLDER, ...)},
    "asked_of_pydantic": {"a": (Model, ...), "b": (FIRST, ...), "c": (Union[LEAF, Action], ...), "d": (SECOND, ...)},
    "limited_enums": {"a": (Annotated[FIRST, Field(ge=1)], ...), "b": (FIRST, ...), "c": (Optional[SECOND], ...)},
}


@pytest.mark.parametrize("parameters", SIGNATURES.values(), ids=SIGNATURES.keys())
def test_namesakes_are_named_as_pydantic_names_them(parameters: dict[str, tuple[Any, Any]]) -> None:
    assert described(function_of(parameters)) == expected(parameters)


def test_a_choice_without_a_schema_is_left_out_wherever_it_stands() -> None:
    shared = _record(x=Action)
    parameters = {"a": (Model, ...), "b": (Union[int, shared], ...), "c": (Union[str, shared], ...)}

    properties = described(function_of(parameters))["properties"]

    # pydantic can leave it out of one parameter, but not of two that share it.
    assert properties["b"] == {"type": "integer"}
    assert properties["c"] == {"type": "string"}


def test_a_shared_definition_without_a_schema_is_refused_by_name() -> None:
    shared = _record(x=Action)
    parameters = {"a": (Model, ...), "b": (Union[int, shared], ...), "c": (list[shared], ...)}

    with pytest.raises(UnsupportedTypeError, match=r"parameter `c` has type .*Callable"):
        described(function_of(parameters))


def test_a_class_that_nothing_is_said_about_is_refused() -> None:
    with pytest.raises(UnsupportedTypeError, match=r"parameter `a` .*a class is not a JSON value"):
        described(function_of({"a": (type[TypeVar("V")], ...)}))
