"""`FunctionShifter`, side by side with Agently's."""

import time
from typing import Any

import pytest

from support.agently.shifting import SCRIPTS, add
from support.agently.transcript import THEIRS, Difference, compare

DIFFERENCES = {
    "syncify: context in a loop": Difference("'unset'", "'ann'", "context variables are carried over"),
    "syncify: object": Difference("AssertionError: ", "3", "any callable is accepted"),
    "asyncify: no function": Difference(
        "TypeError: Expected a callable, got <class 'int'>",
        "TypeError: invalid function: expected a callable, got int",
        "the text is in the style of toolcrib's other messages",
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_functions_are_shifted_equally(name: str) -> None:
    compare(SCRIPTS[name], DIFFERENCES.get(name))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_future_without_a_loop_is_done() -> None:
    from toolcrib.compat.agently import FunctionShifter

    theirs = THEIRS.shifter.future(add)(1)
    ours: Any = FunctionShifter.future(add)(1)

    assert ours.result(timeout=30) == 3
    # Agently's task waits until something else wakes up its loop.
    time.sleep(0.2)
    assert not theirs.done()
    theirs.get_loop().call_soon_threadsafe(lambda: None)
