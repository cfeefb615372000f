"""The tools included in toolcrib.

They are native: Rust code on a tokio runtime, which occupies no thread while it waits.

Example:
    ```python
    from toolcrib import Toolkit, tools

    toolkit = Toolkit()
    toolkit.register_tool_function(tools.wait)
    ```
"""

from typing import Final

from toolcrib._core import NativeTool, _native_tool

__all__ = ["wait"]

wait: Final[NativeTool] = _native_tool("wait")
"""Waits for `seconds`. With `every`, it reports the progress after each interval of that many seconds."""
