"""Tools that need permission and record that they ran, and an approver with a fixed answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from toolcrib import Toolkit


class Shop:
    """A toolkit whose tools record that they ran, and their arguments."""

    def __init__(self, **options: Any) -> None:
        self.ran: list[Any] = []
        self.kit = Toolkit(run_in="inline", **options)
        self.kit.create_tool_group("files", "Files.", active=True)
        self.kit.register_tool_function(self.look, kind="read")
        self.kit.register_tool_function(self.remove, "files", kind="delete", permission="confirm", tags=["danger"])
        self.kit.register_tool_function(self.login, secrets=["password"], permission="confirm")
        self.kit.register_tool_function(self.count, permission="confirm")

    async def look(self, path: str) -> str:
        """Look at a file."""
        self.ran.append(("look", path))
        return f"saw {path}"

    async def remove(self, path: str, force: bool = False) -> str:
        """Remove a file.

        Args:
            path: Which.
            force: Whether to skip the question.
        """
        self.ran.append(("remove", path, force))
        return f"removed {path}"

    def login(self, user: str, password: str) -> str:
        self.ran.append(("login", user, password))
        return f"hello {user}"

    async def count(self, to: int) -> AsyncIterator[str]:
        self.ran.append(("count", to))
        for number in range(to):
            await asyncio.sleep(0)
            yield str(number)


def answering(answer: Any) -> tuple[Callable[[Any], Any], list[Any]]:
    """An approver with a fixed answer, and the requests that it received."""
    asked: list[Any] = []

    async def approve(request: Any) -> Any:
        asked.append(request)
        return answer

    return approve, asked
