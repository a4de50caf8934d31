"""A Spark standalone cluster on this machine: one master, and workers in processes of their own.

It is what a pipeline meets on a real cluster, small: executors are not the driver's process, get
jars over the network, start Python workers of their own and share nothing with the driver but the
file system. The tests run on it, and whoever wants to try ``spark.master`` before there is a
cluster.
"""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.error import URLError
from urllib.request import urlopen

from penstock.errors import ConfigurationError
from penstock.machine.files import last_lines
from penstock.machine.java.java import find_java, spark_java_home
from penstock.machine.packages import INSTALL_SPARK
from penstock.machine.ports import LOOPBACK, free_ports
from penstock.machine.process.ownedprogram import KeptProgram

__all__ = ["LOG_CONFIG", "StandaloneCluster", "WorkerSize", "spark_home"]

LOG_CONFIG = Path(str(files("penstock.pipelines.spark"))) / "log4j2.properties"
"""What Spark logs, and where, in this process and in those of the cluster."""
_START_LIMIT = timedelta(seconds=60)
_STOP_GRACE = timedelta(seconds=15)
_ASK_SECONDS = 5.0
_LOOK_SECONDS = 0.2
_DAEMON_MEMORY = "256m"


def spark_home() -> Path:
    """Return where Spark is installed; ConfigurationError where it is not."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise ConfigurationError("Spark is not installed", code="spark.missing", hint=INSTALL_SPARK)
    return Path(found.origin).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSize:
    """What one worker gives to executors; ``memory`` as Spark writes it: ``1g``."""

    cores: int = 1
    memory: str = "1g"


class StandaloneCluster:
    """A master and workers on the loopback address, up while the block lasts.

    They end with the process that started them, also when it is killed, and executors end with
    their worker. ``directory`` holds their logs and the executors' work.

    ConfigurationError (``spark.cluster``) where they do not come up within a minute.
    """

    def __init__(
        self, directory: Path, *, workers: int = 2, size: WorkerSize | None = None
    ) -> None:
        self._directory = directory.absolute()
        self._size = size or WorkerSize()
        self._port, self._page = free_ports(2)
        self._programs = {
            name: KeptProgram(self._directory / name, grace=_STOP_GRACE)
            for name in ("master", *(f"worker-{number}" for number in range(workers)))
        }

    @property
    def master(self) -> str:
        """The address for ``spark.master``."""
        return f"spark://{LOOPBACK}:{self._port}"

    @property
    def workers(self) -> list[int]:
        """The process ids of the workers that run."""
        return [pid for name, pid in self._running() if name != "master"]

    @property
    def processes(self) -> list[int]:
        """The process ids of master and workers; executors are children of workers."""
        return [pid for _, pid in self._running()]

    def state(self) -> dict[str, Any]:
        """Return what the master says about itself, its workers and applications."""
        with urlopen(f"http://{LOOPBACK}:{self._page}/json/", timeout=_ASK_SECONDS) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def __enter__(self) -> Self:
        """Start master and workers; returns when all workers are known to the master."""
        try:
            for name, program in self._programs.items():
                self._start(name, program)
            self._wait()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop them all, executors included."""
        self._stop()

    def _running(self) -> list[tuple[str, int]]:
        found = ((name, program.pid()) for name, program in self._programs.items())
        return [(name, pid) for name, pid in found if pid is not None]

    def _start(self, name: str, program: KeptProgram) -> None:
        if not program.own(timeout=_STOP_GRACE):
            raise self._failure(f"{program.directory} is another's")
        if not program.start(self._command(name), environment=self._environment(name)):
            raise self._failure(f"{name} could not be started")

    def _command(self, name: str) -> list[str]:
        java_class = [str(spark_home() / "bin" / "spark-class")]
        if name == "master":
            words = ["--port", str(self._port), "--webui-port", str(self._page)]
            return [*java_class, "org.apache.spark.deploy.master.Master", *self._host(), *words]
        words = ["--cores", str(self._size.cores), "--memory", self._size.memory]
        words += ["--work-dir", str(self._directory / name / "work"), "--webui-port", "0"]
        start = [*java_class, "org.apache.spark.deploy.worker.Worker", *self._host()]
        return [*start, *words, self.master]

    def _host(self) -> list[str]:
        return ["--host", LOOPBACK]

    def _environment(self, name: str) -> Mapping[str, str]:
        log = {
            "log4j2.configurationFile": LOG_CONFIG.as_uri(),
            "penstock.log": str(self._log(name)),
        }
        kept = {key: text for key, text in os.environ.items() if not key.startswith("PENSTOCK_")}
        return kept | {
            "JAVA_HOME": str(spark_java_home(find_java())),
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_DAEMON_MEMORY": _DAEMON_MEMORY,
            "SPARK_DAEMON_JAVA_OPTS": " ".join(f"-D{key}={text}" for key, text in log.items()),
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
            "SPARK_LOCAL_DIRS": str(self._directory / name / "local"),
        }

    def _log(self, name: str) -> Path:
        return self._directory / name / "spark.log"

    def _wait(self) -> None:
        """Wait until the master has seen every worker."""
        deadline = time.monotonic() + _START_LIMIT.total_seconds()
        wanted = len(self._programs) - 1
        while self._alive_workers() < wanted:
            for name, program in self._programs.items():
                if not program.running():
                    raise self._failure(f"{name} ended", name)
            if time.monotonic() > deadline:
                limit = _START_LIMIT.total_seconds()
                raise self._failure(f"not all of {wanted} workers came within {limit:g}s")
            time.sleep(_LOOK_SECONDS)

    def _alive_workers(self) -> int:
        try:
            return int(self.state()["aliveworkers"])
        except (URLError, ConnectionError, TimeoutError, json.JSONDecodeError):
            return 0  # nothing listens yet, or the page is up before what answers in JSON

    def _stop(self) -> None:
        # Workers first: they end their executors, which a master that is gone would not.
        for program in reversed(self._programs.values()):
            if program.owned:
                program.disown()
                program.wait_until_stopped(timeout=2 * _STOP_GRACE)

    def _failure(self, why: str, name: str = "master") -> ConfigurationError:
        said = [
            *last_lines(self._programs[name].output, count=3),
            *last_lines(self._log(name), count=3),
        ]
        return ConfigurationError(
            f"the standalone cluster did not start: {why}",
            code="spark.cluster",
            detail=" / ".join(said),
            hint=f"read {self._directory}/*/output.log and spark.log beside it",
        )
