"""For any signature: the schema is the one that pydantic gives."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import Field

from support.schema.oracle import described, expected
from support.schema.records import Typed
from support.schema.types import types_of_a_signature, types_with_foreign

# Thousands of cases, each of them a question to pydantic.
pytestmark = pytest.mark.timeout(1800)

# Parameters by name, each with its annotation and its default (or `...`).
Parameters = dict[str, tuple[Any, Any]]

LIMITED = Field(max_length=3)
FIELDS = [
    Field(description="from a field"),
    Field(3, ge=1),
    Field(default_factory=list),
    Field(alias="other"),
    Field(default=None, title="T", examples=[1]),
    LIMITED,
]


@st.composite
def signatures(draw: st.DrawFn, of: st.SearchStrategy[Typed]) -> Parameters:
    """Up to four parameters, some of them with names that mean something to pydantic or to JSON Schema."""
    chosen = draw(st.lists(of, min_size=1, max_size=4))
    signature = {}
    for name, (annotation, values) in zip(["a", "schema", "title", "properties"], chosen, strict=False):
        kind = draw(st.sampled_from(["required", "default", "none", "required", "field"]))
        default: Any = ...
        if kind == "default":
            default = draw(values)
        elif kind == "none":
            default = None
        elif kind == "field" and draw(st.booleans()):
            default = draw(st.sampled_from(FIELDS))
            if default is LIMITED and hasattr(annotation, "__metadata__"):
                # Known difference: in which order limits of an annotation and of a default are put on a type that they
                # do not suit.
                default = Field()
        signature[name] = (annotation, default)
    return signature


@st.composite
def functions(draw: st.DrawFn, of: st.SearchStrategy[Typed]) -> tuple[Any, Parameters]:
    """A function and the parameters it has, of any kind, with annotations as objects or as strings."""
    signature = draw(signatures(of))
    required = [name for name in signature if signature[name][1] is ...]
    optional = [name for name in signature if signature[name][1] is not ...]
    names = required + optional
    known: dict[str, Any] = {}
    parts = []
    for index, name in enumerate(names):
        annotation, default = signature[name]
        known |= {f"A{index}": annotation, f"D{index}": default}
        written = draw(st.sampled_from([f"A{index}", f"A{index}", f"'A{index}'"]))
        parts.append(f"{name}: {written}" + ("" if default is ... else f" = D{index}"))
    positional_only = draw(st.integers(0, len(names)))
    keyword_only = draw(st.integers(positional_only, len(names)))
    if keyword_only < len(names):
        parts.insert(keyword_only, "*")
    if positional_only:
        parts.insert(positional_only, "/")
    future = "from __future__ import annotations\n" if draw(st.booleans()) else ""
    make = _in_a_closure if draw(st.booleans()) else _in_a_module
    return make(future, ", ".join(parts), known), {name: signature[name] for name in names}


def _in_a_module(future: str, parameters: str, known: dict[str, Any]) -> Any:
    module = types.ModuleType("schema_property_function")
    sys.modules[module.__name__] = module
    module.__dict__.update(known)
    exec(f"{future}def target({parameters}): ...", module.__dict__)
    return module.target


def _in_a_closure(future: str, parameters: str, known: dict[str, Any]) -> Any:
    # Only what the function uses is in its closure.
    names = ", ".join(known)
    source = f"{future}def make({names}):\n    def target({parameters}):\n        return {names}\n    return target"
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    return namespace["make"](**known)


def _compare(function: Any, signature: Parameters) -> None:
    # Synthetic names: some of the real ones mean something to pydantic.
    names = {f"p{index}": name for index, name in enumerate(signature)}
    asked = {short: signature[name] for short, name in names.items()}
    asked = {short: (annotation, _without_alias(default)) for short, (annotation, default) in asked.items()}
    try:
        want = expected(asked)
    except Exception:
        want = None
    if want is not None and '"anyOf": []' not in str(want).replace("'", '"'):
        want["properties"] = {names[short]: inner for short, inner in want["properties"].items()}
        if "required" in want:
            want["required"] = [names[short] for short in want["required"]]
        assert described(function) == want
        return
    # What pydantic refuses, toolcrib may understand; if not, it says so.
    try:
        described(function)
    except TypeError as error:
        assert "tool `target`: parameter `" in str(error)  # noqa: PT017 - it need not be raised
        assert "has no JSON Schema" in str(error)  # noqa: PT017


def _without_alias(default: Any) -> Any:
    return Field() if getattr(default, "alias", None) else default


# Large on purpose: that is where names clash.
SETTINGS = settings(suppress_health_check=list(HealthCheck))


@SETTINGS
@given(functions(types_of_a_signature))
def test_any_signature_gives_what_pydantic_gives(case: tuple[Any, Parameters]) -> None:
    _compare(*case)


@SETTINGS
@given(functions(types_with_foreign))
def test_any_signature_with_models_gives_what_pydantic_gives(case: tuple[Any, Parameters]) -> None:
    _compare(*case)
