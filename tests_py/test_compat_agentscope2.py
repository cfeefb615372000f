"""Without AgentScope, the face for its version 2 says what to install. `tests_py/agentscope2` has all other tests."""

import subprocess
import sys

import pytest


def test_without_agentscope_the_import_says_what_to_install() -> None:
    with pytest.raises(ImportError, match="pip install 'agentscope>=2,<3'"):
        import toolcrib.compat.agentscope2  # noqa: F401


def test_with_agentscope_1_the_import_names_the_face_for_it() -> None:
    program = (
        "import sys, types\n"
        "package, tool = types.ModuleType('agentscope'), types.ModuleType('agentscope.tool')\n"
        "package.tool, package.__path__, tool.Toolkit = tool, [], type('Toolkit', (), {})\n"
        "sys.modules.update({'agentscope': package, 'agentscope.tool': tool})\n"
        "import toolcrib.compat.agentscope2\n"
    )

    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert finished.returncode == 1
    assert "1.x is installed: use toolcrib.compat.agentscope," in finished.stderr
