"""Provider dialects: the result of `Toolkit.schemas`, and a toolkit with a fixed dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from toolcrib import _core
from toolcrib.errors import UnknownToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from toolcrib._core import ToolStream, _Dialect, _DialectTool

__all__ = ["DialectSchemas", "DialectToolkit", "Loss"]


class Loss(NamedTuple):
    """A constraint that the provider does not enforce; toolcrib still validates it."""

    tool: str
    """The name of the tool."""
    path: str
    """The path, for example `items[].price`; empty for the tool or all its arguments."""
    what: str
    """The lost constraint: a keyword of JSON Schema, or a word such as `recursion`."""
    instead: str
    """The replacement, for example a text in the description."""

    def __str__(self) -> str:
        """Format the loss as one line."""
        place = f"{self.tool}: {self.path}" if self.path else self.tool
        return f"{place}: {self.what} ({self.instead})"


class DialectSchemas(list[dict[str, Any]]):
    """The tools in a provider's dialect: a list of plain dicts, with methods to decode arguments.

    `Toolkit.schemas` creates it. It does not follow later changes of the toolkit.
    """

    def __init__(self, schemas: Iterable[dict[str, Any]], dialect: str, tools: Sequence[_DialectTool]) -> None:
        """Create the list; use `Toolkit.schemas` instead.

        Args:
            schemas: The items of the list.
            dialect: The name of the dialect.
            tools: The decoders of the arguments, in the order of the schemas.
        """
        super().__init__(schemas)
        self._dialect = dialect
        self._tools = tools

    @property
    def dialect(self) -> str:
        """The name of the dialect."""
        return self._dialect

    @property
    def report(self) -> list[Loss]:
        """The lost constraints, tool by tool; empty if nothing is lost."""
        return [Loss(tool.tool_name, *loss) for tool in self._tools for loss in tool.report]

    def tool_name(self, name: str) -> str:
        """Return the name of a tool in the toolkit.

        Args:
            name: The tool's name in the dialect, or its own.

        Raises:
            UnknownToolError: If the list does not contain the tool.
        """
        return self._tool(name).tool_name

    def decode(self, name: str, arguments: Mapping[str, Any] | str) -> dict[str, Any]:
        """Decode a model's arguments to the shape that the tool expects.

        Args:
            name: The tool's name in the dialect, or its own.
            arguments: The model's arguments, or their JSON text.

        Raises:
            UnknownToolError: If the list does not contain the tool.
            UnreadableArgumentsError: If the arguments cannot be decoded.
        """
        sent = arguments if isinstance(arguments, str) else dict(arguments)
        return self._tool(name).decode(sent)

    def encode(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Encode a tool's arguments in the shape that a model sends, for examples in prompts.

        Args:
            name: The tool's name.
            arguments: The tool's arguments, as JSON values.

        Raises:
            UnknownToolError: If the list does not contain the tool.
        """
        return self._tool(name).encode(dict(arguments))

    def _tool(self, name: str) -> _DialectTool:
        for tool in self._tools:
            if name in (tool.name, tool.tool_name):
                return tool
        raise UnknownToolError(f"there is no tool `{name}` among these schemas")


class _Toolkit(Protocol):
    """The common interface of toolkits and views."""

    def schemas(self, dialect: _Dialect) -> DialectSchemas: ...

    def call_tool_function(self, tool_call: Any, *, dialect: _Dialect | None = None) -> ToolStream: ...


class DialectToolkit:
    """A toolkit with a fixed dialect for its schemas and calls.

    All other attributes are those of the wrapped toolkit, which does not change.

    Args:
        toolkit: A toolkit, or a view of one.
        dialect: The name of the dialect.

    Raises:
        UnknownDialectError: If the dialect is unknown.
    """

    def __init__(self, toolkit: _Toolkit, dialect: _Dialect) -> None:
        toolkit.schemas(dialect)
        self._toolkit = toolkit
        self._dialect = dialect

    @property
    def toolkit(self) -> Any:
        """The wrapped toolkit."""
        return self._toolkit

    @property
    def dialect(self) -> str:
        """The name of the dialect."""
        return self._dialect

    def get_json_schemas(self) -> DialectSchemas:
        """Describe the tools of all active groups in the dialect, in the order of registration."""
        return self._toolkit.schemas(self._dialect)

    def call_tool_function(self, tool_call: Any) -> ToolStream:
        """Run a tool call in the dialect and return the stream of its responses.

        Args:
            tool_call: The call, with the model's name and arguments.
        """
        if isinstance(self._toolkit, _core.Toolkit):
            # Not the method of a subclass, which may be a coroutine function.
            return _core.Toolkit.call_tool_function(self._toolkit, tool_call, dialect=self._dialect)
        return self._toolkit.call_tool_function(tool_call, dialect=self._dialect)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the wrapped toolkit."""
        return getattr(self._toolkit, name)
