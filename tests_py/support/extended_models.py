"""Functions and the models that extend them; AgentScope's schemas for them are in `tests/data/extended_cases.json`.

To record them again, run in `tests_py` with an interpreter that has AgentScope: `python -m support.extended_models`.
"""

# Annotations stay objects here: AgentScope does not understand those that are strings.

import enum
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Optional, Union

from pydantic import BaseModel, ConfigDict, Field

CASES = Path(__file__).parent.parent.parent / "tests" / "data" / "extended_cases.json"


class Point(BaseModel):
    x: int
    y: int = 0


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Flat(BaseModel):
    answer: str
    score: float = 0.5


class Constrained(BaseModel):
    name: str = Field(description="Who it is.", min_length=1, max_length=8, pattern="^[a-z]+$")
    age: int = Field(ge=0, lt=150)
    tags: Annotated[list[str], Field(max_length=3, description="A few words.")] = []


class Nested(BaseModel):
    origin: Point
    path: list[Point] = []
    named: dict[str, Point] = {}


class Deep(BaseModel):
    inner: Nested
    colour: Colour = Colour.RED


class Choice(BaseModel):
    kind: Literal["a", "b"]
    which: Union[int, str, None] = None
    maybe: Optional[Point] = None


class Titled(BaseModel):
    """A model with a docstring, which is dropped."""

    model_config = ConfigDict(extra="forbid", title="Another title")

    title: str = Field(title="The title of the title")


class Aliased(BaseModel):
    value: int = Field(alias="theValue")


class Child(Flat):
    extra: bool = False


class Pair(NamedTuple):
    left: int
    right: str


class WithPair(BaseModel):
    pair: Pair


class Branch(BaseModel):
    name: str
    branches: list["Branch"] = []


class HasBranch(BaseModel):
    branch: Branch


class Empty(BaseModel):
    pass


class Taken(BaseModel):
    query: str


def _other_point() -> type[BaseModel]:
    class Point(BaseModel):
        x: str

    class Other(BaseModel):
        place: Point

    return Other


def search(query: str, limit: int = 10) -> None:
    """Search.

    Args:
        query (str): The words.
        limit (int): How many.
    """


def finish(**kwargs: Any) -> None:
    """Finish."""


def measure(start: Point, paint: Colour = Colour.BLUE) -> None:
    """Measure.

    Args:
        start (Point): Where to begin.
    """


PAIRS: dict[str, tuple[Callable[..., Any], type[BaseModel]]] = {
    "flat fields": (search, Flat),
    "a function without parameters": (finish, Flat),
    "limits and descriptions": (finish, Constrained),
    "nested models": (search, Nested),
    "models in nested models": (finish, Deep),
    "choices": (search, Choice),
    "a field named title": (finish, Titled),
    "a field with an alias": (finish, Aliased),
    "inherited fields": (search, Child),
    "a tuple whose members keep their titles": (finish, WithPair),
    "a field of a recursive model": (finish, HasBranch),
    "no fields": (search, Empty),
    "a definition that both have": (measure, Nested),
    "two definitions that both have": (measure, Deep),
    "a name that is taken": (search, Taken),
    "a definition that the function has otherwise": (measure, _other_point()),
}


def record() -> None:
    """Record the schema that AgentScope makes of each pair."""
    from agentscope.tool import Toolkit

    cases = []
    for name, (function, model) in PAIRS.items():
        toolkit = Toolkit()
        toolkit.register_tool_function(function)
        tool = toolkit.tools[function.__name__]
        case: dict[str, Any] = {
            "name": name,
            "tool": function.__name__,
            "parameters": tool.json_schema["function"]["parameters"],
            "model": model.model_json_schema(),
        }
        toolkit.set_extended_model(function.__name__, model)
        try:
            case["merged"] = tool.extended_json_schema["function"]["parameters"]
        except ValueError as error:
            case["error"] = str(error)
        cases.append(case)
    CASES.write_text(json.dumps(cases, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record()
