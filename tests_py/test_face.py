"""The short face: the decorator, `call`, subclasses of `Toolkit`, and what `help()` and the stub say."""

import ast
import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

import toolcrib
from toolcrib import RegisteredToolFunction, Toolkit, ToolResponse, ToolStream, errors

STUB = Path(toolcrib.__file__).with_name("_core.pyi")


def test_the_decorator_registers_and_gives_the_function_back() -> None:
    toolkit = Toolkit()

    def add(a: int, b: int) -> int:
        return a + b

    decorated = toolkit.tool(add)

    assert decorated is add
    assert toolkit.tools["add"].original_func is add
    assert add(1, 2) == 3


def test_the_decorator_takes_what_registering_takes() -> None:
    toolkit = Toolkit()
    toolkit.create_tool_group("maths", "Numbers.")

    @toolkit.tool(
        group_name="maths", func_name="plus", preset_kwargs={"b": 1}, func_description="Adds.", run_in="inline"
    )
    def add(a: int, b: int) -> int:
        return a + b

    tool = toolkit.tools["plus"]
    assert (tool.group, tool.original_name, tool.preset_kwargs, tool.run_in) == ("maths", "add", {"b": 1}, "inline")
    assert add(1, 2) == 3


def test_the_decorator_may_have_empty_parentheses() -> None:
    toolkit = Toolkit()

    @toolkit.tool()
    def add(a: int, b: int) -> int:
        return a + b

    assert list(toolkit.tools) == ["add"]


def test_decorators_stack() -> None:
    toolkit = Toolkit()

    @toolkit.tool
    @toolkit.tool(func_name="again")
    async def add(a: int, b: int) -> int:
        return a + b

    assert list(toolkit.tools) == ["again", "add"]


def test_a_decorator_that_fails_leaves_nothing_behind() -> None:
    toolkit = Toolkit()
    decorate: Any = toolkit.tool

    with pytest.raises(errors.UnknownGroupError):
        decorate(group_name="nowhere")(print)
    with pytest.raises(TypeError, match="a tool must be callable, not str"):
        decorate("add")
    with pytest.raises(TypeError, match=r"unknown option `groupname`: did you mean `group_name`\?"):
        decorate(groupname="basic")(len)

    assert dict(toolkit.tools) == {}


async def coroutine() -> str:
    return "last"


def function() -> str:
    return "last"


def generator() -> Iterator[str]:
    yield from ("first", "last")


async def async_generator() -> AsyncIterator[str]:
    for word in ("first", "last"):
        yield word


@pytest.mark.parametrize(
    ("tool", "text"),
    [(coroutine, "last"), (function, "last"), (generator, "firstlast"), (async_generator, "firstlast")],
)
async def test_call_gives_the_whole_result(tool: Callable[..., Any], text: str) -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(tool)

    response = await toolkit.call(tool.__name__)

    assert type(response) is ToolResponse
    assert response.text == text


async def test_call_runs_nothing_before_it_is_awaited() -> None:
    toolkit, ran = Toolkit(), []

    @toolkit.tool
    async def note() -> None:
        ran.append(1)

    pending = toolkit.call("note")
    pending.close()

    assert isinstance(pending, Coroutine)
    assert ran == []


async def test_call_may_be_a_task() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(coroutine)

    task = asyncio.create_task(toolkit.call("coroutine"))

    assert (await task).text == "last"


async def test_call_takes_arguments_of_any_name() -> None:
    toolkit = Toolkit()

    @toolkit.tool
    async def odd(name: str, self_: str, arguments: str, tool_call: str) -> list[str]:
        return [name, self_, arguments, tool_call]

    response = await toolkit.call("odd", name="a", self_="b", arguments="c", tool_call="d")

    assert response.metadata == {"value": ["a", "b", "c", "d"]}


async def test_call_answers_mistakes_like_the_stream_does() -> None:
    toolkit = Toolkit()
    toolkit.create_tool_group("off", "Switched off.")
    toolkit.register_tool_function(coroutine, "off")

    assert (await toolkit.call("nothing")).text == "FunctionNotFoundError: Cannot find the function named nothing"
    assert (await toolkit.call("coroutine")).code == "inactive_group"
    assert (await toolkit.call("\ud800")).code == "bad_call"


async def test_call_may_be_cancelled() -> None:
    toolkit, finalised = Toolkit(), []

    @toolkit.tool
    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            finalised.append(1)

    task = asyncio.create_task(toolkit.call("wait"))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert finalised == [1]


class Counting(Toolkit):
    """A toolkit with a constructor, a tool and an override of its own."""

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(**options)
        self.name = name
        self.registered: list[str] = []
        self.register_tool_function(self.hello)

    def hello(self) -> str:
        return f"hello from {self.name}"

    def register_tool_function(self, tool_func: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        super().register_tool_function(tool_func, *arguments, **options)
        self.registered.append(list(self.tools)[-1])


def test_a_toolkit_may_be_subclassed() -> None:
    toolkit = Counting("here", run_in="inline")

    @toolkit.tool(func_name="plus")
    def add(a: int, b: int) -> int:
        return a + b

    assert toolkit.registered == ["hello", "plus"]
    assert toolkit.tools["plus"].run_in == "inline"
    assert toolkit.run("hello").text == "hello from here"


def test_a_subclass_that_forgets_its_base_has_the_default_options() -> None:
    class Forgetful(Toolkit):
        def __init__(self) -> None:
            pass

    toolkit = Forgetful()
    toolkit.register_tool_function(function)

    assert toolkit.run("function").text == "last"


def test_tools_and_streams_are_not_made_by_hand() -> None:
    for made_by_toolkits in (RegisteredToolFunction, ToolStream):
        make: Any = made_by_toolkits
        with pytest.raises(TypeError):
            make()


def documented() -> Iterator[tuple[str, str]]:
    for definition in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(definition, ast.ClassDef):
            # A class for type checkers only has the methods that two classes share.
            names = ["Toolkit", "ToolkitView"] if definition.name == "_SessionMaker" else [definition.name]
            if names == [definition.name]:
                yield definition.name, ast.get_docstring(definition) or ""
            for member in definition.body:
                if isinstance(member, ast.FunctionDef) and (text := ast.get_docstring(member)):
                    yield from ((f"{name}.{member.name}", text) for name in names)


@pytest.mark.parametrize(("name", "text"), [pytest.param(*entry, id=entry[0]) for entry in documented()])
def test_help_begins_like_the_stub(name: str, text: str) -> None:
    shown = inspect.getdoc(functools.reduce(getattr, name.split("."), toolcrib._core)) or ""

    assert shown.splitlines()[:1] == text.splitlines()[:1] or name.endswith("__")


def test_help_shows_the_parameters() -> None:
    shown = str(inspect.signature(Toolkit.register_tool_function))

    assert shown.startswith("(self, /, tool_func, group_name='basic', preset_kwargs=None, func_name=None,")
    assert shown.endswith(
        "groups=(), tags=(), kind=None, permission='auto', secrets=(), aliases=None, chunks=None, result_budget=None)"
    )
    assert str(inspect.signature(Toolkit)) == (
        "(agent_skill_instruction=None, agent_skill_template=None, "
        "*, arguments='coerce', errors='respond', run_in='thread', repair='on', policy=None, approver=None, "
        "approver_timeout=None, headless=False, approvals=None, audit=None, store=None, asker=None, "
        "sampler=None, error_formatter=None, result_budget=None, tools=())"
    )
