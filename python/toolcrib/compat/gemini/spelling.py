"""Field names: `camelCase` as in gemini-cli, or `snake_case` as in Python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

__all__ = ["read_fields", "snake_keys"]

T = TypeVar("T")

_UPPER = re.compile("(?<!^)[A-Z]")


def snake_keys(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Spell the keys of one level in `snake_case`."""
    return {_UPPER.sub(lambda letter: f"_{letter[0].lower()}", key): value for key, value in fields.items()}


def read_fields(cls: type[T], fields: T | Mapping[str, Any]) -> T:
    """Return an object of a class, made of its fields in either spelling unless it is one.

    Raises:
        TypeError: If a field is missing or unknown, or this is neither.
    """
    if isinstance(fields, cls):
        return fields
    if not isinstance(fields, Mapping):
        raise TypeError(f"expected {cls.__name__} or a mapping of its fields, got {type(fields).__name__}")
    return cls(**snake_keys(fields))
