"""An agent of AgentScope's returns structured output: its finish function takes the fields of a model."""

from typing import Literal

from pydantic import BaseModel, Field

from support.agentscope.scripted import ScriptedModel, ask, say
from support.agentscope.tools import add
from support.agentscope.transcript import MakeToolkit, Scene, Transcript, both


class City(BaseModel):
    """Where somebody lives."""

    name: str
    country: str = "?"


class Person(BaseModel):
    """Who somebody is."""

    name: str = Field(description="The name")
    age: int = Field(ge=0, le=150, description="In years")
    mood: Literal["good", "bad"] = "good"
    homes: list[City] = Field(default_factory=list)


async def test_structured_output_is_returned_alike_after_a_violation() -> None:
    async def scenario(make: MakeToolkit) -> Transcript:
        toolkit = make()
        toolkit.register_tool_function(add)
        model = ScriptedModel(
            ask(("add", {"a": 20, "b": 22})),
            ask(("generate_response", {"name": "Ada", "age": 999})),
            say("I forgot to finish"),
            ask(("generate_response", {"name": "Ada", "age": 42, "homes": [{"name": "London"}]})),
            say("Ada is 42"),
            say("just text"),
        )
        scene = Scene(toolkit, model)
        await scene.send("who is Ada?", structured_model=Person)
        await scene.send("thanks")
        scene.transcript.notes.append(sorted(toolkit.tools))
        return await scene.finish()

    theirs, ours = await both(scenario)

    assert ours == theirs
    assert ours.replies[0]["metadata"]["homes"] == [{"name": "London", "country": "?"}]


async def test_another_model_takes_the_place_of_the_first_alike() -> None:
    async def scenario(make: MakeToolkit) -> Transcript:
        model = ScriptedModel(
            [*say("here"), *ask(("generate_response", {"name": "Ada", "age": 42}))],
            [*say("and here"), *ask(("generate_response", {"name": "London"}))],
        )
        scene = Scene(make(), model)
        await scene.send("who?", structured_model=Person)
        await scene.send("where?", structured_model=City)
        return await scene.finish()

    theirs, ours = await both(scenario)

    assert ours == theirs
    assert [reply["metadata"].get("name") for reply in ours.replies] == ["Ada", "London"]
