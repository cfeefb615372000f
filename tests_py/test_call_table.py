"""Every way to call gives what the table of calls says: code, text, audit records, events, questions and runs."""

from __future__ import annotations

import runpy

import pytest

from support.call_table import GENERATOR, TABLE, WAYS, differing_rows


@pytest.mark.parametrize("way", WAYS)
async def test_every_row_of_the_table_holds(way: str) -> None:
    assert await differing_rows(way) == {}


def test_the_table_has_rows_of_every_way() -> None:
    ways = {row["way"] for row in TABLE["rows"]}

    assert {way for way in ways if not way.startswith("native")} == set(WAYS)
    assert len(TABLE["rows"]) > 5000


def test_the_table_is_what_its_generator_writes() -> None:
    generator = runpy.run_path(str(GENERATOR))

    assert generator["FILE"].read_text(encoding="utf-8") == generator["table"]()
