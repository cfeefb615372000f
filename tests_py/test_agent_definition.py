"""Agents as data: inputs, prompts and definitions in files."""

import gc
import json
import weakref
from pathlib import Path
from typing import Any

import pydantic
import pytest

from toolcrib import AgentDefinition, AgentFolder, AgentInput, AgentLimits, AgentOutput, Toolkit, errors

CASES = json.loads((Path(__file__).parent.parent / "tests/data/gemini_cases.json").read_text(encoding="utf-8"))


def define(**fields: Any) -> AgentDefinition:
    return AgentDefinition("finder", "Finds files.", **fields)


@pytest.mark.parametrize("case", CASES["schema"])
def test_inputs_become_the_schemas_of_the_cases(case: dict[str, Any]) -> None:
    if "throws" in case:
        with pytest.raises(errors.AgentDefinitionError) as raised:
            define(inputs=case["inputs"])
        assert str(raised.value) == case["throws"]
    else:
        assert define(inputs=case["inputs"]).parameters == {"required": [], **case["result"]}


@pytest.mark.parametrize("case", CASES["template"])
def test_templates_are_filled_as_in_the_cases(case: dict[str, Any]) -> None:
    definition = define(query=case["template"])

    if "throws" in case:
        with pytest.raises(errors.AgentTemplateError) as raised:
            definition.render(case["inputs"])
        assert str(raised.value) == case["throws"]
    else:
        assert definition.render(case["inputs"]).query == case["result"]


def test_an_unknown_type_is_a_string_where_that_is_asked_for() -> None:
    definition = define(inputs={"a": AgentInput("date", "A day.")}, lenient=True)

    assert definition.parameters["properties"] == {"a": {"description": "A day.", "type": "string"}}
    assert definition.lenient is True


def test_inputs_may_be_a_json_schema() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}

    definition = define(inputs=schema)

    assert definition.parameters == {**schema, "required": []}
    assert definition.inputs == schema
    assert "required" not in schema


def test_inputs_may_be_a_pydantic_model() -> None:
    class Query(pydantic.BaseModel):
        text: str = pydantic.Field(description="The text.")
        limit: int = 3

    definition = define(inputs=Query, query="${text} ${limit}")

    assert definition.parameters["properties"]["text"] == {"description": "The text.", "type": "string"}
    assert definition.parameters["required"] == ["text"]
    assert definition.render({"text": "x"}).query == "x 3"


def test_a_definition_shows_its_fields() -> None:
    toolkit = Toolkit()
    view = toolkit.view()
    output = AgentOutput("report", "The report.", list[int], process=str)
    limits = AgentLimits(turns=5, time=None, tokens=1000)

    definition = define(
        inputs={"what": {"type": "string", "description": "A name."}},
        system_prompt="Find ${what}.",
        initial_messages=[{"role": "user", "content": "Hello"}],
        tools=["grep"],
        groups=("search",),
        view=view,
        output=output,
        limits=limits,
        model=len,
    )

    assert (definition.name, definition.display_name, definition.description) == ("finder", "finder", "Finds files.")
    assert definition.inputs == {"what": AgentInput("string", "A name.")}
    assert (definition.system_prompt, definition.query) == ("Find ${what}.", "Get Started!")
    assert definition.initial_messages == [{"role": "user", "content": "Hello"}]
    assert (definition.tools, definition.groups) == (("grep",), ("search",))
    assert (definition.view, definition.output, definition.model) == (view, output, len)
    assert definition.limits == limits
    assert (output.schema, output.type, output.process) == (
        {"items": {"type": "integer"}, "type": "array"},
        list[int],
        str,
    )
    assert repr(definition) == 'AgentDefinition(name="finder")'


