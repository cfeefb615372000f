"""`Toolkit.load_modules`: groups of tools that come and go with a module, and failures that stay with theirs."""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from toolcrib import Toolkit


class Weather:
    """Says what it was asked to do, and brings one tool."""

    name = "weather"
    description = "What the sky does."

    def __init__(self, name: Any = "weather", **parts: Any) -> None:
        self.name = name
        self.log: list[Any] = []
        vars(self).update(parts)

    def tools(self) -> list[Callable[..., Any]]:
        def forecast(city: str) -> str:
            return f"sun in {city}"

        return [forecast]

    def init(self, toolkit: Toolkit, config: Any) -> None:
        self.log.append(("init", toolkit, config))

    def shutdown(self) -> None:
        self.log.append("shutdown")


def failing(*_: Any) -> Any:
    raise RuntimeError("out of order")


async def test_a_module_brings_a_group_and_takes_it_away() -> None:
    toolkit, module = Toolkit(), Weather()

    report = await toolkit.load_modules([module])

    assert (report.loaded, report.errors) == (["weather"], [])
    assert module.log == [("init", toolkit, None)]
    assert toolkit.tool_group("forecast") == "weather"
    assert toolkit.groups["weather"].description == "What the sky does."
    assert (await toolkit.call("forecast", city="Oslo")).text == "sun in Oslo"

    await toolkit.unload_modules()

    assert module.log[1:] == ["shutdown"]
    assert "weather" not in toolkit.all_group_ids()
    assert (await toolkit.call("forecast", city="Oslo")).code == "unknown_tool"


async def test_a_module_may_be_asynchronous_and_name_its_group() -> None:
    class Slow(Weather):
        group = "skies"

        async def init(self, toolkit: Toolkit, config: Any) -> None:  # type: ignore[override]
            self.log.append("init")

        async def shutdown(self) -> None:  # type: ignore[override]
            self.log.append("shutdown")

    toolkit, module = Toolkit(), Slow()

    await toolkit.load_modules([module])
    assert toolkit.tool_group("forecast") == "skies"
    await toolkit.unload_modules()

    assert module.log == ["init", "shutdown"]


async def test_a_module_is_imported_by_name_with_its_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    package, module = ModuleType("a_package"), Weather()
    vars(package)["module"] = module
    monkeypatch.setitem(sys.modules, "a_package", package)
    toolkit = Toolkit()

    report = await toolkit.load_modules({"a_package:module": {"key": 1}, "no_such_package": None})

    assert report.loaded == ["weather"]
    assert [failure.module for failure in report.errors] == ["no_such_package"]
    assert module.log == [("init", toolkit, {"key": 1})]


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (Weather("broken", init=failing), "out of order"),
        (Weather("broken", tools=failing), "out of order"),
        (Weather("broken", tools=3), "`tools` must be a function, not int"),
        (Weather(3), "`name` must be a text"),
        (object(), "it has no `name`, it has no function `tools`, it has no function `init`"),
        (Weather("basic"), "the group 'basic' exists already"),
        (Weather("taken"), "the group 'taken' exists already"),
    ],
)
async def test_a_module_that_fails_does_not_stop_the_others(broken: Any, reason: str) -> None:
    toolkit, whole = Toolkit(), Weather()
    toolkit.register_group("taken", "Somebody's.")

    report = await toolkit.load_modules([broken, whole])

    assert report.loaded == ["weather"]
    assert reason in report.errors[0].error
    assert set(toolkit.all_group_ids()) >= {"taken", "weather"}
    assert "broken" not in toolkit.all_group_ids()


async def test_a_module_cannot_take_the_tool_of_another() -> None:
    def forecast(city: str) -> str:
        return f"rain in {city}"

    toolkit = Toolkit()
    thief = Weather("thief", tools=lambda: [forecast])
    await toolkit.load_modules([Weather()])

    report = await toolkit.load_modules([thief])

    assert (report.loaded, thief.log[-1]) == ([], "shutdown")
    assert "forecast" in report.errors[0].error
    assert "thief" not in toolkit.all_group_ids()
    assert (await toolkit.call("forecast", city="Oslo")).text == "sun in Oslo"


async def test_a_module_is_loaded_once() -> None:
    toolkit = Toolkit()

    report = await toolkit.load_modules([Weather(), Weather()])

    assert report.loaded == ["weather"]
    assert report.errors[0].error == "a module 'weather' is loaded already"


async def test_a_module_that_does_not_shut_down_does_not_hold_up_the_others() -> None:
    toolkit = Toolkit()
    first = Weather("first")
    stuck = Weather("stuck", shutdown=failing, tools=list)
    await toolkit.load_modules([first, stuck])

    report = await toolkit.unload_modules()

    assert [(failure.module, failure.error) for failure in report.errors] == [("stuck", "out of order")]
    assert first.log[-1] == "shutdown"
    assert not {"first", "stuck"} & set(toolkit.all_group_ids())


async def test_closing_a_toolkit_unloads_its_modules() -> None:
    module = Weather()

    async with Toolkit() as toolkit:
        await toolkit.load_modules([module])

    assert module.log[-1] == "shutdown"


@pytest.mark.parametrize("wanted", ["weather", b"weather", 3, None])
async def test_modules_are_a_list_or_a_mapping(wanted: Any) -> None:
    with pytest.raises(TypeError, match="modules are a list or a mapping"):
        await Toolkit().load_modules(wanted)
