"""From the records of a topic to the plain columns that windows are made of.

The selection, the groups and the values are computed by Spark itself, from the expressions' own
trees. What follows sees plain data only (``core.rollup.plainvalues``): numbers, texts, bools.
"""

from collections.abc import Iterator

from pyspark.sql import DataFrame

from penstock.core.graph import OnLog
from penstock.core.panes.aggregates import Count
from penstock.core.rollup.resolve import Measure, Rollup
from penstock.core.schema import FieldType, Scalar
from penstock.pipelines.expressions import spark_sql
from penstock.pipelines.gate import REFUSED, judged
from penstock.pipelines.reading import count_gate
from penstock.pipelines.schema import holds_milliseconds
from penstock.pipelines.sqltext import Sql, name

__all__ = ["AHEAD", "CLOCK", "OFFSET", "PARTITION", "TIME", "group", "plain_rows", "value"]

TIME, CLOCK, PARTITION, OFFSET, AHEAD = "_time", "_clock", "_partition", "_offset", "_ahead"
"""Event time and clock in microseconds; where the record stands; whether it is not believed."""

_BESIDE = "_penstock_{}"
"""Names beside the record's own fields, until these are no longer needed."""


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
    placed: bool = True,
) -> DataFrame:
    """Return one row for each record that was selected; rows that are no records are left out.

    Where a record stands is among the columns only if they are to be ``placed``.
    """
    places = {PARTITION: "partition", OFFSET: "offset"} if placed else {}
    beside = {_BESIDE.format(each): text for each, text in places.items()}
    found = judged(rows, data, beside=beside, only=_used(rollup))
    if observed is not None:
        found = count_gate(found, observed)
    found = found.selectExpr("*", f"unix_micros(current_timestamp()) as {_BESIDE.format(CLOCK)}")
    kept = [_BESIDE.format(each) for each in (*places, CLOCK, TIME)]
    found = found.where(f"not {REFUSED}").selectExpr(*_fields(rollup), *kept[:-1], _time(rollup))
    for step in rollup.steps:
        if step.condition is not None:
            found = found.where(spark_sql(step.condition))
        else:
            fields = [f"{spark_sql(each)} as {name(field)}" for field, each in step.fields]
            found = found.selectExpr(*fields, *kept)
    return found.selectExpr(
        *(f"{_BESIDE.format(each)} as {each}" for each in (*places, CLOCK, TIME)),
        f"{_ahead(rollup)} as {AHEAD}",
        *(
            f"{_plain(spark_sql(each.expression), each.type)} as {group(index)}"
            for index, each in enumerate(rollup.groups)
        ),
        *(
            f"{_measured(each)} as {value(index)}"
            for index, each in enumerate(rollup.measures)
            if each.expression is not None
        ),
    )


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
    time = "0L"
    if rollup.rule is None:
        time = _BESIDE.format(CLOCK)
    elif rollup.schema.time is not None:
        time = f"unix_micros({name(rollup.schema.time)})"
    return f"{time} as {_BESIDE.format(TIME)}"


def _ahead(rollup: Rollup) -> Sql:
    if rollup.rule is None or rollup.rule.ahead is None:
        return "false"
    return f"{_BESIDE.format(TIME)} > {_BESIDE.format(CLOCK)} + {rollup.rule.ahead}L"


def _measured(measure: Measure) -> Sql:
    if measure.expression is None:
        raise TypeError(f"{measure.name} has no values")
    found = spark_sql(measure.expression)
    if isinstance(measure.combiner, Count):
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
