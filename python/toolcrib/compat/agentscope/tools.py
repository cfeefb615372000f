"""The tools of `agentscope.tool`: text files with a guard, and programs that end with all their processes."""

from __future__ import annotations

from typing import Any

from toolcrib import tools
from toolcrib.compat.agentscope._original import ToolResponse, in_class

__all__ = ["execute_python_code", "execute_shell_command", "insert_text_file", "view_text_file", "write_text_file"]


async def view_text_file(file_path: str, ranges: list[int] | None = None) -> ToolResponse:
    """View a text file with line numbers, or some of its lines.

    Args:
        file_path: The path of the file; `~` is the home directory.
        ranges: The first and the last line, for example [1, 100]; [-100, -1] are the last 100 lines.

    Returns:
        The lines. `AGENTSCOPE_DANGEROUS_TEXT_IO` and `TOOLCRIB_DANGEROUS_TEXT_IO` can deny the access.
    """
    return in_class(await tools.view_text_file(file_path=file_path, ranges=ranges))


async def write_text_file(file_path: str, content: str, ranges: list[int] | None = None) -> ToolResponse:
    """Create a text file, overwrite it, or replace some of its lines.

    Args:
        file_path: The path of the file; `~` is the home directory.
        content: The content to write.
        ranges: The first and the last line to replace, for example [3, 5].

    Returns:
        The changed lines. `AGENTSCOPE_DANGEROUS_TEXT_IO` and `TOOLCRIB_DANGEROUS_TEXT_IO` can deny the access.
    """
    return in_class(await tools.write_text_file(file_path=file_path, content=content, ranges=ranges))


async def insert_text_file(file_path: str, content: str, line_number: int) -> ToolResponse:
    """Insert content into a text file, before a line of it or at its end.

    Args:
        file_path: The path of the file; `~` is the home directory.
        content: The content to insert.
        line_number: The number of the line, from 1; one more than the last line appends the content.

    Returns:
        The changed lines. `AGENTSCOPE_DANGEROUS_TEXT_IO` and `TOOLCRIB_DANGEROUS_TEXT_IO` can deny the access.
    """
    return in_class(await tools.insert_text_file(file_path=file_path, content=content, line_number=line_number))


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
    last = [response async for response in responses][-1]
    last.stream = False
    return in_class(last)
