"""Peers from npm: the reference servers, the Inspector, and the official conformance suite."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.mcp.processes import HERE, NPM, OUR_SERVER, command, free_port, running, until
from support.streams import block, read
from toolcrib import Toolkit, mcp

NODE = NPM.parent / "node" / "bin" / "node"

pytestmark = pytest.mark.skipif(not NODE.exists(), reason="npm is absent or could not install the peers")

CLIENT_SCENARIOS = ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"]
SERVER_SCENARIOS = [
    "server-initialize",
    "logging-set-level",
    "ping",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-with-logging",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-sampling",
    "tools-call-elicitation",
    "json-schema-2020-12",
    "elicitation-sep1034-defaults",
    "server-sse-polling",
    "server-sse-multiple-streams",
    "elicitation-sep1330-enums",
    "dns-rebinding-protection",
]

OTHERS = ("resources-", "prompts-", "completion-", "auth/")


def node(program: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program of npm."""
    words = [str(NODE), str(NPM / program), *arguments]
    return subprocess.run(words, capture_output=True, text=True, timeout=50, check=False, **options)


def reference(program: str, *arguments: str) -> list[str]:
    """Return the command of a reference server."""
    return [str(NODE), str(NPM / program), *arguments]


async def test_the_reference_server_for_everything_works() -> None:
    async with mcp.connect(reference("mcp-server-everything", "stdio"), name="everything") as client:
        toolkit = Toolkit()
        registration = await toolkit.register_mcp_client(client)

        echo = await toolkit.call("echo", message="hello")
        total = await toolkit.call("get-sum", a=2, b=3)
        picture = await toolkit.call("get-tiny-image")
        weather = await toolkit.call("get-structured-content", location="New York")

    assert len(registration.tools) >= 10
    assert not registration.skipped
    assert echo.text == "Echo: hello"
    assert "5" in total.text
    assert "image" in [block["type"] for block in picture.content]
    assert (weather.metadata or {})["structured_content"]["conditions"]


async def test_the_reference_server_asks_the_model_and_the_user() -> None:
    requests: list[Any] = []
    questions: list[Any] = []

    async def sampler(request: Any) -> str:
        requests.append(request)
        return "from the sampler"

    async def asker(question: Any) -> Any:
        questions.append(question)
        required = question.schema.get("required", [])
        return {
            name: {"string": "Ann", "boolean": True}[question.schema["properties"][name]["type"]] for name in required
        }

    toolkit = Toolkit(asker=asker)
    async with mcp.connect(reference("mcp-server-everything", "stdio"), name="everything", sampler=sampler) as client:
        await toolkit.register_mcp_client(client)
        await until(lambda: "trigger-sampling-request" in toolkit.tools)

        sampled = await toolkit.call("trigger-sampling-request", prompt="hello", maxTokens=10)
        elicited = await toolkit.call("trigger-elicitation-request")

    assert "from the sampler" in sampled.text
    assert requests[0].max_tokens == 10
    assert requests[0].system_prompt == "You are a helpful test server."
    assert questions[0].schema["properties"]["name"]["type"] == "string"
    assert "Ann" in elicited.text


async def test_the_reference_server_reports_progress_and_is_cancelled() -> None:
    toolkit = Toolkit()
    async with mcp.connect(reference("mcp-server-everything", "stdio"), name="everything") as client:
        await toolkit.register_mcp_client(client)

        call = block("trigger-long-running-operation", duration=0.4, steps=4)
        chunks = await read(toolkit.call_tool_function(call))
        long = asyncio.create_task(toolkit.call("trigger-long-running-operation", duration=3600, steps=1))
        await asyncio.sleep(0.2)
        long.cancel()
        with pytest.raises(asyncio.CancelledError):
            await long
        echo = await toolkit.call("echo", message="still here")

    done = [(chunk.metadata or {})["progress"]["done"] for chunk in chunks if chunk.mode == "progress"]
    assert done == [1, 2, 3, 4]
    assert "completed" in chunks[-1].text
    assert echo.text == "Echo: still here"


