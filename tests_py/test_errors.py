"""The exceptions: one base to catch them all, the builtin a caller expects, and a text that reads."""

from pathlib import Path

import pytest

from toolcrib import errors

REFERENCE = Path(__file__).parent.parent / "docs" / "reference.md"

BUILTINS: dict[str, set[type[Exception]]] = {
    "AgentDefinitionError": {ValueError},
    "AgentFileError": {ValueError},
    "AgentTemplateError": {ValueError},
    "InvalidParametersError": {ValueError},
    "SubAgentUnavailable": {RuntimeError},
    "ToolCallError": {RuntimeError},
    "ToolDeniedError": {PermissionError},
    "DuplicateToolError": {ValueError},
    "UnknownToolError": {ValueError},
    "InvalidToolNameError": {ValueError},
    "NoFreeNameError": {RuntimeError},
    "McpError": {RuntimeError},
    "UnansweredError": {RuntimeError},
    "CannotListenError": {OSError},
    "InvalidServerOptionError": {ValueError},
    "InvalidProgramOptionError": {ValueError},
    "NoSandboxError": {RuntimeError},
    "UnguardedProgramError": {RuntimeError},
    "McpConnectionError": {RuntimeError, ConnectionError},
    "DuplicateGroupError": {ValueError},
    "UnknownDialectError": {ValueError},
    "UnknownGroupError": {ValueError},
    "UnreadableArgumentsError": {ValueError},
    "BasicGroupError": {ValueError},
    "ReservedGroupError": {ValueError},
    "ReservedGroupRemovalError": {ValueError},
    "InvalidGroupError": {ValueError},
    "DuplicateRoleError": {ValueError},
    "UnknownRoleError": {ValueError},
    "SystemRoleError": {ValueError},
    "InvalidRoleError": {ValueError},
    "RoleFileError": {ValueError},
    "InvalidSchemaError": {TypeError, AssertionError},
    "IncompleteSchemaError": {TypeError, AssertionError, KeyError},
    "InvalidFilterError": {TypeError, ValueError, AssertionError},
    "UnsupportedTypeError": {TypeError},
    "ExtendedModelError": {ValueError},
    "SkillDirectoryError": {ValueError},
    "SkillFileError": {ValueError},
    "SkillFrontMatterError": {ValueError},
    "DuplicateSkillError": {ValueError},
    "SkillTemplateError": {ValueError},
    "InvalidStateError": {ValueError},
    "ApprovalError": {ValueError},
    "InvalidPendingError": {ValueError},
    "AlteredPendingError": {ValueError},
    "ExpiredPendingError": {ValueError},
    "UsedPendingError": {ValueError},
    "MisplacedPendingError": {ValueError},
    "ApprovalStoreError": {ValueError},
    "InvalidAnswerError": {ValueError},
    "InvalidReplyError": {TypeError},
    "InvalidTargetError": {ValueError},
    "NoAskerError": {RuntimeError},
    "NoSamplerError": {RuntimeError},
    "WrongAnswerError": {ValueError},
    "FileAccessError": {OSError},
    "MissingFileError": {FileNotFoundError},
    "ForeignFileError": {ValueError},
    "DamagedFileError": {ValueError},
    "NewerFileError": {ValueError},
    "StoreError": {OSError},
    "InvalidStoreError": {ValueError},
    "MissingEntryError": {KeyError},
    "VersionConflictError": {RuntimeError},
    "FileTooLargeError": {ValueError},
    "LockMismatchError": {ValueError},
    "InvalidRuleError": {ValueError},
    "DuplicateRuleError": {ValueError},
    "InvalidPolicyFileError": {ValueError},
    "InternalError": {RuntimeError},
    "BusyError": {RuntimeError},
    "SilentMiddlewareError": {RuntimeError},
    "NativeToolError": {RuntimeError},
    "FileSystemError": {RuntimeError},
    "InvalidPathError": {RuntimeError},
    "AccessDeniedError": {RuntimeError},
    "NotFoundError": {RuntimeError},
    "ConflictError": {RuntimeError},
    "InvalidArgumentError": {RuntimeError},
}


def test_every_exception_is_listed() -> None:
    assert set(errors.__all__) == {"ToolcribError", *BUILTINS}


@pytest.mark.parametrize("name", BUILTINS)
def test_an_exception_is_a_toolcrib_error_and_the_builtins_a_caller_expects(name: str) -> None:
    exception: type[Exception] = getattr(errors, name)

    assert issubclass(exception, errors.ToolcribError)
    assert all(issubclass(exception, builtin) for builtin in BUILTINS[name])


@pytest.mark.parametrize("name", BUILTINS)
def test_an_exception_reads_as_it_was_written(name: str) -> None:
    exception: type[Exception] = getattr(errors, name)

    assert str(exception("the schema lacks `parameters`")) == "the schema lacks `parameters`"


@pytest.mark.parametrize("name", errors.__all__)
def test_an_exception_is_in_the_reference(name: str) -> None:
    assert f"`{name}`" in REFERENCE.read_text(encoding="utf-8")
