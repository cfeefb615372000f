"""The common interface of the objects of providers' libraries."""

from typing import Any, Protocol

__all__ = ["Dumped"]


class Dumped(Protocol):
    """An object that converts itself to plain data, as pydantic's models do."""

    def model_dump(self) -> Any:
        """Return the object as dictionaries and lists."""
