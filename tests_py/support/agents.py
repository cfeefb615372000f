"""Sub-agents: definitions, models that follow a script, and the events in a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.streams import block, read
from toolcrib import AgentDefinition, AgentInput, Toolkit, ToolResponse
from toolcrib.agent import ModelReply

TASK = {"task": AgentInput("string", "The task.")}


def finder(name: str = "finder", **options: Any) -> AgentDefinition:
    """An agent with one input, `task`."""
    given: dict[str, Any] = {"inputs": TASK, "system_prompt": "Find it.", "query": "${task}", **options}
    return AgentDefinition(name, "Finds things.", **given)


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    """A call, as a model function may return it."""
    return {"name": name, "arguments": arguments}


def done(**arguments: Any) -> dict[str, Any]:
    """A call that completes the task."""
    return call("complete_task", **arguments)


class Script:
    """A model function that gives prepared replies: each is a reply, an exception, or a function that makes one."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.messages: list[list[dict[str, Any]]] = []
        self.schemas: list[list[str]] = []

    async def __call__(self, messages: list[dict[str, Any]], schemas: list[dict[str, Any]]) -> Any:
        self.messages.append(messages)
        self.schemas.append([schema["function"]["name"] for schema in schemas])
        reply = self.replies.pop(0)
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, Callable):  # type: ignore[arg-type]
            reply = await reply()
        return ModelReply(calls=reply) if isinstance(reply, list) else reply

    @property
    def seen(self) -> list[str]:
        """The texts of the messages that the last request has had."""
        return [str(message.get("content")) for message in self.messages[-1]]


def activities(responses: list[ToolResponse]) -> list[tuple[str, dict[str, Any]]]:
    """The events among responses: kind and data."""
    found = [
        response.metadata["activity"] for response in responses if response.mode == "progress" and response.metadata
    ]
    return [(activity["type"], activity["data"]) for activity in found]


async def run_agent(
    definition: AgentDefinition, *replies: Any, tools: tuple[Any, ...] = (), **options: Any
) -> tuple[ToolResponse, list[tuple[str, dict[str, Any]]], Script]:
    """Run an agent with a script: its result, its events, and the script."""
    script = Script(*replies)
    kit = Toolkit(run_in="inline", **options)
    for tool in tools:
        kit.register_tool_function(tool)
    kit.register_agent(definition, model=script)
    responses = await read(kit.call_tool_function(block(definition.name, task="birds")))
    return responses[-1], activities(responses), script
