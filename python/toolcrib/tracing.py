"""Configuration of the OpenTelemetry spans of calls; tracing works without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcrib import _core

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

__all__ = ["configure"]


def configure(
    *,
    enabled: bool = True,
    tracer_provider: TracerProvider | None = None,
    record_arguments: bool = False,
    record_results: bool = False,
    limit: int = 4096,
) -> None:
    """Configure the tracing of calls in this process.

    Omitted options return to their defaults, so that `configure()` restores the defaults.

    Args:
        enabled: If false, calls have no spans.
        tracer_provider: The tracer provider, instead of OpenTelemetry's global one.
        record_arguments: If true, spans contain the model's arguments. Presets are never recorded.
        record_results: If true, spans contain the content of the last response.
        limit: The maximum number of characters of recorded arguments and results.

    Raises:
        ValueError: If `limit` is not positive.
    """
    if limit < 1:
        raise ValueError(f"limit must be a positive number of characters, not {limit}")
    _core._configure_tracing(enabled, tracer_provider, record_arguments, record_results, limit)


def _text(value: Any, limit: int) -> str:
    """Format any value as JSON text of at most `limit` characters."""
    import json

    pieces, length = [], 0
    try:
        # A string is kept as it is. Other values are encoded piece by piece, only as far as needed.
        encoder = json.JSONEncoder(ensure_ascii=False, default=str)
        written = [value] if isinstance(value, str) else encoder.iterencode(value)
        for piece in written:
            pieces.append(piece[: limit + 1])
            length += len(pieces[-1])
            if length > limit:
                break
    except Exception as error:
        pieces = [f"<{type(value).__name__} that cannot be written: {type(error).__name__}>"]
    # Exporters drop a whole batch if it contains text that is not valid Unicode.
    text = "".join(pieces).encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= limit else text[: limit - 1] + "…"
