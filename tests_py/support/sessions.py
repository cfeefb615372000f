"""A toolkit for many conversations, and the tools that a view lists."""

from __future__ import annotations

import json
from typing import Any

from support.toolkits import named_tool
from toolcrib import Toolkit, ToolkitView


def service(**options: Any) -> Toolkit:
    """Make `look` in `basic`, `search` and `fetch` in `web`, `query` in `data`; both groups are off."""
    toolkit = Toolkit(run_in="inline", **options)
    toolkit.register_tool_function(named_tool("look"))
    toolkit.register_group("web", "The web.", [named_tool("search"), named_tool("fetch")], active=False, notes="Cite.")
    toolkit.register_group("data", "Numbers.", [named_tool("query")], active=False, notes="Round.")
    toolkit.register_tool_function(toolkit.reset_equipped_tools)
    return toolkit


def listed(view: ToolkitView) -> list[str]:
    names = [schema["function"]["name"] for schema in view.get_json_schemas()]
    assert names == list(view.tools)
    assert json.loads(view.get_json_schemas_bytes()) == view.get_json_schemas()
    assert all(name in view for name in names)
    return names
