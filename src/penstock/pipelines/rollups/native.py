"""Which aggregations Spark's own windows compute with the same answer, and how they do.

A window of Spark emits once, when the watermark has passed its end. If the declaration asks for no
more, and Spark has the aggregates, it is several times faster than the pane machine in Python.

Spark's watermark begins in 1970, and everything before it is late. Event times go through its
windows with :data:`SHIFT` added, so that they begin with the year 1, and come out without it.
"""

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it

from penstock.core.graph.data import Data, OnLog
from penstock.core.graph.parts import Pipeline
from penstock.core.instants import FIRST_MICROS, LAST_MICROS
from penstock.core.panes.triggers import DEFAULT, AfterWatermark
from penstock.core.panes.windows import FixedWindows, SlidingWindows
from penstock.core.records.schema import FieldType, ListOf, Scalar
from penstock.core.rollup.panerecord import pane_headers
from penstock.core.rollup.resolve import Measure, Rollup
from penstock.core.wiring.panes import rollup_of
from penstock.pipelines.gate.reading import observed_name
from penstock.pipelines.rollups.frame import EVENT_AT, TIME, group, value, watermarked_rows
from penstock.pipelines.sink.rows import log_rows
from penstock.pipelines.spark.sqltext import Sql, literal, name

__all__ = ["SHIFT", "WINDOW", "native_panes", "why_not_native", "window_bounds", "window_of"]

SHIFT = -FIRST_MICROS
"""What is added to event times on their way through Spark's windows, in microseconds."""
WINDOW = "_window"
_MILLISECOND = 1000


def why_not_native(pipeline: Pipeline) -> list[str]:
    """Return every reason why the pane machine computes it; none: Spark's own windows do."""
    rollup = rollup_of(pipeline)
    (data,) = pipeline.reads
    partitions = 1 if data.kind == "lake" else data.topic.partitions
    return [
        *_about_input(data),
        *_about_windows(rollup),
        *_about_watermark(rollup, partitions),
        *(reason for measure in rollup.measures for reason in _about(measure)),
    ]


def _about_input(data: Data) -> Iterator[str]:
    if data.archive is not None:
        yield "late records are looked up on the log, and the log does not have the history"


def _about_windows(rollup: Rollup) -> Iterator[str]:
    windowing, windows = rollup.windowing, rollup.windowing.windows
    if not isinstance(windows, FixedWindows | SlidingWindows):
        yield f"{type(windows).__name__}: Spark's windows are fixed or sliding"
    elif any(span % _MILLISECOND for span in _spans(windows)):
        yield "windows are not cut at whole milliseconds"
    once = windowing.trigger == AfterWatermark()
    if not once and not (windowing.trigger == DEFAULT and windowing.lateness == 0):
        yield "the trigger fires at other times than once, at the end of the window"
    if windowing.stamp != "end":
        yield f"panes are stamped with the {windowing.stamp} event time"


def _spans(windows: FixedWindows | SlidingWindows) -> tuple[int, ...]:
    if isinstance(windows, FixedWindows):
        return windows.size, windows.offset
    return windows.size, windows.period, windows.offset


def _about_watermark(rollup: Rollup, partitions: int) -> Iterator[str]:
    rule = rollup.rule
    if rule is None:
        yield "windows are in processing time"
        return
    if rule.follows == "slowest" and partitions > 1:
        yield "the watermark follows the slowest partition; Spark's own follows the newest one"
    if rule.closes_after is not None:
        yield "windows close on an idle stream (closes_after)"
    if rule.ahead is not None:
        yield "records ahead of the clock are set aside (ahead)"
    if rule.disorder % _MILLISECOND:
        yield "the disorder is not in whole milliseconds"


def _about(measure: Measure) -> Iterator[str]:
    word = type(measure.combiner).__name__
    if not measure.form.spark:
        yield f"{measure.name}: Spark has no {word} that gives the same answer"
    elif measure.type == Scalar("decimal"):
        yield f"{measure.name}: {word} of decimals is exact to 38 digits only here"
    elif measure.form.spark_for(measure.type) is None:
        yield f"{measure.name}: Spark has no {word} of {measure.type} that gives the same answer"


