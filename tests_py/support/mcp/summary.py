"""The numbers of the tests with MCP peers, at the end of their report."""

from __future__ import annotations

import pytest

CHECKS = {
    "scenarios of the conformance suite for servers": "test_the_server_passes_the_conformance_suite",
    "scenarios of the conformance suite for clients": "test_the_client_passes_the_conformance_suite",
    "tests with the reference servers": "test_the_reference_server|of_the_reference_server",
    "tests with the Inspector": "test_the_inspector",
    "tests with the official SDK": "test_sdk.py::",
    "tests with fastmcp": "test_fastmcp.py::",
}
"""The parts of the names of tests by what they count."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many checks of each peer have passed."""
    stats = terminalreporter.stats
    for title, parts in CHECKS.items():
        names = [report.nodeid for report in stats.get("passed", []) if "interop/" in report.nodeid]
        passed = sum(any(part in name for part in parts.split("|")) for name in names)
        if passed:
            terminalreporter.write_line(f"MCP: {passed} {title} passed")
