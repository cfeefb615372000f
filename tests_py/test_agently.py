"""`toolcrib.compat.agently`: the manager and the formatter, in every case that was recorded with Agently 4.0.7.5."""

from __future__ import annotations

import asyncio
import copy
import datetime  # noqa: F401 - named by cases
import functools
import json
import logging
import threading
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, List, Literal, Optional, Union  # noqa: F401 - named by cases

import pytest
from pydantic import BaseModel, Field

from support.agently.models import Color, Inner, Outer, Plain  # noqa: F401 - named by cases
from toolcrib import Policy, errors
from toolcrib.compat.agently import AgentlyToolManager, DataFormatter, ToolManager
from toolcrib.policy import Rule

CASES: dict[str, Any] = json.loads((Path(__file__).parents[1] / "tests/data/agently_cases.json").read_text())


@pytest.mark.parametrize("case", CASES["sanitize"], ids=lambda case: f"{case['expr']} {case['remain_type']}")
def test_sanitize_gives_what_agently_gives(case: dict[str, Any]) -> None:
    value = eval(case["expr"], {**globals(), "Callable": typing.Callable})

    result = DataFormatter.sanitize(value, remain_type=case["remain_type"])

    assert repr(result) == case["result_repr"] or result == eval(case["result_repr"])


class Node(BaseModel):
    child: Optional[Node] = None


class Limited(BaseModel):
    count: int = Field(ge=1, description="pieces")
    name: Annotated[str, "of the wood"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (List, "list"),
        (dict[str, Optional[int]], "dict[str, int | NoneType]"),
        (Annotated[int, "x"], "typing.Annotated[int, 'x']"),
        (frozenset([1]), "frozenset({1})"),
        ({"deep": [{1: (str, "d")}]}, {"deep": [{"1": ("str", "d")}]}),
        (Node, {"child": ("Node | NoneType",)}),
        (
            Limited,
            {
                "count": ("typing.Annotated[int, Ge(ge=1)]", "pieces"),
                "name": ("typing.Annotated[str, 'of the wood']",),
            },
        ),
    ],
)
def test_sanitize_writes_nested_types(value: Any, expected: Any) -> None:
    assert DataFormatter.sanitize(value) == expected


@pytest.mark.parametrize("case", CASES["from_schema"], ids=lambda case: json.dumps(case["schema"]))
def test_a_schema_becomes_kwargs_and_is_not_modified(case: dict[str, Any]) -> None:
    schema = copy.deepcopy(case["schema"])

    if "raises" in case:
        with pytest.raises((KeyError, TypeError)) as raised:
            DataFormatter.from_schema_to_kwargs_format(schema)
        assert (type(raised.value).__name__, str(raised.value)) == (case["raises"], case["message"])
    else:
        kwargs = DataFormatter.from_schema_to_kwargs_format(schema)
        assert as_recorded(kwargs) == case["kwargs"]
    assert schema == case["schema"]


def as_recorded(kwargs: dict[str, Any] | None) -> Any:
    """Write the kwargs format as the cases have it: lists for tuples, and a word for the type `Any`."""
    if kwargs is None:
        return None
    return {name: ["<Any>" if kind is Any else kind, notes] for name, (kind, notes) in kwargs.items()}


def test_odd_schemas_of_properties_are_of_any_type() -> None:
    schema = {"type": "object", "properties": {"a": True, "b": {}}, "additionalProperties": True}

    kwargs = DataFormatter.from_schema_to_kwargs_format(schema)

    assert kwargs == {"a": (Any, ""), "b": (Any, ""), "<*>": (Any, "")}


def functions() -> dict[str, Callable[..., Any]]:
    """The functions of the cases, defined without postponed annotations."""
    source = '''
from typing import Annotated, Any, Optional
def f1(a: int, b: str = "x"):
    """Doc line.

    More."""
def f2(a: Annotated[int, "first"], b: Annotated[str, "second", "extra"] = "q") -> list[int]: ...
def f3(a, *args, b=None, **kw) -> None:
    "one"
async def f4(x: Optional[int] = 0) -> dict[str, Any]:
    "async one"
def f5(m: Inner) -> Inner:
    "model"
def f6(a: "int") -> "str":
    "string annotations"
def f7(a: Annotated[int, 5]): ...
'''
    namespace: dict[str, Any] = {"Inner": Inner, "__name__": "cases"}
    exec(compile(source, "<cases>", "exec", dont_inherit=True), namespace)
    return namespace


