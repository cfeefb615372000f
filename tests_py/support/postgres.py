"""A PostgreSQL server for the tests: one for the whole run, on a free port, in a temporary folder."""

import fcntl
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = "/usr/lib/postgresql"
INSTALLATION = Path(tempfile.gettempdir()) / "toolcrib-install-postgresql.lock"


def programs() -> Path | None:
    """Find the folder of `initdb` and `pg_ctl`, of the newest version."""
    on_path = shutil.which("initdb")
    found = sorted(Path(PROGRAMS).glob("*/bin/initdb"), key=lambda program: int(program.parent.parent.name))
    if found:
        return found[-1].parent
    return Path(on_path).parent if on_path else None


def install() -> str:
    """Install Debian's package; return why not, or an empty string."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return "only root can install it, by Debian's apt-get"
    # Packages are installed by more programs than the PATH of the tests may have.
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    # One process at a time: the tests run in several.
    with INSTALLATION.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if programs() is not None:
            return ""
        for arguments in (["update"], ["install", "--yes", "--no-install-recommends", "postgresql"]):
            done = subprocess.run(["apt-get", *arguments], env=quiet, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"apt-get failed: {done.stderr.strip()[-300:]}"


def unprivileged() -> list[str]:
    """Return the command that runs another as a user that PostgreSQL accepts: it refuses root."""
    if os.geteuid() != 0:
        return []
    names = {user.pw_name for user in pwd.getpwall()}
    return ["runuser", "-u", "postgres" if "postgres" in names else "nobody", "--"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Unavailable(Exception):
    """There is no PostgreSQL on this machine, and none can be installed."""


class Server:
    """A server that runs, with a new database for each test."""

    def __init__(self, programs: Path, user: list[str], folder: Path) -> None:
        self.programs, self.user, self.folder = programs, user, folder
        self.port = free_port()
        self.certificate = folder / "server.crt"
        self.databases = 0

    def run(self, program: str, *arguments: str) -> None:
        command = [*self.user, str(self.programs / program), *arguments]
        # Its output goes to files, because the server would keep a pipe open.
        with (self.folder / "errors").open("w+") as errors:
            done = subprocess.run(command, cwd=self.folder, stdout=errors, stderr=errors, check=False)
            errors.seek(0)
            written = errors.read().strip()
        if done.returncode:
            log = self.folder / "log"
            raise Unavailable(f"{program} failed: {written[-500:]} {log.read_text()[-500:] if log.exists() else ''}")

    def start(self) -> None:
        data = str(self.folder / "data")
        self.run("initdb", "-D", data, "-U", "crib", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        # Its processes are killed, never its machine, so that nothing has to reach a disk, which may be slow.
        options = f"-p {self.port} -h 127.0.0.1 -k {self.folder} -c max_connections=100 -c fsync=off"
        if self.make_certificate():
            key = self.certificate.with_suffix(".key")
            options += f" -c ssl=on -c ssl_cert_file={self.certificate} -c ssl_key_file={key}"
        self.run("pg_ctl", "-D", data, "-l", str(self.folder / "log"), "-o", options, "-w", "start")

    def make_certificate(self) -> bool:
        """Make a certificate for `localhost`, with its own authority; return whether `openssl` could."""
        if not shutil.which("openssl"):
            return False
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
        command += [
            "-addext",
            "subjectAltName=DNS:localhost",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-out",
            str(self.certificate),
        ]
        command += ["-keyout", str(self.certificate.with_suffix(".key"))]
        return subprocess.run([*self.user, *command], cwd=self.folder, capture_output=True, check=False).returncode == 0

    def restart(self) -> None:
        """Restart the server: every connection is lost."""
        data = str(self.folder / "data")
        self.run("pg_ctl", "-D", data, "-l", str(self.folder / "log"), "-m", "fast", "-w", "restart")

    def stop(self) -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop")

    def new_database(self) -> str:
        """Create a database; return its URL."""
        self.databases += 1
        name = f"crib_{self.databases}"
        self.run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "crib", name)
        return f"postgresql://crib@127.0.0.1:{self.port}/{name}"


@contextmanager
def running() -> Iterator[Server]:
    """Start a server, and stop it at the end.

    Raises:
        Unavailable: If there is none; the text says why.
    """
    found = programs()
    if found is None:
        reason = install()
        found = programs()
        if found is None:
            raise Unavailable(f"PostgreSQL is not installed, and {reason or 'its package has no programs'}")
    folder = Path(tempfile.mkdtemp(prefix="toolcrib-pg-"))
    user = unprivileged()
    if user:
        shutil.chown(folder, user[2])
    server = Server(found, user, folder)
    try:
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
