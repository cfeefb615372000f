"""The exceptions for developers: something was registered, named or configured wrongly.

A model's mistakes are never exceptions; they are answered in the stream, as a `ToolResponse` with a `code`. Every
exception here is a `ToolcribError` and also the builtin that a caller would expect in its place.
"""

__all__ = [
    "AlteredPendingError",
    "ApprovalError",
    "BasicGroupError",
    "DamagedFileError",
    "DuplicateGroupError",
    "DuplicateRoleError",
    "DuplicateRuleError",
    "DuplicateSkillError",
    "DuplicateToolError",
    "ExpiredPendingError",
    "ExtendedModelError",
    "FileAccessError",
    "FileTooLargeError",
    "ForeignFileError",
    "IncompleteSchemaError",
    "InternalError",
    "InvalidAnswerError",
    "InvalidFilterError",
    "InvalidGroupError",
    "InvalidPendingError",
    "InvalidPolicyFileError",
    "InvalidRoleError",
    "InvalidRuleError",
    "InvalidSchemaError",
    "InvalidStateError",
    "InvalidToolNameError",
    "MisplacedPendingError",
    "MissingFileError",
    "NativeToolError",
    "NewerFileError",
    "NoFreeNameError",
    "ReservedGroupError",
    "ReservedGroupRemovalError",
    "RoleFileError",
    "SkillDirectoryError",
    "SkillFileError",
    "SkillFrontMatterError",
    "SkillTemplateError",
    "SystemRoleError",
    "ToolcribError",
    "UnknownDialectError",
    "UnknownGroupError",
    "UnknownRoleError",
    "UnknownToolError",
    "UnreadableArgumentsError",
    "UnsupportedTypeError",
    "UsedPendingError",
]


class ToolcribError(Exception):
    """Anything that toolcrib itself raises, to catch all of it at once."""


class DuplicateToolError(ToolcribError, ValueError):
    """A tool of that name is already registered.

    `namesake_strategy=` says what to do instead: `"skip"`, `"override"` or `"rename"`.
    """


class UnknownToolError(ToolcribError, ValueError):
    """No tool of that name is registered."""


class InvalidToolNameError(ToolcribError, ValueError):
    """The name is empty, or has a control character or a line break in it."""


class NoFreeNameError(ToolcribError, RuntimeError):
    """`namesake_strategy="rename"` found every name it tried taken."""


class DuplicateGroupError(ToolcribError, ValueError):
    """A group of that name exists already, or the name is `basic`, which always does."""

    code = "duplicate_group_id"


class UnknownGroupError(ToolcribError, ValueError):
    """The tool names a group that was not created; call `create_tool_group` first."""

    code = "group_not_found"


class ReservedGroupError(ToolcribError, ValueError):
    """The id belongs to a group that nobody may replace."""

    code = "reserved_group_id"


class ReservedGroupRemovalError(ReservedGroupError):
    """The group is reserved: it cannot be taken out."""

    code = "cannot_unregister_reserved"


class InvalidGroupError(ToolcribError, ValueError):
    """What was given does not describe a group; the text says what is wrong with it."""

    code = "invalid_group_def"


class DuplicateRoleError(ToolcribError, ValueError):
    """There is a role of that name; `update` changes it."""

    code = "duplicate_role"


class UnknownRoleError(ToolcribError, ValueError):
    """There is no role of that name."""

    code = "role_not_found"


class SystemRoleError(ToolcribError, ValueError):
    """The role `root` is the same everywhere and cannot be added, changed or removed."""

    code = "cannot_modify_system_role"


class InvalidRoleError(ToolcribError, ValueError):
    """What was given does not describe a role."""

    code = "invalid_role"


class RoleFileError(ToolcribError, ValueError):
    """A file has no roles to load; the text names the file, each record and field, and why."""

    code = "invalid_role_file"


class BasicGroupError(ToolcribError, ValueError):
    """The group `basic` is always there and always on: it cannot be removed."""


