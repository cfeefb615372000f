"""Likely mistakes of a developer: each is refused or warned of, with the right form in the message."""

import asyncio
import functools
import gc
import inspect
import re
import warnings
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from support.streams import block, read, run_file
from toolcrib import (
    ArgumentReader,
    Policy,
    Roles,
    TextParser,
    Toolkit,
    ToolResponse,
    errors,
    parse_tool_calls,
)
from toolcrib.compat.agentscope import Toolkit as AgentScopeToolkit
from toolcrib.policy import Approvals


def double(number: int) -> int:
    return 2 * number


async def lines(count: int) -> Any:
    for index in range(count):
        yield f"line {index}"


@pytest.fixture
def toolkit() -> Toolkit:
    return Toolkit(tools=[double, lines])


def anything(value: Any) -> Any:
    """The same value, whose type is not checked."""
    return value


# Streams


def test_a_plain_for_over_a_stream_says_async_for(toolkit: Toolkit) -> None:
    stream = anything(toolkit.call_tool_function(block("double", number=1)))

    for misuse in (iter, next, list):
        with pytest.raises(TypeError, match="a tool stream is not iterable by `for` or `next`: use `async for`"):
            misuse(stream)


async def test_a_plain_for_over_an_awaited_stream_says_async_for(toolkit: Toolkit) -> None:
    stream = anything(await toolkit.call_tool_function(block("double", number=1)))

    with pytest.raises(TypeError, match="use `async for`"):
        list(stream)

    assert [response.text for response in await read(stream)] == ["2"]


async def test_a_plain_for_over_a_call_says_await(toolkit: Toolkit) -> None:
    pending = anything(toolkit.call("double", number=1))

    for misuse in (iter, next, list):
        with pytest.raises(TypeError, match=r"use `await toolkit.call\(...\)`"):
            misuse(pending)

    assert (await pending).text == "2"


async def test_an_async_for_over_a_call_says_await(toolkit: Toolkit) -> None:
    pending = anything(toolkit.call("double", number=1))

    with pytest.raises(TypeError, match=r"a tool call is not iterable: use `await toolkit.call\(...\)`"):
        async for _ in pending:
            pass

    assert (await pending).text == "2"


class Wrapped:
    """An awaitable that delegates to another one, step by step."""

    def __init__(self, awaitable: Awaitable[Any]) -> None:
        self.awaitable = awaitable

    def __await__(self) -> Generator[Any, Any, Any]:
        return (yield from self.awaitable.__await__())


async def test_awaitables_may_delegate_to_a_stream(toolkit: Toolkit) -> None:
    @toolkit.tool
    async def slow() -> str:
        await asyncio.sleep(0)
        return "done"

    stream = toolkit.call_tool_function(block("slow"))

    same = await Wrapped(stream)
    first = await Wrapped(stream.__anext__())
    single = await Wrapped(toolkit.call("slow"))

    assert (same, first.text, single.text) == (stream, "done", "done")


@pytest.mark.parametrize("name", ["text", "content", "metadata", "ok", "code", "is_last", "exception", "to_openai"])
async def test_the_attributes_of_a_response_say_how_to_get_one(name: str, toolkit: Toolkit) -> None:
    stream, pending = toolkit.call_tool_function(block("double", number=1)), toolkit.call("double", number=1)

    with pytest.raises(
        AttributeError, match=f"has no attribute '{name}', its responses have: iterate it with `async for`"
    ):
        getattr(stream, name)
    with pytest.raises(AttributeError, match=rf"use `\(await toolkit.call\(...\)\).{name}`"):
        getattr(pending, name)

    assert not hasattr(stream, name)
    pending.close()


def test_other_attributes_are_missing_as_ever(toolkit: Toolkit) -> None:
    stream = anything(toolkit.call_tool_function(block("double", number=1)))

    with pytest.raises(AttributeError, match=r"'toolcrib\.ToolStream' object has no attribute 'nothing'"):
        _ = stream.nothing


