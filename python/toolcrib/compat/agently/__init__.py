"""The tools of Agently 4: `ToolManager`, `DataFormatter` and `FunctionShifter`.

Change the imports,

    from toolcrib.compat.agently import DataFormatter, FunctionShifter, ToolManager

or use the manager as a plugin of Agently. The toolkit of the manager runs every call, so that toolcrib's policy,
approvals, audit log and tracing apply; the documentation lists the differences from the original.
"""

from toolcrib.compat.agently.formatter import DataFormatter
from toolcrib.compat.agently.manager import ToolManager
from toolcrib.compat.agently.shifter import FunctionShifter

__all__ = ["AgentlyToolManager", "DataFormatter", "FunctionShifter", "ToolManager"]

AgentlyToolManager = ToolManager
