"""Attacks that are tests of the project: each runs a selection of them, with the numbers of a release.

The tests know how to attack; this module knows which of them stand for which promise, how often, and when a run counts:
every selected test has run and passed. A test that is missing, skipped or not reported breaks the promise, because the
table would otherwise claim attempts that were not made.

The test suite runs these tests anyway. So `tests_py/test_soak.py` does not run them a second time: it verifies that the
selected tests exist and that they read the variable that sets their number.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

from soak.attack import Attack, Outcome, declare

ROOT = Path(__file__).parents[1]

PASSED = "passed"


@dataclass(frozen=True)
class Tests(ABC):
    """A selection of tests, which is called with a number: that of its variable, or without one that of the rounds.

    Attributes:
        selection: The tests, each by a name under which there may be several.
        variable: The environment variable that sets how often the tests repeat what they do.
        each: The attempts that one test makes for each one of the number, at least.
    """

    selection: tuple[str, ...]
    variable: str | None = None
    each: Fraction | int = 1

    def __call__(self, number: int) -> Outcome:
        """Run the tests, and report each of them that has not passed."""
        set_by, rounds = ({self.variable: str(number)}, 1) if self.variable else ({}, number)
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | set_by
        outcome = Outcome(0)
        made = (number if self.variable else 1) * self.each
        for _ in range(rounds):
            results, problem = self._run(environment)
            outcome.broken += [f"{test}: {result}" for test, result in results.items() if result != PASSED]
            outcome.broken += [
                f"{selected}: no such test has run{problem and f': {problem}'}"
                for selected in self.selection
                if not any(self._is_of(test, selected) for test in results)
            ]
            if problem and not outcome.broken:
                outcome.broken.append(problem)
            outcome.attempts += int(made * sum(result == PASSED for result in results.values()))
        return outcome

    def missing(self) -> list[str]:
        """List the selected tests that are not in the sources, and those that do not read the variable."""
        return [
            selected
            for selected in self.selection
            if not (found := self._source(selected)) or (self.variable and self.variable not in found)
        ]

    @abstractmethod
    def _run(self, environment: dict[str, str]) -> tuple[dict[str, str], str]:
        """Run the tests once; return the result of each, and what the run as a whole complained about."""

    @abstractmethod
    def _is_of(self, test: str, selected: str) -> bool:
        """True if the test is one of those that the selected name stands for."""

    @abstractmethod
    def _source(self, selected: str) -> str:
        """The text of the files that define the test and its number; empty if it is not defined."""


class PythonTests(Tests):
    """Tests of the package, as `tests_py/test_x.py` or `tests_py/test_x.py::test_y` with all parameters of it."""

    def _run(self, environment: dict[str, str]) -> tuple[dict[str, str], str]:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            options = ["--quiet", "--numprocesses=auto", "--maxprocesses=8", "--dist=worksteal", f"--junitxml={report}"]
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *options, *self.selection],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            cases = ElementTree.parse(report).iter("testcase") if report.exists() else iter(())
            results = {self._name(case): self._result(case) for case in cases}
        return results, "" if done.returncode == 0 else (done.stdout + done.stderr).strip()[-1000:]

    def _name(self, case: ElementTree.Element) -> str:
        return f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"

    def _result(self, case: ElementTree.Element) -> str:
        for kind in ("failure", "error", "skipped"):
            if (found := case.find(kind)) is not None:
                return f"{kind}: {found.get('message', '')[:500]}"
        return PASSED

    def _is_of(self, test: str, selected: str) -> bool:
        file, _, name = selected.partition("::")
        return test.startswith(f"{file}::") if not name else test.partition("[")[0] == selected

    def _source(self, selected: str) -> str:
        path, _, name = selected.partition("::")
        file = ROOT / path
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        is_defined = re.search(rf"^(async )?def {name or 'test_'}", text, re.MULTILINE)
        # The cases of a property are set for all of them in one place.
        settings = (ROOT / "tests_py" / "conftest.py").read_text(encoding="utf-8") if "hypothesis" in text else ""
        return text + settings if is_defined else ""


class RustTests(Tests):
    """Tests of the core: either all of modules, as `store::`, or single ones, as `files::race::no_swap`.

    Of modules, the tests that are marked as ignored are left out: they are processes that other tests start.
    """

    def _run(self, environment: dict[str, str]) -> tuple[dict[str, str], str]:
        exact = [] if self._is_modules else ["--exact", "--include-ignored"]
        done = subprocess.run(
            ["tools/build", "cargo", "test", "--test", "it", "--", *exact, *self.selection],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        lines = re.findall(r"^test (\S+) (?:- should panic )?\.\.\. (ok|FAILED)$", done.stdout, re.MULTILINE)
        results = {
            test: PASSED if result == "ok" else f"failed: {_after(done.stdout, f'---- {test} stdout ----')}"
            for test, result in lines
            if any(self._is_of(test, selected) for selected in self.selection)
        }
        return results, "" if done.returncode == 0 else done.stderr.strip()[-1000:]

    @property
    def _is_modules(self) -> bool:
        return all(selected.endswith("::") for selected in self.selection)

    def _is_of(self, test: str, selected: str) -> bool:
        return test.startswith(selected) if selected.endswith("::") else test == selected

    def _source(self, selected: str) -> str:
        *modules, name = selected.split("::")
        module = (ROOT / "tests" / "it").joinpath(*modules)
        files = [module.with_suffix(".rs"), *([] if name else module.rglob("*.rs"))]
        text = "".join(file.read_text(encoding="utf-8") for file in files if file.is_file())
        is_defined = re.search(rf"^\s*(async )?fn {name}\(" if name else r"^\s*#\[(\w+::)?test", text, re.MULTILINE)
        return text if is_defined else ""


def _after(text: str, mark: str) -> str:
    return text.partition(mark)[2].strip()[:500]


def repeat(
    name: str, *, row: str, promise: str, unit: str, tests: Tests, release: int = 1, smallest: int = 1
) -> Attack:
    """Declare the repetition of tests as an attack; see `soak.attack.attack` for the parameters."""
    return declare(Attack(f"suite.{name}", row, promise, unit, release, smallest, tests))


def _of(file: str, *names: str) -> tuple[str, ...]:
    """The tests of one file of the package: all of them, or those of these names."""
    path = f"tests_py/test_{file}.py"
    return tuple(f"{path}::test_{name}" for name in names) or (path,)


def _in(module: str, *names: str) -> tuple[str, ...]:
    """The tests of one module of the core and those in it: all of them, or those of these names."""
    return tuple(f"{module}::{name}" for name in names or [""])


# --- the rows -------------------------------------------------------------------------------------------------------

repeat(
    "texts",
    row="a",
    promise="any text of a model is read, or refused with a reason, however it is cut into pieces",
    unit="mutated texts",
    release=1_000_000,
    tests=RustTests(
        ("text::fuzz::prop_a_million_texts_hold", "repair::fuzz::prop_a_million_texts_do_no_harm"),
        "TOOLCRIB_FUZZ_CASES",
    ),
)
repeat(
    "schemas",
    row="a",
    promise="arguments are accepted exactly if their schema accepts them",
    unit="random schemas with values",
    release=50_000,
    smallest=2_000,
    tests=RustTests(_in("check::properties"), "PROPTEST_CASES"),
)
repeat(
    "properties",
    row="a",
    promise="schemas, converted arguments and calls in dialects are right for any signature, and texts for any cut",
    unit="random cases",
    release=1_000,
    tests=PythonTests(
        _of("schema_property")
        + _of("typed_arguments_property", "a_tool_gets_what_validate_call_gives", "the_objects_themselves_arrive")
        + _of("dialects_property")
        + _of("coercion_property")
        + _of("text_property"),
        "TOOLCRIB_PROPERTY_CASES",
    ),
)
repeat(
    "hostile_texts",
    row="a'",
    promise="texts made to be expensive are answered in time that grows with their length",
    unit="cases",
    release=10,
    tests=RustTests(_in("text::hostile") + _in("repair::fuzz")),
)
repeat(
    "cancellation",
    row="b",
    promise="a call can be cancelled at every point: its tool is finalised, the task is cancelled, and nothing is left",
    unit="cases, most with a cancellation at every point",
    release=2,
    tests=PythonTests(
        _of("cancellation")
        + _of("cancellation_scopes")
        + _of("middleware_cancellation")
        + _of("approvals_cancellation")
        + _of("process_trees")
    ),
)
repeat(
    "calls_at_once",
    row="c",
    promise="10,000 calls at once keep their answers apart, in bounded memory",
    unit="runs of 10,000 calls",
    release=3,
    tests=PythonTests(
        _of("load", "ten_thousand_calls_in_flight_keep_apart_and_small", "ten_thousand_calls_of_threads_keep_apart")
    ),
)
repeat(
    "stalled_stores",
    row="c2",
    promise="a database that does not answer stops only the calls that need it",
    unit="cases",
    release=2,
    tests=PythonTests(_of("store_waiting") + _of("worker_nesting")),
)
repeat(
    "kills",
    row="d",
    promise="a process that is killed while it saves leaves the old state or the new one",
    unit="kills",
    release=1_000,
    smallest=40,
    tests=PythonTests(
        _of("store_crash", "a_process_that_is_killed_leaves_the_last_state_or_the_next_one")
        + _of("database_processes", "a_killed_process_leaves_a_whole_state"),
        "TOOLCRIB_KILLS",
    ),
)
repeat(
    "disk_faults",
    row="d",
    promise="an error or a crash at any system call of a save leaves the old state or the new one, and no stray file",
    unit="cases, each with a fault at every call",
    release=5,
    tests=RustTests(_in("store") + _in("approval::fault") + _in("audit")),
)
repeat(
    "writers",
    row="e",
    promise="of processes that write at once none loses an update unnoticed",
    unit="runs of 2 or 8 processes",
    release=2,
    tests=PythonTests(
        _of(
            "store_crash",
            "of_several_writers_one_wins_and_readers_always_find_a_whole_state",
            "of_many_threads_one_wins",
        )
        + _of("database_processes", "no_update_of_several_processes_is_lost")
        + _of("artifacts", "several_processes_that_edit_one_artifact_lose_nothing")
    ),
)
repeat(
    "swaps",
    row="f",
    promise="no operation on files leaves its folder while another process swaps files and folders with links",
    unit="operations",
    release=100_000,
    smallest=100,
    tests=RustTests(("files::race::no_swap_leads_out_of_the_root",), "TOOLCRIB_SWAP_ATTEMPTS", each=9),
)
repeat(
    "paths",
    row="f",
    promise="no path leads out of its folder: links, devices, pipes, mounts, odd names",
    unit="operations on hostile paths",
    tests=RustTests(("files::escape::no_operation_leads_out_of_the_root",), each=440),
)
repeat(
    "quick_programs",
    row="g",
    promise="programs lose no output, and leave neither processes nor descriptors behind",
    unit="programs",
    release=1_000,
    smallest=20,
    tests=PythonTests(
        _of("programs", "many_runs_lose_no_output_and_leave_neither_zombies_nor_descriptors"), "TOOLCRIB_PROGRAM_RUNS"
    ),
)
repeat(
    "stubborn_programs",
    row="g",
    promise="a program ends with its call in whatever way it resists, and its output takes bounded memory",
    unit="cases",
    tests=PythonTests(_of("programs") + _of("sandbox")),
)
repeat(
    "misbehaving_servers",
    row="h",
    promise="an MCP server that dies, hangs, floods or answers nonsense ends its own calls only",
    unit="cases",
    tests=RustTests(_in("mcp_client")),
)
repeat(
    "misbehaving_servers_in_programs",
    row="h",
    promise="the same as a Python program sees it",
    unit="cases",
    tests=PythonTests(_of("mcp_misbehaviour") + _of("mcp_processes")),
)
repeat(
    "served_requests",
    row="h-srv",
    promise="the MCP server refuses other hosts, pages and tokens, and a bad request does not affect the next",
    unit="cases",
    release=2,
    tests=RustTests(_in("mcp_server")),
)
repeat(
    "served_clients",
    row="h2",
    promise="clients that leave, hold connections or break the protocol do not keep others from being served",
    unit="cases",
    release=3,
    tests=PythonTests(_of("mcp_server_clients")),
)
repeat(
    "hostile_objects",
    row="i",
    promise="no name, value, middleware or tool kills the interpreter",
    unit="processes",
    tests=PythonTests(
        _of("native_safety")
        + _of("native_safety_arguments")
        + _of("native_safety_layers")
        + _of("native_safety_reading")
        + _of("native_safety_tools")
    ),
)
repeat(
    "pieces",
    row="i2",
    promise="pieces of streams, calls that were cut off, and calls that the provider has run never run",
    unit="cases",
    release=3,
    tests=PythonTests(
        _of(
            "wire",
            "a_call_that_there_was_no_room_for_does_not_run",
            "an_invalid_call_is_answered_and_never_runs",
            "a_piece_or_a_call_that_the_provider_runs_never_runs",
            "the_class_of_a_piece_tells_it_from_a_whole_call",
            "calls_that_the_provider_ran_are_not_among_those_of_a_message",
        )
        + _of(
            "wire_libraries",
            "the_pieces_of_a_stream_of_openai_never_run",
            "the_pieces_of_a_stream_of_gemini_never_run",
            "the_events_of_responses_are_read_when_they_are_whole",
        )
        + _of("text", "what_cannot_be_read_never_runs", "a_call_that_is_only_shown_never_runs")
    ),
)
repeat(
    "memory",
    row="j",
    promise="calls of every kind leave no memory and no objects behind",
    unit="calls",
    release=100_000,
    smallest=2_000,
    # Kinds that are slow make a half or a quarter of the number.
    tests=PythonTests(_of("leaks", "very_many_calls_leave_nothing_behind"), "TOOLCRIB_LEAK_CALLS", each=Fraction(1, 4)),
)
repeat(
    "references",
    row="j",
    promise="cycles, abandoned streams and removed tools are freed",
    unit="cases",
    release=2,
    tests=PythonTests(_of("leaks_references") + _of("policy_leaks")),
)
repeat(
    "threads_and_forks",
    row="k",
    promise="one toolkit serves many threads, event loops and forks, and programs end while tools run",
    unit="cases",
    release=2,
    tests=PythonTests(
        _of(
            "load",
            "one_toolkit_serves_many_loops",
            "a_registry_may_change_while_it_is_called",
            "a_forked_process_can_call_tools_of_its_own",
            "the_program_ends_while_a_tool_is_running",
            "calls_of_every_kind_may_be_mixed",
        )
        + _of("interpreter_subinterpreters")
        + _of("native_tools_process")
    ),
)
repeat(
    "ignored_children",
    row="k2",
    promise="a host that ignores SIGCHLD runs programs, sandboxes, servers and tools in processes like any other",
    unit="cases",
    release=5,
    tests=PythonTests(_of("sigchld")),
)
repeat(
    "recursion",
    row="k2",
    promise="tools that call themselves are answered, and can be ended at any depth",
    unit="cases",
    tests=PythonTests(_of("recursion")),
)
repeat(
    "decisions",
    row="l",
    promise="a call runs exactly if group, view, rules, permission and answer allow it",
    unit="combinations",
    tests=PythonTests(_of("policy_table", "every_cell_of_the_table_is_as_the_oracle_says"), each=2_700),
)
repeat(
    "presets",
    row="l",
    promise="no argument of a model reaches a preset or a hidden parameter",
    unit="calls",
    release=15_000,
    smallest=1_000,
    # A number of 15,000 is 300,000 cases, a third of them in each test.
    tests=PythonTests(_of("permissions_property"), "TOOLCRIB_PROPERTY_CASES", each=Fraction(20, 3)),
)
repeat(
    "approval_threads",
    row="l",
    promise="of two threads that use one approval, one wins",
    unit="races",
    release=10,
    tests=RustTests(
        _in(
            "approval::race",
            "of_two_threads_exactly_one_wins",
            "of_two_threads_with_a_folder_open_twice_exactly_one_wins",
        ),
        each=1_000,
    ),
)
repeat(
    "replays",
    row="l",
    promise="an approval is not accepted a second time",
    unit="replays",
    tests=RustTests(("approval::a_pending_call_is_used_once_of_ten_thousand_times",), each=11_000),
)
repeat(
    "bombs",
    row="m",
    promise="nested, repeated and unfinished texts are errors of their own kind, in bounded time and memory",
    unit="cases",
    tests=RustTests(_in("text::hostile") + _in("dialect::hostile")),
)
repeat(
    "values",
    row="n",
    promise="whatever tools and callbacks return or raise, a stream gives responses, and one of them is the last",
    unit="cases",
    release=2,
    tests=PythonTests(
        _of("stream_values")
        + _of("stream_errors")
        + _of("stream_postprocess")
        + _of("stream_kinds")
        + _of("middleware_errors")
    ),
)
repeat(
    "exporters_down",
    row="o",
    promise="an exporter of traces that is down changes no result and holds up no exit",
    unit="cases",
    release=2,
    tests=PythonTests(_of("tracing_export")),
)
repeat(
    "approval_forks",
    row="q",
    promise="an approval is used once by a process and all of its forks",
    unit="approvals",
    release=1_000,
    smallest=5,
    tests=PythonTests(_of("database_processes", "an_approval_is_used_once_by_all_forks"), "TOOLCRIB_APPROVAL_RACES"),
)
repeat(
    "approval_owners",
    row="q",
    promise="a forked or restarted process uses no approval that is not its own, unless they share a folder or a store",
    unit="cases",
    release=2,
    tests=PythonTests(_of("approvals_fork") + _of("approvals_restart")),
)
repeat(
    "planted_modules",
    row="r",
    promise="no process of a tool imports a file from the working folder, and no answer reaches another call",
    unit="processes",
    tests=PythonTests(_of("process_imports") + _of("process_answers")),
)
repeat(
    "endings",
    row="s",
    promise="exits, first exceptions at shutdown and hostile keys are answers or exceptions, never the end of the host",
    unit="processes",
    release=2,
    tests=PythonTests(_of("interpreter_shutdown") + _of("native_safety_arguments") + _of("worker_exceptions")),
)
repeat(
    "defaults",
    row="t",
    promise="rules, approvers and the audit log see every argument that the tool gets, defaults and presets included",
    unit="cases",
    release=2,
    tests=PythonTests(_of("rule_values") + _of("approvals_presets")),
)
