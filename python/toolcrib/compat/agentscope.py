"""The `Toolkit` of AgentScope 1.x.

Either change the import,

    from toolcrib.compat.agentscope import Toolkit, ToolResponse

or replace AgentScope's class before its agents are imported,

    sys.modules["agentscope.tool"].Toolkit = toolcrib.compat.agentscope.Toolkit

All other names of `agentscope.tool` can be imported from here too.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import toolcrib
from toolcrib import AgentSkill, RegisteredToolFunction, ToolGroup, ToolResponse, tools
from toolcrib.subagent import SubAgentSpec, SubAgentUnavailable, make_subagent_tool

if TYPE_CHECKING:
    StateModule = object
    Original = object
else:
    try:
        from agentscope.module import StateModule
        from agentscope.tool import Toolkit as Original
    except ImportError:
        # Without AgentScope there are no sessions, and toolcrib's own default texts apply.
        StateModule = Original = object

__all__ = [
    "AgentSkill",
    "RegisteredToolFunction",
    "SubAgentSpec",
    "SubAgentUnavailable",
    "ToolGroup",
    "ToolResponse",
    "Toolkit",
    "execute_python_code",
    "execute_shell_command",
    "insert_text_file",
    "make_subagent_tool",
    "view_text_file",
    "write_text_file",
]


class Toolkit(toolcrib.Toolkit, StateModule):
    """A toolkit that behaves as the one of AgentScope 1.x.

    Arguments are not validated, exceptions of functions become responses and those of generators propagate, synchronous
    tools run on the event loop, chunks are delivered as the tool yields them without a response for the whole result,
    and a conflicting extended model raises when the schemas are read. The texts about skills and the meta tool are
    those of the installed AgentScope.

    Args:
        agent_skill_instruction: The introduction of the skills in the prompt.
        agent_skill_template: The text for each skill, with `{name}`, `{description}` and `{dir}`.
    """

    def __init__(self, agent_skill_instruction: str | None = None, agent_skill_template: str | None = None) -> None:
        StateModule.__init__(self)
        toolcrib.Toolkit.__init__(
            self,
            agent_skill_instruction or getattr(Original, "_DEFAULT_AGENT_SKILL_INSTRUCTION", None),
            agent_skill_template or getattr(Original, "_DEFAULT_AGENT_SKILL_TEMPLATE", None),
            arguments="pass",
            errors="compat",
            run_in="inline",
        )
        self._defer_conflicts()
        self._deliver_as_given()

    def reset_equipped_tools(self, **kwargs: bool) -> ToolResponse:  # noqa: D102 its docstring is set below
        return super().reset_equipped_tools(**kwargs)

    reset_equipped_tools.__doc__ = getattr(
        Original, "reset_equipped_tools", toolcrib.Toolkit.reset_equipped_tools
    ).__doc__


async def view_text_file(file_path: str, ranges: list[int] | None = None) -> ToolResponse:
    """View a text file with line numbers, or some of its lines.

    Args:
        file_path: The path of the file; `~` is the home directory.
        ranges: The first and the last line, for example [1, 100]; [-100, -1] are the last 100 lines.

    Returns:
        The lines. `AGENTSCOPE_DANGEROUS_TEXT_IO` and `TOOLCRIB_DANGEROUS_TEXT_IO` can deny the access.
    """
    response: ToolResponse = await tools.view_text_file(file_path=file_path, ranges=ranges)
    return response


async def write_text_file(file_path: str, content: str, ranges: list[int] | None = None) -> ToolResponse:
    """Create a text file, overwrite it, or replace some of its lines.

    Args:
        file_path: The path of the file; `~` is the home directory.
        content: The content to write.
        ranges: The first and the last line to replace, for example [3, 5].

    Returns:
        The changed lines. `AGENTSCOPE_DANGEROUS_TEXT_IO` and `TOOLCRIB_DANGEROUS_TEXT_IO` can deny the access.
    """
    response: ToolResponse = await tools.write_text_file(file_path=file_path, content=content, ranges=ranges)
    return response


async def insert_text_file(file_path: str, content: str, line_number: int) -> ToolResponse:
    """Insert content into a text file, before a line of it or at its end.

    Args:
        file_path: The path of the file; `~` is the home directory.
        content: The content to insert.
        line_number: The number of the line, from 1; one more than the last line appends the content.

    Returns:
        The changed lines. `AGENTSCOPE_DANGEROUS_TEXT_IO` and `TOOLCRIB_DANGEROUS_TEXT_IO` can deny the access.
    """
    response: ToolResponse = await tools.insert_text_file(file_path=file_path, content=content, line_number=line_number)
    return response


async def execute_python_code(code: str, timeout: float = 300, **kwargs: Any) -> ToolResponse:
    """Run Python code in a new interpreter, and get its return code, its output and its errors.

    Print what you want to see. Nothing is imported from the working directory, and the code sees only harmless
    variables of the environment.

    Args:
        code: The code.
        timeout: The number of seconds after which the code is killed.
        **kwargs: Ignored.

    Returns:
        The return code, the output and the errors.
    """
    return await _last(tools.execute_python_code(code=code, timeout=timeout))


async def execute_shell_command(command: str, timeout: int = 300, **kwargs: Any) -> ToolResponse:
    """Run a shell command, and get its return code, its output and its errors.

    Processes that it leaves in the background are killed. It sees only harmless variables of the environment.

    Args:
        command: The command.
        timeout: The number of seconds after which the command is killed.
        **kwargs: Ignored.

    Returns:
        The return code, the output and the errors.
    """
    return await _last(tools.execute_shell_command(command=command, timeout=timeout))


async def _last(responses: Any) -> ToolResponse:
    # Those before the last one report the output so far.
    everything: list[ToolResponse] = [response async for response in responses]
    return everything[-1]


def __getattr__(name: str) -> Any:
    """Return a name that only AgentScope has."""
    if not name.startswith("_"):
        try:
            return getattr(import_module("agentscope.tool"), name)
        except (ImportError, AttributeError):
            pass
    raise AttributeError(f"module 'toolcrib.compat.agentscope' has no attribute '{name}'")
