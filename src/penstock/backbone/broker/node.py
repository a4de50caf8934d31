"""One embedded broker: its directory, its JVM, and why it did not start."""

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path

from penstock.backbone.broker.config import java_options, log_properties, server_properties
from penstock.backbone.broker.plan import ClusterPlan, cluster_of
from penstock.core.settings.masking import names_secret
from penstock.core.settings.settings import KafkaSettings
from penstock.errors import ConfigurationError
from penstock.machine.files import last_lines, write_atomically
from penstock.machine.java.classarchive import archive_options
from penstock.machine.java.jars import JarSet, jar_paths
from penstock.machine.java.java import find_java
from penstock.machine.java.properties import properties_text
from penstock.machine.process.ownedprogram import KeptProgram

__all__ = ["STOP_GRACE", "BrokerNode"]

STOP_GRACE = timedelta(seconds=15)
_FORMAT_LIMIT = timedelta(seconds=60)
_DEATH_LIMIT = timedelta(seconds=10)
_LINES_SHOWN = 12
_FULL_DISK_BYTES = 16 << 20

# What the broker's log says, the code of our error, and what it means.
_CAUSES = (
    ("No space left on device", "broker.disk-full", "the disk is full"),
    ("Address already in use", "broker.port-taken", "another program took its port"),
    (
        "Failed to acquire lock on file",
        "broker.directory",
        "another Kafka broker uses its directory",
    ),
    ("Could not reserve enough space", "broker.memory", "there is not enough memory for its heap"),
    ("insufficient memory", "broker.memory", "there is not enough memory"),
    ("OutOfMemoryError", "broker.memory", "its heap is too small (kafka.heap_mb)"),
    ("Permission denied", "broker.directory", "it may not write to its directory"),
    ("AccessDeniedException", "broker.directory", "it may not write to its directory"),
    ("Invalid cluster.id", "broker.directory", "its directory belongs to another cluster"),
    ("meta.properties", "broker.directory", "its directory is damaged"),
)


@dataclass(frozen=True)
class BrokerNode:
    """One broker by its number, from 1, in a directory of its own below the cluster's."""

    cluster_directory: Path
    number: int
    settings: KafkaSettings

    @property
    def directory(self) -> Path:
        """The directory of this broker."""
        return self.cluster_directory / f"node-{self.number}"

    @property
    def data(self) -> Path:
        """Its share of the log."""
        return self.directory / "data"

    @property
    def log(self) -> Path:
        """The file it logs to."""
        return self.directory / "server.log"

    @cached_property
    def kept(self) -> KeptProgram:
        """The process, which many may own."""
        return KeptProgram(self.directory, grace=STOP_GRACE)

    def start(self, plan: ClusterPlan) -> None:
        """Start the JVM, which must not run; formats the directory the first time."""
        java = self._java()
        self._check_cluster(plan)
        self.log.unlink(missing_ok=True)
        if not self.data.exists():
            self._format(self._java(writes_archive=False), plan)
        config = self._write_config("server.properties", plan, self.data.name)
        if not self.kept.start([*java, "kafka.Kafka", config], environment=_environment()):
            raise self.failure()

    def kill(self) -> None:
        """Kill the JVM as a crash would; returns when it is gone."""
        if (pid := self.kept.pid()) is not None:
            os.kill(pid, signal.SIGKILL)
            self.kept.wait_until_stopped(timeout=_DEATH_LIMIT)

    def failure(self, problem: str = "did not start") -> ConfigurationError:
        """Return the error for a broker that is not up, with the end of its output."""
        said = [*last_lines(self.kept.output, count=_LINES_SHOWN), *self._log_end()]
        code, why = "broker.failed", ""
        if shutil.disk_usage(self.directory).free < _FULL_DISK_BYTES:
            code, why = "broker.disk-full", "the disk is full"
        for words, known_code, meaning in _CAUSES:
            if any(words in line for line in said):
                code, why = known_code, meaning
                break
        return ConfigurationError(
            f"the embedded broker in {self.directory} {problem}{f': {why}' if why else ''}",
            code=code,
            detail="\n  ".join(said) or "it printed nothing",
            hint=f"start it again; if it fails again, read {self.log}; "
            f"to start again without its records, delete {self.cluster_directory}",
        )

    def _log_end(self) -> list[str]:
        # The reason is in the lines of warnings and errors; what follows them is the shutdown.
        lines = last_lines(self.log, count=400)
        loud = [
            line for line in lines if " ERROR " in line or " FATAL " in line or "Exception" in line
        ]
        return loud[-_LINES_SHOWN:] or lines[-_LINES_SHOWN:]

    def _check_cluster(self, plan: ClusterPlan) -> None:
        if not self.data.exists():
            return
        found = cluster_of(self.data)
        if found != plan.cluster_id:
            raise ConfigurationError(
                f"{self.data} does not belong to this cluster",
                code="broker.directory",
                detail=f"expected cluster {plan.cluster_id}, found {found or 'none'}",
                hint=f"delete {self.cluster_directory}, or set home to another directory",
            )

    def _format(self, java: list[str], plan: ClusterPlan) -> None:
        # Beside its place first: an interruption leaves nothing that looks formatted.
        fresh = self.directory / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        config = self._write_config("format.properties", plan, fresh.name)
        arguments = ["format", "--cluster-id", plan.cluster_id, "--config", config]
        with self.kept.output.open("wb") as output:
            try:
                subprocess.run(
                    [*java, "-XX:TieredStopAtLevel=1", "kafka.tools.StorageTool", *arguments],
                    cwd=self.directory,
                    env=_environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    timeout=_FORMAT_LIMIT.total_seconds(),
                    check=True,
                )
            except subprocess.SubprocessError as error:
                raise self.failure("could not format its directory") from error
        fresh.rename(self.data)
        Path(config).unlink()

    def _write_config(self, name: str, plan: ClusterPlan, data: str) -> str:
        node = plan.nodes[self.number - 1]
        properties = server_properties(plan, node, settings=self.settings, data=data)
        write_atomically(self.directory / name, properties_text(properties))
        return str(self.directory / name)

    def _java(self, *, writes_archive: bool = True) -> list[str]:
        java, jars = find_java(), jar_paths(JarSet.KAFKA)
        classes = archive_options("kafka", java, jars, writes=writes_archive)
        log_config = self.directory / "log4j2.properties"
        write_atomically(log_config, properties_text(log_properties(self.log.name)))
        options = [*java_options(self.settings, log_config=log_config), *classes]
        return [str(java.executable), *options, "-cp", os.pathsep.join(map(str, jars))]


def _environment() -> dict[str, str]:
    """Return the JVM's environment, without our own settings and anything that may be a secret."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PENSTOCK_") and not names_secret(name)
    }