async def test_every_tool_of_the_reference_server_that_needs_no_network_is_called() -> None:
    arguments: dict[str, dict[str, Any]] = {
        "echo": {"message": "hello"},
        "get-annotated-message": {"messageType": "error", "includeImage": True},
        "get-env": {},
        "get-resource-links": {"count": 2},
        "get-resource-reference": {"resourceType": "Text", "resourceId": 1},
        "get-structured-content": {"location": "Chicago"},
        "get-sum": {"a": 1, "b": 2},
        "get-tiny-image": {},
        "toggle-simulated-logging": {},
        "toggle-subscriber-updates": {},
        "trigger-long-running-operation": {"duration": 0.1, "steps": 1},
    }
    toolkit = Toolkit()
    async with mcp.connect(reference("mcp-server-everything", "stdio"), name="everything") as client:
        await toolkit.register_mcp_client(client)

        responses = {name: await toolkit.call(name, **given) for name, given in arguments.items()}

    assert {name: response.code for name, response in responses.items()} == dict.fromkeys(arguments)
    assert len((responses["get-resource-links"].metadata or {})["resource_links"]) == 2
    assert set(toolkit.tools) - set(arguments) <= {
        "gzip-file-as-resource",
        "get-roots-list",
        "simulate-research-query",
        "trigger-elicitation-request",
        "trigger-url-elicitation",
    }


async def test_the_reference_server_for_files_works(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("wood")
    async with mcp.connect(reference("mcp-server-filesystem", str(tmp_path)), name="files") as client:
        toolkit = Toolkit()
        await toolkit.register_mcp_client(client)

        text = await toolkit.call("read_text_file", path=str(tmp_path / "note.txt"))
        outside = await toolkit.call("read_text_file", path="/etc/passwd")

    assert text.text == "wood"
    assert outside.code == "failed"


async def test_the_reference_server_over_http_works() -> None:
    port = free_port()
    environment = {"PORT": str(port), "PATH": "/usr/bin:/bin"}
    with running(reference("mcp-server-everything", "streamableHttp"), port, env=environment):
        async with mcp.connect(f"http://127.0.0.1:{port}/mcp", name="everything") as client:
            toolkit = Toolkit()
            await toolkit.register_mcp_client(client)

            echo = await toolkit.call("echo", message="hello")

    assert echo.text == "Echo: hello"


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """Run the server that the conformance suite expects."""
    port = free_port()
    with running(command(HERE / "conformance_server.py", str(port)), port):
        yield f"http://127.0.0.1:{port}/mcp"


def inspect(*arguments: str) -> Any:
    """Run the Inspector's command line."""
    result = node("mcp-inspector", "--cli", *arguments)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_the_inspector_lists_and_calls_a_toolkit() -> None:
    server = command(OUR_SERVER, "stdio")

    listed = inspect(*server, "--method", "tools/list")
    called = inspect(*server, "--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=2", "--tool-arg", "b=3")

    assert "add" in [tool["name"] for tool in listed["tools"]]
    assert called["content"][0]["text"] == "5"


def test_only_scenarios_about_other_things_than_tools_are_left_out() -> None:
    listed = node("conformance", "list").stdout
    server, client = listed.split("Client scenarios")

    def names(text: str) -> set[str]:
        return set(re.findall(r"^  - (\S+)", text, re.MULTILINE))

    assert {name for name in names(server) if not name.startswith(OTHERS)} == set(SERVER_SCENARIOS)
    assert {name for name in names(client) if not name.startswith(OTHERS)} == set(CLIENT_SCENARIOS)


@pytest.mark.parametrize("scenario", CLIENT_SCENARIOS)
def test_the_client_passes_the_conformance_suite(scenario: str, tmp_path: Path) -> None:
    client = f"{sys.executable} {HERE / 'conformance_client.py'}"

    result = node("conformance", "client", "--command", client, "--scenario", scenario, cwd=tmp_path)

    assert result.returncode == 0, result.stdout + result.stderr
    assert_passed(result.stdout + result.stderr)


@pytest.mark.parametrize("scenario", SERVER_SCENARIOS)
def test_the_server_passes_the_conformance_suite(scenario: str, served: str, tmp_path: Path) -> None:
    result = node("conformance", "server", "--url", served, "--scenario", scenario, cwd=tmp_path)

    assert result.returncode == 0, result.stdout + result.stderr
    assert_passed(result.stdout + result.stderr)


def assert_passed(output: str) -> None:
    """Assert that checks were made, and none of them failed."""
    counts = re.findall(r"(\d+)/(\d+) passed, (\d+) failed", output) or re.findall(
        r"Passed: (\d+)/(\d+), (\d+) failed", output
    )
    assert counts, output
    assert all(passed == total and total != "0" and failed == "0" for passed, total, failed in counts), output
