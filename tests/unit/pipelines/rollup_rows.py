"""Random records, their rows as Spark hands them over, and aggregations over them."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from math import isfinite

import pyarrow as pa
import pytest
from hypothesis import strategies as st

from penstock import App, EventTime, record
from penstock.aggregates import (
    approximate_distinct,
    collect,
    combine,
    count,
    distinct,
    first,
    last,
    maximum,
    mean,
    minimum,
    quantile,
    top,
    total,
    variance,
)
from penstock.core.expression import compile_row
from penstock.core.expression.values.plainvalues import to_plain
from penstock.core.records.schema import Scalar
from penstock.core.wiring.panes import rollup_of
from penstock.pipelines.rollups.frame import AHEAD, CLOCK, OFFSET, PARTITION, TIME, group, value

SECOND = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LARGEST = 2**63 - 1


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    floor: int = 0
    celsius: float | None = None
    level: int | None = None
    note: str | None = None
    price: Decimal | None = None
    day: date | None = None
    fine: bool | None = None


class Longest:
    """A combiner of a user's own."""

    def zero(self):
        return 0

    def add(self, held, value):
        return max(held, len(value or ""))

    def merge(self, held, other):
        return max(held, other)

    def result(self, held):
        return held


AGGREGATES = {
    "records": count(),
    "known": count("celsius"),
    "sum": total("celsius"),
    "levels": total("level"),
    "small": total("floor"),
    "spent": total("price"),
    "mean": mean("celsius"),
    "spread": variance("celsius"),
    "coldest": minimum("celsius"),
    "highest": maximum("level"),
    "lowest": minimum("level"),
    "cheapest": minimum("price"),
    "last_note": maximum("note"),
    "first_day": minimum("day"),
    "newest": maximum("at"),
    "all_fine": minimum("fine"),
    "first": first("celsius"),
    "last": last("note"),
    "notes": distinct("note"),
    "days": distinct("day"),
    "about": approximate_distinct("level"),
    "middle": quantile("celsius", 0.5),
    "best": top("level", 2),
    "prices": collect("price"),
    "longest": combine("note", Longest(), gives=int),
}
BY = {
    "nothing": (),
    "device": ("device",),
    "both": ("device", "floor"),
    "computed": {"warm": "coalesce(celsius > 0, false)", "at": "at", "on": "date(at)"},
}

floats = st.none() | st.integers(-80, 80).map(lambda eighths: eighths / 8)
odd_floats = st.sampled_from([float("nan"), float("inf"), float("-inf"), -0.0])
ints = st.none() | st.sampled_from([0, 1, -1, 2**62, LARGEST, -LARGEST - 1]) | st.integers(-9, 9)
decimals = st.none() | st.decimals(-9, 9, places=3) | st.just(Decimal("1" * 20))
readings = st.builds(
    Reading,
    device=st.sampled_from(["a", "b", "ü"]),
    at=st.integers(-20, 60).map(lambda halves: EPOCH + timedelta(seconds=halves / 2)),
    floor=st.integers(-1, 1),
    celsius=floats | odd_floats,
    level=ints,
    note=st.none() | st.sampled_from(["", "x", "yy", "\U0001f30a"]),
    price=decimals,
    day=st.none() | st.sampled_from([date(1, 1, 1), date(1970, 1, 2), date(9999, 12, 31)]),
    fine=st.none() | st.booleans(),
)


@lru_cache(maxsize=1024)
def declared(windowing, by, names, ahead=None, time="event"):
    """Return the rollup of some of the aggregates; the caller gives windows by hand."""
    app = App("demo")
    stream = app.stream(
        "readings", Reading, event_time=EventTime(disorder="1s", idle_after="3s", ahead=ahead)
    )
    windowed = stream.window(windowing.windows, by=BY[by], time=time)
    by_hand = type(windowed)(
        selection=windowed.selection, windowing=windowing, by=windowed.by, time=time
    )
    aggregates = {name: AGGREGATES[name] for name in names}
    app.stream("panes", by_hand.aggregate(**aggregates))
    return rollup_of(app.graph.part("panes.windows"))


TYPES = {
    "bool": pa.bool_(),
    "int": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "instant": pa.int64(),
    "date": pa.int64(),
    "decimal": pa.decimal128(38, 18),
}


def table(rollup, rows, *, clock):
    """Return rows of ``(partition, offset, time, ahead, record)`` with the columns of frame.py."""
    columns = {
        PARTITION: pa.array([row[0] for row in rows], pa.int32()),
        OFFSET: pa.array([row[1] for row in rows], pa.int64()),
        CLOCK: pa.array([clock for _ in rows], pa.int64()),
        TIME: pa.array([row[2] for row in rows], pa.int64()),
        AHEAD: pa.array([row[3] for row in rows], pa.bool_()),
    }
    records = [row[4] for row in rows]
    for index, each in enumerate(rollup.groups):
        columns[group(index)] = _column(each.expression, each.type, records)
    for index, each in enumerate(rollup.measures):
        if each.expression is not None:
            counts = each.form.takes == "presence"
            columns[value(index)] = _column(each.expression, each.type, records, counts=counts)
    return pa.table(columns)


def _column(expression, kind, records, *, counts=False):
    found = [compile_row(expression)(each) for each in records]
    if counts:
        return pa.array([None if each is None else True for each in found], pa.bool_())
    if kind == Scalar("decimal"):
        return pa.array(found, TYPES["decimal"])
    if kind == Scalar("float"):
        found = [each if each is not None and isfinite(each) else None for each in found]
    return pa.array(list(map(to_plain(kind), found)), TYPES[kind.name])


def near(found):
    """Return the same with floats that need not agree to the last digits."""
    match found:
        case float():
            return pytest.approx(found, rel=1e-9, abs=1e-9)
        case dict():
            return {key: near(each) for key, each in found.items()}
        case list() | tuple():
            return [near(each) for each in found]
    return found


def plain(found):
    """Return the same with lists in place of tuples, as they are after a journey."""
    match found:
        case list() | tuple():
            return [plain(each) for each in found]
    return found
