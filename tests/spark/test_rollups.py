"""Windowed aggregations on a real broker and a real Spark, as streams and over ranges."""

import json
import random
import threading
from datetime import UTC, datetime, timedelta
from operator import itemgetter

import pytest

from penstock import App, EventTime, record
from penstock.aggregates import (
    collect,
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
from penstock.core.records.codec import JsonCodec
from penstock.errors import ConfigurationError
from penstock.pipelines.execution import plan
from penstock.pipelines.execution.batch import run_batch
from penstock.pipelines.execution.engine import run_pipelines
from penstock.pipelines.rebuild.rebuild import rebuild_pipeline
from penstock.pipelines.rollups.native import why_not_native
from penstock.triggers import after_count, every, every_record, on_watermark
from penstock.windows import fixed, retracting, sessions, sliding

pytestmark = pytest.mark.timeout(1200)

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
        ground.send("readings", (b"a", b"no reading"))
        for part in ("panes.windows", "table.windows"):
            ground.wait("letters", lambda part=part: ground.last(part).counts.dead_lettered == 1)
        assert_told(ground)
    readings.send(reading("a", 3, 30.0), reading("a", 3000, 0.0))
    with ground.running(*parts):
        ground.wait("a late pane", lambda: any(pane["pane"] == "late" for pane in readings.panes()))
        row = ("a", instant(0))
        ground.wait("the table", lambda: readings.table().get(row, {}).get("readings") == 3)
        readings.send(reading("a", 4, 1.0))
        ground.wait("the ledger", lambda: len(ground.read("late")) >= 2)
        ground.wait(
            "the ledger in numbers",
            lambda: ground.metrics("panes.windows").get("late_records_total") == 1,
        )
        panes = ground.metrics("panes.windows")["panes_total"]
        assert (panes["late"], panes["early"]) == (1, 0)
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
        (part, 8, "expired") for part in parts
    }
    table = readings.table()
    assert {(*row, found["readings"]) for row, found in table.items()} >= {
        ("a", instant(0), 3),
        ("b", instant(0), 1),
        ("a", instant(60), 1),
    }


def assert_told(ground):
    """The numbers of a pipeline that has had five records and something that is none."""
    for part, written in (("panes.windows", 4), ("table.windows", 3)):
        counts, told = ground.last(part).counts, ground.metrics(part)
        assert (counts.received, counts.passed, counts.written) == (6, 5, written)
        assert counts.balanced
        assert told["panes_total"] == {"early": 1, "on_time": 2, "late": 0, "withdrawn": 1}
        watermark_at = (START_AT + timedelta(seconds=70)).timestamp()
        assert told["watermark_timestamp_seconds"] == watermark_at
        assert told["watermark_behind_newest_seconds"] == 0
        behind = ground.last(part).at - watermark_at
        assert told["watermark_behind_clock_seconds"] == pytest.approx(behind)
        assert told["state_rows"] > 0
        assert told["state_memory_bytes"] > 0
        assert told["state_partitions"] > 0
        assert told["batch_seconds_count"] == told["batch_number"] + 1
        steps = told["batch_step_seconds_total"]
        assert {"add_batch", "wal_commit", "query_planning"} <= set(steps)
        assert 0 < sum(steps.values()) <= told["batch_seconds_sum"]
        assert told["sink_task_seconds_total"] > 0
        assert told["partition_lag_records"] == {ground.topic("readings"): {"0": 0}}
        detail = ground.last(part).detail
        assert detail["panes"] == "1 early, 2 on time, 0 late, 1 withdrawn"
        assert detail["watermark"].startswith("2026-01-01T00:01:10.000Z, ")


def assert_told_of_late(ground, *parts):
    """The numbers of pipelines that have had a record too late, and one long after it."""
    wanted = {"late_records_total": 1, "watermark_behind_newest_seconds": 5}.items()
    for part in parts:
        ground.wait("late, moved on", lambda part=part: wanted <= ground.metrics(part).items())
        assert ground.metrics(part)["panes_total"]["on_time"] >= 20
        assert ground.metrics(part)["state_rows"] > 0


def assert_late_for_a_rebuild(ground, *parts, records):
    """Rebuilds count what is late for them, and leave the ledger as it is."""
    ledger = len(ground.read("late"))
    for part in parts:
        site = ground.site(threading.Event())
        late = rebuild_pipeline(ground.graph, part, site, append=True).late
        assert (late.records, late.complete) == (records, True), part
    assert len(ground.read("late")) == ledger


def assert_same(pane, other):
    """Sums of floats depend on their order in the last digits."""
    for name, found in pane.items():
        assert found == (pytest.approx(other[name]) if isinstance(found, float) else other[name])


