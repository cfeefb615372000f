"""Invalid requests: wrong names, wrong inputs, unknown tools. Each gets an error response, nothing raises."""

import collections
import json
import types
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from support.streams import block, read, texts, toolkit
from toolcrib import Toolkit


def show(value: Any = None) -> str:
    return repr(value)


async def test_an_unknown_tool_is_answered() -> None:
    [response] = await read(toolkit(show).call_tool_function(block("nobody")))

    assert response.text == "FunctionNotFoundError: Cannot find the function named nobody"
    assert response.code == "unknown_tool"


async def test_a_tool_whose_group_is_off_is_answered_until_it_is_on() -> None:
    kit = Toolkit(run_in="inline")
    kit.create_tool_group("off", "tools that are off")
    kit.register_tool_function(show, "off")

    [refused] = await read(kit.call_tool_function(block("show")))
    kit.update_tool_groups(["off"], active=True)
    [allowed] = await read(kit.call_tool_function(block("show")))

    assert refused.text == (
        "FunctionInactiveError: The function 'show' is in the inactive group 'off'. "
        "Activate the tool group by calling 'reset_equipped_tools' first to use this tool."
    )
    assert refused.code == "inactive_group"
    assert allowed.text == "None"


async def test_whether_a_tool_may_run_is_decided_when_it_does() -> None:
    kit = toolkit(show)
    early = await kit.call_tool_function(block("show"))
    late = await kit.call_tool_function(block("later"))

    kit.remove_tool_function("show")
    kit.register_tool_function(show, func_name="later")

    assert [response.code for response in await read(early)] == ["unknown_tool"]
    assert await texts(late) == ["None"]


@pytest.mark.parametrize("name", [None, 7, b"show", ["show"], {"a": 1}, "\ud800", object()])
async def test_a_name_that_is_not_text_is_answered(name: Any) -> None:
    [response] = await read(toolkit(show).call_tool_function(block(name)))

    assert response.code == "bad_call"


async def test_a_call_without_a_name_is_answered() -> None:
    calls: list[dict[str, Any]] = [{}, {"input": {}}, collections.OrderedDict(input={})]
    for call in calls:
        [response] = await read(toolkit(show).call_tool_function(call))

        assert response.code == "bad_call"


@pytest.mark.parametrize("name", ["", " show", "show ", "SHOW", "show\0", "s" * 1_000_000, "шоw", "show\n"])
async def test_names_are_compared_to_the_letter(name: str) -> None:
    [response] = await read(toolkit(show).call_tool_function(block(name)))

    assert response.code == "unknown_tool"


@pytest.mark.parametrize("call", [42, None, ["show"], b"", object(), 1.5, {"show"}])
def test_a_request_that_is_not_a_mapping_is_the_developers_error(call: Any) -> None:
    kit = toolkit(show)

    with pytest.raises(TypeError):
        kit.call_tool_function(call)


class Case(Mapping[str, Any]):
    """A mapping that is no dict."""

    def __init__(self, **entries: Any) -> None:
        self._entries = entries

    def __getitem__(self, key: str) -> Any:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


@pytest.mark.parametrize("mapping", [dict, Case, types.MappingProxyType, collections.UserDict])
async def test_a_call_may_be_any_mapping(mapping: Any) -> None:
    make = mapping if mapping is Case else lambda **entries: mapping(entries)
    call = make(type="tool_use", id="1", name="show", input=make(value="x"))

    assert await texts(toolkit(show).call_tool_function(call)) == ["'x'"]


@pytest.mark.parametrize("nothing", [None, {}, "", "  \n", "{}", " { } "])
async def test_a_missing_input_means_no_arguments(nothing: Any) -> None:
    kit = toolkit(show)

    assert await texts(kit.call_tool_function({"name": "show", "input": nothing})) == ["None"]
    assert await texts(kit.call_tool_function({"name": "show"})) == ["None"]


