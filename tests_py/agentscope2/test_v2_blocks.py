"""Blocks and chunks are those that the constructors of AgentScope make."""

import os
import uuid
from datetime import datetime, timedelta
from importlib import import_module

import pytest
from agentscope.message import TextBlock, ToolResultState
from agentscope.tool import ToolChunk, ToolResponse

from toolcrib.compat.agentscope2 import blocks


def test_models_equal_constructed_ones() -> None:
    block = blocks.text_block("hello")
    chunk = blocks.chunk_of([block], ToolResultState.RUNNING, {"a": 1})
    response = blocks.response_of("c", [block], ToolResultState.SUCCESS, {})

    constructed = TextBlock(text="hello", id=block.id, created_at=block.created_at)
    assert block == constructed
    assert TextBlock.model_validate_json(block.model_dump_json()) == constructed
    assert chunk == ToolChunk(content=[constructed], state=ToolResultState.RUNNING, metadata={"a": 1}, id=chunk.id)
    assert response == ToolResponse(id="c", content=[constructed])
    assert ToolResponse(id="c").append_chunk(chunk).content == [constructed]


def test_a_copy_is_independent() -> None:
    block = blocks.text_block("hello")

    copy = blocks.copy_of(block)
    copy.text = "bye"

    assert (block.text, copy.id) == ("hello", block.id)


def test_ids_are_random_and_times_are_now() -> None:
    made = [blocks.text_block("x") for _ in range(200)]

    assert len({block.id for block in made}) == 200
    assert all(uuid.UUID(block.id).version == 4 for block in made)
    assert abs(datetime.fromisoformat(made[-1].created_at) - datetime.now()) < timedelta(seconds=60)


def test_a_factory_of_the_user_gives_the_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    common = import_module(TextBlock.model_fields["id"].default_factory.__module__)
    monkeypatch.setattr(common, "_id_factory", common._id_factory)

    import_module("agentscope").set_id_factory(lambda: "mine")

    assert blocks.text_block("x").id == blocks.chunk_of([]).id == TextBlock(text="x").id == "mine"


def test_a_forked_process_gives_ids_of_its_own() -> None:
    blocks.text_block("x")
    reading, writing = os.pipe()

    child = os.fork()
    if child == 0:
        os.write(writing, blocks.text_block("x").id.encode())
        os._exit(0)
    os.waitpid(child, 0)

    assert os.read(reading, 32).decode() != blocks.text_block("x").id
