"""`LiveMapping`: a read-only mapping of a toolkit's tools, groups, skills or tasks."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from typing import TypeVar

T = TypeVar("T")


class LiveMapping(Mapping[str, T]):
    """A mapping that is read from the toolkit at each access; a loop runs over the entries at its start."""

    __slots__ = ("_all", "_find")

    def __init__(self, all_: Callable[[], dict[str, T]], find: Callable[[str], T | None]) -> None:
        self._all = all_
        self._find = find

    def __getitem__(self, name: str) -> T:
        found = self._find(name) if isinstance(name, str) else None
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def items(self) -> ItemsView[str, T]:
        """Return the names with their objects."""
        return self._all().items()

    def values(self) -> ValuesView[T]:
        """Return the objects."""
        return self._all().values()

    def __repr__(self) -> str:
        return repr(self._all())
