"""The blocks: plain dictionaries at run time, with the keys that every agent framework expects."""

import json

import pytest

from toolcrib import blocks

KEYS = {
    "TextBlock": {"type", "text"},
    "ThinkingBlock": {"type", "thinking"},
    "Base64Source": {"type", "media_type", "data"},
    "URLSource": {"type", "url"},
    "ImageBlock": {"type", "source"},
    "AudioBlock": {"type", "source"},
    "VideoBlock": {"type", "source"},
    "ToolUseBlock": {"type", "id", "name", "input"},
    "ToolResultBlock": {"type", "id", "name", "output"},
}


def test_every_block_is_listed() -> None:
    assert set(blocks.__all__) == set(KEYS)


@pytest.mark.parametrize("name", KEYS)
def test_a_block_requires_its_keys(name: str) -> None:
    assert getattr(blocks, name).__required_keys__ == KEYS[name]


def test_the_raw_input_of_a_call_may_be_left_out() -> None:
    assert blocks.ToolUseBlock.__optional_keys__ == {"raw_input"}


def test_a_block_is_a_plain_dictionary() -> None:
    block = blocks.TextBlock(type="text", text="hello")

    assert type(block) is dict
    assert json.loads(json.dumps(block)) == {"type": "text", "text": "hello"}
