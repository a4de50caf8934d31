"""A running pipeline: it follows the query, writes dead letters, and reports."""

import logging
import time
from collections.abc import Iterator
from datetime import timedelta

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.backbone.site import Site
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.data import Lake
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import RealTime
from penstock.core.status.exposition import series
from penstock.core.status.rates import Rates
from penstock.core.status.report import PartReport, PartState
from penstock.errors import PenstockError, TransientError
from penstock.pipelines.checkpoint.batches import Offsets, committed_offsets
from penstock.pipelines.checkpoint.progress import (
    Progress,
    dropped_rows,
    identity,
    observed,
    offsets,
    planned,
    recent_progress,
    was_batch,
)
from penstock.pipelines.execution.batchwatch import BatchWatch
from penstock.pipelines.execution.joins import ENDLESS, HINT, joins_streams, keeps_rows_for_ever
from penstock.pipelines.execution.measures import Measures
from penstock.pipelines.execution.plan import Run
from penstock.pipelines.gate.reading import REJECTED
from penstock.pipelines.gate.sweeper import Sweeper
from penstock.pipelines.history.history import Histories
from penstock.pipelines.rollups.latesweeper import LateSweeper
from penstock.pipelines.rollups.native import why_not_native
from penstock.pipelines.spark.failures import UNKNOWN, of_query

__all__ = ["RunningPipeline"]

_ASK_LIMIT = timedelta(seconds=2)
"""The time-out of questions whose answer is useless when it comes late."""
_SAVE_SECONDS = 10.0
_GUARD_SECONDS = 5.0
"""How often a run checks whether it was rebuilt; its sink finds out at once."""
_LOG = logging.getLogger("penstock.pipelines")


