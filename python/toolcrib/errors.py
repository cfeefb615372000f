"""The exceptions for mistakes of developers, such as a wrong registration, name or option.

Mistakes of a model are never exceptions; they are answered with a `ToolResponse` that has a `code`. Every exception is
derived from `ToolcribError` and from the builtin that a caller would expect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib._core import ToolResponse
    from toolcrib.lock import LockChange

__all__ = [
    "AccessDeniedError",
    "AgentDefinitionError",
    "AgentFileError",
    "AgentTemplateError",
    "AlteredPendingError",
    "ApprovalError",
    "ApprovalStoreError",
    "BasicGroupError",
    "BusyError",
    "CannotListenError",
    "ConflictError",
    "DamagedFileError",
    "DuplicateGroupError",
    "DuplicateRoleError",
    "DuplicateRuleError",
    "DuplicateSkillError",
    "DuplicateToolError",
    "ExpiredPendingError",
    "ExtendedModelError",
    "FileAccessError",
    "FileSystemError",
    "FileTooLargeError",
    "ForeignFileError",
    "IncompleteSchemaError",
    "InternalError",
    "InvalidAnswerError",
    "InvalidArgumentError",
    "InvalidFilterError",
    "InvalidGroupError",
    "InvalidParametersError",
    "InvalidPathError",
    "InvalidPendingError",
    "InvalidPolicyFileError",
    "InvalidProgramOptionError",
    "InvalidReplyError",
    "InvalidRoleError",
    "InvalidRuleError",
    "InvalidSchemaError",
    "InvalidServerOptionError",
    "InvalidStateError",
    "InvalidStoreError",
    "InvalidTargetError",
    "InvalidToolNameError",
    "LockMismatchError",
    "McpConnectionError",
    "McpError",
    "MisplacedPendingError",
    "MissingEntryError",
    "MissingFileError",
    "NativeToolError",
    "NewerFileError",
    "NoAskerError",
    "NoFreeNameError",
    "NoSamplerError",
    "NoSandboxError",
    "NotFoundError",
    "ReservedGroupError",
    "ReservedGroupRemovalError",
    "RoleFileError",
    "SilentMiddlewareError",
    "SkillDirectoryError",
    "SkillFileError",
    "SkillFrontMatterError",
    "SkillTemplateError",
    "StoreError",
    "SubAgentUnavailable",
    "SystemRoleError",
    "ToolCallError",
    "ToolDeniedError",
    "ToolcribError",
    "UnansweredError",
    "UnguardedProgramError",
    "UnknownDialectError",
    "UnknownGroupError",
    "UnknownRoleError",
    "UnknownToolError",
    "UnreadableArgumentsError",
    "UnsupportedTypeError",
    "UsedPendingError",
    "VersionConflictError",
    "WrongAnswerError",
]


class ToolcribError(Exception):
    """The base class of all exceptions of toolcrib."""


class DuplicateToolError(ToolcribError, ValueError):
    """A tool of that name is already registered.

    `namesake_strategy=` selects another behaviour: `"skip"`, `"override"` or `"rename"`.
    """


class UnknownToolError(ToolcribError, ValueError):
    """No tool of that name is registered."""


class InvalidToolNameError(ToolcribError, ValueError):
    """The name is empty, or contains a control character or a line break."""


class NoFreeNameError(ToolcribError, RuntimeError):
    """`namesake_strategy="rename"` found no free name."""


class DuplicateGroupError(ToolcribError, ValueError):
    """A group of that name exists already; `basic` always exists."""

    code = "duplicate_group_id"


class UnknownGroupError(ToolcribError, ValueError):
    """The group does not exist; call `create_tool_group` first."""

    code = "group_not_found"


class ReservedGroupError(ToolcribError, ValueError):
    """The id belongs to a reserved group, which cannot be replaced."""

    code = "reserved_group_id"


class ReservedGroupRemovalError(ReservedGroupError):
    """The group is reserved and cannot be unregistered."""

    code = "cannot_unregister_reserved"


class InvalidGroupError(ToolcribError, ValueError):
    """The definition of a group is invalid; the text gives the reason."""

    code = "invalid_group_def"


class DuplicateRoleError(ToolcribError, ValueError):
    """A role of that name exists already; `update` changes it."""

    code = "duplicate_role"


class UnknownRoleError(ToolcribError, ValueError):
    """No role has that name."""

    code = "role_not_found"


class SystemRoleError(ToolcribError, ValueError):
    """The role `root` is fixed and cannot be added, changed or removed."""

    code = "cannot_modify_system_role"


class InvalidRoleError(ToolcribError, ValueError):
    """The definition of a role is invalid."""

    code = "invalid_role"


class RoleFileError(ToolcribError, ValueError):
    """A role file is invalid; the text names the file, each record and field, and the reason."""

    code = "invalid_role_file"


class BasicGroupError(ToolcribError, ValueError):
    """The group `basic` always exists and cannot be removed."""


class InvalidSchemaError(ToolcribError, AssertionError, TypeError):
    """`json_schema=` does not describe a function: expected `{"type": "function", "function": {...}}`."""


class IncompleteSchemaError(InvalidSchemaError, KeyError):
    """`json_schema=` lacks a key that the registration needs."""

    # KeyError formats its argument with `repr`, which would quote and escape the message.
    __str__ = Exception.__str__


class UnknownDialectError(ToolcribError, ValueError):
    """No dialect has that name."""


class UnreadableArgumentsError(ToolcribError, ValueError):
    """Arguments in a provider's dialect cannot be decoded to the shape that the tool expects."""


