"""Declared tools: a schema, a check, an invocation, and their place in a toolkit."""

import asyncio
import json
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pydantic
import pytest

from support.waiting import until
from toolcrib import Policy, Toolkit, errors
from toolcrib.declared import (
    CancelSignal,
    DeclaredTool,
    Kind,
    ToolFailure,
    ToolInvocation,
    ToolLocation,
    ToolParameter,
    ToolResult,
)
from toolcrib.policy import Approval, ApprovalRequest, Rule

CASES = json.loads((Path(__file__).parent.parent / "tests/data/gemini_cases.json").read_text(encoding="utf-8"))


class Echo(DeclaredTool[dict[str, Any]]):
    """Returns its parameters."""

    name = "echo"
    description = "Echoes."
    parameters = CASES["validate_schema"]

    def execute(self, params: dict[str, Any], signal: CancelSignal, update_output: Any = None) -> Any:
        return json.dumps(params)


class WriteFile(DeclaredTool[dict[str, Any]]):
    """Writes a file, in a class with every method."""

    name = "write_file"
    description = "Writes a file."
    display_name = "Write file"
    kind = Kind.WRITE
    parameters = (
        ToolParameter("path", "string", "The file."),
        ToolParameter("text", "string", "The content.", required=False, default="-"),
        ToolParameter("lines", "array[integer]", "The lines.", required=False),
    )
    can_update_output = True

    def check_params(self, params: dict[str, Any]) -> str | None:
        return "path must be relative" if params["path"].startswith("/") else None

    def describe(self, params: dict[str, Any]) -> str:
        return f"Write {params['path']}"

    def locations(self, params: dict[str, Any]) -> Sequence[ToolLocation]:
        return [ToolLocation(params["path"], 3)]

    async def execute(self, params: dict[str, Any], signal: CancelSignal, update_output: Any = None) -> ToolResult:
        update_output("half")
        await asyncio.sleep(0)
        return ToolResult(f"wrote {params['text']}", f"**{params['path']}**")


@pytest.mark.parametrize("case", CASES["validate"], ids=lambda case: json.dumps(case["params"]))
async def test_parameters_are_validated_as_in_the_cases(case: dict[str, Any]) -> None:
    tool = Echo()

    result = await tool.validate_build_and_execute(case["params"])

    if case["error"] is None:
        assert json.loads(result.llm_content) == case["params"]
        assert result.error is None
    else:
        with pytest.raises(errors.InvalidParametersError) as raised:
            tool.build(case["params"])
        assert str(raised.value) == case["error"]
        assert result.llm_content == f"Error: Invalid parameters provided. Reason: {case['error']}"
        assert result.return_display == case["error"]
        assert result.error == ToolFailure(case["error"], "invalid_tool_params")


def test_a_default_that_a_call_modifies_is_new_for_the_next_call() -> None:
    class Collect(Echo):
        parameters = (ToolParameter("found", "string[]", "So far.", required=False, default=[]),)

    tool = Collect()
    tool.build({}).params["found"].append("a")

    assert tool.build({}).params == {"found": []}


def test_the_check_of_the_tool_comes_after_the_schema() -> None:
    tool = WriteFile()

    with pytest.raises(errors.InvalidParametersError, match=r"^params must have required property 'path'$"):
        tool.build({})
    with pytest.raises(errors.InvalidParametersError, match=r"^path must be relative$"):
        tool.build({"path": "/etc"})


def test_an_invocation_describes_itself() -> None:
    given = {"path": "a"}

    invocation = WriteFile().build(given)

    assert invocation.params == {"path": "a", "text": "-"}
    assert given == {"path": "a"}
    assert (invocation.describe(), invocation.locations()) == ("Write a", [ToolLocation("a", 3)])
    assert invocation.should_confirm(CancelSignal()) is False


def test_an_invocation_has_a_description_without_a_method() -> None:
    invocation = Echo().build({"objective": "x" * 60, "n": 1})

    assert invocation.describe() == f"echo with {{ objective: {'x' * 47}..., n: 1 }}"
    assert invocation.locations() == ()


async def test_executing_raises_or_reports() -> None:
    class Broken(Echo):
        def execute(self, params: dict[str, Any], signal: CancelSignal, update_output: Any = None) -> Any:
            raise KeyError("k")

    tool = Broken()

    result = await tool.validate_build_and_execute({"objective": "x"})

    assert result == ToolResult(
        "Error: Tool call execution failed. Reason: 'k'", "'k'", ToolFailure("'k'", "execution_failed")
    )
    with pytest.raises(KeyError):
        await tool.build_and_execute({"objective": "x"})
    with pytest.raises(errors.InvalidParametersError):
        await tool.build_and_execute({})


