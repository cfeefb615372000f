"""The chunks of generators: their modes, the whole result, which is the last response, and the tools' own objects."""

import asyncio
import copy
import gc
import pickle
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from support.loops import LoopFactory
from support.streams import NOTE, Numbers, block, read, toolkit
from toolcrib import Toolkit, ToolResponse
from toolcrib.compat.agentscope import Toolkit as CompatToolkit

IMAGE: Any = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}


def text(words: str, mode: Any = "result", **fields: Any) -> ToolResponse:
    return ToolResponse([{"type": "text", "text": words}], mode=mode, **fields)


def yielding(*items: Any, kind: str = "generator") -> Callable[[], Any]:
    """A tool that yields these items."""

    def generator() -> Iterator[Any]:
        yield from items

    async def async_generator() -> AsyncIterator[Any]:
        for item in items:
            await asyncio.sleep(0)
            yield item

    return generator if kind == "generator" else async_generator


async def responses(tool: Callable[..., Any], **options: Any) -> list[ToolResponse]:
    return await read(toolkit(tool, func_name="tool", **options).call_tool_function(block("tool")))


async def whole(*items: Any, **options: Any) -> ToolResponse:
    return (await responses(yielding(*items), **options))[-1]


# Modes


@pytest.mark.parametrize("mode", ["progress", "addition", "result"])
def test_a_response_keeps_its_mode(mode: Any) -> None:
    response = text("x", mode)

    assert response.mode == mode
    assert copy.copy(response).mode == copy.deepcopy(response).mode == pickle.loads(pickle.dumps(response)).mode == mode
    assert (f"mode='{mode}'" in repr(response)) == (mode != "result")


def test_responses_of_different_modes_differ() -> None:
    response = text("x", "addition")
    other = copy.copy(response)

    assert response == other

    other.mode = "progress"

    assert response != other


def test_a_mode_is_one_of_three() -> None:
    with pytest.raises(ValueError, match="mode must be 'progress', 'addition' or 'result', not 'half'"):
        text("x", "half")
    with pytest.raises(ValueError, match="mode must be"):
        text("x").mode = "half"  # type: ignore[assignment]


# The sequence


@pytest.mark.parametrize("run_in", ["inline", "thread"])
@pytest.mark.parametrize("kind", ["generator", "async_generator"])
async def test_the_last_response_is_the_whole_result(kind: str, run_in: str, loop_factory: LoopFactory) -> None:
    got = await responses(yielding("to", "", "ol\n", kind=kind), run_in=run_in)

    assert [response.text for response in got] == ["to", "", "ol\n", "tool\n"]
    assert [response.mode for response in got] == ["addition"] * 3 + ["result"]
    assert [response.is_last for response in got] == [False] * 3 + [True]
    assert all(response.stream for response in got)
    assert len({response.id for response in got}) == 4


async def test_no_chunk_waits_for_the_next() -> None:
    stream = toolkit(Numbers().endless).call_tool_function(block("endless"))

    assert (await anext(stream)).text == "first"
    await stream.aclose()


@pytest.mark.parametrize("kind", ["generator", "async_generator"])
def test_call_and_run_give_the_whole_result(kind: str) -> None:
    kit = toolkit(yielding("to", "ol", kind=kind), func_name="tool")

    assert kit.run("tool").text == "tool"
    assert asyncio.run(kit.call("tool")).is_last


async def test_a_function_has_one_response_as_before() -> None:
    (response,) = await responses(lambda: "result")

    assert (response.mode, response.is_last, response.stream) == ("result", True, False)


# The whole result


async def test_values_make_a_list() -> None:
    response = await whole({"row": 1}, 2, None, [3])

    assert response.metadata == {"value": [{"row": 1}, 2, None, [3]]}
    assert response.text == '[{"row": 1}, 2, null, [3]]'


async def test_values_among_texts_are_text() -> None:
    response = await whole("sum: ", 3, "!")

    assert response.content == [{"type": "text", "text": "sum: 3!"}]
    assert response.metadata is None


async def test_blocks_keep_their_order_and_adjacent_texts_are_joined() -> None:
    picture = ToolResponse([{"type": "text", "text": "b"}, IMAGE], {"pages": 1, "done": False}, mode="addition")

    response = await whole("a", picture, "c", text("d", "addition", metadata={"done": True}))

    assert response.content == [{"type": "text", "text": "ab"}, IMAGE, {"type": "text", "text": "cd"}]
    assert response.metadata == {"pages": 1, "done": True}


