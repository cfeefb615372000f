"""A server of fastmcp with a tool for every kind of result: a script, and a server in the same process."""

from __future__ import annotations

from typing import Any

from fastmcp import FastMCP
from fastmcp.tools.tool import ToolResult
from mcp.types import (
    Annotations,
    AudioContent,
    BlobResourceContents,
    EmbeddedResource,
    Icon,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from pydantic import AnyUrl

server = FastMCP("cases")


@server.tool(tags={"math", "sums"})
def num(a: float, b: float = 2) -> float:
    """adds"""
    return a + b


@server.tool
def obj(key: str, options: dict[str, int] | None = None) -> dict[str, Any]:
    return {key: options}


@server.tool
def names(name: str, arguments: str, kwargs: int = 2) -> list[Any]:
    return [name, arguments, kwargs]


@server.tool
def fails() -> str:
    raise ValueError("bad input")


def gives(name: str, *blocks: Any) -> None:
    def give() -> ToolResult:
        return ToolResult(content=list(blocks))

    server.tool(give, name=name)


gives("plain", TextContent(type="text", text="hello there"))
gives("number", TextContent(type="text", text="42"))
gives("json", TextContent(type="text", text='{"a": [1, 2]}'))
gives("two", TextContent(type="text", text="first"), TextContent(type="text", text="second"))
gives("nothing")
image = ImageContent(type="image", data="QUJD", mimeType="image/png", annotations=Annotations(priority=0.5))
gives("image", image)
gives("audio", AudioContent(type="audio", data="QUJD", mimeType="audio/wav"))
icons = [Icon(src="https://example.org/x.png", mimeType="image/png")]
gives("link", ResourceLink(type="resource_link", name="x", uri=AnyUrl("file:///x.txt"), size=3, icons=icons))
text = TextResourceContents(uri=AnyUrl("file:///x.txt"), text="body")
gives("text_resource", EmbeddedResource(type="resource", resource=text))
blob = BlobResourceContents(uri=AnyUrl("file:///x.bin"), blob="QUJD", _meta={"k": 1})
gives("blob_resource", EmbeddedResource(type="resource", resource=blob, _meta={"z": 2}))

if __name__ == "__main__":
    server.run(show_banner=False)
