"""Modules: groups of tools with a setup and a shutdown.

A module is an object or a Python module with a `name`, a function `tools()` that returns the callables of its group,
and functions `init(toolkit, config)` and `shutdown()`, which may be asynchronous. The optional `group` names the group,
which otherwise has the name of the module, and the optional `description` describes it.
"""

from __future__ import annotations

import importlib
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from toolcrib.toolkit import Toolkit

__all__ = ["Failure", "Loader", "Module", "Report"]

log = logging.getLogger("toolcrib")


class Module(Protocol):
    """The interface of a module."""

    name: str

    def tools(self) -> Iterable[Callable[..., Any]]:
        """Return the tools of the module's group."""

    def init(self, toolkit: Any, config: Any) -> Any:
        """Set up the module; called before `tools`."""

    def shutdown(self) -> Any:
        """Release all resources; called after the group is removed."""


@dataclass(frozen=True)
class Failure:
    """A module that failed, and the reason."""

    module: str
    error: str


@dataclass
class Report:
    """The modules that were loaded, and the errors of the others."""

    loaded: list[str] = field(default_factory=list)
    errors: list[Failure] = field(default_factory=list)


class Loader:
    """Loads modules one after the other; a module that fails does not stop the others.

    Args:
        functions: The functions that a module must have.
        install: Registers the tools of a module after its setup.
        remove: Removes the tools of a module.
    """

    def __init__(self, functions: Iterable[str], install: Callable[[Any], None], remove: Callable[[Any], None]) -> None:
        """Start without modules."""
        self.modules: dict[str, Any] = {}
        self._functions = tuple(functions)
        self._install = install
        self._remove = remove

    async def load(self, wanted: Iterable[Any] | Mapping[str, Any], owner: Any) -> Report:
        """Import, check, set up and install modules.

        Args:
            wanted: The modules: objects, or import paths such as `"package.module"` and `"package.module:object"`; a
                mapping gives each path its configuration.
            owner: The first argument of `init`; the second is the configuration.
        """
        if isinstance(wanted, str | bytes) or not isinstance(wanted, Iterable):
            raise TypeError(f"modules are a list or a mapping of names to configurations, not {type(wanted).__name__}")
        entries = wanted.items() if isinstance(wanted, Mapping) else [(module, None) for module in wanted]
        report = Report()
        for source, config in entries:
            label = source if isinstance(source, str) else _name_of(source)
            try:
                report.loaded.append(await self._load_one(source, config, owner))
            except Exception as error:
                report.errors.append(Failure(label, str(error) or type(error).__name__))
                log.warning("the module '%s' was not loaded: %s", label, error)
        return report

    async def shutdown(self) -> Report:
        """Remove the tools of every module and shut it down, in reverse order."""
        report = Report()
        while self.modules:
            name, module = self.modules.popitem()
            try:
                try:
                    self._remove(module)
                finally:
                    await settled(module.shutdown())
                report.loaded.append(name)
            except Exception as error:
                report.errors.append(Failure(name, str(error) or type(error).__name__))
                log.warning("the module '%s' did not shut down well: %s", name, error)
        return report

    async def _load_one(self, source: Any, config: Any, owner: Any) -> str:
        module = _imported(source) if isinstance(source, str) else source
        self._check(module)
        name: str = module.name
        if name in self.modules:
            raise ValueError(f"a module '{name}' is loaded already")
        await settled(module.init(owner, config))
        try:
            self._install(module)
        except Exception:
            await settled(module.shutdown())
            raise
        self.modules[name] = module
        return name

    def _check(self, module: Any) -> None:
        problems = []
        if not isinstance(getattr(module, "name", None), str):
            problems.append("`name` must be a text" if hasattr(module, "name") else "it has no `name`")
        for function in self._functions:
            if not hasattr(module, function):
                problems.append(f"it has no function `{function}`")
            elif not callable(getattr(module, function)):
                problems.append(f"`{function}` must be a function, not {type(getattr(module, function)).__name__}")
        if problems:
            raise TypeError(f"'{_name_of(module)}' is not a module: {', '.join(problems)}")


def loader_for(toolkit: Toolkit) -> Loader:
    """Make the loader that registers the groups of modules in a toolkit."""

    def install(module: Any) -> None:
        group = group_of(module)
        if group in toolkit.all_group_ids():
            raise ValueError(f"the group '{group}' exists already: give the module another `group`")
        toolkit.register_group(group, getattr(module, "description", ""), list(module.tools()))

    return Loader(("tools", "init", "shutdown"), install, lambda module: toolkit.unregister_group(group_of(module)))


def group_of(module: Any) -> str:
    """Return the name of a module's group."""
    group: str = getattr(module, "group", None) or module.name
    return group


def _name_of(module: Any) -> str:
    name = getattr(module, "name", None)
    return name if isinstance(name, str) else getattr(module, "__name__", type(module).__name__)


def _imported(source: str) -> Any:
    path, _, attribute = source.partition(":")
    module = importlib.import_module(path)
    return getattr(module, attribute) if attribute else module


async def settled(value: Any) -> Any:
    """Return the result of a function of a module, which may be asynchronous."""
    return await value if inspect.isawaitable(value) else value
