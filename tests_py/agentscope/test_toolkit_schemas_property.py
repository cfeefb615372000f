"""For any signature and docstring, the schema is the one that AgentScope derives."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import pytest
from agentscope.tool import Toolkit as AgentScopeToolkit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from toolcrib.compat.agentscope import Toolkit


class Colour(enum.Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    """A point."""

    x: float
    y: float = Field(default=0, ge=0, description="Upwards.")


class Line(BaseModel):
    """A line."""

    ends: list[Point]
    colour: Colour = Colour.RED


@dataclass
class Size:
    """A size."""

    width: int
    height: int = 1


class Options(TypedDict, total=False):
    """Options."""

    deep: bool


class Pair(NamedTuple):
    """A pair."""

    first: int
    second: str = "x"


NAMES = {
    each.__name__: each
    for each in (Colour, Point, Line, Size, Options, Pair, date, datetime, time, timedelta, Decimal, UUID)
} | {"Any": Any, "Literal": Literal}

SIMPLE = [
    "int",
    "str",
    "float",
    "bool",
    "bytes",
    "Any",
    "None",
    "dict",
    "list",
    "object",
    *sorted(set(NAMES) - {"Literal"}),
]
DEFAULTS = ["None", "0", "1.5", "True", "'x'", "[]", "{}", "(1, 2)", "-3", "''"]


def wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("list[{}]".format, inner),
        st.builds("dict[str, {}]".format, inner),
        st.builds("{} | None".format, inner),
        st.builds("tuple[{}, {}]".format, inner, inner),
        st.builds("tuple[{}, ...]".format, inner),
        st.builds("set[{}]".format, st.sampled_from(["int", "str", "float"])),
    )


written_types = st.one_of(
    st.recursive(st.sampled_from(SIMPLE), wider, max_leaves=3),
    st.sampled_from(["Literal['a']", "Literal['a', 'b']", "Literal[1, 'b']", "int | str", "str | int | None"]),
)
words = st.text(alphabet="abc ÄÖé,.()-_'\"`0", min_size=0, max_size=25).map(lambda text: text.replace('"""', ""))
lines = st.lists(words, min_size=0, max_size=3)
parameter_names = st.lists(
    st.sampled_from(["a", "b", "count", "file_path", "query", "timeout", "x1", "verbose"]), unique=True, max_size=4
)


@st.composite
def parameters(draw: st.DrawFn) -> list[tuple[str, str | None, str | None]]:
    drawn = []
    for name in draw(parameter_names):
        drawn.append((name, draw(st.none() | written_types), draw(st.none() | st.sampled_from(DEFAULTS))))
    # Python wants those with a default last.
    return sorted(drawn, key=lambda each: each[2] is not None)


def google(names: list[str], texts: list[str], types: list[str]) -> list[str]:
    entries = [f"    {name}{kind}: {text}" for name, text, kind in zip(names, texts, types, strict=True)]
    return ["Args:", *entries] if entries else []


def rest(names: list[str], texts: list[str], types: list[str]) -> list[str]:
    return [f":param {name}: {text}" for name, text in zip(names, texts, strict=True)]


def numpy(names: list[str], texts: list[str], types: list[str]) -> list[str]:
    entries = [line for name, text in zip(names, texts, strict=True) for line in (f"{name} : int", f"    {text}")]
    return ["Parameters", "----------", *entries] if entries else []


STYLES: list[Callable[[list[str], list[str], list[str]], list[str]]] = [google, rest, numpy]


@st.composite
def functions(draw: st.DrawFn) -> str:
    signature = draw(parameters())
    names = [name for name, _, _ in signature]
    written = [
        name + (f": {kind}" if kind else "") + (f" = {default}" if default else "") for name, kind, default in signature
    ]
    if len(written) > 1 and draw(st.booleans()):
        written.insert(draw(st.integers(0, len(written) - 1)), "*")
    if draw(st.booleans()):
        written.append(draw(st.sampled_from(["**kwargs", "**kwargs: int"])))
    documented = [name for name in names if draw(st.booleans())]
    if draw(st.booleans()):
        documented.append("kwargs")
    texts = [draw(words) for _ in documented]
    types = [draw(st.sampled_from(["", " (int)", " (str, optional)", " (`str`, defaults to `x`)"])) for _ in documented]
    docstring = draw(lines)
    if draw(st.booleans()):
        docstring += ["", *draw(st.sampled_from(STYLES))(documented, texts, types)]
    if draw(st.booleans()):
        docstring += ["", *draw(st.sampled_from([["Returns:", "    Something."], [":returns: Something."]]))]
    text = "\n    ".join(line.replace("\\", "") for line in docstring)
    body = f'    """{text.rstrip(chr(34))}\n    """\n' if docstring else ""
    return f"def tool({', '.join(written)}):\n{body}    return None\n"


def listed(make: Any, function: Any, options: dict[str, bool]) -> Any:
    toolkit = make()
    try:
        toolkit.register_tool_function(function, **options)
    except Exception as error:
        return type(error).__name__
    return toolkit.get_json_schemas()


@settings(
    max_examples=1000,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
@given(
    source=functions(),
    options=st.fixed_dictionaries(
        {
            "include_long_description": st.booleans(),
            "include_var_keyword": st.booleans(),
        }
    ),
)
@pytest.mark.filterwarnings("ignore")
def test_any_function_has_the_schema_that_agentscope_derives(source: str, options: dict[str, bool]) -> None:
    variables: dict[str, Any] = dict(NAMES)
    exec(source, variables)
    function = variables["tool"]

    theirs = listed(AgentScopeToolkit, function, options)

    if not isinstance(theirs, str):
        assert listed(Toolkit, function, options) == theirs, source
