"""Events of a toolkit, recorded in a list."""

from __future__ import annotations

from toolcrib import Toolkit
from toolcrib.events import Event


def record_events(kit: Toolkit) -> list[Event]:
    """A list to which every event of a toolkit is appended."""
    events: list[Event] = []
    for kind in ("call_start", "chunk", "permission_request", "permission_result", "call_end", "error"):
        kit.subscribe(kind, events.append)
    return events


def event_types(events: list[Event]) -> list[str]:
    """The type of each event."""
    return [event.type for event in events]
