"""ArtifactFlow's artifact tools and their manager, over the artifacts of the core."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolcrib import Store, Toolkit
from toolcrib.compat.artifactflow import (
    ArtifactManager,
    BaseTool,
    CreateArtifactTool,
    ToolPermission,
    ToolPromptGenerator,
    ToolResult,
    create_artifact_tools,
    parse_tool_calls,
)

CASES = json.loads(
    (Path(__file__).parent.parent / "tests" / "data" / "artifact_update_cases.json").read_text(encoding="utf-8")
)

# ArtifactFlow edits at the wrong place or refuses where the only similar place is clear.
FOUND_HERE = {"far_from_start", "long_pattern_over_32"}


class Desk:
    """The tools of a manager, by name."""

    def __init__(self, repository: Store | None = None, session: str | None = "s") -> None:
        self.manager = ArtifactManager(repository)
        self.manager.set_session(session)
        self.tools: dict[str, BaseTool] = {tool.name: tool for tool in create_artifact_tools(self.manager)}

    async def run(self, tool: str, **params: Any) -> ToolResult:
        """Call a tool."""
        return await self.tools[f"{tool}_artifact"](**params)

    async def content(self, id: str) -> Any:
        """Read an artifact."""
        return (await self.run("read", id=id)).data["content"]


def test_the_tools_are_made_in_their_order() -> None:
    desk = Desk()

    assert list(desk.tools) == ["create_artifact", "update_artifact", "rewrite_artifact", "read_artifact"]
    assert {tool.permission for tool in desk.tools.values()} == {ToolPermission.AUTO}
    assert [parameter.to_dict()["default"] for parameter in desk.tools["create_artifact"].get_parameters()] == [
        None,
        "markdown",
        None,
        None,
    ]


async def test_the_tools_have_the_results_of_artifactflow() -> None:
    desk = Desk()

    created = await desk.run("create", id="plan", title="The plan", content="alpha beta gamma")
    updated = await desk.run("update", id="plan", old_str="beta", new_str="BETA")
    rewritten = await desk.run("rewrite", id="plan", content="new")
    read = await desk.run("read", id="plan")
    old = await desk.run("read", id="plan", version=2)

    assert created == ToolResult(True, {"message": "Created artifact 'plan'"})
    assert updated.data == {"message": "Successfully updated artifact 'plan' (v2)", "version": 2}
    assert updated.metadata == {"match_type": "exact", "similarity": 1.0, "changes": [["beta", "BETA"]]}
    assert rewritten == ToolResult(True, {"message": "Successfully rewritten artifact 'plan' (v3)", "version": 3})
    assert {key: read.data[key] for key in ("id", "content_type", "title", "content", "version")} == {
        "id": "plan",
        "content_type": "markdown",
        "title": "The plan",
        "content": "new",
        "version": 3,
    }
    assert read.data["updated_at"]
    assert (old.data["content"], old.data["version"], old.data["updated_at"]) == ("alpha BETA gamma", 2, None)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
async def test_an_update_goes_as_in_the_cases(case: dict[str, Any]) -> None:
    desk = Desk()
    await desk.run("create", id="a", title="A", content=case["content"])

    result = await desk.run("update", id="a", old_str=case["old_str"], new_str=case["new_str"])

    if case["id"] in FOUND_HERE:
        assert result.success
        assert case["new_str"] in await desk.content("a")
    elif case["ok"]:
        assert (result.success, await desk.content("a")) == (True, case["new_content"])
        assert result.metadata["match_type"] == case["match_type"]
        assert result.metadata["similarity"] == case["similarity"]
        if "matched_text" in case:
            assert result.data["fuzzy_match"]["matched"] == result.metadata["matched_text"] == case["matched_text"]
            assert result.data["fuzzy_match"]["similarity"] == "87.5%"
    else:
        assert result.error is not None
        assert result.error.split(" (edit")[0] == case["message"].split(" (edit")[0]
        assert (result.success, await desk.content("a")) == (False, case["content"])


@pytest.mark.parametrize(
    ("tool", "params", "error"),
    [
        ("create", {"id": "a", "title": "A", "content": ""}, "Artifact 'a' already exists in session"),
        ("read", {"id": "b"}, "Artifact 'b' not found"),
        ("read", {"id": "a", "version": 9}, "Version 9 not found"),
        ("read", {"id": "a", "version": 0}, "Artifact 'a' not found"),
        ("update", {"id": "b", "old_str": "a", "new_str": "b"}, "Artifact 'b' not found"),
        ("rewrite", {"id": "b", "content": "a"}, "Artifact 'b' not found"),
        ("rewrite", {"id": "b"}, "Missing required parameter: content"),
    ],
)
async def test_a_failure_has_the_text_of_artifactflow(tool: str, params: dict[str, Any], error: str) -> None:
    desk = Desk()
    await desk.run("create", id="a", title="A", content="text")

    assert await desk.run(tool, **params) == ToolResult(False, error=error)


@pytest.mark.parametrize("version", ["1", 1, 1.0])
async def test_a_version_is_read_from_a_number_in_any_form(version: Any) -> None:
    desk = Desk()
    await desk.run("create", id="a", title="A", content="text")

    assert (await desk.run("read", id="a", version=version)).data["version"] == 1


async def test_a_value_of_the_wrong_type_is_named() -> None:
    error = "Invalid arguments for tool 'create_artifact':\n- content: expected a string, got [\"a\"] (an array)"

    assert await Desk().run("create", id="a", title="A", content=["a"]) == ToolResult(False, error=error)


async def test_a_tool_needs_a_manager_and_a_session() -> None:
    tool, manager = CreateArtifactTool(), ArtifactManager()
    params = {"id": "a", "title": "A", "content": "text"}

    bare = await tool(**params)
    tool.set_manager(manager)
    idle = await tool(**params)
    manager.set_session("s")

    assert bare.error == "ArtifactManager not configured"
    assert idle.error == "No active session"
    assert (await tool(**params)).success


async def test_each_session_has_its_own_artifacts() -> None:
    desk = Desk()
    await desk.run("create", id="a", title="A", content="first")

    desk.manager.set_session("t")
    missing = await desk.run("read", id="a")
    await desk.run("create", id="a", title="A", content="second")

    assert missing.error == "Artifact 'a' not found"
    desk.manager.set_session("s")
    assert await desk.content("a") == "first"


async def test_a_session_is_listed_with_previews() -> None:
    desk = Desk()
    await desk.run("create", id="long", title="L", content="x" * 300)
    await desk.run("create", id="short", title="S", content="y")

    long, short = await desk.manager.list_artifacts()
    (full, _) = await desk.manager.list_artifacts("s", full_content_ids=["long"])

    assert (long["id"], long["preview"]) == ("long", "x" * 200 + "[...]")
    assert (short["id"], short["preview"]) == ("short", "y")
    assert full["content"] == "x" * 300
    assert await desk.manager.list_artifacts("nobody") == []
    desk.manager.set_session(None)
    assert await desk.manager.list_artifacts() == []


async def test_temporary_artifacts_are_cleared_for_a_new_message() -> None:
    desk = Desk()
    for session in ("s", "other"):
        desk.manager.set_session(session)
        for id in ("task_plan", "report"):
            await desk.run("create", id=id, title="t", content=id)
            await desk.run("rewrite", id=id, content=id)

    assert await desk.manager.clear_temporary_artifacts("s") == 1
    assert await desk.manager.clear_temporary_artifacts("s") == 0

    assert [artifact["id"] for artifact in await desk.manager.list_artifacts("s")] == ["report"]
    assert len(await desk.manager.list_artifacts("other")) == 2
    desk.manager.set_session("s")
    assert (await desk.run("create", id="task_plan", title="t", content="new")).success
    assert (await desk.run("read", id="task_plan")).data["version"] == 1
    assert await desk.manager.clear_temporary_artifacts(temporary_ids=["report", "task_plan"]) == 2
    assert await ArtifactManager().clear_temporary_artifacts() == 0


async def test_a_repository_keeps_the_artifacts(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'crib.db'}"
    with Store.open(url) as store:
        await Desk(store).run("create", id="a", title="A", content="kept")

    with Store.open(url) as store:
        desk = Desk()
        desk.manager.set_repository(store)
        content = await desk.content("a")

    assert content == "kept"


@pytest.mark.parametrize("content", ["007", "true", "1.50", "plain"])
async def test_a_content_that_looks_like_a_value_is_text(content: str) -> None:
    desk = Desk()
    text = f"""<tool_call><name>create_artifact</name><params><id>1</id><title>T</title>
<content><![CDATA[{content}]]></content></params></tool_call>"""

    (call,) = parse_tool_calls(text)
    result = await desk.tools[call.name](**call.params)

    assert result.success
    assert isinstance(await desk.content("1"), str)


async def test_the_tools_are_tools_of_a_toolkit() -> None:
    desk = Desk()
    toolkit = Toolkit(tools=list(desk.tools.values()))

    response = await toolkit.call("create_artifact", id="a", title="A", content="007")
    again = await toolkit.call("create_artifact", id="a", title="A", content="007")

    assert (response.ok, await desk.content("a")) == (True, "007")
    assert (again.code, again.text) == ("failed", "Error: Artifact 'a' already exists in session")


def test_the_example_of_an_update_is_a_call_with_notes() -> None:
    example = Desk().tools["update_artifact"].to_xml_example()

    (call,) = parse_tool_calls(example)

    assert call.name == "update_artifact"
    assert "\n" in call.params["old_str"]
    assert example.count("Note: ") == 2
    assert example in ToolPromptGenerator.generate_tool_instruction(list(Desk().tools.values()))
