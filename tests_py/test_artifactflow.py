"""ArtifactFlow's interface: tools, registries, prompts and results as its programs know them."""

import asyncio
import logging
from typing import Any

import pytest

from toolcrib import Toolkit
from toolcrib.compat.artifactflow import (
    AgentToolkit,
    BaseTool,
    ToolParameter,
    ToolPermission,
    ToolPromptGenerator,
    ToolRegistry,
    ToolResult,
)


class WebSearch(BaseTool):
    def __init__(self, **options: Any) -> None:
        super().__init__("web_search", "Search the web for information", **options)
        self.asked: list[dict[str, Any]] = []

    def get_parameters(self) -> list[ToolParameter]:
        return [
            ToolParameter("query", "string", "Search query using keywords."),
            ToolParameter("freshness", "string", "Time range filter", required=False, default="noLimit"),
            ToolParameter("count", "integer", "Number of results to return (1-50)", required=False, default=10),
        ]

    async def execute(self, **params: Any) -> ToolResult:
        self.asked.append(params)
        if params["query"] == "crash":
            raise ConnectionError("no route")
        if params["query"] == "nothing":
            return ToolResult(success=False, error="no results")
        return ToolResult(success=True, data={"hits": params["count"]}, metadata={"engine": "x"})


class Odd(BaseTool):
    """A tool with parameters of every type."""

    def get_parameters(self) -> list[ToolParameter]:
        return [
            ToolParameter("urls", "array[string]", "Pages.", default=["ignored"]),
            ToolParameter("flag", "boolean", "A switch."),
            ToolParameter("count", "integer", "A number."),
            ToolParameter("extra", "object", "Anything."),
            ToolParameter("strict", "boolean", "Another.", required=False, default=True),
            ToolParameter("zero", "integer", "Falsy.", required=False, default=0),
        ]

    async def execute(self, **params: Any) -> Any:
        return params


class Bare(BaseTool):
    """A tool without parameters."""

    def get_parameters(self) -> list[ToolParameter]:
        return []

    async def execute(self, **params: Any) -> ToolResult:
        return ToolResult(success=True)


def test_the_values_export_their_fields() -> None:
    parameter = ToolParameter("q", "string", "d")

    assert parameter.to_dict() == {
        "name": "q",
        "type": "string",
        "description": "d",
        "required": True,
        "default": None,
    }
    assert ToolResult(True).to_dict() == {"success": True, "data": None, "error": None, "metadata": {}}
    assert [(member.name, member.value) for member in ToolPermission] == [("AUTO", "auto"), ("CONFIRM", "confirm")]


def test_a_tool_keeps_what_it_is_given() -> None:
    tool = WebSearch(permission=ToolPermission.CONFIRM, api_key="k")

    assert (tool.name, tool.permission, tool.config) == ("web_search", ToolPermission.CONFIRM, {"api_key": "k"})
    assert Bare("b", "d").permission is ToolPermission.AUTO


def test_defaults_are_filled_in_before_the_tool_runs() -> None:
    tool = WebSearch()

    result = asyncio.run(tool(query="rust"))

    assert result == ToolResult(True, {"hits": 10}, None, {"engine": "x"})
    assert tool.asked == [{"query": "rust", "freshness": "noLimit", "count": 10}]


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({}, "Missing required parameter: query"),
        ({"zzz": 1, "count": 2}, "Missing required parameter: query"),
        ({"query": "a", "b": 1, "a": 2}, "Unknown parameter: b"),
        ({"query": "crash"}, "Tool execution failed: no route"),
    ],
)
def test_what_is_wrong_is_a_failed_result(params: dict[str, Any], error: str) -> None:
    result = asyncio.run(WebSearch()(**params))

    assert result == ToolResult(success=False, error=error)


def test_none_is_present_and_zero_is_a_default() -> None:
    tool = Odd("odd", "Odd.")

    result: Any = asyncio.run(tool(urls=[], flag=None, count=None, extra=None))

    assert result == {"urls": [], "flag": None, "count": None, "extra": None, "strict": True, "zero": 0}


def test_a_required_parameter_with_a_default_is_never_missing() -> None:
    result: Any = asyncio.run(Odd("odd", "Odd.")(flag=1, count=1, extra=1))

    assert result["urls"] == ["ignored"]


def test_an_exception_that_ends_a_program_is_not_a_failed_result() -> None:
    class Stop(Bare):
        async def execute(self, **params: Any) -> ToolResult:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Stop("stop", "Stops.")().send(None)


