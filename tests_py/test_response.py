"""`ToolResponse`: a plain value that also compares with AgentScope's."""

import copy
import pickle
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest

from toolcrib import TextBlock, ToolResponse


def text(text: str) -> TextBlock:
    return {"type": "text", "text": text}


@dataclass
class ForeignResponse:
    """A class with the attributes of AgentScope's class of this name."""

    content: list[Any]
    metadata: dict[str, Any] | None = None
    stream: bool = False
    is_last: bool = True
    is_interrupted: bool = False
    id: str = field(default_factory=lambda: "made elsewhere")


class Tagged(ToolResponse):
    """A subclass with an attribute of its own."""

    tag: str

    def shout(self) -> str:
        return self.text.upper()


def test_only_the_content_is_needed() -> None:
    response = ToolResponse([text("hello")])

    assert response.content == [{"type": "text", "text": "hello"}]
    assert (response.metadata, response.stream, response.is_last, response.is_interrupted) == (None, False, True, False)
    assert (response.code, response.ok) == (None, True)


def test_six_fields_may_be_passed_by_position() -> None:
    content = [text("hello")]

    response = ToolResponse(content, {"n": 1}, True, False, True, "me")

    assert response.content is content
    assert (response.metadata, response.stream, response.is_last) == ({"n": 1}, True, False)
    assert (response.is_interrupted, response.id) == (True, "me")


def test_the_code_is_a_keyword() -> None:
    make: Any = ToolResponse

    with pytest.raises(TypeError, match="positional"):
        make([], None, False, True, False, "me", "failed")

    assert ToolResponse([], code="failed").code == "failed"


def test_the_content_must_be_given() -> None:
    make: Any = ToolResponse

    with pytest.raises(TypeError, match="content"):
        make()


@pytest.mark.parametrize("content", [[], "text", None, ({"type": "text"},), [object()]])
def test_the_content_is_not_looked_at(content: Any) -> None:
    assert ToolResponse(content).content is content


def test_an_id_is_the_time_and_six_digits() -> None:
    before = datetime.now().replace(microsecond=0)

    response = ToolResponse([])

    found = re.fullmatch(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.(\d{3})_([0-9a-f]{6})", response.id)
    assert found
    assert before <= datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S") <= datetime.now()


def test_an_id_stays_what_it_is() -> None:
    response = ToolResponse([])

    assert response.id == response.id


def test_no_two_responses_have_the_same_id() -> None:
    ids = {ToolResponse([]).id for _ in range(10_000)}

    assert len(ids) == 10_000


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("content", [text("new")]),
        ("metadata", {"n": 1}),
        ("metadata", None),
        ("stream", True),
        ("is_last", False),
        ("is_interrupted", True),
        ("id", "mine"),
        ("code", "failed"),
        ("code", None),
    ],
)
def test_every_field_may_be_set(field: str, value: Any) -> None:
    response = ToolResponse([text("old")], {"old": True}, code="timeout")

    setattr(response, field, value)

    assert getattr(response, field) == value


@pytest.mark.parametrize(
    ("field", "value"), [("stream", "yes"), ("is_last", None), ("code", 3), ("text", "new"), ("ok", True)]
)
def test_what_cannot_be_set_is_refused(field: str, value: Any) -> None:
    response = ToolResponse([])

    with pytest.raises((TypeError, AttributeError)):
        setattr(response, field, value)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([], ""),
        ([text("one"), text("two")], "one\ntwo"),
        ([{"type": "image", "source": {"type": "url", "url": "x"}}, text("seen")], "seen"),
        ([{"type": "thinking", "thinking": "hm"}, text("said")], "said"),
        ([{"type": "text"}, {"type": "text", "text": 3}, "loose", text("last")], "last"),
        ((text("of a tuple"),), "of a tuple"),
        ("plain", "plain"),
    ],
)
def test_the_text_is_that_of_all_text_blocks(content: Any, expected: str) -> None:
    assert ToolResponse(content).text == expected


@pytest.mark.parametrize(
    ("code", "is_interrupted", "ok"),
    [(None, False, True), (None, True, False), ("failed", False, False), ("interrupted", True, False)],
)
def test_a_response_is_ok_without_a_code_and_an_interruption(code: str | None, is_interrupted: bool, ok: bool) -> None:
    assert ToolResponse([], is_interrupted=is_interrupted, code=code).ok is ok


