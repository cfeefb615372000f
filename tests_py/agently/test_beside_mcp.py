"""`use_mcp` with a server of fastmcp, side by side with Agently's."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.agently.fastmcp_server import server
from support.agently.transcript import THEIRS
from toolcrib.compat.agently import ToolManager

SCRIPT = Path(__file__).parents[1] / "support/agently/fastmcp_server.py"

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("num", {"a": 1}),
    ("num", {"a": 1, "b": 3}),
    ("num", {"a": "zz"}),
    ("num", {"x": 1}),
    ("obj", {"key": "k", "options": {"a": 1}}),
    ("names", {"name": "n", "arguments": "a", "kwargs": 3}),
    *((name, {}) for name in ("fails", "plain", "number", "json", "two", "nothing", "image", "audio")),
    *((name, {}) for name in ("link", "text_resource", "blob_resource")),
    ("nope", {}),
]

pytestmark = [
    pytest.mark.timeout(300),
    # fastmcp and the packages under it leave streams and sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def as_json(value: Any) -> Any:
    """Write URLs as JSON has them."""
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    return str(value) if type(value).__name__ == "AnyUrl" else value


@pytest.fixture(scope="module")
def theirs() -> Any:
    # In this process: Agently starts a server for each call.
    manager = THEIRS.manager()
    manager.use_mcp(server, tags=["remote"])
    return manager


@pytest.fixture(scope="module", params=["script", "config", "in process"])
def ours(request: pytest.FixtureRequest) -> Iterator[ToolManager]:
    config = {"mcpServers": {"cases": {"command": sys.executable, "args": [str(SCRIPT)]}}}
    transports: dict[str, Any] = {"script": str(SCRIPT), "config": config, "in process": server}
    manager = ToolManager()
    manager.use_mcp(transports[request.param], tags=["remote"])
    yield manager
    asyncio.run(manager.aclose())


def test_tools_are_described_equally(theirs: Any, ours: ToolManager) -> None:
    assert ours.tool_info == theirs.tool_info


@pytest.mark.parametrize(("name", "kwargs"), CALLS)
def test_results_are_equal(theirs: Any, ours: ToolManager, name: str, kwargs: dict[str, Any]) -> None:
    result = ours.call_tool(name, kwargs)

    # Agently leaves URLs as objects, which JSON cannot express.
    assert as_json(result) == as_json(theirs.call_tool(name, kwargs))


async def test_results_are_equal_inside_a_loop(theirs: Any, ours: ToolManager) -> None:
    assert ours.call_tool("num", {"a": 1}) == theirs.call_tool("num", {"a": 1}) == {"result": 3.0}
    assert await ours.async_call_tool("json", {}) == await theirs.async_call_tool("json", {})


def test_the_tags_of_the_server_apply(theirs: Any, ours: ToolManager) -> None:
    assert ours.tag_mappings["remote"] == theirs.tag_mappings["remote"]
    # Agently looks for them in a place where no version of fastmcp has had them.
    assert "math" not in theirs.tag_mappings
    assert ours.tag_mappings["math"] == ours.tag_mappings["sums"] == {"num"}


@pytest.mark.parametrize(
    "transport",
    ["nope.py", "nope", "python server.py", ["python"], None, 5, {"a": 1}, {"mcpServers": {}}],
    ids=repr,
)
def test_invalid_transports_are_refused_equally(transport: Any) -> None:
    with pytest.raises(ValueError) as theirs:
        THEIRS.manager().use_mcp(transport)
    with pytest.raises(ValueError) as ours:
        ToolManager().use_mcp(transport)

    assert str(ours.value) == str(theirs.value)


def test_servers_that_cannot_be_reached_raise_equally() -> None:
    with pytest.raises(RuntimeError) as theirs:
        THEIRS.manager().use_mcp("http://127.0.0.1:9/mcp")
    with pytest.raises(RuntimeError) as ours:
        ToolManager().use_mcp("http://127.0.0.1:9/mcp")

    assert str(ours.value).startswith(str(theirs.value))


def test_the_tools_of_several_servers_are_named_equally() -> None:
    entry = {"command": sys.executable, "args": [str(SCRIPT)]}
    config = {"mcpServers": {"one": entry, "two": entry}}
    theirs, ours = THEIRS.manager(), ToolManager()

    theirs.use_mcp(config)
    ours.use_mcp(config)
    asyncio.run(ours.aclose())

    assert list(ours.tool_info) == list(theirs.tool_info)
