"""Tools with a context that a child process can import."""

from __future__ import annotations

from typing import Any, Literal

from toolcrib import ToolContext


def count(context: ToolContext[Any], to: int) -> str:
    """Report each number."""
    for number in range(1, to + 1):
        context.progress(number, to)
    return f"counted to {to}"


def book(context: ToolContext[Any]) -> str:
    """Ask which room, and block until there is an answer."""
    room = context.ask("Which room?", Literal["single", "double"]).result()
    return f"booked a {room} room"


def note(context: ToolContext[Any], text: str) -> str:
    """Log a text."""
    context.log.info("noted %s", text)
    return "done"


def facts(context: ToolContext[Any]) -> str:
    """Name the call."""
    return f"{context.tool_name} {context.caller} {context.session_id} {context.deps} {context.session}"
