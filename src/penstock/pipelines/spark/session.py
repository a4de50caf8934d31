"""The Spark session: one JVM for each process, set up so that nobody has to tune it first."""

import atexit
import logging
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from penstock.core.settings.keys import ENVIRONMENT_PREFIX
from penstock.core.settings.masking import NAME_PATTERN, TEXT_PATTERN
from penstock.core.settings.settings import Settings, SparkSettings
from penstock.errors import ConfigurationError, TransientError
from penstock.machine.files import last_lines, write_atomically
from penstock.machine.java.jars import JarSet, jar_paths
from penstock.machine.java.java import find_java, spark_java_home
from penstock.machine.java.properties import properties_text
from penstock.machine.places import Places
from penstock.machine.ports import LOOPBACK
from penstock.machine.private import make_private
from penstock.machine.process.logfile import LogWatch
from penstock.pipelines.spark import pythondaemon
from penstock.pipelines.spark.classes import archive_words, quoted
from penstock.pipelines.spark.cluster import (
    CLUSTER_SHUFFLES,
    cluster_options,
    is_local,
    python_path,
)
from penstock.pipelines.spark.patterns import register_search
from penstock.pipelines.spark.scratch import Scratch

__all__ = [
    "jvm_end",
    "local_session",
    "scratch_of",
    "session",
    "session_beside",
    "session_log",
    "shuffle_partitions",
]

STOP_TIMEOUT = timedelta(seconds=20)
"""How long the JVM may take to end by itself before it is killed."""

PROGRESS_KEPT = 1000
"""This many batches may end between two checks of a query without being missed."""

_TASK_ATTEMPTS = 4
"""Local Spark gives a task one attempt, so a Python worker that dies would end the query."""

_STACK = "8m"
"""Spark looks for an interruption in the text of a stopped batch by a pattern that goes a step
deeper with every character; with a stack of the usual size the query's thread dies of it."""

_TEST_MEMORY = "2g"
"""One session serves all tests of a run, and each leaves something behind."""

_TEST_OPTIONS = {"spark.sql.streaming.pollingDelay": "50ms"}
"""A query that waits asks Kafka for news a hundred times a second unless told otherwise; a test has
several, each of which would keep the processor busy."""

_QUIET = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j.clientserver")
"""Loggers of traces whose exceptions are raised as well, and told in a line by who takes them."""

_ANY_LOCAL = "local[*]"
_SUBMIT = "PYSPARK_SUBMIT_ARGS"
_WORKERS_NEED = frozenset({"PENSTOCK_CACHE"})
_LINES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of one session: its log, what the JVM prints, and what dies with it."""

    log: Path
    printed: Path
    scratch: Scratch

    @classmethod
    def of(cls, places: Places, name: str) -> Self:
        make_private(places.home)
        places.logs.mkdir(parents=True, exist_ok=True)
        return cls(
            places.logs / f"{name}.spark.log",
            places.logs / f"{name}.spark.out",
            Scratch(places.home / "spark", name=name),
        )


@contextmanager
def session(
    settings: Settings, places: Places, *, name: str, held: int = 0
) -> Iterator[SparkSession]:
    """Give this process's Spark session and end it, JVM included, with the block.

    A session that runs already in this process is joined, and left running. ``held`` is how many
    tasks keep a slot for as long as they run; a master of ``local[*]`` has so many more.

    Raises ConfigurationError where Java or the jars are missing or the JVM does not start.
    """
    # The active session is a thread's own; the context is the process's.
    if SparkContext._active_spark_context is not None:  # noqa: SLF001 - there is no public way
        yield register_search(SparkSession.builder.getOrCreate())
        return
    files = _Files.of(places, name)
    try:
        found = _start(settings.spark, files, name=name, held=held)
        bounds = settings.logs
        try:
            with LogWatch([files.printed], max_bytes=bounds.max_bytes, kept=bounds.kept):
                yield found
        finally:
            _end(found)
    finally:
        files.scratch.remove()


def local_session(directory: Path | None = None, *, java: Sequence[str] = ()) -> SparkSession:
    """Start a local Spark session for tests: two cores, files below a directory of its own.

    Without a directory a temporary one is made, and removed when the process ends. The caller
    stops the session; the JVM ends with the process, however the process ends.
    """
    if directory is None:
        directory = Path(tempfile.mkdtemp(prefix="penstock-spark-"))
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
    master = f"local[2,{_TASK_ATTEMPTS}]"
    options = _TEST_OPTIONS | {"spark.driver.defaultJavaOptions": quoted(java)}
    settings = replace(SparkSettings(), master=master, driver_memory=_TEST_MEMORY, options=options)
    return _start(settings, _Files.of(Places(directory), "test"), name="test")


def jvm_end(spark: SparkSession) -> str | None:
    """Return how the JVM of a session ended, with the last it printed; None while it runs."""
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - there is no public way
    status = gateway.proc.poll()
    if status is None:
        return None
    said = " / ".join(last_lines(gateway.printed, count=_LINES_SHOWN)) or "it printed nothing"
    return f"Spark's JVM has ended with status {status}: {said}"


def session_log() -> Path | None:
    """Return the file of Spark's log in this process; None where no session of ours runs."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - there is no public way
    return getattr(gateway, "log", None)


