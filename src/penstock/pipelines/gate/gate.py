"""The gate: rows of a topic in; typed records out, and a verdict on every row.

The verdict is the codec's own (``core.records.codec.JsonCodec.accept``), given by the codec itself
in Spark's Python workers. It is more than twice as fast there as what Spark has for JSON. Real-time
mode has no Python; see ``native`` for its verdict.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType

from pyspark.sql import DataFrame
from pyspark.sql import types as sql
from pyspark.sql.pandas.types import to_arrow_type

from penstock.core.graph.data import OnLog, Table
from penstock.pipelines.gate import native as nativegate
from penstock.pipelines.gate.codec import CodecGate
from penstock.pipelines.gate.native import ARCHIVED, REFUSED
from penstock.pipelines.spark.schema import frame_type
from penstock.pipelines.spark.sqltext import Sql, name, when

__all__ = ["ARCHIVED", "REFUSED", "codec_gate", "judged", "refused"]

_INPUT = [f"{each} as _penstock_log_{each}" for each in ("key", "value")]


def judged(
    rows: DataFrame,
    data: OnLog,
    *,
    beside: Mapping[str, Sql] = MappingProxyType({}),
    only: Collection[str] | None = None,
    natively: bool = False,
) -> DataFrame:
    """Return the fields of the records and :data:`REFUSED`, one row for each row of the topic.

    ``beside`` names further columns and what they are, in terms of the topic's own; ``only`` the
    fields that are wanted, where not all are; ``natively`` keeps Python out of it.
    """
    columns = [name(each.name) for each in _columns(data, only)]
    if natively:
        found = nativegate.judged(rows, data, beside=beside)
        return found.select(*columns, *map(name, beside), REFUSED)
    kept = [ARCHIVED] if ARCHIVED in rows.columns else []
    wanted = [f"{text} as {name(column)}" for column, text in beside.items()]
    found = _through(rows.selectExpr(*_INPUT, *wanted, *kept), data, only=only)
    if not kept:
        return found
    on_log = f"{ARCHIVED} is null"
    return found.selectExpr(
        *(f"{when(on_log, each, f'{ARCHIVED}.{each}')} as {each}" for each in columns),
        *map(name, beside),
        f"{when(on_log, REFUSED, 'false')} as {REFUSED}",
    )


def refused(rows: DataFrame, data: OnLog, *, natively: bool = False) -> DataFrame:
    """Return the rows of the topic that are dead letters, as they stand on the log."""
    if natively:
        return nativegate.refused(rows, data)
    if ARCHIVED in rows.columns:
        rows = rows.where(f"{ARCHIVED} is null")
    found = _through(rows.selectExpr(*_INPUT, "*"), data, only=())
    return found.where(REFUSED).select(*rows.columns)


def codec_gate(data: OnLog, *, only: Collection[str] | None = None) -> CodecGate:
    """Return what judges batches of Arrow: the key and the value first, then what is beside."""
    return CodecGate(
        data.record.schema,
        {each.name: to_arrow_type(each.dataType, timezone="UTC") for each in _columns(data, only)},
        max_bytes=data.topic.max_record_bytes,
        deletes=isinstance(data, Table),
    )


def _through(given: DataFrame, data: OnLog, *, only: Collection[str] | None) -> DataFrame:
    """Send a key, a value and what is beside them through the codec."""
    beside = given.schema.fields[len(_INPUT) :]
    verdict = sql.StructField(REFUSED, sql.BooleanType())
    columns = sql.StructType([*_columns(data, only), *beside, verdict])
    found: DataFrame = given.mapInArrow(codec_gate(data, only=only), columns)
    return found


def _columns(data: OnLog, only: Collection[str] | None) -> list[sql.StructField]:
    fields = _or_null(frame_type(data.record.schema))
    return [each for each in fields if only is None or each.name in only]


def _or_null(row: sql.StructType) -> sql.StructType:
    """Return the columns as they are when a row may not be a record."""
    kinds = [
        _or_null(each.dataType) if isinstance(each.dataType, sql.StructType) else each.dataType
        for each in row
    ]
    return sql.StructType(
        [sql.StructField(each.name, kind) for each, kind in zip(row, kinds, strict=True)]
    )
