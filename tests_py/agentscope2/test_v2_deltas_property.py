"""Deltas: for any stream of responses the result is toolcrib's, and what was sent adds up."""

from typing import Any

from agentscope.tool import ToolResponse as TheirResponse
from hypothesis import given
from hypothesis import strategies as st

from support.agentscope2.scene import text_of
from toolcrib import Toolkit, ToolResponse
from toolcrib.compat.agentscope2.deltas import Deltas

TEXT = st.sampled_from(["", "a", "ab", "abc", "x", "abx"])
IMAGE = st.sampled_from(["QQ==", "Qg=="]).map(
    lambda data: {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
)
BLOCKS = st.lists(TEXT.map(lambda text: {"type": "text", "text": text}) | IMAGE, max_size=3)
RESPONSES = st.lists(st.tuples(BLOCKS, st.sampled_from(["addition", "result", "progress"])), max_size=6)


def shape(content: list[Any]) -> list[str]:
    """Return the texts and the data of blocks, with neighbouring texts joined and without empty ones."""
    joined: list[str] = []
    for block in content:
        plain = block if isinstance(block, dict) else block.model_dump(mode="json")
        if plain["type"] != "text":
            joined.append("data " + plain["source"]["data"])
        elif joined and joined[-1].startswith("text "):
            joined[-1] += plain["text"]
        else:
            joined.append("text " + plain["text"])
    return [item for item in joined if item != "text "]


def given_responses(responses: list[Any]) -> list[ToolResponse]:
    """Let a tool yield the responses, and return what its stream gives."""

    def tool() -> Any:
        """Yield."""
        for blocks, mode in responses:
            yield ToolResponse(blocks, mode=mode)

    kit = Toolkit(run_in="inline", tools=[tool])
    given: list[ToolResponse] = []

    async def collect() -> None:
        async for response in kit.call_tool_function({"name": "tool", "input": {}}):
            given.append(response)

    coroutine = collect()
    try:
        coroutine.send(None)
    except StopIteration:
        return given
    raise AssertionError("an inline tool does not wait")


@given(RESPONSES)
def test_the_result_is_that_of_toolcrib(responses: list[Any]) -> None:
    deltas, total = Deltas(), TheirResponse(id="c")
    received = given_responses(responses)

    for response in received:
        for chunk in deltas.feed(response):
            total.append_chunk(chunk)

    assert shape(deltas.response("c").content) == shape(list(received[-1].content))
    if all(mode != "result" for _, mode in responses):
        assert shape(total.content) == shape(list(received[-1].content))


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=5))
def test_texts_that_grow_add_up_to_the_last(letters: list[str]) -> None:
    deltas, total, text = Deltas(), TheirResponse(id="c"), ""
    growing = []
    for letter in letters:
        text += letter
        growing.append(([{"type": "text", "text": text}], "result"))

    for response in given_responses(growing):
        for chunk in deltas.feed(response):
            total.append_chunk(chunk)

    assert text_of(total) == text_of(deltas.response("c")) == text