FIELDS = [
    ("content", [text("x")]),
    ("metadata", {}),
    ("stream", True),
    ("is_last", False),
    ("is_interrupted", True),
    ("id", "b"),
]


def test_responses_with_the_same_six_fields_are_equal() -> None:
    assert ToolResponse([text("hello")], id="a") == ToolResponse([text("hello")], id="a")
    assert ToolResponse([], id="a") == ToolResponse([], id="a", code="failed")


@pytest.mark.parametrize(("field", "value"), FIELDS)
def test_any_of_the_six_fields_makes_responses_differ(field: str, value: Any) -> None:
    one, other = ToolResponse([], id="a"), ToolResponse([], id="a")

    setattr(other, field, value)

    assert one != other
    assert not one == other  # noqa: SIM201


def test_a_response_equals_a_foreign_one_from_either_side() -> None:
    ours, theirs = ToolResponse([text("hello")], id="a"), ForeignResponse([text("hello")], id="a")

    assert ours == theirs
    assert theirs == ours
    assert not ours != theirs  # noqa: SIM202


@pytest.mark.parametrize(("field", "value"), FIELDS)
def test_a_response_differs_from_a_foreign_one_from_either_side(field: str, value: Any) -> None:
    ours, theirs = ToolResponse([], id="a"), ForeignResponse([], id="a")

    setattr(theirs, field, value)

    assert ours != theirs
    assert theirs != ours


@pytest.mark.parametrize("other", [None, 3, "text", [], object(), {"content": []}])
def test_a_response_equals_nothing_else(other: Any) -> None:
    assert (ToolResponse([]) == other) is False
    assert (other == ToolResponse([])) is False


def test_a_response_cannot_be_hashed_because_it_can_change() -> None:
    response: Any = ToolResponse([])

    with pytest.raises(TypeError, match="unhashable"):
        hash(response)


def test_a_response_shows_its_fields() -> None:
    response = ToolResponse([text("it's")], {"n": 1}, id="a")

    shown = "metadata={'n': 1}, stream=False, is_last=True, is_interrupted=False, id='a')"
    assert repr(response) == "ToolResponse(content=[{'type': 'text', 'text': \"it's\"}], " + shown
    assert repr(ToolResponse([], id="a", code="failed")).endswith(", id='a', code='failed')")


def test_what_a_response_shows_makes_the_same_one() -> None:
    response = ToolResponse([text("hello")], {"n": None}, True, False, True, code="interrupted")

    again: ToolResponse = eval(repr(response))

    assert again == response
    assert again.code == "interrupted"


def test_a_copy_is_shallow_and_a_deep_one_is_deep() -> None:
    response = ToolResponse([text("hello")], {"n": [1]}, True, False, code="failed")

    shallow, deep = copy.copy(response), copy.deepcopy(response)

    assert (shallow == response, deep == response) == (True, True)
    assert (shallow.code, deep.code) == ("failed", "failed")
    assert shallow.content is response.content
    assert deep.content is not response.content
    assert deep.content[0] is not response.content[0]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_response_survives_pickling(protocol: int) -> None:
    response = ToolResponse([text("hello")], {"n": 1}, True, False, True, code="interrupted")

    again = pickle.loads(pickle.dumps(response, protocol))

    assert type(again) is ToolResponse
    assert again == response
    assert again.code == "interrupted"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda response: pickle.loads(pickle.dumps(response))])
def test_a_copy_of_a_subclass_keeps_what_it_adds(duplicate: Any) -> None:
    response = Tagged([text("hello")], id="a", code="failed")
    response.tag = "blue"

    twin = duplicate(response)

    assert type(twin) is Tagged
    assert (twin.tag, twin.code, twin.shout(), twin == response) == ("blue", "failed", "HELLO", True)
    assert repr(twin).startswith("Tagged(content=")


def test_a_plain_response_has_no_other_attributes() -> None:
    response: Any = ToolResponse([])

    with pytest.raises(AttributeError):
        response.contents = []
