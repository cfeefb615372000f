"""The classes that the cases of `sanitize` and `tool_func` name; they print themselves as the classes of a script."""

from enum import Enum
from typing import Literal, Optional

from pydantic import BaseModel, Field


class Inner(BaseModel):
    tags: list[str] = Field(description="labels")
    score: float


class Outer(BaseModel):
    title: str = Field(description="short title")
    count: int = 3
    maybe: Optional[int] = None
    inner: Inner
    many: list[Inner]
    kind: Literal["a", "b"] = "a"


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Plain:
    pass


for each in (Inner, Outer, Color, Plain):
    each.__module__ = "__main__"
