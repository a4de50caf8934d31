"""One Delta table of the lake: where it is, how it is made, what its rows are.

Only what every reader of Delta understands is used: reader version 1, writer version 2, no deletion
vectors, no mapped columns. The day that a table is partitioned by is a column that Penstock fills,
not one that Delta generates: Delta computes those in the time zone of whoever reads, and skips
files by that.
"""

from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as sql

from penstock.backbone.site import Site
from penstock.core.graph.data import Archive, Lake
from penstock.core.records.days import Day
from penstock.core.records.schema import Field
from penstock.core.rules.archive import APPENDED_AT, OFFSET, PARTITION
from penstock.errors import ConfigurationError
from penstock.machine.configfile import Loaded
from penstock.pipelines.checkpoint.files import Files
from penstock.pipelines.gate.variant import default_value
from penstock.pipelines.spark.schema import frame_type
from penstock.pipelines.spark.sqltext import Sql, coalesce, name

__all__ = [
    "defaulted",
    "empty_rows",
    "is_conflict",
    "lake_path",
    "lake_rows",
    "lake_type",
    "make_table",
    "stored_rows",
    "table_exists",
    "table_sql",
    "with_default",
]

_SECONDS_OF_A_DAY = 86_400
_CONFLICT = "DELTA_CONCURRENT"
_COORDINATES: dict[str, sql.DataType] = {
    PARTITION: sql.IntegerType(),
    OFFSET: sql.LongType(),
    APPENDED_AT: sql.TimestampType(),
}
"""What an archive has beside its records."""


def lake_path(table: str, site: Site | Loaded) -> str:
    """Return where a lake table is."""
    return f"{(site.settings.lake.path or str(site.places.lake)).rstrip('/')}/{table}"


def table_sql(path: str) -> Sql:
    """Return the table as Spark SQL names it."""
    return f"delta.{name(path)}"


def table_exists(spark: SparkSession, path: str) -> bool:
    """Whether there is a Delta table."""
    return bool(Files(spark).names(f"{path}/_delta_log"))


def make_table(spark: SparkSession, data: Lake[Any], path: str) -> None:
    """Create the table if there is none, and check that it matches its declaration.

    Fields that the record has and the table lacks are added to it. ConfigurationError
    ``lake.changed`` where it is partitioned otherwise, or holds a field as another type.
    """
    if not table_exists(spark, path):
        writer: Any = empty_rows(spark, data).write.format("delta")
        # Whoever else makes it at the same time makes the same.
        writer = writer.mode("ignore").options(**_properties(data.history))
        writer.partitionBy(*data.partition_columns).save(path)
        return
    detail = spark.sql(f"describe detail {table_sql(path)}").first()
    there = spark.read.format("delta").load(path).schema
    _refuse_other(data, tuple(detail["partitionColumns"]) if detail else (), there)
    added = [each for each in _columns(data) if each.name not in there.fieldNames()]
    if added:
        listed = ", ".join(f"{name(each.name)} {each.dataType.simpleString()}" for each in added)
        spark.sql(f"alter table {table_sql(path)} add columns ({listed})")
    # A change is a commit that a writer of the same moment stumbles over: only if there is one.
    wanted = _properties(data.history)
    if detail and any(detail["properties"].get(key) != value for key, value in wanted.items()):
        pairs = ", ".join(f"'{key}' = '{value}'" for key, value in wanted.items())
        spark.sql(f"alter table {table_sql(path)} set tblproperties ({pairs})")


def empty_rows(spark: SparkSession, data: Lake[Any]) -> DataFrame:
    """Return the rows of a table that has none: its columns."""
    columns = [f"{name(each.name)} {each.dataType.simpleString()}" for each in _columns(data)]
    return spark.createDataFrame([], ", ".join(columns))


def stored_rows(frame: DataFrame, data: Lake[Any]) -> DataFrame:
    """Return records as rows of the table: with the days that it is partitioned by."""
    days = [part for part in data.partition_by if isinstance(part, Day)]
    return frame.selectExpr("*", *(f"{_day_of(part)} as {name(part.column)}" for part in days))


def is_conflict(error: Exception) -> bool:
    """Return whether a commit failed because another one came before it."""
    return _CONFLICT in str(error)


def lake_rows(spark: SparkSession, data: Lake[Any], path: str, *, streaming: bool) -> DataFrame:
    """Return the records of a lake table: as a stream, or all there are now.

    A table that is not there yet is made, empty: whoever fills it may start later. A stream passes
    over the deletion of whole days; a commit that changes rows that were read ends it.
    """
    make_table(spark, data, path)
    reader: Any = spark.readStream.option("ignoreDeletes", "true") if streaming else spark.read
    found: DataFrame = reader.format("delta").load(path)
    return found.selectExpr(*(with_default(field) for field in data.record.schema.fields))


def lake_type(data: Lake[Any]) -> sql.StructType:
    """Return the columns of a table."""
    return sql.StructType(_columns(data))


def defaulted(rows: DataFrame, data: Lake[Any]) -> DataFrame:
    """Return all columns of a table; fields that are newer than a row have their defaults."""
    fields = {field.name: field for field in data.record.schema.fields}
    there = [with_default(fields[each]) if each in fields else name(each) for each in rows.columns]
    newer = [field for field in fields.values() if field.name not in rows.columns]
    return rows.selectExpr(
        *there, *(f"{default_value(field)} as {name(field.name)}" for field in newer)
    )


def with_default(field: Field) -> Sql:
    """Return a field; in a row that is older than the field it has its default."""
    column = name(field.name)
    if field.default is None or field.nullable:
        return column
    return f"{coalesce(column, default_value(field))} as {column}"


def _columns(data: Lake[Any]) -> list[sql.StructField]:
    days = [part.column for part in data.partition_by if isinstance(part, Day)]
    fields = list(frame_type(data.record.schema))
    if isinstance(data, Archive):
        fields += [sql.StructField(column, kind) for column, kind in _COORDINATES.items()]
    return [*fields, *(sql.StructField(each, sql.DateType()) for each in days)]


def _day_of(part: Day) -> Sql:
    # Not to_date: that is the day in the time zone of the session.
    days = f"floor(unix_seconds({name(part.field)}) / {_SECONDS_OF_A_DAY})"
    return f"date_from_unix_date(cast({days} as int))"


def _properties(history: timedelta) -> dict[str, str]:
    span = f"interval {round(history.total_seconds())} seconds"
    return {
        "delta.logRetentionDuration": span,
        "delta.deletedFileRetentionDuration": span,
        "delta.enableDeletionVectors": "false",
    }


def _refuse_other(data: Lake[Any], parts: tuple[str, ...], there: sql.StructType) -> None:
    wrong = []
    if parts != data.partition_columns:
        wanted = ", ".join(data.partition_columns) or "nothing"
        wrong.append(
            f"it is partitioned by {', '.join(parts) or 'nothing'}; the declaration says {wanted}"
        )
    for column in _columns(data):
        if column.name in there.fieldNames():
            has = there[column.name].dataType.simpleString()
            if has != column.dataType.simpleString():
                wants = column.dataType.simpleString()
                wrong.append(f"it holds {column.name} as {has}; the declaration says {wants}")
    if wrong:
        raise ConfigurationError(
            f"lake table {data.name!r} differs from its declaration",
            code="lake.changed",
            detail="; ".join(wrong),
            hint="declare a table of another name, or move this one away",
        )
