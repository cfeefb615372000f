"""`toolcrib.compat.gemini`: declarative tools and their registry."""

from __future__ import annotations

import logging
import sys
from typing import Any, ClassVar

import pytest

from support.gemini import CASES, ReadFileTool, ShellTool
from toolcrib import Policy, Toolkit, mcp
from toolcrib.compat.gemini import (
    BaseDeclarativeTool,
    BaseToolInvocation,
    CancelSignal,
    Config,
    DiscoveredMCPTool,
    Kind,
    MessageBus,
    MessageBusType,
    PolicyEngine,
    ToolConfirmationDetails,
    ToolConfirmationOutcome,
    ToolFailure,
    ToolInvocation,
    ToolRegistry,
    ToolResult,
)
from toolcrib.errors import InvalidParametersError
from toolcrib.policy import ApprovalRequest

ALLOW_ALL = {"rules": [{"decision": "allow"}]}


def registry_of(*tools: BaseDeclarativeTool[Any], **options: Any) -> ToolRegistry:
    registry = ToolRegistry(Config(**options))
    for tool in tools:
        registry.register_tool(tool)
    return registry


def remote(name: str = "search", server: str = "srv", **options: Any) -> DiscoveredMCPTool:
    async def call(**arguments: Any) -> str:
        return f"{server}: {arguments}"

    return DiscoveredMCPTool(call, server, name, "Search.", {"type": "object", "properties": {}}, **options)


@pytest.mark.parametrize("case", CASES["validate"], ids=lambda case: repr(case["params"]))
def test_parameters_are_validated_as_in_the_cases(case: dict[str, Any]) -> None:
    tool = ReadFileTool(schema=CASES["validate_schema"])

    assert tool.validate_tool_params(case["params"]) == case["error"]
    if case["error"] is None:
        assert tool.build(case["params"]).params == case["params"]
    else:
        with pytest.raises(InvalidParametersError) as raised:
            tool.build(case["params"])
        assert str(raised.value) == case["error"]


@pytest.mark.parametrize("case", CASES["cycle"], ids=lambda case: repr(case["schema"])[:30])
def test_a_schema_with_a_cycle_is_a_schema(case: dict[str, Any]) -> None:
    tool = ReadFileTool(schema={"type": "object", **case["schema"]})

    assert tool.build({"a": {"b": {}}}).params == {"a": {"b": {}}}


class Answering(BaseDeclarativeTool[dict[str, Any]]):
    """A tool whose invocations are those of a class that the test defines."""

    def __init__(self, invocation: Any) -> None:
        super().__init__("answer", "Answer", "Answer.", Kind.READ, {"type": "object", "properties": {}})
        self.invocation = invocation

    def create_invocation(self, params: dict[str, Any]) -> Any:
        return self.invocation(params)


class WithSignal(BaseToolInvocation[dict[str, Any]]):
    async def execute(self, signal: CancelSignal) -> ToolResult:  # type: ignore[override]
        return ToolResult(type(signal).__name__)


class WithoutSignal(BaseToolInvocation[dict[str, Any]]):
    def execute(self) -> ToolResult:  # type: ignore[override]
        return ToolResult("CancelSignal")


@pytest.mark.parametrize("invocation", [WithSignal, WithoutSignal])
async def test_an_invocation_may_leave_out_arguments_that_it_does_not_need(invocation: Any) -> None:
    tool = Answering(invocation)

    assert (await tool.build_and_execute({})).llm_content == "CancelSignal"
    assert (await registry_of(tool).execute_tool_call({"name": "answer", "args": {}})).llm_content == "CancelSignal"


class AsMapping(BaseToolInvocation[dict[str, Any]]):
    async def execute(self, signal: CancelSignal, update_output: Any = None) -> Any:
        error = {"message": "full", "type": "no_space_left"}
        return {"llmContent": [{"text": "some"}], "returnDisplay": "shown", "error": error}


async def test_a_result_may_be_a_mapping_of_its_fields() -> None:
    tool = Answering(AsMapping)

    result = await tool.build_and_execute({})

    failure = ToolFailure("full", "no_space_left")
    assert result == ToolResult([{"text": "some"}], "shown", failure)
    called = await registry_of(tool).execute_tool_call({"name": "answer", "args": {}})
    assert called == ToolResult("some", "shown", failure)


class WithImage(BaseToolInvocation[dict[str, Any]]):
    parts: ClassVar[list[Any]] = [
        {"text": "a board"},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
        {"fileData": {"mimeType": "video/mp4", "fileUri": "https://example.org/saw.mp4"}},
    ]

    async def execute(self, signal: CancelSignal, update_output: Any = None) -> ToolResult:
        return ToolResult(self.parts, "shown")


