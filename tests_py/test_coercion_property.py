"""For any values: arguments that are coerced one by one are those that a check of the whole gives."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from toolcrib import Policy, Toolkit
from toolcrib.policy import Rule

Outcome = tuple[str | None, Any, Any]

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 120),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=True),
    st.sampled_from(
        ["", "1", " 42 ", "-7", "+007", "1.5", "-3e2", "1e999", "true", "FALSE", "null", "yes", "9" * 5000]
    ),
    st.text(max_size=4),
    st.lists(st.integers(), max_size=2),
)
NAMES = ("number", "small", "ratio", "flag", "word", "short")
ARGUMENTS = st.lists(st.sampled_from(NAMES), unique=True, max_size=len(NAMES)).flatmap(
    lambda names: st.fixed_dictionaries(dict.fromkeys(names, VALUES))
)


async def scalars(
    number: int = 0,
    small: Annotated[int, Field(ge=0, le=100)] = 0,
    ratio: float = 0.0,
    flag: bool = False,
    word: str = "",
    short: Annotated[str, Field(max_length=3)] = "",
) -> list[str]:
    return [repr(value) for value in (number, small, ratio, flag, word, short)]


def decided_whole() -> Toolkit:
    """A toolkit whose rule looks at an argument, so that all of them are checked before the call."""
    return Toolkit(
        policy=Policy([Rule("deny", tool="scalars", arguments={"word": "never sent"}), Rule("allow", tool="scalars")])
    )


async def outcome(toolkit: Toolkit, arguments: dict[str, Any]) -> Outcome:
    response = await toolkit.call("scalars", **arguments)
    metadata = response.metadata if isinstance(response.metadata, dict) else {}
    repairs = sorted(metadata.get("repairs", []), key=lambda repair: str(repair["at"]))
    return response.code, response.text, repairs


@pytest.mark.property
@given(ARGUMENTS)
def test_coercing_one_by_one_is_coercing_the_whole(arguments: dict[str, Any]) -> None:
    alone, whole = Toolkit(), decided_whole()
    for toolkit in (alone, whole):
        toolkit.register_tool_function(scalars)

    async def both() -> tuple[Outcome, Outcome]:
        return await outcome(alone, arguments), await outcome(whole, arguments)

    one, other = asyncio.run(both())

    assert one == other