class InvalidFilterError(ToolcribError, AssertionError, TypeError, ValueError):
    """`enable_funcs` or `disable_funcs` is not a list of names, or they contradict each other."""


class UnsupportedTypeError(ToolcribError, TypeError):
    """A parameter's annotation has no JSON Schema; the text names the tool, the parameter and the alternatives."""


class ExtendedModelError(ToolcribError, ValueError):
    """The model conflicts with the tool that it extends; the text names the tool and the field."""


class SkillDirectoryError(ToolcribError, ValueError):
    """The folder of a skill does not exist, or is not a folder."""


class SkillFileError(ToolcribError, ValueError):
    """The folder of a skill has no file `SKILL.md`, or it cannot be read."""


class SkillFrontMatterError(ToolcribError, ValueError):
    """A `SKILL.md` does not begin with YAML front matter that has a `name` and a `description`."""


class DuplicateSkillError(ToolcribError, ValueError):
    """A skill of that name is already registered."""


class SkillTemplateError(ToolcribError, ValueError):
    """`agent_skill_template=` has a placeholder other than `{name}`, `{description}` and `{dir}`."""


class AgentDefinitionError(ToolcribError, ValueError):
    """The definition of an agent is invalid; the text names the agent, the field or input, and the reason."""


class AgentFileError(AgentDefinitionError):
    """A file does not hold the definition of an agent; the text names the file and the reason."""


class AgentTemplateError(ToolcribError, ValueError):
    """A prompt has placeholders for inputs that are missing; the text names them and the inputs that there are."""


class InvalidParametersError(ToolcribError, ValueError):
    """Parameters do not fit a declared tool; the text is the first problem."""


class ToolCallError(ToolcribError, RuntimeError):
    """A call by `Toolkit.value` was refused or has failed; the text is that of its last response.

    Its cause is the exception of the tool, if that raised one.

    Attributes:
        response: The response that `Toolkit.call` would have given.
    """

    def __init__(self, text: str, response: ToolResponse | None = None) -> None:
        """Set the response, in addition to the text; without one, it is a response with the text."""
        from toolcrib._core import ToolResponse

        super().__init__(text.removeprefix("Error: "))
        self.response = response or ToolResponse([{"type": "text", "text": text}], code="failed")

    @property
    def code(self) -> str | None:
        """The code of the response, such as `"denied"`."""
        return self.response.code

    def __reduce__(self) -> tuple[type[ToolCallError], tuple[str, ToolResponse]]:
        """Keep the response in a pickle."""
        return type(self), (str(self), self.response)


class ToolDeniedError(ToolcribError, PermissionError):
    """A call of a declared tool was denied by its message bus; the text names the tool."""


class SubAgentUnavailable(ToolcribError, RuntimeError):
    """A class of agents cannot be made a tool; the text names the sub-agent and the reason."""


class InvalidStateError(ToolcribError, ValueError):
    """The argument of `load_state_dict` is not the state of a toolkit."""


class ApprovalError(ToolcribError, ValueError):
    """An approval cannot be used, and the call does not run; the subclass gives the reason."""


class InvalidPendingError(ApprovalError):
    """The value is not a pending call; the text names the field and the expected content."""


class AlteredPendingError(ApprovalError):
    """The pending call was modified."""


class ExpiredPendingError(ApprovalError):
    """The pending call has expired; the tool has to be called again."""


class UsedPendingError(ApprovalError):
    """The pending call was answered before; an approval can be used once."""


class MisplacedPendingError(ApprovalError):
    """The pending call belongs to another tool, caller, session or key, or the tool has changed."""


class ApprovalStoreError(ApprovalError):
    """The store of an `Approvals` failed, so that the call does not run."""


class InvalidAnswerError(ApprovalError):
    """The answer of an approver is invalid, which denies the call."""


class NoAskerError(ToolcribError, RuntimeError):
    """A tool asks the user a question, and its toolkit has no `asker`."""


class NoSamplerError(ToolcribError, RuntimeError):
    """A tool asks a model, and neither its toolkit nor the MCP client that calls it has one."""


class UnansweredError(ToolcribError, RuntimeError):
    """A question of a tool to the user or the model of an MCP client has no answer; the text has the reason."""


class WrongAnswerError(ToolcribError, ValueError):
    """The answer to a tool's question does not fit its schema; the text lists the problems."""


