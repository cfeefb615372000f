"""The execution of tool calls with permissions: run at once, or suspend until the user has answered."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from enum import Enum
from typing import Any

from toolcrib import Toolkit
from toolcrib._core import Approvals, ToolkitView
from toolcrib.compat.artifactflow.base import BaseTool, ToolPermission, ToolResult
from toolcrib.compat.artifactflow.registry import AgentToolkit, ToolRegistry

__all__ = ["EventType", "PermissionRequest", "ToolExecution"]

DENIED = "Permission denied by user. You do not have permission to use this tool."

log = logging.getLogger("toolcrib")


class EventType(Enum):
    """The types of events; a `ToolExecution` emits the last four, and the program that runs agents the others."""

    METADATA = "metadata"
    COMPLETE = "complete"
    ERROR = "error"
    AGENT_START = "agent_start"
    LLM_CHUNK = "llm_chunk"
    LLM_COMPLETE = "llm_complete"
    AGENT_COMPLETE = "agent_complete"
    TOOL_START = "tool_start"
    TOOL_COMPLETE = "tool_complete"
    PERMISSION_REQUEST = "permission_request"
    PERMISSION_RESULT = "permission_result"


@dataclass(frozen=True)
class PermissionRequest:
    """A call that waits for the permission of the user; `ToolExecution.resume` continues it once.

    Attributes:
        agent: The agent that calls.
        tool_name: The tool.
        params: The parameters. They are for the user: the call that is resumed has its own in `pending`.
        permission_level: The value of the tool's permission.
        message: The question.
        pending: The signed call.
        type: `"tool_permission"`.
    """

    agent: str
    tool_name: str
    params: dict[str, Any]
    permission_level: str
    message: str
    pending: dict[str, Any]
    type: str = "tool_permission"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values, to be stored until the user answers."""
        return asdict(self)


class ToolExecution:
    """Runs the calls of agents, each of which ends with a result or a request for permission.

    `execute` runs a tool with the permission `AUTO` and returns its result. For any other permission it returns a
    `PermissionRequest`, and `resume` continues the call when the user has answered. A request can be answered once, by
    this object or another with the same approvals, and expires. A call that was not answered does not run.

    Args:
        registry: The tools of the agents.
        on_event: Called with each event: a dictionary of `type`, `agent`, `tool`, `timestamp` and `data`.
        approvals: The requests that wait; `Approvals(folder)` keeps them across a restart.

    Attributes:
        metrics: One record for each tool that has run: `tool_name`, `success`, `duration_ms`, `called_at`,
            `completed_at` and `agent`.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        on_event: Callable[[dict[str, Any]], object] | None = None,
        approvals: Approvals | None = None,
    ) -> None:
        self.metrics: list[dict[str, Any]] = []
        self._registry = registry
        self._on_event = on_event
        self._approvals = approvals or Approvals()

    async def execute(
        self, agent_name: str, tool_name: str, params: Mapping[str, Any] | None = None
    ) -> ToolResult | PermissionRequest:
        """Run a call, or ask for permission.

        Args:
            agent_name: The agent that calls.
            tool_name: The tool.
            params: The parameters.
        """
        found, given = self._find(agent_name, tool_name), dict(params or {})
        if isinstance(found, ToolResult):
            return found
        toolkit, tool = found
        if tool.permission is ToolPermission.AUTO:
            return await self._run(toolkit, tool_name, given)
        response = await self._confirmed(toolkit, tool_name, tool, []).call(tool_name, params=given)
        pending = (response.metadata or {}).get("pending")
        if pending is None:
            return ToolResult(success=False, error=response.text)
        level = tool.permission.value
        message = f"Tool '{tool_name}' requires permission to run"
        self._emit(EventType.PERMISSION_REQUEST, agent_name, tool_name, {"permission_level": level, "params": given})
        return PermissionRequest(agent_name, tool_name, given, level, message, pending)

    async def resume(self, request: PermissionRequest | Mapping[str, Any], approved: bool) -> ToolResult:
        """Continue a call with the answer of the user.

        Args:
            request: The request, or its fields.
            approved: True to run the call; anything else denies it.

        Raises:
            ApprovalError: If the request was answered before, has expired, was modified, or is about a tool that has
                changed. The call does not run.
        """
        if not isinstance(request, PermissionRequest):
            request = PermissionRequest(**request)
        found = self._find(request.agent, request.tool_name)
        if isinstance(found, ToolResult):
            return found
        toolkit, tool = found
        results: list[ToolResult] = []
        answer = approved is True
        text = ""
        async for response in self._confirmed(toolkit, request.tool_name, tool, results).resume(
            request.pending, answer
        ):
            text = response.text
        if results:
            return results[0]
        if answer:
            return ToolResult(success=False, error=text)
        self._emit(EventType.PERMISSION_RESULT, request.agent, request.tool_name, {"approved": False})
        return ToolResult(success=False, error=DENIED)

    def _find(self, agent_name: str, tool_name: str) -> tuple[AgentToolkit, BaseTool] | ToolResult:
        toolkit = self._registry.get_agent_toolkit(agent_name)
        if toolkit is None:
            return ToolResult(success=False, error=f"Agent '{agent_name}' or toolkit not available")
        tool = toolkit.get_tool(tool_name)
        return (toolkit, tool) if tool else ToolResult(success=False, error=f"Tool '{tool_name}' not found")

    def _confirmed(self, agent: AgentToolkit, name: str, tool: BaseTool, results: list[ToolResult]) -> ToolkitView:
        """A toolkit in which the tool needs approval, on behalf of an agent."""

        async def run(params: dict[str, Any]) -> None:
            self._emit(EventType.PERMISSION_RESULT, agent.agent_name, name, {"approved": True})
            results.append(await self._run(agent, name, params))

        # The parameters are one argument, so that the tool itself validates them. A request is bound to this schema.
        own = tool.json_schema["function"]
        parameters = {"type": "object", "properties": {"params": own["parameters"]}, "required": ["params"]}
        schema = {"type": "function", "function": {**own, "name": name, "parameters": parameters}}
        toolkit = Toolkit(arguments="pass", approvals=self._approvals)
        toolkit.register_tool_function(run, func_name=name, json_schema=schema, permission="confirm")
        return toolkit.view(caller=agent.agent_name)

    async def _run(self, agent: AgentToolkit, tool_name: str, params: dict[str, Any]) -> ToolResult:
        agent_name = agent.agent_name
        self._emit(EventType.TOOL_START, agent_name, tool_name, {"params": params})
        called_at, start = _now(), time.monotonic()
        result = await agent.execute_tool(tool_name, params)
        duration = int((time.monotonic() - start) * 1000)
        is_ok, error = getattr(result, "success", True), getattr(result, "error", None)
        self.metrics.append(
            {
                "tool_name": tool_name,
                "success": is_ok,
                "duration_ms": duration,
                "called_at": called_at,
                "completed_at": _now(),
                "agent": agent_name,
            }
        )
        data = {"success": is_ok, "duration_ms": duration, "error": error}
        self._emit(EventType.TOOL_COMPLETE, agent_name, tool_name, data)
        return result

    def _emit(self, type: EventType, agent_name: str, tool_name: str, data: dict[str, Any]) -> None:
        if self._on_event is None:
            return
        event = {"type": type.value, "agent": agent_name, "tool": tool_name, "timestamp": _now(), "data": data}
        try:
            self._on_event(event)
        except Exception:
            log.exception("the handler of the event '%s' failed", type.value)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat()