async def test_a_stop_iteration_in_a_thread_is_an_error() -> None:
    class Stopping(Echo):
        def execute(self, params: dict[str, Any], signal: CancelSignal, update_output: Any = None) -> Any:
            raise StopIteration("over")

    tool = Stopping(parameters={"type": "object"})

    result = await asyncio.wait_for(tool.validate_build_and_execute({}), 20)
    response = await asyncio.wait_for(Toolkit(tools=[tool]).call("echo"), 20)

    assert result.error is not None
    assert "raised StopIteration" in result.error.message
    assert response.text == "RuntimeError: a function that ran in a thread raised StopIteration"


async def test_updates_reach_the_caller_only_if_the_tool_makes_them() -> None:
    seen: list[object] = []

    result = await WriteFile().build_and_execute({"path": "a"}, None, seen.append)
    with pytest.raises(TypeError):
        await WriteFile(can_update_output=False).build_and_execute({"path": "a"}, None, seen.append)

    assert (result.llm_content, seen) == ("wrote -", ["half"])


def test_a_tool_shows_its_schema() -> None:
    tool = WriteFile()

    assert tool.schema == {
        "name": "write_file",
        "description": "Writes a file.",
        "parametersJsonSchema": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file."},
                "text": {"type": "string", "description": "The content.", "default": "-"},
                "lines": {"type": "array", "items": {"type": "integer"}, "description": "The lines."},
            },
            "required": ["path"],
        },
    }
    assert (tool.kind, Kind.WRITE, Kind("write")) == (Kind.EDIT, Kind.EDIT, Kind.EDIT)


async def test_parameters_may_be_a_pydantic_model() -> None:
    class Range(pydantic.BaseModel):
        low: int
        high: int = 10

        @pydantic.model_validator(mode="after")
        def ordered(self) -> "Range":
            if self.low > self.high:
                raise ValueError("low is above high")
            return self

    class Count(DeclaredTool[Range]):
        async def execute(self, params: Range, signal: CancelSignal, update_output: Any = None) -> int:
            return params.high - params.low

    tool = Count("count", "Counts.", parameters=Range)

    result = await tool.build_and_execute({"low": 3})

    assert result.llm_content == 7
    with pytest.raises(errors.InvalidParametersError, match=r"^params/low must be integer$"):
        tool.build({"low": "3"})
    with pytest.raises(errors.InvalidParametersError, match=r"^params: Value error, low is above high$"):
        tool.build({"low": 30})
    assert "title" not in json.dumps(tool.json_schema)


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        ({"name": ""}, ValueError, "missing `name` of the declared tool"),
        ({"description": 3}, TypeError, "description must be a string, not int"),
        ({"kind": "reed"}, ValueError, "tool `t`: kind must be one of 'read'"),
        (
            {"parameters": "x"},
            TypeError,
            "parameters of `t` must be a list, a JSON Schema or a pydantic model, not str",
        ),
        ({"parameters": ["x"]}, TypeError, "must be a list of ToolParameter, and one of them is str"),
        ({"parameters": [ToolParameter("a", "date")]}, ValueError, "parameter `a` of `t`: unknown type 'date'"),
        ({"parameters": {"type": "string"}}, errors.InvalidSchemaError, "Invalid JSON schema"),
        ({"parameters": {"type": "object", "required": 1}}, errors.InvalidSchemaError, "Invalid JSON schema"),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        DeclaredTool(**{"name": "t", "description": "d", **fields})


async def test_a_declared_tool_is_a_tool_like_any_other() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(WriteFile())

    responses = [response async for response in toolkit.call_tool_function(call("write_file", path="a"))]

    assert [(response.mode, response.text) for response in responses[:-1]] == [("progress", "half")]
    assert (responses[-1].text, responses[-1].is_last) == ("wrote -", True)
    assert responses[-1].metadata == {"display": "**a**"}
    tool = toolkit.tools["write_file"]
    assert (tool.kind, tool.permission) == ("edit", "kind")
    (schema,) = toolkit.get_json_schemas()
    assert schema["function"]["parameters"]["required"] == ["path"]


