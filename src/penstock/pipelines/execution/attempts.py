"""Keep a pipeline running: start its query, and start it again after transient failures."""

import logging
import time
from collections.abc import Callable
from datetime import timedelta

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.backbone.site import Site
from penstock.backbone.topics.topics import Topics
from penstock.core.backoff import Backoff
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline
from penstock.core.status.report import PartReport
from penstock.errors import ConfigurationError, TransientError
from penstock.pipelines.checkpoint.batches import committed_offsets
from penstock.pipelines.checkpoint.trimmed import Gap, Skipped, find_gaps, stopped_at
from penstock.pipelines.execution.plan import Run, current_run, prepared_query
from penstock.pipelines.execution.recovery import Recovery
from penstock.pipelines.execution.running import RunningPipeline
from penstock.pipelines.history.history import Histories
from penstock.pipelines.history.settling import Settling
from penstock.pipelines.spark.failures import TRIMMED, UNKNOWN

__all__ = ["Attempts"]

_LOG = logging.getLogger("penstock.pipelines")
_ASK_LIMIT = timedelta(seconds=10)
_BACKOFF = Backoff(timedelta(seconds=1), timedelta(seconds=15))
"""A query that finishes a batch is over its trouble, too."""


class Attempts:
    """One pipeline over its attempts; ``look`` is called about once a second.

    - A query that ends because something is away is started again, after growing waits, from its
      checkpoint. Meanwhile the pipeline is degraded and says why. If that goes on for longer than
      ``spark.retry_for`` the error is raised.
    - Its history is copied first, if it has one, and read; then it is started again for the log.
    - Where its input was trimmed before it was read it stops and names every gap; with
      ``spark.on_trimmed = "skip"`` it steps over them, and logs and reports how much was gone.
    - Everything else that ends a query is raised.
    """

    def __init__(self, graph: Graph, pipeline: Pipeline, site: Site, spark: SparkSession) -> None:
        self.pipeline = pipeline
        self.name = pipeline.name
        self._graph = graph
        self._site = site
        self._spark = spark
        self._topics = Topics(site.connection.within(_ASK_LIMIT))
        self._run: Run | None = None
        self._histories: Histories | None = None
        self._settling: Settling | None = None
        self._prepared: Callable[[], StreamingQuery] | None = None
        self._running: RunningPipeline | None = None
        self._recovery = Recovery(_BACKOFF, limit=site.settings.spark.retry_for)
        self._lossy = False
        self._skipped = Skipped()

    def prepare(self) -> None:
        """Raise if the pipeline or its checkpoint is wrong; nothing has started then."""
        try:
            if self._settled():
                self._prepared = self._prepare(self._gaps())
        except TransientError as error:
            self._later(error)

    def look(self) -> PartReport:
        """Start the query if it is due, and report; raise the error that ends the pipeline."""
        # The jobs of this thread, those for dead letters, are the pipeline's own.
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.pipeline.name)
        try:
            return self._look()
        except TransientError as error:
            return self._later(error)

    def _look(self) -> PartReport:
        trouble = self._recovery.trouble
        if trouble is not None and self._recovery.is_waiting(time.monotonic()):
            return self._waiting(trouble)
        if not self._settled():
            return self._copying()
        if self._running is None or trouble is not None:
            return self._follow(self._start())
        try:
            return self._follow(self._running)
        except ConfigurationError as error:
            if error.code != TRIMMED or not (gaps := self._gaps()):
                raise
            self._prepared = self._prepare(gaps)
            return self._follow(self._start())

    def stop(self) -> None:
        """Stop the query. It may finish the batch that it is writing, if that takes only a moment.

        Otherwise the batch is abandoned and repeated later.
        """
        if self._settling is not None:
            self._settling.stop()
        if self._run is not None:
            self._run.tables.stop()
            self._run.sink.finish()
        if self._running is not None:
            self._running.query.stop()

    def finish(self, failed: Exception | None) -> None:
        """Report the end; unless something failed, count the last batches first."""
        if self._running is not None:
            if failed is None:
                self._running.finish()
            self._site.report(self._with_skipped(self._running.ended(failed)))

    def _gaps(self) -> list[Gap]:
        names = {data.topic.name for data in self.pipeline.followed}
        reached = committed_offsets(self._spark, self._current_run().checkpoint)
        return find_gaps(reached, self._topics, names)

    def _current_run(self) -> Run:
        """Return the run, always the same; FencedError where it is no longer the current one."""
        if self._run is None:
            self._run = current_run(self._graph, self.pipeline, self._site, self._spark)
        self._run.guard()
        return self._run

    def _current_histories(self) -> Histories:
        """Return the histories of the run, always the same."""
        if self._histories is None:
            checkpoint = self._current_run().checkpoint
            self._histories = Histories(
                self._graph, self.pipeline, self._site, self._spark, checkpoint=checkpoint
            )
        return self._histories

    def _prepare(self, gaps: list[Gap]) -> Callable[[], StreamingQuery]:
        if gaps and self._site.settings.spark.on_trimmed != "skip":
            raise stopped_at(gaps, self.pipeline.name)
        self._count(gaps)
        self._lossy = bool(gaps)
        return prepared_query(
            self._graph,
            self._current_run(),
            self._site,
            self._spark,
            histories=self._current_histories(),
            lossy=self._lossy,
        )

    def _start(self) -> RunningPipeline:
        start, self._prepared = self._prepared or self._prepare(self._gaps()), None
        query = start()
        if self._running is None:
            self._running = RunningPipeline(
                self._graph,
                self._current_run(),
                self._site,
                query,
                self._spark,
                histories=self._current_histories(),
            )
        self._running.query = query
        self._recovery.started()
        return self._running

    def _count(self, gaps: list[Gap]) -> None:
        """Count the skipped offsets, and log them."""
        for gap in gaps:
            fresh = self._skipped.add(gap)
            _LOG.warning("%s skips %d offsets: %s", self.pipeline.name, fresh, gap)

    def _follow(self, running: RunningPipeline) -> PartReport:
        before = dict(running.reached)
        report = running.look()
        well, advanced = report.state == "running", running.reached != before
        self._recovery.look(time.monotonic(), running=well, advanced=advanced)
        if advanced and self._lossy:
            # The gap is behind it, or nearly: nothing else may be missing.
            running.query.stop()
            self._start()
        if running.histories.ended and not self._site.stop.is_set():
            running.query.stop()
            running.histories.finish()
            self._start()
        return self._with_skipped(report)

    def _later(self, error: TransientError) -> PartReport:
        """Schedule another attempt; raise the error if the failures have lasted too long."""
        lasted = self._recovery.has_lasted(time.monotonic())
        if error.code == UNKNOWN or self._site.stop.is_set() or lasted:
            raise error
        self.stop()
        wait = self._recovery.wait_after(error, time.monotonic())
        _LOG.warning("%s; again in %g s", error.message, wait)
        return self._waiting(error)

    def _settled(self) -> bool:
        """Whether its histories are ready to be read; if not, start preparing them."""
        if self._settling is None:
            self._settling = Settling(self._current_histories(), self.pipeline, self._spark)
        return self._settling.ready()

    def _copying(self) -> PartReport:
        return PartReport(
            part=self.pipeline.name,
            kind="pipeline",
            state="starting",
            at=time.time(),
            detail={"history": "being copied into the order of the log"},
        )

    def _waiting(self, error: TransientError) -> PartReport:
        reason = f"{error.message}; it will be restarted"
        if self._running is not None:
            return self._with_skipped(self._running.paused(reason))
        return PartReport(
            part=self.pipeline.name,
            kind="pipeline",
            state="degraded",
            at=time.time(),
            reason=reason,
        )

    def _with_skipped(self, report: PartReport) -> PartReport:
        """Return the report with the skipped offsets added."""
        if not self._skipped.offsets:
            return report
        said = f"{self._skipped.offsets} offsets, which retention deleted before they were read"
        return msgspec.structs.replace(
            report,
            detail=report.detail | {"skipped": said},
            metrics=report.metrics | {"skipped_offsets_total": float(self._skipped.offsets)},
        )
