"""Schemas that pydantic derives from a signature, to compare toolcrib's with."""

from __future__ import annotations

import inspect
import math
import warnings
from typing import Any

from pydantic import BaseModel, ConfigDict, create_model

from toolcrib import Toolkit


def without_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove titles where toolcrib removes them."""
    schema.pop("title", None)
    for group in ("properties", "$defs"):
        for inner in schema.get(group, {}).values():
            without_titles(inner)
    for part in ("items", "additionalProperties"):
        if isinstance(schema.get(part), dict):
            without_titles(schema[part])
    return schema


def expected(parameters: dict[str, tuple[Any, Any]]) -> dict[str, Any]:
    """Ask pydantic for the schema of parameters given as annotation and default (or `...`)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fields: dict[str, Any] = dict(parameters)
        config = ConfigDict(arbitrary_types_allowed=True, protected_namespaces=())
        model: type[BaseModel] = create_model("Expected", __config__=config, **fields)
        schema = without_titles(model.model_json_schema())
    for inner in schema["properties"].values():
        default = inner.get("default")
        if isinstance(default, float) and not math.isfinite(default):
            del inner["default"]
    return schema


def described(function: Any, **options: Any) -> dict[str, Any]:
    """Return the parameters that toolcrib derives for a function, also for one that it would refuse to call."""
    toolkit = Toolkit(errors="compat")
    toolkit.register_tool_function(function, func_name="target", **options)
    (schema,) = toolkit.get_json_schemas()
    parameters: dict[str, Any] = schema["function"]["parameters"]
    return parameters


def function_of(parameters: dict[str, tuple[Any, Any]]) -> Any:
    """Make a function with these annotations and defaults; all parameters are keyword-only."""

    def target(**_: Any) -> None:
        """Do a thing."""

    target.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=annotation,
                default=inspect.Parameter.empty if default is ... else default,
            )
            for name, (annotation, default) in parameters.items()
        ]
    )
    return target