@pytest.mark.parametrize("case", CASES["tool_func"], ids=lambda case: case["signature"].split("(")[0])
def test_tool_func_describes_a_function(case: dict[str, Any]) -> None:
    manager = ToolManager()
    name = case["signature"].split("(")[0].split()[-1]
    function = functions()[name]

    if "raises" in case:
        with pytest.raises(TypeError, match="sequence item 0: expected str instance, int found"):
            manager.tool_func(function)
        assert manager.tool_info == {}
        return
    assert manager.tool_func(function) is function

    info = manager.tool_info[name]
    assert info["desc"] == case["desc"]
    assert {parameter: repr(shape) for parameter, shape in info["kwargs"].items()} == case["kwargs_repr"]
    assert (repr(info["returns"]) if "returns" in info else None) == case["returns_repr"]


two = lambda a: a * 2  # noqa: E731 - the cases name it `<lambda>`
three = lambda: 3  # noqa: E731


async def aadd(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


def boom() -> None:
    raise SystemExit(3)


def count() -> Iterator[int]:
    yield 1


class Doubler:
    def __call__(self, a: int) -> int:
        return a * 2

    def method(self, a: int) -> int:
        return a * 2

    async def async_method(self, a: int) -> int:
        return a * 2


class AsyncDoubler:
    async def __call__(self, a: int) -> int:
        return a * 2


@pytest.fixture
def manager() -> ToolManager:
    manager = ToolManager()
    manager.register(name="two", desc="d", kwargs={"a": (int, "number")}, func=two, returns=int, tags="t1")
    manager.register(name="three", desc=None, kwargs=None, func=three, tags=["t1", "t2"])
    for function in (aadd, boom, count):
        manager.tool_func(function)
    others: dict[str, Callable[..., Any]] = {
        "callable": Doubler(),
        "partial": functools.partial(two, 1),
        "method": Doubler().method,
        "async method": Doubler().async_method,
        "async callable": AsyncDoubler(),
        "class": dict,
    }
    for name, other in others.items():
        manager.register(name=name.replace(" ", "_"), desc=name, kwargs={}, func=other)
    return manager


def registered_again(manager: ToolManager) -> Any:
    outcome: Any = manager.register(name="two", desc="d2", kwargs={}, func=two, tags="t9")  # type: ignore[func-returns-value]
    return outcome, manager.tool_info["two"], "two" in manager.tag_mappings["t1"]


def tagged(manager: ToolManager) -> Any:
    manager.tag("two", "t5")
    return list(manager.get_tool_info("t5"))


def call_async(manager: ToolManager, name: str, kwargs: dict[str, Any]) -> Any:
    return asyncio.run(manager.async_call_tool(name, kwargs))


USES: dict[str, Callable[[ToolManager], Any]] = {
    "names by tags ['t1','t2']": lambda manager: sorted(manager.get_tool_info(["t1", "t2"])),
    "names by unknown tag": lambda manager: manager.get_tool_info("unknown"),
    "get_tool_info([])": lambda manager: manager.get_tool_info([]),
    "get_tool_list('t2') names": lambda manager: [info["name"] for info in manager.get_tool_list("t2")],
    "call_tool('two',{'a':4})": lambda manager: manager.call_tool("two", {"a": 4}),
    "call_tool missing tool": lambda manager: manager.call_tool("nope", {}),
    "call_tool wrong kwarg": lambda manager: manager.call_tool("two", {"b": 1}),
    "call_tool raising SystemExit (BaseException)": lambda manager: manager.call_tool("boom", {}),
    "call_tool on async function, no running loop": lambda manager: manager.call_tool("aadd", {"a": 1, "b": 2}),
    "async_call_tool on sync function": lambda manager: call_async(manager, "two", {"a": 5}),
    "async_call_tool missing": lambda manager: call_async(manager, "nope", {}),
    "call_tool on callable object": lambda manager: manager.call_tool("callable", {"a": 1}),
    "call_tool on functools.partial": lambda manager: manager.call_tool("partial", {}),
    "async_call_tool on callable object": lambda manager: call_async(manager, "callable", {"a": 1}),
    "async_call_tool on functools.partial": lambda manager: call_async(manager, "partial", {}),
    "call_tool on sync generator function": lambda manager: type(manager.call_tool("count", {})).__name__,
    "get_tool_func('aadd',shift='async') identity": lambda manager: (
        manager.get_tool_func("aadd", shift="async") is aadd
    ),
    "get_tool_func('boom',shift='sync') identity": lambda manager: manager.get_tool_func("boom", shift="sync") is boom,
    "get_tool_func('two',shift='sync').__name__": lambda manager: getattr(
        manager.get_tool_func("two", shift="sync"), "__name__", None
    ),
    "re-register 'two' with no returns and tag t9: info": registered_again,
    "info dict is the live internal dict": lambda manager: manager.get_tool_info() is manager.tool_info,
    "tag('two','t5') then by t5": tagged,
    "tag unknown tool returns": lambda manager: manager.tag("nope", "t1"),
}

# Where Agently fails because it accepts only functions.
FIXED = {"call_tool on callable object": "2", "call_tool on functools.partial": "2"}


@pytest.mark.parametrize("case", CASES["manager"], ids=lambda case: case["do"])
def test_the_manager_gives_what_agently_gives(manager: ToolManager, case: dict[str, Any]) -> None:
    use = USES[case["do"]]

    if "raises" in case and case["do"] not in FIXED:
        with pytest.raises((SystemExit, RuntimeError)) as raised:
            use(manager)
        assert f"{type(raised.value).__name__}: {raised.value}" == case["raises"]
    else:
        assert repr(use(manager)) == FIXED.get(case["do"], case.get("result_repr"))


@pytest.mark.parametrize("name", ["callable", "method", "async_method", "async_callable"])
async def test_every_callable_can_be_called_both_ways(manager: ToolManager, name: str) -> None:
    assert manager.call_tool(name, {"a": 4}) == 8
    assert await manager.async_call_tool(name, {"a": 4}) == 8


@pytest.mark.parametrize("value", ["text", "", "ünï \ud800", None, 1, 1.5, True, b"x", (1, 2), {"a": 1}, [1], object()])
async def test_a_result_is_returned_as_it_is(value: Any) -> None:
    manager = ToolManager()
    manager.register(name="sync", desc="", kwargs={}, func=lambda: value)

    async def asynchronous() -> Any:
        return value

    manager.tool_func(asynchronous)

    for name in ("sync", "asynchronous"):
        for result in (manager.call_tool(name, {}), await manager.async_call_tool(name, {})):
            assert result is value or (type(result) is str and result == value)


async def test_generators_and_responses_are_returned_as_they_are() -> None:
    from toolcrib import ToolResponse

    response = ToolResponse([])
    manager = ToolManager()
    manager.tool_func(count)
    manager.register(name="response", desc="", kwargs={}, func=lambda: response)

    assert list(manager.call_tool("count", {})) == [1]
    assert list(await manager.async_call_tool("count", {})) == [1]
    assert manager.call_tool("response", {}) is response
    assert response.metadata is None


async def test_arguments_are_passed_as_they_are() -> None:
    manager = ToolManager()
    manager.register(name="same", desc="", kwargs={}, func=lambda **given: given)
    argument = object()

    given = await manager.async_call_tool("same", {"name": argument, "self": "1"})

    assert given["name"] is argument
    assert given["self"] == "1"


@pytest.mark.parametrize("kwargs", [None, 5, {1: 2}])
async def test_wrong_kwargs_are_an_error_text(manager: ToolManager, kwargs: Any) -> None:
    direct = manager.call_tool("two", kwargs)

    assert direct.startswith("Error: ")
    assert "mapping" in direct or "keywords must be strings" in direct
    assert await manager.async_call_tool("two", kwargs) == direct


async def test_an_exception_is_an_error_text() -> None:
    manager = ToolManager()

    @manager.tool_func
    def jam() -> None:
        raise ValueError("the blade is stuck")

    assert manager.call_tool("jam", {}) == "Error: the blade is stuck"
    assert await manager.async_call_tool("jam", {}) == "Error: the blade is stuck"


async def test_synchronous_functions_run_in_the_calling_thread_or_in_a_worker() -> None:
    manager = ToolManager()
    manager.register(name="thread", desc="", kwargs={}, func=threading.current_thread)

    assert manager.call_tool("thread", {}) is threading.current_thread()
    assert await manager.async_call_tool("thread", {}) is not threading.current_thread()


def test_a_tool_may_call_other_tools(manager: ToolManager) -> None:
    @manager.tool_func
    def outer() -> list[Any]:
        return [
            manager.call_tool("aadd", {"a": 1, "b": 2}),
            call_async(manager, "two", {"a": 5}),
            call_async(manager, "callable", {"a": 1}),
        ]

    assert manager.call_tool("outer", {}) == [3, 10, 2]


def test_a_tool_may_be_registered_with_positional_arguments() -> None:
    manager = ToolManager()

    manager.register("add", "Adds.", {"a": (int, "")}, two, int, "math")

    assert manager.get_tool_info("math")["add"] == {
        "name": "add",
        "desc": "Adds.",
        "kwargs": {"a": (int, "")},
        "returns": int,
    }
    assert manager.get_tool_func("add", "sync") is two


def test_tags_before_an_unknown_name_are_added(manager: ToolManager) -> None:
    with pytest.raises(RuntimeError, match="Cannot find tool named 'nope'"):
        manager.tag(["two", "nope"], ["a", "b"])

    assert manager.tag_mappings["a"] == manager.tag_mappings["b"] == {"two"}


def test_a_described_tool_can_be_tagged_before_its_function_is_set(manager: ToolManager) -> None:
    manager.tool_info["later"] = {"name": "later", "desc": "", "kwargs": {}}

    manager.tag("later", "t1")
    manager.tool_funcs["later"] = two

    assert [info["name"] for info in manager.get_tool_list("t1")] == ["two", "three", "later"]
    assert manager.toolkit.tools["later"].tags == ["t1"]


def test_a_function_without_a_description_cannot_be_tagged(manager: ToolManager) -> None:
    manager.tool_funcs["bare"] = two

    with pytest.raises(RuntimeError, match="Cannot find tool named 'bare'"):
        manager.tag("bare", "t1")


def test_info_is_listed_once_and_in_the_order_of_registration(manager: ToolManager) -> None:
    assert [info["name"] for info in manager.get_tool_list(["t2", "t1", "t2"])] == ["two", "three"]


def test_changes_of_the_live_mappings_take_effect(manager: ToolManager) -> None:
    manager.tool_funcs["two"] = lambda a: a * 20
    manager.tool_info["two"]["desc"] = "twenty times"
    del manager.tool_funcs["three"]
    manager.tag_mappings["own"] = {"two"}

    assert manager.call_tool("two", {"a": 1}) == 20
    assert manager.get_tool_list("own")[0]["desc"] == "twenty times"
    assert manager.call_tool("three", {}) == "Can not find tool named 'three'"
    assert "three" not in manager.toolkit.tools
    assert manager.get_tool_func("three", shift="async") is None


def test_the_mapping_of_functions_is_a_dict(manager: ToolManager) -> None:
    two, funcs = manager.tool_funcs["two"], manager.tool_funcs

    assert isinstance(funcs, dict)
    assert type(funcs | {"four": two}) is type({"four": two} | funcs) is type(funcs.copy()) is dict
    funcs |= {"four": two}
    name, last = funcs.popitem()
    assert (name, last) == ("four", two)
    assert manager.call_tool("four", {"a": 1}) == "Can not find tool named 'four'"
    assert "four" not in manager.toolkit.tools
    assert funcs.pop("four", None) is None
    with pytest.raises(KeyError):
        funcs.pop("four")
    with pytest.raises(KeyError):
        del funcs["four"]


def test_another_mapping_of_functions_replaces_the_tools(manager: ToolManager) -> None:
    two = manager.tool_funcs["two"]

    manager.tool_funcs = {"doubled": two}

    assert manager.call_tool("doubled", {"a": 2}) == two(a=2)
    assert manager.call_tool("two", {"a": 2}) == "Can not find tool named 'two'"
    assert list(manager.toolkit.tools) == ["doubled"]


def test_the_mapping_of_functions_is_one_of_python(manager: ToolManager) -> None:
    assert manager.tool_funcs == manager.tool_funcs.copy() == dict(manager.tool_funcs)
    assert repr(manager.tool_funcs) == repr(manager.tool_funcs.copy())
    assert manager.tool_funcs.pop("two") is two
    manager.tool_funcs.update(two=three)
    manager.tool_funcs.setdefault("two", two)
    assert manager.call_tool("two", {}) == 3

    manager.tool_funcs.clear()

    assert list(manager.toolkit.tools) == []


def test_a_listener_may_call_tools_before_the_call(manager: ToolManager) -> None:
    heard: list[Any] = []

    def listen(event: Any) -> None:
        if event.tool == "two":
            heard.append(manager.call_tool("three", {}))

    async def listen_later(event: Any) -> None:
        heard.append(event.tool)

    manager.toolkit.subscribe("call_start", listen)
    manager.toolkit.subscribe("call_end", listen_later)

    assert manager.call_tool("two", {"a": 1}) == 2
    assert heard[0] == 3


def test_an_invalid_registration_changes_nothing(manager: ToolManager) -> None:
    before = dict(manager.tool_info)

    with pytest.raises(TypeError, match="expected a callable, got int"):
        manager.register(name="new", desc="", kwargs={}, func=5, tags="t1")  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidToolNameError):
        manager.register(name="", desc="", kwargs={}, func=two, tags="t1")

    assert manager.tool_info == before
    assert manager.tag_mappings["t1"] == {"two", "three"}


