"""An agent calls tools of toolcrib: with either design it does what it does with AgentScope's own."""

import base64
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from agentscope.message import Base64Source, DataBlock, TextBlock, ToolCallBlock, ToolResultState
from agentscope.state import AgentState
from agentscope.tool import ToolChunk

from support.agentscope2.scene import DESIGNS, Design, Scene, crib, text_of, theirs, with_crib
from support.agentscope2.scripted import ScriptedModel, Turn, ask, say
from toolcrib import ToolResponse

PIXEL = base64.b64encode(b"pixel").decode()


async def add(a: int, b: int = 2) -> str:
    """Add two numbers.

    The numbers may be negative.

    Args:
        a: The first number.
        b: The second number.
    """
    return str(a + b)


def weigh(thing: str, *, exact: bool = False) -> dict[str, Any]:
    """Weigh a thing."""
    return {"thing": thing, "grams": 12.5 if exact else 12}


async def nothing() -> None:
    """Do nothing."""


async def spell(word: str) -> AsyncIterator[str]:
    """Spell a word."""
    for letter in word:
        yield letter


def count(limit: int) -> Iterator[str]:
    """Count."""
    for number in range(limit):
        yield f"{number} "


async def picture() -> AsyncIterator[ToolChunk]:
    """Draw in two pieces."""
    yield ToolChunk(content=[TextBlock(text="drawing ")])
    for piece in (b"one", b"two"):
        source = Base64Source(data=base64.b64encode(piece).decode(), media_type="image/png")
        yield ToolChunk(content=[DataBlock(id="canvas", source=source, name="a.png")], metadata={piece.decode(): 1})


async def report() -> ToolChunk:
    """Report a failure in a chunk."""
    return ToolChunk(content=[TextBlock(text="no paper")], state=ToolResultState.ERROR, metadata={"tray": 2})


async def report_midway() -> AsyncIterator[ToolChunk]:
    """Report a failure in a chunk, and go on."""
    yield ToolChunk(content=[TextBlock(text="page 1, ")])
    yield ToolChunk(content=[TextBlock(text="no paper, ")], state=ToolResultState.ERROR, metadata={"tray": 2})
    yield ToolChunk(content=[TextBlock(text="page 2")])


async def refuse() -> AsyncIterator[ToolChunk]:
    """Refuse in a chunk."""
    yield ToolChunk(content=[TextBlock(text="not this one")], state=ToolResultState.DENIED)


async def stop() -> AsyncIterator[Any]:
    """Stop in a chunk."""
    yield "half of it, "
    yield ToolChunk(content=[TextBlock(text="then it was stopped")], state=ToolResultState.INTERRUPTED)


async def fail() -> str:
    """Fail."""
    raise ValueError("no such thing")


async def fail_silently() -> str:
    """Fail without words."""
    raise ValueError


async def fail_late() -> AsyncIterator[str]:
    """Fail in the middle."""
    yield "half of it, "
    raise RuntimeError("then it broke")


FUNCTIONS: list[Callable[..., Any]] = [
    add, weigh, nothing, spell, count, picture, report, report_midway, refuse, stop, fail, fail_silently, fail_late,
]  # fmt: skip

SCRIPTS: dict[str, tuple[Turn, ...]] = {
    "functions": (ask(("add", {"a": 1})), ask(("add", {"a": 1, "b": -1}))),
    "streams": (ask(("spell", {"word": "crib"})), ask(("count", {"limit": 3}))),
    "chunks of AgentScope": (ask(("picture", {})), ask(("report", {}))),
    "chunks that are not a success": (ask(("report_midway", {})), ask(("refuse", {})), ask(("stop", {}))),
    "unknown tool": (ask(("nope", {"a": 1})),),
    "arguments that do not fit": (ask(("add", {"a": "many"})), ask(("add", {}))),
    "arguments to repair": (ask(("add", {"a": "5"})), ask(("add", '{"a": 3')), ask(("add", ""))),
    "arguments that are no object": (ask(("add", "[1, 2]")), ask(("add", '{"a": NaN}'))),
    "side by side": (ask(("add", {"a": 1}), ("spell", {"word": "ab"}), ("nope", {})),),
}


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
async def test_an_agent_does_what_it_does_with_its_own_tools(design: Design, script: tuple[Turn, ...]) -> None:
    transcripts = []

    for toolkit in (theirs(FUNCTIONS), with_crib(design, crib(FUNCTIONS, run_in="inline"))):
        scene = Scene(toolkit, ScriptedModel(*script, say("done")))
        await scene.send()
        transcripts.append(scene.transcript())

    assert transcripts[1] == transcripts[0]


