"""Models that add their fields to a tool: the merged schema, who sees the arguments, and what is refused."""

import copy
import gc
import json
import threading
import weakref
from typing import Any

import pytest
from pydantic import BaseModel, RootModel

from support.extended_models import CASES, PAIRS, Branch, Flat, Point
from toolcrib import Toolkit
from toolcrib.errors import ExtendedModelError, UnknownToolError

RECORDED: list[dict[str, Any]] = json.loads(CASES.read_text(encoding="utf-8"))


class Verdict(BaseModel):
    verdict: str
    point: Point | None = None


class Limit(BaseModel):
    limit: int


def search(query: str) -> str:
    """Search."""
    return query


def finish(**kwargs: Any) -> str:
    """Finish."""
    return json.dumps(kwargs, sort_keys=True)


def toolkit_of(*functions: Any, **options: Any) -> Toolkit:
    toolkit = Toolkit(**options)
    for function in functions:
        toolkit.register_tool_function(function)
    return toolkit


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["name"])
def test_a_model_is_merged_as_agentscope_does(case: dict[str, Any]) -> None:
    function, model = PAIRS[case["name"]]
    toolkit = toolkit_of(function)

    if "error" in case:
        with pytest.raises(ExtendedModelError) as raised:
            toolkit.set_extended_model(function.__name__, model)
        assert str(raised.value) == case["error"]
    else:
        toolkit.set_extended_model(function.__name__, model)
        assert toolkit.tools[function.__name__].extended_json_schema["function"]["parameters"] == case["merged"]
        assert toolkit.get_json_schemas()[0]["function"]["parameters"] == case["merged"]


def test_every_pair_is_recorded() -> None:
    assert [case["name"] for case in RECORDED] == list(PAIRS)


def test_the_text_and_the_list_have_the_same_schemas() -> None:
    toolkit = toolkit_of(search, finish)

    toolkit.set_extended_model("finish", Verdict)

    assert json.loads(toolkit.get_json_schemas_bytes()) == toolkit.get_json_schemas()


def test_the_tool_shows_its_model_and_both_schemas() -> None:
    toolkit = toolkit_of(search)
    before = toolkit.tools["search"].json_schema

    toolkit.set_extended_model("search", Verdict)

    tool = toolkit.tools["search"]
    assert tool.extended_model is Verdict
    assert tool.json_schema == before
    assert list(tool.extended_json_schema["function"]["parameters"]["properties"]) == ["query", "verdict", "point"]


def test_without_a_model_both_schemas_are_the_same() -> None:
    tool = toolkit_of(search).tools["search"]

    assert tool.extended_model is None
    assert tool.extended_json_schema == tool.json_schema


def test_schemas_are_copies() -> None:
    toolkit = toolkit_of(search)
    toolkit.set_extended_model("search", Verdict)
    kept = copy.deepcopy(toolkit.tools["search"].extended_json_schema)

    toolkit.tools["search"].extended_json_schema["function"]["parameters"].clear()
    toolkit.tools["search"].json_schema["function"].clear()

    assert toolkit.tools["search"].extended_json_schema == kept


def test_a_tool_keeps_its_place_and_all_else_about_it() -> None:
    toolkit = Toolkit()
    toolkit.create_tool_group("ends", "Ends.", active=True)
    toolkit.register_tool_function(finish, "ends", {"token": "t"}, "done", postprocess_func=lambda _, response: None)
    toolkit.register_tool_function(search, timeout=5)
    old = toolkit.tools["done"]

    toolkit.set_extended_model("done", Verdict)
    toolkit.set_extended_model("search", Flat)

    new = toolkit.tools["done"]
    assert list(toolkit.tools) == ["done", "search"]
    assert (new.group, new.preset_kwargs, new.original_name) == ("ends", {"token": "t"}, "finish")
    assert new.postprocess_func is old.postprocess_func
    assert new.original_func is finish
    assert toolkit.tools["search"].timeout == 5
    assert json.loads(toolkit.run("done", verdict="yes").text) == {"token": "t", "verdict": "yes"}


