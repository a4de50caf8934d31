"""Maintain the lake tables that the pipelines of this process write, while they run."""

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.backbone.site import Site
from penstock.core.graph.data import Lake
from penstock.core.graph.parts import Pipeline
from penstock.core.status.report import PartReport
from penstock.errors import PenstockError
from penstock.pipelines.lake.table import lake_path
from penstock.pipelines.lake.upkeep import Upkept, maintain, upkeep_session
from penstock.pipelines.spark.failures import first_lines

__all__ = ["Caretaker", "caretaker", "cleaning_span"]

_LOG = logging.getLogger("penstock.lake")
_FIRST_WAIT = timedelta(minutes=1)
"""Pipelines have begun by then."""
_SHORTEST_CLEANING, _LONGEST_CLEANING = timedelta(hours=1), timedelta(days=1)
_CLEANINGS = 7
"""How often old files are looked for within the time that they are kept."""
_FAILURES = 3
"""After this many failed upkeeps in a row the pipeline is degraded."""
_STOP_SECONDS = 5.0
_POOL = _GROUP = "upkeep"


@contextmanager
def caretaker(
    pipelines: Iterable[Pipeline], site: Site, spark: SparkSession
) -> Iterator["Caretaker"]:
    """Give a caretaker that works until the block ends; it abandons an unfinished pass then."""
    lakes = {each.writes.name: each.writes for each in pipelines if isinstance(each.writes, Lake)}
    found = Caretaker(list(lakes.values()), site, spark)
    interval = site.settings.lake.upkeep_interval
    if not lakes or not interval:
        yield found
        return
    thread = threading.Thread(target=found.work, args=(interval,), name="upkeep", daemon=True)
    thread.start()
    try:
        yield found
    finally:
        found.stop.set()
        spark.sparkContext.cancelJobGroup(_GROUP)
        thread.join(_STOP_SECONDS)
        if thread.is_alive():
            _LOG.warning("the upkeep of the lake did not finish within %g s", _STOP_SECONDS)


class Caretaker:
    """One pass over all tables after the other, each after an interval."""

    def __init__(self, lakes: list[Lake[Any]], site: Site, spark: SparkSession) -> None:
        self.stop = threading.Event()
        self._lakes = lakes
        self._site = site
        self._spark = spark
        self._done: dict[str, tuple[datetime, Upkept]] = {}
        self._cleaned: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._trouble: dict[str, str] = {}

    def work(self, interval: timedelta) -> None:
        """Maintain the tables until told to stop; report failures and retry."""
        wait = min(interval, _FIRST_WAIT)
        spark = upkeep_session(self._spark)
        context = spark.sparkContext
        # Settings of the thread: its jobs share the cores fairly, and can be given up.
        context.setLocalProperty("spark.scheduler.pool", _POOL)
        context.setJobGroup(_GROUP, "upkeep of the lake", interruptOnCancel=True)
        while not self.stop.wait(wait.total_seconds()):
            wait = interval
            for lake in self._lakes:
                if not self.stop.is_set():
                    self._look_after(spark, lake)

    def with_upkeep(self, report: PartReport, pipeline: Pipeline) -> PartReport:
        """Return a pipeline's report with what was done to the table that it writes."""
        table = pipeline.writes.name
        if table in self._done:
            at, done = self._done[table]
            detail = {"upkeep": f"{at:%H:%M:%S} {done}"}
            report = msgspec.structs.replace(report, detail=report.detail | detail)
        if self._failures.get(table, 0) >= _FAILURES and report.state == "running":
            reason = self._trouble[table]
            report = msgspec.structs.replace(report, state="degraded", reason=reason)
        return report

    def _look_after(self, spark: SparkSession, lake: Lake[Any]) -> None:
        now, path = datetime.now(UTC), lake_path(lake.name, self._site)
        clean = self._is_cleaning_due(lake)
        try:
            done = maintain(spark, lake, path, now=now, clean=clean)
        except (PenstockError, PySparkException, Py4JError, OSError) as error:
            if not self.stop.is_set():
                self._failed(lake.name, first_lines(str(error)))
            return
        self._failures[lake.name] = 0
        self._done[lake.name] = (now, done)
        if clean and done.version >= 0:
            self._cleaned[lake.name] = time.monotonic()
        _LOG.info("upkeep of lake table %s: %s", lake.name, done)

    def _failed(self, table: str, reason: str) -> None:
        self._failures[table] = self._failures.get(table, 0) + 1
        self._trouble[table] = reason
        _LOG.warning("upkeep of lake table %s: %s", table, reason)

    def _is_cleaning_due(self, lake: Lake[Any]) -> bool:
        """Whether to look for old files, which requires listing the whole table."""
        last, span = self._cleaned.get(lake.name), cleaning_span(lake.history)
        return last is None or time.monotonic() - last >= span.total_seconds()


def cleaning_span(history: timedelta) -> timedelta:
    """Return the time between two searches for old files."""
    return min(max(history / _CLEANINGS, _SHORTEST_CLEANING), _LONGEST_CLEANING)
