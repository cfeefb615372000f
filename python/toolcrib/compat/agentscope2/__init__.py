"""The tools of toolcrib in AgentScope 2.x.

Either give AgentScope's own toolkit the tools of a toolcrib toolkit,

    from toolcrib.compat.agentscope2 import tool_groups, tools

    toolkit = agentscope.tool.Toolkit(tools=tools(kit), tool_groups=tool_groups(kit))

or use a toolkit in its place, which is faster and knows the session and the id of each call:

    from toolcrib.compat.agentscope2 import Toolkit

    toolkit = Toolkit(toolkit=kit)

`install()` puts it in place of AgentScope's class. All other names of `agentscope.tool` can be imported from here too.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

try:
    _theirs = import_module("agentscope.tool")
except ImportError as error:
    raise ImportError(
        "toolcrib.compat.agentscope2 needs AgentScope 2.x: pip install 'agentscope>=2,<3' (Python 3.11 or newer)"
    ) from error
if not hasattr(_theirs, "ToolBase"):
    raise ImportError(
        "toolcrib.compat.agentscope2 needs AgentScope 2.x, and 1.x is installed: use toolcrib.compat.agentscope, or "
        "pip install 'agentscope>=2,<3'"
    )

from toolcrib.compat.agentscope2.install import install, uninstall
from toolcrib.compat.agentscope2.tool import tool_groups, tools
from toolcrib.compat.agentscope2.toolkit import Toolkit

__all__ = ["Toolkit", "install", "tool_groups", "tools", "uninstall"]


def __getattr__(name: str) -> Any:
    """Return a name that only AgentScope has."""
    if not name.startswith("_") and hasattr(_theirs, name):
        return getattr(_theirs, name)
    raise AttributeError(f"module 'toolcrib.compat.agentscope2' has no attribute '{name}'")
