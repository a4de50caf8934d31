"""Operators on Spark: what services give, in batches, over a restart, and over a finished range."""

import json
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from penstock import App, EventTime, record
from penstock.core.graph.parts import Pipeline
from penstock.core.instants import micros
from penstock.core.operators.marks import time_header
from penstock.core.wiring.lookup import find_part
from penstock.errors import ConfigurationError
from penstock.pipelines.execution.batch import run_batch
from penstock.pipelines.execution.engine import run_pipelines
from penstock.pipelines.operators.plan import final_results

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(1200)]

START_AT = datetime(2026, 1, 1, tzinfo=UTC)


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    id: int
    celsius: float = 20.0


def reading(device: str, number: int, seconds: float, celsius: float = 20.0) -> tuple[bytes, bytes]:
    at = (START_AT + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
    row = {"device": device, "at": at, "id": number, "celsius": celsius}
    return device.encode(), json.dumps(row).encode()


def values(ground, topic: str) -> list[dict]:
    return [json.loads(each.value) for each in ground.read(topic)]


def ids(ground, topic: str) -> Counter:
    return Counter((row["device"], row["id"]) for row in values(ground, topic))


def last_report(ground, part: str):
    return next((each for each in reversed(ground.reports) if each.part == part), None)


def declared(ground, by: str = "id") -> None:
    """Declare each reading once, and the warm ones of two streams, as a merge."""
    times = EventTime(disorder="10s")
    readings = ground.app.stream(ground.topic("readings"), Reading, event_time=times)
    once = readings.deduplicate(by=by, within="1m")
    ground.app.stream(ground.topic("once"), once, on="spark")
    warm = readings.where("celsius > 10").select(device="device", id="id", kelvin="celsius + 273")
    ground.app.stream(ground.topic("warm"), warm, on="spark")


def test_operators_give_on_spark_what_they_give_in_a_service_and_over_a_range(ground):
    declared(ground)
    ground.declare()
    once, warm = ground.topic("once.filling"), ground.topic("warm.filling")
    first = [reading(f"d{each % 5}", each // 10, each / 10) for each in range(100)]
    with ground.running(once, warm):
        ground.send("readings", *first, (b"bad", b"no json"))
        ground.wait("each once", lambda: len(values(ground, "once")) == 50)
    with ground.running(once, warm):
        # The same again, known from before the restart; then event time moves, in one partition.
        ground.send("readings", *first, reading("cold", 1, 10, 5.0), reading("odd", 100, 10))
        ground.wait("two more", lambda: len(values(ground, "once")) == 52)
        both = [reading(f"e{each}", 1, 1000) for each in range(20)]
        ground.send("readings", *both)
        ground.wait("later ones", lambda: len(values(ground, "once")) == 72)
        ground.send("readings", reading("f1", 1, 0), reading("f2", 1, 995))
        ground.wait("a late one", lambda: len(values(ground, "late")) == 1)
        ground.wait("all but the late one", lambda: len(values(ground, "once")) == 73)
        ground.wait(
            "no lag", lambda: all(last_report(ground, each).lag == 0 for each in (once, warm))
        )
        ground.wait("results", lambda: len(values(ground, "warm")) == 223)
    assert set(ids(ground, "once").values()) == {1}
    (late,) = values(ground, "late")
    assert (late["part"], late["reason"], late["group"]) == (once, "expired", '["f1"]')
    assert all(row["kelvin"] == 293 for row in values(ground, "warm"))
    letters = Counter(dict(each.headers)["penstock.part"] for each in ground.read("dead-letters"))
    assert letters == {once.encode(): 1, warm.encode(): 1}
    for part in (once, warm):
        counts = last_report(ground, part).counts
        assert counts.balanced
    counts = last_report(ground, warm).counts
    assert (counts.filtered, counts.dead_lettered) == (1, 0)

    run_batch(ground.graph, once, ground.site(threading.Event()), label="x")
    assert ids(ground, "once.replay.x") == ids(ground, "once")
    result = run_batch(ground.graph, warm, ground.site(threading.Event()), label="y")
    assert sorted(map(str, values(ground, "warm.replay.y"))) == sorted(
        map(str, values(ground, "warm"))
    )
    assert result.counts.balanced


def test_state_of_another_declaration_is_refused(ground):
    declared(ground)
    ground.declare()
    once = ground.topic("once.filling")
    ground.send("readings", reading("a", 1, 0))
    with ground.running(once):
        ground.wait("one", lambda: len(values(ground, "once")) == 1)
    fresh = type(ground)(ground.kafka, ground.spark, ground.home)
    fresh.name, fresh.app = ground.name, type(ground.app)(ground.name)
    declared(fresh, by="celsius")
    with pytest.raises(ConfigurationError) as refused:
        run_pipelines(fresh.graph, [once], fresh.site(threading.Event()))
    assert refused.value.code == "pipeline.changed"
    assert "by: was id" in refused.value.detail


def test_a_deletion_has_the_event_time_that_its_header_says_or_that_of_writing(spark):
    app = App("shop")
    asked, kept = app.stream("asked", Reading), app.table("kept", Reading, history="1d")
    beside = asked.join(kept, on="device", how="left").select(id="asked.id", found="kept.id")
    app.stream("found", beside, on="spark")
    written_at = START_AT + timedelta(hours=1)
    said = [(name, value) for name, value in time_header(micros(START_AT) + 10_000_000)]

    def rows(topic: str, *sent):
        shape = "key binary, value binary, topic string, partition int, offset long, "
        shape += "timestamp timestamp, headers array<struct<key string, value binary>>"
        found = [
            (key, value, topic, 0, offset, written_at, headers)
            for offset, (key, value, headers) in enumerate(sent)
        ]
        return spark.createDataFrame(found, shape)

    results = final_results(
        {
            "kept": rows(
                "kept",
                (*reading("said", 1, 0), None),
                (*reading("unsaid", 2, 0), []),
                (b"said", None, [("who", b"ann"), *said]),
                (b"unsaid", None, None),
            ),
            "asked": rows(
                "asked",
                (*reading("said", 11, 5), None),
                (*reading("said", 12, 15), None),
                (*reading("unsaid", 13, 15), None),
            ),
        },
        app.graph,
        find_part(app.graph, "found.filling", Pipeline),
        into="out",
        late="late",
        letters="letters",
    )
    found = (json.loads(each.value) for each in results.collect())
    assert {row["id"]: row["found"] for row in found} == {11: 1, 12: None, 13: 2}
