"""The program on the page about the migration prints what the page says."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "migration" / "agentscope2.md"


def test_the_program_prints_what_the_page_says() -> None:
    found = re.search(r"^```py\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    program, output = found.groups()

    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)

    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == output
