"""How each peer is driven: the least its users write to register, list and call tools."""

from __future__ import annotations

import importlib
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from importlib import metadata
from typing import Any, ClassVar

from benches.measure import Loop

MODULES = ("toolcrib", "agentscope", "agno", "langchain", "mcp", "openai_agents", "pydantic_ai", "strands")


class Peer(ABC):
    """Drives one framework through its own entry points.

    Attributes:
        package: Its name in the package index.
        statement: How its users import it.
        label: How tables call it, where the package's name is not enough.
        answer: What its tools return.
        streams: Whether a tool may be an async generator.
        threads: Whether it moves sync tools to a worker thread.
    """

    package: ClassVar[str]
    statement: ClassVar[str]
    label: ClassVar[str] = ""
    answer: Any = "3"
    streams: ClassVar[bool] = False
    threads: ClassVar[bool] = False

    @property
    def title(self) -> str:
        """The name and version that tables show."""
        return self.label or f"{self.package} {metadata.version(self.package)}"

    def accepts(self, function: Callable[..., Any]) -> bool:
        """Tell whether the peer can have this function as a tool.

        Args:
            function: The tool.

        Returns:
            Whether to register it.
        """
        return self.streams or not (inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function))

    async def filled(self, functions: Iterable[Callable[..., Any]]) -> Any:
        """Make a kit with these tools in it, ready to be called.

        Args:
            functions: The tools; those the peer does not accept are left out.

        Returns:
            The peer's registry.
        """
        kit = self.kit()
        for function in functions:
            if self.accepts(function):
                self.register(kit, function)
        await self.ready(kit)
        return kit

    def kit(self) -> Any:
        """Make an empty registry; a dict where the peer has none."""
        return {}

    async def ready(self, kit: Any) -> None:  # noqa: B027 - most peers need nothing
        """Do what the peer does once between registering and calling.

        Args:
            kit: The registry.
        """

    def stream(self, kit: Any, name: str, arguments: dict[str, Any]) -> Loop:
        """Make a loop that calls a generator tool and reads all its chunks.

        Args:
            kit: The registry.
            name: The tool.
            arguments: Its input.

        Returns:
            The loop.
        """
        return self.loop(kit, name, arguments)

    @abstractmethod
    def register(self, kit: Any, function: Callable[..., Any]) -> None:
        """Turn a function into a tool of this peer, its schema included.

        Args:
            kit: Where it goes.
            function: The function.
        """

    @abstractmethod
    def schemas(self, kit: Any) -> Any:
        """List the tools as a model is told about them; the result may have to be awaited.

        Args:
            kit: The registry.

        Returns:
            The list.
        """

    @abstractmethod
    def loop(self, kit: Any, name: str, arguments: dict[str, Any]) -> Loop:
        """Make a loop that calls a tool and takes its answer.

        Args:
            kit: The registry.
            name: The tool.
            arguments: Its input.

        Returns:
            The loop.
        """


def installed(names: Iterable[str] = MODULES) -> list[Peer]:
    """Find the peers that can be imported here.

    Args:
        names: The modules of this package to look at.

    Returns:
        One driver each, toolcrib first.
    """
    found: list[Peer] = []
    for name in names:
        try:
            module = importlib.import_module(f"benches.peers.{name}")
        except ModuleNotFoundError as missing:
            print(f"left out: {name} ({missing})", file=sys.stderr)
            continue
        found.extend(driver() for driver in module.PEERS)
    return found
