"""`LiveDict`: a dictionary whose content is that of a toolkit, and whose changes change the toolkit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, SupportsIndex, TypeVar

__all__ = ["LiveDict"]

V = TypeVar("V")
_MISSING: Any = object()


class LiveDict(dict[str, V]):
    """A dictionary that follows a toolkit.

    The entries are in the dictionary itself, because `dict` reads its storage and not overridden methods in many
    places. They are brought up to date at each access. A value that leaves the dictionary is handed out: from then on
    it may be edited in place.
    """

    @abstractmethod
    def _pull(self) -> None:
        """Bring the entries up to date."""

    @abstractmethod
    def _hand_out(self, key: str) -> None:
        """Note that the value of a key may be edited from now on."""

    @abstractmethod
    def _put(self, key: str, value: V) -> None:
        """Add or replace an entry of the toolkit, and of the dictionary."""

    @abstractmethod
    def _drop(self, key: str) -> None:
        """Remove an entry of the toolkit, and of the dictionary."""

    def _hand_out_all(self) -> None:
        self._pull()
        for key in dict.keys(self):
            self._hand_out(key)

    def __contains__(self, key: object) -> bool:
        self._pull()
        return dict.__contains__(self, key)

    def __len__(self) -> int:
        self._pull()
        return dict.__len__(self)

    def __iter__(self) -> Iterator[str]:
        self._pull()
        return dict.__iter__(self)

    def __reversed__(self) -> Iterator[str]:
        self._pull()
        return dict.__reversed__(self)

    def __getitem__(self, key: str) -> V:
        self._pull()
        value = dict.__getitem__(self, key)
        self._hand_out(key)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or the default."""
        if key not in self:
            return default
        return self[key]

    def keys(self) -> Any:
        """Return the keys."""
        self._pull()
        return dict.keys(self)

    def values(self) -> Any:
        """Return the values."""
        self._hand_out_all()
        return dict.values(self)

    def items(self) -> Any:
        """Return the keys with their values."""
        self._hand_out_all()
        return dict.items(self)

    def copy(self) -> dict[str, V]:
        """Return a plain dictionary with the same entries."""
        return dict(self.items())

    def __setitem__(self, key: str, value: V) -> None:
        self._pull()
        self._put(key, value)

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._drop(key)

    def pop(self, key: str, default: Any = _MISSING) -> Any:
        """Remove an entry and return its value."""
        if key not in self:
            if default is _MISSING:
                raise KeyError(key)
            return default
        value = self[key]
        self._drop(key)
        return value

    def popitem(self) -> tuple[str, V]:
        """Remove the last entry and return it."""
        for key in reversed(self):
            return key, self.pop(key)
        raise KeyError("popitem(): dictionary is empty")

    def clear(self) -> None:
        """Remove all entries."""
        for key in list(self):
            self._drop(key)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value of a key; an entry with the default is added if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, other: Any = (), /, **more: V) -> None:
        """Add or replace entries."""
        entries: Mapping[str, V] | Iterable[tuple[str, V]] = other
        for key, value in dict(entries, **more).items():
            self[key] = value

    def __or__(self, other: Any) -> Any:
        return self.copy() | other if isinstance(other, dict) else NotImplemented

    def __ror__(self, other: Any) -> Any:
        return other | self.copy() if isinstance(other, dict) else NotImplemented

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __eq__(self, other: object) -> bool:
        self._pull()
        if isinstance(other, LiveDict):
            other._pull()
        return dict.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def __repr__(self) -> str:
        self._pull()
        return dict.__repr__(self)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """Copy and pickle it as a plain dictionary."""
        return dict, (self.copy(),)
