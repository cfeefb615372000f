"""An interrupted agent tells of the interruption once, and goes on with the next message."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from support.agentscope2.scene import DESIGNS, Design, Scene, crib, theirs, with_crib
from support.agentscope2.scripted import ScriptedModel, ask, say

INTERRUPTED = "<system-reminder>The tool call has been interrupted by the user.</system-reminder>"


class Tools:
    """Tools that wait until they are cancelled, and record their end."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.ended: list[str] = []

    async def wait(self, name: str = "wait") -> str:
        """Wait."""
        self.started.append(name)
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.append(name)
        return "never"

    async def stream(self) -> AsyncIterator[str]:
        """Stream."""
        self.started.append("stream")
        try:
            yield "first "
            yield "second"
            await asyncio.Event().wait()
        finally:
            self.ended.append("stream")


async def interrupted(scene: Scene, tools: Tools, calls: int) -> None:
    task = asyncio.create_task(scene.send())
    while len(tools.started) < calls:
        await asyncio.sleep(0.001)
    # Until the chunks of a stream have arrived.
    for _ in range(50):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])


SCRIPTS: dict[str, tuple[Any, int]] = {
    "function": (ask(("wait", {})), 1),
    "stream": (ask(("stream", {})), 1),
    "parallel": (ask(("wait", {"name": "a"}), ("stream", {}), ("wait", {"name": "b"})), 3),
}


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
async def test_an_interruption_is_told_as_by_agentscope(design: Design, script: tuple[Any, int]) -> None:
    turn, calls = script
    transcripts = []

    for made in (theirs, lambda functions: with_crib(design, crib(functions))):
        tools = Tools()
        scene = Scene(made([tools.wait, tools.stream]), ScriptedModel(turn, say("I am back")))
        await interrupted(scene, tools, calls)
        assert sorted(tools.ended) == sorted(tools.started)
        await scene.send("go on")
        transcript = scene.transcript()
        # Side by side, the order is that of the event loop.
        transcript["events"].sort(key=str)
        transcripts.append(transcript)
        assert scene.states() == ["interrupted"] * calls
        assert all(text.endswith(INTERRUPTED) and text.count("interrupted") == 1 for text in scene.texts())

    assert transcripts[1]["events"] == transcripts[0]["events"]
    if calls == 1:
        assert transcripts[1] == transcripts[0]


@pytest.mark.parametrize("design", DESIGNS)
async def test_a_cancellation_that_the_tool_raises_itself_interrupts_once(design: Design) -> None:
    async def give_up() -> str:
        """Give up."""
        raise asyncio.CancelledError

    scene = Scene(with_crib(design, crib([give_up])), ScriptedModel(ask(("give_up", {})), say("never")))

    await scene.send()

    assert scene.states() == ["interrupted"]
    assert scene.texts() == [INTERRUPTED]
