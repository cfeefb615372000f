"""Functions are described as by AgentScope's `FunctionTool`, whatever their signatures and docstrings are."""

import os
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from agentscope.tool import FunctionTool
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

import toolcrib
from toolcrib.compat.agentscope2 import Toolkit, tools

CASES = max(1000, int(os.environ.get("TOOLCRIB_PROPERTY_CASES", "500")))


class Point(BaseModel):
    """A point."""

    x: int
    y: int = Field(default=0, description="The height.")


NAMESPACE: dict[str, Any] = {"Annotated": Annotated, "Any": Any, "Field": Field, "Literal": Literal, "Point": Point}

TYPES = st.sampled_from(
    [
        "str", "int", "float", "bool", "Any", "list[str]", "list[int]", "dict[str, int]", "dict[str, Any]",
        "str | None", "int | None", "list[int] | None", "int | str", "Literal['a', 'b']", "Literal[1, 2]", "list",
        "dict", "Point", "list[Point]", "Point | None", "tuple[int, str]", "set[str]", "None",
        "Annotated[int, Field(description='A number.')]", "Annotated[str, Field(min_length=2, max_length=9)]",
        "Annotated[float, Field(ge=0, lt=1)]", "Annotated[list[str], Field(description='Words.', max_length=3)]",
    ]
)  # fmt: skip
DEFAULTS = {
    "str": "'x'", "int": "3", "float": "0.5", "bool": "True", "Any": "None", "list[str]": "None", "str | None": "None",
    "int | None": "None", "int | str": "'y'", "Literal['a', 'b']": "'a'", "Literal[1, 2]": "2", "Point | None": "None",
    "list[int] | None": "None", "Annotated[int, Field(description='A number.')]": "7", "dict[str, Any]": "{'k': 1}",
}  # fmt: skip
WORDS = st.sampled_from(["the path", "a number", "of things", "to look for", "in the list", "(optional)", "e.g. 3"])
NAMES = ["path", "query", "limit", "exact", "point", "k", "options_"]


@st.composite
def sources(draw: st.DrawFn) -> str:
    """Draw the source of a function."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=5))
    parameters, described, is_optional, is_keyword = [], [], False, False
    for name in names:
        kind = draw(TYPES)
        is_bare = draw(st.integers(0, 9)) == 0
        has_default = kind in DEFAULTS and draw(st.booleans())
        if not is_keyword and draw(st.integers(0, 4)) == 0:
            parameters.append("*")
            is_keyword = True
        is_optional = has_default or (is_optional and not is_keyword)
        text = name if is_bare else f"{name}: {kind}"
        if is_optional:
            text += f" = {DEFAULTS.get(kind, 'None')}"
        parameters.append(text)
        if draw(st.booleans()):
            described.append((name, " ".join(draw(st.lists(WORDS, min_size=1, max_size=3)))))
    if draw(st.integers(0, 4)) == 0 and not is_keyword:
        parameters.append("*args: int")
    if draw(st.integers(0, 4)) == 0:
        parameters.append("**kwargs: str")
    style = draw(st.sampled_from(["google", "numpy", "rest", "none"]))
    prefix = draw(st.sampled_from(["def", "async def"]))
    return f"{prefix} tool({', '.join(parameters)}):\n{docstring(draw, style, described)}    return 'x'\n"


def docstring(draw: st.DrawFn, style: str, described: list[tuple[str, str]]) -> str:
    """Draw a docstring that describes parameters."""
    if style == "none":
        return ""
    lines = [draw(st.sampled_from(["Find things.", "Do it", "Weigh the thing: exactly."]))]
    if draw(st.booleans()):
        lines += ["", "It takes a while,", "and it is exact."]
    if draw(st.booleans()):
        lines += ["", "A second paragraph."]
    if described and style == "google":
        lines += ["", "Args:", *(f"    {name}: {text}" for name, text in described)]
    elif described and style == "numpy":
        lines += ["", "Parameters", "----------"]
        for name, text in described:
            lines += [f"{name} : str", f"    {text}"]
    elif described:
        lines += ["", *(f":param {name}: {text}" for name, text in described)]
    body = "\n".join(f"    {line}".rstrip() for line in lines)
    return f'    """{body.lstrip()}\n    """\n'


def function_of(source: str) -> Callable[..., Any]:
    """Make the function of a source."""
    namespace = dict(NAMESPACE)
    exec(source, namespace)
    function: Callable[..., Any] = namespace["tool"]
    return function


@pytest.mark.timeout(600)
@settings(max_examples=CASES)
@given(sources())
def test_any_function_is_described_as_by_agentscope(source: str) -> None:
    function = function_of(source)
    theirs = FunctionTool(function)

    toolkit = Toolkit()
    toolkit.register_tool_function(function)
    kit = toolcrib.Toolkit(tools=[function])

    ours = [toolkit.tool_groups[0].tools[0], tools(kit)[0]]
    for tool in ours:
        assert tool.name == theirs.name
        assert tool.description == theirs.description
        assert tool.input_schema == theirs.input_schema
