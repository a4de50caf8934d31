"""The upkeep of a lake table: delete expired days, compact small files, delete old files.

- **Expired days** are dropped whole: a commit that only removes files.
- **Compaction** takes a partition when it has :data:`MANY_FILES` files below :data:`SMALL_BYTES`;
  with fewer it does not pay. Files that have grown past that are never rewritten again, so a pass
  rewrites at most that much for every :data:`MANY_FILES` files. Rows stay the same, and readers
  who follow the table are told so.
- **Old files**, which no version within the table's history needs, are deleted: at once those that
  the log of the table says are removed, and after :data:`LONGEST_WRITE` those that it does not
  name. The latter are what a crash left, or what a write under way has written and not committed.

None of it meets a writer that appends: Delta lets both through. Two upkeeps of one table may meet;
the later one tries again, a few times, and then leaves it to its next turn.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.core.graph.data import Lake
from penstock.core.records.days import Day, first_kept_day
from penstock.errors import TransientError
from penstock.pipelines.lake.snapshot import PartitionFiles, Snapshot, changes
from penstock.pipelines.lake.table import is_conflict, table_exists, table_sql
from penstock.pipelines.spark.failures import first_lines
from penstock.pipelines.spark.session import session_beside
from penstock.pipelines.spark.sqltext import Sql, any_of, name

__all__ = [
    "LONGEST_WRITE",
    "MANY_FILES",
    "SMALL_BYTES",
    "Upkept",
    "maintain",
    "to_compact",
    "upkeep_session",
]

MANY_FILES = 16
SMALL_BYTES = 32 << 20
_LARGE_BYTES = 128 << 20
"""How large the files are that compaction makes."""
LONGEST_WRITE = timedelta(days=7)
"""How long a write may take from its first file to its commit."""
_PARTITIONS_AT_ONCE = 64
_ATTEMPTS = 3
_SHORT_LOG = "DELTA_CANNOT_VACUUM_LITE"

_SETTINGS = {
    "spark.databricks.delta.optimize.minFileSize": str(SMALL_BYTES),
    "spark.databricks.delta.optimize.maxFileSize": str(_LARGE_BYTES),
    # Delta would pass over RETAIN, and take the table's history for all files.
    "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled": "false",
    # The history that is declared counts, also where the table still has a longer one.
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    # Listing a table is not worth thousands of tasks.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Upkept:
    """What one pass did to a table."""

    table: str
    version: int = -1
    """The version that it left; -1: there is no table yet."""
    deleted_rows: int = 0
    deleted_files: int = 0
    compacted_files: int = 0
    written_files: int = 0
    """What the compacted files became."""
    removed_files: int = 0
    """Files of versions that are past."""

    def __str__(self) -> str:
        """Return what was done, in words."""
        done = [
            f"{self.deleted_rows:,} expired rows deleted" if self.deleted_files else "",
            f"{self.compacted_files:,} files became {self.written_files:,}"
            if self.compacted_files
            else "",
            f"{self.removed_files:,} old files deleted" if self.removed_files else "",
        ]
        return ", ".join(filter(None, done)) or "nothing to do"


def upkeep_session(spark: SparkSession) -> SparkSession:
    """Return a session with the settings of upkeep, which are not those of pipelines."""
    return session_beside(spark, _SETTINGS)


def maintain(
    spark: SparkSession, data: Lake[Any], path: str, *, now: datetime, clean: bool = True
) -> Upkept:
    """Bring a table into shape, in a session of :func:`upkeep_session`; ``clean``: old files too.

    Raises TransientError ``lake.conflict`` where another upkeep is always faster, and
    ``lake.upkeep`` where Delta fails; what was done until then stays done.
    """
    if not table_exists(spark, path):
        return Upkept(data.name)
    steps = _Steps(spark, data, path)
    deleted_rows, deleted_files = _retried(data, lambda: steps.expire(now))
    compacted, written = _retried(data, steps.compact)
    removed = _retried(data, steps.clean) if clean else 0
    return Upkept(
        data.name,
        Snapshot(spark, path).version,
        deleted_rows,
        deleted_files,
        compacted,
        written,
        removed,
    )


def to_compact(partitions: list[PartitionFiles]) -> list[PartitionFiles]:
    """Return the partitions in which compaction pays."""
    return [each for each in partitions if each.small >= MANY_FILES]


class _Steps:
    """The steps of one pass, each of which can be repeated."""

    def __init__(self, spark: SparkSession, data: Lake[Any], path: str) -> None:
        self._spark = spark
        self._data = data
        self._path = path
        self._table = table_sql(path)

    def expire(self, now: datetime) -> tuple[int, int]:
        """Drop the days that have expired; return how many rows and files they had."""
        time = self._data.record.schema.time
        if self._data.retention is None or time is None:
            return 0, 0
        column, first = Day(time).column, first_kept_day(now, self._data.retention)
        old = [
            each
            for each in Snapshot(self._spark, self._path).partitions()
            if (value := each.values.get(column)) is not None and value < first.isoformat()
        ]
        if not old:
            return 0, 0
        expired = f"{name(column)} < date'{first}'"
        self._spark.sql(f"delete from {self._table} where {expired}")  # noqa: S608 - all quoted
        return sum(each.rows for each in old), sum(each.files for each in old)

    def compact(self) -> tuple[int, int]:
        """Compact where it pays; return how many files became how many."""
        snapshot = Snapshot(self._spark, self._path)
        chosen = to_compact(snapshot.partitions(small=SMALL_BYTES))
        removed = added = 0
        for first in range(0, len(chosen), _PARTITIONS_AT_ONCE):
            some = chosen[first : first + _PARTITIONS_AT_ONCE]
            where = any_of(*(each.condition(snapshot.types) for each in some))
            only = f" where {where}" if snapshot.partition_columns else ""
            row = self._spark.sql(f"optimize {self._table}{only}").first()
            if row is not None:
                removed += row["metrics"]["numFilesRemoved"]
                added += row["metrics"]["numFilesAdded"]
        return removed, added

    def clean(self) -> int:
        """Delete files that no version of the table's history needs; return how many."""
        history = self._data.history
        hours = math.ceil(max(history, LONGEST_WRITE) / timedelta(hours=1))
        removed = self._vacuumed(f"retain {hours} hours")
        # The other way round, directories that are left empty would count as files.
        return removed + (self._removed_by_log() if history < LONGEST_WRITE else 0)

    def _removed_by_log(self) -> int:
        """Delete the files that commits before the history have removed."""
        try:
            return self._vacuumed("lite")
        except (PySparkException, Py4JError) as error:
            # After a pause the log is too short to tell: they go when all old files go.
            if _SHORT_LOG not in str(error):
                raise
            return 0

    def _vacuumed(self, how: Sql) -> int:
        self._spark.sql(f"vacuum {self._table} {how}")
        (last, *_) = changes(self._spark, self._path, limit=1)
        return last.metric("numDeletedFiles") if last.operation == "VACUUM END" else 0


def _retried(data: Lake[Any], step: Callable[[], T]) -> T:
    """Return the result of a step; start it again if somebody else changed the same files."""
    again = iter(range(1, _ATTEMPTS))
    while True:
        try:
            return step()
        except (PySparkException, Py4JError) as error:
            conflict = is_conflict(error)
            if conflict and next(again, None):
                continue
            raise TransientError(
                f"the upkeep of lake table {data.name!r} did not finish",
                code="lake.conflict" if conflict else "lake.upkeep",
                detail=first_lines(str(error)),
                hint=f"it is retried; to run it yourself: penstock lake maintain APP {data.name}",
            ) from error
