"""What the objects of the providers' libraries have in common."""

from typing import Any, Protocol

__all__ = ["Dumped"]


class Dumped(Protocol):
    """An object that gives itself as plain data, as pydantic's models do."""

    def model_dump(self) -> Any:
        """Give the object as dictionaries and lists."""
