"""Small toolkits, and the tools that they list."""

from typing import Any

from toolcrib import Toolkit


def named_tool(name: str) -> Any:
    """A tool of a given name, which returns that name."""

    def function() -> str:
        return name

    function.__name__ = name
    return function


def listed(toolkit: Toolkit) -> list[str]:
    """The names of the tools whose schemas a model is shown."""
    return [schema["function"]["name"] for schema in toolkit.get_json_schemas()]


def definition(name: str, description: str = "") -> dict[str, Any]:
    """The definition of a tool without parameters, in OpenAI's form."""
    return {"type": "function", "function": {"name": name, "description": description}}


def add(a: int, b: int = 0) -> int:
    """Add two numbers.

    Args:
        a: One.
        b: Another, “optional”.
    """
    return a + b


def multiply(a: int, b: int) -> int:
    return a * b


def arithmetic() -> Toolkit:
    """A toolkit with `add` outside of any group and `multiply` in the active group `maths`."""
    toolkit = Toolkit()
    toolkit.create_tool_group("maths", "Numbers.", active=True)
    toolkit.register_tool_function(add)
    toolkit.register_tool_function(multiply, "maths")
    return toolkit
