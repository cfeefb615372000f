"""Sub-agents of AgentScope as tools: a class of agents, called with the fields of its input model."""

from __future__ import annotations

import asyncio
import inspect
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolcrib._core import ToolResponse, _DeclaredSchema
from toolcrib.errors import SubAgentUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

__all__ = ["SubAgentSpec", "SubAgentUnavailable", "make_subagent_tool"]

GROUP = "subagents"
"""The group that sub-agent tools are registered in."""

RECENT_RESULTS = 4
"""The number of messages with tool results in the delegation context."""


@dataclass(frozen=True)
class SubAgentSpec:
    """A sub-agent of a host.

    Args:
        name: The name of the sub-agent.
        tools: Tools that it may use, if its class takes a `toolkit`.
        description: The description for the calling model; the docstring of its class if it is None.
        sys_prompt: The system prompt, if its class takes one; the description if it is None.
    """

    name: str
    tools: Sequence[Callable[..., Any]] | None = None
    description: str | None = None
    sys_prompt: str | None = None


async def make_subagent_tool(
    cls: Any,
    spec: SubAgentSpec,
    *,
    host: Any,
    tool_name: str | None = None,
    ephemeral_memory: bool = True,
    override_model: Any = None,
) -> tuple[Callable[..., Coroutine[Any, Any, Any]], dict[str, Any]]:
    """Make a tool of a class of agents: `toolkit.register_tool_function(func, **register_kwargs)`.

    The class has an `InputModel`, a pydantic model whose fields are the parameters of the tool. Each call constructs a
    new agent and calls its `reply` with an object of that model, or with a message if `reply` is AgentScope's own. The
    constructor is given those of `name`, `model`, `sys_prompt`, `formatter`, `toolkit`, `memory`, `host`, `spec` and
    `delegation_context` that it has parameters for.

    Args:
        cls: The class of the sub-agent.
        spec: The sub-agent.
        host: The agent that calls it, whose model it inherits.
        tool_name: The name of the tool; `NAME_tool` if it is None.
        ephemeral_memory: Clear the memory of the sub-agent after each call.
        override_model: A model in place of the host's.

    Returns:
        The function, and the options to register it with. Registering it without its `json_schema` is an error.

    Raises:
        SubAgentUnavailable: If the class has no `InputModel`, there is no model, the host calls tools in parallel, or
            the sub-agent cannot be constructed.
    """
    subagent = _SubAgent(cls, spec, host, ephemeral_memory, override_model)
    await subagent.try_construction()
    name = tool_name or f"{spec.name}_tool"
    description = spec.description or inspect.getdoc(cls) or f"Delegate a task to the sub-agent {spec.name}."

    async def call(**raw_input: Any) -> Any:
        return await subagent.call(raw_input)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = description
    call.__requires_json_schema__ = True  # type: ignore[attr-defined]
    function = {"name": name, "description": description, "parameters": subagent.schema}
    options = {
        "func_description": description,
        "json_schema": {"type": "function", "function": function},
        "preset_kwargs": {},
        "group_name": GROUP,
    }
    _add_group(getattr(host, "toolkit", None))
    return call, options


def _add_group(toolkit: Any) -> None:
    """Give the host's toolkit the active group that its sub-agents belong to."""
    groups = getattr(toolkit, "groups", None)
    if groups is not None and GROUP not in groups:
        toolkit.create_tool_group(GROUP, description="Sub-agents that tasks can be delegated to.", active=True)