@pytest.mark.parametrize(("name", "arguments"), [("add", {"a": 1}), ("count", {"limit": 2})])
async def test_the_fields_that_are_set_are_those_of_agentscope(name: str, arguments: dict[str, int]) -> None:
    call = ToolCallBlock(id="c", name=name, input=json.dumps(arguments))
    seen = []

    for toolkit in (theirs(FUNCTIONS), with_crib("B", crib(FUNCTIONS))):
        items = [item async for item in toolkit.call_tool(call, AgentState())]
        seen.append([[it.model_fields_set for it in (item, *item.content)] for item in items])

    assert seen[1] == seen[0]


@pytest.mark.parametrize("name", ["fail", "fail_silently", "fail_late"])
async def test_exceptions_are_answered_as_by_agentscope(name: str) -> None:
    transcripts = []

    for toolkit in (theirs(FUNCTIONS), with_crib("B", crib(FUNCTIONS))):
        scene = Scene(toolkit, ScriptedModel(ask((name, {})), say("done")))
        await scene.send()
        transcripts.append(scene.transcript())

    assert transcripts[1] == transcripts[0]


async def test_exceptions_are_answered_in_the_words_of_toolcrib_by_design_a() -> None:
    scene = Scene(with_crib("A", crib(FUNCTIONS)), ScriptedModel(ask(("fail", {}), ("fail_late", {})), say("done")))

    await scene.send()

    kit = crib(FUNCTIONS)
    assert scene.states() == ["error", "error"]
    assert scene.texts() == [
        (await kit.call("fail")).text,
        "half of it, " + (await kit.call("fail_late")).text,
    ]


@pytest.mark.parametrize("design", DESIGNS)
async def test_other_values_are_json_text_and_stay_in_the_metadata(design: Design) -> None:
    scene = Scene(with_crib(design, crib(FUNCTIONS)), ScriptedModel(ask(("weigh", {"thing": "egg"})), say("done")))

    await scene.send()

    (result,) = scene.results()
    assert json.loads(text_of(result)) == {"thing": "egg", "grams": 12}
    assert result.metadata == {"value": {"thing": "egg", "grams": 12}}


@pytest.mark.parametrize("design", DESIGNS)
async def test_no_value_is_null(design: Design) -> None:
    scene = Scene(with_crib(design, crib(FUNCTIONS)), ScriptedModel(ask(("nothing", {})), say("done")))

    await scene.send()

    assert scene.texts() == ["null"]


@pytest.mark.parametrize("design", DESIGNS)
async def test_results_that_grow_in_the_middle_are_not_repeated(design: Design) -> None:
    async def grow() -> AsyncIterator[ToolResponse]:
        """Grow."""
        image: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
        for text in ("a", "ab", "abc"):
            yield ToolResponse([{"type": "text", "text": text}, image])

    scene = Scene(with_crib(design, crib([grow])), ScriptedModel(ask(("grow", {})), say("done")))

    await scene.send()

    (result,) = scene.results()
    assert [block.type for block in result.output] == ["text", "data"]
    assert text_of(result) == "abc"


@pytest.mark.parametrize("design", DESIGNS)
async def test_growing_texts_are_not_repeated(design: Design) -> None:
    async def grow() -> AsyncIterator[ToolResponse]:
        """Grow."""
        for text in ("a", "ab", "abc"):
            yield ToolResponse([{"type": "text", "text": text}])

    scene = Scene(with_crib(design, crib([grow])), ScriptedModel(ask(("grow", {})), say("done")))

    events = await scene.send()

    assert [it.delta for it in events if type(it).__name__ == "ToolResultTextDeltaEvent"] == ["ab", "c"]
    assert scene.texts() == ["abc"]


@pytest.mark.parametrize("design", DESIGNS)
async def test_pictures_of_growing_results_arrive_once(design: Design) -> None:
    async def draw() -> AsyncIterator[ToolResponse]:
        """Draw."""
        blocks: list[Any] = []
        for number in range(3):
            data = base64.b64encode(bytes([number])).decode()
            blocks.append({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}})
            yield ToolResponse(list(blocks))

    scene = Scene(with_crib(design, crib([draw])), ScriptedModel(ask(("draw", {})), say("done")))

    events = await scene.send()

    assert len([it for it in events if type(it).__name__ == "ToolResultDataDeltaEvent"]) == 3
    (result,) = scene.results()
    assert [base64.b64decode(block.source.data) for block in result.output] == [b"\0", b"\1", b"\2"]


@pytest.mark.parametrize("design", DESIGNS)
async def test_a_value_that_replaces_another_is_the_result(design: Design) -> None:
    async def look() -> AsyncIterator[str]:
        """Look out of the window."""
        yield "looking…"
        yield "sunny"

    kit = crib()
    kit.register_tool_function(look, chunks="replace")
    scene = Scene(with_crib(design, kit), ScriptedModel(ask(("look", {})), say("done")))

    await scene.send()

    assert scene.texts() == ["sunny"]


