"""The registration of sub-agents: any loop becomes a coroutine function or an async generator function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any

from toolcrib import _core
from toolcrib._agent_loop import AgentBudget, agent_loop
from toolcrib._worker import in_thread

if TYPE_CHECKING:
    from toolcrib._core import AgentDefinition, AgentRun, Session

__all__ = ["agent_tool"]


def agent_tool(
    toolkit: Any,
    definition: AgentDefinition,
    run: Callable[..., Any] | None,
    model: Callable[..., Any] | None,
    depth: int,
    budget: AgentBudget | None,
) -> _core._AgentTool:
    """Make the function of a tool that is an agent.

    Raises:
        TypeError: If not exactly one of `run` and `model` is given, or one of them is not callable.
        ValueError: If `depth` is not positive, or the view is that of another toolkit.
    """
    if run is None and model is None and callable(definition.model):
        model = definition.model
    if (run is None) == (model is None):
        raise TypeError(
            f"agent `{definition.name}`: expected either `run`, the loop, or `model`, a model function, "
            f"got {'both' if run is not None else 'neither'}"
        )
    if depth < 1:
        raise ValueError(f"agent `{definition.name}`: depth must be a positive number of agents, not {depth}")
    if definition.view is not None and definition.view.toolkit is not toolkit:
        raise ValueError(f"agent `{definition.name}`: its view is that of another toolkit")
    budget = AgentBudget() if budget is None else budget
    limits = definition.limits
    return _core._AgentTool(
        definition.name,
        definition.description,
        definition.parameters,
        agent_loop(definition, model) if model is not None else _as_async(definition, run),
        tools=definition.tools or None,
        groups=definition.groups or None,
        view=definition.view,
        depth=depth,
        turns=budget.turns,
        calls=budget.calls,
        budget_tokens=budget.tokens,
        tokens=limits.tokens,
        time=limits.time,
        is_timed=model is None,  # the ready-made loop ends its run itself, to give it a recovery turn
    )


def _as_async(definition: AgentDefinition, run: Any) -> Callable[..., Any]:
    """Make any loop a coroutine function or an async generator function."""
    if not callable(run):
        raise TypeError(f"agent `{definition.name}`: run must be callable, not {type(run).__name__}")
    if inspect.isclass(run) or (hasattr(run, "reply") and hasattr(run, "observe")):
        return _run_of_agent(definition, run)
    method = run if inspect.isroutine(run) or isinstance(run, functools.partial) else type(run).__call__
    if inspect.iscoroutinefunction(method):

        async def run_coroutine(inputs: Any, session: Any, emit: Any) -> Any:
            return await run(inputs, session, emit)

        return run if inspect.isroutine(run) else run_coroutine
    if inspect.isasyncgenfunction(method):

        async def run_generator(inputs: Any, session: Any, emit: Any) -> AsyncIterator[Any]:
            async for item in run(inputs, session, emit):
                yield item

        return run if inspect.isroutine(run) else run_generator

    async def run_in_thread(inputs: Any, session: Any, emit: Any) -> Any:
        result = await in_thread(run, inputs, session, emit)
        return await result if inspect.isawaitable(result) else result

    return run_in_thread


def _run_of_agent(definition: AgentDefinition, agent: Any) -> Callable[..., Any]:
    """Make a loop of an agent of AgentScope, or of a class whose objects are called with a message.

    A class is instantiated for each run, with those of these arguments that its constructor has: `name`,
    `sys_prompt` or `system_prompt`, `toolkit` or `session`, `emit`, `definition` and `inputs`.
    """

    async def run(inputs: Mapping[str, Any], session: Session[Any], emit: AgentRun) -> Any:
        prompt = definition.render(inputs)
        offered = {
            "name": definition.name,
            "sys_prompt": prompt.system_prompt or "",
            "system_prompt": prompt.system_prompt or "",
            "toolkit": _SessionToolkit(session),
            "session": session,
            "emit": emit,
            "definition": definition,
            "inputs": dict(inputs),
        }
        one = agent
        if inspect.isclass(agent):
            known = inspect.signature(agent).parameters
            one = agent(**{name: value for name, value in offered.items() if name in known})
        answer = one(_message(one, prompt.query))
        if inspect.isawaitable(answer):
            answer = await answer
        text = getattr(answer, "get_text_content", None)
        return answer if text is None else text() or ""

    return run


class _SessionToolkit:
    """The session of a run, with the methods of a toolkit that the agents of AgentScope call."""

    def __init__(self, session: Session[Any]) -> None:
        self._session = session

    def get_agent_skill_prompt(self) -> str | None:
        """Return the prompt of the skills."""
        return self._session.toolkit.get_agent_skill_prompt()

    def remove_tool_function(self, tool_name: str, allow_not_exist: bool = True) -> None:
        """Leave the tools of the toolkit alone, which others use."""

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the session."""
        return getattr(self._session, name)


def _message(agent: Any, query: str) -> Any:
    """The message of the user: one of AgentScope for its agents, and text for others."""
    if any(base.__module__.partition(".")[0] == "agentscope" for base in type(agent).__mro__):
        from importlib import import_module

        return import_module("agentscope.message").Msg("user", query, "user")
    return query
