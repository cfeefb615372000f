"""Tools that come with toolcrib, ready to be registered.

They are native: Rust code that runs on a runtime of its own and costs no thread of Python while it waits.

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
"""Wait for `seconds`, and report the progress after each of `every` seconds if that is given."""
