"""A running job: it begins a run when one is due, in a thread, and reports what became of it."""

import logging
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from penstock.backbone.client.logrecord import Partition
from penstock.backbone.log.positions import PositionStore
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.backbone.site import Site
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.graph import Graph
from penstock.core.graph.job import RUN, Job, JobRun
from penstock.core.status.report import Counts, PartReport, PartState
from penstock.errors import FencedError, PenstockError
from penstock.pipelines.jobs.frames import read_all
from penstock.pipelines.jobs.schedule import Schedule
from penstock.pipelines.jobs.writing import TRANSACTION_TIMEOUT, encoded, write
from penstock.pipelines.spark.failures import first_lines, of_session
from penstock.pipelines.spark.session import session_beside

__all__ = ["RunningJob"]

_LOG = logging.getLogger("penstock.jobs")
_STOP_SECONDS = 10.0
_ASK_SECONDS = 2.0
"""How often the ends of what may ask for a run are looked at."""
_MILLISECONDS = 1_000


@dataclass(frozen=True, slots=True)
class _Ended:
    """A run that ended."""

    began_at: int
    seconds: float
    heard: dict[Partition, int]
    written: int = 0
    error: Exception | None = None


class RunningJob:
    """One job over its runs; ``look`` is called about twice a second.

    When the last run began, and what it had heard, is committed with its records. So a job that
    was killed runs again at the same time as if it had not been; a run that was interrupted has
    written nothing, and is repeated. A failed run is repeated after waits that double from
    ``rest`` to ``every``; the job is degraded meanwhile, and nothing else of the process ends.
    """

    def __init__(self, graph: Graph, job: Job, site: Site, spark: SparkSession) -> None:
        self.part = job
        self.name = job.name
        self._graph = graph
        self._site = site
        self._spark = session_beside(spark, {})
        self._id = f"{graph.app}.{job.name}"
        self._topics = Topics(site.connection)
        self._mark: Partition = (job.writes[0].topic.name, 0)
        self._schedule: Schedule | None = None
        self._thread: threading.Thread | None = None
        self._ended: _Ended | None = None
        self._ends: dict[Partition, int] = {}
        self._asked_at = 0.0
        self._trouble = ""
        self._counts = Counts()
        self._runs = self._failures = 0
        self._seconds = 0.0

    def look(self) -> PartReport:
        """Begin a run if one is due, and report; raise what ends Spark, or this process's turn."""
        if self._thread is not None and not self._thread.is_alive():
            self._thread.join()
            self._thread = None
            if self._ended is not None:
                self._take(self._ended)
        if self._thread is None and not self._site.stop.is_set():
            try:
                self._begin_if_due()
            except FencedError:
                raise
            except PenstockError as error:
                self._trouble = error.message
        return self._report("degraded" if self._trouble else "running", self._trouble)

    def stop(self) -> None:
        """Give up a run that is under way: it has written nothing."""
        if self._thread is None:
            return
        self._spark.sparkContext.cancelJobGroup(self._id)
        self._thread.join(_STOP_SECONDS)
        if self._thread.is_alive():
            _LOG.warning("%s did not stop within %g s; it writes nothing", self._id, _STOP_SECONDS)

    def finish(self, failed: Exception | None) -> None:
        """Report the end."""
        text = failed.message if isinstance(failed, PenstockError) else str(failed or "")
        self._site.report(self._report("failed" if failed else "stopped", text))

    def _begin_if_due(self) -> None:
        if self._schedule is None:
            self._schedule = self._known()
        if time.monotonic() - self._asked_at > _ASK_SECONDS:
            self._asked_at, self._ends = time.monotonic(), self._asking_ends()
        now = round(time.time() * _MILLISECONDS)
        if now < self._schedule.next_at(self._ends):
            return
        asked = self._schedule.last_at is not None and self._schedule.is_asked(self._ends)
        self._ended = None
        self._thread = threading.Thread(
            target=self._work, args=(now, asked, dict(self._ends)), name=self._id, daemon=True
        )
        self._thread.start()

    def _known(self) -> Schedule:
        position = PositionStore(self._site.connection).read(self._id)
        asking = {data.topic.name for data in self.part.asked_by}
        return Schedule(
            self.part.every,
            self.part.rest,
            last_at=position.get(self._mark),
            heard={each: end for each, end in position.items() if each[0] in asking},
        )

    def _asking_ends(self) -> dict[Partition, int]:
        return {
            (data.topic.name, number): high
            for data in self.part.asked_by
            for number, (_, high) in self._topics.ends(data.topic.name, committed=True).items()
        }

    def _work(self, now: int, asked: bool, heard: dict[Partition, int]) -> None:
        since, written, failed = time.monotonic(), 0, None
        try:
            written = self._run(now, asked=asked, heard=heard)
        except Exception as error:  # noqa: BLE001 - shown, and tried again
            failed = error
        self._ended = _Ended(now, time.monotonic() - since, heard, written, failed)

    def _run(self, now: int, *, asked: bool, heard: dict[Partition, int]) -> int:
        job, context = self.part, self._spark.sparkContext
        # Of this thread: its jobs share the cores fairly, and can be given up.
        context.setLocalProperty("spark.scheduler.pool", job.name)
        context.setJobGroup(self._id, f"job {job.name}", interruptOnCancel=True)
        connection = self._site.connection
        # Whoever makes the producer later, in another process, keeps this run from writing.
        with TransactionalProducer(connection, self._id, timeout=TRANSACTION_TIMEOUT) as producer:
            read = read_all(self._graph, job, self._site, self._spark)
            began_at = datetime.fromtimestamp(now / _MILLISECONDS, UTC)
            run = JobRun(started_at=began_at, offsets=read.offsets, asked=asked)
            by_name: dict[str, Any] = {RUN: run} if job.takes_run else {}
            records = encoded(job, job.function(*read.frames, **by_name))
            if self._site.stop.is_set():
                return 0
            position = {**heard, self._mark: now}
            write(producer, records, name=self._id, position=position)
        return len(records)

    def _take(self, ended: _Ended) -> None:
        """Take note of a run that ended."""
        if self._schedule is None or self._site.stop.is_set():
            return
        self._runs += 1
        self._seconds = ended.seconds
        if ended.error is None:
            self._schedule.done(ended.began_at, ended.heard)
            self._trouble = ""
            self._counts = Counts(written=self._counts.written + ended.written)
            return
        if isinstance(ended.error, FencedError):
            raise FencedError(
                f"job {self.part.name!r} stopped: another process runs it too",
                code="job.taken-over",
                detail=ended.error.message,
                hint="run only one of them",
            ) from ended.error
        if (named := of_session(ended.error)) is not ended.error:
            raise named
        self._failures += 1
        self._schedule.failed(ended.began_at)
        said = ended.error.message if isinstance(ended.error, PenstockError) else str(ended.error)
        self._trouble = f"its last run failed: {type(ended.error).__name__}: {first_lines(said)}"
        _LOG.warning("%s: %s", self._id, self._trouble, exc_info=ended.error)

    def _report(self, state: PartState, reason: str) -> PartReport:
        detail = {}
        if self._thread is not None and self._thread.is_alive():
            detail["run"] = "under way"
        elif self._schedule is not None and self._schedule.last_at is not None:
            at = datetime.fromtimestamp(self._schedule.last_at / _MILLISECONDS, UTC)
            detail["last run"] = f"{at:%H:%M:%S}, {self._seconds:.1f} s"
        return PartReport(
            part=self.part.name,
            kind=self.part.kind,
            state=state,
            at=time.time(),
            reason=reason,
            counts=self._counts,
            detail=detail,
            metrics={
                "job_runs_total": float(self._runs),
                "job_failures_total": float(self._failures),
                "job_last_run_seconds": self._seconds,
            },
        )
