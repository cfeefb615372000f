"""`toolcrib.compat.groups.Runtime`: agents see and run the tools of their roles, and nothing fails open."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from support.toolkits import definition
from toolcrib import Policy, Toolkit
from toolcrib.compat.groups import Org, Runtime
from toolcrib.errors import UsedPendingError
from toolcrib.policy import ApprovalRequest, Rule


class Chrome:
    """A module as the runtime knows them."""

    name = "chrome"
    toolGroupId = "browser"
    toolGroupDescription = "Pages."

    def __init__(self, *tools: str) -> None:
        self.names = tools or ("open_page",)
        self.log: list[Any] = []

    def getToolDefinitions(self) -> list[Any]:
        return [definition(name) for name in self.names]

    async def executeToolCall(self, ctx: Any, toolName: str, args: Any) -> Any:
        if args.get("fail"):
            raise RuntimeError("the page is gone")
        return {"opened": args, "by": ctx["agent"]["id"], "with": toolName}

    def init(self, runtime: Any, config: Any) -> None:
        self.log.append(config)

    async def shutdown(self) -> None:
        self.log.append("shutdown")


def runtime_with(tool_groups: Any, **options: Any) -> Runtime:
    runtime = Runtime(**options)
    role = runtime.org.createRole({"name": "developer", "toolGroups": tool_groups})
    runtime.org.createAgent({"id": "ada", "roleId": role["id"]})
    return runtime


def shown(runtime: Runtime, agent: str) -> list[str]:
    return [definition["function"]["name"] for definition in runtime.getToolDefinitionsForAgent(agent)]


async def test_an_agent_sees_and_runs_the_tools_of_its_role() -> None:
    runtime = runtime_with(["console", "browser"], executor=lambda ctx, name, args: (name, args))
    await runtime.loadModules([Chrome()])

    assert shown(runtime, "ada") == ["console_print", "open_page"]
    assert await runtime.executeToolCall({"agent": {"id": "ada"}}, "console_print", {"x": 1}) == (
        "console_print",
        {"x": 1},
    )
    opened = await runtime.executeToolCall({"agent": {"id": "ada"}}, "open_page", {"url": "u"})
    assert opened == {"opened": {"url": "u"}, "by": "ada", "with": "open_page"}


@pytest.mark.parametrize(
    "ctx",
    [
        None,
        {},
        {"agent": None},
        {"agent": {"id": "nobody"}},
        {"agent": {"id": "nobody", "roleId": "no such role"}},
        {"agent": {"id": "ada", "roleId": "root"}},
        {"agent": {"id": "ghost", "roleId": "developer"}},
    ],
)
async def test_who_is_not_known_runs_nothing(ctx: Any) -> None:
    ran: list[str] = []
    runtime = runtime_with([], executor=lambda ctx, name, args: ran.append(name))
    everything = runtime.org.createRole({"name": "admin", "toolGroups": None})
    if ctx and (ctx.get("agent") or {}).get("id") == "ghost":
        ctx = {"agent": {"id": "ghost", "roleId": everything["id"]}}

    answer = await runtime.executeToolCall(ctx, "console_print", {})

    assert (answer["error"], answer["toolName"], ran) == ("tool_not_available", "console_print", [])
    assert "console_print" in answer["message"]


async def test_root_has_its_own_group_and_no_other() -> None:
    runtime = Runtime(executor=lambda ctx, name, args: "ran")

    assert shown(runtime, "root") == list(runtime.toolGroupManager.getGroup("org_management")["tools"])  # type: ignore[index]
    assert await runtime.executeToolCall({"agent": {"id": "root"}}, "create_role", {}) == "ran"
    answer = await runtime.executeToolCall({"agent": {"id": "root"}}, "read_file", {})
    assert answer["error"] == "tool_not_available"


async def test_a_tool_that_no_group_has_is_unknown() -> None:
    runtime = runtime_with(None)

    answer = await runtime.executeToolCall({"agent": {"id": "ada"}}, "no_such_tool", {})

    assert answer["error"] == "unknown_tool"


async def test_a_toolkit_runs_what_no_module_has() -> None:
    def console_print(text: str) -> dict[str, str]:
        return {"printed": text}

    toolkit = Toolkit()
    toolkit.register_tool_function(console_print)
    runtime = runtime_with(["console"], executor=toolkit)

    printed = await runtime.executeToolCall({"agent": {"id": "ada"}}, "console_print", {"text": "hi"})
    wrong = await runtime.executeToolCall({"agent": {"id": "ada"}}, "console_print", {"words": "hi"})

    assert printed == {"printed": "hi"}
    assert wrong["error"] == "invalid_arguments"


async def test_a_failing_module_is_reported_by_a_code() -> None:
    runtime = runtime_with(["browser"])
    await runtime.loadModules([Chrome()])

    answer = await runtime.executeToolCall({"agent": {"id": "ada"}}, "open_page", {"fail": True})
    unknown = await runtime.moduleLoader.executeToolCall({}, "close_page", {})

    assert (answer["error"], answer["message"]) == ("module_tool_error", "the page is gone")
    assert unknown["error"] == "unknown_module_tool"


async def test_modules_are_loaded_one_by_one_and_shut_down() -> None:
    runtime, chrome = Runtime(), Chrome()

    report = await runtime.loadModules([object(), chrome])
    ended = await runtime.shutdown()

    assert report["loaded"] == ["chrome"]
    assert report["errors"][0]["module"] == "object"
    assert "it has no function `getToolDefinitions`" in report["errors"][0]["error"]
    assert (ended, chrome.log) == ({"ok": True, "errors": []}, [None, "shutdown"])
    assert not runtime.toolGroupManager.hasGroup("browser")


@pytest.mark.parametrize("group", ["workspace", "mine"])
async def test_a_module_cannot_take_the_tool_of_a_builtin_group(group: str) -> None:
    thief = Chrome("read_file")
    thief.toolGroupId = group
    runtime = runtime_with(["workspace", "mine"], executor=lambda ctx, name, args: "read by its owner")
    before = runtime.toolGroupManager.getGroup("workspace")
    await runtime.loadModules([thief])

    answer = await runtime.executeToolCall({"agent": {"id": "ada"}}, "read_file", {})
    await runtime.shutdown()

    assert answer == "read by its owner"
    assert runtime.toolGroupManager.getGroup("workspace") == before


async def test_an_agent_runs_the_tool_of_the_group_that_shows_it() -> None:
    first, second = Chrome("open_page"), Chrome("open_page")
    second.name, second.toolGroupId = "firefox", "fox"
    runtime = runtime_with(["browser"])
    await runtime.loadModules([first, second])
    second.executeToolCall = first.executeToolCall = None  # type: ignore[method-assign, assignment]
    first.executeToolCall = lambda ctx, name, args: "chrome"  # type: ignore[method-assign, assignment, return-value]

    answer = await runtime.executeToolCall({"agent": {"id": "ada"}}, "open_page", {})

    assert answer == "chrome"


async def test_the_policy_of_a_toolkit_knows_the_agent() -> None:
    def console_print(text: str) -> str:
        return text

    toolkit = Toolkit(policy=Policy([Rule("deny", tool="console_print", caller="ada")]))
    toolkit.register_tool_function(console_print)
    runtime = runtime_with(["console"], executor=toolkit)
    runtime.org.createAgent({"id": "bob", "roleId": runtime.org.listRoles()[0]["id"]})

    denied = await runtime.executeToolCall({"agent": {"id": "ada"}}, "console_print", {"text": "hi"})
    printed = await runtime.executeToolCall({"agent": {"id": "bob"}}, "console_print", {"text": "hi"})
    wrong = await runtime.executeToolCall({"agent": {"id": "bob"}}, "console_print", [1])

    assert (denied["error"], printed, wrong["error"]) == ("denied", "hi", "invalid_arguments")


async def test_the_policy_of_a_toolkit_decides_about_the_tools_of_modules() -> None:
    policy = Policy(
        [
            Rule("deny", tool="open_page", arguments={"url": "evil"}),
            Rule("deny", group="browser", caller="bob"),
            Rule("deny", args_pattern="forbidden"),
        ]
    )
    runtime = runtime_with(["browser"], executor=Toolkit(policy=policy))
    runtime.org.createAgent({"id": "bob", "roleId": runtime.org.listRoles()[0]["id"]})
    await runtime.loadModules([Chrome()])

    async def run(agent: str, **args: Any) -> Any:
        return await runtime.executeToolCall({"agent": {"id": agent}}, "open_page", args)

    opened = await run("ada", url="u", more=[1])

    assert opened == {"opened": {"url": "u", "more": [1]}, "by": "ada", "with": "open_page"}
    assert (await run("ada", url="evil"))["error"] == "denied"
    assert (await run("ada", url="forbidden"))["error"] == "denied"
    assert (await run("bob", url="u"))["error"] == "denied"
    assert (await run("ada", fail=True))["error"] == "module_tool_error"
    assert (await runtime.executeToolCall({"agent": {"id": "ada"}}, "open_page", [1]))["error"] == "invalid_arguments"


async def test_the_approver_of_a_toolkit_is_asked_about_the_tools_of_modules() -> None:
    asked: list[Any] = []

    async def approve(request: ApprovalRequest) -> str:
        asked.append((request.tool, request.arguments, request.caller))
        return "once" if request.arguments["url"] == "good" else "no"

    kit = Toolkit(policy=Policy([Rule("ask", tool="open_page")]), approver=approve)
    runtime = runtime_with(["browser"], executor=kit)
    await runtime.loadModules([Chrome()])

    good = await runtime.executeToolCall({"agent": {"id": "ada"}}, "open_page", {"url": "good"})
    bad = await runtime.executeToolCall({"agent": {"id": "ada"}}, "open_page", {"url": "bad"})

    assert (good["opened"], bad["error"]) == ({"url": "good"}, "denied")
    assert asked[0] == ("open_page", {"url": "good"}, "ada")


@pytest.mark.parametrize("tool", ["open_page", "console_print"])
async def test_a_call_that_waits_for_approval_is_continued_once(tool: str) -> None:
    def console_print(text: str = "") -> str:
        return "printed"

    toolkit = Toolkit(policy=Policy(default="ask"))
    toolkit.register_tool_function(console_print)
    runtime = runtime_with(["browser", "console"], executor=toolkit)
    await runtime.loadModules([Chrome()])
    ada = {"agent": {"id": "ada"}}

    first = await runtime.executeToolCall(ada, tool, {})
    second = await runtime.executeToolCall(ada, tool, {})
    stranger = await runtime.resumeToolCall({"agent": {"id": "eve"}}, tool, first["pending"], True)
    approved = await runtime.resumeToolCall(ada, tool, first["pending"], True)
    denied = await runtime.resumeToolCall(ada, tool, second["pending"], False)

    assert (first["error"], first["toolName"]) == ("pending", tool)
    assert stranger["error"] == "tool_not_available"
    assert approved in ("printed", {"opened": {}, "by": "ada", "with": "open_page"})
    assert denied["error"] == "denied"
    with pytest.raises(UsedPendingError):
        await runtime.resumeToolCall(ada, tool, first["pending"], True)


async def test_without_a_toolkit_no_call_waits() -> None:
    runtime = runtime_with(["console"], executor=lambda ctx, name, args: "ran")

    answer = await runtime.resumeToolCall({"agent": {"id": "ada"}}, "console_print", {}, True)

    assert answer["error"] == "unknown_tool"


def test_a_role_without_groups_has_all_and_one_with_an_empty_list_none() -> None:
    assert len(shown(runtime_with(None), "ada")) == 18
    assert shown(runtime_with([]), "ada") == []


def test_updating_to_an_empty_list_opens_nothing() -> None:
    runtime = runtime_with(["console"])
    role = runtime.org.findRoleByName("developer")
    assert role is not None

    updated = runtime.org.updateRole(role["id"], {"toolGroups": []})

    assert updated is not None
    assert (updated["toolGroups"], shown(runtime, "ada")) == ([], [])
    assert runtime.org.updateRole("no such role", {}) is None


def test_the_setter_of_a_form_says_what_is_wrong() -> None:
    runtime = runtime_with(["console"])
    role = runtime.org.findRoleByName("developer")
    assert role is not None

    assert runtime.setRoleToolGroups("root", []) == {"ok": False, "error": "cannot_modify_system_role"}
    assert runtime.setRoleToolGroups("nobody", []) == {"ok": False, "error": "role_not_found"}
    assert runtime.setRoleToolGroups(role["id"], "console") == {"ok": False, "error": "invalid_tool_groups"}
    wrong = runtime.setRoleToolGroups(role["id"], ["console", "nope"])
    assert wrong == {"ok": False, "error": "invalid_tool_group_ids", "invalidIds": ["nope"]}
    assert shown(runtime, "ada") == ["console_print"]
    assert runtime.setRoleToolGroups(role["id"], []) == {"ok": True}
    assert len(shown(runtime, "ada")) == 18


def test_a_role_of_a_name_that_is_taken_is_given_as_it_is() -> None:
    org = Org()
    first = org.createRole({"name": "developer", "toolGroups": ["console"]})

    again = org.createRole({"name": "developer", "toolGroups": None})

    assert again == first
    assert org.getRole(first["id"]) == first


def test_roles_are_kept_in_a_file_and_invalid_records_reported(tmp_path: Path) -> None:
    org, path = Org(), tmp_path / "org.json"
    org.createRole({"name": "developer", "rolePrompt": "Write.", "createdBy": "root", "toolGroups": ["console"]})
    org.save(path)
    file = json.loads(path.read_text("utf-8"))
    file["roles"] += [{"name": 3}, {"name": "tester", "toolGroups": None}]
    path.write_text(json.dumps(file), "utf-8")
    again = Org()

    report = again.load(path)

    assert report["loaded"]
    assert len(report["errors"]) == 1
    assert "name" in report["errors"][0]
    assert [role["name"] for role in again.listRoles()] == ["developer", "tester"]
    assert again.findRoleByName("developer") == org.findRoleByName("developer")


@pytest.mark.parametrize("content", ["", "[]", '{"roles": 3}', "{"])
def test_a_file_that_is_none_changes_nothing(tmp_path: Path, content: str) -> None:
    org, path = Org(), tmp_path / "org.json"
    org.createRole({"name": "developer"})
    path.write_text(content, "utf-8")

    assert org.load(path)["loaded"] is False
    assert org.load(tmp_path / "missing.json")["loaded"] is False
    assert [role["name"] for role in org.listRoles()] == ["developer"]


def test_an_invalid_file_resets_the_roles_where_that_is_asked_for(tmp_path: Path) -> None:
    org, path = Org(), tmp_path / "org.json"
    org.createRole({"name": "developer"})
    org.save(path)
    org.createRole({"name": "tester"})

    loaded = org.loadOrReset(path)
    names = [role["name"] for role in org.listRoles()]
    reset = org.loadOrReset(tmp_path / "missing.json")

    assert (loaded["loaded"], names) == (True, ["developer"])
    assert (reset["loaded"], org.listRoles()) == (False, [])


@pytest.mark.parametrize(
    ("name", "code"), [(None, "invalid_role"), (3, "invalid_role"), ("root", "cannot_modify_system_role")]
)
def test_an_invalid_role_name_is_reported_by_a_code(name: Any, code: str) -> None:
    org = Org()

    assert org.createRole({"name": name}) == {"error": code}
    assert org.listRoles() == []


def test_a_role_whose_record_has_no_id_is_found_by_its_name_alone(tmp_path: Path) -> None:
    runtime, path = Runtime(), tmp_path / "org.json"
    path.write_text('{"roles": [{"name": "tester"}]}', "utf-8")

    assert runtime.org.load(path) == {"loaded": True, "errors": []}

    assert runtime.org.findRoleByName("tester") is not None
    assert runtime.org.getRole(None) is None
    assert runtime.getToolDefinitionsForAgent("ada") == []


def test_a_deleted_role_shows_nothing() -> None:
    runtime = runtime_with(["console"])
    role = runtime.org.findRoleByName("developer")
    assert role is not None

    assert runtime.org.deleteRole(role["id"])

    assert shown(runtime, "ada") == []
    assert not runtime.org.deleteRole(role["id"])


async def test_a_call_follows_every_change_of_roles_groups_and_modules() -> None:
    runtime = runtime_with(["console"], executor=lambda ctx, name, args: name)
    ctx, role = {"agent": {"id": "ada"}}, runtime.org.findRoleByName("developer")
    assert role is not None

    async def outcome(tool: str) -> Any:
        answer = await runtime.executeToolCall(ctx, tool, {})
        return answer.get("error", answer) if isinstance(answer, dict) else answer

    assert (await outcome("console_print"), await outcome("read_file")) == ("console_print", "tool_not_available")
    runtime.setRoleToolGroups(role["id"], ["workspace"])
    assert (await outcome("console_print"), await outcome("read_file")) == ("tool_not_available", "read_file")
    runtime.toolGroupManager.updateGroupTools("workspace", [])
    assert await outcome("read_file") == "unknown_tool"
    runtime.setRoleToolGroups(role["id"], [])
    await runtime.loadModules([Chrome("read_file")])
    opened = await runtime.executeToolCall(ctx, "read_file", {"a": 1})
    assert opened == {"opened": {"a": 1}, "by": "ada", "with": "read_file"}
    await runtime.shutdown()
    assert await outcome("read_file") == "unknown_tool"
    assert await outcome("console_print") == "console_print"
    runtime.org.createAgent({"id": "ada", "roleId": "nobody"})
    assert await outcome("console_print") == "tool_not_available"
    runtime.org.createAgent({"id": "ada", "roleId": role["id"]})
    runtime.org.deleteRole(role["id"])
    assert await outcome("console_print") == "tool_not_available"


async def test_contexts_of_calls_at_the_same_time_do_not_mix() -> None:
    runtime = runtime_with(["browser"], executor=Toolkit())
    role = runtime.org.findRoleByName("developer")
    assert role is not None
    runtime.org.createAgent({"id": "eve", "roleId": role["id"]})
    await runtime.loadModules([Chrome()])

    agents = ["ada", "eve"] * 5
    opened = await asyncio.gather(
        *(runtime.executeToolCall({"agent": {"id": agent}}, "open_page", {}) for agent in agents)
    )

    assert [page["by"] for page in opened] == agents


async def test_a_new_policy_of_the_toolkit_decides_about_modules_at_once() -> None:
    toolkit = Toolkit()
    runtime = runtime_with(["browser"], executor=toolkit)
    await runtime.loadModules([Chrome()])
    ctx = {"agent": {"id": "ada"}}
    assert "opened" in await runtime.executeToolCall(ctx, "open_page", {})

    toolkit.policy = Policy([Rule("deny", tool="open_page")], default="allow")

    assert (await runtime.executeToolCall(ctx, "open_page", {}))["error"] == "denied"


async def test_a_failing_tool_of_the_toolkit_is_an_error_with_its_text() -> None:
    def console_print() -> None:
        raise ValueError("no paper")

    runtime = runtime_with(["console"], executor=Toolkit(tools=[console_print]))

    answer = await runtime.executeToolCall({"agent": {"id": "ada"}}, "console_print")

    assert (answer["error"], answer["toolName"]) == ("failed", "console_print")
    assert "no paper" in answer["message"]


async def test_init_loads_the_modules_of_the_configuration() -> None:
    runtime = Runtime(config={"modules": [Chrome()]})

    assert await runtime.init() == {"loaded": ["chrome"], "errors": []}
    assert runtime.toolGroupManager.hasGroup("browser")
    assert await Runtime().init() == {"loaded": [], "errors": []}
