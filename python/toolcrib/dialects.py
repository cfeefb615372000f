"""Tools in the dialects of providers: what `Toolkit.schemas` gives, and a toolkit that speaks one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from toolcrib.errors import UnknownToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from toolcrib._core import ToolStream, _Dialect, _DialectTool

__all__ = ["DialectSchemas", "DialectToolkit", "Loss"]


class Loss(NamedTuple):
    """Something that a tool's schema says and the provider cannot hold a model to; toolcrib still checks it."""

    tool: str
    """The name of the tool."""
    path: str
    """Where, for example `items[].price`; empty for the tool or its arguments as a whole."""
    what: str
    """What is lost: a keyword of JSON Schema, or a word such as `recursion`."""
    instead: str
    """How the model is told of it instead."""

    def __str__(self) -> str:
        """Say it in one line."""
        place = f"{self.tool}: {self.path}" if self.path else self.tool
        return f"{place}: {self.what} ({self.instead})"


class DialectSchemas(list[dict[str, Any]]):
    """The tools as a provider takes them: a list of plain dicts, and the way back.

    Made by `Toolkit.schemas`. It stays as it is when the toolkit changes.
    """

    def __init__(self, schemas: Iterable[dict[str, Any]], dialect: str, tools: Sequence[_DialectTool]) -> None:
        """Make the list; `Toolkit.schemas` does that.

        Args:
            schemas: What the list holds.
            dialect: The name of the dialect.
            tools: How arguments come back, in the order of the schemas.
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
        """What the dialect cannot say, tool by tool; empty if nothing is lost."""
        return [Loss(tool.tool_name, *loss) for tool in self._tools for loss in tool.report]

    def tool_name(self, name: str) -> str:
        """Give the name that a tool has in the toolkit.

        Args:
            name: The name that the provider was told, or the tool's own.

        Raises:
            UnknownToolError: If there is no such tool in the list.
        """
        return self._tool(name).tool_name

    def decode(self, name: str, arguments: Mapping[str, Any] | str) -> dict[str, Any]:
        """Bring arguments that a model sent to the shape that the tool expects.

        Args:
            name: The tool's name, as the model was told it.
            arguments: What the model sent, or its JSON text.

        Raises:
            UnknownToolError: If there is no such tool in the list.
            UnreadableArgumentsError: If the arguments cannot be brought back.
        """
        sent = arguments if isinstance(arguments, str) else dict(arguments)
        return self._tool(name).decode(sent)

    def encode(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Bring arguments of a tool to the shape in which a model sends them, for examples in prompts.

        Args:
            name: The tool's name.
            arguments: What the tool would be called with, as JSON has it.

        Raises:
            UnknownToolError: If there is no such tool in the list.
        """
        return self._tool(name).encode(dict(arguments))

    def _tool(self, name: str) -> _DialectTool:
        for tool in self._tools:
            if name in (tool.name, tool.tool_name):
                return tool
        raise UnknownToolError(f"there is no tool `{name}` among these schemas")


class _Toolkit(Protocol):
    """What a toolkit and a view of one have in common."""

    def schemas(self, dialect: _Dialect) -> DialectSchemas: ...

    def call_tool_function(self, tool_call: Any, *, dialect: _Dialect | None = None) -> ToolStream: ...


class DialectToolkit:
    """A toolkit that speaks one dialect: what it tells a model, and what it takes from it.

    Everything else is as in the toolkit that it is made of, which stays as it is.

    Args:
        toolkit: A toolkit, or a view of one.
        dialect: The name of the dialect.

    Raises:
        UnknownDialectError: If there is no such dialect.
    """

    def __init__(self, toolkit: _Toolkit, dialect: _Dialect) -> None:
        toolkit.schemas(dialect)
        self._toolkit = toolkit
        self._dialect = dialect

    @property
    def toolkit(self) -> Any:
        """The toolkit, which speaks no dialect."""
        return self._toolkit

    @property
    def dialect(self) -> str:
        """The name of the dialect."""
        return self._dialect

    def get_json_schemas(self) -> DialectSchemas:
        """Describe the tools of all active groups in the dialect, in the order they were registered."""
        return self._toolkit.schemas(self._dialect)

    def call_tool_function(self, tool_call: Any) -> ToolStream:
        """Call a tool the way a model asks for it in the dialect, and give its responses as they come.

        Args:
            tool_call: The call, with the name and the arguments that the model wrote.
        """
        return self._toolkit.call_tool_function(tool_call, dialect=self._dialect)

    def __getattr__(self, name: str) -> Any:
        """Ask the toolkit for all else."""
        return getattr(self._toolkit, name)