class InvalidSchemaError(ToolcribError, TypeError, AssertionError):
    """A `json_schema=` that does not describe a function: `{"type": "function", "function": {...}}` is needed."""


class IncompleteSchemaError(InvalidSchemaError, KeyError):
    """A `json_schema=` that lacks a key which the registration needs."""

    # KeyError shows its argument as `repr` does, quotes and all, which no sentence survives.
    __str__ = Exception.__str__


class UnknownDialectError(ToolcribError, ValueError):
    """No provider's dialect has that name."""


class UnreadableArgumentsError(ToolcribError, ValueError):
    """Arguments in a provider's dialect cannot be brought back to the shape that the tool expects."""


class InvalidFilterError(ToolcribError, TypeError, ValueError, AssertionError):
    """The lists that choose among a server's tools are no lists of names, or contradict each other."""


class UnsupportedTypeError(ToolcribError, TypeError):
    """A parameter's annotation has no JSON Schema; the text names the function, the parameter and a way out."""


class ExtendedModelError(ToolcribError, ValueError):
    """A model that does not fit the tool it is to extend; the text names the tool and the field."""


class SkillDirectoryError(ToolcribError, ValueError):
    """The folder of a skill does not exist, or is not a folder."""


class SkillFileError(ToolcribError, ValueError):
    """The folder of a skill has no file `SKILL.md`, or it cannot be read."""


class SkillFrontMatterError(ToolcribError, ValueError):
    """A `SKILL.md` does not begin with YAML front matter that has a `name` and a `description`."""


class DuplicateSkillError(ToolcribError, ValueError):
    """A skill of that name is already registered."""


class SkillTemplateError(ToolcribError, ValueError):
    """An `agent_skill_template=` has other placeholders than `{name}`, `{description}` and `{dir}`."""


class InvalidStateError(ToolcribError, ValueError):
    """What was given to `load_state_dict` is not the state of a toolkit."""


class ApprovalError(ToolcribError, ValueError):
    """An approval that cannot be used; what is derived from it says why. The call does not run."""


class InvalidPendingError(ApprovalError):
    """A value that is to be resumed is no pending call; the text names the field and what should be there."""


class AlteredPendingError(ApprovalError):
    """A pending call is not as it was made: somebody, or the place it was kept in, changed it."""


class ExpiredPendingError(ApprovalError):
    """The answer to a pending call comes too late; the tool has to be called again."""


class UsedPendingError(ApprovalError):
    """The pending call has been answered already; an approval is used once."""


class MisplacedPendingError(ApprovalError):
    """The pending call is for another tool, caller, session or key, or the tool has changed; the text says which."""


class InvalidAnswerError(ApprovalError):
    """What an approver said is no answer; silence and nonsense are never a yes."""


class FileAccessError(ToolcribError, OSError):
    """The system refuses to read or write a file; `errno` and `filename` say why and which."""


class MissingFileError(FileAccessError, FileNotFoundError):
    """There is no such file, or no such folder to put it into."""


class ForeignFileError(ToolcribError, ValueError):
    """The file is not one that toolcrib wrote."""


class DamagedFileError(ToolcribError, ValueError):
    """The file is not as toolcrib wrote it: it is cut off, or something in it has changed."""


class NewerFileError(ToolcribError, ValueError):
    """A newer toolcrib wrote the file, and this one would lose what it does not know."""


class FileTooLargeError(ToolcribError, ValueError):
    """The file is, or would be, larger than any that toolcrib reads."""


class InvalidRuleError(ToolcribError, ValueError):
    """A rule of a policy cannot be used; the text names each field that is wrong, and why."""


class DuplicateRuleError(ToolcribError, ValueError):
    """The policy already has a rule of that id."""


class InvalidPolicyFileError(ToolcribError, ValueError):
    """A file is no file of rules, or cannot be added to; the text says in which line and why."""


class NativeToolError(ToolcribError, RuntimeError):
    """A native tool returned an error; the text is what it says."""


class InternalError(ToolcribError, RuntimeError):
    """A defect of toolcrib itself, caught before it could reach the interpreter. Please report it."""