async def test_a_result_replaces_everything_before_it() -> None:
    response = await whole("draft", text("one", metadata={"version": 1}), " and", " more")

    assert response.text == "one and more"
    assert response.metadata == {"version": 1}
    assert (await whole("draft", text("one"), text("two"))).text == "two"


async def test_progress_is_not_part_of_the_result() -> None:
    got = await responses(yielding(text("0 %", "progress"), "a", text("50 %", "progress"), "b"))

    assert [(response.text, response.mode) for response in got] == [
        ("0 %", "progress"),
        ("a", "addition"),
        ("50 %", "progress"),
        ("b", "addition"),
        ("ab", "result"),
    ]
    assert (await whole(text("0 %", "progress"))).content == []


async def test_the_code_of_a_chunk_is_the_code_of_the_result() -> None:
    assert (await whole("a", text("no", "addition", code="failed"), "b")).code == "failed"
    assert (await whole(text("no", code="failed"), text("yes"))).code is None
    assert (await whole(text("no", "progress", code="failed"), "a")).code is None


async def test_plain_values_replace_if_the_tool_says_so() -> None:
    got = await responses(yielding("1 of 2", {"of": 2}), chunks="replace")

    assert [(response.text, response.mode) for response in got] == [
        ("1 of 2", "result"),
        *[('{"of": 2}', "result")] * 2,
    ]
    assert got[-1].metadata == {"value": {"of": 2}}


def test_another_word_for_chunks_is_refused() -> None:
    with pytest.raises(ValueError, match="chunks must be 'add' or 'replace', not 'join'"):
        Toolkit().register_tool_function(yielding("a"), chunks="join")  # type: ignore[arg-type]


async def test_many_texts_are_joined() -> None:
    def letters() -> Iterator[str]:
        yield from ("ü" for _ in range(200_000))

    assert (await toolkit(letters).call("letters")).text == "ü" * 200_000


# The tool's own objects


@pytest.mark.parametrize("mode", ["addition", "result"])
async def test_a_tool_may_yield_the_same_response_again(mode: Any) -> None:
    own = text("", mode, id="mine")

    async def writes_on() -> AsyncIterator[ToolResponse]:
        for word in ("a", "b"):
            own.content[0]["text"] += word  # type: ignore[typeddict-item]
            yield own
        own.content.clear()

    got = await responses(writes_on)

    assert [response.text for response in got] == ["a", "ab", "aab" if mode == "addition" else "ab"]
    assert [response.id for response in got[:2]] == ["mine", "mine"]
    assert (own.is_last, own.stream, own.mode) == (True, False, mode)


async def test_a_response_that_nothing_else_has_is_not_copied() -> None:
    references: list[weakref.ref[ToolResponse]] = []

    def fresh() -> Iterator[ToolResponse]:
        response = text("a")
        references.append(weakref.ref(response))
        kept = [response]
        del response
        yield kept.pop()

    stream = toolkit(fresh).call_tool_function(block("fresh"))

    response = await anext(stream)

    assert references[0]() is response
    assert not response.is_last


async def test_progress_is_not_kept() -> None:
    async def reports() -> AsyncIterator[ToolResponse]:
        while True:
            yield text("busy", "progress")

    stream = toolkit(reports).call_tool_function(block("reports"))
    references = [weakref.ref(await anext(stream)) for _ in range(10)]
    gc.collect()

    assert sum(reference() is not None for reference in references) <= 1
    await stream.aclose()


async def test_a_stream_that_is_left_lets_go_of_what_it_collected() -> None:
    class Row(dict[str, int]):
        pass

    references: list[weakref.ref[Row]] = []

    async def rows() -> AsyncIterator[Row]:
        for number in range(3):
            row = Row(number=number)
            references.append(weakref.ref(row))
            yield row

    stream = toolkit(rows).call_tool_function(block("rows"))
    await anext(stream)
    await anext(stream)
    kept = [reference() is not None for reference in references]

    await stream.aclose()
    gc.collect()

    assert kept == [True, True]
    assert [reference() for reference in references] == [None, None]


# Endings


async def test_an_error_in_mid_stream_is_the_last_response() -> None:
    def breaks() -> Iterator[str]:
        yield "half"
        raise ValueError("broken")

    got = await responses(breaks)

    assert [(response.code, response.is_last, response.stream) for response in got] == [
        (None, False, True),
        ("failed", True, True),
    ]


async def test_an_interrupted_call_repeats_the_result_so_far() -> None:
    async def digs() -> AsyncIterator[Any]:
        yield "1 m\n"
        yield text("tired", "progress")
        yield "2 m\n"
        await asyncio.sleep(60)

    got: list[ToolResponse] = []

    async def consume() -> None:
        async for response in toolkit(digs).call_tool_function(block("digs")):
            got.append(response)

    task = asyncio.create_task(consume())
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert [dict(part)["text"] for part in got[-1].content] == ["1 m\n2 m\n", NOTE]
    assert (got[-1].is_last, got[-1].stream, got[-1].mode) == (True, True, "result")


