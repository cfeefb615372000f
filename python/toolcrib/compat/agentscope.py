"""AgentScope's `Toolkit`, kept by toolcrib.

Either change the import,

    from toolcrib.compat.agentscope import Toolkit, ToolResponse

or put the class in AgentScope's place before its agents are imported,

    sys.modules["agentscope.tool"].Toolkit = toolcrib.compat.agentscope.Toolkit

What `agentscope.tool` exports and toolcrib does not have is handed through from there.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import toolcrib
from toolcrib import AgentSkill, RegisteredToolFunction, ToolGroup, ToolResponse

if TYPE_CHECKING:
    StateModule = object
    Original = object
else:
    try:
        from agentscope.module import StateModule
        from agentscope.tool import Toolkit as Original
    except ImportError:
        # Without AgentScope there is no agent whose state would hold the toolkit's, and only our own words.
        StateModule = Original = object

__all__ = ["AgentSkill", "RegisteredToolFunction", "ToolGroup", "ToolResponse", "Toolkit"]


class Toolkit(toolcrib.Toolkit, StateModule):
    """Behave as AgentScope's `Toolkit` where the two differ.

    Arguments are passed on unchecked, a function's error is a response and a generator's is raised, synchronous tools
    run on the event loop, and an extended model that does not fit its tool is noticed when the schemas are read. What a
    model reads about skills and about the meta tool is in the words of the AgentScope that is installed.

    Args:
        agent_skill_instruction: What the model is told before the skills.
        agent_skill_template: How it is told of one skill, with `{name}`, `{description}` and `{dir}`.
    """

    def __init__(self, agent_skill_instruction: str | None = None, agent_skill_template: str | None = None) -> None:
        StateModule.__init__(self)
        toolcrib.Toolkit.__init__(
            self,
            agent_skill_instruction or getattr(Original, "_DEFAULT_AGENT_SKILL_INSTRUCTION", None),
            agent_skill_template or getattr(Original, "_DEFAULT_AGENT_SKILL_TEMPLATE", None),
            arguments="pass",
            errors="compat",
            run_in="inline",
        )
        self._defer_conflicts()

    def reset_equipped_tools(self, **kwargs: bool) -> ToolResponse:  # noqa: D102 what it says is set below
        return super().reset_equipped_tools(**kwargs)

    reset_equipped_tools.__doc__ = getattr(
        Original, "reset_equipped_tools", toolcrib.Toolkit.reset_equipped_tools
    ).__doc__


def __getattr__(name: str) -> Any:
    """Hand through what only AgentScope has."""
    if not name.startswith("_"):
        try:
            return getattr(import_module("agentscope.tool"), name)
        except (ImportError, AttributeError):
            pass
    raise AttributeError(f"module 'toolcrib.compat.agentscope' has no attribute '{name}'")
