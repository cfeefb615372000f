"""Many short Python processes beside a busy one, for tests of the exit of a process under load."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

PROCESSES = 200
SIDE_BY_SIDE = 8


def wrong_results(program: Callable[[int], str], is_right: Callable[[str], bool]) -> list[tuple[int, int, str, str]]:
    """Run a program in two hundred processes, each with a time limit of its own.

    Args:
        program: Returns the code for the process of a number.
        is_right: Returns true for the right output.

    Returns:
        The number, exit code, output and errors of each process that failed, wrote errors or had another output.
    """

    def run(index: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-S", "-X", "faulthandler", "-c", program(index)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    busy = subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"])
    try:
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            results = list(pool.map(run, range(PROCESSES)))
    finally:
        busy.kill()
        busy.wait()
    return [
        (index, result.returncode, result.stdout, result.stderr)
        for index, result in enumerate(results)
        if result.returncode != 0 or not is_right(result.stdout) or result.stderr
    ]
