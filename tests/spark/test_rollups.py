"""Windowed aggregations on a real broker and a real Spark, as streams and over ranges."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from penstock import (
    after_count,
    count,
    every_record,
    fixed,
    mean,
    on_watermark,
    record,
    retracting,
)
from penstock.core.codec import JsonCodec

pytestmark = pytest.mark.timeout(500)

START_AT = datetime(2026, 1, 1, tzinfo=UTC)


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    celsius: float
    level: int = 0


def reading(device, seconds, celsius=0.0, level=0):
    return Reading(device, START_AT + timedelta(seconds=seconds), celsius, level)


class Readings:
    """The stream of one test, and the panes made of it."""

    def __init__(self, ground, **options):
        self.ground = ground
        self.codec = JsonCodec(
            ground.app.stream(ground.topic("readings"), Reading, **options).record
        )
        self.stream = ground.app.graph.data[-1]

    def send(self, *readings):
        self.ground.send(
            "readings", *((self.codec.key(each), self.codec.encode(each)) for each in readings)
        )

    def panes(self, topic="panes"):
        return [json.loads(found.value) for found in self.ground.read(topic)]

    def table(self, topic="table"):
        latest = {found.key: found.value for found in self.ground.read(topic)}
        rows = [json.loads(value) for value in latest.values() if value is not None]
        return {(row["device"], row["window_start"]): row for row in rows}


def instant(seconds):
    return (START_AT + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def test_panes_with_early_and_late_firings_and_retractions(ground):
    readings = Readings(ground, partitions=1)
    by_minute = (
        readings.stream.where("celsius > -273.15")
        .window(fixed("1m"), by="device", lateness="10m")
        .trigger(on_watermark(early=after_count(2), late=every_record()))
        .accumulate(retracting)
        .aggregate(fahrenheit=mean("celsius * 1.8 + 32"), readings=count())
    )
    ground.app.stream(ground.topic("panes"), by_minute)
    ground.app.table(ground.topic("table"), by_minute)
    ground.declare()
    parts = [ground.topic("panes.windows"), ground.topic("table.windows")]
    with ground.running(*parts):
        readings.send(reading("a", 1, 10.0), reading("a", 2, 20.0), reading("b", 3, 5.0))
        ground.wait("an early pane", lambda: len(readings.panes()) == 1)
        readings.send(reading("a", 70, 0.0), reading("x", 5, -400.0))
        ground.wait("on-time panes", lambda: len(readings.panes()) == 4)
    readings.send(reading("a", 3, 30.0), reading("a", 3000, 0.0))
    with ground.running(*parts):
        ground.wait("a late pane", lambda: readings.panes()[-1]["pane"] == "late")
        readings.send(reading("a", 4, 1.0))
        ground.wait("the ledger", lambda: len(ground.read("late")) >= 2)
        row = ("a", instant(0))
        ground.wait("the table", lambda: readings.table().get(row, {}).get("readings") == 3)
    of_a = [pane for pane in readings.panes() if pane["window_start"] == instant(0)]
    of_a = [pane for pane in of_a if pane["device"] == "a"]
    facts = ("pane", "pane_index", "withdrawn", "readings", "fahrenheit")
    # A batch that was under way at the restart is written again.
    assert list(dict.fromkeys(tuple(pane[fact] for fact in facts) for pane in of_a)) == [
        ("early", 0, False, 2, pytest.approx(59.0)),
        ("on_time", 1, True, 2, pytest.approx(59.0)),
        ("on_time", 1, False, 2, pytest.approx(59.0)),
        ("late", 2, True, 2, pytest.approx(59.0)),
        ("late", 2, False, 3, pytest.approx(68.0)),
    ]
    entries = [json.loads(found.value) for found in ground.read("late")]
    assert {(entry["part"], entry["offset"], entry["reason"]) for entry in entries} == {
        (part, 7, "expired") for part in parts
    }
    table = readings.table()
    assert {(*row, found["readings"]) for row, found in table.items()} >= {
        ("a", instant(0), 3),
        ("b", instant(0), 1),
        ("a", instant(60), 1),
    }
    assert [topic["received"] for topic in []] == []
