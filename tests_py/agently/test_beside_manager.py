"""The manager, side by side with Agently's: each script has the same transcript, or a difference with its reason."""

import asyncio
import functools
import threading
from collections.abc import Callable
from typing import Annotated, Any, Optional

import pytest
from pydantic import BaseModel, Field

from support.agently.script import Script
from support.agently.transcript import Difference, compare


class Board(BaseModel):
    length: int = Field(description="in cm")
    parts: Optional[list[str]] = None


class Doubler:
    def __call__(self, a: int = 1) -> int:
        return a * 2

    def method(self, a: int = 1) -> int:
        """Double."""
        return a * 2

    async def async_method(self, a: int = 1) -> int:
        return a * 2


class AsyncDoubler:
    async def __call__(self, a: int = 1) -> int:
        return a * 2


def add(a: int, b: Annotated[int, "second", "number"] = 2) -> int:
    """Add.

    Both of them.
    """
    return a + b


async def slow(a: int = 1) -> int:
    await asyncio.sleep(0)
    return a


def many(first, *rest, board: Board, deep: Optional[Annotated[int, "x"]] = None, **others) -> Board:  # type: ignore[no-untyped-def]
    return board


def text_annotations(a: "int", b: "Annotated[int, 'lost']" = 1) -> "list[int]":
    return [a, b]


def unresolved(a: "Nowhere") -> int:  # type: ignore[name-defined] # noqa: F821
    return 1


def numbers_as_notes(a: Annotated[int, 5]) -> None: ...


def fails(reason: str) -> None:
    raise KeyError(reason)


def leaves() -> None:
    raise SystemExit(3)


def counts() -> Any:
    yield 1


async def counts_slowly() -> Any:
    yield 1


def positional(a: int, /) -> int:
    return a


def thread() -> bool:
    return threading.current_thread() is threading.main_thread()


FUNCTIONS: list[Callable[..., Any]] = [
    add,
    slow,
    many,
    text_annotations,
    unresolved,
    numbers_as_notes,
    fails,
    counts,
    counts_slowly,
    positional,
    Doubler().method,
    Doubler,
    len,
    lambda x, y=print: x,
]

CALLS: dict[str, tuple[Callable[..., Any], Any]] = {
    "function": (add, {"a": 1}),
    "coroutine function": (slow, {"a": 5}),
    "missing argument": (add, {}),
    "unknown argument": (add, {"a": 1, "c": 2}),
    "text for a number": (add, {"a": "x", "b": "y"}),
    "positional only": (positional, {"a": 1}),
    "exception": (fails, {"reason": "why"}),
    "exception without text": (fails, {"reason": ""}),
    "exit": (leaves, {}),
    "generator": (counts, {}),
    "async generator": (counts_slowly, {}),
    "no kwargs": (add, None),
    "a list of kwargs": (add, [1]),
    "a number as a key": (add, {1: 2}),
    "partial": (functools.partial(add, a=4), {}),
    "partial of a coroutine function": (functools.partial(slow, a=4), {}),
    "bound method": (Doubler().method, {"a": 4}),
    "bound coroutine method": (Doubler().async_method, {"a": 4}),
    "callable object": (Doubler(), {"a": 4}),
    "async callable object": (AsyncDoubler(), {"a": 4}),
    "class": (dict, {"a": 4}),
    "builtin": (sorted, {"iterable": 1}),
    "function that returns a coroutine function": (lambda: slow, {}),
    "thread": (thread, {}),
    "model": (lambda board: board, {"board": Board(length=1)}),
    "lone surrogate": (lambda: "\ud800", {}),
}

ANY_CALLABLE = "Agently's synchronous call accepts functions only, and raises outside of its error handling"
AWAITED = "a callable object whose call is a coroutine is awaited"

DIFFERENCES: dict[str, Difference] = {
    "call partial": Difference("AssertionError: ", "6", ANY_CALLABLE),
    "call bound method": Difference("AssertionError: ", "8", ANY_CALLABLE),
    "call callable object": Difference("AssertionError: ", "8", ANY_CALLABLE),
    "call async callable object": Difference("AssertionError: ", "8", ANY_CALLABLE),
    "async_call async callable object": Difference("<coroutine object AsyncDoubler.__call__>", "8", AWAITED),
    "call class": Difference("AssertionError: ", "{'a': 4}", ANY_CALLABLE),
    "call builtin": Difference("AssertionError: ", "'Error: sorted expected 1 argument, got 0'", ANY_CALLABLE),
}


def described(function: Callable[..., Any]) -> Script:
    def script(classes: Any) -> Any:
        manager = classes.manager()
        same = manager.tool_func(function) is function
        return same, manager.tool_info, list(manager.tool_funcs), manager.tag_mappings

    return script


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
@pytest.mark.filterwarnings("ignore:model providers refuse the tool name `<lambda>`")
def test_functions_are_described_equally(function: Callable[..., Any]) -> None:
    compare(described(function), None)