class _SubAgent:
    """The class of a sub-agent, with its host."""

    def __init__(self, cls: Any, spec: SubAgentSpec, host: Any, ephemeral: bool, override_model: Any) -> None:
        self.cls, self.spec, self.host, self.ephemeral = cls, spec, host, ephemeral
        self.input_model = getattr(cls, "InputModel", None)
        if not (isinstance(self.input_model, type) and hasattr(self.input_model, "model_validate")):
            raise SubAgentUnavailable(f"sub-agent `{spec.name}`: its class has no pydantic model `InputModel`")
        self.model = override_model if override_model is not None else getattr(host, "model", None)
        if self.model is None:
            raise SubAgentUnavailable(f"sub-agent `{spec.name}`: the host has no `model`: pass `override_model`")
        if getattr(host, "parallel_tool_calls", False):
            raise SubAgentUnavailable(f"sub-agent `{spec.name}`: the host calls tools in parallel")
        self.supervisor = getattr(host, "name", None)
        self.schema = _DeclaredSchema(self.input_model).schema

    async def try_construction(self) -> None:
        try:
            await self.construct({})
        except Exception as error:
            raise SubAgentUnavailable(f"sub-agent `{self.spec.name}` cannot be constructed: {error}") from error

    async def construct(self, context: dict[str, Any]) -> Any:
        """Construct an agent that prints nothing."""
        offered: dict[str, Callable[[], Any]] = {
            "name": lambda: self.spec.name,
            "model": lambda: self.model,
            "sys_prompt": lambda: self.spec.sys_prompt or self.spec.description or inspect.getdoc(self.cls) or "",
            "formatter": lambda: getattr(self.host, "formatter", None),
            "toolkit": self.make_toolkit,
            "memory": self.make_memory,
            "host": lambda: self.host,
            "spec": lambda: self.spec,
            "delegation_context": lambda: context,
        }
        parameters = inspect.signature(self.cls).parameters
        agent = self.cls(**{name: make() for name, make in offered.items() if name in parameters})
        if inspect.isawaitable(agent):
            agent = await agent
        if not callable(getattr(agent, "reply", None)):
            raise TypeError(f"{type(agent).__name__} has no method `reply`")
        silence = getattr(agent, "set_console_output_enabled", None)
        if callable(silence):
            silence(False)
        if "delegation_context" not in parameters:
            agent.delegation_context = context
        return agent

    def make_toolkit(self) -> Any:
        from toolcrib.compat.agentscope import Toolkit

        toolkit = Toolkit()
        for tool in self.spec.tools or ():
            toolkit.register_tool_function(tool)
        return toolkit

    def make_memory(self) -> Any:
        memory = sys.modules.get("agentscope.memory")
        return None if memory is None else memory.InMemoryMemory()

    async def call(self, raw_input: dict[str, Any]) -> Any:
        try:
            given = self.input_model.model_validate(raw_input)  # type: ignore[union-attr]
        except ValueError as error:
            problems = (
                error.errors(include_url=False, include_context=False) if hasattr(error, "errors") else [str(error)]
            )
            return self.respond(f"Subagent input validation failed. {error}", {"unavailable": True, "error": problems})
        context: dict[str, Any] = {}
        try:
            context.update(await self.delegation_context())
            agent = await self.construct(context)
            try:
                reply = await self.delegate(agent, given)
            finally:
                await self.forget(agent)
            return self.fold(reply, context)
        except Exception as error:
            diagnosis = {"type": type(error).__name__, "message": str(error)}
            more = {"unavailable": True, "error": [diagnosis], "delegation_context": context}
            return self.respond("Subagent execution unavailable. See metadata for diagnostics.", more)

    async def delegation_context(self) -> dict[str, Any]:
        """The conversation of the host, and what else a sub-agent may need of it."""
        messages = [_as_dict(message) for message in await _messages_of(getattr(self.host, "memory", None))]
        results = [message for message in messages if _has_block(message, "tool_result")]
        return {
            "conversation": messages,
            "recent_tool_results": results[-RECENT_RESULTS:],
            "long_term_refs": list(getattr(self.host, "long_term_refs", None) or ()),
            "safety_flags": dict(getattr(self.host, "safety_flags", None) or {}),
        }

    async def delegate(self, agent: Any, given: Any) -> Any:
        """Call the agent with its input, which its memory holds as a message of the user."""
        is_foreign = _module_of(type(agent).reply).split(".")[0] == "agentscope"
        message = _message(self.supervisor or "user", given)
        if is_foreign:
            return await agent.reply(message)
        add = getattr(getattr(agent, "memory", None), "add", None)
        if callable(add) and message is not None:
            await _settled(add(message))
        return await _settled(agent.reply(given))

    async def forget(self, agent: Any) -> None:
        clear = getattr(getattr(agent, "memory", None), "clear", None)
        if self.ephemeral and callable(clear):
            await _settled(clear())

    def fold(self, reply: Any, context: dict[str, Any]) -> Any:
        """Make one response of the agent's message."""
        more: dict[str, Any] = {"delegation_context": context}
        metadata = getattr(reply, "metadata", None)
        if metadata:
            more["response_metadata"] = metadata
        content = reply.content if hasattr(reply, "content") else reply
        if isinstance(content, (list, tuple)):
            return self.respond([block for block in content if _is_result(block)], more)
        return self.respond("" if content is None else str(content), more)

    def respond(self, content: str | list[Any], more: dict[str, Any]) -> Any:
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        metadata = {"subagent": self.spec.name, "supervisor": self.supervisor, **more}
        return _response_class()(content=blocks, metadata=metadata, is_last=True)


def _response_class() -> Any:
    """AgentScope's own class if it is loaded, which every toolkit accepts."""
    loaded = sys.modules.get("agentscope.tool")
    return ToolResponse if loaded is None else loaded.ToolResponse


def _message(name: str, given: Any) -> Any:
    """A message of the user with the input, if AgentScope is loaded."""
    loaded = sys.modules.get("agentscope.message")
    if loaded is None:
        return None
    fields = given.model_dump(mode="json")
    texts = [value for value in fields.values() if isinstance(value, str)]
    text = texts[0] if len(fields) == len(texts) == 1 else given.model_dump_json()
    return loaded.Msg(name, text, "user")


def _module_of(function: Any) -> str:
    return getattr(inspect.unwrap(function), "__module__", None) or ""


async def _messages_of(memory: Any) -> list[Any]:
    read = getattr(memory, "get_memory", None)
    return [] if read is None else list(await _settled(read()) or ())


def _as_dict(message: Any) -> Any:
    return message.to_dict() if callable(getattr(message, "to_dict", None)) else message


def _has_block(message: Any, kind: str) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(isinstance(block, dict) and block.get("type") == kind for block in content)


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in ("text", "image", "audio", "video")


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) or asyncio.isfuture(value) else value
