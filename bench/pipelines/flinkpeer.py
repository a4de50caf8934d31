"""Flink SQL as a peer: its jars from PyPI, its Kafka connector from Maven, kept in the cache."""

import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from ground import burnt_by

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from fetching import compiled, environment, fetched  # noqa: E402 - beside this directory

LIBRARIES = "apache-flink-libraries==2.3.0"
CONNECTOR = "org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2"
CONNECTOR_SHA512 = (
    "8340ab056b30d6d55b43fff9e13a61294e26d94d184b749db3dc648ec484e75c"
    "06076e35888eeb26473040a0c6f953e12727ac9f5935d2f2b831db20d803da54"
)
OPENED = ("java.lang", "java.util", "java.nio", "java.net", "java.io", "java.time", "java.text")
JVM = ["-Xmx1g", "-XX:+UseParallelGC", "-Dlog4j2.level=error"]
JVM += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]


def flink_classpath() -> str:
    """Return the class path of the peer, fetched and compiled."""
    below = [*sorted(_libraries().glob("*.jar")), fetched(CONNECTOR, CONNECTOR_SHA512)]
    return compiled(HERE / "FlinkPeer.java", below, peer="Flink")


def _libraries() -> Path:
    """Return the directory of Flink's jars, which PyPI has as a package without any Python."""
    place = environment(LIBRARIES, ["setuptools", "wheel"], ["--no-deps", LIBRARIES])
    return next(place.glob("lib/python*/site-packages/pyflink/lib"))


class FlinkPeer:
    """A JVM that runs Flink's jobs one after the other, so that each finds the JVM warm."""

    def __init__(self, bootstrap: str) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="penstock-flink-")
        self._log = (Path(self._scratch.name) / "flink.log").open("wb")
        checkpoints = Path(self._scratch.name, "checkpoints").as_uri()
        self._process = subprocess.Popen(
            ["java", *JVM, "-cp", flink_classpath(), "FlinkPeer", bootstrap, checkpoints],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )

    def run(self, work: str, topic: str) -> tuple[float, float]:
        """Run a job over all of a topic; return the seconds it took, and what it burnt."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the peer has no pipes")
        burnt = burnt_by(self._process.pid)
        self._process.stdin.write(f"{work} {topic}\n".encode())
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            said = Path(self._log.name).read_text(errors="replace")
            raise SystemExit(f"Flink failed: {said[-3000:]}")
        return float(answer), burnt_by(self._process.pid) - burnt

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        self._log.close()
        self._scratch.cleanup()
