"""A schema that the developer supplies instead of having it derived."""

import copy
from typing import Any

import pytest

from toolcrib import Toolkit, errors


def search(query: str, api_key: str = "none") -> str:
    return f"{query} {api_key}"


def schema(**function: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "anything", **function}}


PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string", "title": "Query"}, "api_key": {"type": "string"}},
    "required": ["query", "api_key"],
}


def test_a_supplied_schema_is_listed_unchanged_except_for_the_name() -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(search, json_schema=schema(description="Seeks.", parameters=PARAMETERS, strict=True))

    expected = {"name": "search", "description": "Seeks.", "parameters": PARAMETERS, "strict": True}
    assert toolkit.get_json_schemas() == [{"type": "function", "function": expected}]


def test_a_schema_without_a_name_is_given_one() -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(search, json_schema={"type": "function", "function": {"parameters": PARAMETERS}})

    assert list(toolkit.get_json_schemas()[0]["function"].items()) == [("name", "search"), ("parameters", PARAMETERS)]


def test_names_and_descriptions_may_be_replaced() -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(
        search,
        func_name="find",
        func_description="Finds.",
        json_schema=schema(description="Seeks.", parameters=PARAMETERS),
    )

    function = toolkit.get_json_schemas()[0]["function"]
    assert (function["name"], function["description"]) == ("find", "Finds.")


def test_presets_are_taken_out_of_it() -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(search, preset_kwargs={"api_key": "k"}, json_schema=schema(parameters=PARAMETERS))

    parameters = toolkit.get_json_schemas()[0]["function"]["parameters"]
    assert parameters == {
        **PARAMETERS,
        "properties": {"query": PARAMETERS["properties"]["query"]},
        "required": ["query"],
    }


@pytest.mark.parametrize("required", [["api_key"], []])
def test_required_is_taken_out_when_it_is_empty(required: list[str]) -> None:
    toolkit, parameters = Toolkit(), {**PARAMETERS, "required": required}

    toolkit.register_tool_function(search, preset_kwargs={"api_key": "k"}, json_schema=schema(parameters=parameters))

    assert "required" not in toolkit.get_json_schemas()[0]["function"]["parameters"]


def test_it_is_never_changed() -> None:
    toolkit, supplied = Toolkit(), schema(description="Seeks.", parameters=copy.deepcopy(PARAMETERS))
    before = copy.deepcopy(supplied)

    strategies: list[Any] = ["raise", "override", "skip"]
    for strategy in strategies:
        toolkit.register_tool_function(
            search,
            preset_kwargs={"api_key": "k"},
            func_name="find",
            func_description="Finds.",
            json_schema=supplied,
            namesake_strategy=strategy,
        )
    toolkit.get_json_schemas()[0]["function"]["parameters"].clear()

    assert supplied == before


def test_it_may_be_changed_afterwards_without_effect() -> None:
    toolkit, supplied = Toolkit(), schema(parameters=copy.deepcopy(PARAMETERS))
    toolkit.register_tool_function(search, json_schema=supplied)

    supplied["function"]["parameters"]["properties"].clear()

    assert toolkit.get_json_schemas()[0]["function"]["parameters"] == PARAMETERS


def test_an_empty_one_means_that_it_is_derived() -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(search, json_schema={})

    assert list(toolkit.get_json_schemas()[0]["function"]["parameters"]["properties"]) == ["query", "api_key"]


@pytest.mark.parametrize(
    "malformed",
    [
        {"type": "object", "function": {"name": "search", "parameters": PARAMETERS}},
        {"function": {"name": "search", "parameters": PARAMETERS}},
        {"type": "function"},
        {"type": "function", "function": "search"},
        "function",
        [("type", "function")],
        7,
    ],
)
def test_one_that_does_not_describe_a_function_is_refused(malformed: Any) -> None:
    toolkit = Toolkit()

    with pytest.raises(errors.InvalidSchemaError, match=r"^Invalid JSON schema for the tool function\.") as caught:
        toolkit.register_tool_function(search, json_schema=malformed)

    assert isinstance(caught.value, AssertionError)
    assert isinstance(caught.value, TypeError)
    assert dict(toolkit.tools) == {}


@pytest.mark.parametrize("presets", [None, {"api_key": "k"}])
def test_one_without_parameters_is_incomplete(presets: dict[str, Any] | None) -> None:
    toolkit = Toolkit()

    with pytest.raises(errors.IncompleteSchemaError) as caught:
        toolkit.register_tool_function(search, preset_kwargs=presets, json_schema=schema())

    assert isinstance(caught.value, KeyError)
    assert isinstance(caught.value, errors.InvalidSchemaError)
    assert str(caught.value) == "invalid JSON schema of tool `search`: missing `parameters`"
    assert dict(toolkit.tools) == {}


