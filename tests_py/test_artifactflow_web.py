"""The web tools of ArtifactFlow, over functions of the program."""

import asyncio
from typing import Any
from xml.etree import ElementTree

import pytest

from toolcrib.compat.artifactflow import (
    AgentToolkit,
    FetchedPage,
    SearchResult,
    SearchResults,
    ToolPermission,
    WebFetchTool,
    WebSearchTool,
)

PAGE = SearchResult("Bread & butter", "https://example.org/?a=1&b=2", "<b>Bread</b>", date_published="2026-01-01")


def read(text: str) -> list[tuple[str, dict[str, Any]]]:
    """The entries of a document, each with its tag and its fields."""
    return [(entry.tag, {field.tag: field.text for field in entry}) for entry in ElementTree.fromstring(text)]


async def test_a_search_gives_its_results_as_escaped_xml() -> None:
    asked: list[Any] = []

    async def search(query: str, freshness: str, count: int) -> SearchResults:
        asked.append((query, freshness, count))
        return SearchResults([PAGE] * 60, total_matches=1000, log_id="x7")

    result = await WebSearchTool(search)(query="bread", count=99)

    assert asked == [("bread", "noLimit", 50)]
    assert result.data.startswith("<search_results>\n  <search_result>\n    <title>Bread &amp; butter</title>\n")
    entries = read(result.data)
    assert entries[0] == (
        "search_result",
        {"title": PAGE.title, "url": PAGE.url, "snippet": PAGE.snippet, "date_published": PAGE.date_published},
    )
    assert result.metadata == {"query": "bread", "total_matches": 1000, "results_count": 50, "log_id": "x7"}
    assert len(entries) == 50


async def test_a_search_may_be_a_function_of_mappings() -> None:
    found = {"title": "T", "url": "u", "snippet": "s", "site_name": "Example"}
    toolkit = AgentToolkit("search_agent")
    toolkit.add_tool(WebSearchTool(lambda query, freshness, count: [found]))

    result = await toolkit.execute_tool("web_search", {"query": 2024})

    assert read(result.data) == [("search_result", found)]
    assert result.metadata["query"] == "2024"


@pytest.mark.parametrize(
    ("tool", "params", "error"),
    [
        (WebSearchTool(), {"query": "q"}, "web_search is not configured: it has no search function"),
        (WebFetchTool(), {"url_list": ["u"]}, "web_fetch is not configured: it has no fetch function"),
        (WebFetchTool(lambda url: ""), {"url_list": []}, "url_list parameter cannot be empty"),
        (WebSearchTool(lambda *given: 1 / 0), {"query": "q"}, "Search failed: division by zero"),  # type: ignore[arg-type]
    ],
)
async def test_a_call_that_cannot_run_is_a_failed_result(tool: Any, params: dict[str, Any], error: str) -> None:
    result = await tool(**params)

    assert (result.success, result.error) == (False, error)


async def test_pages_are_loaded_a_few_at_a_time_and_keep_their_order() -> None:
    running, most = 0, 0

    async def fetch(url: str) -> FetchedPage:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return FetchedPage(f"text of {url}", f"Page {url}", fetched_at="now")

    result = await WebFetchTool(fetch)(url_list=[str(number) for number in range(20)], max_concurrent=99)

    entries = read(result.data)
    assert [fields["url"] for _, fields in entries] == [str(number) for number in range(20)]
    assert entries[0] == (
        "fetch_result",
        {
            "url": "0",
            "title": "Page 0",
            "source_type": "webpage",
            "content": "text of 0",
            "word_count": "3",
            "fetched_at": "now",
        },
    )
    assert 1 < most <= 5


async def test_one_url_may_be_a_text_and_a_failed_page_is_an_entry() -> None:
    def fetch(url: str) -> str:
        if url == "gone":
            raise ConnectionError("no route")
        return "a < b " * 3

    tool = WebFetchTool(fetch)
    one = await tool(url_list="here", max_content_length=5)
    both = await tool(url_list=["here", "gone"])

    assert read(one.data)[0][1]["content"] == "a < b\n[Content truncated]"
    assert read(both.data)[1] == ("fetch_error", {"url": "gone", "error": "no route"})
    assert both.success


def test_the_tools_are_declared_as_in_artifactflow() -> None:
    search, fetch = WebSearchTool(), WebFetchTool(permission=ToolPermission.CONFIRM)

    assert [(each.name, each.type, each.required, each.default) for each in search.get_parameters()] == [
        ("query", "string", True, None),
        ("freshness", "string", False, "noLimit"),
        ("count", "integer", False, 10),
    ]
    assert [(each.name, each.type, each.required, each.default) for each in fetch.get_parameters()] == [
        ("url_list", "array[string]", True, None),
        ("max_content_length", "integer", False, 10000),
        ("max_concurrent", "integer", False, 3),
    ]
    assert (search.name, fetch.name, fetch.permission) == ("web_search", "web_fetch", ToolPermission.CONFIRM)