def test_spark_s_own_windows_and_the_pane_machine_give_the_same_answer(ground, monkeypatch):
    readings = Readings(ground, partitions=2, event_time=EventTime(disorder="5s", follows="newest"))
    windowed = readings.stream.where("level >= 0").window(fixed("1m"), by="device")
    results = {
        "mean": mean("celsius"),
        "levels": total("level"),
        "n": count(),
        "spread": variance("celsius"),
        "low": minimum("celsius"),
        "high": maximum("at"),
        "first": first("celsius"),
        "last": last("level"),
        "different": distinct("level"),
        "all": collect("level"),
    }
    ground.app.stream(ground.topic("native"), windowed.trigger(on_watermark()).aggregate(**results))
    # The same once more, with what Spark has no aggregate for.
    results["median"] = quantile("celsius", 0.5)
    ground.app.stream(
        ground.topic("machine"), windowed.trigger(on_watermark()).aggregate(**results)
    )
    ground.declare()
    native, machine = (
        ground.graph.part(ground.topic(f"{n}.windows")) for n in ("native", "machine")
    )
    assert why_not_native(native) == []
    assert len(why_not_native(machine)) == 1
    chance = random.Random(1)
    readings.send(
        *(
            reading(
                f"d{chance.randrange(5)}", second, chance.uniform(-5, 40), chance.randrange(-1, 9)
            )
            for second in range(300)
        ),
        reading("d0", 3, 20.0, 2**62),
        reading("d0", 4, 20.0, 2**62),
    )
    with ground.running(native.name, machine.name):
        ground.wait("native panes", lambda: len(readings.panes("native")) == 20)
        ground.wait("panes", lambda: len(readings.panes("machine")) == 20)
        readings.send(reading("d1", 30, 1.0), reading("d1", 3000, 1.0))
        ground.wait("the ledger", lambda: len(ground.read("late")) == 2)
        assert_told_of_late(ground, "native.windows", "machine.windows")
    by_machine = {
        (pane["device"], pane["window_start"]): pane for pane in readings.panes("machine")
    }
    for pane in readings.panes("native"):
        assert_same(pane, by_machine[pane["device"], pane["window_start"]])
    ledger = [json.loads(found.value) for found in ground.read("late")]
    assert {entry.pop("part") for entry in ledger} == {native.name, machine.name}
    facts = itemgetter("offset", "partition", "window_start", "reason")
    one, other = ledger
    assert facts(one) == facts(other)
    headers = {found.headers for found in ground.read("native")}
    assert headers <= {found.headers for found in ground.read("machine")}
    # In smaller batches the watermark goes on earlier, and two more are late.
    monkeypatch.setattr(plan, "RECORDS_PER_BATCH", 150)
    assert_late_for_a_rebuild(ground, native.name, machine.name, records=3)


def test_the_answer_over_a_finished_range_is_that_of_the_stream(ground):
    readings = Readings(ground, partitions=2, event_time=EventTime(closes_after="1s"))
    chatty = on_watermark(early=every_record(10), late=every_record())
    declared = {
        "fixed": readings.stream.window(fixed("1m"), by="device", lateness="1h").trigger(chatty),
        "sessions": readings.stream.window(sessions(gap="2s"), by="device").trigger(chatty),
        "sliding": readings.stream.window(sliding("1m", every="20s"), by="device"),
    }
    for name, windowed in declared.items():
        aggregation = windowed.aggregate(n=count(), levels=collect("level"), mean=mean("celsius"))
        ground.app.table(ground.topic(name), aggregation)
    ground.declare()
    chance = random.Random(2)
    for _ in range(4):
        readings.send(
            *(
                reading(
                    f"d{chance.randrange(4)}", chance.uniform(0, 120), level=chance.randrange(9)
                )
                for _ in range(50)
            )
        )
    names = [ground.topic(f"{name}.windows") for name in declared]
    for name in names:
        run_batch(ground.graph, name, ground.site(threading.Event()), label="all")
    with ground.running(*names):
        for name in declared:
            expected = readings.table(f"{name}.replay.all")
            assert expected
            ground.wait(
                f"the table of {name}",
                lambda name=name, expected=expected: (
                    answers(readings.table(name)) == answers(expected)
                ),
            )


def answers(table):
    """The results of a table's windows, without how often they were given before."""
    return {key: (row["n"], row["levels"], row["window_end"]) for key, row in table.items()}


def test_windows_speak_by_the_clock_while_no_record_comes(ground):
    readings = Readings(ground, partitions=2, event_time=EventTime(idle_after="3s"))
    early = readings.stream.window(fixed("1h"), by="device").trigger(
        on_watermark(early=every("2s"))
    )
    ground.app.stream(ground.topic("panes"), early.aggregate(n=count()))
    # Only one of two partitions goes on; the other holds its windows open until it is silent.
    minutes = readings.stream.window(fixed("1m"), by="device").aggregate(n=count())
    ground.app.table(ground.topic("table"), minutes)
    ground.declare()
    readings.send(*(reading(f"d{number}", 1) for number in range(8)))
    with ground.running(ground.topic("panes.windows"), ground.topic("table.windows")):
        ground.wait("early panes", lambda: [p["n"] for p in readings.panes()] == [1] * 8)
        assert readings.table() == {}
        readings.send(reading("d0", 3000))
        ground.wait("the table", lambda: len(readings.table()) == 8)


def test_a_changed_aggregation_is_refused_before_anything_is_touched(ground):
    readings = Readings(ground, partitions=1)
    windowed = readings.stream.window(fixed("1m"), by="device")
    ground.app.table(ground.topic("table"), windowed.aggregate(n=count(), top=top("celsius", 2)))
    ground.declare()
    name = ground.topic("table.windows")
    with ground.running(name):
        readings.send(reading("a", 1), reading("a", 100))
        ground.wait("a row", lambda: readings.table() != {})
    changed = App(ground.name)
    stream = changed.stream(ground.topic("readings"), Reading, partitions=1)
    windowed = stream.window(fixed("5m"), by="device")
    changed.table(ground.topic("table"), windowed.aggregate(n=count(), top=top("celsius", 2)))
    with pytest.raises(ConfigurationError) as refusal:
        run_pipelines(changed.graph, [name], ground.site(threading.Event()))
    assert refusal.value.code == "pipeline.changed"
    assert "was FixedWindows(size 1m" in refusal.value.detail
    assert "new name" in refusal.value.hint
