"""An agent of AgentScope's is saved and restored, and uses skills."""

import json
from pathlib import Path

from agentscope.session import JSONSession

from support.agentscope.scripted import ScriptedModel, ask, say
from support.agentscope.tools import greet, spell
from support.agentscope.transcript import MakeToolkit, Scene, Transcript, both
from toolcrib.compat.agentscope import Toolkit


def equipped(make: MakeToolkit, model: ScriptedModel) -> Scene:
    toolkit = make()
    toolkit.create_tool_group("words", "About words")
    toolkit.create_tool_group("people", "About people")
    toolkit.register_tool_function(spell, group_name="words")
    toolkit.register_tool_function(greet, group_name="people")
    return Scene(toolkit, model, enable_meta_tool=True)


async def test_a_session_is_saved_and_restored_alike(tmp_path: Path) -> None:
    async def scenario(make: MakeToolkit) -> Transcript:
        session = JSONSession(str(tmp_path / make.__module__))
        first = equipped(make, ScriptedModel(ask(("reset_equipped_tools", {"people": True})), say("done")))
        await first.send("people")
        await session.save_session_state("one", agent=first.agent, toolkit=first.agent.toolkit)
        second = equipped(make, ScriptedModel(ask(("greet", {"name": "Ada"}), ("spell", {"word": "no"})), say("done")))
        await session.load_session_state("one", agent=second.agent, toolkit=second.agent.toolkit)
        await second.send("go on")
        saved = json.loads((tmp_path / make.__module__ / "one.json").read_text())
        second.transcript.notes.append((saved["toolkit"], saved["agent"]["toolkit"]))
        return await second.finish()

    theirs, ours = await both(scenario)

    assert ours == theirs
    assert ours.notes == [({"active_groups": ["people"]}, {"active_groups": ["people"]})]


async def test_a_session_of_theirs_is_restored_by_ours(tmp_path: Path) -> None:
    from agentscope.tool import Toolkit as AgentScopeToolkit

    session = JSONSession(str(tmp_path))
    first = equipped(AgentScopeToolkit, ScriptedModel(ask(("reset_equipped_tools", {"words": True})), say("done")))
    await first.send("words")
    await session.save_session_state("one", agent=first.agent)
    second = equipped(Toolkit, ScriptedModel())

    await session.load_session_state("one", agent=second.agent)

    assert second.agent.toolkit.state_dict() == {"active_groups": ["words"]}


async def test_skills_are_described_alike(tmp_path: Path) -> None:
    for name, description in (("Baking", "How to bake: slowly"), ("Cooking", "Über den Herd")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: '{description}'\n---\n# {name}\n")

    async def scenario(make: MakeToolkit) -> Transcript:
        toolkit = make("Skills you have:", "* {name} ({dir}): {description}")
        toolkit.register_agent_skill(str(tmp_path / "Baking"))
        toolkit.register_agent_skill(str(tmp_path / "Cooking"))
        toolkit.remove_agent_skill("Cooking")
        scene = Scene(toolkit, ScriptedModel(say("done")))
        await scene.send("what can you do?")
        scene.transcript.notes.append(toolkit.get_agent_skill_prompt())
        scene.transcript.notes.append(dict(toolkit.skills))
        return await scene.finish()

    theirs, ours = await both(scenario)

    assert ours == theirs
    assert "How to bake: slowly" in str(ours.shown[0]["messages"])
