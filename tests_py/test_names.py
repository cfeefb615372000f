"""Parameters that take several names or paths: a single string is one of them, never a list of letters."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolcrib import Toolkit, mcp
from toolcrib.compat.artifactflow import CallSubagentTool, ToolRegistry
from toolcrib.compat.gemini.policy_files import PolicyTier, load_policies, rules_of_settings
from toolcrib.compat.gemini.registry import Config
from toolcrib.compat.groups import ToolGroupManager
from toolcrib.files import DiskFileSystem
from toolcrib.sampling import written


def search(query: str) -> str:
    """Search."""
    return query


def registered(**options: Any) -> Any:
    toolkit = Toolkit()
    toolkit.create_tool_group("web", "The web.", active=True)
    toolkit.register_tool_function(search, **options)
    return toolkit.tools["search"]


def settings(option: str) -> list[str]:
    return [str(rule.tool_name) for rule in rules_of_settings(**{option: "shell"})]


def sample(**options: Any) -> dict[str, Any]:
    given = {"max_tokens": 1, "system_prompt": None, "temperature": None, "model_preferences": None, "tools": None}
    return written("x", **{**given, **options})


def described(agents: Any) -> Any:
    toolkit = Toolkit()
    toolkit.register_tool_function(search, func_name="helper")
    toolkit.register_call_subagent(agents)
    return toolkit.tools["call_subagent"].json_schema["function"]["parameters"]["properties"]["agent_name"]["enum"]


def library() -> Any:
    registry = ToolRegistry()
    tool = CallSubagentTool("helper")
    registry.register_tool_to_library(tool)
    return registry.create_agent_toolkit("lead", tool.name)  # type: ignore[arg-type]  # as untyped code does


ONE: dict[str, Callable[[], Any]] = {
    "tags": lambda: registered(tags="web").tags == ["web"],
    "groups": lambda: registered(groups="web").groups == ["basic", "web"],
    "secrets": lambda: registered(secrets="query").name == "search",
    "view": lambda: list(Toolkit(tools=[search]).view(names="search").tools) == ["search"],
    "exclude": lambda: list(Toolkit(tools=[search]).view(exclude="search").tools) == [],
    "stop_sequences": lambda: sample(stop_sequences="END")["stopSequences"] == ["END"],
    "args": lambda: mcp.StdIOStatefulClient("x", "server", args="--verbose").name == "x",
    "agents": lambda: described("helper") == ["helper"],
    "agents of ArtifactFlow": lambda: CallSubagentTool("helper").agents == ("helper",),
    "tool_names": lambda: list(library().tools) == ["call_subagent"],
    "exclude_tools": lambda: Config(exclude_tools="shell").get_exclude_tools() == ["shell"],
    "allowed_tools": lambda: Config(allowed_tools="shell").get_allowed_tools() == ["shell"],
    "exclude_tools of settings": lambda: settings("exclude_tools") == ["shell"],
    "allowed_tools of settings": lambda: settings("allowed_tools") == ["shell"],
    "excluded_servers": lambda: settings("excluded_servers") == ["shell__*"],
    "groupIds": lambda: ToolGroupManager().getToolDefinitions("web") == [],
}


@pytest.mark.parametrize("parameter", ONE)
def test_a_single_string_is_one_name(parameter: str) -> None:
    assert ONE[parameter]() is True


def test_a_single_operation_of_a_grant_is_one(tmp_path: Path) -> None:
    system = DiskFileSystem(tmp_path)

    handle = system.create_handle([{"prefix": "/workspace/", "ops": "list"}])

    assert handle.permissions == [("/workspace/", ["list"])]


def test_a_single_policy_file_is_one_path(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('[[rule]]\ntoolName = "shell"\ndecision = "deny"\npriority = 100\n')

    for path in (file, str(file)):
        loaded = load_policies({PolicyTier.USER: path})  # type: ignore[dict-item]  # as untyped code does

        assert [rule.tool_name for rule in loaded.rules] == ["shell"]
        assert loaded.errors == []


def several(option: str, names: Any) -> None:
    Toolkit().register_agents([], **{option: names})


@pytest.mark.parametrize("given", [b"shell", 3])
@pytest.mark.parametrize(
    "use",
    [
        lambda names: Config(exclude_tools=names),
        lambda names: rules_of_settings(exclude_tools=names),
        lambda names: CallSubagentTool(names),
        lambda names: sample(stop_sequences=names),
        lambda names: mcp.StdIOStatefulClient("x", "server", args=names),
        lambda names: ToolGroupManager().getToolDefinitions(names),
        lambda names: several("allow", names),
    ],
)
def test_anything_but_names_is_refused(use: Callable[[Any], Any], given: Any) -> None:
    with pytest.raises(TypeError):
        use(given)
