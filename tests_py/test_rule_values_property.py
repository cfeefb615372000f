"""For any two spellings that build an equal value, and any condition: the decision is the same."""

from __future__ import annotations

import random

from hypothesis import assume, given
from hypothesis import strategies as st

from soak.policy import draw_case


@given(st.integers(0, 2**64))
def test_a_decision_does_not_depend_on_the_spelling(seed: int) -> None:
    case = draw_case(random.Random(seed))

    codes, built = case.outcomes()

    assume(len(built) == 2 and built[0] == built[1])
    assert codes[0] == codes[1], case
