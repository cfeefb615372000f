"""Everything an agent did, in a form in which two runs can be compared."""

from __future__ import annotations

import copy
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agentscope.agent import ReActAgent
from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import Msg
from agentscope.tool import Toolkit as AgentScopeToolkit

from support.agentscope.scripted import ScriptedModel
from toolcrib.compat.agentscope import Toolkit as OurToolkit

MakeToolkit: TypeAlias = Callable[..., Any]

# What is different in every run.
PASSING = {"id", "timestamp", "invocation_id", "created_at", "finished_at"}
MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?")


def settled(value: Any) -> Any:
    """Leave out what differs in every run."""
    if isinstance(value, dict):
        return {key: settled(item) for key, item in value.items() if key not in PASSING}
    if isinstance(value, list | tuple):
        return [settled(item) for item in value]
    return MOMENT.sub("<moment>", value) if isinstance(value, str) else value


@dataclass
class Transcript:
    """Everything that can be seen of an agent from outside."""

    printed: list[Any] = field(default_factory=list)
    shown: list[Any] = field(default_factory=list)
    replies: list[Any] = field(default_factory=list)
    memory: list[Any] = field(default_factory=list)
    notes: list[Any] = field(default_factory=list)


class Scene:
    """An agent with a toolkit of either library and a scripted model."""

    def __init__(self, toolkit: Any, model: ScriptedModel, **options: Any) -> None:
        self.transcript = Transcript()
        self.model = model
        self.agent = ReActAgent(
            name="Friday",
            sys_prompt="You are helpful.",
            model=model,
            formatter=OpenAIChatFormatter(),
            toolkit=toolkit,
            **options,
        )
        self.agent.set_console_output_enabled(False)
        self.agent.register_instance_hook("pre_print", "transcript", self._printed)

    def _printed(self, _agent: Any, arguments: dict[str, Any]) -> None:
        said = copy.deepcopy(arguments["msg"].to_dict())
        self.transcript.printed.append((settled(said), arguments.get("last")))

    async def send(self, text: str, **options: Any) -> Msg:
        """Send the agent a message and record its reply."""
        reply = await self.agent(Msg("user", text, "user"), **options)
        self.transcript.replies.append(settled(reply.to_dict()))
        return reply

    async def finish(self) -> Transcript:
        """Record what the model was shown and the memory of the agent."""
        self.transcript.shown = settled(self.model.shown)
        self.transcript.memory = settled([msg.to_dict() for msg in await self.agent.memory.get_memory()])
        return self.transcript


async def both(scenario: Callable[[MakeToolkit], Awaitable[Transcript]]) -> tuple[Transcript, Transcript]:
    """Run a scenario with AgentScope's toolkit and with ours."""
    return await scenario(AgentScopeToolkit), await scenario(OurToolkit)
