"""An agent of AgentScope's switches groups with the meta tool and keeps a plan in its notebook."""

from agentscope.plan import PlanNotebook

from support.agentscope.scripted import ScriptedModel, ask, say
from support.agentscope.tools import add, greet, spell
from support.agentscope.transcript import MakeToolkit, Scene, Transcript, both

PLAN = {
    "name": "Bake",
    "description": "Bake a cake",
    "expected_outcome": "A cake",
    "subtasks": [{"name": "Buy", "description": "Buy flour", "expected_outcome": "Flour"}],
}


async def test_the_meta_tool_switches_groups_alike() -> None:
    async def scenario(make: MakeToolkit) -> Transcript:
        toolkit = make()
        toolkit.create_tool_group("words", "About words", notes="Spell slowly.")
        toolkit.create_tool_group("people", "About people", active=True)
        toolkit.register_tool_function(add)
        toolkit.register_tool_function(spell, group_name="words")
        toolkit.register_tool_function(greet, group_name="people")
        model = ScriptedModel(
            ask(("spell", {"word": "no"})),
            ask(("reset_equipped_tools", {"words": True})),
            ask(("spell", {"word": "yes"}), ("greet", {"name": "Ada"})),
            ask(("reset_equipped_tools", {"words": True, "people": True})),
            ask(("greet", {"name": "Ada"})),
            ask(("reset_equipped_tools", {})),
            say("done"),
        )
        scene = Scene(toolkit, model, enable_meta_tool=True)
        await scene.send("spell")
        scene.transcript.notes.append(toolkit.state_dict())
        scene.transcript.notes.append(toolkit.get_activated_notes())
        return await scene.finish()

    theirs, ours = await both(scenario)

    assert ours == theirs
    assert "Spell slowly." in str(ours.memory)


async def test_a_wrong_switch_changes_nothing() -> None:
    from toolcrib.compat.agentscope import Toolkit

    toolkit = Toolkit()
    toolkit.create_tool_group("words", "About words", active=True)
    model = ScriptedModel(ask(("reset_equipped_tools", {"words": "yes"})), say("done"))
    scene = Scene(toolkit, model, enable_meta_tool=True)

    await scene.send("switch")

    assert toolkit.state_dict() == {"active_groups": ["words"]}
    assert "should be a bool value" in str((await scene.finish()).memory)


async def plan(make: MakeToolkit, **options: bool) -> Transcript:
    first = [ask(("reset_equipped_tools", {"plan_related": True}))] if options else []
    model = ScriptedModel(
        *first,
        ask(("create_plan", PLAN)),
        ask(("update_subtask_state", {"subtask_idx": 0, "state": "in_progress"})),
        ask(("finish_subtask", {"subtask_idx": 0, "subtask_outcome": "Flour bought"})),
        ask(("finish_plan", {"state": "done", "outcome": "A cake"})),
        say("done"),
    )
    scene = Scene(make(), model, plan_notebook=PlanNotebook(), **options)
    await scene.send("bake")
    return await scene.finish()


async def test_a_plan_notebook_works_alike() -> None:
    theirs, ours = await both(plan)

    assert ours == theirs
    assert "Flour bought" in str(ours.shown)


async def test_a_plan_notebook_behind_the_meta_tool_works_alike() -> None:
    theirs, ours = await both(lambda make: plan(make, enable_meta_tool=True))

    assert ours == theirs
    assert "Bake" in str(ours.memory)
