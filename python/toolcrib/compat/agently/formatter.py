"""`DataFormatter`: types and JSON Schemas in Agently's kwargs format, a mapping of names to `(type, notes)`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import date
from typing import Any, Literal, Union, get_args, get_origin

from toolcrib.declared import JSON_TYPES

__all__ = ["DataFormatter", "parameters_of"]


class DataFormatter:
    """The conversions that tools need."""

    @staticmethod
    def sanitize(value: Any, *, remain_type: bool = False) -> Any:
        """Convert a value, or a description of one that contains types, to plain data.

        Args:
            value: Any value. A class of pydantic models becomes a dictionary of its fields.
            remain_type: True to keep types as they are, instead of writing them as text.
        """
        return _sanitized(value, remain_type, ())

    @staticmethod
    def from_schema_to_kwargs_format(input_schema: dict[str, Any] | None) -> dict[str, Any] | None:
        """Convert the JSON Schema of an object to the kwargs format. The schema is not modified.

        Args:
            input_schema: The schema; further properties are listed under the name `<*>`.

        Returns:
            A dictionary of names to `(type, notes)`, or `None` if there are none.

        Raises:
            KeyError: If the schema has no type.
            TypeError: If it has another type than `object`.
        """
        if not input_schema:
            return None
        if "type" not in input_schema:
            raise KeyError(f"Cannot find key 'type' in input schema: {input_schema}")
        if input_schema["type"] != "object":
            raise TypeError(f"Input schema type is not 'object' but: {input_schema['type']}")
        kwargs = {name: _property(schema) for name, schema in dict(input_schema.get("properties") or {}).items()}
        others = input_schema.get("additionalProperties", False)
        if others is not False:
            kwargs["<*>"] = _property(others)
        return kwargs or None


def parameters_of(kwargs: Mapping[str, Any], models: tuple[type, ...] = ()) -> dict[str, Any]:
    """Convert the kwargs format, inside of these models, to the JSON Schema of an object."""
    properties = {str(name): _schema(shape, models) for name, shape in kwargs.items() if name != "<*>"}
    return {"type": "object", "properties": properties}


def _schema(shape: Any, models: tuple[type, ...]) -> dict[str, Any]:
    """Convert a type, a text, `(type, description)`, or a dictionary or list of them."""
    if isinstance(shape, tuple):
        described = {"description": str(shape[1])} if len(shape) > 1 and shape[1] else {}
        return {**(_schema(shape[0], models) if shape else {}), **described}
    if isinstance(shape, Mapping):
        return parameters_of(shape, models)
    if isinstance(shape, list):
        return {"type": "array", "items": _schema(shape[0], models)} if len(shape) == 1 else {"type": "array"}
    if isinstance(shape, type) and shape not in models and _is_model(shape):
        fields: Mapping[str, Any] = shape.model_fields  # type: ignore[attr-defined]
        kwargs = {name: (field.annotation, field.description) for name, field in fields.items()}
        return parameters_of(kwargs, (*models, shape))
    outer, bracket, inner = str(DataFormatter.sanitize(shape)).partition("[")
    schema: dict[str, Any] = {"type": JSON_TYPES[outer]} if outer in JSON_TYPES else {}
    if bracket and schema.get("type") == "array":
        schema["items"] = _schema(inner.removesuffix("]"), models)
    return schema


def _property(schema: Any) -> tuple[Any, str]:
    """Return the type of a property, and its other keywords as text."""
    if not isinstance(schema, Mapping):
        return Any, ""
    notes = (f"{key}: {value}" for key, value in schema.items() if key not in ("type", "title"))
    return schema.get("type", Any), ";".join(notes)


def _sanitized(value: Any, remain_type: bool, models: tuple[type, ...]) -> Any:
    """Convert a value inside of these models."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, date):
        return value.isoformat()
    if _is_settings(value):
        return _sanitized(value.data, remain_type, models)
    if get_origin(value) is not None or value is Any:
        return value if remain_type else _type_text(value, models)
    if isinstance(value, type):
        if value not in models and _is_model(value):
            return _fields(value, remain_type, (*models, value))
        return value if remain_type else value.__name__
    if isinstance(value, dict):
        return {str(key): _sanitized(item, remain_type, models) for key, item in value.items()}
    for container in (list, set, tuple):
        if isinstance(value, container):
            return container(_sanitized(item, remain_type, models) for item in value)
    return str(value)


def _fields(model: Any, remain_type: bool, models: tuple[type, ...]) -> dict[str, Any]:
    """Describe the fields of a pydantic model; one that contains itself is named there."""
    fields = {}
    for name, field in model.model_fields.items():
        # With the constraints and notes of the field, such as `Field(ge=1)`.
        annotation = _sanitized(field.rebuild_annotation(), remain_type, models)
        fields[name] = (annotation, field.description) if field.description else (annotation,)
    return fields


def _type_text(annotation: Any, models: tuple[type, ...]) -> str:
    """Write a typing construct as text."""
    if annotation is Any:
        return "Any"
    origin, arguments = get_origin(annotation), get_args(annotation)
    texts = [str(argument if origin is Literal else _sanitized(argument, False, models)) for argument in arguments]
    if origin is Union:
        return " | ".join(texts)
    if origin is Literal:
        return f"Literal[{', '.join(texts)}]"
    if origin in (list, dict) and not texts:
        return str(origin.__name__)
    if origin in (list, dict, tuple):
        return f"{origin.__name__}[{', '.join(texts)}]"
    return str(annotation)


def _is_model(value: type) -> bool:
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(value, pydantic.BaseModel)


def _is_settings(value: Any) -> bool:
    """Return true for Agently's containers of settings, which can only exist if it is loaded."""
    agently = sys.modules.get("agently.utils")
    return agently is not None and isinstance(value, agently.RuntimeData | agently.RuntimeDataNamespace)
