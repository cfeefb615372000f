"""Every attack of `soak/` in a small number: no promise is broken, and each attempt was really made.

Attacks that consist of tests of this suite are not run again; their declarations are verified.
"""

import pytest

from soak.attack import Attack, attacks
from soak.suite import PythonTests, RustTests, Tests

OWN = [attack for attack in attacks() if not isinstance(attack.run, Tests)]
SELECTIONS = {attack.name: attack.run for attack in attacks() if isinstance(attack.run, Tests)}


@pytest.mark.parametrize("attack", OWN, ids=lambda attack: attack.name)
def test_a_promise_holds_under_attack(attack: Attack) -> None:
    outcome = attack.run(attack.smallest)

    assert outcome.broken == []
    assert outcome.attempts >= attack.smallest


@pytest.mark.parametrize("name", SELECTIONS)
def test_selected_tests_exist_and_read_their_number(name: str) -> None:
    assert SELECTIONS[name].missing() == []


@pytest.mark.parametrize(
    "tests",
    [
        PythonTests(("tests_py/test_soak.py::test_nothing",)),
        PythonTests(("tests_py/test_nothing.py",)),
        PythonTests(("tests_py/test_import.py",), "TOOLCRIB_NOTHING"),
        RustTests(("store::nothing",)),
        RustTests(("nothing::",)),
        RustTests(("store::",), "TOOLCRIB_NOTHING"),
    ],
)
def test_a_selection_that_is_misspelt_is_missing(tests: Tests) -> None:
    assert tests.missing() == list(tests.selection)