@pytest.mark.filterwarnings("ignore:coroutine '.*' was never awaited:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("case", CALLS)
@pytest.mark.parametrize("way", ["call", "async_call", "call in a loop"])
def test_calls_have_equal_results(way: str, case: str) -> None:
    function, kwargs = CALLS[case]

    def script(classes: Any) -> Any:
        manager = classes.manager()
        manager.register(name="tool", desc="A tool", kwargs={"a": (int, "number")}, func=function)
        if way == "call":
            return manager.call_tool("tool", kwargs)
        if way == "async_call":
            return asyncio.run(manager.async_call_tool("tool", kwargs))

        async def main() -> Any:
            return manager.call_tool("tool", kwargs)

        return asyncio.run(main())

    compare(script, DIFFERENCES.get(f"{way.removesuffix(' in a loop')} {case}"))


def filled(classes: Any) -> Any:
    manager = classes.manager()
    manager.register(name="one", desc="first", kwargs={"a": "str"}, func=add, returns=[str], tags="x")
    manager.register(name="two", desc=None, kwargs=None, func=slow, tags=["x", "y"])
    manager.register(name="three", desc="third", kwargs={"a": (Board, "board"), "b": [{"c": int}]}, func=add)
    return manager


def replaced(classes: Any) -> Any:
    manager = filled(classes)
    outcome = manager.register(name="one", desc="again", kwargs={}, func=slow, tags="z")
    return outcome, manager.tool_info["one"], manager.tag_mappings, manager.call_tool("one", {"a": 9})


def tagged(names: Any, tags: Any) -> Script:
    def script(classes: Any) -> Any:
        manager = filled(classes)
        try:
            manager.tag(names, tags)
        except RuntimeError as error:
            return str(error), manager.tag_mappings
        return {tag: sorted(names) for tag, names in manager.tag_mappings.items()}

    return script


def chosen(tags: Any) -> Script:
    def script(classes: Any) -> Any:
        manager = filled(classes)
        infos = manager.get_tool_info(tags)
        names = sorted(info["name"] for info in manager.get_tool_list(tags))
        return sorted(infos.items()), names

    return script


def shifted(name: str, shift: Any) -> Script:
    def script(classes: Any) -> Any:
        manager = filled(classes)
        function = manager.get_tool_func(name, shift=shift)
        return function and (function.__name__, function is manager.tool_funcs[name])

    return script


def changed_outside(classes: Any) -> Any:
    manager = filled(classes)
    manager.tool_funcs["one"] = lambda: "other"
    manager.tool_funcs["new"] = lambda: "new"
    manager.tool_info["new"] = {"name": "new", "desc": "", "kwargs": {}}
    manager.tag_mappings["y"].add("new")
    del manager.tool_funcs["three"]
    return (
        [manager.call_tool(name, {}) for name in ("one", "new", "three")],
        sorted(manager.get_tool_info("y")),
        "one" in manager.tool_funcs,
        len(manager.tool_funcs),
        manager.get_tool_info() is manager.tool_info,
    )


def tagged_without_a_function(classes: Any) -> Any:
    manager = filled(classes)
    manager.tool_info["new"] = {"name": "new", "desc": "", "kwargs": {}}
    manager.tag("new", "y")
    del manager.tool_funcs["three"]
    manager.tag("three", "y")
    return sorted(manager.get_tool_info("y")), manager.call_tool("new", {})


def tagged_without_a_description(classes: Any) -> Any:
    manager = filled(classes)
    manager.tool_funcs["new"] = add
    manager.tag("new", "y")


SCRIPTS: dict[str, Script] = {
    "register again": replaced,
    "tag one": tagged("one", "new"),
    "tag several": tagged(["one", "two"], ["x", "new"]),
    "tag with tuples": tagged(("one",), ("new",)),
    "tag nothing": tagged([], []),
    "tag unknown": tagged(["one", "nope", "two"], ["a", "b"]),
    "tag without a function": tagged_without_a_function,
    "tag without a description": tagged_without_a_description,
    "info": chosen(None),
    "info of a tag": chosen("x"),
    "info of two tags": chosen(["x", "y", "x"]),
    "info of unknown tags": chosen(["nope", "y"]),
    "info of no tags": chosen([]),
    "info of an empty tag": chosen(""),
    "function": shifted("one", None),
    "function to sync": shifted("one", "sync"),
    "function to async": shifted("one", "async"),
    "coroutine function to sync": shifted("two", "sync"),
    "coroutine function to async": shifted("two", "async"),
    "unknown shift": shifted("two", "sideways"),
    "unknown function": shifted("nope", "sync"),
    "unknown tool": lambda classes: filled(classes).call_tool("nope", {}),
    "unknown tool, awaited": lambda classes: asyncio.run(filled(classes).async_call_tool("nope", {})),
    "unhashable name": lambda classes: filled(classes).call_tool([], {}),
    "mappings changed outside": changed_outside,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_have_equal_transcripts(name: str) -> None:
    compare(SCRIPTS[name], None)
