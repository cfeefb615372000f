"""The recorded cases: what AgentScope derives from a signature, and where toolcrib is better."""

from __future__ import annotations

import json
import pathlib
import sys
import types
from typing import Any

import pytest

from toolcrib import Toolkit, errors

CASES = json.loads((pathlib.Path(__file__).parent.parent / "tests" / "data" / "schema_cases.json").read_text("utf-8"))

# Extended models are a feature of their own, see `test_extended_model.py`.
CASES = [case for case in CASES if "extended_model" not in case]


def _properties(properties: dict[str, Any], *required: str, defs: dict[str, Any] | None = None) -> dict[str, Any]:
    schema: dict[str, Any] = {"properties": properties, "type": "object"}
    if required:
        schema["required"] = list(required)
    if defs:
        schema["$defs"] = defs
    return schema


# Where toolcrib differs from the record: the parameters it gives, or the exception it raises, and why.
INSTEAD: dict[str, tuple[dict[str, Any] | type[Exception], str]] = {
    "annotated_field": (
        _properties(
            {
                "q": {"description": "from annotated", "maxLength": 20, "minLength": 1, "type": "string"},
                "n": {"default": 3, "maximum": 5, "minimum": 1, "type": "integer"},
                "both": {"default": 1, "description": "docstring desc", "type": "integer"},
                "plain": {"default": "z", "description": "just a string note", "type": "string"},
                "o": {"anyOf": [{"exclusiveMinimum": 0, "type": "integer"}, {"type": "null"}], "default": None},
                "pat": {"default": "a", "examples": ["aa"], "pattern": "^a+$", "type": "string"},
            },
            "q",
        ),
        "a description beside the type counts where the docstring has none",
    ),
    "field_as_default": (
        _properties(
            {
                "a": {"description": "from Field default", "minimum": 3, "type": "integer"},
                "b": {"default": "x", "description": "b desc", "type": "string"},
            },
            "a",
        ),
        "a `Field(…)` as default says as much as one beside the type",
    ),
    "future_annotations_model": (
        _properties(
            {"m": {"$ref": "#/$defs/M"}},
            "m",
            defs={"M": {"properties": {"x": {"type": "integer"}}, "required": ["x"], "type": "object"}},
        ),
        "names in string annotations are those of the function's own module",
    ),
    "future_annotations_shadowed_name": (
        _properties(
            {"t": {"$ref": "#/$defs/Tool"}},
            "t",
            defs={"Tool": {"properties": {"x": {"type": "integer"}}, "required": ["x"], "type": "object"}},
        ),
        "names in string annotations are those of the function's own module",
    ),
    "underscore_param_default": (
        _properties({"a": {"type": "integer"}, "_x": {"default": 1, "type": "integer"}}, "a"),
        "no name is special",
    ),
    "arbitrary_type": (errors.UnsupportedTypeError, "an exception that says what to do"),
    "callable_annotation": (errors.UnsupportedTypeError, "an exception that says what to do"),
    "custom_json_schema_without_properties_with_preset": (KeyError, "as recorded"),
    "custom_json_schema_without_parameters": (KeyError, "as recorded"),
}


def _register(case: dict[str, Any]) -> dict[str, Any]:
    module = types.ModuleType(f"schema_case_{case['id']}")
    sys.modules[module.__name__] = module
    try:
        exec(compile(case["source"], module.__name__, "exec"), module.__dict__)
        toolkit = Toolkit(errors="compat")  # the cases have mistakes that AgentScope does not refuse
        toolkit.register_tool_function(module.target, **case["options"])
    finally:
        del sys.modules[module.__name__]
    (schema,) = toolkit.get_json_schemas()
    (tool,) = toolkit.tools.values()
    assert tool.json_schema == schema
    return schema


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_signature_gives_the_recorded_schema(case: dict[str, Any]) -> None:
    instead = INSTEAD.get(case["id"], (None, ""))[0]

    if isinstance(instead, type):
        with pytest.raises(instead):
            _register(case)
        return
    schema = _register(case)

    if instead is None:
        assert schema == case["schema"]
    else:
        assert schema["function"]["parameters"] == instead


def test_the_recorded_schemas_keep_the_order_of_keys() -> None:
    # A parameter called `properties` hides the order of its own keys from pydantic's sorting.
    others = {*INSTEAD, "pydantic_field_named_title"}
    recorded = [case for case in CASES if case["id"] not in others and "json_schema" not in case["options"]]

    for case in recorded:
        derived = _register(case)["function"]["parameters"]
        assert json.dumps(derived) == json.dumps(case["schema"]["function"]["parameters"])
