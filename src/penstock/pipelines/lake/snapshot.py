"""A Delta table as it is now: what its log says, asked of Delta itself."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it
from pyspark.sql.types import StructType

from penstock.pipelines.lake.table import table_sql
from penstock.pipelines.spark.sqltext import Sql, all_of, literal, name

__all__ = ["PartitionFiles", "Snapshot", "TableVersion", "changes", "types_of"]


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """The files of one partition; of a table that has none, all files."""

    values: Mapping[str, str | None]
    files: int
    small: int
    """How many of them are smaller than the size that was asked for."""
    bytes: int
    rows: int

    def condition(self, types: Mapping[str, str]) -> Sql:
        """Return what is true for the rows of this partition alone."""
        return all_of(
            *(
                f"{name(column)} is null"
                if value is None
                else f"{name(column)} = cast({literal(value)} as {types[column]})"
                for column, value in self.values.items()
            )
        )


@dataclass(frozen=True, slots=True)
class TableVersion:
    """One version of a table: what made it, and when."""

    version: int
    at: datetime
    operation: str
    metrics: Mapping[str, int]

    def metric(self, *names: str) -> int:
        """Return the first of these numbers that the operation gives."""
        return next((self.metrics[each] for each in names if each in self.metrics), 0)


class Snapshot:
    """The newest version of a table at the time of asking."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        java: Any = spark.sparkContext._jvm  # noqa: SLF001 - Delta has no other way from Python
        session: Any = spark._jsparkSession  # noqa: SLF001
        log = java.org.apache.spark.sql.delta.DeltaLog.forTable(session, path)
        nothing = java.scala.Option.empty()
        self._snapshot: Any = log.update(False, nothing, nothing)  # noqa: FBT003
        self._spark = spark

    @property
    def version(self) -> int:
        """Its number."""
        return int(self._snapshot.version())

    @property
    def types(self) -> dict[str, str]:
        """The columns and their types, in SQL's words."""
        return types_of(self._snapshot.schema().json())

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The columns that it is partitioned by."""
        found = str(self._snapshot.metadata().partitionColumns().mkString("\n"))
        return tuple(found.split("\n")) if found else ()

    @property
    def writers(self) -> dict[str, int]:
        """All queries that have ever written it as streams: their ids and last batches."""
        found = self._snapshot.setTransactions()
        several = [found.apply(each) for each in range(found.size())]
        return {str(each.appId()): int(each.version()) for each in several}

    def partitions(self, *, small: int = 0) -> list[PartitionFiles]:
        """Return the files of each partition; ``small`` is what a small file has less bytes than.

        A table without partitions has one, if it has files.
        """
        files = DataFrame(self._snapshot.allFiles().toDF(), self._spark)
        rows = F.get_json_object("stats", "$.numRecords").cast("bigint")
        found = files.groupBy(F.to_json("partitionValues", {"ignoreNullFields": "false"})).agg(
            F.count(F.lit(1)), F.count_if(F.col("size") < small), F.sum("size"), F.sum(rows)
        )
        return [
            PartitionFiles(json.loads(values), count, few, size, number or 0)
            for values, count, few, size, number in sorted(found.collect())
        ]


def types_of(schema: str) -> dict[str, str]:
    """Return the columns of a schema, given as JSON, and their types in SQL's words."""
    columns = StructType.fromJson(json.loads(schema))
    return {each.name: each.dataType.simpleString() for each in columns}


def changes(spark: SparkSession, path: str, *, limit: int) -> list[TableVersion]:
    """Return the newest versions that are still known, newest first."""
    rows = spark.sql(f"describe history {table_sql(path)} limit {limit}")
    found = rows.select("version", F.unix_millis("timestamp"), "operation", "operationMetrics")
    return [
        TableVersion(
            version,
            datetime.fromtimestamp(millis / 1000, UTC),
            operation,
            {key: int(value) for key, value in (metrics or {}).items() if value.isdecimal()},
        )
        for version, millis, operation, metrics in found.collect()
    ]