async def test_a_toolkit_answers_what_does_not_fit() -> None:
    toolkit = Toolkit(tools=[WriteFile()])

    by_schema = await toolkit.call("write_file", path=["a"])
    by_tool = await toolkit.call("write_file", path="/etc")

    assert by_schema.code == by_tool.code == "invalid_arguments"
    assert by_tool.text == "Error: Invalid parameters provided. Reason: path must be relative"
    assert by_tool.metadata == {
        "display": "path must be relative",
        "error": {"message": "path must be relative", "type": "invalid_tool_params"},
    }


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "1", "name": name, "input": arguments}


async def test_a_parameter_may_have_any_name() -> None:
    class Odd(DeclaredTool[dict[str, Any]]):
        name = "odd"
        description = "Odd."
        parameters = tuple(ToolParameter(name, "string") for name in ("context", "self", "params", "name"))

        async def execute(self, params: dict[str, Any], signal: CancelSignal, update_output: Any = None) -> str:
            return " ".join(params.values())

    toolkit = Toolkit(tools=[Odd()])

    response = await toolkit.call_tool_function(call("odd", context="a", self="b", params="c", name="d")).__anext__()

    assert response.text == "a b c d"


class Asking:
    """An approver that records its requests."""

    def __init__(self, answer: str = "once") -> None:
        self.requests: list[ApprovalRequest] = []
        self.answer = answer

    async def __call__(self, request: ApprovalRequest) -> str:
        self.requests.append(request)
        return self.answer


@pytest.mark.parametrize(
    ("kind", "asks"),
    [(kind, kind.value in ("edit", "delete", "move", "execute")) for kind in Kind],
)
async def test_the_kind_decides_where_a_policy_is_set(kind: Kind, asks: bool) -> None:
    approver = Asking()
    ruled, free = Toolkit(policy=Policy(), approver=approver), Toolkit(approver=approver)
    for toolkit in (ruled, free):
        toolkit.register_tool_function(Echo(kind=kind))

    await free.call("echo", objective="x")
    assert approver.requests == []
    response = await ruled.call("echo", objective="x")

    assert response.code is None
    assert len(approver.requests) == asks


async def test_a_function_may_leave_its_permission_to_its_kind() -> None:
    approver = Asking("no")
    toolkit = Toolkit(policy=Policy(), approver=approver)

    @toolkit.tool(kind="delete", permission="kind")
    async def remove() -> str:
        return "removed"

    assert (await toolkit.call("remove")).code == "denied"
    assert toolkit.policy is not None
    toolkit.policy.add(Rule("allow", kind="delete"))
    assert (await toolkit.call("remove")).text == "removed"


async def test_the_approver_sees_the_description_of_the_call() -> None:
    approver = Asking()
    toolkit = Toolkit(policy=Policy(), approver=approver, tools=[WriteFile()])

    response = await toolkit.call("write_file", path="a")

    (request,) = approver.requests
    assert response.text == "wrote -"
    assert (request.summary, request.locations, request.details) == ("Write a", (ToolLocation("a", 3),), None)


@pytest.mark.parametrize("allows", [True, False])
async def test_a_call_is_described_only_to_an_approver(allows: bool) -> None:
    described: list[str] = []

    class Described(Careful):
        def describe(self, params: dict[str, Any]) -> str:
            described.append(params["objective"])
            raise ValueError("no words")

    approver = Asking()
    toolkit = Toolkit(approver=approver, tools=[Described()])

    await toolkit.call("echo", objective="abc" if allows else "abcd", n=1)

    assert described == ([] if allows else ["abcd"])
    assert [(request.summary, request.locations) for request in approver.requests] == ([] if allows else [(None, ())])


class Careful(Echo):
    """Asks about long objectives."""

    def should_confirm(self, params: dict[str, Any], signal: CancelSignal) -> Any:
        return {"title": "Long"} if len(params["objective"]) > 3 else False


class CarefulLater(Echo):
    """The same in a coroutine."""

    async def should_confirm(self, params: dict[str, Any], signal: CancelSignal) -> Any:
        await asyncio.sleep(0)
        return {"title": "Long"} if len(params["objective"]) > 3 else False


@pytest.mark.parametrize("tool", [Careful, CarefulLater])
@pytest.mark.parametrize("policy", [None, Policy()])
async def test_the_tool_decides_whether_a_call_is_confirmed(tool: type[Echo], policy: Policy | None) -> None:
    approver = Asking()
    toolkit = Toolkit(policy=policy, approver=approver, tools=[tool()])

    assert (await toolkit.call("echo", objective="x")).code is None
    assert approver.requests == []
    assert (await toolkit.call("echo", objective="long")).code is None

    (request,) = approver.requests
    assert (request.details, request.reason) == ({"title": "Long"}, "the tool asks for confirmation")
    assert request.summary == "echo with { objective: long }"


