"""Imports of `import toolcrib`: the standard library, and of that only what is needed."""

import subprocess
import sys

import pytest

import toolcrib

HEAVY = {"asyncio", "concurrent", "dataclasses", "inspect", "json", "logging", "multiprocessing", "subprocess"}


def run_fresh(script: str) -> str:
    # -S leaves out the start-up files of site-packages, which import as they like; the path is handed over instead.
    command = [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}\n{script}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def packages_imported() -> set[str]:
    modules = run_fresh("before = set(sys.modules); import toolcrib; print(*(set(sys.modules) - before))").split()
    return {module.partition(".")[0] for module in modules}


def test_import_brings_nothing_from_outside_the_standard_library() -> None:
    assert packages_imported() - sys.stdlib_module_names == {"toolcrib"}


def test_import_brings_no_heavy_part_of_the_standard_library() -> None:
    assert packages_imported() & HEAVY == set()


def test_import_is_quick() -> None:
    # The processor's time, because a busy machine takes what it likes of the clock's.
    script = "from time import process_time as now; start = now(); import toolcrib; print(now() - start)"

    fastest = min(float(run_fresh(script)) for _ in range(5))

    assert fastest < 0.05


def test_what_only_describes_is_imported_when_it_is_first_used() -> None:
    script = """
import toolcrib
lazy = ["toolcrib.blocks", "toolcrib.dialects", "toolcrib.skill", "toolcrib.tracing"]
print([name for name in lazy if name in sys.modules])
print(toolcrib.TextBlock.__module__, toolcrib.Loss.__module__, toolcrib.tracing.__name__)
"""

    assert run_fresh(script).splitlines() == ["[]", "toolcrib.blocks toolcrib.dialects toolcrib.tracing"]


def test_every_exported_name_comes_with_a_star() -> None:
    script = "from toolcrib import *; import toolcrib; print(set(toolcrib.__all__) - set(globals()))"

    assert run_fresh(script).strip() == "set()"


def test_every_exported_name_is_listed_before_it_is_used() -> None:
    assert run_fresh("import toolcrib; print(set(toolcrib.__all__) - set(dir(toolcrib)))").strip() == "set()"


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'toolcrib' has no attribute 'Nothing'"):
        _ = toolcrib.Nothing  # type: ignore[attr-defined]


def test_every_exported_name_is_there() -> None:
    assert [name for name in toolcrib.__all__ if not hasattr(toolcrib, name)] == []


def test_the_version_is_that_of_the_distribution() -> None:
    from importlib.metadata import version

    assert toolcrib.__version__ == version("toolcrib")
