"""The lake for people and programs: its tables as plain values, and their upkeep on demand."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.core.graph.data import Lake
from penstock.errors import TransientError
from penstock.machine.configfile import Loaded
from penstock.pipelines.lake.snapshot import Snapshot, changes
from penstock.pipelines.lake.table import lake_path, table_exists
from penstock.pipelines.lake.upkeep import Upkept, maintain, upkeep_session
from penstock.pipelines.spark.failures import first_lines
from penstock.pipelines.spark.session import session

__all__ = ["LakeView", "lake_view"]


@contextmanager
def lake_view(app: str, site: Loaded) -> Iterator["LakeView"]:
    """Give the lake of a project; Spark ends with the block."""
    with session(site.settings, site.places, name=f"{app}.lake") as spark:
        try:
            yield LakeView(upkeep_session(spark), site)
        except (PySparkException, Py4JError) as error:
            raise TransientError(
                "the lake cannot be read", code="lake.unreadable", detail=first_lines(str(error))
            ) from error


class LakeView:
    """Lake tables by their declarations. A table that was never written is empty, not an error."""

    def __init__(self, spark: SparkSession, site: Loaded) -> None:
        self._spark = spark
        self._site = site

    def table(self, lake: Lake[Any]) -> dict[str, Any]:
        """Return what a table is now: rows, files, partitions, and its last change."""
        path = lake_path(lake.name, self._site)
        empty = {"path": path, "rows": 0, "files": 0, "bytes": 0, "partitions": [], "fields": {}}
        if not table_exists(self._spark, path):
            return empty | {"version": None, "changed_at": None, "changed_by": "never written"}
        snapshot = Snapshot(self._spark, path)
        partitions = snapshot.partitions()
        (last, *_) = changes(self._spark, path, limit=1)
        return empty | {
            "rows": sum(each.rows for each in partitions),
            "files": sum(each.files for each in partitions),
            "bytes": sum(each.bytes for each in partitions),
            "fields": snapshot.types,
            "partitions": [
                {
                    "values": dict(each.values),
                    "rows": each.rows,
                    "files": each.files,
                    "bytes": each.bytes,
                }
                for each in partitions
            ],
            "version": snapshot.version,
            "changed_at": _text(last.at),
            "changed_by": last.operation.lower(),
        }

    def history(self, lake: Lake[Any], *, limit: int) -> list[dict[str, Any]]:
        """Return the newest versions of a table, newest first."""
        path = lake_path(lake.name, self._site)
        if not table_exists(self._spark, path):
            return []
        return [
            {
                "version": each.version,
                "at": _text(each.at),
                "by": each.operation.lower(),
                "files_added": each.metric("numAddedFiles", "numFiles"),
                "files_removed": each.metric("numRemovedFiles", "numDeletedFiles"),
                "rows_written": each.metric("numOutputRows"),
            }
            for each in changes(self._spark, path, limit=limit)
        ]

    def maintain(self, lake: Lake[Any], *, now: datetime) -> Upkept:
        """Bring a table into shape; see ``penstock.pipelines.lake.upkeep``."""
        return maintain(self._spark, lake, lake_path(lake.name, self._site), now=now)


def _text(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
