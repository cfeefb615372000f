"""Copies of toolkits: `copy.copy`, `copy.deepcopy` and `pickle`.

A copy has the tools, the groups with their switches, the skills, the middlewares and the options. It has neither
pending approvals nor background tasks. The policy, the functions and the stores of the options are shared.
"""

from __future__ import annotations

import pickle
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeVar

from toolcrib import _core, tools

if TYPE_CHECKING:
    from toolcrib.toolkit import Toolkit

T = TypeVar("T", bound="Toolkit")

_OPTIONS = ("policy", "approver", "approver_timeout", "headless", "audit", "asker", "result_budget")
# Objects behind attributes that belong to one toolkit.
_OWN = ("_mcp", "_module_loader", "_tools", "_groups", "_skills")


def parts_of(toolkit: Toolkit) -> dict[str, Any]:
    """Return the parts that a copy is made from.

    Args:
        toolkit: The toolkit.
    """
    toolkit._settle()
    options = {name: getattr(toolkit, name) for name in _OPTIONS}
    return {
        "texts": toolkit._skill_texts,
        "options": {**toolkit._switches, **options, "error_formatter": toolkit._error_formatter},
        "groups": toolkit._group_records,
        "tools": {name: tool._record for name, tool in toolkit._all_tools().items()},
        "skills": toolkit._all_skills(),
        "middlewares": list(toolkit._middlewares),
        "attributes": {name: value for name, value in vars(toolkit).items() if name not in _OWN},
    }


def restore(toolkit: Toolkit, parts: dict[str, Any], original: Toolkit | None = None) -> None:
    """Make a new toolkit a copy.

    Args:
        toolkit: The new toolkit, before `__init__`.
        parts: The parts.
        original: The toolkit that they are from: its own methods among the tools become methods of the copy.
    """
    _core.Toolkit.__init__(toolkit, *parts["texts"], **parts["options"])
    toolkit._configure()
    vars(toolkit).update(parts["attributes"])
    for group in parts["groups"]:
        toolkit._put_group(group)
    for name, record in parts["tools"].items():
        function = record["original_func"]
        if original is not None and getattr(function, "__self__", None) is original:
            record = {**record, "original_func": getattr(toolkit, function.__name__)}
        toolkit._put_tool(name, record)
    for name, skill in parts["skills"].items():
        toolkit._put_skill(name, skill)
    toolkit._middlewares.extend(parts["middlewares"])


def shallow(toolkit: T) -> T:
    """Return a copy that shares the functions and presets with the original.

    Args:
        toolkit: The toolkit.
    """
    copy = type(toolkit).__new__(type(toolkit))
    parts = parts_of(toolkit)
    # What belongs to the toolkit alone is copied, such as the names of the modules that AgentScope saves.
    attributes = parts["attributes"]
    parts["attributes"] = {
        name: value.copy() if isinstance(value, dict | list | set) else value for name, value in attributes.items()
    }
    restore(copy, parts, toolkit)
    return copy


def deep(toolkit: T, memo: dict[int, Any]) -> T:
    """Return a copy with copies of the objects that its tools are methods of, and of the presets.

    Args:
        toolkit: The toolkit.
        memo: The copies so far.
    """
    copy = type(toolkit).__new__(type(toolkit))
    memo[id(toolkit)] = copy
    parts = parts_of(toolkit)
    shared = [parts["options"][name] for name in (*_OPTIONS, "error_formatter")]
    for record in parts["tools"].values():
        function, budget = record["original_func"], record["result_budget"]
        shared += [budget, function] if isinstance(function, _core.NativeTool) else [budget]
    shared += [group["result_budget"] for group in parts["groups"]]
    memo.update({id(value): value for value in shared if value is not None})
    restore(copy, deepcopy(parts, memo), toolkit)
    return copy


def state_of(toolkit: Toolkit) -> dict[str, Any]:
    """Return the parts of a toolkit for `pickle`.

    Args:
        toolkit: The toolkit.

    Raises:
        PicklingError: If a tool, a function that postprocesses its results, or a middleware is not importable.
    """
    parts = parts_of(toolkit)
    for name, record in parts["tools"].items():
        if isinstance(record["original_func"], _core.NativeTool):
            record["original_func"] = _BuiltIn(record["original_func"], name)
        _check(record["original_func"], f"tool `{name}`")
        _check(record["postprocess_func"], f"the function that postprocesses the results of tool `{name}`")
    for middleware in parts["middlewares"]:
        _check(middleware, "a middleware")
    return parts


class _BuiltIn:
    """A tool of `toolcrib.tools`, which is pickled by its name."""

    def __init__(self, tool: _core.NativeTool, name: str) -> None:
        if getattr(tools, tool.name, None) is not tool:
            raise pickle.PicklingError(f"tool `{name}` cannot be pickled: it is not one of `toolcrib.tools`")
        self._name = tool.name

    def __reduce__(self) -> tuple[Any, ...]:
        return _built_in, (self._name,)


def _built_in(name: str) -> Any:
    return getattr(tools, name)


def _check(function: Any, what: str) -> None:
    """Refuse a function that `pickle` cannot find by its name, before `pickle` does in other words."""
    name = getattr(getattr(function, "__func__", function), "__qualname__", "")
    if "<" in name:
        raise pickle.PicklingError(f"{what} cannot be pickled: `{name}` is not at the top level of a module")
