"""The sandbox of programs: every row of its tables in `docs/guide/programs.md`, replaced paths, and descriptors."""

import asyncio
import errno
import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.sandboxes import USERS, Host
from support.waiting import turns, until
from toolcrib import Toolkit, errors, tools
from toolcrib.process import Sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a sandbox")

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "programs.md"


def rows(head: str) -> list[str]:
    """Return the first column of the table with this head."""
    lines = PAGE.read_text(encoding="utf-8").partition(f"| {head} |")[2].splitlines()[2:]
    table = lines[: next(index for index, line in enumerate(lines) if not line.startswith("|"))]
    return [line.split("|")[1].strip() for line in table]


STOPPED = rows("a program tries to")
POSSIBLE = rows("a program can")


def refuses(*names: str, reason: int = errno.EPERM) -> Callable[[Host], None]:
    """A case: these attempts are refused."""

    def case(host: Host) -> None:
        assert host.attack(*names) == dict.fromkeys(names, str(reason))

    return case


def permits(*names: str) -> Callable[[Host], None]:
    """A case: these attempts succeed."""

    def case(host: Host) -> None:
        assert host.attack(*names) == dict.fromkeys(names, "permitted")

    return case


def shell(*commands: str, printed: str = "") -> Callable[[Host], None]:
    """A case: none of these commands prints more than this, the secret included, or changes an unlisted file."""

    def case(host: Host) -> None:
        for command in commands:
            output = host.run(command).partition("<stdout>")[2].partition("</stdout>")[0]
            assert output == printed, command
            assert (host.folder / "unlisted" / "secret").read_text() == "secret", command
            assert os.listdir(host.folder / "unlisted") == ["secret"], command

    return case


def replaces(host: Host) -> None:
    for command in (
        "mv listed/inner listed/before; ln -s ../unlisted listed/inner",
        "mv listed/data listed/before2; ln -s / listed/data",
        "rm listed/file; ln -s ../unlisted/secret listed/file",
    ):
        host.run(command)
    # The rules of a program are made when it starts.
    reads = "cat listed/inner/secret listed/file listed/data/etc/shadow unlisted/secret /etc/shadow"
    shell(reads, "echo x > listed/inner/secret; touch listed/inner/new listed/data/new; rm listed/inner/secret")(host)


def renames(host: Host) -> None:
    host.run("mv listed/above listed/below; mkdir listed/above; ln -s ../../unlisted listed/above/nested")

    shell("cat listed/above/nested/secret; touch listed/above/nested/new")(host)
    # The folder that was listed is the same one by its new name.
    shell("cat listed/below/nested/own", printed="own")(host)


def leaves(host: Host) -> None:
    started = "echo started >> listed/pids; exec sleep 97"
    host.run(
        f"setsid sh -c '{started}' & (setsid setsid sh -c '{started}' &); nohup sh -c '{started}' & "
        "until [ $(cat listed/pids | wc -l) = 3 ]; do sleep 0.01; done 2> /dev/null"
    )

    assert (host.folder / "listed" / "pids").read_text() == "started\n" * 3
    asyncio.run(until(lambda: host.survivors() == []))


OTHERS = [
    "prlimit_other",
    "prlimit_wide",
    "priority_other",
    "priority_group",
    "priority_user",
    "ioprio_other",
    "ioprio_user",
    "affinity_other",
    "scheduler_other",
    "schedparam_other",
    "schedattr_other",
    "migrate_other",
]
TRACES = [
    "trace",
    "read_memory",
    "write_memory",
    "pidfd_open_other",
    "pidfd_signal",
    "pidfd_getfd",
    "madvise_other",
    "compare",
]
SHARED = ["shared_memory", "attach_memory", "list_memory", "semaphores", "messages", "posix_queue", "key", "keyring"]


def makes_namespaces(host: Host) -> None:
    refuses("unshare_user", "unshare_hostname", "unshare_time", "clone_user", "mount_other", "enter_namespace")(host)
    # C libraries do without this call where it does not exist.
    refuses("clone3_user", reason=errno.ENOSYS)(host)


