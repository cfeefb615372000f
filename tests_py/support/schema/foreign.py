"""Types that only pydantic knows, for the schema tests."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, Optional, TypeVar, Union

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    Json,
    PositiveInt,
    RootModel,
    SecretStr,
    StringConstraints,
    computed_field,
)
from pydantic.dataclasses import dataclass

from support.schema import models

T = TypeVar("T")


class Model(BaseModel):
    """A model."""

    number: int = 1
    other: Optional[models.Point] = None


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = Field(9, alias="livesLeft", ge=0)


class Dog(BaseModel):
    """A dog."""

    kind: Literal["dog"] = "dog"
    friend: Optional[Pet] = None


Pet = Annotated[Union[Cat, Dog], Field(discriminator="kind")]


class Numbers(RootModel[list[int]]):
    """Some numbers."""


class Wrapped(BaseModel, Generic[T]):
    value: T
    others: list[T] = []


class Square(BaseModel):
    width: float

    @computed_field  # type: ignore[prop-decorator]
    @property
    def area(self) -> float:
        return self.width**2


class Settled(BaseModel):
    model_config = ConfigDict(extra="forbid", title="Settings", alias_generator=str.upper)

    colour: models.Colour = models.Colour.RED
    size: Annotated[int, Field(gt=3, description="how big")] = 4


class Tree(BaseModel):
    leaves: list[Tree] = []
    node: Optional[models.Node] = None


@dataclass
class Checked:
    amount: PositiveInt = 1
    point: Optional[models.Point] = None


FOREIGN: list[Any] = [
    Model,
    Cat,
    Dog,
    Pet,
    Numbers,
    Wrapped,
    Wrapped[int],
    Wrapped[models.Point],
    Square,
    Settled,
    Tree,
    Checked,
    RootModel[dict[str, models.Point]],
    models.Box[Model],
    PositiveInt,
    HttpUrl,
    SecretStr,
    Json[int],
    Annotated[str, StringConstraints(pattern="^a", min_length=1)],
]