@pytest.mark.parametrize("wrong", [7, True, 1.5, ["value"], ("value",), {"value"}, b"{}", object()])
async def test_an_input_that_is_not_an_object_is_answered(wrong: Any) -> None:
    [response] = await read(toolkit(show).call_tool_function({"name": "show", "input": wrong}))

    assert response.code == "bad_call"
    assert "'show'" in response.text


async def test_an_input_may_be_json_text() -> None:
    value = {"a": [1, 2.5, True, None, "ü\U0001f527", {"b": {}}], "big": 2**70}
    kit = toolkit(show)

    got = await texts(kit.call_tool_function({"name": "show", "input": json.dumps({"value": value})}))

    assert got == [repr(value)]


@pytest.mark.parametrize(
    "wrong",
    [
        "{",
        "nonsense",
        '{"value": }',
        '{"value": 1',
        '{"value": [1}',
        '{"a": 1} {"a": 2}',
        "\0",
        "\ud800",
    ],
)
async def test_an_input_that_is_not_json_is_answered(wrong: str) -> None:
    [response] = await read(toolkit(show).call_tool_function({"name": "show", "input": wrong}))

    assert response.code == "bad_call"
    assert "JSON" in response.text


@pytest.mark.parametrize("wrong", ["{", "nonsense", '{"value": 1,}', "{'value': 1}", '{"value": NaN}', "```\n{}\n```"])
@pytest.mark.parametrize("options", [{"repair": "off"}, {"arguments": "pass"}])
async def test_an_input_that_is_not_json_is_not_repaired_when_repair_is_off(wrong: str, options: Any) -> None:
    kit = Toolkit(run_in="inline", **options)
    kit.register_tool_function(show)

    [response] = await read(kit.call_tool_function({"name": "show", "input": wrong}))

    assert response.code == "bad_call"
    assert "not valid JSON" in response.text


@pytest.mark.parametrize("wrong", ["[1]", "7", '"text"', "true", "null"])
async def test_json_text_of_something_else_than_an_object_is_answered(wrong: str) -> None:
    [response] = await read(toolkit(show).call_tool_function({"name": "show", "input": wrong}))

    assert response.code == "bad_call"


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"value":' * 100_000, '{"value":' + "[" * 100_000 + "]" * 100_000 + "}"]
)
async def test_json_text_that_is_too_deep_is_answered(text: str) -> None:
    [response] = await read(toolkit(show).call_tool_function({"name": "show", "input": text}))

    assert response.code == "bad_call"


async def test_a_number_of_any_length_is_answered_one_way_or_the_other() -> None:
    kit = toolkit(show)

    for digits in (30, 4000, 5000, 100_000):
        [response] = await read(kit.call_tool_function({"name": "show", "input": '{"value": ' + "9" * digits + "}"}))

        assert response.code in (None, "bad_call", "invalid_arguments", "failed")
    for number in ("1e400", "-1e400", "1e-400", "0.1e1"):
        [response] = await read(kit.call_tool_function({"name": "show", "input": f'{{"value": {number}}}'}))

        assert response.code in (None, "bad_call")


async def test_a_key_that_comes_twice_is_answered() -> None:
    [response] = await read(toolkit(show).call_tool_function({"name": "show", "input": '{"value": 1, "value": 2}'}))

    assert response.code == "bad_call"
    assert "same key twice" in response.text


@pytest.mark.parametrize("text", ["show", "", "please call show", "[1, 2]", "7", "{}"])
async def test_a_text_without_a_call_is_answered(text: str) -> None:
    [response] = await read(toolkit(show).call_tool_function(text))

    assert response.code == "bad_call"
    assert "Supported are" in response.text


async def test_the_block_and_its_input_are_never_changed() -> None:
    call = block("show", value=[1, {"a": 2}])
    before = json.dumps(call)

    await read(toolkit(show).call_tool_function(call))

    assert json.dumps(call) == before
