"""MCP clients and the life of a process, and servers that misbehave, as a Python program sees them."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from support.short_processes import wrong_results
from support.waiting import until
from toolcrib import Toolkit, mcp
from toolcrib.context import Question
from toolcrib.mcp import SamplingRequest

SCRIPTED = str(Path(__file__).parent.parent / "tests" / "data" / "mcp" / "scripted_server.py")

SHORT = """
import asyncio, sys
sys.path[:] = {path!r}
from toolcrib import Toolkit, mcp
async def main():
    kit = Toolkit()
    client = await mcp.connect([sys.executable, "-S", {server!r}], name="scripted")
    await kit.register_mcp_client(client)
    waiting = asyncio.ensure_future(kit.call("wait", seconds=60))
    await asyncio.sleep(0)
    print((await kit.call("add", a=2, b=3)).metadata["value"])
    if {closes}:
        await client.close()
asyncio.run(main())
"""


def _servers(script: Path) -> list[str]:
    """Return the processes that run a script; a zombie has no command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(script) in (process / "cmdline").read_text():
                found.append(process.name)
        except OSError:
            continue
    return found


# Two hundred interpreters with a server each.
@pytest.mark.timeout(300)
async def test_processes_that_connect_call_and_exit_under_load_leave_nothing(tmp_path: Path) -> None:
    # A copy of its own, because other tests run the same server at the same time.
    server = tmp_path / "server.py"
    server.write_bytes(Path(SCRIPTED).read_bytes())

    wrong = wrong_results(
        lambda index: SHORT.format(path=sys.path, server=str(server), closes=index % 2 == 0),
        lambda output: output == "{'sum': 5}\n",
    )

    assert wrong == []
    # The kernel ends a killed process a moment after the process that killed it has ended.
    await until(lambda: not _servers(server))


@pytest.mark.parametrize(
    "mode",
    [
        "die-before-reply",
        "die-in-reply",
        "hang",
        "garbage",
        "half-line",
        "bad-utf8-reply",
        "frame-17m",
        "deep",
        "wrong-id",
    ],
)
async def test_a_misbehaving_server_is_answered_for_and_others_go_on(mode: str) -> None:
    toolkit = Toolkit()
    async with (
        mcp.connect([sys.executable, SCRIPTED, mode], name="bad", call_timeout=3) as bad,
        mcp.connect([sys.executable, SCRIPTED, "well"], name="good") as good,
    ):
        await toolkit.register_mcp_client(bad, namespace=True)
        await toolkit.register_mcp_client(good, namespace=True)

        answer, other = await asyncio.gather(toolkit.call("bad__echo", word="a"), toolkit.call("good__echo", word="b"))

    assert answer.code in (None, "failed", "timeout")
    assert other.code is None
    assert '"b"' in other.text


@pytest.mark.parametrize("protocol", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("schema", ["run", ["run"], 7, True])
async def test_a_schema_of_a_server_is_data_and_never_a_type(schema: Any, protocol: str, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    asked = []

    def asker(question: Question) -> dict[str, Any]:
        asked.append(question)
        return {"name": "Ann"}

    code = f"open({str(ran)!r}, 'w')"
    schema = code if schema == "run" else [code] if schema == ["run"] else schema
    toolkit = Toolkit(asker=asker)
    async with mcp.connect([sys.executable, SCRIPTED, "--protocol", protocol], name="scripted") as client:
        await toolkit.register_mcp_client(client)
        refused = await toolkit.call("ask", schema=schema)
        answered = await toolkit.call("ask")

    assert not ran.exists()
    assert "requestedSchema" in refused.text
    assert "Ann" in answered.text
    assert len(asked) == 1


async def test_a_model_answers_the_requests_of_a_server() -> None:
    requests = []

    async def sample(request: SamplingRequest) -> str:
        requests.append(request)
        return "forty-two"

    toolkit = Toolkit()
    async with mcp.connect([sys.executable, SCRIPTED], name="scripted", sampler=sample) as client:
        await toolkit.register_mcp_client(client)
        answered = await toolkit.call("sample")
    async with mcp.connect([sys.executable, SCRIPTED], name="silent") as client:
        await toolkit.register_mcp_client(client, namespace=True)
        refused = await toolkit.call("silent__sample")

    assert "forty-two" in answered.text
    assert requests[0].messages
    assert "forty-two" not in refused.text


async def test_a_failing_sampler_is_reported_to_the_server(caplog: pytest.LogCaptureFixture) -> None:
    def sample(request: SamplingRequest) -> Any:
        raise KeyError("secret")

    toolkit = Toolkit()
    async with mcp.connect([sys.executable, SCRIPTED], name="scripted", sampler=sample) as client:
        await toolkit.register_mcp_client(client)
        response = await toolkit.call("sample")

    assert "secret" not in response.text
    assert "was not answered" in caplog.text


async def test_ten_thousand_tools_are_registered_reviewed_and_locked(tmp_path: Path) -> None:
    toolkit = Toolkit()
    async with mcp.connect([sys.executable, SCRIPTED, "many-tools"], name="many") as client:
        registration = await toolkit.register_mcp_client(client)
    toolkit.lock(tmp_path / "toolcrib.lock")

    report = toolkit.verify(tmp_path / "toolcrib.lock")

    assert len(registration.tools) == len(toolkit.tools) > 10_000
    assert report.ok


async def test_suspicious_definitions_are_flagged(caplog: pytest.LogCaptureFixture) -> None:
    toolkit = Toolkit()
    async with mcp.connect([sys.executable, SCRIPTED, "strange-names"], name="strange") as client:
        registration = await toolkit.register_mcp_client(client)

    assert registration.flags
    assert "suspicious definition" in caplog.text
    assert all(name.isascii() and name.isprintable() and " " not in name for name in toolkit.tools)
