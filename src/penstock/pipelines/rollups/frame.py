"""From the records of a topic to the plain columns that windows are made of.

The selection, the groups and the values are computed by Spark itself, from the expressions' own
trees. What follows sees plain data only (``core.rollup.plainvalues``): numbers, texts, bools.

The watermark follows every record of the stream, also those that were not selected. For the pane
machine these come along, marked; Spark's own watermark is put before the selection.
"""

from collections.abc import Iterator

from pyspark.sql import DataFrame

from penstock.core.graph.data import OnLog
from penstock.core.records.schema import FieldType, Scalar
from penstock.core.rollup.resolve import Measure, Rollup
from penstock.pipelines.gate.gate import REFUSED, judged
from penstock.pipelines.gate.reading import count_gate
from penstock.pipelines.spark.expressions import spark_sql
from penstock.pipelines.spark.schema import holds_milliseconds
from penstock.pipelines.spark.sqltext import Sql, all_of, coalesce, name, when

__all__ = [
    "AHEAD",
    "CLOCK",
    "EVENT_AT",
    "OFFSET",
    "PARTITION",
    "SELECTED",
    "TIME",
    "group",
    "plain_rows",
    "value",
    "watermarked_rows",
]

TIME, CLOCK, PARTITION, OFFSET, AHEAD = "_time", "_clock", "_partition", "_offset", "_ahead"
"""Event time and clock in microseconds; where the record stands; whether it is not believed."""
SELECTED = "_selected"
"""Whether a record was selected; not among the columns where all of them were."""
EVENT_AT = "_event_at"
"""The event time as Spark's own watermark follows it."""

_BESIDE = "_penstock_{}"
"""Names beside the record's own fields, until these are no longer needed."""
_SELECTED = _BESIDE.format("selected")


def group(index: int) -> str:
    """Return the column of a group."""
    return f"_group{index}"


def value(index: int) -> str:
    """Return the column of an aggregate's values."""
    return f"_value{index}"


def plain_rows(
    rows: DataFrame,
    data: OnLog,
    rollup: Rollup,
    *,
    observed: str | None = None,
    heard: bool = False,
) -> DataFrame:
    """Return one row for each record that was selected; rows that are no records are left out.

    ``heard``: records that were not selected have a row, too, with no more than their place and
    their event time; :data:`SELECTED` tells them.
    """
    places = {PARTITION: "partition", OFFSET: "offset"}
    beside = {_BESIDE.format(each): text for each, text in places.items()}
    found = judged(rows, data, beside=beside, only=_used(rollup))
    if observed is not None:
        found = count_gate(found, observed)
    kept = [_BESIDE.format(each) for each in (*places, CLOCK, TIME)]
    clock = f"unix_micros(current_timestamp()) as {_BESIDE.format(CLOCK)}"
    found = found.selectExpr("*", clock).where(f"not {REFUSED}")
    found = found.selectExpr(*_fields(rollup), *kept[:-1], _time(rollup))
    shown = [f"{_BESIDE.format(each)} as {each}" for each in (*places, CLOCK, TIME)]
    shown.append(f"{_ahead(rollup)} as {AHEAD}")
    columns = dict(_groups_and_values(rollup))
    if heard and rollup.rule and any(step.condition for step in rollup.steps):
        found = _marked(found, rollup, kept)
        shown.append(f"{_SELECTED} as {SELECTED}")
        columns = {column: when(_SELECTED, each) for column, each in columns.items()}
    else:
        found = _selected(found, rollup, kept)
    return found.selectExpr(*shown, *(f"{each} as {column}" for column, each in columns.items()))


def watermarked_rows(
    rows: DataFrame, data: OnLog, rollup: Rollup, *, shift: int, delay: str, observed: str
) -> DataFrame:
    """Return the rows for Spark's own windows, with :data:`EVENT_AT` and a watermark on it.

    Spark would push the conditions below its watermark, which then followed the selected records
    only; but not below the counting.
    """
    found = judged(rows, data, only=_used(rollup))
    event_at = f"timestamp_micros({_event_time(rollup)} + {shift}L)"
    found = found.selectExpr("*", f"{when(f'not {REFUSED}', event_at)} as {EVENT_AT}")
    found = count_gate(found.withWatermark(EVENT_AT, delay), observed)
    kept = [EVENT_AT, _BESIDE.format(TIME)]
    found = found.where(f"not {REFUSED}").selectExpr(*_fields(rollup), EVENT_AT, _time(rollup))
    selected = _selected(found, rollup, kept)
    columns = [f"{each} as {column}" for column, each in _groups_and_values(rollup)]
    return selected.selectExpr(EVENT_AT, f"{_BESIDE.format(TIME)} as {TIME}", *columns)


