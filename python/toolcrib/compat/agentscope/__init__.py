"""The `Toolkit` of AgentScope 1.x.

Either change the import,

    from toolcrib.compat.agentscope import Toolkit, ToolResponse

or keep your imports, and replace the class in all modules of AgentScope:

    import toolcrib.compat.agentscope

    toolcrib.compat.agentscope.install()

All other names of `agentscope.tool` can be imported from here too. AgentScope 2.x has another interface: importing this
package raises `ImportError` there.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from toolcrib import AgentSkill
from toolcrib.compat.agentscope._original import ToolGroup, ToolResponse
from toolcrib.compat.agentscope.install import install, uninstall
from toolcrib.compat.agentscope.records import RegisteredToolFunction
from toolcrib.compat.agentscope.toolkit import Toolkit
from toolcrib.compat.agentscope.tools import (
    execute_python_code,
    execute_shell_command,
    insert_text_file,
    view_text_file,
    write_text_file,
)
from toolcrib.subagent import SubAgentSpec, SubAgentUnavailable, make_subagent_tool

__all__ = [
    "AgentSkill",
    "RegisteredToolFunction",
    "SubAgentSpec",
    "SubAgentUnavailable",
    "ToolGroup",
    "ToolResponse",
    "Toolkit",
    "execute_python_code",
    "execute_shell_command",
    "insert_text_file",
    "install",
    "make_subagent_tool",
    "uninstall",
    "view_text_file",
    "write_text_file",
]


def __getattr__(name: str) -> Any:
    """Return a name that only AgentScope has."""
    if not name.startswith("_"):
        try:
            return getattr(import_module("agentscope.tool"), name)
        except (ImportError, AttributeError):
            pass
    raise AttributeError(f"module 'toolcrib.compat.agentscope' has no attribute '{name}'")