def test_one_without_properties_is_incomplete_only_if_there_are_presets_to_hide() -> None:
    toolkit, supplied = Toolkit(), schema(parameters={"type": "object"})

    with pytest.raises(
        errors.IncompleteSchemaError, match=r"^invalid JSON schema of tool `search`: missing `properties`$"
    ):
        toolkit.register_tool_function(search, preset_kwargs={"api_key": "k"}, json_schema=supplied)
    toolkit.register_tool_function(search, json_schema=supplied)

    assert toolkit.get_json_schemas()[0]["function"]["parameters"] == {"type": "object"}


@pytest.mark.parametrize(
    ("parameters", "hint"),
    [
        ({"type": "strnig"}, "strnig"),
        ({"properties": 3}, "3"),
        ({"type": "object", "required": "query"}, "query"),
        ({"type": "object", "properties": {"query": {"minLength": "two"}}}, "two"),
        ({"type": "object", "properties": {"query": {"pattern": "("}}}, "("),
        ({"type": "object", "properties": {"query": {"$ref": "#/$defs/Nothing"}}}, "Nothing"),
    ],
)
def test_invalid_parameter_schemas_are_refused_with_the_reason(parameters: dict[str, Any], hint: str) -> None:
    toolkit = Toolkit()

    with pytest.raises(errors.InvalidSchemaError) as caught:
        toolkit.register_tool_function(search, json_schema=schema(parameters=parameters))

    text = str(caught.value)
    assert text.startswith("Invalid JSON schema for the tool function. ")
    assert hint in text
    assert dict(toolkit.tools) == {}


@pytest.mark.parametrize("value", [object(), {1: 2}, {1, 2}, float("nan"), b"bytes", "\ud800"])
def test_a_schema_that_is_not_json_is_refused_with_the_path(value: Any) -> None:
    toolkit = Toolkit()
    parameters = {"type": "object", "properties": {"query": {"default": value}}}

    with pytest.raises(errors.InvalidSchemaError, match=r"\$\.function\.parameters\.properties\.query\.default"):
        toolkit.register_tool_function(search, json_schema=schema(parameters=parameters))

    assert dict(toolkit.tools) == {}


def test_one_that_contains_itself_is_refused() -> None:
    toolkit, parameters = Toolkit(), copy.deepcopy(PARAMETERS)
    parameters["properties"]["again"] = parameters

    with pytest.raises((errors.InvalidSchemaError, RecursionError)):
        toolkit.register_tool_function(search, json_schema=schema(parameters=parameters))

    assert dict(toolkit.tools) == {}


def test_what_is_sent_is_held_to_the_supplied_schema() -> None:
    toolkit = Toolkit()
    parameters = {"type": "object", "properties": {"query": {"type": "string", "maxLength": 3}}, "required": ["query"]}
    toolkit.register_tool_function(search, json_schema=schema(parameters=parameters))

    assert toolkit.run("search", query="cat").text == "cat none"
    assert toolkit.run("search", query="cats").code == "invalid_arguments"
    assert toolkit.run("search", query="cat", api_key="k").code == "invalid_arguments"


def test_a_name_that_only_the_schema_knows_is_passed_on() -> None:
    def anything(**named: Any) -> dict[str, Any]:
        return named

    toolkit = Toolkit()
    toolkit.register_tool_function(anything, json_schema=schema(parameters=PARAMETERS))

    assert toolkit.run("anything", query="cats", api_key="k").metadata == {"value": {"query": "cats", "api_key": "k"}}


async def test_a_call_without_arguments_is_checked_against_the_whole_schema() -> None:
    ran: list[tuple[int, int]] = []

    def either(a: int = 0, b: int = 0) -> str:
        ran.append((a, b))
        return "ran"

    parameters = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    toolkit = Toolkit(run_in="inline")
    toolkit.register_tool_function(either, json_schema=schema(parameters=parameters))

    refused = await toolkit.call("either")
    await toolkit.call("either", b=2)

    assert refused.code == "invalid_arguments"
    assert ran == [(0, 2)]


def named(*args: object, **kwargs: object) -> dict[str, object]:
    return {"positional": list(args), "by name": kwargs}


def listed(*args: int) -> list[int]:
    return list(args)


@pytest.mark.parametrize("arguments", ["coerce", "check", "pass"])
def test_arguments_with_the_names_of_variadic_parameters_are_passed_by_name(arguments: Any) -> None:
    toolkit = Toolkit(arguments=arguments)
    properties = {"args": {"type": "string"}, "kwargs": {"type": "object"}, "name": {"type": "string"}}
    toolkit.register_tool_function(named, json_schema=schema(parameters={"type": "object", "properties": properties}))
    sent = {"args": "-v", "kwargs": {"name": "other"}, "name": "own"}

    response = toolkit.run("named", **sent)

    assert response.metadata == {"value": {"positional": [], "by name": sent}}


def test_a_list_reaches_a_function_that_takes_only_positional_arguments() -> None:
    toolkit = Toolkit()
    properties = {"args": {"type": "array", "items": {"type": "integer"}}}
    toolkit.register_tool_function(listed, json_schema=schema(parameters={"type": "object", "properties": properties}))

    assert toolkit.run("listed", args=[1, 2]).metadata == {"value": [1, 2]}
