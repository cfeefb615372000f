"""Parameters of `register_tool_function`, and the tool that it registers."""

from collections.abc import Iterator
from typing import Any

import pytest

from toolcrib import Toolkit, ToolResponse, errors


def search(query: str, limit: int = 10, api_key: str = "none") -> str:
    """Search the web.

    Results come in no order.

    Args:
        query: What to look for.
        limit: How many results.
        api_key: Who pays.
    """
    return f"{query} {limit} {api_key}"


def variadic(first: int, *rest: int, **named: int) -> dict[str, Any]:
    return {"first": first, "rest": list(rest), "named": named}


def described(toolkit: Toolkit, name: str = "search") -> dict[str, Any]:
    function: dict[str, Any] = toolkit.tools[name].json_schema["function"]
    return function


def parameters(toolkit: Toolkit, name: str = "search") -> dict[str, Any]:
    found: dict[str, Any] = described(toolkit, name)["parameters"]
    return found


def test_a_registered_function_goes_by_its_own_name() -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(search)

    tool = toolkit.tools["search"]
    assert (tool.name, tool.group, tool.source, tool.original_name) == ("search", "basic", "function", None)
    assert (tool.original_func, tool.preset_kwargs, tool.postprocess_func) == (search, {}, None)
    assert (tool.run_in, tool.timeout) == ("thread", None)
    assert repr(tool) == "RegisteredToolFunction(name='search', group='basic')"


def test_all_eleven_parameters_may_be_passed_by_position() -> None:
    toolkit = Toolkit()
    toolkit.create_tool_group("web", "The web.")

    def keep(block: Any, response: ToolResponse) -> None: ...

    toolkit.register_tool_function(
        search, "web", {"api_key": "k"}, "find", "Finds.", None, False, False, False, keep, "raise"
    )

    tool = toolkit.tools["find"]
    assert (tool.group, tool.preset_kwargs, tool.original_name) == ("web", {"api_key": "k"}, "search")
    assert tool.postprocess_func is keep
    assert described(toolkit, "find")["description"] == "Finds."


def test_run_in_and_timeout_are_keywords() -> None:
    too_many: list[Any] = [search, "basic", None, None, None, None, True, False, False, None, "raise", False, "thread"]

    with pytest.raises(TypeError, match="takes from 1 to 12 positional arguments but 13 were given"):
        Toolkit().register_tool_function(*too_many)


def test_a_tool_cannot_be_changed_after_it_was_registered() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(search, preset_kwargs={"api_key": "k"})
    tool: Any = toolkit.tools["search"]

    tool.preset_kwargs["api_key"] = "stolen"
    tool.json_schema["function"]["name"] = "renamed"

    assert tool.preset_kwargs == {"api_key": "k"}
    assert tool.json_schema["function"]["name"] == "search"
    with pytest.raises(AttributeError):
        tool.name = "other"


def test_a_group_must_exist() -> None:
    with pytest.raises(errors.UnknownGroupError, match=r"^Tool group 'web' not found\.$"):
        Toolkit().register_tool_function(search, group_name="web")


def test_the_group_is_looked_at_first_and_the_schema_second() -> None:
    no_tool: Any = 3

    with pytest.raises(errors.UnknownGroupError):
        Toolkit().register_tool_function(no_tool, "web", json_schema={"type": "function"})
    with pytest.raises(errors.InvalidSchemaError):
        Toolkit().register_tool_function(no_tool, json_schema={"type": "function"})


@pytest.mark.parametrize(("no_tool", "shown"), [(3, "int"), (None, "NoneType"), ("search", "str"), ([search], "list")])
def test_a_tool_must_be_callable(no_tool: Any, shown: str) -> None:
    with pytest.raises(TypeError, match=f"^a tool must be callable, not {shown}$"):
        Toolkit().register_tool_function(no_tool)


def test_presets_are_hidden_from_the_schema() -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(search, preset_kwargs={"api_key": "k"})

    assert list(parameters(toolkit)["properties"]) == ["query", "limit"]
    assert parameters(toolkit)["required"] == ["query"]


def test_required_is_left_out_when_nothing_is() -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(search, preset_kwargs={"query": "cats"})

    assert "required" not in parameters(toolkit)


def test_presets_are_copied() -> None:
    toolkit, presets = Toolkit(), {"api_key": "k"}

    toolkit.register_tool_function(search, preset_kwargs=presets)
    presets["api_key"] = "changed"

    assert toolkit.tools["search"].preset_kwargs == {"api_key": "k"}
    assert toolkit.run("search", query="cats").text == "cats 10 k"


def test_a_preset_may_name_what_only_var_keyword_takes() -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(variadic, preset_kwargs={"extra": 7})

    assert toolkit.run("variadic", first=1).metadata == {"value": {"first": 1, "rest": [], "named": {"extra": 7}}}


def test_a_preset_that_nothing_takes_is_refused() -> None:
    toolkit = Toolkit()

    with pytest.raises(ValueError, match="tool `search`: unknown parameter `nobody` in preset_kwargs"):
        toolkit.register_tool_function(search, preset_kwargs={"nobody": 1})

    assert dict(toolkit.tools) == {}


