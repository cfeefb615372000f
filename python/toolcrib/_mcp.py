"""Registration of the tools of an MCP server, through a client that the program has connected itself.

A client lists its tools and makes callables of them, as AgentScope's clients do: `name`, `list_tools()`,
`get_callable_function(func_name=, wrap_tool_result=, execution_timeout=)` and, if it stays connected, `is_connected`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from toolcrib.errors import DuplicateToolError, InvalidFilterError, ToolcribError

if TYPE_CHECKING:
    from toolcrib.toolkit import Toolkit

__all__ = ["McpClient", "register", "remove"]


class McpClient(Protocol):
    """The interface of a client."""

    name: str

    async def list_tools(self) -> Iterable[Any]:
        """List the server's tools, each with a `name`."""

    async def get_callable_function(
        self, func_name: str, wrap_tool_result: bool = True, execution_timeout: float | None = None
    ) -> Any:
        """Return a callable for one tool, with `name`, `json_schema` and `mcp_name`."""


async def register(
    toolkit: Toolkit,
    client: McpClient,
    *,
    enable_funcs: list[str] | None,
    disable_funcs: list[str] | None,
    preset_kwargs_mapping: dict[str, dict[str, Any]] | None,
    execution_timeout: float | None,
    wrap_tool_result: bool,
    **options: Any,
) -> None:
    """Register the tools that pass the filters; a tool that cannot be registered is skipped with a warning."""
    if not getattr(client, "is_connected", True):
        raise RuntimeError(
            "The MCP client is not connected to the server. Use the `connect()` method first.",
        )
    check_filters(enable_funcs, disable_funcs)
    if not isinstance(preset_kwargs_mapping, dict | None):
        raise TypeError(f"preset_kwargs_mapping must be a dictionary or None, not {type(preset_kwargs_mapping)}")
    log = logging.getLogger("toolcrib")
    offered = [tool.name for tool in await client.list_tools()]
    for name in set(enable_funcs or ()) - set(offered):
        log.warning("unknown tool '%s' in enable_funcs: the MCP server of '%s' does not have it", name, client.name)
    wanted = [
        name for name in offered if (enable_funcs is None or name in enable_funcs) and name not in (disable_funcs or ())
    ]
    if options["namesake_strategy"] == "raise":
        check_names(toolkit, wanted)
    for name in wanted:
        function = await client.get_callable_function(
            func_name=name, wrap_tool_result=wrap_tool_result, execution_timeout=execution_timeout
        )
        presets = (preset_kwargs_mapping or {}).get(name)
        try:
            toolkit.register_tool_function(function, preset_kwargs=presets, **options)
        except DuplicateToolError:
            raise
        except ToolcribError as error:
            log.warning("skipping tool '%s' of the MCP server of '%s': %s", name, client.name, error)


def remove(toolkit: Toolkit, client_names: str | list[str]) -> None:
    """Remove every tool of these clients."""
    names = [client_names] if isinstance(client_names, str) else client_names
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"client_names must be a list of strings, not {client_names!r}")
    for name, tool in toolkit.tools.items():
        if tool.mcp_name in names:
            toolkit.remove_tool_function(name)


def check_filters(enable_funcs: list[str] | None, disable_funcs: list[str] | None) -> None:
    """Raise an exception for filters that are not lists of names, or that contradict each other."""
    for option, names in (("enable_funcs", enable_funcs), ("disable_funcs", disable_funcs)):
        if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
            raise InvalidFilterError(f"{option} must be a list of strings, not {names!r}")
    both = sorted(set(enable_funcs or ()) & set(disable_funcs or ()))
    if both:
        raise InvalidFilterError(f"enable_funcs and disable_funcs both name {', '.join(both)}")


def check_names(toolkit: Toolkit, names: list[str]) -> None:
    """Raise an exception for names that are taken, before the first tool is registered."""
    for name in names:
        if name in toolkit.tools:
            raise DuplicateToolError(f"A function with name '{name}' is already registered in the toolkit.")
