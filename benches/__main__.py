"""Runs the benchmark: `python -m benches`, or `python -m benches calls chunks` for some of it."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import sys
from pathlib import Path

from benches import compare, report
from benches.figures import Row
from benches.measure import Bench
from benches.peers import installed

THEMES = (
    "register",
    "calls",
    "chunks",
    "middleware",
    "concurrency",
    "threads",
    "native",
    "mcp",
    "files",
    "programs",
    "arguments",
    "repair",
    "listing",
    "dialects",
    "text",
    "lookup",
    "roles",
    "sessions",
    "storage",
    "artifacts",
    "agents",
    "policy",
    "failures",
    "responses",
    "leaks",
    "background",
    "faces",
    "agentscope2",
    "imports",
    "memory",
    "tracing",
)
PEERS = "peers"
# The rows that the README shows, by the beginning of their work: one for each thing that a toolkit does all day.
HEADLINES = (
    "register a tool: 5 typed",
    "call a coroutine tool through the stream",
    "one chunk of an async generator",
    "`get_json_schemas()` of 1 000 tools",
    "a tool that raises",
    "200 concurrent",
    "call a coroutine tool in AgentScope 2's",
)
ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Measure, print one table, and write it into the pages if asked; misses are reported, not punished."""
    asked = _arguments()
    chosen = asked.themes or [*THEMES, PEERS]
    asyncio.run(_run(Bench(rounds=asked.rounds), chosen, times=asked.times, write=asked.write))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benches", description=__doc__)
    parser.add_argument("themes", nargs="*", metavar="theme", help=f"what to measure: {', '.join(THEMES)}, {PEERS}")
    parser.add_argument("--rounds", type=int, default=60, help="turns of each loop, never under 25")
    parser.add_argument("--times", action="store_true", help="also list absolute times")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance.md and README.md")
    asked = parser.parse_args()
    if unknown := set(asked.themes) - {*THEMES, PEERS}:
        parser.error(f"no such theme: {', '.join(sorted(unknown))}")
    if asked.write and asked.themes:
        parser.error("--write needs the whole run")
    return asked


async def _run(bench: Bench, chosen: list[str], *, times: bool, write: bool) -> None:
    rows: list[Row] = []
    for theme in THEMES:
        if theme in chosen:
            _report(theme)
            rows += await importlib.import_module(f"benches.{theme}").rows(bench)
    tables = [report.figures(rows)] if rows else []
    if PEERS in chosen:
        _report(PEERS)
        peers = installed()
        lines = await compare.lines(bench, peers)
        tables += [report.table(compare.COLUMNS, lines), report.versions(peers)]
    if times:
        print(report.times(bench.kept), end="\n\n")
    print("\n\n".join(tables))
    if rows:
        print(f"\n{report.verdict(rows)}")
    if write:
        print(report.put(ROOT / "docs" / "performance.md", "\n\n".join(tables)))
        print(report.put(ROOT / "README.md", report.headlines(row for row in rows if row.work.startswith(HEADLINES))))


def _report(theme: str) -> None:
    print(f"measuring {theme}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
