"""Strategies for types with a name: records and enumerations, many of them with the same name."""

# Types are made at run time here, where no type checker can follow.
# mypy: disable-error-code="assignment, index, misc, no-redef, valid-type"

from __future__ import annotations

import dataclasses
import enum
import itertools
import sys
import types
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Optional, TypeVar, Union

from hypothesis import strategies as st
from pydantic import ConfigDict, Field, create_model
from typing_extensions import NotRequired, Required, Self, TypedDict

from support.schema import models

T = TypeVar("T")

# A type together with a strategy for its values.
Typed = tuple[Any, st.SearchStrategy[Any]]
# A field with what it holds.
Member = tuple[str, Typed]

text = st.text("ab_é", max_size=4)
small = st.integers(-3, 3)

# Few names, so that definitions must be distinguished, each in a module of its own. (Known difference: two classes of
# one name in one module, which is one class defined twice, are in places numbered in another order than pydantic's.)
NAMES = ["Thing", "Item"]
RECORDS = itertools.count()
DOCS = [None, "A thing.", "  More\n    lines.\n"]
OPEN = [T, list[T], Optional[T], Union[T, str], models.Box[T], Optional[Self]]


def module_of_its_own() -> str:
    """Name a module that nothing else is in."""
    name = f"schema_property_{next(RECORDS)}"
    sys.modules[name] = types.ModuleType(name)
    return name


@st.composite
def record(draw: st.DrawFn, inner: st.SearchStrategy[Typed]) -> Typed:
    """A dataclass, a `TypedDict`, a `NamedTuple` or an enumeration, with members of the inner types."""
    members = list(zip("xyz", draw(st.lists(inner, min_size=1, max_size=3)), strict=False))
    name = draw(st.sampled_from(NAMES))
    module = module_of_its_own()
    made = draw(st.sampled_from([_dataclass, _typed_dict, _named_tuple, _enumeration]))(draw, name, members, inner)
    made_class = getattr(made, "__origin__", made)
    made_class.__module__ = module
    return made, st.none()


@st.composite
def model(draw: st.DrawFn, inner: st.SearchStrategy[Typed]) -> Typed:
    """A model of pydantic's, with fields under other names."""
    fields: dict[str, Any] = {}
    for field, (annotation, values) in zip("xyz", draw(st.lists(inner, min_size=1, max_size=3)), strict=False):
        kind = draw(st.sampled_from(["required", "default", "alias", "described"]))
        default: Any = ...
        if kind == "default":
            default = draw(values)
        elif kind == "alias":
            default = Field(alias=f"other {field}")
        elif kind == "described":
            default = Field(None, description="described", examples=[1])
        fields[field] = (annotation, default)
    options: dict[str, Any] = {
        "__config__": ConfigDict(arbitrary_types_allowed=True, extra=draw(st.sampled_from(["allow", "forbid", None]))),
        "__doc__": draw(st.sampled_from(DOCS)),
        "__module__": module_of_its_own(),
    }
    try:
        return create_model(draw(st.sampled_from(NAMES)), **options, **fields), st.none()
    except Exception:
        # Not every type goes into a model.
        return int, small


def _dataclass(draw: st.DrawFn, name: str, members: list[Member], inner: st.SearchStrategy[Typed]) -> Any:
    is_generic = draw(st.booleans())
    annotations: dict[str, Any] = {}
    namespace: dict[str, Any] = {"__doc__": draw(st.sampled_from(DOCS))}
    for index, (field, (annotation, values)) in enumerate(members):
        options = _dataclass_options(draw, values)
        if is_generic and index == 0:
            annotation = draw(st.sampled_from(OPEN))
            options.pop("default", None)
            options["kw_only"] = True
        annotations[field] = type(None) if annotation is None else annotation
        namespace[field] = dataclasses.field(**options)
    namespace["__annotations__"] = annotations
    bases = (Generic[T],) if is_generic else ()
    made: Any = dataclasses.dataclass(types.new_class(name, bases, {}, _filled(namespace)))
    return made[draw(inner)[0]] if is_generic and draw(st.booleans()) else made


def _dataclass_options(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> dict[str, Any]:
    match draw(st.sampled_from(["none", "value", "factory", "described"])):
        case "value":
            value = draw(values)
            kept: dict[str, Any] = {"default": value}
            made: dict[str, Any] = {"default_factory": list}
            return (made if type(value).__hash__ is None else kept) | {"kw_only": draw(st.booleans())}
        case "factory":
            return {"default_factory": list, "kw_only": draw(st.booleans())}
        case "described":
            return {"metadata": {"description": "described"}, "kw_only": True}
    return {"kw_only": True}


def _typed_dict(draw: st.DrawFn, name: str, members: list[Member], inner: st.SearchStrategy[Typed]) -> Any:
    fields = {
        field: draw(st.sampled_from([annotation, NotRequired[annotation], Required[annotation]]))
        for field, (annotation, _) in members
    }
    made: Any = TypedDict(name, fields, total=draw(st.booleans()))
    if draw(st.booleans()):
        fields["x"] = draw(st.sampled_from(OPEN))
        namespace = {"__annotations__": fields}
        made = types.new_class(name, (TypedDict, Generic[T]), {}, _filled(namespace))
    made.__doc__ = draw(st.sampled_from(DOCS))
    is_open = bool(getattr(made, "__parameters__", ()))
    return made[draw(inner)[0]] if is_open and draw(st.booleans()) else made


def _named_tuple(draw: st.DrawFn, name: str, members: list[Member], inner: st.SearchStrategy[Typed]) -> Any:
    namespace: dict[str, Any] = {"__annotations__": {field: annotation for field, (annotation, _) in members}}
    # Only the last of them may have a default.
    for field, (_, values) in reversed(members):
        if draw(st.booleans()):
            break
        namespace[field] = draw(values)
    made: Any = types.new_class(name, (NamedTuple,), {}, _filled(namespace))
    made.__doc__ = draw(st.sampled_from(DOCS))
    return made


def _enumeration(draw: st.DrawFn, name: str, members: list[Member], inner: st.SearchStrategy[Typed]) -> Any:
    base: Any = draw(st.sampled_from([enum.Enum, enum.IntEnum, enum.IntFlag]))
    values = st.one_of(small, text, st.booleans(), st.none()) if base is enum.Enum else st.sampled_from([1, 2, 4])
    return base(name, [(letter, draw(values)) for letter in "AB"])


def _filled(namespace: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    return lambda body: body.update(namespace, __module__=module_of_its_own())