@pytest.mark.parametrize("update_output", [None, print])
async def test_the_parts_of_a_result_stay_parts(update_output: Any) -> None:
    registry = registry_of(Answering(WithImage))

    result = await registry.execute_tool_call({"name": "answer", "args": {}}, update_output)

    assert result.llm_content == WithImage.parts


def test_an_invocation_of_another_class_is_an_error_of_the_program() -> None:
    with pytest.raises(TypeError, match="`create_invocation` of tool `answer`: expected a ToolInvocation, got dict"):
        Answering(dict).build({})


async def test_a_tool_has_the_interface_of_a_declarative_tool() -> None:
    tool = ReadFileTool()

    invocation = tool.build({"path": "a.txt"})
    result = await invocation.execute(CancelSignal())

    assert (tool.name, tool.display_name, tool.kind) == ("read_file", "Read File", Kind.READ)
    assert (tool.is_output_markdown, tool.can_update_output, tool.message_bus) == (True, False, None)
    assert tool.schema == {
        "name": "read_file",
        "description": "Read a file.",
        "parametersJsonSchema": tool.parameter_schema,
    }
    assert invocation.get_description() == "Read File with { path: a.txt }"
    assert list(invocation.tool_locations()) == []
    assert (result.llm_content, result.return_display) == ([{"text": "content of a.txt"}], "shown")
    assert Kind("write") is Kind.EDIT


async def test_building_raises_and_validating_does_not() -> None:
    tool = ReadFileTool()

    refused = await tool.validate_build_and_execute({"path": "/etc"})

    with pytest.raises(InvalidParametersError, match="path must be relative"):
        await tool.build_and_execute({"path": "/etc"})
    assert refused.llm_content == "Error: Invalid parameters provided. Reason: path must be relative"
    assert refused.error is not None
    assert refused.error.type == "invalid_tool_params"


async def test_a_tool_without_an_invocation_says_so() -> None:
    tool = BaseDeclarativeTool[Any]("t", "T", "D", Kind.OTHER, {"type": "object"})

    with pytest.raises(NotImplementedError, match="create_invocation"):
        tool.build({})


async def test_a_declarative_tool_is_a_tool_of_a_toolkit() -> None:
    toolkit = Toolkit(tools=[ReadFileTool()])

    response = await toolkit.call("read_file", path="a")

    assert (response.text, response.metadata) == ("content of a", {"display": "shown"})
    assert toolkit.tools["read_file"].kind == "read"


async def test_a_toolkit_asks_the_bus_of_a_tool() -> None:
    tool = ReadFileTool(
        message_bus=MessageBus(PolicyEngine({"rules": [{"decision": "deny", "argsPattern": "secret"}]}))
    )
    asked: list[Any] = []

    async def approve(request: ApprovalRequest) -> str:
        asked.append(request.details)
        return "once"

    toolkit = Toolkit(tools=[tool], approver=approve)

    denied = await toolkit.call("read_file", path="secret")
    approved = await toolkit.call("read_file", path="a")

    assert (denied.code, denied.text) == ("denied", 'Error: Tool execution for "Read File" denied by policy.')
    assert (approved.ok, tool.ran) == (True, ["a"])
    assert isinstance(asked[0], ToolConfirmationDetails)


