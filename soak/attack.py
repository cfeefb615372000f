"""An attack: a promise, a function that tries to break it a given number of times, and the number of a release."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Outcome:
    """The result of an attack: the number of attempts that were made, and each way in which the promise was broken."""

    attempts: int
    broken: list[str] = field(default_factory=list)
    note: str = ""


@dataclass(frozen=True)
class Attack:
    """A promise and what attacks it; `name` is how the command line names it: the module, a dot, and a word."""

    name: str
    row: str
    promise: str
    unit: str
    release: int
    smallest: int
    run: Callable[[int], Outcome]


_ATTACKS: list[Attack] = []


def declare(attack: Attack) -> Attack:
    """Add an attack to those that `attacks` lists."""
    _ATTACKS.append(attack)
    return attack


def attack(
    *, row: str, promise: str, unit: str, release: int, smallest: int
) -> Callable[[Callable[[int], Outcome]], Attack]:
    """Declare a function as an attack.

    Args:
        row: The row of the reliability table that the promise belongs to.
        promise: The promise, as a sentence of `docs/security.md`.
        unit: The noun of one attempt, in the plural.
        release: The number of attempts before a release.
        smallest: The number of attempts in the test suite, which takes a few seconds at most.
    """

    def decorate(run: Callable[[int], Outcome]) -> Attack:
        name = f"{run.__module__.rpartition('.')[2]}.{run.__name__}"
        return declare(Attack(name, row, promise, unit, release, smallest, run))

    return decorate


def attacks() -> list[Attack]:
    """List the attacks of all modules of this package, sorted by row and name."""
    package = importlib.import_module("soak")
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("__"):
            importlib.import_module(f"soak.{module.name}")
    return sorted(_ATTACKS, key=lambda attack: (attack.row, attack.name))