def signals(host: Host) -> None:
    release = tuple(int(part) for part in os.uname().release.split(".")[:2])
    if release >= (6, 12):
        refuses("signal_other", "queue_signal")(host)
        assert f"signal_other {errno.EPERM}\n" in host.run("bin/attack $PPID signal_other")


def uses_other_calls(host: Host) -> None:
    if os.uname().machine == "x86_64":
        refuses("x32_call", "i386_call")(host)


def makes_devices(host: Host) -> None:
    result = host.attack("device")["device"]

    assert result in (str(errno.EACCES), str(errno.EPERM))


def uses_its_own(host: Host) -> None:
    permits("prlimit_own", "priority_own", "affinity_own", "scheduler_own")(host)
    refuses("prlimit_own_number")(host)
    shell("nice -n 5 nice", printed="5\n")(host)
    shell("ulimit -n 64; ulimit -n", printed="64\n")(host)


def reaches_services(host: Host) -> None:
    with Host(host.user, network=True) as other:
        permits("inet", "inet6", "local")(other)


CASES: dict[str, Callable[[Host], None]] = {
    "read a file that is not listed": shell("cat unlisted/secret /etc/shadow /proc/1/environ; ls unlisted . /root"),
    "change, make or remove a file that is not listed": shell(
        "echo x > unlisted/secret; echo x >> unlisted/secret; touch unlisted/new new; rm unlisted/secret",
        "mv unlisted/secret listed/secret; mv listed/own unlisted/own; truncate -s 0 unlisted/secret",
    ),
    "replace a listed path by a link": replaces,
    "rename a folder above a listed path": renames,
    "get a file by a hard link or by `/proc`": shell(
        "ln unlisted/secret listed/link && cat listed/link; cat /proc/self/root$PWD/unlisted/secret",
        "ln -s /proc/$PPID/root/etc/shadow listed/root; cat listed/root /proc/$PPID/environ /proc/self/environ",
    ),
    "mount a file system, or make a namespace": makes_namespaces,
    "make a device file": makes_devices,
    "make a socket": refuses("inet", "inet6", "local", "netlink"),
    "send a signal to your program or to its supervisor": signals,
    "change limits, priority, scheduling or CPUs of another process": refuses(*OTHERS),
    "trace another process, or access its memory or its files": refuses(*TRACES),
    "use shared memory, semaphores and queues of System V, queues of POSIX, keys of the kernel": refuses(*SHARED),
    "use `io_uring`, `bpf` or `perf_event_open`": refuses("uring", "bpf", "perf"),
    "use the system calls of another ABI": uses_other_calls,
    "set the clock or the name of the machine, or become another user": refuses(
        "set_hostname", "set_clock", "become_other", "open_by_handle"
    ),
    "leave a process behind": leaves,
    "see the size and the times of a file whose path it knows": permits("file_size"),
    "change the permissions, times and owner of a file that your user may change": permits("file_mode"),
    "see the names of changes in a folder that your user may read": permits("watch"),
    "use its own limits, priority and CPUs": uses_its_own,
    "use threads, child processes and pairs of sockets": permits("thread", "pair"),
    "change code that you run later": shell("echo '#!/bin/sh' > listed/code && cat listed/code", printed="#!/bin/sh\n"),
    "reach every service of this machine with `network=True`": reaches_services,
}


WRITE = ["listed", "listed/inner", "listed/file"]
READ = ["bin", "listed/data", "listed/above/nested"]


def nested(host_folder: Path) -> None:
    """Make the folders inside the writable one that are listed as well."""
    for name in ("inner", "data", "above/nested"):
        (host_folder / "listed" / name).mkdir(parents=True)
    (host_folder / "listed" / "above" / "nested" / "own").write_text("own")
    (host_folder / "listed" / "file").write_text("own")


def test_every_row_of_the_tables_has_a_case() -> None:
    assert sorted([*STOPPED, *POSSIBLE]) == sorted(CASES)


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("row", [*STOPPED, *POSSIBLE])
def test_the_sandbox_does_what_its_table_says(row: str, user: str) -> None:
    with Host(user, prepare=nested, read=READ, write=WRITE) as host:
        CASES[row](host)