@pytest.mark.parametrize("tool", [Careful, CarefulLater])
async def test_a_confirmation_is_part_of_the_one_permission_stage(tool: type[Echo]) -> None:
    pending = await Toolkit(tools=[tool()]).call("echo", objective="long")
    headless = await Toolkit(tools=[tool()], headless=True).call("echo", objective="long")
    refused = await Toolkit(tools=[tool()], approver=Asking("no")).call("echo", objective="long")
    allowed = await Toolkit(tools=[tool()], policy=Policy([Rule("allow", tool="*")])).call("echo", objective="long")
    denied = await Toolkit(tools=[tool()], policy=Policy([Rule("deny", tool="*")])).call("echo", objective="x")

    codes = [response.code for response in (pending, headless, refused, allowed, denied)]
    assert codes == ["pending", "denied", "denied", None, "denied"]


@pytest.mark.parametrize("tool", [Careful, CarefulLater])
@pytest.mark.parametrize("in_loop", [False, True])
def test_a_dry_run_asks_the_tool(tool: type[Echo], in_loop: bool) -> None:
    allowing, denying = Policy([Rule("allow", tool="*")]), Policy([Rule("deny", tool="*")])

    def outlooks() -> list[Any]:
        return [
            toolkit.check(call("echo", objective=objective))["would"]
            for toolkit in (
                Toolkit(tools=[tool()], approver=Asking()),
                Toolkit(tools=[tool()]),
                Toolkit(tools=[tool()], headless=True),
                Toolkit(tools=[tool()], policy=allowing),
                Toolkit(tools=[tool()], policy=denying),
            )
            for objective in ("x", "long")
        ]

    async def main() -> list[Any]:
        return outlooks()

    expected = ["run", "ask", "run", "pending", "run", "deny", "run", "run", "deny", "deny"]
    assert (asyncio.run(main()) if in_loop else outlooks()) == expected


def test_a_dry_run_says_why_the_tool_asks_or_refuses() -> None:
    class Checked(Careful):
        def check_params(self, params: dict[str, Any]) -> str | None:
            return "no" if params["objective"] == "bad" else None

    class Failing(Echo):
        def should_confirm(self, params: dict[str, Any], signal: CancelSignal) -> Any:
            raise RuntimeError("no idea")

    toolkit = Toolkit(tools=[Checked()])

    asking = toolkit.check(call("echo", objective="long"))
    refused = toolkit.check(call("echo", objective="bad"))

    assert (asking["decision"], asking["reason"]) == ("ask", "the tool asks for confirmation")
    assert (refused["would"], refused["code"]) == ("refuse", "invalid_arguments")
    assert refused["problems"] == "Error: Invalid parameters provided. Reason: no"
    with pytest.raises(RuntimeError, match="no idea"):
        Toolkit(tools=[Failing()]).check(call("echo", objective="x"))


class Counting(Careful):
    """Counts the invocations that are built."""

    def __init__(self) -> None:
        super().__init__()
        self.built: list[str] = []

    def create_invocation(self, params: dict[str, Any]) -> ToolInvocation[dict[str, Any]]:
        self.built.append(params["objective"])
        return super().create_invocation(params)


async def test_a_call_that_is_confirmed_is_built_once() -> None:
    tool = Counting()
    toolkit = Toolkit(approver=Asking(), tools=[tool])

    texts = [(await toolkit.call("echo", objective=objective)).text for objective in ("x", "long")]

    assert texts == ['{"objective": "x"}', '{"objective": "long"}']
    assert tool.built == ["x", "long"]


@pytest.mark.parametrize("edited", ["other", "1.0", True, 1])
async def test_a_call_whose_arguments_the_approver_edits_is_built_again(edited: Any) -> None:
    class Any1(Counting):
        parameters = {"type": "object", "properties": {"objective": {}}}

        def should_confirm(self, params: dict[str, Any], signal: CancelSignal) -> Any:
            return True

    async def approver(request: ApprovalRequest) -> Approval:
        return Approval("once", arguments={"objective": edited})

    tool = Any1()

    response = await Toolkit(approver=approver, tools=[tool]).call("echo", objective=1.0)

    assert response.text == json.dumps({"objective": edited})
    assert [repr(built) for built in tool.built] == ["1.0", repr(edited)]