async def test_a_timeout_in_mid_stream_is_the_last_response() -> None:
    got = await responses(Numbers().endless, timeout=0.01)

    assert [(response.code, response.is_last) for response in got] == [(None, False), ("timeout", True)]


# Postprocessing, passing on, compatibility


async def test_postprocessing_sees_every_chunk_and_the_whole_result() -> None:
    seen: list[tuple[str, str, bool]] = []

    def shout(_: Any, response: ToolResponse) -> ToolResponse:
        seen.append((response.text, response.mode, response.is_last))
        return text(response.text.upper())

    got = await responses(yielding(text("wait", "progress"), "a", "b"), postprocess_func=shout)

    assert [(response.text, response.mode, response.is_last) for response in got] == [
        ("WAIT", "progress", False),
        ("A", "addition", False),
        ("B", "addition", False),
        ("AB", "result", True),
    ]
    assert [mode for _, mode, _ in seen] == ["progress", "addition", "addition", "result"]


async def test_an_interruption_never_repeats_what_postprocessing_has_hidden() -> None:
    async def leaks() -> AsyncIterator[str]:
        yield "secret"
        yield "secret"
        await asyncio.sleep(60)

    kit = toolkit(leaks, postprocess_func=lambda *_: text("***"))
    got: list[ToolResponse] = []

    async def consume() -> None:
        async for response in kit.call_tool_function(block("leaks")):
            got.append(response)

    task = asyncio.create_task(consume())
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])

    assert got[-1].is_interrupted
    assert not any("secret" in response.text for response in got)


async def test_a_tool_that_gives_the_stream_of_another_call_adds_nothing() -> None:
    inner = Toolkit(run_in="inline")
    inner.register_tool_function(yielding("a", "b"), func_name="two")
    inner.register_tool_function(lambda: "one", func_name="one")

    async def outer(name: str) -> Any:
        return inner.call_tool_function(block(name))

    kit = toolkit(outer)

    two = await read(kit.call_tool_function(block("outer", name="two")))
    (one,) = await read(kit.call_tool_function(block("outer", name="one")))
    (unknown,) = await read(kit.call_tool_function(block("outer", name="three")))

    assert [(response.text, response.is_last) for response in two] == [("a", False), ("b", False), ("ab", True)]
    assert (one.text, one.is_last, one.stream) == ("one", True, False)
    assert (unknown.code, unknown.is_last) == ("unknown_tool", True)


async def test_a_tool_that_gives_the_stream_of_agentscopes_kind_gets_a_last_response() -> None:
    inner = CompatToolkit()
    inner.register_tool_function(yielding(text("a"), text("ab")), func_name="tool")

    async def outer() -> Any:
        return inner.call_tool_function(block("tool"))

    got = await responses(outer)

    assert [(response.text, response.is_last) for response in got] == [("a", False), ("ab", False), ("ab", True)]


async def test_a_middleware_adds_no_response_of_its_own() -> None:
    kit = toolkit(yielding("a", "b"), func_name="tool")

    async def passing(kwargs: dict[str, Any], next_handler: Any) -> AsyncIterator[ToolResponse]:
        async for response in next_handler(**kwargs):
            yield response

    kit.register_middleware(passing)

    got = await read(kit.call_tool_function(block("tool")))

    assert [(response.text, response.is_last) for response in got] == [("a", False), ("b", False), ("ab", True)]
    assert (await kit.call("tool")).text == "ab"


@pytest.mark.parametrize("kind", ["generator", "async_generator"])
async def test_the_toolkit_of_agentscope_delivers_chunks_as_they_are_given(kind: str) -> None:
    given = [text("a"), text("ab", is_last=False, stream=True)]
    kit = CompatToolkit()
    kit.register_tool_function(yielding(*given, "c", kind=kind), func_name="tool")

    got = await read(await kit.call_tool_function(block("tool")))

    assert got[:2] == given
    assert got[0] is given[0]
    assert [(response.text, response.is_last, response.stream) for response in got] == [
        ("a", True, False),
        ("ab", False, True),
        ("c", True, False),
    ]


async def test_one_tool_of_agentscopes_toolkit_can_be_collected() -> None:
    kit = CompatToolkit()
    kit.register_tool_function(yielding("a", "b"), func_name="tool", chunks="add")

    assert (await kit.call("tool")).text == "ab"
