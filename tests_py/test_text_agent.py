"""The agent of examples/text_agent.py: its model writes calls into its text, and gets on with what it reads."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parent.parent / "examples" / "text_agent.py"


def run() -> str:
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=50)
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout


def test_the_agent_gets_its_texts_onto_the_shelf() -> None:
    lines = run().splitlines()

    assert lines[-1] == "shelf: {'loop.c': 'for (i = 0; i < 007 && ok; i++) { }', 'note': 'all is well'}"
    assert lines[-2] == "model: Both texts are on the shelf."


def test_the_example_shows_calls_repairs_and_refusals() -> None:
    printed = [line for line in run().splitlines() if line.startswith("  ") and not line.startswith("   ")]

    assert printed == [
        "  save {'name': 'loop.c', 'content': 'for (i = 0; i < 007 && ok; i++) { }'}: ok",
        "  find {'word': '007', 'names': ['loop.c']}: ok",
        "  mended: the closing tag of <content> was missing",
        "  save {'name': 'note', 'content': 'all is well'}: ok",
        "  save {}: bad_call",
    ]