def test_the_limits_have_defaults() -> None:
    assert define().limits == AgentLimits()
    assert repr(AgentLimits()) == "AgentLimits(turns=30, time=600.0, tokens=None)"


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"turns": 0}, "invalid `turns`: expected an integer >= 1, got 0"),
        ({"time": -1.0}, "invalid `time`: expected a number of seconds > 0, got -1"),
        ({"tokens": -3}, "invalid `tokens`: expected an integer >= 1, got -3"),
    ],
)
def test_a_limit_allows_something(limits: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        AgentLimits(**limits)


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        ({"inputs": 1}, TypeError, "inputs must be a mapping of names, a JSON Schema or a pydantic model, not int"),
        ({"inputs": int}, TypeError, "inputs must be a mapping of names, a JSON Schema or a pydantic model, not type"),
        ({"inputs": {"a": "string"}}, TypeError, "input `a` must be an AgentInput or a dictionary, not str"),
        ({"inputs": {"a": {}}}, ValueError, "input `a`: missing `type`"),
        ({"inputs": {"a": {"type": "string", "requird": 1}}}, ValueError, r"unknown key `requird`: did you mean"),
        ({"inputs": {"type": "object", "properties": 1}}, errors.InvalidSchemaError, "Invalid JSON schema"),
        ({"initial_messages": "hello"}, TypeError, "initial_messages must be a list of dictionaries, not str"),
        ({"initial_messages": [{}]}, errors.AgentDefinitionError, "invalid agent `finder`: `initial_messages`"),
        ({"view": 1}, TypeError, "view must be an object of the class `ToolkitView`, not int"),
        ({"limits": 3}, TypeError, "limits must be an object of the class `AgentLimits`, not int"),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        define(**fields)


def test_a_definition_needs_a_name_and_a_description() -> None:
    with pytest.raises(errors.AgentDefinitionError, match="missing `description`"):
        AgentDefinition("a", " ")
    with pytest.raises(errors.AgentDefinitionError, match="missing `name`"):
        AgentDefinition("", "d")
    with pytest.raises(errors.InvalidToolNameError):
        AgentDefinition("a\nb", "d")


def test_rendering_takes_any_mapping_of_json() -> None:
    from types import MappingProxyType

    definition = define(query="${a}")

    assert definition.render(MappingProxyType({"a": {"b": 1.0}})).query == '{"b":1.0}'
    with pytest.raises(TypeError, match="inputs must be a mapping, not list"):
        definition.render([1])  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        definition.render({"a": object()})


def test_a_definition_in_a_cycle_is_collected() -> None:
    cycle: list[AgentDefinition] = []
    cycle.append(define(model=cycle))
    reference = weakref.ref(cycle[0])

    del cycle
    gc.collect()

    assert reference() is None


AGENT = """---
name: {name}
description: Finds files.
inputs:
  what: {{type: string, description: A name.}}
tools: read_file, grep
---
Find ${{what}}.
"""


def test_a_definition_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "finder.md"
    path.write_text(AGENT.format(name="finder"), encoding="utf-8")

    definition = AgentDefinition.from_file(path)

    assert (definition.name, definition.tools) == ("finder", ("read_file", "grep"))
    assert definition.inputs == {"what": AgentInput("string", "A name.")}
    assert definition.render({"what": "it"}).system_prompt == "Find it."


def test_a_file_without_a_definition_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "finder.md"
    path.write_text("# Finder\n", encoding="utf-8")

    with pytest.raises(errors.AgentFileError, match=r"invalid agent file `.*finder\.md`: its first line is not `---`"):
        AgentDefinition.from_file(str(path))
    with pytest.raises(errors.MissingFileError):
        AgentDefinition.from_file(tmp_path / "other.md")


def test_a_folder_is_read_again_on_request(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.md").write_text(AGENT.format(name=name), encoding="utf-8")
    (tmp_path / "c.md").write_text("---\nname: c\n---\n", encoding="utf-8")
    folder = AgentFolder(tmp_path)
    first, _ = folder.definitions
    assert folder.problems == {"c.md": "missing `description`"}

    (tmp_path / "b.md").write_text("nothing", encoding="utf-8")
    (tmp_path / "c.md").write_text(AGENT.format(name="c"), encoding="utf-8")
    changed = folder.reload()

    assert changed == ["c", "b"]
    assert [definition.name for definition in folder.definitions] == ["a", "c"]
    assert folder.definitions[0] is first
    assert folder.problems == {"b.md": "its first line is not `---`"}
    assert folder.path == tmp_path
