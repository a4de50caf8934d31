"""Panes as consumers see them, and what the late ledger says."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import msgspec
import pytest

from penstock import App, EventTime, record
from penstock.aggregates import collect, count, first, last, maximum, mean, total, variance
from penstock.core.panes.arrivals import Arrivals
from penstock.core.panes.bucket import Bucket
from penstock.core.panes.store import MemoryStore
from penstock.core.records.deadletter import Coordinates, read_letter
from penstock.core.rollup.reader import RollupReader
from penstock.core.rollup.wire import PaneWire
from penstock.core.rules.check import verified
from penstock.core.wiring.panes import pane_destination, rollup_of
from penstock.triggers import after_count, on_watermark
from penstock.windows import accumulating, counted, fixed, retracting, sessions

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    celsius: float
    price: Decimal = Decimal(0)


def reading(device, seconds, celsius=0.0, price="0"):
    return Reading(device, EPOCH + timedelta(seconds=seconds), celsius, Decimal(price))


class Run:
    """One aggregation, record by record, into a stream or a table."""

    def __init__(self, declare, shape="stream", max_record="1MiB", **options):
        app = App("demo")
        readings = app.stream("readings", Reading, **options)
        getattr(app, shape)("result", declare(readings), on="services", max_record=max_record)
        graph = verified(app.graph)
        part = graph.part("result.windows")
        rollup = rollup_of(part)
        self.reader = RollupReader(rollup)
        self.bucket = Bucket(rollup.machine(), rollup.rule, MemoryStore())
        self.wire = PaneWire(rollup, pane_destination(graph, part))
        self.clock = 10**15
        self.offset = 0

    def take(self, *records):
        found = []
        for each in records:
            time = self.reader.time(each, self.clock)
            key, values = self.reader.read(each, time)
            origin = ("3", self.offset)
            self.offset += 1
            believed = self.bucket._mark.rule.believes(time, self.clock)
            arrivals = Arrivals(
                clock=self.clock,
                source="3",
                newest=time if believed else None,
                elements={key: [(time, values, origin)]} if believed else {},
                ahead=[] if believed else [(key, time, origin)],
            )
            found += self.wire.records(self.bucket.take([arrivals]))
        return found


def values(records):
    return [msgspec.json.decode(each.value) if each.value else None for each in records]


def test_a_pane_is_a_plain_record_with_its_facts_in_fields_and_headers():
    run = Run(
        lambda s: (
            s.window(fixed("10s"), by="device", lateness="1m")
            .trigger(on_watermark(late=after_count(1)))
            .accumulate(retracting)
            .aggregate(mean=mean("celsius"), n=count(), first=first("at"), spent=total("price"))
        )
    )
    assert run.take(reading("a", 1, 20.0, "1.5"), reading("a", 2, 21.0, "0.25")) == []
    (pane,) = run.take(reading("a", 12))
    assert (pane.topic, pane.key) == ("result", b"a")
    assert msgspec.json.decode(pane.value) == {
        "device": "a",
        "window_start": "1970-01-01T00:00:00Z",
        "window_end": "1970-01-01T00:00:10Z",
        "mean": 20.5,
        "n": 2,
        "first": "1970-01-01T00:00:01Z",
        "spent": "1.750000000000000000",
        "pane": "on_time",
        "pane_index": 0,
        "pane_last": False,
        "withdrawn": False,
        "at": "1970-01-01T00:00:09.999999Z",
    }
    assert dict(pane.headers) == {
        "penstock.pane": b"on_time",
        "penstock.pane.index": b"0",
        "penstock.pane.on-time-index": b"0",
        "penstock.pane.last": b"false",
        "penstock.pane.withdrawn": b"false",
    }
    withdrawal, late = values(run.take(reading("a", 3, 22.0)))
    assert (withdrawal["withdrawn"], withdrawal["n"], withdrawal["mean"]) == (True, 2, 20.5)
    assert (late["withdrawn"], late["n"], late["pane"]) == (False, 3, "late")


def test_sessions_that_become_one_leave_a_table():
    run = Run(
        lambda s: (
            s.window(sessions(gap="10s"), by="device", lateness="1h")
            .trigger(on_watermark(early=after_count(1)))
            .accumulate(accumulating)
            .aggregate(n=count())
        ),
        shape="table",
        event_time=EventTime(disorder="1m"),
    )
    ((key, value),) = [(e.key, e.value) for e in run.take(reading("a", 0))]
    ((second, _),) = [(e.key, e.value) for e in run.take(reading("a", 15))]
    assert key != second
    sent = run.take(reading("a", 8))
    assert [(each.key, each.value is None) for each in sent] == [(second, True), (key, False)]
    assert msgspec.json.decode(sent[-1].value)["n"] == 3
    assert msgspec.json.decode(value)["n"] == 1


def test_a_late_record_is_in_the_ledger_with_window_lateness_and_place():
    run = Run(lambda s: s.window(fixed("10s"), by="device").aggregate(n=count()))
    run.take(reading("a", 1), reading("a", 60))
    (entry,) = run.take(reading("a", 2))
    assert entry.topic == "demo.late"
    assert msgspec.json.decode(entry.value) == {
        "part": "result.windows",
        "topic": "readings",
        "partition": 3,
        "offset": 2,
        "group": '["a"]',
        "happened_at": "1970-01-01T00:00:02Z",
        "reason": "expired",
        "late_by_seconds": 58.0,
        "window_start": "1970-01-01T00:00:00Z",
        "window_end": "1970-01-01T00:00:10Z",
        "watermark_at": "1970-01-01T00:01:00Z",
    }


def test_a_record_of_the_far_future_is_set_aside_and_moves_nothing():
    run = Run(
        lambda s: s.window(fixed("10s"), by="device").aggregate(n=count()),
        event_time=EventTime(ahead="1h"),
    )
    run.clock = 100_000_000
    run.take(reading("a", 1))
    (entry,) = run.take(reading("a", 10_000))
    assert entry.topic == "demo.late"
    found = msgspec.json.decode(entry.value)
    assert (found["reason"], found["late_by_seconds"], found["offset"]) == ("ahead", -9900.0, 1)
    assert run.bucket.watermark == 1_000_000


def test_count_windows_say_which_records_they_hold():
    run = Run(
        lambda s: s.window(counted(2), by="device").aggregate(
            values=collect("celsius"), last=last("celsius"), spread=variance("celsius")
        )
    )
    (pane,) = values(run.take(*(reading("a", n, float(n)) for n in (3, 1, 2))))
    assert (pane["window_start"], pane["window_end"]) == (0, 2)
    assert (pane["values"], pane["last"], pane["at"]) == ([1.0, 3.0], 3.0, None)
    assert pane["spread"] == pytest.approx(2.0)


def test_a_pane_too_large_for_its_topic_is_a_dead_letter_that_names_its_window():
    run = Run(
        lambda s: s.window(counted(2), by="device").aggregate(names=collect("device")),
        max_record="1KiB",
    )
    name = "a" * 400
    (letter,) = run.take(reading(name, 0), reading(name, 1))
    assert letter.topic == "demo.dead-letters"
    assert msgspec.json.decode(letter.value) == {
        "part": "result.windows",
        "group": [name],
        "window": [0, 2],
    }
    told = read_letter(letter.key, letter.value, letter.headers)
    assert (told.code, told.part, told.headers) == ("data.too-large", "result.windows", ())
    assert told.coordinates == Coordinates("result", -1, -1), "it was never on the log"


def test_what_no_record_can_hold_is_null():
    run = Run(
        lambda s: s.window(counted(2), by="device").aggregate(
            sum=total("celsius"), most=maximum("celsius / (celsius - celsius)")
        )
    )
    (pane,) = values(run.take(reading("a", 0, 1.7e308), reading("a", 0, 1.7e308)))
    assert (pane["sum"], pane["most"]) == (None, None)