def scratch_of(spark: SparkSession) -> Path:
    """Return a directory of a session that is removed with it."""
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - there is no public way
    return Path(gateway.scratch)


def session_beside(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Return another session of the same Spark, with settings and views of its own."""
    found = register_search(spark.newSession())
    for key, value in settings.items():
        found.conf.set(key, value)
    return found


def shuffle_partitions(spark: SparkSession) -> int:
    """Return into how many partitions a session cuts what it shuffles."""
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)


def _start(settings: SparkSettings, files: _Files, *, name: str, held: int = 0) -> SparkSession:
    # Read by PySpark itself and by the scripts that start the JVM; a SPARK_HOME of another version
    # or a `python3` without our packages would fail far from its cause.
    os.environ.update(
        JAVA_HOME=str(spark_java_home(find_java())),
        SPARK_HOME=str(Path(pyspark.__file__).parent),
        PYSPARK_PYTHON=settings.options.get("spark.pyspark.python", sys.executable),
        PYSPARK_DRIVER_PYTHON=sys.executable,
    )
    _quieten()
    conf = SparkConf(loadDefaults=False)
    options = _options(settings, files, name=name, held=held)
    for key, value in options.items():
        conf.set(key, value)
    found: SparkSession | None = None
    try:
        with _interrupts_later():
            gateway = _launch(options, files)
            found = SparkSession(SparkContext(conf=conf, gateway=gateway))
    except KeyboardInterrupt:
        if found is not None:
            _end(found)
        raise
    # Where no stream was ever started, state in a batch misses what only this sets up.
    found.streams.active  # noqa: B018 - asked for its effect
    return register_search(found)


def _quieten() -> None:
    """Keep traces of Java and Python off the terminal and the log."""
    for name in _QUIET:
        # By PySpark's own class, or its calls would not fit where somebody wants to see them.
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def _options(settings: SparkSettings, files: _Files, *, name: str, held: int) -> dict[str, str]:
    local = is_local(settings.master)
    cores = len(os.sched_getaffinity(0))
    options = {
        "spark.app.name": f"penstock.{name}",
        "spark.master": _master(settings.master, cores + held),
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraJavaOptions": _java_options(files, local=local),
        "spark.local.dir": str(files.scratch.path),
        "spark.sql.warehouse.dir": str(files.scratch.path / "warehouse"),
        **_FIXED,
    }
    shuffles = settings.shuffle_partitions or (cores if local else CLUSTER_SHUFFLES)
    options["spark.sql.shuffle.partitions"] = str(shuffles)
    jars = [str(path) for path in jar_paths(JarSet.SPARK)]
    if local:
        # One JVM is everything: its class path spares copying the jars at each start.
        options["spark.driver.extraClassPath"] = os.pathsep.join(jars)
        options["spark.driver.host"] = options["spark.driver.bindAddress"] = LOOPBACK
        options["spark.executorEnv.PYTHONPATH"] = python_path()
        options["spark.python.daemon.module"] = pythondaemon.__name__
    else:
        options |= cluster_options(settings.master, jars)
    return options | settings.plain_options()


_FIXED: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    # Whatever Spark prints of its settings, of plans and of their options.
    "spark.redaction.regex": NAME_PATTERN,
    "spark.redaction.string.regex": TEXT_PATTERN,
    "spark.ui.showConsoleProgress": "false",
    # For the page that is switched off; each holds its whole plan, and a stream adds some a second.
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "2000",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
    # Otherwise every task makes a file of its own, in every partition of a table.
    "spark.databricks.delta.optimizeWrite.enabled": "true",
    # So much, as it is shuffled, becomes one file: a large batch is written by many tasks.
    "spark.databricks.delta.optimizeWrite.binSize": "8m",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.streaming.stopTimeout": "30s",
    # Late records are judged by what the progress of their batch says.
    "spark.sql.streaming.numRecentProgressUpdates": str(PROGRESS_KEPT),
    # Otherwise a rebuild takes all its past as one batch where one of its sources is a clock.
    "spark.sql.streaming.triggerAvailableNowWrapper.enabled": "true",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Together: otherwise every partition of every stateful step has caches and buffers of its own.
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "256",
}


def _java_options(files: _Files, *, local: bool) -> str:
    properties = {
        "log4j2.configurationFile": Path(__file__).with_name("log4j2.properties").as_uri(),
        "penstock.log": str(files.log),
        "java.io.tmpdir": str(files.scratch.path),
    }
    defined = [f"-D{name}={value}" for name, value in properties.items()]
    # Without memory some of its threads die and others wait for them: better all at once.
    found = ["-XX:+UseParallelGC", "-XX:+ExitOnOutOfMemoryError", f"-Xss{_STACK}"]
    return quoted([*found, *defined, *(archive_words() if local else ())])


def _master(master: str, slots: int) -> str:
    return f"local[{slots},{_TASK_ATTEMPTS}]" if master == _ANY_LOCAL else master


def _launch(options: Mapping[str, str], files: _Files) -> Any:
    """Start the JVM, what it prints in a file.

    Its options go through a file that only the owner reads and that is gone when it runs: everybody
    on the machine sees a command line. The JVM reads a pipe from this process and exits at its end,
    so that it dies with us even when we are killed.
    """
    private = files.scratch.path / "options.properties"
    write_atomically(private, properties_text(options), mode=0o600)
    words = ["--properties-file", str(private), "--load-spark-defaults", "pyspark-shell"]
    files.printed.write_bytes(b"")
    # Appending: it is emptied when it has grown too large.
    with files.printed.open("ab") as printed, _jvm_environment(shlex.join(words)):
        try:
            start: Callable[..., Any] = launch_gateway
            gateway = start(None, {"stdout": printed, "stderr": subprocess.STDOUT})
        except PySparkRuntimeError as error:
            raise ConfigurationError(
                "Spark's JVM does not start",
                code="spark.not-started",
                detail=" / ".join(last_lines(files.printed, count=_LINES_SHOWN)),
                hint=f"run penstock doctor; the output of the JVM is in {files.printed}",
            ) from error
        finally:
            private.unlink(missing_ok=True)
    # Beside the process, which PySpark keeps here.
    gateway.printed, gateway.log = files.printed, files.log
    gateway.scratch = files.scratch.path
    return gateway


@contextmanager
def _jvm_environment(submit_arguments: str) -> Iterator[None]:
    """Give this process, for the block, the environment that the JVM and its workers are to have.

    They have the settings already: Penstock's own variables, among them passwords, are left out.
    PySpark copies the environment of the process, and takes no other.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(ENVIRONMENT_PREFIX) and name not in _WORKERS_NEED
    }
    for name in kept:
        del os.environ[name]
    before = os.environ.get(_SUBMIT)
    os.environ[_SUBMIT] = submit_arguments
    try:
        yield
    finally:
        os.environ |= kept
        if before is None:
            del os.environ[_SUBMIT]
        else:
            os.environ[_SUBMIT] = before


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Hold Ctrl-C back until the block has ended, and keep PySpark from taking it for good.

    A JVM that has just been started, and that nobody has a hold of yet, would stay behind.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = threading.Event()
    ours = signal.signal(signal.SIGINT, lambda *_: asked.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, ours)
    if asked.is_set():
        signal.raise_signal(signal.SIGINT)


def _end(found: SparkSession) -> None:
    """Stop the session and its JVM, by force after :data:`STOP_TIMEOUT`."""
    # PySpark has no public way to end its JVM.
    gateway: Any = SparkContext._gateway  # noqa: SLF001
    try:
        found.stop()
    finally:
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
        gateway.shutdown()
        _end_process(gateway.proc)


def _end_process(process: "subprocess.Popen[bytes]") -> None:
    if process.stdin:
        process.stdin.close()
    try:
        process.wait(STOP_TIMEOUT.total_seconds())
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.wait()
        raise TransientError(
            "Spark's JVM did not end by itself and was killed",
            code="spark.not-stopped",
            detail=f"after {STOP_TIMEOUT.total_seconds():g}s",
        ) from error