async def test_secrets_are_redacted_in_the_description_of_a_call() -> None:
    secret = "correct horse battery staple, and a long tail that is cut off"

    class Login(Careful):
        parameters = (ToolParameter("objective", "string"), ToolParameter("token", "string"))

        def should_confirm(self, params: dict[str, Any], signal: CancelSignal) -> Any:
            return {"title": f"Log in with {params['token']}", "parts": [params["token"], 7, (params["objective"],)]}

    class Worded(Login):
        def describe(self, params: dict[str, Any]) -> str:
            return f"Log in as {params['objective']} by '{params['token']}'"

    summaries = []
    for tool in (Login(), Worded()):
        approver = Asking()
        toolkit = Toolkit(approver=approver)
        toolkit.register_tool_function(tool, secrets=["token"])

        response = await toolkit.call("echo", objective="ann", token=secret)

        (request,) = approver.requests
        assert json.loads(response.text) == {"objective": "ann", "token": secret}
        assert request.details == {"title": "Log in with ***", "parts": ["***", 7, ("ann",)]}
        summaries.append(request.summary)
    assert summaries == ["echo with { objective: ann, token: ***... }", "Log in as ann by '***'"]


async def test_a_confirmation_sees_presets() -> None:
    class Sending(Careful):
        parameters = (ToolParameter("objective", "string"), ToolParameter("sender", "string"))

    approver = Asking()
    toolkit = Toolkit(approver=approver)
    toolkit.register_tool_function(Sending(), preset_kwargs={"sender": "ann"})

    response = await toolkit.call("echo", objective="long")

    assert json.loads(response.text) == {"objective": "long", "sender": "ann"}
    assert approver.requests[0].summary == "echo with { objective: long, sender: ann }"


@pytest.mark.parametrize("tool", [Careful, CarefulLater])
async def test_an_approval_for_the_run_is_remembered(tool: type[Echo]) -> None:
    approver = Asking("run")
    toolkit = Toolkit(approver=approver, tools=[tool()])

    for _ in range(3):
        assert (await toolkit.call("echo", objective="long")).code is None

    assert len(approver.requests) == 1


async def test_a_pending_confirmation_is_resumed() -> None:
    toolkit = Toolkit(tools=[Careful()])
    pending = await toolkit.call("echo", objective="long")
    assert pending.metadata is not None

    resumed = [response async for response in toolkit.resume(pending.metadata["pending"], "once")]

    assert resumed[-1].text == '{"objective": "long"}'


async def test_a_confirmation_that_fails_runs_nothing() -> None:
    ran: list[int] = []

    class Failing(Echo):
        def should_confirm(self, params: dict[str, Any], signal: CancelSignal) -> Any:
            raise RuntimeError("no idea")

        def execute(self, params: dict[str, Any], signal: CancelSignal, update_output: Any = None) -> None:
            ran.append(1)

    class FailingLater(Failing):
        async def should_confirm(self, params: dict[str, Any], signal: CancelSignal) -> Any:
            raise RuntimeError("no idea")

    for tool in (Failing(), FailingLater()):
        response = await Toolkit(tools=[tool]).call("echo", objective="x")
        assert (response.code, "no idea" in response.text) == ("failed", True)
    assert ran == []


async def test_a_description_cannot_end_the_program() -> None:
    class Leaving(Echo):
        def describe(self, params: dict[str, Any]) -> str:
            raise SystemExit(3)

    asked: list[ApprovalRequest] = []
    toolkit = Toolkit(policy=Policy([Rule("ask", tool="*")]), tools=[Leaving(parameters={"type": "object"})])
    toolkit.approver = lambda request: asked.append(request) or "once"  # type: ignore[func-returns-value]

    response = await toolkit.call("echo")

    assert (response.text, asked[0].summary) == ("{}", None)


async def test_parameters_that_do_not_fit_are_not_confirmed() -> None:
    class Checked(Careful):
        def check_params(self, params: dict[str, Any]) -> str | None:
            return "no"

    class CheckedWrite(WriteFile):
        def check_params(self, params: dict[str, Any]) -> str | None:
            return "no"

    approver = Asking()
    toolkit = Toolkit(policy=Policy(), approver=approver, tools=[Checked(), CheckedWrite()])

    responses = [await toolkit.call("echo", objective="long"), await toolkit.call("write_file", path="a")]

    for response in responses:
        assert (response.code, response.is_last) == ("invalid_arguments", True)
        assert response.text == "Error: Invalid parameters provided. Reason: no"
    assert approver.requests == []


