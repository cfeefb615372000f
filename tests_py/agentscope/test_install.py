"""`install` replaces the class in every module of AgentScope, and `uninstall` puts it back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

USER_MODULE = """
from agentscope.tool import Toolkit as Kit
def tool(a: int, b: int): "Do it."
async def layer(kwargs, next_handler): yield
"""

BEFORE = """
import toolcrib.compat.agentscope as face
assert face.install() == []
from agentscope.tool import Toolkit, ToolResponse
import agentscope.agent._react_agent as module
assert Toolkit is face.Toolkit and module.Toolkit is face.Toolkit
assert ToolResponse is face.ToolResponse
"""

AFTER = """
import agentscope.tool
import agentscope.agent._react_agent as module
import toolcrib.compat.agentscope as face
originals = [agentscope.tool.Toolkit]
assert face.install() == []
assert agentscope.tool.Toolkit is module.Toolkit is face.Toolkit
assert isinstance(module.Toolkit(), originals[0])
assert face.install() == []
assert face.uninstall() == []
assert agentscope.tool.Toolkit is module.Toolkit is originals[0]
"""

MISSED = """
import logging
logging.basicConfig(format="%(name)s %(levelname)s %(message)s")
import user_module
import toolcrib.compat.agentscope as face
assert face.install() == ["user_module.Kit"]
"""

TWO_NAMES = """
import sys
import user_module
sys.modules["other_name"] = user_module
import toolcrib.compat.agentscope as face
assert face.install() == ["user_module.Kit"]
"""

PICKLED = """
import pickle
import user_module
from agentscope.tool import Toolkit
toolkit = Toolkit("Skills:")
toolkit.create_tool_group("g", "G", active=True, notes="Mind.")
toolkit.register_tool_function(user_module.tool, "g", preset_kwargs={"b": 2})
toolkit.register_middleware(user_module.layer)
toolkit.mine = 3
pickled = pickle.dumps(toolkit)
del Toolkit
import toolcrib.compat.agentscope as face
face.install()
loaded = pickle.loads(pickled)
assert type(loaded) is face.Toolkit
assert loaded.get_json_schemas() == toolkit.get_json_schemas()
assert loaded.groups == toolkit.groups and loaded.tools["tool"].preset_kwargs == {"b": 2}
assert loaded._middlewares == [user_module.layer] and loaded.mine == 3
assert loaded._agent_skill_instruction == "Skills:"
"""

AGENT = """
import toolcrib.compat.agentscope as face
face.install()
from agentscope.agent import ReActAgent
from agentscope.formatter import OpenAIChatFormatter
from agentscope.model import ChatModelBase
class Model(ChatModelBase):
    async def __call__(self, *args, **kwargs): ...
agent = ReActAgent("a", "b", Model("m", False), OpenAIChatFormatter())
assert type(agent.toolkit) is face.Toolkit
assert "toolkit" in agent.state_dict()
"""

SECOND = """
import sys, types
two = types.ModuleType("agentscope")
two.__path__ = []
two.__spec__ = types.SimpleNamespace(name="agentscope", loader=None, submodule_search_locations=[])
tool = types.ModuleType("agentscope.tool")
class Toolkit: ...
class ToolBase: ...
tool.Toolkit, tool.ToolBase = Toolkit, ToolBase
two.tool = tool
sys.modules.update({"agentscope": two, "agentscope.tool": tool})
try:
    import toolcrib.compat.agentscope
except ImportError as error:
    assert "toolcrib.compat.agentscope2" in str(error)
else:
    raise AssertionError("imported")
"""


def run(program: str, folder: Path) -> str:
    (folder / "user_module.py").write_text(USER_MODULE)
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    "program",
    [BEFORE, AFTER, AGENT, TWO_NAMES, PICKLED, SECOND],
    ids=["before", "after", "agent", "two names", "pickled", "2.x"],
)
def test_the_class_is_replaced_everywhere(program: str, tmp_path: Path) -> None:
    run(program, tmp_path)


def test_names_that_cannot_be_replaced_are_reported(tmp_path: Path) -> None:
    said = run(MISSED, tmp_path)

    assert "toolcrib WARNING" in said
    assert "user_module.Kit" in said
