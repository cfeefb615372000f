"""The example with AgentScope's agent runs to its end, by either design."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "agentscope2_agent.py"


@pytest.mark.parametrize("design", ["a", "b"])
def test_the_example_comes_to_its_answer(design: str) -> None:
    command = [sys.executable, str(EXAMPLE), design]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert finished.returncode == 0, finished.stderr
    assert "The currently activated tool group(s): machines." in finished.stdout
    assert '? may it call saw({"boards": 2}): yes' in finished.stdout
    assert "2 of 2 boards sawn." in finished.stdout
    assert "shelf: 80 cm" in finished.stdout
    assert "The shelf is 80 cm wide" in finished.stdout
