"""Agently's agent, with its own manager and with toolcrib's as a plugin: all requests to the model are equal."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[1] / "support/agently/agent.py"


def converse(manager: str) -> dict[str, Any]:
    # Agently lists the tools of an agent in the order of a set; with this seed it is that of registration.
    finished = subprocess.run(
        [sys.executable, str(SCRIPT), manager],
        env={**os.environ, "PYTHONHASHSEED": "4"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    transcript: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return transcript


def test_an_agent_has_the_same_conversation_with_both_managers() -> None:
    theirs, ours = converse("agently"), converse("toolcrib")

    assert (theirs.pop("class"), ours.pop("class")) == ("agently", "toolcrib")
    assert ours == theirs
    assert ours["answers"] == ["It is 3.", "It failed.", "There is no saw."]
    assert "Error: rust" in json.dumps(ours["requests"])
