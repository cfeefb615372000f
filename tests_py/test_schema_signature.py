"""Signatures of callables: kinds of parameters, string annotations, and signatures that they declare themselves."""

from __future__ import annotations

import dataclasses
import functools
import json
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Optional, Union

import pytest
from pydantic import BaseModel, Field
from typing_extensions import Doc

from support.schema.oracle import described
from toolcrib import errors

Alias = list[int]


class Model(BaseModel):
    x: int


@dataclasses.dataclass
class Point:
    x: int


@dataclasses.dataclass
class Echo:
    """An echo."""

    x: int


def _properties(function: Any, **options: Any) -> dict[str, Any]:
    properties: dict[str, Any] = described(function, **options)["properties"]
    return properties


# String annotations -----------------------------------------------------------------------------------------------


def test_names_come_from_the_functions_module() -> None:
    def target(a: Alias, b: Optional[Point] = None, c: Union[Alias, str] = "") -> None: ...

    properties = _properties(target)

    assert properties["a"] == {"items": {"type": "integer"}, "type": "array"}
    assert properties["b"] == {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}], "default": None}
    assert properties["c"]["anyOf"][1] == {"type": "string"}


def test_names_come_from_the_closure() -> None:
    Local = dict[str, int]

    def target(a: Local) -> Any:
        return Local

    assert _properties(target)["a"] == {"additionalProperties": {"type": "integer"}, "type": "object"}


def test_strings_inside_containers_are_resolved() -> None:
    def target(a: Any, b: Any, c: Any, d: Any) -> None: ...

    target.__annotations__ = {
        "a": list["Point"],
        "b": typing.List["Point"],
        "c": Optional["list[Point]"],
        "d": dict[str, "Annotated[int, Field(ge=1)]"],
    }

    properties = _properties(target)

    assert properties["a"] == properties["b"] == {"items": {"$ref": "#/$defs/Point"}, "type": "array"}
    assert properties["c"]["anyOf"][0] == properties["a"]
    assert properties["d"]["additionalProperties"] == {"minimum": 1, "type": "integer"}


def test_strings_are_resolved_for_pydantic_too() -> None:
    def target(a: Any, b: Any, c: Annotated[Model, "the model"]) -> None: ...

    target.__annotations__ |= {"a": list["Model"], "b": Optional["Point"]}

    properties = _properties(target)

    assert properties["a"] == {"items": {"$ref": "#/$defs/Model"}, "type": "array"}
    assert properties["b"] == {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}]}
    assert properties["c"] == {"$ref": "#/$defs/Model", "description": "the model"}


def test_a_method_sees_its_class_and_the_classes_inside_it() -> None:
    class Service:
        @dataclasses.dataclass
        class Options:
            deep: bool = False

        def list(self, a: list[int], b: Options, c: Optional[Settings] = None) -> None: ...

        @classmethod
        def make(cls, a: Options) -> None: ...

    @dataclasses.dataclass
    class Settings:
        n: int

    Service.list.__globals__["Settings"] = Settings
    try:
        properties = _properties(Service().list)
    finally:
        del Service.list.__globals__["Settings"]

    assert properties["a"] == {"items": {"type": "integer"}, "type": "array"}
    assert properties["b"] == {"$ref": "#/$defs/Options"}
    assert _properties(Service.make)["a"] == {"$ref": "#/$defs/Options"}


def test_a_wrapped_function_keeps_its_own_names() -> None:
    namespace: dict[str, Any] = {}
    exec(
        "from __future__ import annotations\nOwn = list[int]\ndef inner(a: Own, b: str = 'x'): ...",
        namespace,
    )

    @functools.wraps(namespace["inner"])
    def target(*args: Any, **kwargs: Any) -> Any: ...

    assert _properties(target) == {
        "a": {"items": {"type": "integer"}, "type": "array"},
        "b": {"default": "x", "type": "string"},
    }


def test_an_unknown_name_is_reported() -> None:
    def target(a: int, b: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(errors.UnsupportedTypeError, match=r"parameter `b`.*name 'Nowhere' is not defined"):
        described(target)


def test_an_unknown_name_does_not_matter_where_it_is_hidden() -> None:
    def target(a: int, b: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    assert _properties(target, preset_kwargs={"b": 1}) == {"a": {"type": "integer"}}


def test_an_alias_that_contains_itself_without_a_name_is_refused() -> None:
    def target(a: Endless) -> None: ...

    with pytest.raises(errors.UnsupportedTypeError, match="contains itself"):
        described(target)


Endless = Union[dict[str, "Endless"], list["Endless"], int]


# Kinds of callables and parameters --------------------------------------------------------------------------------


class Caller:
    """The class says it."""

    def __init__(self, n: int = 1) -> None: ...

    def __call__(self, a: int, self_: str = "s") -> None:
        """The method is not asked."""

    def method(self, a: int, cls: str = "c") -> None: ...

    @staticmethod
    def static(a: int, self: str = "s") -> None: ...


@pytest.mark.parametrize(
    ("target", "names"),
    [
        (Caller, ["n"]),
        (Caller().method, ["a", "cls"]),
        (Caller.method, ["a", "cls"]),
        (Caller.static, ["a", "self"]),
        (lambda a, _b=1, *, model_config=2: None, ["a", "_b", "model_config"]),
        (functools.wraps(Caller.method)(lambda *args: None), ["a", "cls"]),
    ],
)
def test_every_parameter_but_the_receiver_is_in_the_schema(target: Any, names: list[str]) -> None:
    assert list(_properties(target)) == names


def test_no_name_is_special() -> None:
    def target(
        model_config: int, _x: int, schema: str, json: str, title: str, properties: int = 1, __root__: int = 2
    ) -> None: ...

    def with_model(model_config: int, _x: Model, title: str, properties: int = 1) -> None: ...

    assert list(_properties(target)) == ["model_config", "_x", "schema", "json", "title", "properties", "__root__"]
    assert list(_properties(with_model)) == ["model_config", "_x", "title", "properties"]


def test_variadic_parameters_are_in_the_schema_on_request() -> None:
    def target(*args: int, **kwargs: Optional[Point]) -> None: ...

    def with_model(*args: Model, **kwargs: Model) -> None: ...

    options = {"include_var_positional": True, "include_var_keyword": True}

    assert _properties(target) == {}
    assert _properties(target, **options) == {
        "args": {"default": [], "items": {"type": "integer"}, "type": "array"},
        "kwargs": {
            "additionalProperties": {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}]},
            "default": {},
            "type": "object",
        },
    }
    assert _properties(with_model, **options)["args"] == {
        "default": [],
        "items": {"$ref": "#/$defs/Model"},
        "type": "array",
    }


