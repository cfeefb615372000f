"""Event loops of either kind, asyncio's and uvloop's, and running a coroutine on one."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

LoopFactory: TypeAlias = Callable[[], asyncio.AbstractEventLoop]


def run_on(loop_factory: LoopFactory, main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine as `asyncio.run` does, on a given kind of loop (`asyncio.Runner` came with Python 3.11)."""
    loop = loop_factory()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(main)
    finally:
        try:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            asyncio.set_event_loop(None)
            loop.close()