def test_the_toolkit_knows_the_schemas_and_tags(manager: ToolManager) -> None:
    manager.tag("two", "late")

    @manager.tool_func
    def saw(length: int, wood: Annotated[str, "the wood"] = "oak") -> str:
        """Saw a board."""
        return wood * length

    tools = {tool["function"]["name"]: tool["function"] for tool in manager.toolkit.get_json_schemas()}
    assert manager.toolkit.tools["two"].tags == ["t1", "late"]
    assert tools["two"]["parameters"]["properties"] == {"a": {"type": "integer", "description": "number"}}
    assert tools["saw"]["parameters"]["required"] == ["length"]


@pytest.mark.parametrize(
    ("shape", "schema"),
    [
        ("str", {"type": "string"}),
        (("array", "items: x"), {"type": "array", "description": "items: x"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        ([(str, "a name")], {"type": "array", "items": {"type": "string", "description": "a name"}}),
        ({"k": (bool,)}, {"type": "object", "properties": {"k": {"type": "boolean"}}}),
        (
            Limited,
            {
                "type": "object",
                "properties": {"count": {"type": "integer", "description": "pieces"}, "name": {"type": "string"}},
            },
        ),
        (Node, {"type": "object", "properties": {"child": {}}}),
        (Optional[int], {}),
        (Any, {}),
    ],
)
def test_kwargs_become_a_schema(shape: Any, schema: dict[str, Any]) -> None:
    manager = ToolManager()

    manager.register(name="tool", desc="", kwargs={"a": shape}, func=two)

    (tool,) = manager.toolkit.get_json_schemas()
    assert tool["function"]["parameters"]["properties"]["a"] == schema


def test_tagging_logs_no_warning(manager: ToolManager, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "toolcrib"):
        manager.tag("two", "late")
        manager.register(name="two", desc="", kwargs={}, func=two)

    assert [record.message for record in caplog.records] == ["tool 'two' was registered before and is replaced"]


async def test_the_policy_of_the_toolkit_applies(manager: ToolManager) -> None:
    manager.toolkit.policy = Policy([Rule("deny", tool="two", reason="not today"), Rule("allow", tool="*")])

    for outcome in (manager.call_tool("two", {"a": 1}), await manager.async_call_tool("two", {"a": 1})):
        assert outcome == "Error: The call of 'two' was denied and did not run: not today"
    assert manager.call_tool("three", {}) == 3


async def test_an_approver_is_asked(manager: ToolManager) -> None:
    asked: list[str] = []

    async def approver(request: Any) -> bool:
        await asyncio.sleep(0)
        asked.append(request.tool)
        return True

    manager.toolkit.policy = Policy([Rule("ask", tool="*")])
    manager.toolkit.approver = approver

    assert await asyncio.to_thread(manager.call_tool, "two", {"a": 1}) == 2
    assert manager.call_tool("two", {"a": 1}) == 2
    assert await manager.async_call_tool("two", {"a": 1}) == 2
    assert asked == ["two"] * 3


async def test_middlewares_of_the_toolkit_apply(manager: ToolManager) -> None:
    async def shout(kwargs: dict[str, Any], next_handler: Any) -> Any:
        await asyncio.sleep(0)
        async for response in await next_handler(**kwargs):
            response.content = [{"type": "text", "text": "instead"}]
            response.metadata = None
            yield response

    manager.toolkit.register_middleware(shout)

    assert manager.call_tool("two", {"a": 1}) == "instead"
    assert await manager.async_call_tool("two", {"a": 1}) == "instead"


def test_the_class_has_the_name_of_the_original() -> None:
    assert AgentlyToolManager is ToolManager


async def test_a_cancelled_error_of_the_tool_itself_is_an_error_text(manager: ToolManager) -> None:
    async def cancelled() -> None:
        raise asyncio.CancelledError

    manager.tool_func(cancelled)

    assert str(await manager.async_call_tool("cancelled", {})).startswith("Error: ")
    assert str(manager.call_tool("cancelled", {})).startswith("Error: ")


async def test_cancelling_a_call_raises(manager: ToolManager) -> None:
    started = asyncio.Event()

    async def waits() -> None:
        started.set()
        await asyncio.Event().wait()

    manager.tool_func(waits)
    call = asyncio.create_task(manager.async_call_tool("waits", {}))
    await started.wait()

    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
