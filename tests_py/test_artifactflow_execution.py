"""ArtifactFlow's permission interrupt: a call runs at once, or waits for the answer of the user."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from toolcrib.compat.artifactflow import (
    BaseTool,
    CallSubagentTool,
    PermissionRequest,
    ToolExecution,
    ToolParameter,
    ToolPermission,
    ToolRegistry,
    ToolResult,
    parse_tool_calls,
)
from toolcrib.errors import AlteredPendingError, ApprovalError, ExpiredPendingError, UsedPendingError
from toolcrib.policy import Approvals


class Delete(BaseTool):
    """A tool that needs permission, and records its runs."""

    def __init__(self, permission: ToolPermission = ToolPermission.CONFIRM) -> None:
        super().__init__("delete", "Delete a file.", permission)
        self.ran: list[dict[str, Any]] = []

    def get_parameters(self) -> list[ToolParameter]:
        return [
            ToolParameter("path", "string", "The file."),
            ToolParameter("force", "boolean", "Do not ask.", required=False, default=False),
        ]

    async def execute(self, **params: Any) -> ToolResult:
        self.ran.append(params)
        if params["path"] == "gone":
            raise FileNotFoundError("gone")
        return ToolResult(success=True, data={"deleted": params["path"]})


class Program:
    """A registry with one agent and one tool, and the events."""

    def __init__(self, tool: BaseTool, **options: Any) -> None:
        self.registry = ToolRegistry()
        self.registry.register_tool_to_library(tool)
        self.registry.create_agent_toolkit("lead", [tool.name])
        self.events: list[dict[str, Any]] = []
        self.execution = ToolExecution(self.registry, self.events.append, **options)

    def types(self) -> list[str]:
        """The types of the events since the last look."""
        types = [event["type"] for event in self.events]
        self.events.clear()
        return types

    async def ask(self, **params: Any) -> PermissionRequest:
        """Execute a call that needs permission."""
        request = await self.execution.execute("lead", "delete", params)
        assert isinstance(request, PermissionRequest)
        return request


async def test_a_tool_that_needs_no_permission_runs_at_once() -> None:
    tool = Delete(ToolPermission.AUTO)
    program = Program(tool)

    result = await program.execution.execute("lead", "delete", {"path": "a"})

    assert result == ToolResult(True, {"deleted": "a"})
    start, complete = program.events
    assert (start["type"], start["agent"], start["tool"]) == ("tool_start", "lead", "delete")
    assert start["data"] == {"params": {"path": "a"}}
    assert datetime.fromisoformat(start["timestamp"]).tzinfo is not None
    assert complete["type"] == "tool_complete"
    assert complete["data"] == {"success": True, "duration_ms": complete["data"]["duration_ms"], "error": None}


async def test_a_request_has_what_the_user_needs_to_know() -> None:
    program = Program(Delete())

    request = await program.ask(path="a")

    shown = request.to_dict()
    assert {key: shown[key] for key in ("type", "agent", "tool_name", "params", "permission_level")} == {
        "type": "tool_permission",
        "agent": "lead",
        "tool_name": "delete",
        "params": {"path": "a"},
        "permission_level": "confirm",
    }
    assert "delete" in shown["message"]
    assert json.loads(json.dumps(shown)) == shown
    (event,) = program.events
    assert (event["type"], event["data"]) == (
        "permission_request",
        {"permission_level": "confirm", "params": {"path": "a"}},
    )


async def test_an_approved_call_runs_and_each_event_is_emitted_once() -> None:
    tool = Delete()
    program = Program(tool)
    request = await program.ask(path="a")
    first = program.types()

    result = await program.execution.resume(request, True)

    assert first == ["permission_request"]
    assert program.events[0]["data"] == {"approved": True}
    assert program.types() == ["permission_result", "tool_start", "tool_complete"]
    assert (result, tool.ran) == (ToolResult(True, {"deleted": "a"}), [{"path": "a", "force": False}])


@pytest.mark.parametrize("answer", [False, None, "yes", 1])
async def test_a_call_that_is_not_approved_does_not_run(answer: Any) -> None:
    tool = Delete()
    program = Program(tool)
    request = await program.ask(path="a")
    program.types()

    result = await program.execution.resume(request, answer)

    assert program.events[0]["data"] == {"approved": False}
    assert program.types() == ["permission_result"]
    assert result.error == "Permission denied by user. You do not have permission to use this tool."
    assert (result.success, tool.ran, program.execution.metrics) == (False, [], [])


async def test_each_call_that_needs_permission_is_a_request_of_its_own() -> None:
    tool = Delete()
    program = Program(tool)
    first = await program.ask(path="a")
    await program.execution.resume(first, True)

    second = await program.ask(path="b")

    assert second.pending["id"] != first.pending["id"]
    assert len(tool.ran) == 1
    await program.execution.resume(second, True)
    assert [params["path"] for params in tool.ran] == ["a", "b"]


async def test_a_request_is_answered_once() -> None:
    tool = Delete()
    program = Program(tool)
    approved, denied = await program.ask(path="a"), await program.ask(path="b")
    await program.execution.resume(approved, True)
    await program.execution.resume(denied, False)
    program.types()

    for request in (approved, denied):
        with pytest.raises(UsedPendingError):
            await program.execution.resume(request, True)

    assert (len(tool.ran), program.types()) == (1, [])


async def test_the_call_that_was_approved_is_the_one_that_runs() -> None:
    tool = Delete()
    program = Program(tool)
    request = await program.ask(path="a")

    await program.execution.resume(replace(request, params={"path": "b"}), True)

    assert [params["path"] for params in tool.ran] == ["a"]


@pytest.mark.parametrize("changes", [{"arguments": {"params": {"path": "b"}}}, {"caller": "x"}, {}])
async def test_a_request_that_was_modified_is_refused(changes: Mapping[str, Any]) -> None:
    tool = Delete()
    program = Program(tool)
    request = await program.ask(path="a")
    pending = {**request.pending, **changes} if changes else {}

    with pytest.raises(ApprovalError):
        await program.execution.resume(replace(request, pending=pending), True)

    assert tool.ran == []


async def test_a_request_for_another_tool_runs_none() -> None:
    tool = Delete()
    program = Program(tool)
    request = await program.ask(path="a")

    with pytest.raises(AlteredPendingError):
        await program.execution.resume(replace(request, pending={**request.pending, "tool": "other"}), True)

    assert tool.ran == []


async def test_a_request_of_another_agent_is_refused() -> None:
    tool = Delete()
    program = Program(tool)
    program.registry.create_agent_toolkit("helper", ["delete"])
    request = await program.ask(path="a")

    with pytest.raises(ApprovalError):
        await program.execution.resume(replace(request, agent="helper"), True)

    assert tool.ran == []


async def test_a_request_expires() -> None:
    tool = Delete()
    program = Program(tool, approvals=Approvals(ttl=0.001))
    request = await program.ask(path="a")
    await asyncio.sleep(0.05)

    with pytest.raises(ExpiredPendingError):
        await program.execution.resume(request, True)

    assert tool.ran == []


async def test_a_request_survives_a_restart(tmp_path: Path) -> None:
    saved = json.dumps((await Program(Delete(), approvals=Approvals(tmp_path / "a")).ask(path="a")).to_dict())
    tool = Delete()
    restarted = Program(tool, approvals=Approvals(tmp_path / "a"))

    result = await restarted.execution.resume(json.loads(saved), True)

    assert (result.success, len(tool.ran)) == (True, 1)


async def test_the_tool_itself_validates_its_parameters_after_the_answer() -> None:
    program = Program(Delete())

    missing = await program.execution.resume(await program.ask(), True)
    unknown = await program.execution.resume(await program.ask(path="a", x=1), True)
    failed = await program.execution.resume(await program.ask(path="gone"), True)

    assert (missing.error, unknown.error) == ("Missing required parameter: path", "Unknown parameter: x")
    assert failed.error == "Tool execution failed: gone"
    assert [record["success"] for record in program.execution.metrics] == [False, False, False]
    assert program.events[-1]["data"]["error"] == "Tool execution failed: gone"


async def test_an_unknown_agent_or_tool_is_a_failed_result() -> None:
    program = Program(Delete())
    request = await program.ask(path="a")
    program.registry.create_agent_toolkit("lead")

    nowhere = await program.execution.execute("nobody", "delete")
    nothing = await program.execution.execute("lead", "delete", {})
    removed = await program.execution.resume(request, True)

    assert nowhere == ToolResult(False, error="Agent 'nobody' or toolkit not available")
    assert nothing == removed == ToolResult(False, error="Tool 'delete' not found")


async def test_a_permission_may_be_changed_afterwards() -> None:
    tool = Delete(ToolPermission.AUTO)
    program = Program(tool)

    tool.permission = ToolPermission.CONFIRM

    await program.ask(path="a")
    assert tool.ran == []


async def test_parameters_that_cannot_be_stored_are_a_failed_result() -> None:
    program = Program(Delete())

    result = await program.execution.execute("lead", "delete", {"path": object()})

    assert isinstance(result, ToolResult)
    assert not result.success


async def test_a_record_of_each_run_is_kept() -> None:
    program = Program(Delete(ToolPermission.AUTO))

    await program.execution.execute("lead", "delete", {"path": "a"})

    (record,) = program.execution.metrics
    assert set(record) == {"tool_name", "success", "duration_ms", "called_at", "completed_at", "agent"}
    assert (record["tool_name"], record["success"], record["agent"]) == ("delete", True, "lead")
    assert record["called_at"] <= record["completed_at"]


async def test_a_handler_that_fails_does_not_reach_the_call(caplog: pytest.LogCaptureFixture) -> None:
    tool = Delete(ToolPermission.AUTO)
    program = Program(tool)

    def fail(event: object) -> None:
        raise RuntimeError("broken")

    result = await ToolExecution(program.registry, fail).execute("lead", "delete", {"path": "a"})

    assert isinstance(result, ToolResult)
    assert (result.success, "broken" in caplog.text) == (True, True)


async def test_a_message_of_a_model_is_executed() -> None:
    tool = Delete(ToolPermission.AUTO)
    program = Program(tool)
    text = "<tool_call><name>delete</name><params><path><![CDATA[a]]></path></params></tool_call>"

    (call,) = parse_tool_calls(text)
    await program.execution.execute("lead", call.name, call.params)

    assert tool.ran == [{"path": "a", "force": False}]


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"agent_name": "x", "instruction": "a"}, "Invalid agent_name 'x'. Must be one of: search_agent, crawl_agent"),
        ({"agent_name": "search_agent", "instruction": "  "}, "instruction parameter cannot be empty"),
        ({"agent_name": "search_agent"}, "Missing required parameter: instruction"),
    ],
)
async def test_a_route_that_leads_nowhere_is_a_failed_result(params: dict[str, Any], error: str) -> None:
    assert (await CallSubagentTool()(**params)).error == error


@pytest.mark.parametrize("permission", list(ToolPermission))
async def test_a_tool_runs_under_the_name_that_the_toolkit_has_for_it(permission: ToolPermission) -> None:
    program = Program(Delete())
    toolkit = program.registry.create_agent_toolkit("lead")
    toolkit.tools["remove"] = Delete(permission)

    outcome = await program.execution.execute("lead", "remove", {"path": "a"})
    if isinstance(outcome, PermissionRequest):
        outcome = await program.execution.resume(outcome, True)

    assert outcome.data == {"deleted": "a"}
    assert {event["tool"] for event in program.events} == {"remove"}
    assert program.execution.metrics[0]["tool_name"] == "remove"


@pytest.mark.parametrize(("instruction", "expected"), [(" find ", "find"), (123, "123"), (0, "0"), (False, "False")])
async def test_a_route_has_the_instruction_as_text(instruction: Any, expected: str) -> None:
    tool = CallSubagentTool(["helper"])

    result = await tool(agent_name="helper", instruction=instruction)

    assert result.data == {"agent_name": "helper", "instruction": expected}
    assert result.metadata["routing"] == {"type": "subagent", "target": "helper", "instruction": expected}
    assert tool.json_schema["function"]["parameters"]["properties"]["agent_name"]["enum"] == ["helper"]