@pytest.mark.parametrize("user", USERS)
def test_a_network_opens_nothing_but_sockets(user: str) -> None:
    with Host(user, network=True) as host:
        names = [*OTHERS, *TRACES, *SHARED, "uring", "unshare_user", "set_clock"]

        assert host.attack(*names) == dict.fromkeys(names, str(errno.EPERM))


@pytest.mark.parametrize("user", USERS)
def test_the_attempts_are_real_ones(user: str) -> None:
    possible = [
        "prlimit_other",
        "priority_other",
        "ioprio_other",
        "affinity_other",
        "scheduler_other",
        "schedparam_other",
    ]
    possible += ["shared_memory", "semaphores", "messages", "pidfd_open_other", "signal_other", "inet", "local"]

    with Host(user, is_sandboxed=False) as host:
        assert host.attack(*possible) == dict.fromkeys(possible, "permitted")
        assert host.attack("mount_other", "set_clock") == {"mount_other": "unsafe", "set_clock": "unsafe"}


@pytest.mark.parametrize("user", USERS)
def test_the_sets_of_capabilities_are_empty(user: str) -> None:
    with Host(user, read=["bin", "/proc"]) as host:
        status = host.run("cat /proc/self/status")

    sets = {line.split()[0]: int(line.split()[1], 16) for line in status.splitlines() if line.startswith("Cap")}
    bounding = sets.pop("CapBnd:")
    assert sets == dict.fromkeys(["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"], 0)
    assert bounding == 0 or user != "root"  # only root can empty it, and others gain nothing by it
    assert "NoNewPrivs:\t1" in status


@pytest.mark.parametrize("user", USERS)
def test_a_program_cannot_keep_its_supervisor_from_finding_what_it_left(user: str) -> None:
    # Without a sandbox the limit can be set; the supervisor can open no file from then on.
    with Host(user, is_sandboxed=False) as host:
        host.run(
            "bin/attack $PPID starve; (setsid setsid sh -c 'echo $$ > listed/pid; exec sleep 97' &) ; "
            "while [ ! -s listed/pid ]; do sleep 0.01; done"
        )

        asyncio.run(until(lambda: host.survivors() == []))


# Paths that change between the registration and a call


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("listed", "unlisted"):
        (tmp_path / name).mkdir()
    (tmp_path / "unlisted" / "secret").write_text("secret")
    return tmp_path


def sandboxed(**options: Any) -> Toolkit:
    toolkit = Toolkit()
    try:
        tools.register(toolkit, "programs", **options)
    except errors.NoSandboxError as error:
        assert len(toolkit.tools) == 0
        pytest.skip(f"left out: {error}")
    return toolkit


def output(toolkit: Toolkit, command: str) -> str:
    return toolkit.run("execute_shell_command", command=command).text


def test_a_path_that_another_program_replaces_means_the_old_folder(folder: Path) -> None:
    toolkit = sandboxed(cwd=folder, sandbox=Sandbox(write=folder / "listed"))
    (folder / "listed").rename(folder / "moved")
    (folder / "listed").symlink_to(folder / "unlisted")

    assert "secret<" not in output(toolkit, "cat listed/secret; echo x > listed/secret; echo y > moved/new")
    assert (folder / "unlisted" / "secret").read_text() == "secret"
    assert (folder / "moved" / "new").read_text() == "y\n"


def test_a_new_folder_of_the_same_name_is_not_listed(folder: Path) -> None:
    toolkit = sandboxed(cwd=folder, sandbox=Sandbox(write=folder / "listed"))
    (folder / "listed").rmdir()
    (folder / "listed").mkdir()

    output(toolkit, "touch listed/new")

    assert os.listdir(folder / "listed") == []


def test_the_working_directory_is_the_one_that_was_registered(folder: Path) -> None:
    toolkit = sandboxed(cwd=folder / "listed", sandbox=Sandbox(write=folder / "listed"))
    (folder / "listed").rename(folder / "moved")
    (folder / "listed").symlink_to(folder / "unlisted")

    assert f"<stdout>{folder}/moved\n" in output(toolkit, "pwd -P")

    (folder / "moved").rmdir()
    assert "its working directory was removed" in output(toolkit, "pwd -P")