def test_validation_may_be_another() -> None:
    class Picky(WebSearch):
        def validate_params(self, params: dict[str, Any]) -> str | None:
            return "too long" if len(params["query"]) > 3 else None

    assert asyncio.run(Picky()(query="rust")).error == "too long"


def test_an_example_has_every_parameter() -> None:
    assert (
        Odd("odd", "Odd.").to_xml_example()
        == """\
<tool_call>
  <name>odd</name>
  <params>
    <urls>
      <item><![CDATA[value1]]></item>
      <item><![CDATA[value2]]></item>
    </urls>
    <flag><![CDATA[true]]></flag>
    <count><![CDATA[123]]></count>
    <extra><![CDATA[...]]></extra>
    <strict><![CDATA[True]]></strict>
    <zero><![CDATA[0]]></zero>
  </params>
</tool_call>"""
    )
    assert Bare("b", "d").to_xml_example() == "<tool_call>\n  <name>b</name>\n  <params>\n\n  </params>\n</tool_call>"


def test_an_instruction_documents_each_tool() -> None:
    text = ToolPromptGenerator.generate_tool_instruction([WebSearch(), Bare("ping", "Ping.")])

    assert text.startswith("<tool_instructions>\n")
    assert text.endswith("</tool_instructions>")
    assert (
        """
### web_search
Description: Search the web for information
Parameters:
  - query: string (required) - Search query using keywords.
  - freshness: string (optional) - Time range filter
    Default: noLimit
  - count: integer (optional) - Number of results to return (1-50)
    Default: 10
Example:
<tool_call>
  <name>web_search</name>
  <params>
    <query><![CDATA[your_query_here]]></query>
    <freshness><![CDATA[noLimit]]></freshness>
    <count><![CDATA[10]]></count>
  </params>
</tool_call>

### ping
Description: Ping.
Parameters: None
Example:
"""
        in text
    )


def test_a_tool_may_write_its_own_example() -> None:
    class Own(Bare):
        def to_xml_example(self) -> str:
            return "<tool_call>my own</tool_call>"

    assert "Example:\n<tool_call>my own</tool_call>\n" in ToolPromptGenerator.generate_tool_instruction([Own("o", "d")])


def test_without_tools_there_is_one_line() -> None:
    text = ToolPromptGenerator.generate_tool_instruction([])

    assert text == "<tool_instructions>\nNo tools available.\n</tool_instructions>"


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        ("two\nlines", ["    two", "    lines"]),
        (True, ["    True"]),
        ({"page title": "a<b", "top-hit": 0}, ["    <page_title>a<b</page_title>", "    <top_hit>0</top_hit>"]),
        ({"a": {"b": 1}}, ["    <a>", "    <b>1</b>", "    </a>"]),
        ([1, [2, "x"], {"c": None}], ["    <item>1</item>", "    <item>[2, 'x']</item>", "    <item>"]),
    ],
)
def test_a_result_is_plain_as_it_always_was(data: Any, lines: list[str]) -> None:
    text = ToolPromptGenerator.format_tool_result("t", {"success": True, "data": data})

    head = ["<tool_result>", "  <name>t</name>", "  <success>true</success>", "  <data>"]
    assert text.split("\n")[: 4 + len(lines)] == head + lines


def test_a_plain_result_is_indented_once_and_nothing_is_escaped() -> None:
    data = {"page title": "a < b", "top-hits": ["one\ntwo", {"n": 0}]}

    text = ToolPromptGenerator.format_tool_result("search", {"success": True, "data": data})

    assert text == (
        "<tool_result>\n  <name>search</name>\n  <success>true</success>\n  <data>\n"
        "    <page_title>a < b</page_title>\n    <top_hits>\n    <item>one\n    two</item>\n"
        "    <item>\n    <n>0</n>\n    </item>\n    </top_hits>\n"
        "  </data>\n</tool_result>"
    )


def test_a_plain_result_has_its_error() -> None:
    text = ToolPromptGenerator.format_tool_result("ping", {"success": False, "error": "no answer"})

    assert text == (
        "<tool_result>\n  <name>ping</name>\n  <success>false</success>\n  <error>no answer</error>\n</tool_result>"
    )


@pytest.mark.parametrize("data", [0, False, "", None, [], {}])
def test_falsy_data_is_left_out_of_a_plain_result(data: Any) -> None:
    text = ToolPromptGenerator.format_tool_result("t", {"data": data, "error": ""})

    assert text == "<tool_result>\n  <name>t</name>\n  <success>false</success>\n</tool_result>"


