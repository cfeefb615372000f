"""Programs in a sandbox: they replace what is listed, reach for other processes, and leave processes behind."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from soak.attack import Outcome, attack
from toolcrib import Toolkit, tools
from toolcrib.process import Sandbox

SOURCE = Path(__file__).parents[1] / "tests" / "data" / "process" / "attack.c"

LISTED = ("data", "out", "out/inner", "file", "above/nested", "code")
"""The paths that are listed, all of them inside a folder that may be written to."""

REPLACE = (
    "mv {path} {path}.old{n}; ln -s {target} {path}",
    "rm -rf {path}; ln -s {target} {path}",
    "ln -sfn {target} {path}.new{n} && mv -T {path}.new{n} {path}",
    "mv {path} {path}.old{n}; ln {target} {path}",
    "mkdir -p away; mv {path} away/old{n}; ln -s {target} {path}",
    "mv above above{n}; ln -s {outside} above",
    "mount --bind {target} {path}",
)
REACH = (
    "cat {path} {path}/* {path}/secret {path}/etc/shadow above/nested/secret",
    "echo broken > {path}/secret; echo broken > {path}; touch {path}/new; rm -f {path}/secret",
    "cp -r {path}/. copy{n}; cat copy{n}/secret",
    "cat {outside}/secret; echo broken > {outside}/secret",
)
ATTEMPTS = [
    "starve",
    "prlimit_other",
    "priority_other",
    "priority_group",
    "priority_user",
    "ioprio_other",
    "ioprio_user",
    "affinity_other",
    "scheduler_other",
    "schedparam_other",
    "schedattr_other",
    "trace",
    "read_memory",
    "write_memory",
    "pidfd_open_other",
    "compare",
    "signal_other",
    "shared_memory",
    "semaphores",
    "messages",
    "posix_queue",
    "key",
    "keyring",
    "uring",
    "unshare_user",
    "unshare_hostname",
    "clone_user",
    "mount_other",
    "set_hostname",
    "set_clock",
    "become_other",
    "inet",
    "local",
]
DETACH = (
    "setsid sleep 97 > /dev/null 2>&1 &",
    "(setsid setsid sleep 97 > /dev/null 2>&1 &)",
    "nohup sleep 97 > /dev/null 2>&1 &",
    "(trap '' TERM HUP; setsid sh -c 'sleep 97 & exec sleep 97' > /dev/null 2>&1 &)",
)


class Arena:
    """A folder with listed paths, one outside with a secret, and the tools of a sandbox."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="toolcrib-soak-"))
        self.work, self.outside = self.folder / "work", self.folder / "outside"
        for path in (self.outside, self.folder / "bin", *(self.work / name for name in LISTED if name != "file")):
            path.mkdir(parents=True, exist_ok=True)
        (self.work / "file").write_text("own")
        (self.outside / "secret").write_text("the secret")
        attacker = str(self.folder / "bin" / "attack")
        subprocess.run(["cc", "-o", attacker, str(SOURCE), "-pthread"], check=True)
        read = [self.folder / "bin", *(self.work / name for name in ("data", "above/nested", "code"))]
        write = [self.work, *(self.work / name for name in ("out", "out/inner", "file"))]
        self.toolkit = Toolkit()
        env = {"SOAK_MARK": self.folder.name}
        tools.register(self.toolkit, "programs", cwd=self.work, env=env, sandbox=Sandbox(read=read, write=write))
        self.limits = limits()

    def run(self, command: str) -> str:
        """Run a command."""
        return self.toolkit.run("execute_shell_command", command=command, timeout=30).text

    def faults(self, shown: str) -> list[str]:
        """Return all signs that a program got out."""
        found = []
        if "the secret" in shown:
            found.append("a secret was read")
        if os.listdir(self.outside) != ["secret"] or (self.outside / "secret").read_text() != "the secret":
            found.append("a file outside was changed")
        if "permitted" in shown:
            found.append(f"an attempt was permitted: {shown}")
        if limits() != self.limits:
            found.append(f"the limits of the host changed: {limits()}")
        if self.has_survivors():
            found.append("a process survived")
        return found

    def has_survivors(self) -> bool:
        """Return True if a process of a program runs for longer than its end takes."""
        mark = f"SOAK_MARK={self.folder.name}".encode()
        deadline = time.monotonic() + 10
        while found := [process for process in Path("/proc").glob("[0-9]*") if has(process, mark)]:
            if time.monotonic() > deadline:
                return bool(found)
            time.sleep(0.002)
        return False


def has(process: Path, mark: bytes) -> bool:
    """Return True if a process that is no supervisor has a variable."""
    with contextlib.suppress(OSError):
        is_marked = mark in (process / "environ").read_bytes().split(b"\0")
        return is_marked and not (process / "cmdline").read_bytes().startswith(b"toolcrib-supervisor")
    return False


def limits() -> tuple[object, ...]:
    """Return the limits, the priority and the CPUs of this process."""
    numbers = (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU, resource.RLIMIT_CORE)
    pid = os.getpid()
    return (*map(resource.getrlimit, numbers), os.getpriority(os.PRIO_PROCESS, pid), os.sched_getaffinity(pid))


@attack(
    row="g2",
    promise="a sandboxed program gets nowhere by replacing listed paths, and reaches no other process",
    unit="programs",
    release=10_000,
    smallest=60,
)
def sandboxed_programs(amount: int) -> Outcome:
    """Replace a listed path in one program, and use it in the next; reach for the host; leave processes behind."""
    choose = random.Random(0)
    outcome = Outcome(0)
    while outcome.attempts < amount:
        arena = Arena()
        try:
            for n in range(min(50, amount - outcome.attempts)):
                names = {
                    "path": choose.choice(LISTED),
                    "target": choose.choice([str(arena.outside), f"{arena.outside}/secret", "/", "/etc"]),
                    "outside": str(arena.outside),
                    "n": str(n),
                }
                attempts = " ".join(choose.sample(ATTEMPTS, 6))
                victim = choose.choice(["$PPID", str(os.getpid())])
                parts = [
                    choose.choice(REPLACE).format(**names),
                    choose.choice(REACH).format(**names),
                    f"../bin/attack {victim} {attempts}",
                    choose.choice(DETACH),
                ]
                if n % 2:
                    parts.reverse()
                shown = arena.run("\n".join(parts))
                outcome.attempts += 1
                outcome.broken.extend(f"{fault} by {parts}" for fault in arena.faults(shown))
        finally:
            shutil.rmtree(arena.folder, ignore_errors=True)
    return outcome
