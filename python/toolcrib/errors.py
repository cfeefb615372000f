"""The exceptions for developers: something was registered, named or configured wrongly.

A model's mistakes are never exceptions; they are answered in the stream, as a `ToolResponse` with a `code`. Every
exception here is a `ToolcribError` and also the builtin that a caller would expect in its place.
"""

__all__ = [
    "BasicGroupError",
    "DuplicateGroupError",
    "DuplicateToolError",
    "ExtendedModelError",
    "IncompleteSchemaError",
    "InternalError",
    "InvalidFilterError",
    "InvalidSchemaError",
    "NoFreeNameError",
    "ToolcribError",
    "UnknownGroupError",
    "UnknownToolError",
    "UnsupportedTypeError",
]


class ToolcribError(Exception):
    """Anything that toolcrib itself raises, to catch all of it at once."""


class DuplicateToolError(ToolcribError, ValueError):
    """A tool of that name is already registered.

    `namesake_strategy=` says what to do instead: `"skip"`, `"override"` or `"rename"`.
    """


class UnknownToolError(ToolcribError, ValueError):
    """No tool of that name is registered."""


class NoFreeNameError(ToolcribError, RuntimeError):
    """`namesake_strategy="rename"` found every name it tried taken."""


class DuplicateGroupError(ToolcribError, ValueError):
    """A group of that name exists already, or the name is `basic`, which always does."""


class UnknownGroupError(ToolcribError, ValueError):
    """The tool names a group that was not created; call `create_tool_group` first."""


class BasicGroupError(ToolcribError, ValueError):
    """The group `basic` is always there and always on: it cannot be removed."""


class InvalidSchemaError(ToolcribError, TypeError, AssertionError):
    """A `json_schema=` that does not describe a function: `{"type": "function", "function": {...}}` is needed."""


class IncompleteSchemaError(InvalidSchemaError, KeyError):
    """A `json_schema=` that lacks a key which the registration needs."""

    # KeyError shows its argument as `repr` does, quotes and all, which no sentence survives.
    __str__ = Exception.__str__


class InvalidFilterError(ToolcribError, TypeError, ValueError, AssertionError):
    """The lists that choose among a server's tools are no lists of names, or contradict each other."""


class UnsupportedTypeError(ToolcribError, TypeError):
    """A parameter's annotation has no JSON Schema; the text names the function, the parameter and a way out."""


class ExtendedModelError(ToolcribError, ValueError):
    """A model that does not fit the tool it is to extend; the text names the tool and the field."""


class InternalError(ToolcribError, RuntimeError):
    """A defect of toolcrib itself, caught before it could reach the interpreter. Please report it."""
