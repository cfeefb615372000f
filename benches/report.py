"""Writes tables: to the terminal, and between the markers of the pages that show figures."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path

from benches.figures import Row
from benches.measure import Timings
from benches.peers import Peer

OPEN, CLOSE = "<!-- figures -->", "<!-- /figures -->"
HEADER = ("work", "measured", "to hold", "going to", "holds")


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Lay out a Markdown table that also reads well as plain text.

    Args:
        header: The names of the columns.
        lines: The cells.

    Returns:
        The table, without a newline at its end.
    """
    cells = [tuple(header), *(tuple(line) for line in lines)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(header))]
    laid = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in cells
    ]
    laid.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(laid)


def figures(rows: Iterable[Row]) -> str:
    """Lay out the figures.

    Args:
        rows: What was measured.

    Returns:
        The table.
    """
    return table(HEADER, (row.cells for row in rows))


def headlines(rows: Iterable[Row]) -> str:
    """Lay out the few rows that a reader in a hurry should see.

    Args:
        rows: Those rows.

    Returns:
        A table of work and measured ratio.
    """
    return table(HEADER[:2], (row.cells[:2] for row in rows))


def verdict(rows: Sequence[Row]) -> str:
    """Say plainly which rows miss.

    Args:
        rows: What was measured.

    Returns:
        One or more sentences.
    """
    bound = [row for row in rows if row.is_bound]
    missing = [row for row in bound if not row.holds]
    if not missing:
        return f"All {len(bound)} rows hold."
    named = "\n".join(f"- {row.work}: {row.cells[1]}, to hold {row.cells[2]}" for row in missing)
    return f"{len(missing)} of {len(bound)} rows miss:\n{named}"


def times(kept: Iterable[Timings]) -> str:
    """List the absolute times, for orientation.

    Args:
        kept: All timings of a run.

    Returns:
        One line for each piece of work.
    """
    return "\n".join(
        f"{timings.title:32} {name:60} {best:14,.1f} ns" for timings in kept for name, best in timings.best.items()
    )


def versions(peers: Iterable[Peer]) -> str:
    """Name what was measured with.

    Args:
        peers: The frameworks of the run.

    Returns:
        One sentence.
    """
    packages = sorted({f"{peer.package} {metadata.version(peer.package)}" for peer in peers})
    return (
        f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}; {', '.join(packages)}."
    )


def put(page: Path, text: str) -> str:
    """Replace what stands between the markers of a page.

    Args:
        page: The Markdown file.
        text: What to put there.

    Returns:
        A sentence about the outcome.
    """
    if not page.is_file():
        return f"{page}: there is no such page"
    before, opened, rest = page.read_text(encoding="utf-8").partition(OPEN)
    _, closed, after = rest.partition(CLOSE)
    if not (opened and closed):
        return f"{page}: has no {OPEN} … {CLOSE}"
    page.write_text(f"{before}{OPEN}\n{text}\n{CLOSE}{after}", encoding="utf-8")
    return f"{page}: written"
