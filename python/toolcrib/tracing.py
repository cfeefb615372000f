"""How calls are traced with OpenTelemetry; nothing here is needed for that to happen."""

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
    """Set how the calls of this process are traced from now on.

    What is not given goes back to its default, so that `configure()` undoes every earlier one.

    Args:
        enabled: Whether calls have spans at all.
        tracer_provider: Where spans go, instead of the provider that the application has set for all of OpenTelemetry.
        record_arguments: Whether spans show what the model sent. Presets are never shown.
        record_results: Whether spans show the content of the last response.
        limit: After how many characters arguments and results are cut.

    Raises:
        ValueError: If `limit` is not positive.
    """
    if limit < 1:
        raise ValueError(f"limit must be a positive number of characters, not {limit}")
    _core._configure_tracing(enabled, tracer_provider, record_arguments, record_results, limit)


def _text(value: Any, limit: int) -> str:
    """Write a value as JSON text of at most so many characters, whatever it is."""
    import json

    pieces, length = [], 0
    try:
        # Text that came as text is kept as it is; the rest is written piece by piece, and no more than is kept.
        encoder = json.JSONEncoder(ensure_ascii=False, default=str)
        written = [value] if isinstance(value, str) else encoder.iterencode(value)
        for piece in written:
            pieces.append(piece[: limit + 1])
            length += len(pieces[-1])
            if length > limit:
                break
    except Exception as error:
        pieces = [f"<{type(value).__name__} that cannot be written: {type(error).__name__}>"]
    # Exporters refuse text that is not valid Unicode, together with everything else that they were to send.
    text = "".join(pieces).encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= limit else text[: limit - 1] + "…"
