"""An agent of AgentScope's calls tools of every kind: with our toolkit it does what it does with its own."""

import asyncio
from functools import partial

from support.agentscope.scripted import ScriptedModel, ask, say
from support.agentscope.tools import Counter, add, count, deferred, fail, fail_later, greet, spell, text
from support.agentscope.transcript import MakeToolkit, Scene, Transcript, both


async def test_tools_of_every_kind_answer_alike() -> None:
    async def scenario(make: MakeToolkit) -> Transcript:
        toolkit = make()
        for tool in (add, greet, count, spell, deferred, Counter().increase):
            toolkit.register_tool_function(tool)
        toolkit.register_tool_function(partial(greet, greeting="Good morning"), func_name="greet_early")
        toolkit.register_tool_function(add, func_name="add_one", preset_kwargs={"b": 1})
        model = ScriptedModel(
            ask(("add", {"a": 1, "b": 2}), ("greet", {"name": "Ada"})),
            ask(("count", {"limit": 3}), ("spell", {"word": "tool"}), ("deferred", {"word": "crib"})),
            ask(("increase", {"step": 4}), ("increase", {}), ("greet_early", {"name": "Bo"}), ("add_one", {"a": 41})),
            say("done"),
        )
        scene = Scene(toolkit, model)
        await scene.send("use them all")
        return await scene.finish()

    theirs, ours = await both(scenario)

    assert ours == theirs
    assert "42" in str(ours.memory)


async def test_a_streaming_model_and_parallel_calls_answer_alike() -> None:
    async def scenario(make: MakeToolkit) -> Transcript:
        toolkit = make()
        started: list[str] = []
        both_started = asyncio.Event()

        async def meet(name: str):  # type: ignore[no-untyped-def]
            """Wait until the other one is there.

            Args:
                name (str): Who is coming.
            """
            started.append(name)
            if len(started) == 2:
                both_started.set()
            await both_started.wait()
            return text(f"{name} met somebody")

        toolkit.register_tool_function(meet)
        model = ScriptedModel(ask(("meet", {"name": "Ada"}), ("meet", {"name": "Bo"})), say("they met"), stream=True)
        scene = Scene(toolkit, model, parallel_tool_calls=True)
        await asyncio.wait_for(scene.send("let them meet"), 20)
        transcript = await scene.finish()
        # Either of the two may come first.
        transcript.printed.sort(key=str)
        return transcript

    theirs, ours = await both(scenario)

    assert ours == theirs


async def test_mistakes_are_reported_to_the_model_alike() -> None:
    async def scenario(make: MakeToolkit) -> Transcript:
        toolkit = make()
        toolkit.create_tool_group("hidden", "Not now")
        for tool in (fail, fail_later, add):
            toolkit.register_tool_function(tool)
        toolkit.register_tool_function(greet, group_name="hidden")
        model = ScriptedModel(
            ask(("nothing", {}), ("fail", {"reason": "so it is"}), ("fail_later", {"reason": "k"})),
            ask(("greet", {"name": "Ada"})),
            ask(("add", {"a": 1})),
            ask(("add", {"a": 1, "b": 2, "c": 3})),
            say("I give up"),
        )
        scene = Scene(toolkit, model)
        await scene.send("make mistakes")
        return await scene.finish()

    theirs, ours = await both(scenario)

    assert ours.replies == theirs.replies
    assert ours == theirs


async def test_postprocessing_changes_what_the_model_reads_alike() -> None:
    async def scenario(make: MakeToolkit) -> Transcript:
        async def louder(_call, response):  # type: ignore[no-untyped-def]
            return text(response.content[0]["text"].upper(), stream=response.stream, is_last=response.is_last)

        toolkit = make()
        toolkit.register_tool_function(spell, postprocess_func=louder)
        toolkit.register_tool_function(greet, postprocess_func=lambda call, response: None)
        model = ScriptedModel(ask(("spell", {"word": "abc"}), ("greet", {"name": "Ada"})), say("done"))
        scene = Scene(toolkit, model)
        await scene.send("louder")
        return await scene.finish()

    theirs, ours = await both(scenario)

    assert ours == theirs
    assert "A-B-C" in str(ours.memory)