def native_panes(
    rows: DataFrame, data: OnLog, pipeline: Pipeline, *, into: OnLog, observed: str | None = None
) -> DataFrame:
    """Return the records that Spark's own windows give, as the pane machine would write them."""
    rollup = rollup_of(pipeline)
    delay = rollup.rule.disorder // _MILLISECOND if rollup.rule else 0
    plain = watermarked_rows(
        rows,
        data,
        rollup,
        shift=SHIFT,
        delay=f"{delay} milliseconds",
        observed=observed or observed_name(pipeline.name, data),
    )
    groups = [group(index) for index in range(len(rollup.groups))]
    measured = plain.groupBy(*groups, window_of(rollup, F.col(EVENT_AT))).agg(
        *(F.expr(text) for text in _aggregates(rollup))
    )
    return _written(measured, rollup, into)


def window_of(rollup: Rollup, event_at: Column) -> Column:
    """Return the windows that a shifted event time is in, as Spark has them."""
    windows = rollup.windowing.windows
    if not isinstance(windows, FixedWindows | SlidingWindows):
        raise TypeError(f"not natively: {windows}")
    period = windows.size if isinstance(windows, FixedWindows) else windows.period
    spans = [f"{span // _MILLISECOND} milliseconds" for span in (windows.size, period)]
    offset = f"{(windows.offset + SHIFT) % period // _MILLISECOND} milliseconds"
    size, slide = spans
    return F.window(event_at, size, slide, offset).alias(WINDOW)


def window_bounds() -> tuple[Sql, Sql]:
    """Return the start and the end of a row's window in microseconds, as they were declared."""
    start, end = (f"(unix_micros({WINDOW}.{each}) - {SHIFT}L)" for each in ("start", "end"))
    return start, end


def _aggregates(rollup: Rollup) -> Iterator[Sql]:
    for index, measure in enumerate(rollup.measures):
        found = measure.form.spark_for(measure.type)
        if found is None:
            raise TypeError(f"not natively: {measure.combiner}")
        given = value(index) if measure.expression is not None else "1"
        yield f"{found.format(value=given, time=TIME)} as {value(index)}"


def _written(measured: DataFrame, rollup: Rollup, into: OnLog) -> DataFrame:
    groups = enumerate(rollup.groups)
    facts = ["'on_time' as pane", "0L as pane_index", "true as pane_last"]
    headers = "cast(null as array<struct<key: string, value: binary>>)"
    start, end = window_bounds()
    if into.kind == "stream":
        facts += ["false as withdrawn", f"{_instant(f'{end} - 1')} as at"]
        headers = f"array({', '.join(_headers())})"
    frame = measured.selectExpr(
        *(f"{_back(group(index), each.type)} as {name(each.name)}" for index, each in groups),
        f"{_instant(start)} as window_start",
        f"{_instant(end)} as window_end",
        *(
            f"{_back(value(index), each.gives.type)} as {name(each.name)}"
            for index, each in enumerate(rollup.measures)
        ),
        *facts,
    )
    topic = f"{literal(into.topic.name)} as topic"
    return log_rows(frame, into).selectExpr(topic, "key", "value", f"{headers} as headers")


def _instant(micros: Sql) -> Sql:
    """Return an instant; a window that reaches beyond the years 1 to 9999 is cut there."""
    return f"timestamp_micros(greatest(least({micros}, {LAST_MICROS}L), {FIRST_MICROS}L))"


def _headers() -> Iterator[Sql]:
    """Yield what the pane machine would write of the only pane of a window."""
    for header, text in pane_headers("on_time", (0, 0), last=True, withdrawn=False):
        yield f"struct({literal(header)} as key, cast({literal(text.decode())} as binary) as value)"


def _back(found: Sql, kind: FieldType) -> Sql:
    match kind:
        case Scalar("instant"):
            return f"timestamp_micros({found})"
        case Scalar("date"):
            return f"date_from_unix_date(int({found}))"
        case ListOf(item) if item in (Scalar("instant"), Scalar("date")):
            return f"transform({found}, each -> {_back('each', item)})"
    return found