@pytest.mark.parametrize("design", DESIGNS)
async def test_an_error_that_replaces_the_result_is_sent_once(design: Design) -> None:
    async def look() -> AsyncIterator[ToolResponse]:
        """Look out of the window."""
        yield ToolResponse([{"type": "text", "text": "looking…"}])
        yield ToolResponse([{"type": "text", "text": "it is dark"}], code="failed")

    scene = Scene(with_crib(design, crib([look])), ScriptedModel(ask(("look", {})), say("done")))

    await scene.send()

    assert scene.texts() == ["it is dark"]
    assert scene.states() == ["error"]


@pytest.mark.parametrize("design", DESIGNS)
async def test_values_of_a_generator_add_up(design: Design) -> None:
    async def measure() -> AsyncIterator[dict[str, int]]:
        """Measure."""
        yield {"a": 1}
        yield {"b": 2}

    scene = Scene(with_crib(design, crib([measure])), ScriptedModel(ask(("measure", {})), say("done")))

    events = await scene.send()

    assert [it.delta for it in events if type(it).__name__ == "ToolResultTextDeltaEvent"] == ['{"a": 1}', '{"b": 2}']
    assert scene.texts() == ['{"a": 1}{"b": 2}']
    assert scene.results()[0].metadata == {"value": [{"a": 1}, {"b": 2}]}


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("values", [[[]], [1, [1]], [1, [1, 2]]])
async def test_a_list_that_replaces_its_item_is_the_result(design: Design, values: list[Any]) -> None:
    async def collect() -> AsyncIterator[Any]:
        """Collect."""
        for value in values:
            yield value

    kit = crib()
    kit.register_tool_function(collect, chunks="replace")
    scene = Scene(with_crib(design, kit), ScriptedModel(ask(("collect", {})), say("done")))

    await scene.send()

    assert scene.texts() == [json.dumps(values[-1])]


async def test_a_result_that_was_shown_and_replaced_is_right_in_the_context() -> None:
    async def look() -> AsyncIterator[ToolResponse]:
        """Look out of the window."""
        for text in ("cl", "clouds", "sun"):
            yield ToolResponse([{"type": "text", "text": text}])

    scene = Scene(with_crib("B", crib([look])), ScriptedModel(ask(("look", {})), say("done")))

    await scene.send()

    assert scene.texts() == ["sun"]


@pytest.mark.parametrize("design", DESIGNS)
async def test_media_are_data_blocks(design: Design) -> None:
    def show() -> ToolResponse:
        """Show media."""
        return ToolResponse(
            [
                {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
                {"type": "audio", "source": {"type": "url", "url": "/tmp/a b.wav"}},
                {"type": "video", "source": {"type": "url", "url": "https://example.com/film"}},
            ]
        )

    scene = Scene(with_crib(design, crib([show])), ScriptedModel(ask(("show", {})), say("done")))

    await scene.send()

    (result,) = scene.results()
    sources = [(str(block.source.url), block.source.media_type) for block in result.output]
    assert sources[0] == ("https://example.com/a.png", "image/png")
    assert sources[1][0] == "file:///tmp/a%20b.wav"
    assert sources[1][1].startswith("audio/")
    assert sources[2] == ("https://example.com/film", "video/*")


@pytest.mark.parametrize("design", DESIGNS)
async def test_metadata_that_json_cannot_hold_does_not_break_the_state(design: Design) -> None:
    deep: Any = 1
    for _ in range(240):
        deep = [deep]

    def odd() -> ToolResponse:
        """Return odd metadata."""
        metadata = {"fine": [1, {"a": None}], "object": object(), "bad": "\ud800", "deep": deep, "nan": float("nan")}
        return ToolResponse([{"type": "text", "text": "odd"}], metadata)

    scene = Scene(with_crib(design, crib([odd])), ScriptedModel(ask(("odd", {})), say("done")))

    await scene.send()

    saved = scene.agent.state.model_dump_json()
    (result,) = scene.results()
    assert result.metadata["fine"] == [1, {"a": None}]
    assert "object" not in result.metadata
    assert json.loads(saved)


async def test_secrets_in_exceptions_stay_hidden() -> None:
    async def login(user: str, key: str) -> str:
        """Log in."""
        raise ValueError(f"{key} is wrong for {user}")

    kit = crib()
    kit.register_tool_function(login, preset_kwargs={"key": "hunter2"})
    scene = Scene(with_crib("B", kit), ScriptedModel(ask(("login", {"user": "ann"})), say("done")))

    await scene.send()

    assert scene.states() == ["error"]
    assert "hunter2" not in scene.texts()[0]


@pytest.mark.parametrize("design", DESIGNS)
async def test_progress_is_no_part_of_the_result(design: Design) -> None:
    async def work() -> AsyncIterator[Any]:
        """Work."""
        yield ToolResponse([{"type": "text", "text": "half"}], mode="progress")
        yield "done"

    scene = Scene(with_crib(design, crib([work])), ScriptedModel(ask(("work", {})), say("ok")))

    await scene.send()

    assert scene.texts() == ["done"]