def test_a_link_that_a_program_has_made_is_followed_by_no_later_sandbox(folder: Path) -> None:
    data = folder / "listed" / "data"
    data.mkdir()
    toolkit = sandboxed(cwd=folder, sandbox=Sandbox(write=folder / "listed"))
    output(toolkit, f"mv listed/data listed/moved; ln -s {folder}/unlisted listed/data")
    assert os.readlink(data) == str(folder / "unlisted")

    for sandbox in (Sandbox(read=data), Sandbox(write=data), Sandbox(read=data / "secret")):
        with pytest.raises(errors.InvalidProgramOptionError, match=f"{data}.*: it leads through `data`, a link"):
            tools.register(Toolkit(), "programs", cwd=folder, sandbox=sandbox)


def test_a_virtual_environment_that_a_program_replaces_means_the_old_folder(folder: Path) -> None:
    program = """
import os, sys
from toolcrib import Toolkit, errors, tools
from toolcrib.process import Sandbox

def register(toolkit):
    tools.register(toolkit, "programs", cwd=".", sandbox=Sandbox(write="."))
    return toolkit

try:
    first = register(Toolkit())
except errors.NoSandboxError as error:
    sys.exit(f"left out: {error}")
first.run("execute_shell_command", command="mv .venv moved; ln -s ../unlisted .venv")
try:
    print(register(Toolkit()).run("execute_shell_command", command="cat ../unlisted/secret").text)
except errors.InvalidProgramOptionError as error:
    print(os.readlink(".venv"), error)
"""
    work = folder / "listed"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", ".venv"], cwd=work, check=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if os.path.isdir(path))}

    command = [str(work / ".venv" / "bin" / "python"), "-c", program]
    done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, check=False)

    if done.stderr.startswith("left out"):
        pytest.skip(done.stderr)
    assert done.stdout.startswith("../unlisted invalid option `sandbox` of programs: ")
    assert "it leads through `.venv`, a link" in done.stdout


def test_a_link_that_no_program_can_have_made_is_followed(folder: Path) -> None:
    (folder / "link").symlink_to("listed")

    toolkit = sandboxed(cwd=folder, sandbox=Sandbox(write=folder / "link"))

    output(toolkit, "touch listed/new")
    assert os.listdir(folder / "listed") == ["new"]


