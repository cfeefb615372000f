"""What a figure is: a measured number beside the bound it must hold and the one it is going to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """Sets one measured number beside its bounds.

    Attributes:
        value: What was measured.
        hold: The bound that must hold today, if there is one.
        going: The bound the project is on its way to.
        unit: The words around the number, which stands for `{}`.
        most: Whether the bounds are upper ones.
    """

    value: float
    hold: float | None
    going: float
    unit: str
    most: bool

    @property
    def holds(self) -> bool:
        """Whether the bound that must hold today does."""
        return self.hold is None or self._within(self.hold)

    @property
    def arrived(self) -> bool:
        """Whether the bound the project is on its way to is reached."""
        return self._within(self.going)

    @property
    def measured(self) -> str:
        """The measured number in words."""
        return self.unit.format(number(self.value))

    def bound(self, limit: float) -> str:
        """Put a bound into words.

        Args:
            limit: The bound.

        Returns:
            A text such as `≤ 2.4 BK`.
        """
        return f"{'≤' if self.most else '≥'} {self.unit.format(f'{limit:g}')}"

    def _within(self, limit: float) -> bool:
        return self.value <= limit if self.most else self.value >= limit


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a piece of work and its figures."""

    work: str
    figures: tuple[Figure, ...]

    @property
    def is_bound(self) -> bool:
        """Whether there is anything to hold."""
        return any(figure.hold is not None for figure in self.figures)

    @property
    def holds(self) -> bool:
        """Whether every figure holds."""
        return all(figure.holds for figure in self.figures)

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """The line as the table shows it."""
        going = " and ".join(figure.bound(figure.going) for figure in self.figures)
        arrived = all(figure.arrived for figure in self.figures)
        return (
            self.work,
            " and ".join(figure.measured for figure in self.figures),
            " and ".join(figure.bound(figure.hold) for figure in self.figures if figure.hold is not None) or "–",
            f"{going} ✓" if arrived else going,
            ("yes" if self.holds else "**no**") if self.is_bound else "–",
        )


def at_most(value: float, hold: float | None, going: float, unit: str) -> Figure:
    """Make a figure that should be small.

    Args:
        value: What was measured.
        hold: The upper bound of today, if there is one.
        going: The upper bound to come.
        unit: The words around the number.

    Returns:
        The figure.
    """
    return Figure(value, hold, going, unit, most=True)


def at_least(value: float, hold: float | None, going: float, unit: str) -> Figure:
    """Make a figure that should be large.

    Args:
        value: What was measured.
        hold: The lower bound of today, if there is one.
        going: The lower bound to come.
        unit: The words around the number.

    Returns:
        The figure.
    """
    return Figure(value, hold, going, unit, most=False)


def number(value: float) -> str:
    """Write a number with the digits that mean something.

    Args:
        value: What was measured; a whole number if it was counted.

    Returns:
        The number as a table shows it.
    """
    if isinstance(value, int) or abs(value) >= 100:
        return f"{value:,.0f}".replace(",", " ")
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.1g}"
