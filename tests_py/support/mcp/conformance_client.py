"""The client of the conformance suite: `conformance_client.py URL`, with the scenario in the environment."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from toolcrib import Toolkit, mcp

ARGUMENTS: dict[str, dict[str, Any]] = {"add_numbers": {"a": 2, "b": 3}}


async def accept_defaults(question: Any) -> Any:
    """Answer a question without filling in anything."""
    return {}


async def main() -> None:
    """Connect, list the tools, and call each of them once."""
    toolkit = Toolkit(asker=accept_defaults)
    async with mcp.connect(sys.argv[1], name="conformance") as client:
        registration = await toolkit.register_mcp_client(client)
        for name in registration.tools.values():
            response = await toolkit.call(name, **ARGUMENTS.get(name, {}))
            print(os.environ.get("MCP_CONFORMANCE_SCENARIO"), name, response.text)


if __name__ == "__main__":
    asyncio.run(main())
