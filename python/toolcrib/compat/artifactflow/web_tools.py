"""The web tools of ArtifactFlow: `web_search` and `web_fetch`, over functions of the program.

toolcrib has no search engine and no browser: the program passes the function that searches, and the one that loads a
page. Their results are untrusted text, which is escaped.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any
from xml.sax.saxutils import escape

from toolcrib.compat.artifactflow.base import BaseTool, ToolParameter, ToolPermission, ToolResult

__all__ = ["FetchedPage", "SearchResult", "SearchResults", "WebFetchTool", "WebSearchTool"]

MOST_RESULTS = 50
MOST_CONCURRENT = 5
TRUNCATED = "[Content truncated]"


@dataclass(frozen=True)
class SearchResult:
    """A page that a search has found."""

    title: str
    url: str
    snippet: str
    summary: str | None = None
    site_name: str | None = None
    date_published: str | None = None


@dataclass(frozen=True)
class SearchResults:
    """The results of a search.

    Args:
        results: The pages.
        total_matches: The number of all matches, if it is known.
        log_id: The id of the search at its provider, if it has one.
    """

    results: Sequence[SearchResult] = ()
    total_matches: int | None = None
    log_id: str | None = None


@dataclass(frozen=True)
class FetchedPage:
    """A page that was loaded.

    Args:
        content: Its text.
        title: Its title.
        source_type: The kind of document, such as `"webpage"` or `"pdf"`.
        page_count: The number of pages of a document that has pages.
        fetched_at: The time in ISO form; now if it is not given.
    """

    content: str
    title: str = ""
    source_type: str = "webpage"
    page_count: int | None = None
    fetched_at: str = field(default_factory=lambda: datetime.now(timezone.utc).isoformat())


Found = SearchResults | Iterable[SearchResult | Mapping[str, Any]]
Search = Callable[[str, str, int], Found | Awaitable[Found]]
"""Searches for a query, a time range such as `"noLimit"`, and a number of results; may be a coroutine function."""

Fetch = Callable[[str], FetchedPage | str | Awaitable[FetchedPage | str]]
"""Loads the page of a URL, and raises an exception if that fails; may be a coroutine function."""


class WebSearchTool(BaseTool):
    """Searches the web.

    Args:
        search: The function that searches. Without it, each call is a failed result.
        permission: Whether it runs at once.
    """

    def __init__(self, search: Search | None = None, permission: ToolPermission = ToolPermission.AUTO) -> None:
        super().__init__("web_search", "Search the web for information.", permission)
        self.search = search

    def get_parameters(self) -> list[ToolParameter]:
        """Return the query, the time range and the number of results."""
        return [
            ToolParameter("query", "string", "Search query using keywords."),
            ToolParameter(
                "freshness", "string", "Time range filter, such as 'noLimit' or 'oneDay'", False, default="noLimit"
            ),
            ToolParameter("count", "integer", f"Number of results to return (1-{MOST_RESULTS})", False, default=10),
        ]

    async def execute(self, **params: Any) -> ToolResult:
        """Search, and write the results as XML text."""
        if self.search is None:
            return ToolResult(success=False, error="web_search is not configured: it has no search function")
        # The parser guesses types: the query "2024" arrives as a number.
        query, count = str(params["query"]), max(1, min(int(params["count"]), MOST_RESULTS))
        try:
            found = await _settled(self.search(query, str(params["freshness"]), count))
        except Exception as error:
            return ToolResult(success=False, error=f"Search failed: {error}")
        if not isinstance(found, SearchResults):
            results = [each if isinstance(each, SearchResult) else SearchResult(**each) for each in found]
            found = SearchResults(results)
        shown = found.results[:count]
        total = len(found.results) if found.total_matches is None else found.total_matches
        metadata = {"query": query, "total_matches": total, "results_count": len(shown), "log_id": found.log_id}
        names = ("title", "url", "snippet", "summary", "site_name", "date_published")
        entries = [_element("search_result", {name: getattr(each, name) for name in names}) for each in shown]
        return ToolResult(True, _document("search_results", entries), metadata=metadata)


class WebFetchTool(BaseTool):
    """Loads the text of web pages.

    Args:
        fetch: The function that loads a page. Without it, each call is a failed result.
        permission: Whether it runs at once.
    """

    def __init__(self, fetch: Fetch | None = None, permission: ToolPermission = ToolPermission.AUTO) -> None:
        super().__init__("web_fetch", "Fetch the content of web pages and PDF documents.", permission)
        self.fetch = fetch

    def get_parameters(self) -> list[ToolParameter]:
        """Return the URLs, and the limits."""
        return [
            ToolParameter("url_list", "array[string]", "The URLs to fetch."),
            ToolParameter(
                "max_content_length", "integer", "Maximum number of characters of each page", False, default=10000
            ),
            ToolParameter(
                "max_concurrent", "integer", f"Number of pages at a time (1-{MOST_CONCURRENT})", False, default=3
            ),
        ]

    async def execute(self, **params: Any) -> ToolResult:
        """Load the pages, and write them as XML text. A page that fails is an entry of its own."""
        if self.fetch is None:
            return ToolResult(success=False, error="web_fetch is not configured: it has no fetch function")
        given, most = params["url_list"], int(params["max_content_length"])
        urls = [given] if isinstance(given, str) else [str(url) for url in given]
        if not urls:
            return ToolResult(success=False, error="url_list parameter cannot be empty")
        places = asyncio.Semaphore(max(1, min(int(params["max_concurrent"]), MOST_CONCURRENT)))

        async def load(url: str) -> str:
            assert self.fetch is not None
            try:
                async with places:
                    page = await _settled(self.fetch(url))
            except Exception as error:
                return _element("fetch_error", {"url": url, "error": str(error) or type(error).__name__})
            return _page(url, page if isinstance(page, FetchedPage) else FetchedPage(page), most)

        # Also if every page has failed, the call itself has not.
        return ToolResult(True, _document("fetch_results", await asyncio.gather(*map(load, urls))))


def _page(url: str, page: FetchedPage, most: int) -> str:
    content = page.content if len(page.content) <= most else f"{page.content[:most]}\n{TRUNCATED}"
    fields = {
        "url": url,
        "title": page.title,
        "source_type": page.source_type,
        "page_count": page.page_count,
        "content": content,
        "word_count": len(page.content.split()),
        "fetched_at": page.fetched_at,
    }
    return _element("fetch_result", fields)


def _element(name: str, fields: Mapping[str, Any]) -> str:
    """Write an element with an element for each field that is not None."""
    lines = [f"    <{key}>{escape(str(value))}</{key}>" for key, value in fields.items() if value is not None]
    return "\n".join([f"  <{name}>", *lines, f"  </{name}>"])


def _document(name: str, entries: Iterable[str]) -> str:
    return "\n".join([f"<{name}>", *entries, f"</{name}>"])


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
