"""The toolkit is taken for AgentScope's: by isinstance, by inspection, by mocks, by patches and by type checkers."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest
from agentscope.tool import Toolkit as AgentScopeToolkit

import toolcrib
from support.agentscope.pair import call, on_both
from support.agentscope.tools import add


@on_both
async def test_it_is_a_toolkit_with_a_coroutine_function(make: Any) -> None:
    toolkit = make()
    toolkit.register_tool_function(add)

    assert isinstance(toolkit, AgentScopeToolkit)
    assert inspect.iscoroutinefunction(make.call_tool_function)
    stream = await toolkit.call_tool_function(call("add", a=1, b=2))
    assert isinstance(stream, AsyncGenerator)
    await stream.aclose()


@on_both
async def test_a_mock_of_it_can_be_awaited(make: Any) -> None:
    mock = MagicMock(spec=make)
    mock.call_tool_function.return_value = "stream"

    assert isinstance(mock.call_tool_function, AsyncMock)
    assert await mock.call_tool_function({}) == "stream"


@on_both
def test_the_public_methods_are_those_of_agentscope(make: Any) -> None:
    for name, method in vars(AgentScopeToolkit).items():
        if name.startswith("_") or not callable(method):
            continue
        ours = getattr(make, name)
        assert callable(ours)
        assert inspect.iscoroutinefunction(method) == inspect.iscoroutinefunction(ours), name


PROGRAM = """
from agentscope.agent import ReActAgent
from agentscope.message import ToolUseBlock
from agentscope.tool import Toolkit as Original, ToolResponse

from toolcrib.compat.agentscope import Toolkit
from toolcrib.compat.agentscope import ToolResponse as Response

def f(toolkit: Original) -> None: ...

f(Toolkit())
answer: ToolResponse = Response(content=[])

async def g() -> None:
    async for chunk in await Toolkit().call_tool_function({"type": "tool_use", "id": "1", "name": "f", "input": {}}):
        print(chunk.content)

def check(call: ToolUseBlock, response: ToolResponse) -> ToolResponse | None: ...
async def check_later(call: ToolUseBlock, response: ToolResponse) -> ToolResponse | None: ...

Toolkit().register_tool_function(g, postprocess_func=check)
Toolkit().register_tool_function(g, postprocess_func=check_later)

def h(agent: ReActAgent, toolkit: Toolkit) -> None:
    agent.toolkit = toolkit
"""


@pytest.mark.timeout(900)
def test_a_type_checker_takes_it_for_agentscopes(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    settings = tmp_path / "mypy.ini"
    settings.write_text("[mypy]\nfollow_imports = silent\ncheck_untyped_defs = True\n")

    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(settings), "--cache-dir", str(tmp_path), str(program)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=900,
        env={**os.environ, "MYPYPATH": str(Path(toolcrib.__file__).parents[1])},
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr
