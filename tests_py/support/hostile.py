"""Runs a hostile program in a process of its own and sees that the interpreter lives."""

from support.streams import python

# What every program begins with. `answers` runs a call to its end; only an `Exception` may come out of it.
PRELUDE = """
import asyncio, collections.abc, gc, sys, threading
from toolcrib import Toolkit, ToolResponse

kit = Toolkit(run_in="inline")

def call(name, input):
    return {"type": "tool_use", "id": "1", "name": name, "input": input}

async def answers(name, input=None, kit=kit):
    try:
        return [response async for response in kit.call_tool_function(call(name, input))]
    except Exception as error:
        return [error]

@kit.tool
async def echo(value: object = None) -> object:
    return value

@kit.tool
def count(value: int = 0) -> int:
    return value

def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 30))
"""


def survives(case: str, prelude: str = "", **environment: str) -> None:
    """Run a program after the prelude, and one more prelude; it has to come to its end."""
    lines = case.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    program = PRELUDE + prelude + "\n".join(line[indent:] for line in lines) + "\nprint('alive')\n"

    result = python(program, seconds=55, **environment)

    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.endswith("alive\n")
    assert "panicked" not in result.stderr
