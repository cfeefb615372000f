"""`install` and `uninstall`: toolcrib's toolkit in place of AgentScope's."""

from __future__ import annotations

import sys
from types import ModuleType

from toolcrib.compat.agentscope2.toolkit import Original, Toolkit

__all__ = ["install", "uninstall"]


def install() -> list[str]:
    """Put `Toolkit` in place of AgentScope's class in every loaded module of AgentScope.

    Agents that are made without a toolkit, and modules of AgentScope that are loaded later, use it from then on. It
    does not reach toolkits that exist already, nor names that other modules have imported before (`from
    agentscope.tool import Toolkit` in your program): install it first, or import it from here.

    Returns:
        The names of the modules in which it was put.
    """
    return _replace(Original, Toolkit)


def uninstall() -> list[str]:
    """Put AgentScope's own class back.

    Returns:
        The names of the modules in which it was put.
    """
    return _replace(Toolkit, Original)


def _replace(old: type, new: type) -> list[str]:
    replaced = []
    for name, module in list(sys.modules.items()):
        is_theirs = name == "agentscope" or name.startswith("agentscope.")
        if not is_theirs or not isinstance(module, ModuleType):
            continue
        attributes = [attribute for attribute, value in vars(module).items() if value is old]
        for attribute in attributes:
            setattr(module, attribute, new)
        if attributes:
            replaced.append(name)
    return sorted(replaced)