def dropped(make: Callable[[], object]) -> list[str]:
    """The warnings that come when an object is dropped."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make()
        gc.collect()
    assert all(warning.category is RuntimeWarning for warning in caught)
    return [str(warning.message) for warning in caught]


def test_a_call_that_is_never_awaited_warns(toolkit: Toolkit) -> None:
    assert dropped(lambda: toolkit.call("double", number=1)) == ["call of tool 'double' was never awaited"]
    assert dropped(lambda: toolkit.view().call("double", number=1)) == ["call of tool 'double' was never awaited"]


def test_a_call_in_a_cycle_warns_once(toolkit: Toolkit) -> None:
    def make() -> None:
        cycle: list[Any] = []
        cycle.append(toolkit.call("double", number=cycle))

    assert dropped(make) == ["call of tool 'double' was never awaited"]


def test_a_stream_that_is_never_iterated_is_silent(toolkit: Toolkit) -> None:
    async def awaited() -> None:
        await toolkit.call_tool_function(block("double", number=1))

    assert dropped(lambda: toolkit.call_tool_function(block("double", number=1))) == []
    assert dropped(lambda: asyncio.run(awaited())) == []


def test_a_call_that_ran_or_was_closed_is_silent(toolkit: Toolkit) -> None:
    async def ran() -> None:
        await toolkit.call("double", number=1)
        await asyncio.create_task(anything(toolkit.call("double", number=1)))
        await asyncio.gather(toolkit.call("double", number=1), toolkit.call("double", number=2))

    assert dropped(lambda: asyncio.run(ran())) == []
    assert dropped(lambda: toolkit.call("double", number=1).close()) == []


def test_a_warning_that_is_an_error_is_unraisable(toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", reported.append)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        anything(toolkit.call)("double", number=1)

    assert [str(report.exc_value) for report in reported] == ["call of tool 'double' was never awaited"]


async def pending_value(toolkit: Toolkit) -> Any:
    response = await toolkit.call("delete")
    assert response.metadata is not None
    return response.metadata["pending"]


def deleting() -> tuple[Toolkit, list[str]]:
    toolkit, ran = Toolkit(), []

    @toolkit.tool(permission="confirm")
    async def delete() -> str:
        ran.append("delete")
        return "deleted"

    return toolkit, ran


def test_a_resumed_call_that_is_dropped_before_it_ran_warns() -> None:
    toolkit, ran = deleting()

    async def awaited() -> None:
        await toolkit.resume(await pending_value(toolkit), True)

    async def dropped_at_once() -> None:
        toolkit.resume(await pending_value(toolkit), True)

    expected = ["resumed call of tool 'delete' was never iterated: use `async for`"]
    assert dropped(lambda: asyncio.run(awaited())) == expected
    assert dropped(lambda: asyncio.run(dropped_at_once())) == expected
    assert ran == []


def test_a_resumed_call_that_ran_or_was_closed_is_silent() -> None:
    toolkit, ran = deleting()

    async def iterated() -> None:
        await read(toolkit.resume(await pending_value(toolkit), True))

    async def closed() -> None:
        await toolkit.resume(await pending_value(toolkit), True).aclose()

    assert dropped(lambda: asyncio.run(iterated())) == []
    assert dropped(lambda: asyncio.run(closed())) == []
    assert ran == ["delete"]


async def test_the_wrong_caller_is_told_how_to_resume() -> None:
    toolkit, _ = deleting()
    pending = await pending_value(toolkit.view(caller="ann"))  # type: ignore[arg-type]
    unowned = await pending_value(toolkit)

    with pytest.raises(
        errors.MisplacedPendingError, match=r"caller `ann`: resume it with `toolkit.view\(caller=\"ann\"\)"
    ):
        await read(toolkit.resume(pending, True))
    with pytest.raises(errors.MisplacedPendingError, match=r"no caller: resume it with `toolkit.resume\(...\)`"):
        await read(toolkit.view(caller="ann").resume(unowned, True))

    assert (await read(toolkit.view(caller="ann").resume(pending, True)))[-1].text == "deleted"


# Calls


def test_arguments_by_position_are_refused_by_the_method_that_was_used(toolkit: Toolkit) -> None:
    run, view, call = anything(toolkit.run), anything(toolkit.view().run), anything(toolkit.call)

    for method, name in ((run, "run"), (view, "run"), (call, "call")):
        with pytest.raises(TypeError, match=rf"{name}\(name, \*\*arguments\): .* unpack a dictionary with `\*\*`"):
            method("double", {"number": 1})
        with pytest.raises(TypeError, match=rf"{name}\(name, \*\*arguments\): arguments are passed by keyword$"):
            method("double", 1)
        with pytest.raises(TypeError, match=rf"{name}\(name, .*: the name of a tool must be a string, not function"):
            method(double, number=1)


async def test_an_unknown_tool_has_a_suggestion(toolkit: Toolkit) -> None:
    near, far = await toolkit.call("duoble", number=1), await toolkit.call("halve", number=1)

    assert near.text == "FunctionNotFoundError: Cannot find the function named duoble. Did you mean 'double'?"
    assert far.text == "FunctionNotFoundError: Cannot find the function named halve"


async def test_a_suggestion_is_a_tool_that_the_caller_may_call(toolkit: Toolkit) -> None:
    toolkit.create_tool_group("off", "Off.")
    toolkit.register_tool_function(double, "off", name="trouble")

    hidden = await toolkit.view(names=["lines"]).call("duoble", number=1)
    shown = await toolkit.view(names=["double"]).call("duoble", number=1)
    off = await toolkit.call("troubel", number=1)

    assert hidden.text == "Error: The tool 'duoble' is not available."
    assert shown.text == "Error: The tool 'duoble' is not available. Did you mean 'double'?"
    assert off.text == "FunctionNotFoundError: Cannot find the function named troubel"


async def test_agentscopes_answer_to_an_unknown_tool_is_kept() -> None:
    toolkit = AgentScopeToolkit()
    toolkit.register_tool_function(double)

    response = await toolkit.call("duoble", number=1)

    assert response.text == "FunctionNotFoundError: Cannot find the function named duoble"


# Registration


def test_a_preset_that_is_no_parameter_is_refused() -> None:
    toolkit = Toolkit()

    with pytest.raises(
        ValueError, match=r"tool `double`: unknown parameter `numbr` in preset_kwargs: did you mean `number`\?"
    ):
        toolkit.register_tool_function(double, preset_kwargs={"numbr": 1})

    assert dict(toolkit.tools) == {}


def test_any_preset_may_go_to_keyword_arguments() -> None:
    def free(**options: int) -> int:
        return len(options)

    toolkit = Toolkit()
    toolkit.register_tool_function(free, preset_kwargs={"anything": 1})

    assert toolkit.run("free").text == "1"


def test_agentscope_accepts_any_preset() -> None:
    AgentScopeToolkit().register_tool_function(double, preset_kwargs={"numbr": 1})


def test_a_misspelt_secret_has_a_suggestion() -> None:
    with pytest.raises(ValueError, match=r"unknown parameter `numbr` in secrets: did you mean `number`\?"):
        Toolkit().register_tool_function(double, secrets=["numbr"])


def test_a_documented_parameter_that_does_not_exist_warns() -> None:
    def weather(city: str) -> str:
        """Tell the weather.

        Args:
            citty: The city.
        """
        return city

    with pytest.warns(UserWarning, match="tool `weather`: the docstring describes `citty`, .* did you mean `city`?"):
        Toolkit().register_tool_function(weather)


def test_documented_names_that_exist_are_silent() -> None:
    def weather(city: str, *days: int, unit: str, **rest: Any) -> str:
        """Tell the weather.

        Args:
            city: The city.
            *days: The days.
            unit: The unit.
            **rest: More.
            more: One of the rest.
        """
        return city

    def hidden(key: str) -> str:
        """Hide.

        Args:
            key: A preset.
        """
        return key

    toolkit = Toolkit()
    toolkit.register_tool_function(weather)
    toolkit.register_tool_function(hidden, preset_kwargs={"key": "x"})


@pytest.mark.parametrize("name", ["<lambda>", "two words", "dot.ted", "ä", "x" * 65])
def test_a_name_that_providers_refuse_warns(name: str) -> None:
    with pytest.warns(UserWarning, match="model providers refuse the tool name .* pass another one as `name=`"):
        Toolkit().register_tool_function(double, name=name)


def test_a_lambda_needs_a_name() -> None:
    toolkit = Toolkit()

    with pytest.warns(UserWarning, match="refuse the tool name `<lambda>`"):
        toolkit.register_tool_function(lambda: 1)
    toolkit.register_tool_function(lambda: 2, name="two")

    assert toolkit.run("two").text == "2"


class Store:
    def __init__(self, value: int) -> None:
        self.value = value

    def get(self, key: str) -> int:
        return self.value


def test_a_method_without_its_object_is_refused() -> None:
    with pytest.raises(TypeError, match=r"`Store\.get` is a method without its object: register the method"):
        Toolkit().register_tool_function(Store.get)


def test_a_method_may_get_its_object_in_any_way() -> None:
    toolkit, store = Toolkit(), Store(7)
    toolkit.register_tool_function(store.get)
    toolkit.register_tool_function(Store.get, name="preset", preset_kwargs={"self": store})
    toolkit.register_tool_function(functools.partial(Store.get, store), name="partial")

    assert [toolkit.run(name, key="k").text for name in ("get", "preset", "partial")] == ["7", "7", "7"]


def test_a_name_that_is_not_defined_asks_for_its_definition() -> None:
    def act(thing: "Missing") -> None: ...  # type: ignore[name-defined] # noqa: F821

    with pytest.raises(errors.UnsupportedTypeError, match="name 'Missing' is not defined; define or import it"):
        Toolkit().register_tool_function(act)


def test_the_short_names_of_options() -> None:
    toolkit = Toolkit()

    @toolkit.tool(name="twice", description="Doubles.")
    def act(number: int) -> int:
        return 2 * number

    function = toolkit.get_json_schemas()[0]["function"]
    assert (function["name"], function["description"]) == ("twice", "Doubles.")


def test_both_names_of_an_option_are_refused() -> None:
    with pytest.raises(TypeError, match="pass either `name` or `func_name`, which are the same option"):
        Toolkit().register_tool_function(double, name="a", func_name="b")
    with pytest.raises(TypeError, match="pass either `description` or `func_description`"):
        Toolkit().register_tool_function(double, description="a", func_description="b")


def test_an_unknown_option_has_a_suggestion() -> None:
    tool = anything(Toolkit().tool)

    with pytest.raises(TypeError, match=r"tool\(\) got an unknown option `timout`: did you mean `timeout`\?"):
        tool(timout=3)
    with pytest.raises(TypeError, match=r"tool\(\) got an unknown option `colour`$"):
        tool(colour=3)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            lambda kit: type(kit)(argument="pass"),
            r"Toolkit() got an unknown option `argument`: did you mean `arguments`?",
        ),
        (lambda kit: type(kit)(colour="red"), "Toolkit() got an unknown option `colour`"),
        (
            lambda kit: kit.register_tool_function(double, nam="a"),
            "Toolkit.register_tool_function() got an unknown option `nam`: did you mean `name`?",
        ),
        (lambda kit: kit.session(dep=1), "Toolkit.session() got an unknown option `dep`: did you mean `deps`?"),
        (
            lambda kit: kit.load_session("a", limit=1),
            "Toolkit.load_session() got an unknown option `limit`: did you mean `limits`?",
        ),
        (lambda kit: kit.view(group=["a"]), "Toolkit.view() got an unknown option `group`: did you mean `groups`?"),
        (
            lambda kit: kit.view().view(name=["a"]),
            "ToolkitView.view() got an unknown option `name`: did you mean `names`?",
        ),
    ],
)
def test_every_method_with_options_has_a_suggestion(act: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        act(Toolkit())


def test_an_alias_of_a_misspelt_parameter_has_a_suggestion() -> None:
    with pytest.raises(ValueError, match=r"unknown parameter `nubmer`, .*: did you mean `number`\?"):
        Toolkit().register_tool_function(double, aliases={"n": "nubmer"})


@pytest.mark.parametrize("options", [{"group_name": "wbe"}, {"groups": ["wbe"]}])
def test_a_tool_of_a_misspelt_group_has_a_suggestion(options: dict[str, Any]) -> None:
    toolkit = Toolkit()
    toolkit.create_tool_group("web", "The web.")

    with pytest.raises(errors.UnknownGroupError, match=r"unknown group `wbe`: did you mean `web`\?"):
        toolkit.register_tool_function(double, **options)
    with pytest.raises(errors.UnknownGroupError, match=r"Tool group 'kitchen' not found\."):
        toolkit.register_tool_function(double, group_name="kitchen")


def test_the_decorator_has_the_options_of_the_registration() -> None:
    options = inspect.signature(Toolkit.tool).parameters
    registration = inspect.signature(Toolkit.register_tool_function).parameters

    named = {name: option.default for name, option in options.items() if option.kind is option.KEYWORD_ONLY}
    expected = {name: option.default for name, option in registration.items() if name not in ("self", "tool_func")}
    assert named == expected


def test_help_describes_every_parameter() -> None:
    for method in (Toolkit, Toolkit.tool, Toolkit.register_tool_function):
        documentation = inspect.getdoc(method) or ""
        for name in inspect.signature(method).parameters:
            if name not in ("self", "unknown"):
                assert f"{name}:" in documentation, (method, name)


def test_tools_are_registered_by_the_constructor() -> None:
    assert list(Toolkit(tools=(double, lines)).tools) == ["double", "lines"]


def test_tools_in_the_wrong_place_say_where() -> None:
    kit = anything(Toolkit)

    with pytest.raises(TypeError, match="agent_skill_instruction must be a string, not list: pass tools as `tools=`"):
        kit([double])
    with pytest.raises(TypeError, match="tools must be a list of callables, not function"):
        kit(tools=double)


PARAMETERS = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}


def test_the_schema_of_the_parameters_alone_is_accepted() -> None:
    def act(**kwargs: Any) -> Any:
        """Act on it."""
        return kwargs

    toolkit = Toolkit()
    toolkit.register_tool_function(act, json_schema=PARAMETERS)

    (schema,) = toolkit.get_json_schemas()
    assert schema["function"] == {"name": "act", "parameters": PARAMETERS, "description": "Act on it."}


def test_a_schema_without_its_wrapper_says_what_is_expected() -> None:
    with pytest.raises(errors.InvalidSchemaError, match=r'Expected \{"type": "function"'):
        Toolkit().register_tool_function(double, json_schema={"properties": {}})
    with pytest.raises(errors.InvalidSchemaError, match=r"^Invalid JSON schema for the tool function.$"):
        AgentScopeToolkit().register_tool_function(double, json_schema=PARAMETERS)


# Types of arguments


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda kit: kit.register_tool_function(double, tags=3), "tags must be a list of strings, not int"),
        (lambda kit: kit.register_tool_function(double, groups=[3]), "groups must be a list of strings, and one"),
        (lambda kit: kit.register_tool_function(double, kind=5), "kind must be a string, not int"),
        (lambda kit: kit.register_tool_function(double, 5), "group_name must be a string, not int"),
        (lambda kit: kit.register_tool_function(double, name=5), "name must be a string, not int"),
        (
            lambda kit: kit.register_tool_function(double, preset_kwargs=[1]),
            "preset_kwargs must be a dictionary, not list",
        ),
        (lambda kit: kit.register_tool_function(double, aliases=["a"]), "aliases must be a dictionary, not list"),
        (lambda kit: kit.register_tool_function(double, timeout="3"), "timeout must be a number of seconds, not str"),
        (lambda kit: kit.register_tool_function(double, async_execution="y"), "async_execution must be True or False"),
        (lambda kit: kit.create_tool_group(4, "x"), "group_name must be a string, not int"),
        (lambda kit: kit.create_tool_group("x", "x", "yes"), "active must be True or False, not str"),
        (lambda kit: kit.register_group("x", [double]), "description must be a string, not list"),
        (lambda kit: kit.remove_tool_function(double), "tool_name must be a string, not function"),
        (lambda kit: kit.update_tool_groups(3, True), "group_names must be a list of strings, not int"),
        (lambda kit: kit.view(caller=3), "caller must be a string, not int"),
        (lambda kit: kit.session(id=3), "id must be a string, not int"),
        (lambda kit: kit.session(caller=3), "caller must be a string, not int"),
        (lambda kit: kit.session(limits={}), "limits must be an object of the class `Limits`, not dict"),
        (lambda kit: kit.session(role="a", roles=3), "roles must be an object of the class `Roles`, not int"),
        (lambda kit: kit.view().session(caller=3), "caller must be a string, not int"),
        (lambda kit: kit.load_session("a", limits=3), "limits must be an object of the class `Limits`, not int"),
        (lambda kit: kit.session().update_tool_groups("basic", 3), "active must be True or False, not int"),
        (lambda kit: kit.view_for("a", roles=3), "roles must be an object of the class `Roles`, not int"),
        (lambda kit: type(kit)(policy=[1]), "policy must be an object of the class `Policy`, not list"),
        (lambda kit: type(kit)(approver_timeout="1"), "approver_timeout must be a number of seconds, not str"),
        (lambda kit: type(kit)(headless="no"), "headless must be True or False, not str"),
        (lambda kit: type(kit)(errors=3), "errors must be a string, not int"),
        (lambda kit: kit.schemas(4), "dialect must be a string, not int"),
        (lambda kit: kit.instructions(4), "format must be a string, not int"),
        (lambda kit: TextParser(anything(3)), "format must be a string, not int"),
        (lambda kit: TextParser(compat=anything("x")), "compat must be True or False, not str"),
        (lambda kit: TextParser().feed(anything(b"x")), "text must be a string, not bytes"),
        (lambda kit: parse_tool_calls(anything(3)), "text must be a string, not int"),
        (lambda kit: parse_tool_calls("", anything(None)), "format must be a string, not NoneType"),
        (lambda kit: ArgumentReader(anything(3)), "name must be a string, not int"),
        (lambda kit: ArgumentReader("a", anything(3)), "id must be a string, not int"),
        (lambda kit: ArgumentReader().feed(anything(3)), "delta must be a string, not int"),
        (lambda kit: Approvals(anything(3)), "path must be a path, not int"),
        (lambda kit: Approvals(ttl=anything("x")), "ttl must be a number of seconds, not str"),
        (lambda kit: Approvals(key=anything("x")), "key must be bytes, not str"),
        (lambda kit: Policy(default=anything(3)), "default must be a string, not int"),
        (lambda kit: Policy(anything(3)), "rules must be a list of rules, not int"),
        (lambda kit: Policy(shadow=anything("x")), "shadow must be True or False, not str"),
        (lambda kit: Policy.from_files(user=anything(3)), "user must be a path, not int"),
        (lambda kit: ToolResponse([], code=anything(3)), "code must be a string, not int"),
        (lambda kit: ToolResponse([], is_last=anything(3)), "is_last must be True or False, not int"),
        (lambda kit: ToolResponse([], mode=anything(3)), "mode must be a string, not int"),
    ],
)
def test_a_wrong_type_names_the_parameter(act: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(TypeError, match=f"^{message}"):
        act(Toolkit())


def test_one_name_may_stand_for_a_list_of_names() -> None:
    toolkit = Toolkit()
    toolkit.create_tool_group("web", "The web.")
    toolkit.register_tool_function(double, tags="maths", secrets="number", groups="web")

    toolkit.update_tool_groups("web", True)

    tool = toolkit.tools["double"]
    assert (tool.tags, tool.secrets, tool.groups) == (["maths"], ("number",), ["basic", "web"])
    assert toolkit.groups["web"].active
    assert list(toolkit.view(groups="web", tags="maths", names="double").tools) == ["double"]
    assert toolkit.is_tool_in_groups("double", "web")
    assert toolkit.get_tool_group_notes("web") == ""


# Groups and views


@pytest.mark.parametrize(
    "act", [lambda kit: kit.update_tool_groups(["wbe"], True), lambda kit: kit.remove_tool_groups("wbe")]
)
def test_an_unknown_group_is_refused(act: Callable[[Toolkit], None]) -> None:
    toolkit = Toolkit()
    toolkit.create_tool_group("web", "The web.")

    with pytest.raises(errors.UnknownGroupError, match=r"unknown group `wbe`: did you mean `web`\?"):
        act(toolkit)

    assert list(toolkit.groups) == ["web"]


def test_nothing_is_switched_if_a_group_is_unknown() -> None:
    toolkit = Toolkit()
    toolkit.create_tool_group("web", "The web.")

    with pytest.raises(errors.UnknownGroupError):
        toolkit.update_tool_groups(["web", "nothing"], True)

    assert not toolkit.groups["web"].active


def test_agentscope_ignores_unknown_groups() -> None:
    toolkit = AgentScopeToolkit()

    toolkit.update_tool_groups(["wbe"], True)
    toolkit.remove_tool_groups("wbe")


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"groups": ["wbe"]}, "unknown group `wbe` in a view: did you mean `web`?"),
        ({"names": ["duoble"]}, "unknown tool `duoble` in a view: did you mean `double`?"),
        ({"exclude": ["duoble"]}, "unknown tool `duoble` in a view"),
        ({"tags": ["math"]}, "unknown tag `math` in a view: did you mean `maths`?"),
    ],
)
def test_an_unknown_name_in_a_view_warns(selection: dict[str, Any], message: str) -> None:
    toolkit = Toolkit()
    toolkit.create_tool_group("web", "The web.")
    toolkit.register_tool_function(double, tags=["maths"])

    with pytest.warns(UserWarning, match=message.replace("?", r"\?")):
        toolkit.view(**selection)
    with pytest.warns(UserWarning, match=message.replace("?", r"\?")):
        toolkit.view(groups="basic").view(**selection)
    with pytest.warns(UserWarning, match=message.replace("?", r"\?")):
        toolkit.session(**selection)
    with pytest.warns(UserWarning, match=message.replace("?", r"\?")):
        toolkit.view(groups="basic").session(**selection)


def test_a_role_without_roles_warns() -> None:
    toolkit, roles = Toolkit(), Roles()

    with pytest.warns(UserWarning, match="role `admin` cannot be looked up, the view shows nothing: pass `roles=`"):
        toolkit.view_for("admin")

    with pytest.warns(UserWarning, match="unknown role `admin`, the view shows nothing$"):
        assert list(toolkit.view_for("admin", roles).tools) == []
    assert list(toolkit.view_for(None).tools) == []
    assert list(toolkit.view_for("root").tools) == []


# Processes


def test_the_decorator_registers_process_tools(tmp_path: Path) -> None:
    program = """
        from toolcrib import Toolkit

        toolkit = Toolkit()

        @toolkit.tool(run_in="process")
        def double(number: int) -> int:
            return 2 * number

        everywhere = Toolkit(run_in="process")

        @everywhere.tool
        def triple(number: int) -> int:
            return 3 * number

        @everywhere.tool
        async def here() -> str:
            return "inline"

        if __name__ == "__main__":
            print(toolkit.run("double", number=4).text)
            print(everywhere.run("triple", number=4).text, everywhere.tools["triple"].run_in)
            print(everywhere.tools["here"].run_in, everywhere.run("here").text)
    """
    (tmp_path / "program.py").write_text(inspect.cleandoc(program))

    assert run_file(tmp_path / "program.py").split() == ["8", "12", "process", "inline", "inline"]


def test_a_function_that_never_gets_its_name_is_refused_at_its_first_call(tmp_path: Path) -> None:
    program = """
        from toolcrib import Toolkit

        toolkit = Toolkit()

        @lambda function: None
        @toolkit.tool(run_in="process")
        def double(number: int) -> int:
            return 2 * number

        if __name__ == "__main__":
            print(toolkit.run("double", number=4).text)
    """
    (tmp_path / "program.py").write_text(inspect.cleandoc(program))

    text = run_file(tmp_path / "program.py")

    assert text.startswith("ValueError: `double` cannot run in a process: it is not found under its qualified name")


def test_a_meta_tool_stays_in_this_process() -> None:
    class Custom(Toolkit):
        def reset_equipped_tools(self, **kwargs: bool) -> Any:
            """Choose groups."""
            return super().reset_equipped_tools(**kwargs)

    toolkit = Custom(run_in="process")
    toolkit.register_tool_function(toolkit.reset_equipped_tools)

    assert toolkit.run("reset_equipped_tools").ok


# Policy files


def test_a_policy_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nope.toml"

    with pytest.raises(errors.MissingFileError) as raised:
        Policy.from_files(project=path)

    assert raised.value.filename == str(path)
    assert Policy.from_files(project=path, optional=True).problems == []


def test_a_policy_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for optional in (False, True):
        with pytest.raises(errors.FileAccessError) as raised:
            Policy.from_files(project=tmp_path, optional=optional)

        assert str(tmp_path) in str(raised.value)


async def test_the_denial_names_the_policy_file(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text('\n[[rule]]\ntool = "double"\ndecision = "denny"\n')
    policy = Policy.from_files(project=path)

    response = await Toolkit(policy=policy, tools=[double]).call("double", number=1)

    assert "line 2 of the policy file `rules.toml` is invalid, and until it is fixed this is denied" in response.text
    assert str(tmp_path) not in response.text
