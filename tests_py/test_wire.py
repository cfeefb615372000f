"""Calls in the formats of every provider, and results given back to them."""

import copy
import json
import pickle
import types
from collections.abc import Mapping
from typing import Any

import pytest

from support.streams import read, texts, toolkit
from toolcrib import ToolCall, Toolkit, ToolResponse

ARGUMENTS = {"city": "Bern", "days": 3}
TEXT = json.dumps(ARGUMENTS)

CALLS: dict[str, Any] = {
    "anthropic": {"type": "tool_use", "id": "c1", "name": "weather", "input": ARGUMENTS},
    "openai": {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": TEXT}},
    "openai_responses": {"type": "function_call", "id": "f", "call_id": "c1", "name": "weather", "arguments": TEXT},
    "gemini": {"functionCall": {"id": "c1", "name": "weather", "args": ARGUMENTS}},
    "bedrock": {"toolUse": {"toolUseId": "c1", "name": "weather", "input": ARGUMENTS}},
    "mcp": {
        "jsonrpc": "2.0",
        "id": "c1",
        "method": "tools/call",
        "params": {"name": "weather", "arguments": ARGUMENTS},
    },
    "bare": {"id": "c1", "name": "weather", "arguments": ARGUMENTS},
}

each_format = pytest.mark.parametrize("format", CALLS)


def weather(city: str, days: int = 1) -> str:
    return f"{city} {days}"


class Model:
    """An object of a library that dumps itself, as pydantic's models do."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)

    def model_dump(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in vars(self)}


def with_attributes(value: Any) -> Any:
    if isinstance(value, dict) and value and value is not ARGUMENTS:
        return types.SimpleNamespace(**{key: with_attributes(entry) for key, entry in value.items()})
    return value


@each_format
def test_every_format_is_read(format: str) -> None:
    call = ToolCall.read(CALLS[format])

    assert (call.id, call.name, call.arguments, call.format) == ("c1", "weather", ARGUMENTS, format)
    assert (call.error, call.repairs, call.is_truncated, call.has_duplicate_keys) == (None, [], False, False)
    assert ToolCall.read(CALLS[format], format=format) == call


@each_format
@pytest.mark.parametrize("form", [dict, types.MappingProxyType, json.dumps, Model, with_attributes, ToolCall.read])
async def test_a_toolkit_takes_every_format_in_every_form(format: str, form: Any) -> None:
    call = form(CALLS[format])

    assert await texts(toolkit(weather).call_tool_function(call)) == ["Bern 3"]


@each_format
async def test_middlewares_are_shown_a_block(format: str) -> None:
    kit, seen = toolkit(weather), list[Any]()

    async def look(kwargs: dict[str, Any], next_handler: Any) -> Any:
        call = kwargs["tool_call"]
        seen.append((call["name"], call["input"], call["id"], isinstance(call, Mapping)))
        async for response in await next_handler(**kwargs):
            yield response

    kit.register_middleware(look)

    assert await texts(kit.call_tool_function(CALLS[format])) == ["Bern 3"]
    assert seen == [("weather", ARGUMENTS, "c1", True)]


@each_format
async def test_postprocess_functions_are_shown_a_block(format: str) -> None:
    seen = []
    kit = Toolkit(run_in="inline")
    kit.register_tool_function(weather, postprocess_func=lambda block, _: seen.append(block))

    await read(kit.call_tool_function(CALLS[format]))

    assert seen == [{"type": "tool_use", "id": "c1", "name": "weather", "input": ARGUMENTS}]


async def test_a_call_is_not_doubted_less_behind_a_middleware() -> None:
    kit = toolkit(weather)

    async def pass_on(kwargs: dict[str, Any], next_handler: Any) -> Any:
        async for response in await next_handler(**kwargs):
            yield response

    kit.register_middleware(pass_on)
    broken = {"function": {"name": "weather", "arguments": '{"city": "Be'}}

    [response] = await read(kit.call_tool_function(broken))

    assert response.code == "bad_call"


def test_all_calls_of_a_message_are_read() -> None:
    message = {"role": "assistant", "content": "on my way", "tool_calls": [CALLS["openai"], CALLS["openai"]]}
    answer = Model({"choices": [Model({"message": Model(message)})]})
    blocks = [{"type": "text", "text": "hm"}, CALLS["anthropic"], {"type": "thinking", "thinking": "…"}]

    assert [call.name for call in ToolCall.read_all(message)] == ["weather", "weather"]
    assert [call.name for call in ToolCall.read_all(answer)] == ["weather", "weather"]
    assert [call.format for call in ToolCall.read_all(blocks)] == ["anthropic"]
    assert ToolCall.read_all(json.dumps(blocks)) == ToolCall.read_all(blocks)
    assert ToolCall.read_all({"role": "user", "content": "hello"}) == []


XML = "<tool_call><name>post</name><params><zip>02134</zip></params></tool_call>"
WRITTEN = [
    XML,
    "<function=post><parameter=zip>02134</parameter></function>",
    '<invoke name="post"><parameter name="zip">02134</parameter></invoke>',
]


def post(zip: str) -> str:
    return zip


@pytest.mark.parametrize("text", WRITTEN)
async def test_a_call_that_was_read_without_its_tool_runs_with_what_the_text_says(text: str) -> None:
    kit = toolkit(post)
    guessed = ToolCall.read(text)

    assert await texts(kit.call_tool_function(guessed)) == ["02134"]
    assert await texts(kit.call_tool_function(pickle.loads(pickle.dumps(guessed)))) == ["02134"]
    assert ToolCall.read(text, tools=kit).arguments == ToolCall.read(guessed, tools=kit).arguments == {"zip": "02134"}
    assert [call.arguments for call in ToolCall.read_all(text, tools=kit)] == [{"zip": "02134"}]


async def test_middlewares_are_shown_what_the_text_says() -> None:
    kit, seen = toolkit(post), list[Any]()

    async def look(kwargs: dict[str, Any], next_handler: Any) -> Any:
        seen.append(kwargs["tool_call"]["input"])
        async for response in await next_handler(**kwargs):
            yield response

    kit.register_middleware(look)

    assert await texts(kit.call_tool_function(ToolCall.read(XML))) == ["02134"]
    assert seen == [{"zip": "02134"}]


async def test_a_changed_call_is_not_parsed_again() -> None:
    guessed = ToolCall.read(XML)
    changed = ToolCall(guessed.name, {"zip": "3000"}, raw=guessed.raw, format=guessed.format)

    assert await texts(toolkit(post).call_tool_function(changed)) == ["3000"]


def test_tools_are_a_toolkit_or_a_view() -> None:
    with pytest.raises(TypeError, match="tools must be a Toolkit"):
        ToolCall.read(XML, tools=[post])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="tools must be a Toolkit"):
        ToolCall.read_all(XML, tools=[post])  # type: ignore[arg-type]


async def test_calls_in_the_text_of_a_message_are_read() -> None:
    message = {"role": "assistant", "content": f"On my way. {XML}"}
    kit = toolkit(post)

    assert [call.arguments for call in ToolCall.read_all(message, tools=kit)] == [{"zip": "02134"}]
    assert [call.name for call in ToolCall.read_all({"choices": [{"message": message}]})] == ["post"]
    assert ToolCall.read(message).name == "post"
    assert await texts(kit.call_tool_function(message)) == ["02134"]


def test_text_beside_calls_and_text_of_other_roles_is_not_a_call() -> None:
    native = {"role": "assistant", "content": f"Not {XML}", "tool_calls": [CALLS["openai"]]}

    assert [call.name for call in ToolCall.read_all(native)] == ["weather"]
    assert ToolCall.read_all({"role": "user", "content": XML}) == []
    assert ToolCall.read_all({"role": "tool", "content": XML}) == []


@pytest.mark.parametrize("prose", ["Hello, I am done.", "", " \n", "a < b [1]", "7"])
@pytest.mark.parametrize("format", [None, "xml", "openai"])
def test_there_are_no_calls_in_prose(prose: str, format: str | None) -> None:
    error = ToolCall.read(prose, format=format).error

    assert ToolCall.read_all(prose, format=format) == []
    assert error is not None
    assert "JSON" not in error.split(". ")[0]


@pytest.mark.parametrize(
    "answer",
    [
        {"role": "assistant", "content": [CALLS["anthropic"]], "stop_reason": "max_tokens"},
        {"choices": [{"finish_reason": "length", "message": {"tool_calls": [CALLS["openai"]]}}]},
        {"candidates": [{"finishReason": "MAX_TOKENS", "content": {"parts": [CALLS["gemini"]]}}]},
        {"output": [{**CALLS["openai_responses"], "status": "incomplete"}]},
    ],
)
async def test_a_call_that_there_was_no_room_for_does_not_run(answer: dict[str, Any]) -> None:
    [call] = ToolCall.read_all(answer)
    reader = Toolkit(run_in="inline")
    reader.register_tool_function(weather, kind="read")

    [response] = await read(toolkit(weather).call_tool_function(call))

    assert call.is_truncated
    assert (response.code, "incomplete" in response.text) == ("bad_call", True)
    assert await texts(reader.call_tool_function(call)) == ["Bern 3"]


@pytest.mark.parametrize("unreadable", [{}, {"a": 1}, "hello", {"name": "f", "args": {}, "input": {}}, {"name": {}}])
async def test_an_invalid_call_is_answered_and_never_runs(unreadable: Any) -> None:
    call = ToolCall.read(unreadable)
    [response] = await read(toolkit(weather).call_tool_function(call))

    assert call.error is not None
    assert response.code == "bad_call"
    assert call.error in response.text


@pytest.mark.parametrize("wrong", [None, 7, 1.5, b"{}", object(), {"a"}])
def test_what_can_be_no_call_is_the_developers_error(wrong: Any) -> None:
    with pytest.raises(TypeError, match="a tool call is"):
        ToolCall.read(wrong)
    with pytest.raises(TypeError, match="a tool call is"):
        ToolCall.read_all(wrong)
    with pytest.raises(TypeError, match="a tool call is"):
        toolkit(weather).call_tool_function(wrong)


def test_an_unknown_format_is_the_developers_error() -> None:
    with pytest.raises(ValueError, match=r"format must be one of .*anthropic.*, not 'morse'"):
        ToolCall.read({}, format="morse")


def test_a_call_made_by_hand_is_like_one_that_was_read() -> None:
    made = ToolCall("weather", ARGUMENTS, "c1", format="gemini")

    assert made == ToolCall.read(CALLS["gemini"])
    assert made != ToolCall("weather", ARGUMENTS, "c2", format="gemini")
    assert made != "weather"
    assert repr(made) == "ToolCall('weather', {'city': 'Bern', 'days': 3}, id='c1', format='gemini')"
    with pytest.raises(TypeError):
        ToolCall("weather", [1])  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        ToolCall("weather", {"a": object()})
    with pytest.raises(TypeError):
        hash(made)


def test_a_call_is_the_mapping_that_its_block_is() -> None:
    call = ToolCall.read(CALLS["openai"])

    block = {"type": "tool_use", "id": "c1", "name": "weather", "input": ARGUMENTS}
    assert dict(call) == call.to_block() == block
    assert (len(call), list(call), "name" in call, 7 in call, "x" in call) == (4, list(block), True, False, False)
    assert (call.get("name"), call.get("x"), call.get("x", 1)) == ("weather", None, 1)
    assert dict(call.items()) == dict(zip(call.keys(), call.values(), strict=True)) == block
    with pytest.raises(KeyError):
        call["x"]


def test_the_arguments_of_a_call_cannot_be_changed_from_outside() -> None:
    call = ToolCall.read(CALLS["bare"])

    call.arguments["city"] = "Basel"
    call.to_block()["input"]["city"] = "Basel"

    assert call.arguments == ARGUMENTS
    with pytest.raises(AttributeError):
        call.name = "x"  # type: ignore[misc]


@pytest.mark.parametrize(
    "source",
    [CALLS["openai"], {"function": {"name": "f", "arguments": "{'a': 1"}}, {"name": "f", "arguments": "nonsense"}, {}],
)
def test_calls_can_be_copied_and_pickled(source: Any) -> None:
    call = ToolCall.read(source)

    assert pickle.loads(pickle.dumps(call)) == copy.deepcopy(call) == copy.copy(call) == call


async def test_a_result_goes_back_to_its_call() -> None:
    call = ToolCall.read(CALLS["openai"])
    [response] = await read(toolkit(weather).call_tool_function(call))

    assert response.to_openai(call) == {"role": "tool", "tool_call_id": "c1", "content": "Bern 3"}
    assert response.to_openai("c9")["tool_call_id"] == "c9"
    assert response.to_openai(CALLS["openai"]) == response.to_openai(Model(CALLS["openai"])) == response.to_openai(call)
    assert response.to_openai_responses(CALLS["openai_responses"]) == {
        "type": "function_call_output",
        "call_id": "c1",
        "output": "Bern 3",
    }
    assert response.to_anthropic(CALLS["anthropic"]) == {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": [{"type": "text", "text": "Bern 3"}],
        "is_error": False,
    }
    assert response.to_gemini(CALLS["gemini"]) == {
        "functionResponse": {"id": "c1", "name": "weather", "response": {"output": "Bern 3"}}
    }
    assert response.to_gemini(name="weather") == {
        "functionResponse": {"name": "weather", "response": {"output": "Bern 3"}}
    }
    assert response.to_mcp() == {"content": [{"type": "text", "text": "Bern 3"}], "isError": False}
    with pytest.raises(TypeError, match="call must be a tool call or its id"):
        response.to_openai(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["to_openai", "to_openai_responses", "to_anthropic", "to_gemini", "to_xml"])
def test_a_result_that_cannot_be_matched_with_a_call_is_the_developers_error(method: str) -> None:
    give = getattr(ToolResponse("plain"), method)  # type: ignore[arg-type]

    with pytest.raises(TypeError, match=rf"{method} needs .*call"):
        give()


@pytest.mark.parametrize("method", ["to_openai", "to_openai_responses", "to_anthropic"])
def test_a_call_without_an_id_cannot_be_answered_by_id(method: str) -> None:
    give = getattr(ToolResponse("plain"), method)  # type: ignore[arg-type]

    with pytest.raises(ValueError, match=f"{method} needs the id"):
        give(ToolCall("weather"))


async def test_a_value_goes_back_as_what_it_is() -> None:
    def count() -> dict[str, int]:
        return {"n": 2}

    [response] = await read(toolkit(count).call_tool_function({"name": "count"}))

    assert response.to_mcp()["structuredContent"] == {"n": 2}
    assert response.to_gemini(name="count")["functionResponse"]["response"] == {"output": {"n": 2}}


def purge(pattern: str = "*") -> str:
    return f"deleted {pattern}"


FIRST_PIECE = {"index": 0, "id": "c", "type": "function", "function": {"name": "purge", "arguments": ""}}

NOT_TO_RUN: dict[str, Any] = {
    "chunk": {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"tool_calls": [FIRST_PIECE]}}]},
    "first piece": FIRST_PIECE,
    "gemini": {
        "functionCall": {"name": "purge", "id": "c", "willContinue": True, "partialArgs": [{"stringValue": "*"}]}
    },
    "gemini alone": {"name": "purge", "args": None, "id": "c", "will_continue": True, "partial_args": None},
    "responses": {"type": "function_call", "call_id": "c", "name": "purge", "arguments": "", "status": "in_progress"},
    "custom": {"type": "custom_tool_call", "call_id": "c", "name": "purge", "input": "", "status": "in_progress"},
    "event": {"type": "response.function_call_arguments.done", "item_id": "i", "name": "purge", "arguments": "{}"},
    "anthropic": {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "tool_use", "id": "c", "name": "purge", "input": {}},
    },
    "server_tool_use": {"type": "server_tool_use", "id": "c", "name": "purge", "input": {}},
    "server_tool_use, other order": {"name": "purge", "input": {}, "type": "server_tool_use", "id": "c"},
    "mcp_tool_use": {"type": "mcp_tool_use", "id": "c", "name": "purge", "input": {}, "server_name": "s"},
    "langchain": {"type": "tool_call_chunk", "id": "c", "name": "purge", "args": "", "index": 0},
}


@pytest.mark.parametrize(
    "form", [lambda call: call, json.dumps, Model, with_attributes], ids=lambda form: form.__name__
)
@pytest.mark.parametrize("kind", NOT_TO_RUN)
async def test_a_piece_or_a_call_that_the_provider_runs_never_runs(kind: str, form: Any) -> None:
    ran: list[str] = []

    def purge(pattern: str = "*") -> str:
        ran.append(pattern)
        return pattern

    kit = toolkit(purge)

    [response] = await read(kit.call_tool_function(form(NOT_TO_RUN[kind])))

    assert (response.code, ran) == ("bad_call", [])
    if form is not json.dumps:  # whose other keys may be the reason
        assert "a piece of a streamed call" in response.text or "the provider runs this call itself" in response.text


ITEM = {"type": "function_call", "call_id": "c", "name": "purge", "arguments": "{}"}
BLOCK = {"type": "tool_use", "id": "c", "name": "purge", "input": {}}
START = {"toolUseId": "c", "name": "purge"}
PIECE, PROVIDER = "a piece of a streamed call", "the provider runs this call itself"

REFUSED: dict[str, tuple[str, Any]] = {
    "start of Converse": (PIECE, {"start": {"toolUse": START}, "contentBlockIndex": 0}),
    "block of the start": (PIECE, {"toolUse": START}),
    "call of the start": (PIECE, START),
    "response in progress": (PIECE, {"object": "response", "status": "in_progress", "output": [ITEM]}),
    "response that failed": ("failed or was cancelled", {"object": "response", "status": "failed", "output": [ITEM]}),
    "chunk of langchain": (
        PIECE,
        {
            "type": "AIMessageChunk",
            "content": "",
            "tool_calls": [{"type": "tool_call", "name": "purge", "args": {}, "id": "c"}],
            "tool_call_chunks": [{"type": "tool_call_chunk", "name": "purge", "args": "", "id": "c", "index": 0}],
        },
    ),
    "willContinue as text": (PIECE, {"functionCall": {"name": "purge", "willContinue": "true"}}),
    "snapshot": (PIECE, {"type": "message", "role": "assistant", "stop_reason": None, "content": [BLOCK]}),
    "approval": ("asks for the approval", {**ITEM, "type": "mcp_approval_request", "server_label": "s"}),
    "mcp_server_tool_call": (PROVIDER, {**ITEM, "type": "mcp_server_tool_call", "arguments": {}}),
    "agent.mcp_tool_use": (PROVIDER, {**BLOCK, "type": "agent.mcp_tool_use"}),
    "agent.tool_use": (PROVIDER, {**BLOCK, "type": "agent.tool_use"}),
    "answered": (PROVIDER, {**ITEM, "output": "done"}),
    "unknown type": ("not a tool call", {**BLOCK, "type": "some_later_server_use"}),
    "unknown type, other order": ("not a tool call", {"name": "purge", "input": {}, "type": "some_later_server_use"}),
    "type that is not text": ("not a tool call", {**BLOCK, "type": 7}),
    "client search": ("built-in tool", {"type": "tool_search_call", "execution": "client", "call_id": "c"}),
}


@pytest.mark.parametrize("form", [lambda call: call, json.dumps, Model], ids=lambda form: form.__name__)
@pytest.mark.parametrize("kind", REFUSED)
async def test_a_call_that_is_not_for_the_program_is_refused_with_the_reason(kind: str, form: Any) -> None:
    reason, call = REFUSED[kind]
    ran: list[str] = []

    def purge(pattern: str = "*") -> str:
        ran.append(pattern)
        return pattern

    [response] = await read(toolkit(purge).call_tool_function(form(call)))

    assert (response.code, ran) == ("bad_call", [])
    assert reason in response.text


class ChoiceDeltaToolCall(Model):
    """A piece of a call, as libraries name their classes; nothing in it says that it is not whole."""


async def test_the_class_of_a_piece_tells_it_from_a_whole_call() -> None:
    fields = {"index": 0, "id": "c", "type": "function", "function": {"name": "purge", "arguments": "{}"}}
    kit = toolkit(purge)

    assert await texts(kit.call_tool_function(Model(fields))) == ["deleted *"]
    [response] = await read(kit.call_tool_function(ChoiceDeltaToolCall(fields)))
    [call] = ToolCall.read_all([ChoiceDeltaToolCall(fields)])

    assert response.code == "bad_call"
    assert call.error is not None
    assert "a piece of a streamed call" in call.error


def test_calls_that_the_provider_ran_are_not_among_those_of_a_message() -> None:
    message = {
        "role": "assistant",
        "type": "message",
        "content": [
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
            {"type": "tool_use", "id": "c", "name": "weather", "input": {"city": "Bern"}},
        ],
    }

    assert [call.id for call in ToolCall.read_all(message)] == ["c"]


async def test_a_result_goes_back_to_bedrock_with_the_bytes_of_an_image() -> None:
    png: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    response = ToolResponse([{"type": "text", "text": "seen"}, png])

    assert response.to_bedrock(CALLS["bedrock"]) == {
        "toolResult": {
            "toolUseId": "c1",
            "content": [{"text": "seen"}, {"image": {"format": "png", "source": {"bytes": b"hi"}}}],
            "status": "success",
        }
    }
    [failed] = await read(toolkit(weather).call_tool_function({"name": "weather", "arguments": {}}))
    assert failed.to_bedrock("c1")["toolResult"]["status"] == "error"


def test_bedrock_is_given_tool_specifications() -> None:
    [tool] = toolkit(weather).schemas("bedrock")

    assert tool["toolSpec"]["name"] == "weather"
    assert tool["toolSpec"]["inputSchema"]["json"]["required"] == ["city"]


@pytest.mark.parametrize("value", ["a\ud800b", ["\udc00", {"k\ud8ff": "v\ud800"}], {"x": "\ud83d\ude00 \ud83d"}])
async def test_a_result_with_lone_surrogates_can_be_sent(value: Any) -> None:
    def odd() -> Any:
        return value

    [response] = await read(toolkit(odd).call_tool_function({"id": "c", "name": "odd", "input": {}}))

    for message in [
        response.to_openai("c"),
        response.to_openai_responses("c"),
        response.to_anthropic("c"),
        response.to_gemini("c", name="odd"),
        response.to_bedrock("c"),
        response.to_mcp(),
    ]:
        sent = json.dumps(message, ensure_ascii=False).encode()
        assert "\ufffd".encode() in sent


async def test_an_answer_to_a_call_with_lone_surrogates_can_be_sent() -> None:
    kit = toolkit(weather)
    for call in [
        {"id": "c", "name": "we\ud800ather", "input": {}},
        {"id": "c", "name": "weather", "input": {"ci\ud800ty": "x"}},
        {"id": "c", "name": "weather", "input": {"city": 3, "days": "\ud800"}},
    ]:
        [response] = await read(kit.call_tool_function(call))

        assert not response.ok
        json.dumps(response.to_openai("c"), ensure_ascii=False).encode()


async def test_an_error_goes_back_as_one() -> None:
    [response] = await read(toolkit(weather).call_tool_function({"name": "nobody"}))

    assert response.to_anthropic("c1")["is_error"] is True
    assert response.to_mcp()["isError"] is True
    assert "Cannot find" in response.to_gemini(name="nobody")["functionResponse"]["response"]["error"]


def test_content_that_is_not_json_is_converted_to_text() -> None:
    response = ToolResponse(["a", {"type": "text", "text": "b"}, {1}])  # type: ignore[list-item]

    assert response.to_openai("c1")["content"] == "a\nb\n{1}"
    assert ToolResponse("plain").to_openai("c1")["content"] == "plain"  # type: ignore[arg-type]
