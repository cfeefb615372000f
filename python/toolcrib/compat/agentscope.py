"""AgentScope's `Toolkit`, kept by toolcrib.

Either change the import,

    from toolcrib.compat.agentscope import Toolkit, ToolResponse

or put the class in AgentScope's place before its agents are imported,

    sys.modules["agentscope.tool"].Toolkit = toolcrib.compat.agentscope.Toolkit

What `agentscope.tool` exports and toolcrib does not have is handed through from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import toolcrib
from toolcrib import RegisteredToolFunction, ToolGroup, ToolResponse

if TYPE_CHECKING:
    StateModule = object
else:
    try:
        from agentscope.module import StateModule
    except ImportError:
        # Without AgentScope there is no agent whose state would hold the toolkit's.
        StateModule = object

__all__ = ["RegisteredToolFunction", "ToolGroup", "ToolResponse", "Toolkit"]


class Toolkit(toolcrib.Toolkit, StateModule):
    """Behave as AgentScope's `Toolkit` where the two differ.

    Arguments are passed on unchecked, a function's error is a response and a generator's is raised, synchronous tools
    run on the event loop, and an extended model that does not fit its tool is noticed when the schemas are read.

    Args:
        agent_skill_instruction: What the model is told before the skills.
        agent_skill_template: How it is told of one skill, with `{name}`, `{description}` and `{dir}`.
    """

    def __init__(self, agent_skill_instruction: str | None = None, agent_skill_template: str | None = None) -> None:
        StateModule.__init__(self)
        toolcrib.Toolkit.__init__(
            self,
            agent_skill_instruction,
            agent_skill_template,
            arguments="pass",
            errors="compat",
            run_in="inline",
        )


def __getattr__(name: str) -> Any:
    """Hand through what only AgentScope has."""
    if not name.startswith("_"):
        try:
            from agentscope import tool
        except ImportError:
            pass
        else:
            if hasattr(tool, name):
                return getattr(tool, name)
    raise AttributeError(f"module 'toolcrib.compat.agentscope' has no attribute '{name}'")
