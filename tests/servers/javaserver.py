"""Servers in Java, each from jars that are locked here: fetched once, bound to this machine only."""

import os
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from penstock.machine.java.fetch import fetch_jars
from penstock.machine.java.jars import Jar, JarSet
from penstock.machine.java.java import find_java

LIMIT_SECONDS = 90
LIMIT_STOP_SECONDS = 20


def jars(name: str) -> list[Path]:
    """Return the jars of a lock beside this file, fetched into the cache where they are not there.

    A line is ``group:artifact:version size sha512``.
    """
    found = []
    for line in Path(__file__).with_name(f"{name}.lock").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            coordinates, size, digest = line.split()
            group, artifact, version = coordinates.split(":")
            found.append(Jar(JarSet.KAFKA, group, artifact, version, int(size), digest))
    fetch_jars(found)
    return [jar.cached for jar in found]


def free_port_between(first: int, last: int) -> int:
    for port in range(first, last + 1):
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise AssertionError(f"no free port between {first} and {last}")


class JavaServer:
    """One server, which may be killed and started again with what it kept."""

    ready = ""
    """Where it answers as soon as it is ready."""

    def __init__(
        self, home: Path, url: str, words: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        self.url = url
        self._home, self._words = home, [str(find_java().executable), *words]
        self._environment = {**os.environ, **environment}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._words, stdout=log, stderr=log, cwd=self._home, env=self._environment
            )
        pause = Event()
        for _ in range(LIMIT_SECONDS * 10):
            if self._process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"{self.url}{self.ready}", timeout=5):  # noqa: S310 - our own
                    return
            except urllib.error.HTTPError:
                return
            except OSError:
                pause.wait(0.1)
        raise AssertionError((self._home / "log").read_text(errors="replace")[-4000:])

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(LIMIT_STOP_SECONDS)


@contextmanager
def running(server: JavaServer) -> Iterator[JavaServer]:
    try:
        server.start()
        yield server
    finally:
        server.kill()
