"""Editing an artifact by a quotation with a typo: how often the edit is right, refused, or at the wrong place."""

from __future__ import annotations

import random
import string
import time

from benches.figures import Row, at_least, at_most
from benches.measure import Bench
from toolcrib import Toolkit, tools

SIZES = (3, 10, 30, 100)
TRIALS = 100
RUNS = 10


async def rows(bench: Bench) -> list[Row]:
    """Count the results of single typos in texts of random words, and time an edit of one megabyte.

    Args:
        bench: Not used: a count needs no clock, and an edit changes what the next one would edit.

    Returns:
        Two rows.
    """
    del bench
    source = random.Random(1)
    right = wrong = total = 0
    for lines in SIZES:
        kit = Toolkit()
        tools.register(kit, "artifacts")
        for trial in range(TRIALS):
            text = [_line(source) for _ in range(lines)]
            at = source.randrange(lines)
            quotation = _typo(source, text[at])
            if quotation in "\n".join(text):
                # Without a letter at its edge it is an exact quotation of something else.
                continue
            total += 1
            await kit.call("create_artifact", id=str(trial), title="t", content="\n".join(text))
            response = await kit.call("update_artifact", id=str(trial), old_str=quotation, new_str="NEW")
            if response.code is None:
                text[at] = "NEW"
                read = await kit.call("read_artifact", id=str(trial))
                is_right = (read.metadata or {})["value"]["content"] == "\n".join(text)
                right, wrong = right + is_right, wrong + (not is_right)
    return [
        Row(
            "edit an artifact by a quotation with one typo, 3 to 100 lines",
            (at_least(100 * right / total, 95, 95, "{} % right"), at_most(100 * wrong / total, 0, 0, "{} % misplaced")),
        ),
        Row("the same in 1 MB of text", (at_most(await _large(source), 50, 50, "{} ms"),)),
    ]


async def _large(source: random.Random) -> float:
    kit = Toolkit()
    tools.register(kit, "artifacts")
    text: list[str] = []
    size = 0
    while size < 1_000_000:
        text.append(_line(source))
        size += len(text[-1]) + 1
    await kit.call("create_artifact", id="large", title="t", content="\n".join(text))
    best = float("inf")
    for run in range(RUNS):
        at = source.randrange(len(text))
        quotation = text[at].replace(" ", "  é ", 1)
        start = time.perf_counter()
        response = await kit.call("update_artifact", id="large", old_str=quotation, new_str=f"NEW {run}")
        best = min(best, time.perf_counter() - start)
        if response.code is not None:
            raise RuntimeError(response.text)
        text[at] = f"NEW {run}"
    return best * 1_000


def _line(source: random.Random) -> str:
    words = (
        "".join(source.choices(string.ascii_lowercase, k=source.randint(2, 9))) for _ in range(source.randint(5, 12))
    )
    return " ".join(words)


def _typo(source: random.Random, line: str) -> str:
    at, letter = source.randrange(len(line) - 1), source.choice(string.ascii_lowercase)
    return source.choice(
        [
            line[:at] + line[at + 1 :],
            line[:at] + letter + line[at:],
            line[:at] + letter + line[at + 1 :],
            line[:at] + line[at + 1] + line[at] + line[at + 2 :],
        ]
    )
