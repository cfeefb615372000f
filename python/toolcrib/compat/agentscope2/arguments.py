"""The arguments of a call: parsed as by the agent, so that what it validated and the user approved is what runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final, TypeAlias, cast

from agentscope.tool._toolkit import _json_loads_with_repair as repairing_parser

from toolcrib import _core

__all__ = ["fit_of", "parser_of", "repairing_parser"]

# The part of `json.loads` that does the work.
_scan: Final[Callable[[str, int], tuple[Any, int]]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]

Fit: TypeAlias = Callable[[Any], bool]


def parser_of(schema: dict[str, Any]) -> Callable[[str], dict[str, Any]]:
    """Make a parser of arguments: of the JSON text of a model.

    AgentScope's parser repairs what does not fit the schema, and takes longer than a call. It leaves valid JSON that
    fits as it is, and that is what most calls have. What it cannot repair raises its `ToolJSONDecodeError`.

    Args:
        schema: The schema of the tool.
    """

    def repair(text: str) -> dict[str, Any]:
        return cast("dict[str, Any]", repairing_parser(text, schema))

    shape = _shape(schema)
    return repair if shape is None else _core._ArgumentParser(_scan, *shape, repair)


# Keywords that say nothing about values.
_NOTES = frozenset({"description", "title", "default", "examples", "deprecated"})


def fit_of(schema: Mapping[str, Any]) -> Fit | None:
    """Compile a schema to a check that never accepts a value that does not fit; None if it has other keywords."""
    keywords = schema.keys() - _NOTES
    if not keywords:
        return _anything
    if keywords == {"anyOf"}:
        return _any_of([fit_of(option) for option in schema["anyOf"]])
    kind = schema.get("type")
    if kind == "object":
        return _object(schema)
    if kind == "array":
        items = schema.get("items", {})
        return _array(fit_of(items)) if keywords <= {"type", "items"} and isinstance(items, Mapping) else None
    if keywords == {"type", "enum"} and kind == "string":
        return _word(schema["enum"])
    return _SIMPLE.get(kind) if keywords == {"type"} and isinstance(kind, str) else None


def _anything(value: Any) -> bool:
    # Numbers that JSON does not have are refused wherever they are, and finding them takes a walk.
    return type(value) in (str, int, bool) or value is None


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_integer(value: Any) -> bool:
    return type(value) is int


def _is_number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and isfinite(value))


def _is_flag(value: Any) -> bool:
    return type(value) is bool


def _is_null(value: Any) -> bool:
    return value is None


_SIMPLE: dict[str, Fit] = {
    "string": _is_text,
    "integer": _is_integer,
    "number": _is_number,
    "boolean": _is_flag,
    "null": _is_null,
}


def _word(words: list[Any]) -> Fit:
    known = frozenset(word for word in words if type(word) is str)
    return lambda value: type(value) is str and value in known


def _any_of(options: list[Fit | None]) -> Fit | None:
    known = [option for option in options if option is not None]
    if len(known) != len(options):
        return None
    return lambda value: any(option(value) for option in known)


def _array(item: Fit | None) -> Fit | None:
    if item is None:
        return None
    return lambda value: type(value) is list and all(map(item, value))


def _object(schema: Mapping[str, Any]) -> Fit | None:
    shape = _shape(schema)
    if shape is None:
        return None
    required, types, checks = shape
    type_of, check_of, is_required = types.get, checks.get, frozenset(required)

    def fits(value: Any) -> bool:
        if type(value) is not dict or not is_required <= value.keys():
            return False
        for name, item in value.items():
            if type(item) is not type_of(name):
                check = check_of(name)
                if check is None or not check(item):
                    return False
        return True

    return fits


def _shape(schema: Mapping[str, Any]) -> tuple[list[str], dict[str, type], dict[str, Fit]] | None:
    # The required properties of an object, the types of most properties, which are compared without a call, and the
    # checks of the others.
    if schema.get("type") != "object" or not schema.keys() - _NOTES <= {"type", "properties", "required"}:
        return None
    types: dict[str, type] = {}
    checks: dict[str, Fit] = {}
    for name, described in schema.get("properties", {}).items():
        check = fit_of(described) if isinstance(described, Mapping) else None
        if check is None:
            return None
        if check in _TYPES:
            types[name] = _TYPES[check]
        else:
            checks[name] = check
    return list(schema.get("required", ())), types, checks


_TYPES: Final[dict[Fit, type]] = {_is_text: str, _is_integer: int, _is_flag: bool}
