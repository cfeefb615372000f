"""An agent of AgentScope's is interrupted while a tool runs."""

import asyncio
from collections.abc import AsyncGenerator

from agentscope.tool import ToolResponse

from support.agentscope.scripted import ScriptedModel, ask, say
from support.agentscope.tools import text
from support.agentscope.transcript import MakeToolkit, Scene, Transcript, both


async def interrupted(make: MakeToolkit, tool: object, is_reached: asyncio.Event) -> Transcript:
    toolkit = make()
    toolkit.register_tool_function(tool)
    scene = Scene(toolkit, ScriptedModel(ask(("work", {})), say("what now?")))
    reply = asyncio.create_task(scene.send("work"))
    await is_reached.wait()
    await scene.agent.interrupt()
    await asyncio.wait_for(reply, 20)
    await scene.send("go on")
    return await scene.finish()


async def test_a_coroutine_is_interrupted_alike() -> None:
    async def scenario(make: MakeToolkit) -> Transcript:
        is_reached = asyncio.Event()

        async def work() -> ToolResponse:
            """Work for long."""
            is_reached.set()
            await asyncio.sleep(3600)
            return text("never")

        return await interrupted(make, work, is_reached)

    theirs, ours = await both(scenario)

    assert ours == theirs
    assert ours.replies[0]["metadata"] == {"_is_interrupted": True}


async def test_a_generator_is_interrupted_after_its_first_chunk_alike() -> None:
    async def scenario(make: MakeToolkit) -> Transcript:
        is_reached = asyncio.Event()

        async def work() -> AsyncGenerator[ToolResponse, None]:
            """Work for long, and tell."""
            yield text("half", stream=True, is_last=False)
            is_reached.set()
            await asyncio.sleep(3600)
            yield text("never")

        return await interrupted(make, work, is_reached)

    theirs, ours = await both(scenario)

    assert ours == theirs
    assert "interrupted by the user" in str(ours.memory)


async def test_the_generator_is_finalised_before_the_agent_answers() -> None:
    order: list[str] = []
    is_reached = asyncio.Event()

    async def work() -> AsyncGenerator[ToolResponse, None]:
        """Work for long, and clean up."""
        try:
            yield text("half", stream=True, is_last=False)
            is_reached.set()
            await asyncio.sleep(3600)
        finally:
            order.append("cleaned up")

    from toolcrib.compat.agentscope import Toolkit

    transcript = await interrupted(Toolkit, work, is_reached)

    assert order == ["cleaned up"]
    assert transcript.replies[0]["metadata"] == {"_is_interrupted": True}
