"""Fixtures, event loops for `async def` tests, and the number of cases of each property."""

import asyncio
import inspect
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import uvloop
from hypothesis import HealthCheck, is_hypothesis_test, settings

from support.loops import LoopFactory, run_on
from support.mcp.summary import pytest_terminal_summary as pytest_terminal_summary

if TYPE_CHECKING:
    from support.postgres import Server
    from support.tracing import Traces

PROPERTY_CASES = int(os.environ.get("TOOLCRIB_PROPERTY_CASES", "500"))

settings.register_profile(
    "toolcrib",
    max_examples=PROPERTY_CASES,
    deadline=None,
    # CI tries the same cases each time, so that a change fails for what it changed; other runs try new ones.
    derandomize="CI" in os.environ,
    # A busy machine is no reason to fail.
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("toolcrib")

# A shell lets what it puts into the background ignore this signal, and so would the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=["asyncio", "uvloop"])
def loop_factory(request: pytest.FixtureRequest) -> LoopFactory:
    """Ask for this in an `async def` test to have it run once on each kind of loop."""
    return asyncio.new_event_loop if request.param == "asyncio" else uvloop.new_event_loop


@pytest.fixture
def traces() -> "Iterator[Traces]":
    """Ask for this to have calls traced, by a provider that no other test uses."""
    # Here, so that the tests that do not ask run without OpenTelemetry.
    from support.tracing import Traces
    from toolcrib import tracing

    traces = Traces()
    tracing.configure(tracer_provider=traces.provider)
    yield traces
    tracing.configure()


@pytest.fixture(scope="session")
def postgres() -> "Iterator[Server]":
    """The PostgreSQL server of this run."""
    from support.postgres import Unavailable, running

    with ExitStack() as stack:
        try:
            server = stack.enter_context(running())
        except Unavailable as reason:
            pytest.skip(f"the tests on PostgreSQL did NOT run: {reason}")
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Ask for this to have a test run once on each database, on a new one."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'crib.db'}"
    server: Server = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function; leave any other to pytest."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test) or pyfuncitem.get_closest_marker("anyio"):
        return None
    wanted = inspect.signature(test).parameters
    arguments: dict[str, Any] = {name: value for name, value in pyfuncitem.funcargs.items() if name in wanted}
    factory: Any = pyfuncitem.funcargs.get("loop_factory", asyncio.new_event_loop)
    run_on(factory, test(**arguments))
    return True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the properties, and give each the time that its cases take."""
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)) or item.path.stem.endswith("_property"):
            item.add_marker(pytest.mark.property)
            if not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(60 + PROPERTY_CASES // 5))