class InvalidTargetError(ToolcribError, ValueError):
    """The target of an MCP client is invalid: a command, a URL, or an entry of a configuration."""


class McpError(ToolcribError, RuntimeError):
    """An operation of an MCP client is not possible now, or its server answered with an error."""


class McpConnectionError(McpError, ConnectionError):
    """The MCP server cannot be reached, or the connection to it ended; the text has its last messages."""


class InvalidReplyError(ToolcribError, TypeError):
    """The model function of a sub-agent returned something that is not a reply."""


class InvalidServerOptionError(ToolcribError, ValueError):
    """An option of an MCP server is invalid, or the server would be reachable from other machines unprotected."""


class CannotListenError(ToolcribError, OSError):
    """The operating system refused to listen on the address of an MCP server."""


class FileAccessError(ToolcribError, OSError):
    """The operating system refused to read or write a file; see `errno` and `filename`."""


class MissingFileError(FileAccessError, FileNotFoundError):
    """The file, or the folder for it, does not exist."""


class ForeignFileError(ToolcribError, ValueError):
    """Another program wrote the file."""


class DamagedFileError(ToolcribError, ValueError):
    """The file is truncated or modified."""


class NewerFileError(ToolcribError, ValueError):
    """A newer version of toolcrib wrote the file, and this version would lose data."""


class StoreError(ToolcribError, OSError):
    """The database of a store failed, does not answer, or is closed."""


class InvalidStoreError(ToolcribError, ValueError):
    """The URL of a store, or the name of one of its entries, is invalid."""


class MissingEntryError(ToolcribError, KeyError):
    """The store has nothing under the key."""

    def __str__(self) -> str:
        """Return the text without the quotes that a `KeyError` adds."""
        return Exception.__str__(self)


class VersionConflictError(ToolcribError, RuntimeError):
    """Another writer has changed the entry of a store since it was loaded.

    Attributes:
        version: The current version; 0 if the entry does not exist.
    """

    def __init__(self, message: str, version: int = 0) -> None:
        """Set the version, in addition to the text."""
        super().__init__(message)
        self.version = version

    def __reduce__(self) -> tuple[type[VersionConflictError], tuple[str, int]]:
        """Keep the version in a pickle."""
        return type(self), (str(self), self.version)


class FileTooLargeError(ToolcribError, ValueError):
    """The file exceeds, or would exceed, the maximum size."""


class LockMismatchError(ToolcribError, ValueError):
    """Tools differ from their reviewed definitions; the text lists the changes.

    Attributes:
        changes: The tools that differ.
    """

    def __init__(self, text: str, changes: tuple[LockChange, ...] = ()) -> None:
        super().__init__(text)
        self.changes = changes


class InvalidProgramOptionError(ToolcribError, ValueError):
    """A setting of the tools that run programs is invalid; the text names it."""


class UnguardedProgramError(ToolcribError, RuntimeError):
    """A child process would run the program a second time: it lacks `if __name__ == "__main__":`."""


class NoSandboxError(ToolcribError, RuntimeError):
    """This system cannot provide the sandbox that programs are to run in; the text gives the reason."""


class InvalidRuleError(ToolcribError, ValueError):
    """A rule is invalid; the text names each invalid field and the reason."""


class DuplicateRuleError(ToolcribError, ValueError):
    """The policy has a rule with that id already."""


class InvalidPolicyFileError(ToolcribError, ValueError):
    """A rule file is invalid, or a rule cannot be added to it; the text gives the line and the reason."""


class NativeToolError(ToolcribError, RuntimeError):
    """A native tool returned an error; the text is its message.

    Attributes:
        is_mistake: True for a mistake of the model, such as a path that does not exist. It is answered, but not logged.
    """

    is_mistake: bool = False


class BusyError(ToolcribError, RuntimeError):
    """No worker thread is free for a synchronous tool. A model gets a response with the code `busy`."""


class SilentMiddlewareError(ToolcribError, RuntimeError):
    """A middleware ended without a response; the text has its name."""


class InternalError(ToolcribError, RuntimeError):
    """A defect of toolcrib, caught before it reached the interpreter. Please report it."""


class FileSystemError(ToolcribError, RuntimeError):
    """An operation of a `FileHandle` failed; the text gives the reason. The base class of the five that follow.

    A file tool that a model calls never raises them: the text becomes a response.
    """


class InvalidPathError(FileSystemError):
    """The text is not a logical path such as `/workspace/notes.txt`."""


class AccessDeniedError(FileSystemError):
    """No grant allows the operation on the path, or the file is a link, a device or a pipe."""


class NotFoundError(FileSystemError):
    """The file or a directory of its path does not exist."""


class ConflictError(FileSystemError):
    """Another program writes the file, or has changed it meanwhile."""


class InvalidArgumentError(FileSystemError):
    """An argument of the operation is invalid: an unknown operation of a grant, a directory in place of a file."""