@pytest.mark.parametrize("by", ["folder", "parent"])
def test_the_file_of_python_code_cannot_be_redirected(folder: Path, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    temporary = folder / "listed" / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    (folder / "unlisted" / "code.py").write_text("kept")
    toolkit = sandboxed(cwd=folder, sandbox=Sandbox(write=folder / "listed"))
    # The program puts a link to another folder in the place of its own one, or of the one above it.
    code = f"""
import os
own = os.path.dirname(os.path.abspath(__file__))
if {by!r} == "parent": own = os.path.dirname(own)
os.rename(own, own + "-moved")
os.symlink({str(folder / "unlisted")!r}, own)
"""

    first = toolkit.run("execute_python_code", code=code)
    second = toolkit.run("execute_python_code", code=f"print(open({str(folder / 'unlisted' / 'secret')!r}).read())")

    assert "<returncode>0<" in first.text
    assert "<stdout></stdout>" in second.text
    assert sorted(os.listdir(folder / "unlisted")) == ["code.py", "secret"]
    assert (folder / "unlisted" / "code.py").read_text() == "kept"


def test_many_paths_are_handed_on(folder: Path) -> None:
    paths = [folder / "listed" / str(number) for number in range(600)]
    for path in paths:
        path.mkdir()
    toolkit = sandboxed(cwd=folder, sandbox=Sandbox(write=paths))

    assert "<stdout>600\n" in output(
        toolkit, "for n in $(seq 0 599); do echo $n > listed/$n/file; done; seq 600 | tail -1"
    )
    assert all((path / "file").exists() for path in paths)


# The descriptors of a sandbox


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def settled() -> int:
    """Return their number when all processes that have ended are reaped, with those of an event loop."""
    gc.collect()
    await turns(10, pause=0.05)
    return descriptors()


def test_the_descriptors_of_a_sandbox_are_few_and_are_closed_with_its_tools(folder: Path) -> None:
    output(sandboxed(sandbox=Sandbox(write=folder)), "true")
    before = asyncio.run(settled())

    kept = [sandboxed(cwd=folder, sandbox=Sandbox(write=folder / "listed")) for _ in range(50)]
    held = descriptors() - before
    for toolkit in kept[:5]:
        output(toolkit, "true")
    kept.clear()
    del toolkit
    gc.collect()

    assert held < 50 * 3 + 40
    asyncio.run(until(lambda: descriptors() <= before))


def test_no_program_of_the_host_inherits_them(folder: Path) -> None:
    toolkit = sandboxed(cwd=folder, sandbox=Sandbox(write=folder / "listed"))
    listed = subprocess.run(["ls", "/proc/self/fd"], capture_output=True, text=True, close_fds=False, check=True)

    assert listed.stdout.split() == ["0", "1", "2", "3"]  # the last one is that of the folder it lists
    assert "<stdout>ok\n" in output(toolkit, "echo ok")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python warns about forking with threads
def test_a_fork_of_the_host_has_the_same_sandbox(folder: Path) -> None:
    toolkit = sandboxed(cwd=folder, sandbox=Sandbox(write=folder / "listed"))

    forked = os.fork()
    if forked == 0:
        shown = output(toolkit, "touch listed/new && cat unlisted/secret")
        os._exit(0 if "secret<" not in shown and (folder / "listed" / "new").exists() else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
    assert "<stdout>ok\n" in output(toolkit, "echo ok")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_host_that_has_closed_them_gets_an_error_and_no_wider_sandbox(folder: Path) -> None:
    toolkit = sandboxed(cwd=folder, sandbox=Sandbox(write=folder / "listed"))

    forked = os.fork()
    if forked == 0:
        # A daemon closes what it has inherited, and its next files get the same numbers.
        other = os.open("/", os.O_PATH)
        for name in os.listdir("/proc/self/fd"):
            target = os.path.realpath(f"/proc/self/fd/{name}")
            if int(name) != other and target.startswith((str(folder), "/usr")):
                os.dup2(other, int(name))
        shown = output(toolkit, "cat unlisted/secret")
        del toolkit
        gc.collect()
        os.fstat(other)
        os._exit(0 if "has closed a descriptor" in shown else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0


# Paths as they are written


def test_a_single_path_is_one_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "l").mkdir()

    for path in ("listed", "./listed", str(folder / "listed"), folder / "listed", Path("listed")):
        toolkit = sandboxed(cwd=folder, sandbox=Sandbox(write=path, read="unlisted"))

        shown = output(toolkit, "touch listed/new && cat unlisted/secret; touch l/new unlisted/new")
        assert "<stdout>secret</stdout>" in shown
        assert os.listdir("l") == []
        assert os.listdir("unlisted") == ["secret"]
        os.remove("listed/new")
    assert Sandbox(write="listed") == Sandbox(write=["listed"])


class BytesPath:
    def __fspath__(self) -> bytes:
        return b"listed"


@pytest.mark.parametrize("given", [b"listed", 3, None, {"listed": 1}, [b"listed"], [1], [["listed"]], BytesPath()])
@pytest.mark.parametrize("option", ["read", "write"])
def test_anything_but_paths_is_refused(option: str, given: Any) -> None:
    with pytest.raises(TypeError, match=f"`{option}` of a sandbox must be a path or a list of paths"):
        Sandbox(**{option: given})


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("lsted", "lsted: No such file or directory (os error 2): did you mean `listed`?; relative paths begin at "),
        ("listed/inn", "listed/inn: No such file or directory (os error 2); relative paths begin at "),
        ("", "an empty path: No such file or directory"),
    ],
)
def test_a_missing_path_is_named_with_the_one_that_was_meant(
    folder: Path, monkeypatch: pytest.MonkeyPatch, path: str, reason: str
) -> None:
    monkeypatch.chdir(folder)

    with pytest.raises(errors.InvalidProgramOptionError) as raised:
        tools.register(Toolkit(), "programs", sandbox=Sandbox(write=path))

    assert str(raised.value).startswith(f"invalid option `sandbox` of programs: {reason}")