def _selected(found: DataFrame, rollup: Rollup, kept: list[str]) -> DataFrame:
    """Return what the steps of the selection leave."""
    for step in rollup.steps:
        if step.condition is not None:
            found = found.where(spark_sql(step.condition))
        else:
            fields = [f"{spark_sql(each)} as {name(field)}" for field, each in step.fields]
            found = found.selectExpr(*fields, *kept)
    return found


def _marked(found: DataFrame, rollup: Rollup, kept: list[str]) -> DataFrame:
    """Return all rows, and whether the steps of the selection leave them."""
    found = found.selectExpr("*", f"true as {_SELECTED}")
    for step in rollup.steps:
        if step.condition is not None:
            holds = coalesce(spark_sql(step.condition), "false")
            rest = [each for each in found.columns if each != _SELECTED]
            found = found.selectExpr(*map(name, rest), f"{all_of(_SELECTED, holds)} as {_SELECTED}")
        else:
            fields = [
                f"{when(_SELECTED, spark_sql(each))} as {name(field)}"
                for field, each in step.fields
            ]
            found = found.selectExpr(*fields, *kept, _SELECTED)
    return found


def _groups_and_values(rollup: Rollup) -> Iterator[tuple[str, Sql]]:
    for index, each in enumerate(rollup.groups):
        yield group(index), _plain(spark_sql(each.expression), each.type)
    for index, measure in enumerate(rollup.measures):
        if measure.expression is not None:
            yield value(index), _measured(measure)


def _used(rollup: Rollup) -> set[str]:
    """Return the names that its expressions speak of, and the event time."""
    steps = [
        each for step in rollup.steps for each in (step.condition, *dict(step.fields).values())
    ]
    groups = [each.expression for each in rollup.groups]
    values = [each.expression for each in rollup.measures]
    paths = (path for each in (*steps, *groups, *values) if each for path in each.fields)
    return {path.partition(".")[0] for path in paths} | {rollup.schema.time or ""}


def _fields(rollup: Rollup) -> Iterator[Sql]:
    """Yield the record's fields; an event time in milliseconds is shown as such again."""
    used = _used(rollup)
    for field in (each for each in rollup.schema.fields if each.name in used):
        column = name(field.name)
        if holds_milliseconds(rollup.schema, field.name):
            yield f"unix_millis({column}) as {column}"
        else:
            yield column


def _time(rollup: Rollup) -> Sql:
    return f"{_event_time(rollup)} as {_BESIDE.format(TIME)}"


def _event_time(rollup: Rollup) -> Sql:
    """Return the time that windows go by, from the columns of the gate."""
    if rollup.rule is None:
        return _BESIDE.format(CLOCK)
    return "0L" if rollup.schema.time is None else f"unix_micros({name(rollup.schema.time)})"


def _ahead(rollup: Rollup) -> Sql:
    if rollup.rule is None or rollup.rule.ahead is None:
        return "false"
    return f"{_BESIDE.format(TIME)} > {_BESIDE.format(CLOCK)} + {rollup.rule.ahead}L"


def _measured(measure: Measure) -> Sql:
    if measure.expression is None:
        raise TypeError(f"{measure.name} has no values")
    found = spark_sql(measure.expression)
    if measure.form.takes == "presence":
        return f"case when ({found}) is not null then true end"
    return _plain(found, measure.type)


def _plain(found: Sql, kind: FieldType) -> Sql:
    match kind:
        case Scalar("float"):
            return f"case when abs({found}) < double('infinity') then double({found}) end"
        case Scalar("int"):
            return f"bigint({found})"
        case Scalar("instant"):
            return f"unix_micros({found})"
        case Scalar("date"):
            return f"bigint(unix_date({found}))"
        case Scalar("decimal"):
            return f"cast({found} as decimal(38,18))"
    return found
