"""`LiveMapping`: what a toolkit holds, for users to read like a dictionary."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from typing import TypeVar

T = TypeVar("T")


class LiveMapping(Mapping[str, T]):
    """Show what a toolkit holds at the moment of looking; a loop over it goes through what was there when it began."""

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
        """Pair every name with what it stands for."""
        return self._all().items()

    def values(self) -> ValuesView[T]:
        """Give everything that has a name."""
        return self._all().values()

    def __repr__(self) -> str:
        return repr(self._all())