async def test_cancelling_a_confirmation_ends_the_call() -> None:
    signals: list[CancelSignal] = []

    class Waiting(Echo):
        async def should_confirm(self, params: dict[str, Any], signal: CancelSignal) -> Any:
            signals.append(signal)
            await asyncio.Event().wait()

    task = asyncio.create_task(Toolkit(tools=[Waiting()]).call("echo", objective="x"))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert signals[0].is_cancelled


async def test_cancelling_sets_the_signal_before_the_tool_sees_it() -> None:
    seen: list[bool] = []

    class Waiting(Echo):
        async def execute(self, params: dict[str, Any], signal: CancelSignal, update_output: Any = None) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                seen.append(signal.is_cancelled)

    task = asyncio.create_task(Toolkit(tools=[Waiting()]).call("echo", objective="x"))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == [True]


async def test_cancelling_reaches_a_tool_in_a_thread() -> None:
    started, stopped = threading.Event(), threading.Event()

    class Busy(Echo):
        def execute(self, params: dict[str, Any], signal: CancelSignal, update_output: Any = None) -> None:
            started.set()
            while not signal.is_cancelled:
                time.sleep(0.001)
            stopped.set()

    task = asyncio.create_task(Toolkit(tools=[Busy()]).call("echo", objective="x"))
    await until(started.is_set)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    await until(stopped.is_set)


def test_callbacks_of_a_signal_run_once() -> None:
    signal, called = CancelSignal(), []
    signal.on_cancel(lambda: called.append(1))
    signal.on_cancel(lambda: 1 / 0)

    signal.cancel()
    signal.cancel()
    signal.on_cancel(lambda: called.append(2))

    assert called == [1, 2]
    with pytest.raises(asyncio.CancelledError):
        signal.raise_if_cancelled()


def test_a_callback_of_a_signal_can_be_taken_back() -> None:
    signal, called = CancelSignal(), []
    take_back = signal.on_cancel(lambda: called.append(1))
    signal.on_cancel(lambda: called.append(2))

    take_back()
    take_back()
    signal.cancel()

    assert called == [2]


async def test_an_invocation_may_be_a_class_of_its_own() -> None:
    class Reading(ToolInvocation[Mapping[str, Any]]):
        def describe(self) -> str:
            return "Read"

        async def should_confirm(self, signal: CancelSignal) -> bool:
            return True

        async def execute(self, signal: CancelSignal, update_output: Any = None) -> str:
            return f"read {self.params['path']}"

    class Read(DeclaredTool[Mapping[str, Any]]):
        def create_invocation(self, params: Mapping[str, Any]) -> ToolInvocation[Mapping[str, Any]]:
            return Reading(self, params)

    approver = Asking()
    tool = Read("read", "Reads.", parameters=[ToolParameter("path", "string")])
    toolkit = Toolkit(approver=approver, tools=[tool])

    response = await toolkit.call("read", path="a")

    assert response.text == "read a"
    assert (approver.requests[0].summary, approver.requests[0].details) == ("Read", None)


async def test_a_result_may_be_blocks_or_an_error() -> None:
    class Result(DeclaredTool[dict[str, Any]]):
        name = "result"
        description = "Returns."
        results = iter(
            [
                ToolResult([{"type": "text", "text": "a"}], metadata={"k": 1}),
                ToolResult("bad", error=ToolFailure("full", "no_space_left")),
                ToolResult({"n": 1}),
                None,
            ]
        )

        async def execute(self, params: dict[str, Any], signal: CancelSignal, update_output: Any = None) -> Any:
            return next(self.results)

    toolkit = Toolkit(tools=[Result()])

    blocks, failed, value, none = [await toolkit.call("result") for _ in range(4)]

    assert (blocks.text, blocks.metadata) == ("a", {"k": 1})
    assert (failed.text, failed.code) == ("bad", "failed")
    assert failed.metadata == {"error": {"message": "full", "type": "no_space_left"}}
    assert (value.text, value.metadata) == ('{"n": 1}', {"value": {"n": 1}})
    assert none.code is None


async def test_a_tool_without_a_body_says_so() -> None:
    toolkit = Toolkit(tools=[DeclaredTool("empty", "Nothing.")])

    response = await toolkit.call("empty")

    assert (response.code, "does not override `execute`" in response.text) == ("failed", True)
