"""The gate: rows of a topic in; typed records out, and a verdict on every row.

The verdict is the codec's own (``core.codec.JsonCodec.accept``), given by the codec itself in
Spark's Python workers. It is more than twice as fast there as what Spark has for JSON. Only event
times in milliseconds outside the years 1 to 9999 are refused here alone: Spark has no room for
them. Real-time mode has no Python; see ``nativegate`` for how the verdict is given there.
"""

from collections.abc import Mapping
from types import MappingProxyType

from pyspark.sql import DataFrame
from pyspark.sql import types as sql
from pyspark.sql.pandas.types import to_arrow_type

from penstock.core.graph import OnLog, Table
from penstock.pipelines import nativegate
from penstock.pipelines.codecgate import CodecGate
from penstock.pipelines.nativegate import KEPT, REFUSED
from penstock.pipelines.schema import frame_type
from penstock.pipelines.sqltext import Sql, name, when

__all__ = ["KEPT", "REFUSED", "judged", "refused"]

_INPUT = [f"{each} as _penstock_log_{each}" for each in ("key", "value")]


def judged(
    rows: DataFrame,
    data: OnLog,
    *,
    beside: Mapping[str, Sql] = MappingProxyType({}),
    natively: bool = False,
) -> DataFrame:
    """Return the fields of the records and :data:`REFUSED`, one row for each row of the topic.

    ``beside`` names further columns and what they are, in terms of the topic's own; ``natively``
    keeps Python out of it.
    """
    if natively:
        return nativegate.judged(rows, data, beside=beside)
    kept = [KEPT] if KEPT in rows.columns else []
    wanted = [f"{text} as {name(column)}" for column, text in beside.items()]
    found = _through(rows.selectExpr(*_INPUT, *wanted, *kept), data)
    if not kept:
        return found
    fields = [name(field.name) for field in data.record.schema.fields]
    on_log = f"{KEPT} is null"
    return found.selectExpr(
        *(f"{when(on_log, field, f'{KEPT}.{field}')} as {field}" for field in fields),
        *map(name, beside),
        f"{when(on_log, REFUSED, 'false')} as {REFUSED}",
    )


def refused(rows: DataFrame, data: OnLog, *, natively: bool = False) -> DataFrame:
    """Return the rows of the topic that are dead letters, as they stand on the log."""
    if natively:
        return nativegate.refused(rows, data)
    if KEPT in rows.columns:
        rows = rows.where(f"{KEPT} is null")
    found = _through(rows.selectExpr(*_INPUT, "*"), data, verdict_only=True)
    return found.where(REFUSED).select(*rows.columns)


def _through(given: DataFrame, data: OnLog, *, verdict_only: bool = False) -> DataFrame:
    """Send a key, a value and what is beside them through the codec."""
    schema = data.record.schema
    fields = _or_null(frame_type(schema)).fields
    gate = CodecGate(
        schema,
        tuple(to_arrow_type(each.dataType, timezone="UTC") for each in fields),
        max_bytes=data.topic.max_record_bytes,
        deletes=isinstance(data, Table),
        verdict_only=verdict_only,
    )
    beside = given.schema.fields[len(_INPUT) :]
    verdict = sql.StructField(REFUSED, sql.BooleanType())
    columns = [*([] if verdict_only else fields), *beside, verdict]
    found: DataFrame = given.mapInArrow(gate, sql.StructType(columns))
    return found


def _or_null(row: sql.StructType) -> sql.StructType:
    """Return the columns as they are where a row may be no record."""
    kinds = [
        _or_null(each.dataType) if isinstance(each.dataType, sql.StructType) else each.dataType
        for each in row
    ]
    return sql.StructType(
        [sql.StructField(each.name, kind) for each, kind in zip(row, kinds, strict=True)]
    )
