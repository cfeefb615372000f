"""Exceptions of tools: the record in the log, and the argument of an error formatter."""

from __future__ import annotations

import logging
from typing import NamedTuple

logger = logging.getLogger("toolcrib")


class FailedCall(NamedTuple):
    """The call whose tool raised an exception: the second argument of an error formatter.

    Attributes:
        tool: The tool's name.
        call_id: The id of the call.
        caller: The caller of the view, if there is one.
    """

    tool: str
    call_id: str
    caller: str | None = None


def log(error: BaseException, source: str, tool: str, call_id: str) -> None:
    """Log an exception with its traceback.

    Args:
        error: The exception.
        source: The code that raised it, as words before the tool's name.
        tool: The tool's name.
        call_id: The id of the call.
    """
    logger.warning(
        "%s %r raised %s (call %s)",
        source,
        tool,
        type(error).__name__,
        call_id,
        exc_info=error,
        extra={"tool": tool, "call_id": call_id},
    )


def redacted(error: BaseException, message: str) -> Exception:
    """Return a stand-in for an exception: its class name and traceback, another message, and no cause.

    Args:
        error: The exception, whose message has secrets.
        message: The message without them.
    """
    kind = type(error)
    stand_in: Exception = type(kind.__name__, (Exception,), {"__module__": kind.__module__})(message)
    return stand_in.with_traceback(error.__traceback__)
