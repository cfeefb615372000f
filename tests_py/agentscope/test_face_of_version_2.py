"""With AgentScope 1.x installed, the face for version 2 names the one for 1.x."""

import pytest


def test_the_face_for_version_2_names_the_one_for_version_1() -> None:
    with pytest.raises(ImportError, match=r"1\.x is installed: use toolcrib\.compat\.agentscope"):
        import toolcrib.compat.agentscope2  # noqa: F401
