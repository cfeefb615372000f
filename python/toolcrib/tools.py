"""The tools included in toolcrib.

They are native: Rust code on a tokio runtime, which occupies no thread while it waits.

Example:
    ```python
    from toolcrib import Toolkit, tools

    toolkit = Toolkit()
    toolkit.register_tool_function(tools.wait)
    ```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from toolcrib._core import NativeTool, Store, _artifact_tools, _native_tool

if TYPE_CHECKING:
    from toolcrib._core import Toolkit

__all__ = ["ArtifactTools", "artifacts", "register", "wait"]

wait: Final[NativeTool] = _native_tool("wait")
"""Waits for `seconds`. With `every`, it reports the progress after each interval of that many seconds."""


class ArtifactTools(NamedTuple):
    """The tools for artifacts: versioned texts, which each session has for itself."""

    create_artifact: NativeTool
    update_artifact: NativeTool
    rewrite_artifact: NativeTool
    read_artifact: NativeTool
    list_artifacts: NativeTool
    artifact_history: NativeTool
    diff_artifact: NativeTool


def artifacts(store: Store | None = None) -> ArtifactTools:
    """Make the tools for the artifacts in a store.

    Args:
        store: The store; None keeps the artifacts in memory, as long as one of the tools exists.

    Returns:
        The tools, to be registered all or one by one.
    """
    return ArtifactTools(*_artifact_tools(Store.open("sqlite::memory:") if store is None else store))


def register(
    toolkit: Toolkit, family: Literal["artifacts"], *, store: Store | None = None, group_name: str = "basic"
) -> list[str]:
    """Register a family of tools.

    Args:
        toolkit: The toolkit.
        family: `"artifacts"`: the tools of `artifacts`.
        store: The store of the artifacts; None keeps them in memory.
        group_name: The group that the tools belong to.

    Returns:
        The names of the tools.

    Raises:
        ValueError: If the family is unknown.
    """
    if family != "artifacts":
        raise ValueError(f"unknown family of tools {family!r}: expected 'artifacts'")
    tools = artifacts(store)
    for tool in tools:
        toolkit.register_tool_function(tool, group_name=group_name)
    return [tool.name for tool in tools]
