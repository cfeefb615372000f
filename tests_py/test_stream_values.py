"""Values that a tool may return or yield: the stream only ever carries responses, and at least one."""

import array
import collections
import dataclasses
import datetime
import enum
import json
import logging
import math
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import PurePosixPath
from typing import Any, ClassVar

import attrs
import msgspec
import pydantic
import pytest

from support.loops import LoopFactory
from support.streams import block, read, texts, toolkit
from toolcrib import Toolkit, ToolResponse


@dataclasses.dataclass
class ForeignResponse:
    """The response of another library, with the six fields that make one."""

    content: list[dict[str, Any]]
    metadata: dict[str, Any] | None = None
    stream: bool = False
    is_last: bool = True
    is_interrupted: bool = False
    id: str = "theirs"


class Special(ToolResponse):
    pass


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Model(pydantic.BaseModel):
    name: str
    at: tuple[int, int]


@dataclasses.dataclass
class Sized:
    kind: ClassVar[str] = "sized"
    x: int
    size: int = dataclasses.field(init=False, default=2)


@attrs.define
class Part:
    code: str
    _count: int = 1


class Mail(msgspec.Struct):
    to: str


class Scalar:
    """A number as numpy has it."""

    def __init__(self, number: float) -> None:
        self.number = number

    def tolist(self) -> float:
        return self.number


class Table:
    """An object that is written in several lines."""

    def __str__(self) -> str:
        return "   a\n0  1"


class Mute:
    def __str__(self) -> str:
        raise ValueError("nothing to say")

    __repr__ = __str__


def cyclic() -> list[Any]:
    items: list[Any] = [1]
    items.append(items)
    return items


def deep(levels: int) -> list[Any]:
    items: list[Any] = []
    for _ in range(levels):
        items = [items]
    return items


def give(value: Any, kind: str) -> Callable[[], Any]:
    """A tool that gives a value in one of four ways."""

    def function() -> Any:
        return value

    async def coroutine() -> Any:
        return value

    def generator() -> Iterator[Any]:
        yield value

    async def async_generator() -> AsyncIterator[Any]:
        yield value

    tools: dict[str, Callable[[], Any]] = {
        "function": function,
        "coroutine": coroutine,
        "generator": generator,
        "async_generator": async_generator,
    }
    return tools[kind]


async def given(kit: Toolkit, kind: str) -> ToolResponse:
    """The one response of a tool, or the one chunk of a generator, which the whole result follows."""
    responses = await read(kit.call_tool_function(block("tool")))
    is_stream = kind.endswith("generator")
    assert [response.is_last for response in responses] == ([False, True] if is_stream else [True])
    return responses[0]


EVERY_KIND = pytest.mark.parametrize("kind", ["function", "coroutine", "generator", "async_generator"])

JSON_VALUES = {
    "none": (None, "null"),
    "true": (True, "true"),
    "integer": (7, "7"),
    "negative": (-7, "-7"),
    "large integer": (2**70, str(2**70)),
    "float": (1.5, "1.5"),
    "dict": ({"a": [1, None, "x"]}, '{"a": [1, null, "x"]}'),
    "list": ([1, "two", 3.0], '[1, "two", 3.0]'),
    "tuple": ((1, 2), "[1, 2]"),
    "empty list": ([], "[]"),
    "text in every script": (["grüße", "道具", "🔧"], '["grüße", "道具", "🔧"]'),
    "date": (datetime.date(2024, 2, 29), '"2024-02-29"'),
    "time stamp": (datetime.datetime(2024, 2, 29, 12), '"2024-02-29T12:00:00"'),
    "enumeration": (Colour.RED, '"red"'),
    "dataclass": (Point(1, 2), '{"x": 1, "y": 2}'),
    "model": (Model(name="m", at=(1, 2)), '{"name": "m", "at": [1, 2]}'),
    "set": ({1}, "[1]"),
    "ordered dict": (collections.OrderedDict(a=1), '{"a": 1}'),
    "exception": (ValueError("kept"), '"kept"'),
    "path": (PurePosixPath("/a"), '"/a"'),
    "dataclass with a class variable": (Sized(1), '{"x": 1, "size": 2}'),
    "attrs class": (Part("p"), '{"code": "p", "_count": 1}'),
    "msgspec struct": (Mail("ann"), '{"to": "ann"}'),
    "array": (array.array("d", [1.5, 2]), "[1.5, 2.0]"),
    "number of a library": (Scalar(7), "7"),
    "numbers of a library": ([Scalar(7), {"a": Scalar(0.5)}], '[7, {"a": 0.5}]'),
    "bytes inside": ([b"abc", bytearray(b"\xff")], '["abc", "\ufffd"]'),
}


