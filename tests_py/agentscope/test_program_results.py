"""The tools that run programs against AgentScope's own: the same texts."""

from __future__ import annotations

import asyncio
from typing import Any

import agentscope.tool
import pytest

from toolcrib.compat import agentscope as compat

COMMANDS: list[dict[str, Any]] = [
    {"command": "true"},
    {"command": "echo out; echo err >&2; exit 3"},
    {"command": "printf 'no line break'"},
    {"command": "printf 'é\\n\\n <&>'"},
    {"command": "exit 255"},
    {"command": "kill -9 $$"},
    {"command": "nonexistent-command"},
    {"command": "echo a | tr a b; cd /; pwd"},
    {"command": ""},
    {"command": "echo 'a\nb'"},
    {"command": "printf out; exec sleep 60", "timeout": 1},
    {"command": "printf err >&2; exec sleep 60", "timeout": 0.5},
    {"command": "exec sleep 60", "timeout": 1.0},
]

CODES: list[dict[str, Any]] = [
    {"code": ""},
    {"code": "print(1)"},
    {"code": "import sys; print('é'); print('e', file=sys.stderr); sys.exit(4)"},
    {"code": "import os; os.kill(os.getpid(), 9)"},
    {"code": "print(__name__)"},
    {"code": "print('begun'); import time; time.sleep(60)", "timeout": 2},
    {"code": "import sys, time; print('e', file=sys.stderr); time.sleep(60)", "timeout": 2.5},
]


def result(function: Any, arguments: dict[str, Any]) -> tuple[Any, ...]:
    response = asyncio.run(function(**arguments))
    flags = response.stream, response.is_last, response.is_interrupted
    return len(response.content), response.content[0]["text"], *flags


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_command_gives_what_agentscope_gives(arguments: dict[str, Any]) -> None:
    ours = result(compat.execute_shell_command, arguments)

    # Each of them names its shell in errors.
    theirs = result(agentscope.tool.execute_shell_command, arguments)
    assert ours == theirs


@pytest.mark.parametrize("arguments", CODES)
def test_code_gives_what_agentscope_gives(arguments: dict[str, Any]) -> None:
    assert result(compat.execute_python_code, arguments) == result(agentscope.tool.execute_python_code, arguments)


@pytest.mark.parametrize("name", ["execute_shell_command", "execute_python_code"])
def test_a_toolkit_describes_the_same_parameters(name: str) -> None:
    def parameters(module: Any) -> dict[str, Any]:
        toolkit = compat.Toolkit()
        toolkit.register_tool_function(getattr(module, name))
        shown: dict[str, Any] = toolkit.get_json_schemas()[0]["function"]["parameters"]
        for entry in shown["properties"].values():
            del entry["description"]
        return shown

    assert parameters(compat) == parameters(agentscope.tool)
