"""`ToolManager`: tools with descriptions in the kwargs format, tags, and calls that return errors as text."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_type_hints

from toolcrib import _run
from toolcrib._core import _AwaitableJob
from toolcrib.compat.agently.formatter import DataFormatter, parameters_of
from toolcrib.compat.agently.shifter import FunctionShifter, is_async
from toolcrib.errors import InvalidToolNameError, ToolcribError
from toolcrib.toolkit import Toolkit

if TYPE_CHECKING:
    from toolcrib.compat.agently.mcp import McpServer

__all__ = ["ToolManager"]

F = TypeVar("F", bound=Callable[..., Any])


class _Direct(threading.local):
    """True in a thread from the moment in which `call_tool` starts a call, until the synchronous function is called."""

    call = False


_direct = _Direct()

# The classes of most results, none of which is awaitable.
PLAIN = frozenset((str, dict, list, int, float, bool, type(None)))


class ToolManager:
    """Agently's manager of tools, over a `toolcrib.Toolkit`.

    Args:
        settings: Agently's settings, if the class is used as a plugin of Agently.

    Attributes:
        toolkit: The toolkit that runs the tools. Its policy, approver, audit log, events and middlewares apply to every
            call, and its tools have the tags of the manager.
        tool_info: The descriptions by name: `name`, `desc`, `kwargs` and, if it is known, `returns`.
        tag_mappings: The names of the tools of each tag. Use `tag` to add one, so that the toolkit knows it too.
    """

    name = "AgentlyToolManager"
    DEFAULT_SETTINGS: dict[str, Any] = {}  # noqa: RUF012 - as Agently's plugins declare it

    def __init__(self, settings: Any = None) -> None:
        self.settings = settings
        self.toolkit = Toolkit(arguments="pass", errors="raise", run_in="inline")
        self._tool_funcs = _ToolFuncs(self)
        self.tool_info: dict[str, dict[str, Any]] = {}
        self.tag_mappings: dict[str, set[str]] = {}
        self._is_async: dict[str, bool] = {}
        self._parameters: dict[str, dict[str, Any]] = {}
        self._servers: list[McpServer] = []

    @property
    def tool_funcs(self) -> dict[str, Callable[..., Any]]:
        """The functions by name. The toolkit follows changes of this dictionary."""
        return self._tool_funcs

    @tool_funcs.setter
    def tool_funcs(self, funcs: Mapping[str, Callable[..., Any]]) -> None:
        given = dict(funcs)
        self._tool_funcs.clear()
        self._tool_funcs.update(given)

    @staticmethod
    def _on_register() -> None:
        """Do nothing: Agently calls this when it loads a plugin."""

    @staticmethod
    def _on_unregister() -> None:
        """Do nothing: Agently calls this when it unloads a plugin."""

    def register(
        self,
        name: str,
        desc: str | None,
        kwargs: dict[str, Any] | None,
        func: Callable[..., Any],
        returns: Any = None,
        tags: str | list[str] | None = None,
    ) -> None:
        """Add a tool, or replace the one of this name; its tags stay.

        Args:
            name: The name.
            desc: The description.
            kwargs: The parameters, each with a type or with `(type, description)`.
            func: Any callable.
            returns: The result, in the same form as a parameter.
            tags: Further tags of the tool.

        Raises:
            TypeError: If `func` is not callable.
            InvalidToolNameError: If the name is empty, or contains a line break.
        """
        self._register(name, desc, kwargs, func, returns, tags, parameters_of(kwargs or {}))

    def tool_func(self, func: F) -> F:
        """Register a function under its name, described by its docstring and signature, and return it."""
        kwargs: dict[str, Any] = {}
        for name, parameter in inspect.signature(func).parameters.items():
            annotation, notes = parameter.annotation, []
            if hasattr(annotation, "__metadata__"):
                annotation, *notes = get_args(annotation)
            if parameter.default is not parameter.empty:
                notes.append(f"Default: {parameter.default}")
            kwargs[name] = (annotation, ";".join(notes))
        hints = get_type_hints(func)
        returns = DataFormatter.sanitize(hints["return"], remain_type=True) if "return" in hints else None
        name = func.__name__
        self._register(name, inspect.getdoc(func) or name, kwargs, func, returns, None, _signature(func))
        return func

    def tag(self, tool_names: str | list[str], tags: str | list[str]) -> None:
        """Add tags to tools.

        Raises:
            RuntimeError: If a tool is unknown; those before it are tagged.
        """
        for name in _listed(tool_names):
            if name not in self.tool_info:
                raise RuntimeError(f"Cannot find tool named '{name}'")
            if name in self.tool_funcs:
                self.toolkit.set_tags(name, [*self._tags_of(name), *_listed(tags)])
            for tag in _listed(tags):
                self.tag_mappings.setdefault(tag, set()).add(name)

    def get_tool_info(self, tags: str | list[str] | None = None) -> dict[str, dict[str, Any]]:
        """Return the descriptions of all tools, as the live mapping, or of those that have one of the tags."""
        if tags is None:
            return self.tool_info
        chosen = set[str]().union(*(self.tag_mappings.get(tag, ()) for tag in _listed(tags)))
        return {name: info for name, info in self.tool_info.items() if name in chosen}

    def get_tool_list(self, tags: str | list[str] | None = None) -> list[dict[str, Any]]:
        """Return the descriptions of all tools, or of those that have one of the tags, as a list."""
        return list(self.get_tool_info(tags).values())

    def get_tool_func(self, name: str, shift: Literal["sync", "async"] | None = None) -> Callable[..., Any] | None:
        """Return the function of a tool, or `None`.

        Args:
            name: The name.
            shift: `"sync"` or `"async"` to convert it; see `FunctionShifter`.
        """
        func: Callable[..., Any] | None = self._tool_funcs.get(name)
        if func is None or shift is None:
            return func
        if shift == "sync":
            return FunctionShifter.syncify(func) if self._is_async[name] else func
        return FunctionShifter.asyncify(func) if shift == "async" else None

    def call_tool(self, name: str, kwargs: dict[str, Any]) -> Any:
        """Call a tool from synchronous code.

        A synchronous function runs in the calling thread, or in a worker thread if an approver or a middleware has to
        be awaited before. A coroutine function runs on an event loop of its own.

        Returns:
            The result; or a text that says that the tool does not exist, or begins with `Error: `.
        """
        is_async = self._is_async.get(name)
        if is_async is None:
            return f"Can not find tool named '{name}'"
        toolkit = self.toolkit
        if is_async or toolkit.approver is not None or toolkit._middlewares:
            return self._call_on_loop(name, kwargs)
        try:
            # Without an event loop: there is nothing to wait for.
            call = toolkit.value(name, **kwargs)
            direct, _direct.call = _direct.call, True
            try:
                call.send(None)
            except StopIteration as done:
                return done.value
            finally:
                _direct.call = direct
            raise RuntimeError(f"tool '{name}' has not finished")
        except Exception as error:
            return self._error(name, kwargs, error)

    async def async_call_tool(self, name: str, kwargs: dict[str, Any]) -> Any:
        """Call a tool. A synchronous function runs in a worker thread.

        Returns:
            The result; or a text that says that the tool does not exist, or begins with `Error: `.
        """
        if name not in self._is_async:
            return f"Can not find tool named '{name}'"
        try:
            return await self.toolkit.value(name, **kwargs)
        except Exception as error:
            return self._error(name, kwargs, error)

    def use_mcp(self, transport: Any, *, tags: str | list[str] | None = None) -> None:
        """Register the tools of MCP servers; see `async_use_mcp`."""
        _run.wait_for(lambda: self.async_use_mcp(transport, tags=tags))

    async def async_use_mcp(self, transport: Any, *, tags: str | list[str] | None = None) -> None:
        """Register the tools of MCP servers, and replace tools of the same names.

        The tools have the tags that the server gives them, and `tags`. The manager keeps the connection until `aclose`.

        Args:
            transport: The path of a script, a URL, a dictionary with `mcpServers`, or a client of `toolcrib.mcp`. Other
                objects, such as a server in this process, need the package `fastmcp`.
            tags: Further tags of the tools.

        Raises:
            ValueError: If the transport is invalid.
            ImportError: If it needs `fastmcp`, which is not installed.
            McpConnectionError: If a server cannot be reached; nothing is registered.
        """
        from toolcrib.compat.agently.mcp import connect

        server = await connect(transport)
        self._servers.append(server)
        for tool in server.tools:
            tagged = [*tool.tags, *_listed(tags)]
            self._register(tool.name, tool.desc, tool.kwargs, tool.func, tool.returns, tagged, tool.parameters)

    async def aclose(self) -> None:
        """End the connections to MCP servers."""
        while self._servers:
            await self._servers.pop().close()

    def _register(
        self,
        name: str,
        desc: str | None,
        kwargs: dict[str, Any] | None,
        func: Callable[..., Any],
        returns: Any,
        tags: str | list[str] | None,
        parameters: dict[str, Any],
    ) -> None:
        added = _listed(tags)
        self._publish(name, func, desc, parameters, added)
        self._parameters[name] = parameters
        self.tool_info[name] = {"name": name, "desc": desc or "", "kwargs": {} if kwargs is None else kwargs}
        if returns is not None:
            self.tool_info[name]["returns"] = returns
        self._tool_funcs.keep(name, func)
        for tag in added:
            self.tag_mappings.setdefault(tag, set()).add(name)

    def _publish(
        self,
        name: str,
        func: Callable[..., Any],
        desc: str | None = None,
        parameters: dict[str, Any] | None = None,
        tags: Iterable[str] = (),
    ) -> None:
        """Register a function in the toolkit, with what the manager knows about the name unless it is given."""
        if not name:
            raise InvalidToolNameError("invalid tool name: it is empty")
        parameters = parameters or self._parameters.get(name) or {"type": "object", "properties": {}}
        is_described = _describes(parameters, func)
        self.toolkit.register_tool_function(
            func if is_described else _entry(func),
            name=name,
            description=self.tool_info.get(name, {}).get("desc") if desc is None else desc,
            # The function itself refuses arguments that it does not know.
            json_schema=parameters if is_described else {**parameters, "additionalProperties": True},
            tags=list(dict.fromkeys([*self._tags_of(name), *tags])),
            namesake_strategy="override",
        )

    def _tags_of(self, name: str) -> list[str]:
        return [tag for tag, names in self.tag_mappings.items() if name in names]

    def _call_on_loop(self, name: str, kwargs: dict[str, Any]) -> Any:
        try:
            return _run.wait_for(lambda: self.toolkit.value(name, **kwargs))
        except Exception as error:
            return self._error(name, kwargs, error)

    def _error(self, name: str, kwargs: Any, error: Exception) -> str:
        if not hasattr(kwargs, "keys"):
            try:
                self.tool_funcs[name](**kwargs)
            except TypeError as refused:
                error = refused  # Its text names the function.
        return f"Error: {error}"


class _ToolFuncs(dict[str, Callable[..., Any]]):
    """The functions by name. The toolkit follows changes of this dictionary."""

    def __init__(self, manager: ToolManager) -> None:
        super().__init__()
        self._manager = manager

    def __setitem__(self, name: str, func: Callable[..., Any]) -> None:
        self._manager._publish(name, func)
        self.keep(name, func)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        del self._manager._is_async[name]
        self._manager.toolkit.remove_tool_function(name)

    # Those of `dict` itself do not call the two methods above.

    def __ior__(self, others: Any) -> _ToolFuncs:  # type: ignore[misc,override] # a dictionary takes more
        self.update(others)
        return self

    def update(self, *others: Any, **named: Callable[..., Any]) -> None:
        """Add functions."""
        for name, func in dict(*others, **named).items():
            self[name] = func

    def setdefault(self, name: str, func: Any = None) -> Callable[..., Any]:
        """Return a function; add it if there is none of this name."""
        if name not in self:
            self[name] = func
        return self[name]

    def pop(self, name: str, *default: Any) -> Any:
        """Remove a function and return it."""
        if default and name not in self:
            return default[0]
        func = self[name]
        del self[name]
        return func

    def popitem(self) -> tuple[str, Callable[..., Any]]:
        """Remove the latest function, and return it with its name."""
        if not self:
            raise KeyError("popitem(): dictionary is empty")
        name = next(reversed(self))
        return name, self.pop(name)

    def clear(self) -> None:
        """Remove all functions."""
        for name in list(self):
            del self[name]

    def keep(self, name: str, func: Callable[..., Any]) -> None:
        """Add a function that the toolkit has already."""
        self._manager._is_async[name] = is_async(func)
        super().__setitem__(name, func)


def _describes(parameters: dict[str, Any], func: Callable[..., Any]) -> bool:
    """Return true for a coroutine function whose parameters are those of the schema, so that the toolkit can call it.

    What a partial has bound can be overridden in Agently, but not in a toolkit, and so it is none.
    """
    if not (inspect.isfunction(func) or inspect.ismethod(func)) or not is_async(func):
        return False
    given = inspect.signature(func).parameters.values()
    is_closed = parameters.get("additionalProperties", False) is False
    is_named = all(each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY) for each in given)
    return is_closed and is_named and all(each.name in (parameters.get("properties") or {}) for each in given)


def _entry(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return the callable that the toolkit runs on the event loop."""
    if is_async(func):

        def awaited(**kwargs: Any) -> Any:
            return func(**kwargs)

        return awaited

    def called(**kwargs: Any) -> Any:
        if not _direct.call:
            return _in_thread(func, kwargs)
        _direct.call = False
        value = func(**kwargs)
        return value if type(value) in PLAIN or not inspect.isawaitable(value) else _result(value)

    return called


async def _in_thread(func: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    # In a list: the result may be a coroutine or a generator, which is not to be run.
    (value,) = await _AwaitableJob(lambda _: [func(**kwargs)], None)
    return value


async def _result(value: Any) -> Any:
    """Return a value, so that the toolkit does not await the value itself."""
    return value


def _signature(func: Callable[..., Any]) -> dict[str, Any]:
    """Return the JSON Schema of the parameters of a function; one without types if they have no schema."""
    toolkit = Toolkit()
    try:
        toolkit.register_tool_function(func, name="tool")
    except (ToolcribError, TypeError, ValueError):
        return {"type": "object", "properties": {}}
    parameters: dict[str, Any] = toolkit.tools["tool"].json_schema["function"]["parameters"]
    return parameters


def _listed(names: str | Iterable[str] | None) -> list[str]:
    if names is None:
        return []
    return [names] if isinstance(names, str) else list(names)
