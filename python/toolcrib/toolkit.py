"""`Toolkit`: the core's registry and calls, with the short face that Python users like."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, ItemsView, Iterator, Mapping, ValuesView
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from toolcrib import _core

if TYPE_CHECKING:
    from toolcrib._core import RegisteredToolFunction, ToolGroup, ToolResponse

__all__ = ["Toolkit"]

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class LiveMapping(Mapping[str, T]):
    """Show what a toolkit holds at the moment of looking; a loop over it goes through what was there when it began."""

    __slots__ = ("_all", "_find")

    def __init__(self, all_: Callable[[], dict[str, T]], find: Callable[[str], T | None]) -> None:
        self._all = all_
        self._find = find

    def __getitem__(self, name: str) -> T:
        found = self._find(name) if isinstance(name, str) else None
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def items(self) -> ItemsView[str, T]:
        """Pair every name with what it stands for."""
        return self._all().items()

    def values(self) -> ValuesView[T]:
        """Give everything that has a name."""
        return self._all().values()

    def __repr__(self) -> str:
        return repr(self._all())


class Toolkit(_core.Toolkit):
    """Keep tools, tell a model about them, and call them.

    Args:
        arguments: What is done with the model's arguments before a tool runs: `"coerce"` converts by declared type
            and checks, `"check"` only checks, `"pass"` hands them on.
        errors: What becomes of a tool's exception: `"respond"` makes it a response, `"raise"` lets it through,
            `"compat"` does as AgentScope does: a function's error responds, a generator's is raised.
        run_in: Where synchronous tools run: `"thread"` or `"inline"` on the event loop.
    """

    @property
    def tools(self) -> Mapping[str, RegisteredToolFunction]:
        """The tools by name, in the order they were registered; live."""
        return LiveMapping(self._all_tools, self._find_tool)

    @property
    def groups(self) -> Mapping[str, ToolGroup]:
        """The groups by name, in the order they were created, without `basic`; live."""
        return LiveMapping(self._all_groups, self._find_group)

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(
        self,
        function: None = None,
        /,
        *,
        group_name: str = ...,
        preset_kwargs: dict[str, Any] | None = ...,
        func_name: str | None = ...,
        func_description: str | None = ...,
        json_schema: dict[str, Any] | None = ...,
        include_long_description: bool = ...,
        include_var_positional: bool = ...,
        include_var_keyword: bool = ...,
        postprocess_func: Callable[[Any, ToolResponse], Any] | None = ...,
        namesake_strategy: Literal["raise", "skip", "override", "rename"] = ...,
        run_in: Literal["thread", "inline", "process"] | None = ...,
        timeout: float | None = ...,
    ) -> Callable[[F], F]: ...

    def tool(self, function: F | None = None, /, **options: Any) -> F | Callable[[F], F]:
        """Register the decorated function, which stays what it was.

        Args:
            function: The function, when the decorator is used without arguments.
            **options: What `register_tool_function` takes.
        """

        def register(function: F) -> F:
            self.register_tool_function(function, **options)
            return function

        return register if function is None else register(function)

    def run(self, name: str, /, **arguments: Any) -> ToolResponse:
        """Call a tool from synchronous code and return its last response.

        It may be used anywhere, also in a function that an event loop calls: the tool then runs on an event loop of its
        own in another thread, and the caller waits.
        """
        import asyncio

        async def last() -> ToolResponse:
            return await self.call(name, **arguments)

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return _run(last)
        import contextvars
        from concurrent.futures import ThreadPoolExecutor

        context = contextvars.copy_context()
        with ThreadPoolExecutor(1, "toolcrib-run") as executor:
            return executor.submit(context.run, _run, last).result()


def _run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do as `asyncio.run` does, but leave the event loop that the thread may have set as it is."""
    import asyncio

    if sys.version_info < (3, 11):
        return asyncio.run(main())
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(main())
