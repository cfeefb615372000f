"""Processes that are killed while they save, and processes that save to one file at the same time."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from toolcrib import Toolkit

KILLS = int(os.environ.get("TOOLCRIB_KILLS", "100"))

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")

# It forks a process that saves state after state and tells the number of each that is saved, kills it at some moment,
# and looks at what it finds.
NURSERY = """
    import json, os, random, signal, sys, time
    from toolcrib import Toolkit

    path, kills = sys.argv[1], int(sys.argv[2])
    folder = os.path.dirname(path)

    toolkit = Toolkit()
    for at in range(4):
        toolkit.create_tool_group(f"g{at}", "")

    def save(number):
        for group in toolkit.groups.values():
            group.description, group.notes = str(number), str(number % 10) * 300
        toolkit.save(path)

    def found():
        other = Toolkit()
        other.load(path)
        (number,) = {int(group.description) for group in other.groups.values()}
        assert {group.notes for group in other.groups.values()} == {str(number % 10) * 300}
        assert list(other.groups) == ["g0", "g1", "g2", "g3"]
        return number

    def saver(number, told):
        while True:
            number += 1
            save(number)
            os.write(told, number.to_bytes(8, "big"))

    save(0)
    number = left = lost = 0
    for kill in range(kills):
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            saver(number, tell)
        os.close(tell)
        os.read(told, 8)
        time.sleep(random.uniform(0, 0.01))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        saved = number + 1
        while report := os.read(told, 8):
            saved = int.from_bytes(report, "big")
        os.close(told)
        number = found()
        lost += number not in (saved, saved + 1)
        left += len(os.listdir(folder)) > 1
        number += 1
        save(number)
        assert os.listdir(folder) == [os.path.basename(path)], os.listdir(folder)
    print(json.dumps({"kills": kills, "lost": lost, "left": left}))
"""


def run(code: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.timeout(60 + KILLS * 2)
def test_a_process_that_is_killed_leaves_the_last_state_or_the_next_one(tmp_path: Path) -> None:
    nursery = run(NURSERY, str(tmp_path / "state.json"), str(KILLS))

    output, complaints = nursery.communicate()

    assert nursery.returncode == 0, complaints
    report = json.loads(output)
    assert (report["kills"], report["lost"]) == (KILLS, 0)
    # Some were killed in the middle of it, or this test would show nothing.
    assert report["left"] > 0


SAVER = """
    import sys
    from toolcrib import Toolkit

    path, name, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
    toolkit = Toolkit()
    for at in range(8):
        toolkit.create_tool_group(f"g{at}", name, notes=name * 10_000)
    for _ in range(times):
        toolkit.save(path)
"""


@pytest.mark.parametrize("writers", [2, 8])
@pytest.mark.timeout(300)
def test_of_several_writers_one_wins_and_readers_always_find_a_whole_state(tmp_path: Path, writers: int) -> None:
    path = tmp_path / "state.json"
    toolkit = Toolkit()
    toolkit.save(path)
    seen: set[frozenset[str]] = set()

    savers = [run(SAVER, str(path), chr(ord("a") + at), "50") for at in range(writers)]
    while any(saver.poll() is None for saver in savers):
        toolkit.load(path)
        seen.add(frozenset(group.description for group in toolkit.groups.values()))
    complaints = [saver.communicate()[1] for saver in savers]

    assert [saver.returncode for saver in savers] == [0] * writers, complaints
    assert all(len(names) <= 1 for names in seen)
    assert os.listdir(tmp_path) == ["state.json"]


def test_of_many_threads_one_wins(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    path = tmp_path / "state.json"
    toolkits = [Toolkit() for _ in range(16)]
    for at, toolkit in enumerate(toolkits):
        toolkit.create_tool_group("g", str(at), notes=str(at) * 1000)

    with ThreadPoolExecutor(16) as executor:
        list(executor.map(lambda toolkit: [toolkit.save(path) for _ in range(10)], toolkits))
    last = Toolkit()
    last.load(path)

    (group,) = last.groups.values()
    assert group.notes == group.description * 1000
    assert os.listdir(tmp_path) == ["state.json"]