class RunningPipeline:
    """Follows one query from its progress. ``look`` is called about once a second.

    It counts the rows of finished batches: ``received`` are all rows of the topics, ``passed``
    those that the function was given, ``filtered`` the deletions of a table, ``in_flight`` refused
    rows that are not on the dead-letter topic yet, ``written`` the rows of the output. In real-time
    mode only ``received`` and dead letters are known. Of a table that is looked up only dead
    letters count.
    """

    def __init__(
        self,
        graph: Graph,
        run: Run,
        site: Site,
        query: StreamingQuery,
        spark: SparkSession,
        *,
        histories: Histories,
    ) -> None:
        self.pipeline = pipeline = run.pipeline
        self._run = run
        self.query = query
        """The query that runs now; another one may take its place and go on."""
        self._site = site
        self._real_time = isinstance(pipeline.trigger, RealTime)
        self.histories = histories
        letters, seams = graph.dead_letters.name, self.histories.seams
        self._sweeper = Sweeper(graph, pipeline, site, spark, into=letters, after=seams)
        self._late: LateSweeper | None = None
        if pipeline.aggregation and not why_not_native(pipeline):
            self._late = LateSweeper(graph, pipeline, site, spark, run.checkpoint)
        self._sweepers = [each for each in (self._sweeper, self._late) if each is not None]
        self._topics = Topics(site.connection.within(_ASK_LIMIT))
        self._measures = Measures(native=self._late is not None)
        self._earlier = [0] * len(self._sweepers)
        """What the sweepers have written of batches that an earlier run had finished."""
        self._seen = (-1, "")
        self._batches = BatchWatch(site.settings.spark.batch_limit)
        self.reached = committed_offsets(spark, run.checkpoint)
        """The offsets up to which all work is done."""
        self._unswept = dict(self.reached)
        self._trouble = ""
        self._saved_at = -_SAVE_SECONDS
        self._guarded_at = time.monotonic()
        self._rates = Rates(time.monotonic())
        self._standing = {"writes": "at least once"} if self._real_time else {}
        self._joins_seen = False

    def look(self) -> PartReport:
        """Process the query's progress, return a report; raise the error that ended the query."""
        try:
            return self._look()
        except PenstockError:
            # Whatever it looks like: if it was rebuilt, that is the reason.
            self._run.guard()
            raise

    def _look(self) -> PartReport:
        if time.monotonic() - self._guarded_at > _GUARD_SECONDS:
            self._run.guard()
            self._guarded_at = time.monotonic()
        # First: whoever is at its end now has no batch left that could be missed below.
        active, self._trouble = self.query.isActive, ""
        try:
            self._catch_up()
        except TransientError as error:
            self._trouble = f"dead letters cannot be written yet: {error.message}"
        except (PySparkException, Py4JError) as error:
            raise of_query(error, self.pipeline) from error
        if not active and (ended := self.query.exception()) is not None:
            raise of_query(ended, self.pipeline)
        if not active and not self._site.stop.is_set():
            raise TransientError(f"pipeline {self.pipeline.name!r} stopped by itself", code=UNKNOWN)
        return self._report()

    def paused(self, reason: str) -> PartReport:
        """Return a report while no query runs."""
        return self._filled("degraded", reason, lag=None)

    def finish(self) -> None:
        """Count the last batches, and make the sweeper's position durable."""
        try:
            self._catch_up()
            self._save()
        except TransientError:
            # What is not swept now is swept at the next start, from the durable position.
            self._trouble = "dead letters are written at the next start"
        finally:
            for sweeper in self._sweepers:
                sweeper.close()

    def ended(self, error: Exception | None) -> PartReport:
        """Return the last report."""
        reason = error.message if isinstance(error, PenstockError) else str(error or "")
        return self._filled("failed" if error else "stopped", reason, lag=None)

    def _catch_up(self) -> None:
        if self._unswept:
            # Batches of an earlier run whose dead letters a crash may have kept from being written.
            self._sweeper.catch_up(self._unswept)
            if self._late is not None:
                self._late.catch_up_batches()
            self._earlier = [each.written for each in self._sweepers]
            self._unswept = {}
        for progress in self._fresh():
            self._follow(progress)
            self.histories.follow(progress)
        if time.monotonic() - self._saved_at > _SAVE_SECONDS:
            self._sweep_lookups()
            self._save()
            self._saved_at = time.monotonic()

    def _follow(self, progress: Progress) -> None:
        start, end = offsets(progress)
        rejected = sum(row[REJECTED] for row in observed(progress, REJECTED))
        self._sweeper.follow(start, end, rejected=rejected > 0 or self._real_time)
        if self._late is not None and was_batch(progress):
            dropped = dropped_rows(progress) > 0
            from_progress = planned(progress)
            self._late.follow_batch(
                progress["batchId"], dropped=dropped, from_progress=from_progress
            )
            if self._late.unknown:
                self._standing["late records"] = f"unknown of {self._late.unknown:,} offsets"
        self._measures.add(progress)
        self._measures.add_written(self._run.sink.written.pop(progress["batchId"], 0))
        self.reached |= end
        self._seen = identity(progress)
        self._look_at_joins(progress)

    def _sweep_lookups(self) -> None:
        """Write the dead letters of tables that are looked up: they are in no batch's range."""
        for data in self.pipeline.lookups:
            if not isinstance(data, Lake):
                ends = self._topics.ends(data.topic.name, committed=True)
                reached = {(data.topic.name, number): high for number, (_, high) in ends.items()}
                before = self._sweeper.written
                self._sweeper.follow({}, reached, rejected=True)
                self._measures.add_unusable(self._sweeper.written - before)

    def _look_at_joins(self, progress: Progress) -> None:
        """Say once that a join of streams has no bound in time."""
        if self._joins_seen or not joins_streams(progress):
            return
        self._joins_seen = True
        if keeps_rows_for_ever(self.query):
            self._standing["join"] = ENDLESS
            _LOG.warning("%s joins streams %s; %s", self.pipeline.name, ENDLESS, HINT)

    def _save(self) -> None:
        for sweeper in self._sweepers:
            sweeper.save()

    def _count_swept(self) -> None:
        letters, *late = (
            each.written - earlier
            for each, earlier in zip(self._sweepers, self._earlier, strict=True)
        )
        self._measures.swept(letters, late=sum(late), all_rejected=self._real_time)

    def _fresh(self) -> Iterator[Progress]:
        """Yield the progress that was not seen yet, oldest first."""
        yield from recent_progress(self.query, self._seen)

    def _report(self) -> PartReport:
        try:
            lag = self._lag()
        except TransientError as error:
            return self._filled("degraded", error.message, lag=None)
        trouble = self._trouble or self._batches.trouble(
            active=self.query.status["isTriggerActive"], seen=self._seen
        )
        if trouble:
            return self._filled("degraded", trouble, lag=lag)
        return self._filled(self._state(), "", lag=lag)

    def _state(self) -> PartState:
        if self._site.stop.is_set():
            return "stopping"
        return "starting" if self.query.status["message"].startswith("Initializing") else "running"

    def _lag(self) -> Offsets:
        """Return how far each partition is behind its end."""
        behind: Offsets = {}
        for data in self.pipeline.followed:
            topic = data.topic.name
            for number, (low, high) in self._topics.ends(topic).items():
                reached = self.reached.get((topic, number), low)
                behind[topic, number] = max(0, high - reached)
        return behind

    def _filled(self, state: PartState, reason: str, *, lag: Offsets | None) -> PartReport:
        self._count_swept()
        counts = self._measures.counts()
        rate_in, rate_out = self._rates.since_last(counts, at=time.monotonic())
        at = time.time()
        metrics = self._measures.series(at)
        if not self._real_time and not isinstance(self.pipeline.writes, Lake):
            metrics["sink_task_seconds_total"] = self._run.sink.seconds
        for (topic, number), behind in (lag or {}).items():
            labels = {"topic": topic, "partition": str(number)}
            metrics[series("partition_lag_records", **labels)] = behind
        return PartReport(
            part=self.pipeline.name,
            kind="pipeline",
            state=state,
            at=at,
            reason=reason,
            counts=counts,
            lag=None if lag is None else sum(lag.values()) + self.histories.left,
            rate_in=rate_in,
            rate_out=rate_out,
            detail=self.histories.detail() | self._standing | self._measures.detail(at),
            metrics=metrics | self.histories.metrics(),
        )