async def test_parts_become_blocks() -> None:
    class Invocation(ToolInvocation[Any]):
        async def execute(self, signal: CancelSignal, update_output: Any = None) -> ToolResult:
            return ToolResult(self.params["parts"])

    class Tool(ReadFileTool):
        def create_invocation(self, params: Any) -> ToolInvocation[Any]:
            return Invocation(params)

    tool = Tool(schema={"type": "object", "properties": {"parts": {"type": "array"}}})
    toolkit = Toolkit(tools=[tool])
    image = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    video = {"fileData": {"mimeType": "video/mp4", "fileUri": "https://example.org/v.mp4"}}

    mixed = await toolkit.call("read_file", parts=[{"text": "a"}, image, video])
    other = await toolkit.call("read_file", parts=[{"text": "a"}, {"functionCall": {}}])

    assert mixed.content == [
        {"type": "text", "text": "a"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        {"type": "video", "source": {"type": "url", "url": "https://example.org/v.mp4"}},
    ]
    assert (other.metadata or {})["value"] == [{"text": "a"}, {"functionCall": {}}]


async def test_a_registered_tool_is_listed_declared_and_executed() -> None:
    registry = registry_of(ReadFileTool(), ReadFileTool("grep"))

    result = await registry.execute_tool_call({"name": "read_file", "args": {"path": "a"}})

    assert registry.get_all_tool_names() == ["read_file", "grep"]
    assert registry.get_function_declarations() == [tool.schema for tool in registry.get_all_tools()]
    assert [each["name"] for each in registry.get_function_declarations_filtered(["grep", "sed"])] == ["grep"]
    assert (result.llm_content, result.return_display, result.error) == ("content of a", "shown", None)


async def test_every_mistake_of_a_call_is_a_result() -> None:
    registry = registry_of(ReadFileTool(), ReadFileTool("grep"))

    unknown = await registry.execute_tool_call({"name": "readfile", "args": {}})
    invalid = await registry.execute_tool_call({"name": "read_file", "args": {"path": 3}})
    empty = await registry_of().execute_tool_call({"name": "x", "args": {}})
    single = await registry_of(ReadFileTool()).execute_tool_call({"name": "x", "args": {}})

    assert unknown.llm_content == (
        'Tool "readfile" not found in registry. Tools must use the exact names that are registered.'
        ' Did you mean one of: "read_file", "grep"?'
    )
    assert unknown.error is not None
    assert unknown.error.type == "tool_not_registered"
    assert invalid.llm_content == "Error: Invalid parameters provided. Reason: params/path must be string"
    assert invalid.error is not None
    assert invalid.error.type == "invalid_tool_params"
    assert str(empty.llm_content).endswith("names that are registered.")
    assert str(single.llm_content).endswith(' Did you mean "read_file"?')


@pytest.mark.parametrize("tool_call", [{}, {"name": "read_file", "args": "{"}, {"name": "read_file", "args": []}])
async def test_what_is_not_a_call_is_a_result(tool_call: Any) -> None:
    tool = ReadFileTool()

    result = await registry_of(tool).execute_tool_call(tool_call)

    assert result.error is not None
    assert tool.ran == []


async def test_at_most_three_near_names_are_suggested() -> None:
    registry = registry_of(*(ReadFileTool(name) for name in ("write_file", "list_files", "read_file", "grep")))

    result = await registry.execute_tool_call({"name": "read_fil", "args": {}})

    assert str(result.llm_content).endswith('Did you mean one of: "read_file", "write_file", "list_files"?')


def test_a_name_that_is_taken_is_replaced_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    first, second = ReadFileTool(), ReadFileTool()

    with caplog.at_level(logging.WARNING, "toolcrib"):
        registry = registry_of(first, second)

    assert registry.get_tool("read_file") is second
    assert "'read_file'" in caplog.text


def test_tools_of_servers_are_renamed_sorted_and_removed_together() -> None:
    registry = registry_of(
        remote(server="zoo"), ReadFileTool("search"), remote("look", "zoo"), remote(server="ant"), remote(server="bee")
    )

    names = registry.get_all_tool_names()
    registry.remove_mcp_tools_by_server("zoo")

    assert names == ["search", "ant__search", "bee__search", "look"]
    assert registry.get_all_tool_names() == ["search", "ant__search", "bee__search"]
    assert registry.get_tools_by_server("zoo") == []
    assert [tool.name for tool in registry.get_tools_by_server("ant")] == ["ant__search"]
    registry.unregister_tool("search")
    registry.unregister_tool("search")
    assert registry.get_tool("search") is None


async def test_an_excluded_tool_can_neither_be_seen_nor_called() -> None:
    tool = ReadFileTool()
    registry = registry_of(tool, ReadFileTool("grep"), exclude_tools=["read_file"])

    result = await registry.execute_tool_call({"name": "read_file", "args": {"path": "a"}})

    assert registry.get_tool("read_file") is None
    assert registry.get_all_tool_names() == ["grep"]
    assert result.error is not None
    assert (result.error.type, tool.ran) == ("tool_not_registered", [])


async def test_no_registered_tool_evades_the_policy() -> None:
    tool = ReadFileTool()
    registry = registry_of(tool, policy_engine=PolicyEngine({"defaultDecision": "deny"}))

    result = await registry.execute_tool_call({"name": "read_file", "args": {"path": "a"}})

    assert result.error is not None
    assert (result.error.type, tool.ran) == ("permission_denied", [])


async def test_a_call_that_cannot_be_confirmed_does_not_run() -> None:
    for tool, options in [(ShellTool(), {}), (ReadFileTool(), {"policy_engine": PolicyEngine()})]:
        registry = registry_of(tool, **options)

        result = await registry.execute_tool_call({"name": "read_file", "args": {"path": "a"}})

        assert result.error is not None
        assert (result.error.type, tool.ran) == ("permission_denied", [])


@pytest.mark.parametrize(
    ("outcome", "ran", "rules"),
    [
        (ToolConfirmationOutcome.PROCEED_ONCE, ["a", "a"], 0),
        ("proceed_always", ["a", "a"], 1),
        (ToolConfirmationOutcome.MODIFY_WITH_EDITOR, [], 0),
        (ToolConfirmationOutcome.CANCEL, [], 0),
        ("nonsense", [], 0),
        (None, [], 0),
    ],
)
async def test_the_outcome_of_the_user_decides(outcome: Any, ran: list[str], rules: int) -> None:
    engine, tool, asked = PolicyEngine(), ShellTool(), []

    async def confirm(details: ToolConfirmationDetails) -> Any:
        asked.append(details)
        return outcome

    registry = registry_of(tool, policy_engine=engine, confirm=confirm)
    for _ in range(2):
        await registry.execute_tool_call({"name": "read_file", "args": {"path": "a"}})

    assert tool.ran == ran
    assert len(engine.get_rules()) == rules
    assert len(asked) == (1 if rules else 2)


async def test_success_and_failure_are_published() -> None:
    config = Config(policy_engine=PolicyEngine(ALLOW_ALL))
    registry, bus, seen = config.get_tool_registry(), config.get_message_bus(), list[Any]()
    registry.register_tool(ReadFileTool())
    assert bus is not None
    bus.subscribe(MessageBusType.TOOL_EXECUTION_SUCCESS, seen.append)
    bus.subscribe(MessageBusType.TOOL_EXECUTION_FAILURE, seen.append)

    await registry.execute_tool_call({"name": "read_file", "args": {"path": "a"}})
    await registry.execute_tool_call({"name": "read_file", "args": {"path": "/a"}})

    assert [message.type.value for message in seen] == ["tool-execution-success", "tool-execution-failure"]
    assert seen[0].tool_call == {"name": "read_file", "args": {"path": "a"}}
    assert seen[1].error.message == "path must be relative"


@pytest.mark.parametrize(
    ("outcome", "rule"),
    [("proceed_always_server", "srv__*"), ("proceed_always_tool", "srv__search"), ("proceed_always", "srv__search")],
)
async def test_a_tool_of_a_server_is_named_after_it_in_rules(outcome: str, rule: str) -> None:
    engine, asked = PolicyEngine(), list[Any]()

    def confirm(details: ToolConfirmationDetails) -> str:
        asked.append(details)
        return outcome

    registry = registry_of(remote(), policy_engine=engine, confirm=confirm)

    first = await registry.execute_tool_call({"name": "search", "args": {}})
    second = await registry.execute_tool_call({"name": "search", "args": {}})

    assert (first.llm_content, second.llm_content) == ("srv: {}", "srv: {}")
    assert [details.type for details in asked] == ["mcp"]
    assert asked[0].fields["serverName"] == "srv"
    assert [each.tool_name for each in engine.get_rules()] == [rule]


async def test_a_trusted_server_needs_no_confirmation_unless_the_policy_asks() -> None:
    trusted = registry_of(remote(trust=True))
    asking = registry_of(remote(trust=True), policy_engine=PolicyEngine())

    assert (await trusted.execute_tool_call({"name": "search", "args": {}})).error is None
    assert (await asking.execute_tool_call({"name": "search", "args": {}})).error is not None


SERVER = """
from toolcrib import Toolkit
toolkit = Toolkit()

@toolkit.tool
def saw(length: int) -> str:
    "Saw a board."
    if length < 0:
        raise ValueError("too short")
    return f"{length} cm"

toolkit.serve_mcp("stdio").run()
"""


async def test_the_tools_of_a_real_server_are_called() -> None:
    async with mcp.connect([sys.executable, "-c", SERVER], name="workshop") as client:
        engine = PolicyEngine({"rules": [{"toolName": "workshop__*", "decision": "allow"}]})
        registry = registry_of(policy_engine=engine)
        for tool in await client.list_tools():
            function = await client.get_callable_function(tool.name)
            registry.register_tool(
                DiscoveredMCPTool(function, "workshop", tool.name, tool.description or "-", tool.inputSchema)
            )

        sawn = await registry.execute_tool_call({"name": "saw", "args": {"length": 3}})
        failed = await registry.execute_tool_call({"name": "saw", "args": {"length": -1}})

    assert (sawn.llm_content, sawn.error) == ("3 cm", None)
    assert failed.error is not None
    assert (failed.error.type, "too short" in failed.error.message) == ("mcp_tool_error", True)


async def test_rules_of_a_toolkit_apply_too() -> None:
    toolkit = Toolkit(policy=Policy(default="deny"), tools=[ReadFileTool()])

    assert (await toolkit.call("read_file", path="a")).code == "denied"