@EVERY_KIND
@pytest.mark.parametrize("name", JSON_VALUES)
async def test_a_value_becomes_json_text_and_is_kept(name: str, kind: str) -> None:
    value, text = JSON_VALUES[name]
    kit = toolkit(give(value, kind), func_name="tool")

    response = await given(kit, kind)

    assert response.content == [{"type": "text", "text": text}]
    assert response.metadata is not None
    assert response.metadata["value"] is value
    assert (response.ok, response.code) == (True, None)


@pytest.mark.parametrize(
    ("value", "text"), [(b"abc\n", "abc\n"), (bytearray(b"\xc3\xa9\xff"), "é\ufffd"), (Table(), "   a\n0  1")]
)
async def test_bytes_and_tables_are_text(value: Any, text: str) -> None:
    kit = toolkit(give(value, "function"), func_name="tool")

    response = await given(kit, "function")

    assert response.text == text
    assert response.metadata == {"value": value}


@EVERY_KIND
@pytest.mark.parametrize("run_in", ["inline", "thread"])
async def test_text_stays_text(kind: str, run_in: str, loop_factory: LoopFactory) -> None:
    kit = toolkit(give('say "hi"', kind), func_name="tool", run_in=run_in)

    response = await given(kit, kind)

    assert response.content == [{"type": "text", "text": 'say "hi"'}]
    assert response.metadata is None


@pytest.mark.parametrize("kind", ["function", "coroutine"])
async def test_a_response_is_passed_on_as_it_is(kind: str) -> None:
    for original in (ToolResponse([]), Special([{"type": "text", "text": "x"}], stream=True, is_last=False)):
        kit = toolkit(give(original, kind), func_name="tool")

        [response] = await read(kit.call_tool_function(block("tool")))

        assert response is original


@pytest.mark.parametrize("kind", ["generator", "async_generator"])
async def test_a_response_that_is_yielded_is_not_changed(kind: str) -> None:
    for original in (ToolResponse([]), Special([{"type": "text", "text": "x"}], code="failed")):
        kit = toolkit(give(original, kind), func_name="tool")

        response = await given(kit, kind)

        assert type(response) is type(original)
        assert (response.content, response.id, response.code) == (original.content, original.id, original.code)
        assert (original.stream, original.is_last) == (False, True)


@pytest.mark.parametrize("kind", ["function", "coroutine"])
async def test_the_response_of_another_library_is_converted(kind: str) -> None:
    foreign = ForeignResponse([{"type": "text", "text": "theirs"}], {"k": 1}, stream=True, is_last=False)
    kit = toolkit(give(foreign, kind), func_name="tool")

    [response] = await read(kit.call_tool_function(block("tool")))

    assert type(response) is ToolResponse
    assert response == foreign
    assert response.code is None
    assert foreign.content == [{"type": "text", "text": "theirs"}]


@pytest.mark.parametrize("kind", ["generator", "async_generator"])
async def test_the_response_of_another_library_is_a_chunk(kind: str) -> None:
    foreign = ForeignResponse([{"type": "text", "text": "theirs"}], {"k": 1})
    kit = toolkit(give(foreign, kind), func_name="tool")

    response = await given(kit, kind)

    assert type(response) is ToolResponse
    assert (response.content, response.metadata, response.mode) == (foreign.content, {"k": 1}, "result")
    assert foreign.is_last


AWKWARD = {
    "not a number": math.nan,
    "infinity": math.inf,
    "bytes": b"\xff\x00",
    "mute": Mute(),
    "list of mutes": [Mute()],
    "cycle": cyclic(),
    "depth 1000": deep(1000),
    "huge integer": 10**5000,
    "lone surrogate": ["\ud800"],
    "lone surrogate text": "\ud800",
    "mixed keys": {1: 1, None: 2, (1, 2): 3, "x": 4},
    "object": object(),
    "class": int,
    "function": len,
    "exception class": KeyError,
    "async generator class": type(give(1, "async_generator")()),
}


