"""`AgentSkill`: a folder of instructions, as the agent is told about it."""

from typing import TypedDict

__all__ = ["AgentSkill"]


class AgentSkill(TypedDict):
    """A plain dictionary: what the front matter of `SKILL.md` says, and the folder as it was given."""

    name: str
    description: str
    dir: str
