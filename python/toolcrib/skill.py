"""`AgentSkill`: the entry of a skill in the system prompt."""

from typing import TypedDict

__all__ = ["AgentSkill"]


class AgentSkill(TypedDict):
    """A typed dictionary: the name and description from the front matter of `SKILL.md`, and the folder."""

    name: str
    description: str
    dir: str
