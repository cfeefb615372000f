"""Agents with AgentScope's own toolkit and with ours, and everything they did in a form that can be compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agentscope.agent import Agent
from agentscope.event import (
    ConfirmResult,
    RequireUserConfirmEvent,
    ToolResultEndEvent,
    UserConfirmResultEvent,
)
from agentscope.message import UserMsg
from agentscope.permission import PermissionContext, PermissionMode
from agentscope.state import AgentState
from agentscope.tool import FunctionTool, ToolGroup
from agentscope.tool import Toolkit as AgentScopeToolkit

import toolcrib
from support.agentscope2.scripted import ScriptedModel
from toolcrib.compat.agentscope2 import Toolkit as OurToolkit
from toolcrib.compat.agentscope2 import tool_groups, tools

Design: TypeAlias = Literal["A", "B"]
DESIGNS: Sequence[Design] = ("A", "B")
Functions: TypeAlias = Sequence[Callable[..., Any]]

# Values that differ in every run.
PASSING = {"id", "created_at", "finished_at", "reply_id", "block_id", "session_id", "timestamp", "usage"}
MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?")


def settled(value: Any) -> Any:
    """Leave out what differs in every run."""
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {key: settled(item) for key, item in value.items() if key not in PASSING}
    if isinstance(value, list | tuple):
        return [settled(item) for item in value]
    return MOMENT.sub("<moment>", value) if isinstance(value, str) else value


def crib(functions: Functions = (), groups: Mapping[str, Functions] | None = None, **options: Any) -> toolcrib.Toolkit:
    """Make a toolkit of toolcrib with functions, in `basic` and in groups."""
    kit = toolcrib.Toolkit(**options)
    for function in functions:
        kit.register_tool_function(function)
    for name, members in (groups or {}).items():
        kit.create_tool_group(name, f"The {name} tools.", notes=f"Take care of {name}.")
        for function in members:
            kit.register_tool_function(function, group_name=name)
    return kit


def with_crib(design: Design, kit: Any, **options: Any) -> AgentScopeToolkit:
    """Put the tools of toolcrib into a toolkit of AgentScope, by either design."""
    if design == "B":
        return OurToolkit(toolkit=kit, **options)
    middlewares = options.pop("middlewares", None)
    return AgentScopeToolkit(
        tools=tools(kit, middlewares=middlewares) + options.pop("tools", []),
        tool_groups=tool_groups(kit, middlewares=middlewares),
        **options,
    )


def theirs(functions: Functions = (), groups: Mapping[str, Functions] | None = None) -> AgentScopeToolkit:
    """Make AgentScope's own toolkit with functions, in `basic` and in groups."""
    return AgentScopeToolkit(
        tools=[FunctionTool(function) for function in functions],
        tool_groups=[
            ToolGroup(name, f"The {name} tools.", f"Take care of {name}.", [FunctionTool(it) for it in members])
            for name, members in (groups or {}).items()
        ],
    )


@dataclass
class Scene:
    """An agent with a scripted model, and the events that it emitted."""

    toolkit: Any
    model: ScriptedModel
    mode: PermissionMode = PermissionMode.BYPASS
    state: AgentState | None = None
    options: dict[str, Any] = field(default_factory=dict)
    events: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.state is None:
            self.state = AgentState(permission_context=PermissionContext(mode=self.mode))
        self.agent = Agent(
            name="Friday",
            system_prompt="You are helpful.",
            model=self.model,
            toolkit=self.toolkit,
            state=self.state,
            **self.options,
        )

    async def send(self, inputs: Any = "go", **options: Any) -> list[Any]:
        """Send a message or an event; return the new events."""
        if isinstance(inputs, str):
            inputs = UserMsg("user", inputs)
        new = []
        async for event in self.agent.reply_stream(inputs, **options):
            self.events.append(event)
            new.append(event)
        return new

    async def answer(self, confirmed: bool, *, rules: Any = None, input: str | None = None) -> list[Any]:
        """Answer the questions that wait."""
        asked = self.asked()
        results = []
        for block in asked.tool_calls:
            if input is not None:
                block = block.model_copy(update={"input": input})
            results.append(ConfirmResult(confirmed=confirmed, tool_call=block, rules=rules))
        return await self.send(UserConfirmResultEvent(reply_id=asked.reply_id, confirm_results=results))

    def asked(self) -> RequireUserConfirmEvent:
        """Return the last question."""
        return [event for event in self.events if isinstance(event, RequireUserConfirmEvent)][-1]

    def questions(self) -> int:
        """Count the questions."""
        return sum(len(it.tool_calls) for it in self.events if isinstance(it, RequireUserConfirmEvent))

    def states(self) -> list[str]:
        """Return the states of the results, in order."""
        return [str(event.state) for event in self.events if isinstance(event, ToolResultEndEvent)]

    def results(self) -> list[Any]:
        """Return the results in the context of the agent."""
        return [
            block
            for message in self.agent.state.context
            for block in (message.content if isinstance(message.content, list) else [])
            if block.type == "tool_result"
        ]

    def texts(self) -> list[str]:
        """Return the texts of the results."""
        return [text_of(result) for result in self.results()]

    def transcript(self) -> dict[str, Any]:
        """Return everything that can be seen of the agent from outside."""
        return {
            "events": settled(self.events),
            "shown": settled(self.model.shown),
            "context": settled(self.agent.state.context),
            "active": list(self.agent.state.tool_context.activated_groups),
        }


def text_of(result: Any) -> str:
    """Return the text of a result."""
    output = result.output if hasattr(result, "output") else result.content
    if isinstance(output, str):
        return output
    return "".join(block.text for block in output if block.type == "text")
