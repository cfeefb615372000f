"""The toolkit as a whole: its options, its listings, taking things out, and what a failure leaves behind."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from support.toolkits import add, arithmetic
from toolcrib import Toolkit, errors


@pytest.fixture
def toolkit() -> Toolkit:
    return arithmetic()


def everything(toolkit: Toolkit) -> tuple[Any, ...]:
    tools, groups = list(toolkit.tools.items()), dict(toolkit.groups)
    return tools, groups, toolkit.get_json_schemas(), toolkit.get_json_schemas_bytes(), toolkit.get_activated_notes()


@pytest.mark.parametrize("option", ["arguments", "errors", "run_in"])
@pytest.mark.parametrize("word", ["", "Coerce", "processes", "respond ", "none"])
def test_an_option_has_one_of_its_words(option: str, word: str) -> None:
    options: dict[str, Any] = {option: word}

    with pytest.raises(ValueError, match=f"^{option} must be '.*' or '.*', not '{word}'$"):
        Toolkit(**options)


@pytest.mark.parametrize("options", [{"arguments": 3}, {"errors": None}, {"run_in": b"thread"}, {"unknown": "x"}])
def test_an_option_of_the_wrong_type_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        Toolkit(**options)


def test_options_are_keywords() -> None:
    make: Any = Toolkit

    with pytest.raises(TypeError, match="positional"):
        make(None, None, "coerce")


@pytest.mark.parametrize("arguments", ["coerce", "check", "pass"])
@pytest.mark.parametrize("answer", ["respond", "raise", "compat"])
@pytest.mark.parametrize("run_in", ["thread", "inline"])
def test_every_combination_of_options_calls_tools(arguments: Any, answer: Any, run_in: Any) -> None:
    toolkit = Toolkit(arguments=arguments, errors=answer, run_in=run_in)

    toolkit.register_tool_function(add)

    assert toolkit.tools["add"].run_in == run_in
    assert toolkit.run("add", a=1, b=2).text == "3"


def test_a_toolkit_shows_its_size() -> None:
    toolkit = Toolkit(tools=[len])
    toolkit.create_tool_group("web", "The web.")

    assert repr(toolkit) == "Toolkit(1 tools, 1 groups)"


def test_a_toolkit_is_true_even_when_it_is_empty() -> None:
    toolkit = Toolkit()

    assert toolkit
    assert bool(toolkit) is True
    assert not hasattr(toolkit, "__len__")


def test_schemas_are_copies(toolkit: Toolkit) -> None:
    before = json.dumps(toolkit.get_json_schemas())

    for schema in toolkit.get_json_schemas():
        schema["function"]["parameters"]["properties"]["a"]["type"] = "changed"
        schema["function"]["parameters"]["properties"].popitem()
        schema["function"]["name"] = "changed"
        schema.clear()
    toolkit.tools["add"].json_schema["function"]["parameters"].clear()

    assert json.dumps(toolkit.get_json_schemas()) == before
    assert toolkit.run("add", a=1, b=2).text == "3"


def test_the_bytes_say_the_same_as_the_schemas(toolkit: Toolkit) -> None:
    assert json.loads(toolkit.get_json_schemas_bytes()) == toolkit.get_json_schemas()
    assert list(json.loads(toolkit.get_json_schemas_bytes())[0]["function"]) == ["name", "parameters", "description"]
    assert Toolkit().get_json_schemas_bytes() == b"[]"


def test_the_bytes_are_kept_until_something_changes(toolkit: Toolkit) -> None:
    assert toolkit.get_json_schemas_bytes() is toolkit.get_json_schemas_bytes()


def test_the_bytes_follow_every_change(toolkit: Toolkit) -> None:
    changes: list[Callable[[], None]] = [
        lambda: toolkit.register_tool_function(add, func_name="plus"),
        lambda: toolkit.register_tool_function(
            add, func_name="plus", func_description="x", namesake_strategy="override"
        ),
        lambda: toolkit.remove_tool_function("plus"),
        lambda: toolkit.update_tool_groups(["maths"], False),
        lambda: setattr(toolkit.groups["maths"], "active", True),
        lambda: toolkit.remove_tool_groups("maths"),
        lambda: toolkit.clear(),
    ]

    for change in changes:
        before = toolkit.get_json_schemas_bytes()
        change()
        assert toolkit.get_json_schemas_bytes() != before
        assert json.loads(toolkit.get_json_schemas_bytes()) == toolkit.get_json_schemas()


def test_a_removed_tool_is_gone(toolkit: Toolkit) -> None:
    toolkit.remove_tool_function("add")

    assert list(toolkit.tools) == ["multiply"]
    assert toolkit.run("add", a=1).code == "unknown_tool"


def test_a_tool_that_is_not_there_may_be_removed_unless_it_must_exist(toolkit: Toolkit) -> None:
    before = everything(toolkit)

    toolkit.remove_tool_function("subtract")
    with pytest.raises(errors.UnknownToolError, match=r"^Tool function 'subtract' does not exist in the toolkit\.$"):
        toolkit.remove_tool_function("subtract", allow_not_exist=False)
    with pytest.raises(errors.UnknownToolError):
        toolkit.remove_tool_function("ADD", False)

    assert everything(toolkit) == before


def test_clear_takes_tools_and_groups_out(toolkit: Toolkit) -> None:
    toolkit.clear()

    assert everything(toolkit) == ([], {}, [], b"[]", "")
    toolkit.create_tool_group("maths", "Numbers.")
    toolkit.register_tool_function(add, "maths")
    assert list(toolkit.tools) == ["add"]


FAILURES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("register_tool_function", (add,), {}),
    ("register_tool_function", (3,), {}),
    ("register_tool_function", (min,), {}),
    ("register_tool_function", (add,), {"func_name": "plus", "group_name": "nowhere"}),
    ("register_tool_function", (add,), {"func_name": "plus", "json_schema": {"type": "array"}}),
    ("register_tool_function", (add,), {"func_name": "plus", "json_schema": {"type": "function", "function": {}}}),
    ("register_tool_function", (add,), {"func_name": "plus", "run_in": "rocket"}),
    ("register_tool_function", (add,), {"func_name": "plus", "timeout": -1}),
    ("register_tool_function", (add,), {"func_name": "plus", "postprocess_func": 3}),
    ("register_tool_function", (add,), {"func_name": "plus", "preset_kwargs": {3: 3}}),
    ("register_tool_function", (add,), {"namesake_strategy": "replace"}),
    ("register_tool_function", (add,), {"func_name": "plus", "include_var_keyword": None}),
    ("remove_tool_function", ("subtract", False), {}),
    ("remove_tool_function", (None,), {}),
    ("create_tool_group", ("maths", "Again."), {}),
    ("create_tool_group", ("basic", "Again."), {}),
    ("update_tool_groups", (["maths", 3], False), {}),
    ("remove_tool_groups", (["maths", "basic"],), {}),
    ("remove_tool_groups", (["maths", 3],), {}),
    ("call_tool_function", (b"add",), {}),
    ("call_tool_function", (None,), {}),
    ("call", (3,), {}),
]


@pytest.mark.parametrize(("method", "arguments", "options"), FAILURES)
def test_whatever_fails_leaves_everything_as_it_was(
    toolkit: Toolkit, method: str, arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    before = everything(toolkit)

    with pytest.raises((TypeError, ValueError)):
        getattr(toolkit, method)(*arguments, **options)

    assert everything(toolkit) == before


def test_a_tool_is_not_registered_into_a_group_that_is_removed_meanwhile() -> None:
    toolkit = Toolkit()
    toolkit.create_tool_group("brief", "Goes away.", active=True)

    class Spiteful:
        @property
        def __signature__(self) -> Any:
            toolkit.remove_tool_groups("brief")
            raise AttributeError

        def __call__(self) -> None: ...

    with pytest.raises(errors.UnknownGroupError, match="'brief'"):
        toolkit.register_tool_function(Spiteful(), "brief")

    assert dict(toolkit.tools) == {}


def test_threads_may_register_list_and_remove_at_once() -> None:
    toolkit, failures = Toolkit(), []

    def work(number: int) -> None:
        try:
            for round_ in range(100):
                name = f"tool_{number}_{round_}"
                toolkit.create_tool_group(name, "", active=True)
                toolkit.register_tool_function(add, name, func_name=name)
                assert toolkit.tools[name].name == name
                assert name in [schema["function"]["name"] for schema in toolkit.get_json_schemas()]
                assert name in [tool.name for tool in toolkit.tools.values()]
                json.loads(toolkit.get_json_schemas_bytes())
                toolkit.remove_tool_groups(name)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert dict(toolkit.tools) == {}
