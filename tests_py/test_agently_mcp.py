"""`use_mcp` of `toolcrib.compat.agently`, in every case that was recorded with Agently 4.0.7.5."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from toolcrib import mcp
from toolcrib.compat.agently import ToolManager
from toolcrib.errors import McpConnectionError

ROOT = Path(__file__).parents[1]
SERVER = ROOT / "tests_py/support/agently/mcp_server.py"
SCRIPTED = ROOT / "tests/data/mcp/scripted_server.py"
CASES: list[dict[str, Any]] = json.loads((ROOT / "tests/data/agently_mcp_cases.json").read_text())["cases"]

INFOS = [case for case in CASES if "tool" in case]
CALLS = [case for case in CASES if "returns" in case]


@asynccontextmanager
async def imported(transport: Any = SERVER, **options: Any) -> AsyncIterator[ToolManager]:
    manager = ToolManager()
    try:
        await manager.async_use_mcp(transport, **options)
        yield manager
    finally:
        await manager.aclose()


def as_recorded(value: Any) -> Any:
    """Write a value as the cases have it: lists for tuples, and a word for the type `Any`."""
    if isinstance(value, dict):
        return {key: as_recorded(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [as_recorded(item) for item in value]
    return "<Any>" if value is Any else value


async def test_tools_are_described_as_by_agently() -> None:
    async with imported() as manager:
        assert {case["tool"]: as_recorded(manager.tool_info[case["tool"]]) for case in INFOS} == {
            case["tool"]: case["info"] for case in INFOS
        }


@pytest.mark.parametrize("case", CALLS, ids=lambda case: case["call"])
async def test_results_are_those_of_agently(case: dict[str, Any]) -> None:
    async with imported() as manager:
        result = await manager.async_call_tool(case["call"], case["kwargs"])

    # URLs are text, which JSON can express. The server of this test has given the resource metadata.
    expected = json.loads(json.dumps(case["returns"]).replace("AnyUrl('file:///x.txt')", "file:///x.txt"))
    if case["call"] == "res":
        expected["meta"] = {"k": 1}
    assert result == expected
    assert type(result).__name__ == case["returns_type"]
    if isinstance(result, dict):
        assert list(result) == list(expected)


async def test_the_tags_of_the_server_and_of_the_program_apply() -> None:
    async with imported(tags="remote") as manager:
        (case,) = [case for case in CASES if "tags_math" in case]
        assert len(manager.get_tool_list("remote")) == len(manager.tool_info) >= case["tags_remote_count"]
        assert list(manager.get_tool_info("math")) == list(manager.get_tool_info("sums")) == ["tagged"]
        assert list(manager.get_tool_info("words")) == ["text_plain"]


async def test_an_unreachable_server_is_an_error_text() -> None:
    (case,) = [case for case in CASES if "returns_prefix" in case]
    with http_server() as (server, url):
        async with imported(url) as manager:
            assert await manager.async_call_tool("echo", {"a": 1}) == {"arguments": {"a": 1}}
            server.kill()
            server.wait()

            outcome = await manager.async_call_tool("echo", {"a": 1})

    assert outcome.startswith(case["returns_prefix"])


@contextmanager
def http_server() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a server in a process, over HTTP."""
    command = [sys.executable, str(SCRIPTED), "well", "--http", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server, f"http://127.0.0.1:{server.stdout.readline().split()[-1]}/mcp"
        finally:
            server.kill()


def test_use_mcp_works_without_a_loop(manager: ToolManager) -> None:
    manager.use_mcp(str(SERVER))

    assert manager.call_tool("num", {"a": 1, "b": 3}) == {"result": 4}
    assert manager.call_tool("num", {"a": 1}) == {"result": 3.0}


async def test_use_mcp_works_inside_a_running_loop(manager: ToolManager) -> None:
    manager.use_mcp(SERVER)

    assert manager.call_tool("text_number", {}) == 42
    assert await manager.async_call_tool("text_number", {}) == 42


@pytest.fixture
def manager() -> Iterator[ToolManager]:
    manager = ToolManager()
    yield manager
    asyncio.run(manager.aclose())


async def test_the_server_runs_until_the_manager_is_closed() -> None:
    async with imported() as manager:
        first = await manager.async_call_tool("pid", {})
        assert await manager.async_call_tool("pid", {}) == first

    outcome = await manager.async_call_tool("pid", {})
    assert outcome.startswith("Error: Client failed to connect")


async def test_the_function_of_a_tool_can_be_called() -> None:
    async with imported() as manager:
        function = manager.get_tool_func("num")
        assert function is not None
        assert function.__name__ == "num"
        assert await function(a=1) == {"result": 3.0}


@pytest.mark.parametrize("name", ["empty", "nothing", "unknown_block"])
async def test_a_result_without_a_known_block_is_none(name: str) -> None:
    async with imported() as manager:
        assert await manager.async_call_tool(name, {}) is None


async def test_an_error_without_text_is_an_empty_text() -> None:
    async with imported() as manager:
        assert await manager.async_call_tool("fails_silently", {}) == {"error": ""}


async def test_an_error_of_the_protocol_is_an_error_text() -> None:
    async with imported(mcp.connect([sys.executable, str(SCRIPTED), "rpc-error"])) as manager:
        outcome = await manager.async_call_tool("echo", {})

    assert outcome.startswith("Error: ")
    assert "the tool is on strike" in outcome


async def test_the_tools_of_several_servers_are_named_by_their_servers() -> None:
    entry = {"command": sys.executable, "args": [str(SERVER)]}
    async with imported({"mcpServers": {"one": entry, "two": entry}}, tags=["x", "y"]) as manager:
        assert {"one_num", "two_num"} <= set(manager.get_tool_info("x"))
        assert "num" not in manager.tool_info
        assert await manager.async_call_tool("two_num", {"a": 1}) == {"result": 3.0}
    async with imported({"mcpServers": {"one": entry}}) as manager:
        assert "num" in manager.tool_info


async def test_a_later_server_replaces_tools_of_the_same_name() -> None:
    async with imported() as manager:
        manager.register(name="num", desc="own", kwargs={}, func=lambda: "own", tags="own")
        await manager.async_use_mcp(SERVER)

        assert manager.tool_info["num"]["desc"] == "adds"
        assert await manager.async_call_tool("num", {"a": 1}) == {"result": 3.0}
        assert "num" in manager.get_tool_info("own")


@pytest.mark.parametrize(
    ("transport", "text"),
    [
        ("nope.py", "Could not infer a valid transport from: nope.py"),
        ("python server.py", "Could not infer a valid transport from: python server.py"),
        (None, "Could not infer a valid transport from: None"),
        (5, "Could not infer a valid transport from: 5"),
        (["python"], "Could not infer a valid transport from: ['python']"),
        ({"a": 1}, "No MCP servers defined in the config"),
        ({"mcpServers": {}}, "No MCP servers defined in the config"),
    ],
)
async def test_an_invalid_transport_is_refused(manager: ToolManager, transport: Any, text: str) -> None:
    with pytest.raises(ValueError) as raised:
        await manager.async_use_mcp(transport)

    assert str(raised.value) == text


@pytest.mark.parametrize(
    "transport", ["http://127.0.0.1:9/mcp", {"mcpServers": {"a": {"command": "no-such-program-at-all"}}}]
)
def test_a_server_that_cannot_be_reached_raises_a_runtime_error(manager: ToolManager, transport: Any) -> None:
    with pytest.raises(RuntimeError, match="Client failed to connect") as raised:
        manager.use_mcp(transport)

    assert isinstance(raised.value, McpConnectionError)
    assert manager.tool_info == {}


@pytest.mark.parametrize(
    "transport", [object(), "http://127.0.0.1:9/sse", {"mcpServers": {"a": {"url": "http://x/", "transport": "sse"}}}]
)
def test_a_missing_package_is_an_error_and_no_question(
    manager: ToolManager, transport: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastmcp", None)
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked on standard input"))

    with pytest.raises(ImportError, match=r"pip install 'fastmcp>=2\.10'"):
        manager.use_mcp(transport)
