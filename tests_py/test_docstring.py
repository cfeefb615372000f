"""Docstrings: whatever one looks like, a schema says what `docstring_parser` reads in it."""

from collections.abc import Callable

import docstring_parser
import pytest
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st

from toolcrib import Toolkit

# Lines of every style, right and wrong. Blanks and tabs are the only whitespace: about all other whitespace
# `inspect.cleandoc`, on which the reference stands, changed its mind in Python 3.13.
LINES = [
    "",
    "",
    "    ",
    "Search for things.",
    "More: with a colon, (parentheses) and 汉字.",
    "    - a list",
    "      that goes on",
    "Args:",
    "Parameters:",
    "Attributes:",
    "Raises:",
    "Returns:",
    "Example:",
    "Keyword Args:",
    "Note:",
    "    a: The first.",
    "    a (int, optional): The first.",
    "    a (`int`, defaults to `3`):",
    "    b (dict[str, int]): The second. Defaults to 3.",
    "    b ():The second.",
    "    limit: How many: at most.",
    "    limit",
    "    *args: The rest.",
    "    ValueError: Never.",
    "        Text below.",
    "\tText behind a tab.",
    "          Text far below.",
    "Parameters\n----------",
    "Other Parameters\n----------------",
    "Returns\n-------",
    "Examples\n--------",
    "Notes\n----",
    ".. deprecated:: 1.0",
    "a : int, optional",
    "b",
    "limit: int",
    ">>> f(1)",
    ":param a: The first.",
    ":param int b: The second, defaults to 3.",
    ":param a b limit: Too much.",
    ":param limit:",
    ":type a: int",
    ":rtype: int",
    ":returns: A number.",
    ":raises ValueError: Never.",
    ":broken",
    "@param a: The first.",
    "@param limit: How many.",
    "@type b: int",
    "@ivar b: The second.",
    "@return: A number.",
    "@yield: A number.",
    "@author me: Me.",
]


def test_a_function_without_a_docstring_has_no_descriptions() -> None:
    assert described(None) == (None, {})


def test_a_parameter_with_nothing_behind_its_colon_has_an_empty_description() -> None:
    assert described("S.\n\nArgs:\n    a:\n    b: B\n") == ("S.", {"a": "", "b": "B"})


def test_the_long_description_can_be_left_out() -> None:
    toolkit = Toolkit()

    toolkit.register_tool_function(tool("Short.\n\nLong.\n"), include_long_description=False)

    assert toolkit.get_json_schemas()[0]["function"]["description"] == "Short."


def test_a_field_that_the_reference_fails_on_is_part_of_the_description() -> None:
    assert described("S.\n\n: : what\n") == ("S.\n: : what", {})


@settings(max_examples=300)
@given(st.lists(st.sampled_from(LINES), max_size=14), st.sampled_from(["\n", "\n    ", "\n\t"]))
@example(["S.", "", "Args:", "    a: google", "", ":param b: rest"], "\n    ")
def test_a_schema_says_what_the_reference_reads(lines: list[str], line_ending: str) -> None:
    docstring = "\n".join(lines).replace("\n", line_ending)

    assert described(docstring) == read_by_the_reference(docstring)


@settings(max_examples=300)
@given(st.text(alphabet="aA \n:@()-.>?bé汉", max_size=60))
def test_text_of_no_style_is_read_like_the_reference(docstring: str) -> None:
    assert described(docstring) == read_by_the_reference(docstring)


def test_a_wrapped_line_at_the_indent_of_the_parameters_belongs_to_the_one_above() -> None:
    docstring = "S.\n\nArgs:\n    a (str): The first\n    of three.\n    b: B\n    limit: How many.\n"

    own, compat = described_by(Toolkit(), docstring), described(docstring)

    assert own == ("S.", {"a": "The first\nof three.", "b": "B", "limit": "How many."})
    assert compat == ("S.\nArgs:\n    a (str): The first\n    of three.\n    b: B\n    limit: How many.", {})


@pytest.mark.filterwarnings("ignore:.*the docstring describes")
@settings(max_examples=300)
@given(st.lists(st.sampled_from(LINES), max_size=14))
def test_a_docstring_that_the_reference_reads_is_read_the_same(lines: list[str]) -> None:
    docstring = "\n".join(lines)
    expected = read_by_the_reference(docstring)
    own = described_by(Toolkit(), docstring)

    assert own == expected or not expected[1]


def tool(docstring: str | None) -> Callable[[str, str, str], None]:
    def search(a: str, b: str, limit: str) -> None:
        pass

    search.__doc__ = docstring
    return search


def described(docstring: str | None) -> tuple[str | None, dict[str, str]]:
    """Register a function with this docstring and return the descriptions in its schema: its own, its parameters'.

    The toolkit is one with AgentScope's behaviour, which reads docstrings exactly as the reference does.
    """
    return described_by(Toolkit(errors="compat"), docstring)


def described_by(toolkit: Toolkit, docstring: str | None) -> tuple[str | None, dict[str, str]]:
    """Register a function with this docstring and return the descriptions in its schema."""
    toolkit.register_tool_function(tool(docstring))
    function = toolkit.get_json_schemas()[0]["function"]
    properties = function["parameters"]["properties"]
    parameters = {name: schema["description"] for name, schema in properties.items() if "description" in schema}
    return function.get("description"), parameters


def read_by_the_reference(docstring: str) -> tuple[str | None, dict[str, str]]:
    try:
        parsed = docstring_parser.parse(docstring)
    except IndexError:
        # A field without a keyword, such as `: : text`; no answer to compare with.
        reject()
    texts = [text for text in (parsed.short_description, parsed.long_description) if text is not None]
    descriptions = {param.arg_name: param.description for param in parsed.params}
    parameters = {name: descriptions.get(name) for name in ("a", "b", "limit")}
    return "\n".join(texts) or None, {name: text for name, text in parameters.items() if text is not None}
