"""Subinterpreters: the package is the main interpreter's, and importing it in another one raises."""

import textwrap

import pytest

from support.streams import python

PRELUDE = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

def refused(code="import toolcrib"):
    other = interpreters.create()
    attempt = f'''
try:
    {code}
except ImportError as error:
    assert "interpreter" in str(error), error
else:
    raise SystemError("it was imported")
'''
    failed = interpreters.run_string(other, attempt)
    assert failed is None, failed
    interpreters.destroy(other)

def works():
    from toolcrib import Toolkit
    kit = Toolkit()
    kit.register_tool_function(lambda: "ran", func_name="tool")
    assert kit.run("tool").text == "ran"
"""

ORDERS = {
    "the first import of the process": "refused()",
    "the first import, then the main interpreter": "refused(); works()",
    "after the main interpreter": "works(); refused(); works()",
    "many in a row": """
        for _ in range(5): refused()
        works()
        for _ in range(5): refused()
        works()
    """,
    "a part of the package": "refused('from toolcrib import errors'); refused('import toolcrib._core'); works()",
    "twice in one interpreter": """
        other = interpreters.create()
        for _ in range(2):
            code = "try: import toolcrib._core\\nexcept ImportError: pass\\nelse: raise SystemError('it was imported')"
            assert interpreters.run_string(other, code) is None
        interpreters.destroy(other)
        works()
    """,
}


@pytest.mark.parametrize("order", ORDERS)
def test_only_the_main_interpreter_can_import_the_package(order: str) -> None:
    result = python(PRELUDE + textwrap.dedent(ORDERS[order]) + "\nprint('alive')\n")

    assert (result.returncode, result.stdout) == (0, "alive\n"), result.stderr[-3000:]