def test_none_takes_the_model_away() -> None:
    toolkit = toolkit_of(finish)
    before = toolkit.get_json_schemas()
    toolkit.set_extended_model("finish", Verdict)

    toolkit.set_extended_model("finish", None)

    assert toolkit.get_json_schemas() == before
    assert toolkit.tools["finish"].extended_model is None
    assert toolkit.run("finish", verdict="yes").code == "invalid_arguments"


def test_a_second_model_takes_the_place_of_the_first() -> None:
    toolkit = toolkit_of(finish)
    toolkit.set_extended_model("finish", Verdict)

    toolkit.set_extended_model("finish", Flat)

    properties = toolkit.get_json_schemas()[0]["function"]["parameters"]["properties"]
    assert list(properties) == ["answer", "score"]


def test_both_spellings_are_understood() -> None:
    toolkit = toolkit_of(finish)

    toolkit.set_extended_model(finish_function_name="finish", structured_model=Verdict)
    assert toolkit.tools["finish"].extended_model is Verdict
    toolkit.set_extended_model(func_name="finish", model=None)
    assert toolkit.tools["finish"].extended_model is None


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        (("finish",), {}),
        (("finish", Verdict), {"structured_model": Verdict}),
        (("finish",), {"finish_function_name": "finish", "model": Verdict}),
        ((1, Verdict), {}),
        (("finish", Verdict, 3), {}),
    ],
)
def test_arguments_that_say_nothing_or_too_much_are_refused(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    toolkit: Any = toolkit_of(finish)

    with pytest.raises(TypeError):
        toolkit.set_extended_model(*args, **kwargs)


@pytest.mark.parametrize("model", [int, "Verdict", Verdict(verdict="yes"), {"type": "object"}])
def test_what_is_not_a_model_is_refused(model: Any) -> None:
    toolkit = toolkit_of(finish)

    with pytest.raises(TypeError) as raised:
        toolkit.set_extended_model("finish", model)

    text = "The extended model must be a child class of pydantic BaseModel, but got "
    assert str(raised.value) == f"{text}{type(model)}."


@pytest.mark.parametrize("model", [Verdict, None])
def test_an_unknown_tool_is_named(model: type[BaseModel] | None) -> None:
    with pytest.raises(UnknownToolError, match=r"^Tool function 'ghost' not found in the toolkit\.$"):
        Toolkit().set_extended_model("ghost", model)


def test_a_conflict_changes_nothing() -> None:
    toolkit = toolkit_of(search, finish)
    toolkit.set_extended_model("search", Verdict)
    before = toolkit.get_json_schemas()

    class Taken(BaseModel):
        query: str

    with pytest.raises(ExtendedModelError):
        toolkit.set_extended_model("search", Taken)

    assert toolkit.get_json_schemas() == before
    assert toolkit.tools["search"].extended_model is Verdict


def test_a_field_with_the_name_of_a_preset_is_refused() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(finish, preset_kwargs={"limit": 3})

    with pytest.raises(ExtendedModelError, match="`limit` of the extended model has the name of a preset of tool"):
        toolkit.set_extended_model("finish", Limit)


def test_a_model_whose_schema_is_not_an_object_is_refused() -> None:
    class Numbers(RootModel[list[int]]):
        pass

    with pytest.raises(ExtendedModelError, match="tool `finish` cannot be extended"):
        toolkit_of(finish).set_extended_model("finish", Numbers)


def test_a_model_without_a_schema_is_refused_with_the_tool_and_the_cause() -> None:
    class Opaque(BaseModel, arbitrary_types_allowed=True):
        lock: threading.Event

    with pytest.raises(ExtendedModelError, match="tool `finish` cannot be extended") as raised:
        toolkit_of(finish).set_extended_model("finish", Opaque)

    assert raised.value.__cause__ is not None


def test_a_recursive_model_gives_its_fields() -> None:
    toolkit = toolkit_of(finish)

    toolkit.set_extended_model("finish", Branch)

    parameters = toolkit.get_json_schemas()[0]["function"]["parameters"]
    assert list(parameters["properties"]) == ["name", "branches"]
    assert toolkit.run("finish", name="a", branches=[{"name": "b", "branches": 1}]).code == "invalid_arguments"
    assert toolkit.run("finish", name="a", branches=[{"name": "b"}]).ok


def test_a_conflict_can_wait_until_the_schema_is_read() -> None:
    toolkit = toolkit_of(search)

    class Taken(BaseModel):
        query: str

    toolkit._defer_conflicts()
    toolkit.set_extended_model("search", Taken)

    for read in (
        toolkit.get_json_schemas,
        toolkit.get_json_schemas_bytes,
        lambda: toolkit.tools["search"].extended_json_schema,
    ):
        with pytest.raises(ValueError, match="The field `query` already exists"):
            read()
    assert toolkit.run("search", query="words").text == "words"
    toolkit.set_extended_model("search", None)
    assert toolkit.get_json_schemas()


@pytest.mark.parametrize("arguments", ["coerce", "check", "pass"])
def test_fields_reach_a_function_that_takes_any_name(arguments: str) -> None:
    toolkit = toolkit_of(finish, arguments=arguments)
    toolkit.set_extended_model("finish", Verdict)

    response = toolkit.run("finish", verdict="yes", point={"x": 1})

    assert json.loads(response.text) == {"verdict": "yes", "point": {"x": 1}}


def test_fields_reach_a_function_by_name() -> None:
    def rate(limit: int = 0, **_: Any) -> int:
        """Rate."""
        return limit

    toolkit = Toolkit()
    schema = {"type": "function", "function": {"name": "rate", "parameters": {"type": "object", "properties": {}}}}
    toolkit.register_tool_function(rate, json_schema=schema)
    toolkit.set_extended_model("rate", Limit)

    assert toolkit.run("rate", limit=7).text == "7"


def test_a_function_that_does_not_take_a_field_says_so() -> None:
    toolkit = toolkit_of(search)
    toolkit.set_extended_model("search", Verdict)

    response = toolkit.run("search", query="words", verdict="yes")

    assert response.code == "failed"
    assert response.text == "TypeError: search() got an unexpected keyword argument 'verdict'"


def test_fields_are_held_to_what_the_schema_says() -> None:
    toolkit = toolkit_of(finish)
    toolkit.set_extended_model("finish", Limit)

    assert json.loads(toolkit.run("finish", limit="3").text) == {"limit": 3}
    assert toolkit.run("finish", limit="many").code == "invalid_arguments"
    assert toolkit.run("finish").code == "invalid_arguments"


def test_a_field_may_be_called_as_the_function_calls_its_rest() -> None:
    class Odd(BaseModel):
        kwargs: dict[str, int]

    toolkit = toolkit_of(finish)
    toolkit.set_extended_model("finish", Odd)

    assert json.loads(toolkit.run("finish", kwargs={"a": 1}).text) == {"kwargs": {"a": 1}}


async def test_a_call_that_is_running_goes_on_with_the_tool_it_began_with() -> None:
    async def count(n: int) -> Any:
        for index in range(n):
            yield str(index)

    toolkit = toolkit_of(count)
    stream = toolkit.call_tool_function({"type": "tool_use", "id": "1", "name": "count", "input": {"n": 3}})
    texts = [(await anext(stream)).text]

    toolkit.set_extended_model("count", Verdict)

    texts += [response.text async for response in stream]
    assert texts == ["0", "1", "2", "012"]


def test_models_set_from_many_threads_leave_a_whole_tool() -> None:
    toolkit = toolkit_of(finish)

    def work(model: type[BaseModel]) -> None:
        for _ in range(50):
            toolkit.set_extended_model("finish", model)
            toolkit.get_json_schemas()

    threads = [threading.Thread(target=work, args=(model,)) for model in (Verdict, Flat, Limit)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    tool = toolkit.tools["finish"]
    assert tool.extended_model is not None
    fields = set(tool.extended_model.model_fields)
    assert set(tool.extended_json_schema["function"]["parameters"]["properties"]) == fields


def test_a_model_that_refers_to_its_toolkit_is_collected() -> None:
    def made() -> weakref.ref[Toolkit]:
        toolkit = toolkit_of(finish)

        class Held(BaseModel):
            answer: str

        Held.toolkit = toolkit  # type: ignore[attr-defined]
        toolkit.set_extended_model("finish", Held)
        return weakref.ref(toolkit)

    gone = made()

    gc.collect()

    assert gone() is None