# Descriptions -----------------------------------------------------------------------------------------------------


def test_the_docstring_has_the_first_word() -> None:
    def target(
        a: Annotated[int, Field(description="field")],
        b: Annotated[int, "text"],
        c: Annotated[int, Doc("doc")],
        d: Annotated[int, Field(description="field"), "text"],
        e: Annotated[int, "text"],
        f: int = Field(1, description="default"),
        g: Annotated[Model, "model"] = Model(x=1),
    ) -> None:
        """Do a thing.

        Args:
            e: docstring
        """

    descriptions = {name: inner["description"] for name, inner in _properties(target).items()}

    assert descriptions == {
        "a": "field", "b": "text", "c": "doc", "d": "field", "e": "docstring", "f": "default", "g": "model",
    }  # fmt: skip


def test_a_description_that_the_definition_has_is_not_repeated() -> None:
    def target(a: Echo, b: Echo, c: Echo) -> None:
        """Do a thing.

        Args:
            a: An echo.
            b: Another echo.
        """

    assert _properties(target)["a"] == {"$ref": "#/$defs/Echo"}
    assert _properties(target)["b"] == {"$ref": "#/$defs/Echo", "description": "Another echo."}


# Hidden and unsupported parameters --------------------------------------------------------------------------------


class Service:
    """Nothing that JSON knows."""


@pytest.mark.parametrize("annotation", [Service, Callable[[int], int], list[Service], Iterator[int], type, Callable])
def test_an_unsupported_parameter_says_what_to_do(annotation: Any) -> None:
    def target(a: int, service: Any) -> None: ...

    target.__annotations__["service"] = annotation

    with pytest.raises(errors.UnsupportedTypeError) as caught:
        described(target)
    assert "tool `target`: parameter `service` has type `" in str(caught.value)
    assert "hide it with preset_kwargs" in str(caught.value)
    assert "json_schema=" in str(caught.value)
    assert _properties(target, preset_kwargs={"service": None}) == {"a": {"type": "integer"}}


def test_an_unsupported_parameter_beside_a_model_is_found() -> None:
    def target(model: Model, service: Service, other: Optional[Model] = None) -> None: ...

    with pytest.raises(errors.UnsupportedTypeError, match=r"parameter `service` has type `.*Service`"):
        described(target)
    hidden = described(target, preset_kwargs={"service": None})
    assert list(hidden["properties"]) == ["model", "other"]
    assert hidden["required"] == ["model"]


def test_hidden_parameters_leave_their_definitions() -> None:
    def target(point: Point, a: int = 1) -> None: ...

    assert described(target, preset_kwargs={"point": None}) == {
        "$defs": {"Point": {"properties": {"x": {"type": "integer"}}, "required": ["x"], "type": "object"}},
        "properties": {"a": {"default": 1, "type": "integer"}},
        "type": "object",
    }


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic takes them from here on")
def test_a_typed_dict_of_typing_is_understood_beside_a_model() -> None:
    Movie = typing.TypedDict("Movie", {"model": Model, "year": int})  # noqa: UP013

    def target(movie: Movie, model: Model) -> Any:
        return Movie

    schema = described(target)

    assert schema["properties"] == {"movie": {"$ref": "#/$defs/Movie"}, "model": {"$ref": "#/$defs/Model"}}
    assert schema["$defs"]["Movie"]["properties"] == {"model": {"$ref": "#/$defs/Model"}, "year": {"type": "integer"}}
    assert schema["$defs"]["Model"]["properties"] == {"x": {"type": "integer"}}


def test_alternative_names_are_ignored() -> None:
    def target(
        a: Annotated[int, Field(alias="other")],
        b: Annotated[Model, Field(validation_alias="another")],
        c: int = Field(1, alias="a third"),
    ) -> None: ...

    assert list(_properties(target)) == ["a", "b", "c"]


def test_pydantic_is_not_imported_without_need() -> None:
    program = """
import dataclasses, enum, json, sys, typing
from toolcrib import Toolkit

class Colour(enum.Enum):
    RED = 1

@dataclasses.dataclass
class Point:
    x: int
    colour: Colour = Colour.RED

def target(a: str, b: "typing.Optional[Point]" = None, *, c: typing.Annotated[list[Point], "points"] = []): ...

toolkit = Toolkit()
toolkit.register_tool_function(target)
print(json.dumps([name for name in sys.modules if name.split(".")[0] in ("pydantic", "pydantic_core")]))
"""
    environment = {"PYTHONPATH": ":".join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)

    assert json.loads(ran.stdout) == []
