"""Spans of calls as AgentScope writes them, for AgentScope Studio and other readers of its attributes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolcrib import _core
from toolcrib._mapping import LiveMapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.compat.agentscope.toolkit import Toolkit

__all__ = ["Conventions", "conventions"]


class Conventions:
    """AgentScope's switch, instrumentation scope and attributes, by its own functions."""

    def __init__(self) -> None:
        trace = import_module("agentscope.tracing._trace")
        self._is_enabled = trace._check_tracing_enabled
        self._tracer = trace._get_tracer
        self._request = trace._get_tool_request_attributes
        self._response = trace._get_tool_response_attributes
        self._common = trace._get_common_attributes
        self._name = trace._get_tool_span_name

    def start(self, toolkit: Toolkit, tool_call: Any, arguments: Any) -> Any:
        """Start the span of a call; None if AgentScope does not trace.

        Args:
            toolkit: The toolkit.
            tool_call: The request.
            arguments: The arguments in it, redacted.
        """
        if not self._is_enabled():
            return None
        call = dict(tool_call) if isinstance(tool_call, dict) else {"name": str(tool_call)}
        if arguments is not None:
            call["input"] = arguments
        attributes = {
            **self._request(_Descriptions(toolkit), call),
            **self._common(),
            "agentscope.function.name": f"{type(toolkit).__name__}.call_tool_function",
        }
        shown = {name: value for name, value in attributes.items() if value is not None}
        return self._tracer().start_span(self._name(attributes), attributes=shown)

    def record(self, span: Any, response: Any) -> None:
        """Record the last response; None if the call ended with an exception."""
        if response is not None:
            span.set_attributes(self._response(response))

    def conclude(self, span: Any, is_good: bool) -> None:
        """Set the status of a call that went well."""
        if is_good:
            span.set_status(import_module("opentelemetry.trace").StatusCode.OK)


class _Descriptions:
    """The tools of a toolkit, without handing out their records."""

    def __init__(self, toolkit: Toolkit) -> None:
        self.tools: Mapping[str, _core.RegisteredToolFunction] = LiveMapping(toolkit._all_tools, toolkit._find_tool)


def conventions() -> Conventions | None:
    """Return AgentScope's conventions; None if it is not installed, or one of its older versions is."""
    try:
        return Conventions()
    except (ImportError, AttributeError):
        return None
