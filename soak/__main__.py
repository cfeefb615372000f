"""Run the attacks with the numbers of a release, print their table, and put it into `docs/security.md` if asked to."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from pathlib import Path

from soak.attack import Attack, Outcome, attacks

PAGE = Path(__file__).parents[1] / "docs" / "security.md"
BEGIN, END = "<!-- soak: begin -->\n", "<!-- soak: end -->\n"


def row_of(attack: Attack, outcome: Outcome) -> str:
    """Write one row of the table."""
    broken = len(outcome.broken)
    note = f"; {outcome.note}" if outcome.note else ""
    return f"| {attack.row} | {attack.promise} | {outcome.attempts:,} {attack.unit}: {broken} broken{note} |"


def table_of(rows: list[str]) -> str:
    """Write the table of all rows."""
    return "\n".join(["| row | promise | tested with |", "|---|---|---|", *rows]) + "\n"


def write(table: str) -> None:
    """Put the table into the page, between its marks."""
    page = PAGE.read_text(encoding="utf-8")
    head, _, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not end:
        raise SystemExit(f"{PAGE.name} has no marks for the table")
    PAGE.write_text(head + BEGIN + "\n" + table + "\n" + END + tail, encoding="utf-8")


def main() -> int:
    """Run the chosen attacks; the exit status is 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    parser.add_argument("names", nargs="*", help="attacks to run, as module or module.function (default: all)")
    parser.add_argument("--scale", type=float, default=1.0, help="the part of the release numbers (default: 1)")
    parser.add_argument("--write", action="store_true", help=f"put the table into docs/{PAGE.name}")
    given = parser.parse_args()
    # Tools fail on purpose; the records about it would hide what is broken.
    logging.getLogger("toolcrib").addHandler(logging.NullHandler())
    if given.write and (given.names or given.scale != 1.0):
        parser.error("--write needs all attacks with the numbers of a release")
    chosen = [
        attack
        for attack in attacks()
        if not given.names or attack.name in given.names or attack.name.partition(".")[0] in given.names
    ]
    if not chosen:
        parser.error(f"no such attack: choose from {', '.join(attack.name for attack in attacks())}")
    rows, is_broken = [], False
    for attack in chosen:
        amount = max(attack.smallest, int(attack.release * given.scale))
        began = time.monotonic()
        outcome = attack.run(amount)
        print(f"{attack.name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
        for text in outcome.broken[:10]:
            print(f"  broken: {text}", file=sys.stderr)
        is_broken = is_broken or bool(outcome.broken)
        rows.append(row_of(attack, outcome))
    table = table_of(rows)
    print(table)
    if given.write:
        write(table)
    return int(is_broken)


if __name__ == "__main__":
    sys.exit(main())
