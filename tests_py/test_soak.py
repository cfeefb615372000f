"""Every attack of `soak/` in a small number: no promise is broken, and each attempt was really made."""

import pytest

from soak.attack import Attack, attacks


@pytest.mark.parametrize("attack", attacks(), ids=lambda attack: attack.name)
def test_a_promise_holds_under_attack(attack: Attack) -> None:
    outcome = attack.run(attack.smallest)

    assert outcome.broken == []
    assert outcome.attempts >= attack.smallest
