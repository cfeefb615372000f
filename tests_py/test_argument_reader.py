"""Arguments that arrive piece by piece."""

import json
import random
from typing import Any

import pytest

from support.streams import texts, toolkit
from toolcrib import ArgumentReader


def fed(*deltas: str) -> ArgumentReader:
    reader = ArgumentReader("tool", "c1")
    for delta in deltas:
        reader.feed(delta)
    return reader


def test_what_is_known_so_far_is_shown() -> None:
    reader = ArgumentReader()
    shown = []

    for delta in ['{"ci', 'ty": "Be', "rn", '", "days": 1', "2", ', "tags": ["a', '"]}']:
        reader.feed(delta)
        shown.append(reader.partial)

    assert shown == [
        {},
        {"city": "Be"},
        {"city": "Bern"},
        {"city": "Bern"},
        {"city": "Bern"},
        {"city": "Bern", "days": 12, "tags": ["a"]},
        {"city": "Bern", "days": 12, "tags": ["a"]},
    ]
    assert reader.is_complete


async def test_what_is_finished_can_be_called() -> None:
    def tool(city: str) -> str:
        return city

    call = fed('{"city":', ' "Bern"}').finish()

    assert (call.name, call.id, call.raw, call.arguments) == ("tool", "c1", '{"city": "Bern"}', {"city": "Bern"})
    assert await texts(toolkit(tool).call_tool_function(call)) == ["Bern"]


def test_text_that_is_not_json_is_repaired_in_the_end() -> None:
    reader = fed("{'city': 'Be", "rn', 'warm': True}")

    assert reader.partial == reader.finish().arguments == {"city": "Bern", "warm": True}
    assert [repair["what"] for repair in reader.finish().repairs] == ["quotes", "literal"]


def test_what_is_cut_off_is_known_to_be() -> None:
    reader = fed('{"city": "Be')

    assert reader.finish().is_truncated
    assert not reader.is_complete
    assert reader.text == '{"city": "Be'


@pytest.mark.parametrize("seed", range(20))
def test_any_cutting_gives_the_same(seed: int) -> None:
    chance = random.Random(seed)
    value: dict[str, Any] = {"text": 'Zoë "x"\n\\ 😀', "list": [1, -2.5e3, None, True, {"a": {}}], "empty": []}
    text = json.dumps(value, ensure_ascii=chance.random() < 0.5, indent=chance.choice([None, 2]))
    reader = ArgumentReader()

    while text:
        size = chance.randint(1, 7)
        reader.feed(text[:size])
        text = text[size:]
        assert set(reader.partial) <= set(value)

    assert reader.partial == reader.finish().arguments == value


def test_more_than_a_mebibyte_is_refused() -> None:
    reader = ArgumentReader()
    for _ in range(20):
        reader.feed("x" * 100_000)

    assert "1048576 are the most" in str(reader.finish().error)
    assert len(reader.text) <= 1 << 20
