"""MCP clients and the life of a process, and servers that misbehave, as a Python program sees them."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from support.short_processes import wrong_results
from toolcrib import Toolkit, mcp
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


def _servers() -> set[str]:
    """Return the processes, zombies included, that run the scripted server."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if SCRIPTED in (process / "cmdline").read_text():
                found.add(process.name)
        except OSError:
            continue
    return found


# Two hundred interpreters with a server each.
@pytest.mark.timeout(300)
def test_processes_that_connect_call_and_exit_under_load_leave_nothing() -> None:
    before = _servers()

    wrong = wrong_results(
        lambda index: SHORT.format(path=sys.path, server=SCRIPTED, closes=index % 2 == 0),
        lambda output: output == "{'sum': 5}\n",
    )

    assert wrong == []
    assert _servers() - before == set()


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


async def test_suspicious_definitions_are_flagged(caplog: pytest.LogCaptureFixture) -> None:
    toolkit = Toolkit()
    async with mcp.connect([sys.executable, SCRIPTED, "strange-names"], name="strange") as client:
        registration = await toolkit.register_mcp_client(client)

    assert registration.flags
    assert "suspicious definition" in caplog.text
    assert all(name.isascii() and name.isprintable() and " " not in name for name in toolkit.tools)
