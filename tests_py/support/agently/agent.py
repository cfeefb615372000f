"""A conversation of Agently's agent: `agent.py agently`, or `agent.py toolcrib`. It prints the transcript as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

from agently import Agently  # type: ignore[attr-defined] # mypy sees the folder of the tests

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.agently.model import scripted
from toolcrib.compat.agently import ToolManager


def add(a: int, b: Annotated[int, "the second number"] = 2) -> int:
    """Add two numbers."""
    return a + b


async def fail(reason: str) -> str:
    """Fail for a reason."""
    raise ValueError(reason)


def command(purpose: str, name: str, **kwargs: Any) -> str:
    return json.dumps(
        {"use_tool": True, "tool_command": {"purpose": purpose, "tool_name": name, "tool_kwargs": kwargs}}
    )


def main() -> None:
    if sys.argv[1] == "toolcrib":
        Agently.plugin_manager.register("ToolManager", ToolManager)
        Agently.tool.__init__(Agently.plugin_manager, Agently.settings)
    replies = (command("sum", "add", a=1), "It is 3.", command("failure", "fail", reason="rust"), "It failed.")
    with scripted(*replies, command("nothing", "saw"), "There is no saw.") as model:
        settings = {"base_url": model.url, "model": "m", "model_type": "chat", "auth": "none"}
        Agently.set_settings("OpenAICompatible", settings)
        agent = Agently.create_agent("ada")
        agent.use_tools([add, fail])
        answers = [agent.input(question).start() for question in ("1 + 2?", "Fail.", "Saw.")]
        transcript = {
            "answers": answers,
            "requests": model.requests,
            "tags": {tag: sorted(names) for tag, names in Agently.tool.tool_manager.tag_mappings.items()},
            "class": type(Agently.tool.tool_manager).__module__.split(".")[0],
        }
    print(json.dumps(transcript))


if __name__ == "__main__":
    main()
