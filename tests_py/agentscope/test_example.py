"""The example with AgentScope's agent runs to its end."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "agentscope_agent.py"


def test_the_example_comes_to_its_answer() -> None:
    finished = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, timeout=120, check=False)

    assert finished.returncode == 0, finished.stderr
    assert "Now tool groups 'machines' are activated." in finished.stdout
    assert "2 of 2 boards sawn" in finished.stdout
    assert "shelf: 80 cm" in finished.stdout
    assert "The shelf is 80 cm wide" in finished.stdout
