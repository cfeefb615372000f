"""The common interface of the objects of providers' libraries."""

from typing import Any, Protocol

__all__ = ["Dumped", "dumped"]


class Dumped(Protocol):
    """An object that converts itself to plain data, as pydantic's models do."""

    def model_dump(self) -> Any:
        """Return the object as dictionaries and lists."""


def dumped(answer: Any) -> Any:
    """Convert an object of a provider's library to JSON values; signatures that are bytes become text."""
    if not hasattr(answer, "model_dump"):
        return answer
    try:
        return answer.model_dump(mode="json")
    except TypeError:
        return answer.model_dump()