def test_a_result_can_be_escaped() -> None:
    result = ToolResult(True, {"n": 0, "html": "</tool_result>"}).to_dict()

    text = ToolPromptGenerator.format_tool_result("t", result, escape=True)

    assert "<n>0</n>" in text
    assert text.count("</tool_result>") == 1


def test_the_form_of_results_is_described() -> None:
    text = ToolPromptGenerator.generate_result_format()

    assert all(f"<{tag}>" in text for tag in ("tool_result", "name", "success", "data", "item", "error"))


def test_a_registry_makes_toolkits_that_share_their_tools(caplog: pytest.LogCaptureFixture) -> None:
    registry, search = ToolRegistry(), WebSearch()
    registry.register_tool_to_library(search)

    with caplog.at_level(logging.WARNING, "toolcrib"):
        lead = registry.create_agent_toolkit("lead", ["web_search", "missing"])
    other = registry.create_agent_toolkit("other", ["web_search"])

    assert lead.get_tool("web_search") is other.get_tool("web_search") is search
    assert registry.get_agent_toolkit("lead") is lead
    assert registry.get_agent_toolkit("nobody") is None
    assert "there is no tool 'missing'" in caplog.text


def test_a_new_toolkit_takes_the_place_of_the_old() -> None:
    registry = ToolRegistry()
    registry.register_tool_to_library(WebSearch())
    registry.create_agent_toolkit("lead", ["web_search"])

    toolkit = registry.create_agent_toolkit("lead")

    assert toolkit.list_tools() == []
    assert registry.agent_toolkits == {"lead": toolkit}


def test_an_agent_runs_its_own_tools_only(caplog: pytest.LogCaptureFixture) -> None:
    toolkit = AgentToolkit("lead")
    toolkit.add_tools([WebSearch(), Bare("ping", "Ping.")])

    found = asyncio.run(toolkit.execute_tool("web_search", {"query": "a"}))
    missing = asyncio.run(toolkit.execute_tool("rm", {}))
    with caplog.at_level(logging.WARNING, "toolcrib"):
        toolkit.add_tool(WebSearch())

    assert found.success
    assert missing == ToolResult(False, error="Tool 'rm' not available in lead's toolkit")
    assert [tool.name for tool in toolkit.list_tools()] == ["web_search", "ping"]
    assert "'web_search' was in the toolkit of 'lead' before" in caplog.text


def test_a_tool_may_be_registered_in_a_toolkit() -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(WebSearch(permission=ToolPermission.CONFIRM))
    toolkit.register_tool_function(Odd("odd", "Odd."))

    assert toolkit.tools["web_search"].permission == "confirm"
    assert toolkit.tools["odd"].permission == "auto"
    schema = toolkit.tools["odd"].json_schema["function"]
    assert schema["description"] == "Odd."
    assert schema["parameters"]["required"] == ["flag", "count", "extra"]
    assert schema["parameters"]["properties"]["urls"]["items"] == {"type": "string"}
    assert schema["parameters"]["properties"]["zero"] == {"type": "integer", "description": "Falsy.", "default": 0}


def test_a_registered_tool_answers_as_any_other_does() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(WebSearch())

    good = toolkit.run("web_search", query="rust", count=3)
    bad = toolkit.run("web_search", query="nothing")
    wrong = toolkit.run("web_search", query="rust", page=1)

    assert (good.ok, good.text, good.metadata) == (True, '{"hits": 3}', {"engine": "x", "value": {"hits": 3}})
    assert (bad.code, bad.text) == ("failed", "Error: no results")
    assert wrong.code == "invalid_arguments"


def test_a_tool_that_asks_does_not_run_unasked() -> None:
    toolkit, tool = Toolkit(), WebSearch(permission=ToolPermission.CONFIRM)
    toolkit.register_tool_function(tool)

    response = toolkit.run("web_search", query="rust")

    assert not response.ok
    assert tool.asked == []


def test_the_stricter_permission_holds() -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(WebSearch(permission=ToolPermission.AUTO), permission="confirm")

    assert toolkit.tools["web_search"].permission == "confirm"


def test_a_result_that_says_something_else_is_an_error() -> None:
    class Wrong:
        def __tool_response__(self) -> str:
            return "text"

    toolkit = Toolkit()
    toolkit.register_tool_function(lambda: Wrong(), func_name="wrong")

    response = toolkit.run("wrong")

    assert response.code == "failed"
    assert response.text == "TypeError: Wrong.__tool_response__ must return a ToolResponse, not str"
