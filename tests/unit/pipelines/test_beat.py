"""Windows on Spark that end by the clock: who tells the buckets the time when no record does."""

from datetime import datetime

import pyarrow as pa
import pytest

from penstock import App, EventTime, record
from penstock.aggregates import count
from penstock.core.panes.arrivals import Arrivals, unpack_arrivals
from penstock.core.panes.bucket import Bucket
from penstock.core.panes.store import MemoryStore
from penstock.core.wiring.panes import rollup_of
from penstock.pipelines.rollups.combining import PAYLOAD, Heartbeat
from penstock.pipelines.rollups.plan import needs_beat
from penstock.triggers import every, on_watermark
from penstock.windows import fixed

SECOND = 1_000_000


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime


def rollup(*, trigger=None, time="event", **options):
    app = App("demo")
    readings = app.stream("readings", Reading, partitions=2, **options)
    windowed = readings.window(fixed("1m"), by="device", time=time)
    windowed = windowed if trigger is None else windowed.trigger(trigger)
    app.table("table", windowed.aggregate(n=count()))
    return rollup_of(app.graph.part("table.windows"))


@pytest.mark.parametrize(
    ("given", "partitions", "beats"),
    [
        ({}, 2, True),
        ({}, 1, False),
        ({"event_time": EventTime(idle_after=None)}, 2, False),
        ({"event_time": EventTime(follows="newest")}, 2, False),
        ({"event_time": EventTime(closes_after="1m")}, 1, True),
        ({"time": "processing"}, 1, True),
        ({"trigger": on_watermark(early=every("5s"))}, 1, True),
    ],
)
def test_whatever_may_happen_without_a_record_has_a_beat(given, partitions, beats):
    assert needs_beat(rollup(**given), partitions=partitions) is beats


def test_a_beat_closes_the_windows_that_a_silent_partition_has_held_open():
    declared = rollup(event_time=EventTime(idle_after="1m"))
    bucket = Bucket(declared.machine(), declared.rule, MemoryStore())
    for clock, source, time in ((0, "1", 0), (50, "0", 600)):
        elements = {source.encode(): [(time * SECOND, [True], (source, 0))]}
        newest = time * SECOND
        came = Arrivals(clock=clock * SECOND, source=source, newest=newest, elements=elements)
        assert bucket.take([came]).panes == []
    clock = pa.array([bucket.wakes()])
    (beat,) = Heartbeat((7,))([pa.record_batch({"clock": clock})])
    ((_, pane),) = bucket.take(map(unpack_arrivals, beat.column(PAYLOAD).to_pylist())).panes
    assert pane.window == (0, 60 * SECOND)
