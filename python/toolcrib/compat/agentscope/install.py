"""`install`: put toolcrib's classes in the place of AgentScope's, in every module that has loaded them."""

from __future__ import annotations

import sys
from importlib import import_module
from logging import getLogger
from typing import TYPE_CHECKING, Any

from toolcrib.compat.agentscope import _original
from toolcrib.compat.agentscope.toolkit import Toolkit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

__all__ = ["install", "uninstall"]


def install() -> list[str]:
    """Let every module of AgentScope use toolcrib's toolkit.

    Call it once, at the start of the program; before or after AgentScope is imported makes no difference. Modules of
    your own that have imported the class by name before keep AgentScope's, and are reported in the log.

    Returns:
        The names that could not be replaced, such as `my_agents.Toolkit`.

    Raises:
        RuntimeError: If AgentScope 1.x is not installed.
    """
    return _swap(_original.Original, Toolkit)


def uninstall() -> list[str]:
    """Let every module of AgentScope use its own toolkit again; toolkits that exist stay as they are.

    Returns:
        The names that could not be replaced, such as `my_agents.Toolkit`.

    Raises:
        RuntimeError: If AgentScope 1.x is not installed.
    """
    return _swap(Toolkit, _original.Original)


def _swap(old: type[Any], new: type[Any]) -> list[str]:
    if not _original.IS_INSTALLED:
        raise RuntimeError("AgentScope is not installed: there is nothing to replace")
    # Importing it imports all of its modules, so that none is loaded later with the other class.
    import_module("agentscope")
    missed = []
    for module, name in _places(old):
        if module.__name__.partition(".")[0] == "agentscope":
            setattr(module, name, new)
        elif module.__name__.partition(".")[0] != "toolcrib":
            missed.append(f"{module.__name__}.{name}")
    if missed:
        getLogger("toolcrib").warning(
            "these names still are %s.Toolkit; import them after this call: %s", old.__module__, ", ".join(missed)
        )
    return missed


def _places(wanted: type[Any]) -> Iterator[tuple[ModuleType, str]]:
    """Find the global variables of all modules that hold a class."""
    # A module may have several names.
    for module in {id(module): module for module in list(sys.modules.values())}.values():
        for name, value in list((getattr(module, "__dict__", None) or {}).items()):
            if value is wanted:
                yield module, name
