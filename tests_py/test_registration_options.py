"""Options of a registration: where a tool runs and how long, and invalid values."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from toolcrib import Toolkit


def search(query: str) -> str:
    return query


@pytest.mark.parametrize("seconds", [0, -1, math.inf, math.nan])
def test_a_timeout_is_a_positive_number_of_seconds(seconds: float) -> None:
    with pytest.raises(ValueError, match=r"^timeout must be a positive number of seconds$"):
        Toolkit().register_tool_function(search, timeout=seconds)


def test_a_synchronous_tool_that_runs_inline_has_no_timeout() -> None:
    with pytest.raises(ValueError, match=r'a timeout needs run_in="thread" or run_in="process"$'):
        Toolkit().register_tool_function(search, run_in="inline", timeout=1)


async def asynchronous() -> str:
    return "done"


@pytest.mark.parametrize(
    ("tool", "wanted", "shown"),
    [
        (search, None, "thread"),
        (search, "thread", "thread"),
        (search, "inline", "inline"),
        (asynchronous, None, "inline"),
        (asynchronous, "thread", "inline"),
    ],
)
def test_run_in_says_where_a_tool_runs(tool: Callable[..., Any], wanted: Any, shown: str) -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(tool, func_name="tool", run_in=wanted)

    assert toolkit.tools["tool"].run_in == shown


@pytest.mark.parametrize(
    ("option", "exception"),
    [
        ({"run_in": "rocket"}, ValueError),
        ({"run_in": 3}, TypeError),
        ({"timeout": "soon"}, TypeError),
        ({"group_name": None}, TypeError),
        ({"preset_kwargs": [("a", 1)]}, TypeError),
        ({"func_name": 3}, TypeError),
        ({"func_description": b"x"}, TypeError),
        ({"include_long_description": "no"}, TypeError),
        ({"namesake_strategy": None}, TypeError),
        ({"postprocess_func": 3}, TypeError),
        ({"async_execution": "yes"}, TypeError),
        ({"unheard_of": True}, TypeError),
    ],
)
def test_a_wrong_option_is_refused_and_nothing_is_registered(
    option: dict[str, Any], exception: type[Exception]
) -> None:
    toolkit = Toolkit()

    with pytest.raises(exception):
        toolkit.register_tool_function(search, **option)

    assert dict(toolkit.tools) == {}