@EVERY_KIND
@pytest.mark.parametrize("name", AWKWARD)
async def test_no_value_is_too_awkward_for_a_response(name: str, kind: str) -> None:
    value = AWKWARD[name]
    kit = toolkit(give(value, kind), func_name="tool")

    response = await given(kit, kind)

    assert type(response) is ToolResponse
    assert isinstance(response.text, str)
    if not isinstance(value, str):
        assert response.metadata is not None
        assert response.metadata["value"] is value


async def test_the_text_of_a_number_that_json_lacks_is_still_json() -> None:
    kit = toolkit(give([math.nan, 1], "function"), func_name="tool")

    [response] = await read(kit.call_tool_function(block("tool")))

    assert json.loads(response.text, parse_constant=pytest.fail)[1] == 1


@pytest.mark.parametrize("run_in", ["inline", "thread"])
async def test_a_generator_that_gives_nothing_is_one_empty_response(run_in: str, loop_factory: LoopFactory) -> None:
    def generator() -> Iterator[str]:
        yield from ()

    async def async_generator() -> AsyncIterator[str]:
        nothings: list[str] = []
        for nothing in nothings:
            yield nothing

    async def coroutine() -> Any:
        return generator()

    for tool in (generator, async_generator, coroutine):
        kit = toolkit(tool, run_in=run_in, func_name="tool")

        [response] = await read(kit.call_tool_function(block("tool")))

        assert (response.content, response.is_last, response.ok) == ([], True, True)
        assert (await kit.call("tool")).content == []


async def test_a_generator_may_yield_values_of_many_kinds() -> None:
    def generator() -> Iterator[Any]:
        yield from ("text", 1, None, ToolResponse([]), ForeignResponse([]), Point(1, 2))

    responses = await read(toolkit(generator).call_tool_function(block("generator")))

    assert all(type(response) is ToolResponse for response in responses)
    assert [response.text for response in responses] == [
        "text",
        "1",
        "null",
        "",
        "",
        '{"x": 1, "y": 2}',
        '{"x": 1, "y": 2}',
    ]


async def test_the_value_that_a_generator_returns_is_not_a_chunk() -> None:
    def generator() -> Any:
        yield "chunk"
        return "result"

    assert await texts(toolkit(generator).call_tool_function(block("generator"))) == ["chunk", "chunk"]


async def test_a_chunk_that_cannot_be_read_is_an_error_and_ends_the_generator() -> None:
    log = []

    class Hostile:
        def __getattr__(self, name: str) -> Any:
            raise ZeroDivisionError(name)

    async def generator() -> AsyncIterator[Any]:
        try:
            yield "first"
            yield Hostile()
            log.append("went on")
        finally:
            log.append("finalised")

    responses = await read(toolkit(generator).call_tool_function(block("generator")))

    assert [response.code for response in responses] == [None, "failed"]
    assert log == ["finalised"]


class Half(str):
    """Text that is not exactly a `str`."""


UNENCODABLE: dict[str, tuple[Any, str]] = {
    "a lone half": ("a\ud800b", "a\ufffdb"),
    "the other half": ("\udfff", "\ufffd"),
    "halves in the wrong order": ("\ude00\ud83d", "\ufffd\ufffd"),
    "two halves that belong together": ("\ud83d\ude00!", "\U0001f600!"),
    "beside other letters": ("ü€😀\ud800", "ü€😀\ufffd"),
    "in a subclass of text": (Half("x\ud800"), "x\ufffd"),
    "in a list": (["\ud800"], '["\ufffd"]'),
    "in a key": ({"\udfff": "\ud83d\ude00"}, '{"\ufffd": "\U0001f600"}'),
    "in a tuple of anything": ((Half("\ud800"), 1), '["\ufffd", 1]'),
}


@EVERY_KIND
@pytest.mark.parametrize("name", UNENCODABLE)
async def test_the_text_of_a_response_can_be_encoded(name: str, kind: str) -> None:
    value, text = UNENCODABLE[name]
    kit = toolkit(give(value, kind), func_name="tool")

    response = await given(kit, kind)

    assert response.content == [{"type": "text", "text": text}]
    assert response.text == text
    assert response.text.encode()


async def test_the_text_of_an_error_can_be_encoded(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "toolcrib")  # a log with a lone surrogate cannot be sent between processes

    def fails() -> None:
        raise ValueError("no \ud800 here")

    [response] = await read(toolkit(fails).call_tool_function(block("fails")))

    assert response.code == "failed"
    assert "no \ufffd here" in response.text
    assert json.dumps(response.content, ensure_ascii=False).encode()