def test_func_name_replaces_the_name_everywhere() -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(search, func_name="find")

    assert list(toolkit.tools) == ["find"]
    assert toolkit.tools["find"].original_name == "search"
    assert described(toolkit, "find")["name"] == "find"


def test_an_empty_func_name_means_none() -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(search, func_name="")

    assert list(toolkit.tools) == ["search"]
    assert toolkit.tools["search"].original_name is None


@pytest.mark.filterwarnings("ignore:model providers refuse")
@pytest.mark.parametrize("name", ["two words", "搜索", "it's", 'a"b', "a\u200bb", "{name}", "x" * 300, "basic"])
def test_an_odd_name_is_kept_to_the_letter(name: str) -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(search, func_name=name)

    assert list(toolkit.tools) == [name]
    assert toolkit.get_json_schemas()[0]["function"]["name"] == name
    assert toolkit.run(name, query="cats").ok


def test_a_name_that_is_not_valid_unicode_is_refused() -> None:
    toolkit = Toolkit()

    with pytest.raises(ValueError, match="surrogates"):
        toolkit.register_tool_function(search, func_name="\ud800")

    assert dict(toolkit.tools) == {}


@pytest.mark.parametrize(("given", "shown"), [("Finds.", "Finds."), ("", "Search the web.\nResults come in no order.")])
def test_func_description_replaces_the_docstrings_unless_it_is_empty(given: str, shown: str) -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(search, func_description=given)

    assert described(toolkit)["description"] == shown


def test_the_long_description_may_be_left_out() -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(search, include_long_description=False)

    assert described(toolkit)["description"] == "Search the web."
    assert parameters(toolkit)["properties"]["query"]["description"] == "What to look for."


def test_var_parameters_are_hidden_unless_they_are_asked_for() -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(variadic)
    toolkit.register_tool_function(variadic, func_name="open", include_var_positional=True, include_var_keyword=True)

    assert list(parameters(toolkit, "variadic")["properties"]) == ["first"]
    assert list(parameters(toolkit, "open")["properties"]) == ["first", "rest", "named"]


def test_var_parameters_are_unpacked_when_they_are_sent() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(variadic, include_var_positional=True, include_var_keyword=True)

    response = toolkit.run("variadic", first=1, rest=[2, 3], named={"a": 4})

    assert response.metadata == {"value": {"first": 1, "rest": [2, 3], "named": {"a": 4}}}


def test_postprocess_is_called_with_the_request_and_each_response() -> None:
    toolkit, seen = Toolkit(), []

    def count() -> Iterator[str]:
        yield "one"
        yield "two"

    def shout(block: Any, response: ToolResponse) -> ToolResponse:
        seen.append((block["name"], response.text))
        return ToolResponse([{"type": "text", "text": response.text.upper()}])

    toolkit.register_tool_function(count, postprocess_func=shout)

    assert toolkit.run("count").text == "ONETWO"
    assert seen == [("count", "one"), ("count", "two"), ("count", "onetwo")]


def test_preset_names_are_text() -> None:
    toolkit = Toolkit()
    presets: Any = {1: "k"}

    with pytest.raises(TypeError, match=r"^the names in preset_kwargs must be text, not int$"):
        toolkit.register_tool_function(search, preset_kwargs=presets)

    assert dict(toolkit.tools) == {}


def named(name: str) -> Any:
    def tool() -> None: ...

    tool.__name__ = name
    return tool


BAD_NAMES = ["a\x00b", "a\nb", "\r", "tab\there", "\x1b[31mred", "del\x7f", "next\x85line", "line\u2028break"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_with_a_control_character_is_refused(name: str) -> None:
    toolkit = Toolkit()

    with pytest.raises(errors.InvalidToolNameError, match="control character"):
        toolkit.register_tool_function(search, func_name=name)
    with pytest.raises(errors.InvalidToolNameError) as raised:
        toolkit.register_tool_function(named(name))

    assert len(str(raised.value).splitlines()) == 1
    assert dict(toolkit.tools) == {}


def test_the_empty_name_is_refused() -> None:
    toolkit = Toolkit()

    with pytest.raises(errors.InvalidToolNameError, match="it is empty"):
        toolkit.register_tool_function(named(""))

    assert dict(toolkit.tools) == {}


def test_a_group_is_not_registered_with_a_tool_of_a_bad_name() -> None:
    toolkit = Toolkit()

    with pytest.raises(errors.InvalidToolNameError):
        toolkit.register_group("web", tools=[named("a\nb")])

    assert (dict(toolkit.tools), dict(toolkit.groups)) == ({}, {})


@pytest.mark.filterwarnings("ignore:model providers refuse")
@pytest.mark.parametrize("name", ["<lambda>", "web.search", "naïve", "with blank", "搜索", "a/b:c", "x" * 300])
def test_any_other_name_is_accepted(name: str) -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(named(name))

    assert list(toolkit.tools) == [name]
