"""Spark's own windows and the pane machine on Spark beside a recount, over hostile event times.

One query each, from files instead of a broker: a file is a batch.
"""

import json
import os
import runpy
from collections import Counter
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock import App, EventTime, record
from penstock.aggregates import collect, count, quantile
from penstock.core.panes.windows import SlidingWindows
from penstock.core.records.codec import JsonCodec
from penstock.pipelines.rollups.native import native_panes, why_not_native
from penstock.pipelines.rollups.plan import streamed_panes
from penstock.triggers import on_watermark

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

times = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[1] / "eventtimes.py")))
WINDOWS = times.Windows(60 * times.SECOND, 20 * times.SECOND, 7 * times.SECOND)
LINE = "key string, value string, partition int, offset long"
ROW = "binary(key) as key", "binary(value) as value", "partition", "offset"


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    level: int = 0


def written(directory, readings, batches):
    """Write a file for each batch; their times say in which order they are read."""
    codec, offset = JsonCodec(readings.record), 0
    directory.mkdir()
    for number, batch in enumerate(batches):
        lines = []
        for each in batch:
            made = Reading(each.device, each.at, each.level)
            row = {"key": each.device, "value": codec.encode(made).decode(), "partition": 0}
            lines.append(json.dumps(row | {"offset": offset}) + "\n")
            offset += 1
        file = directory / f"{number:04}.json"
        file.write_text("".join(lines), encoding="utf-8")
        os.utime(file, (1_000_000_000 + number, 1_000_000_000 + number))


def run(frame, directory, name):
    """Let a query take all there is; return its records by topic, and what Spark dropped."""
    writer = frame.writeStream.format("memory").queryName(name).outputMode("append")
    writer = writer.option("checkpointLocation", str(directory / name))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    found = {}
    for row in frame.sparkSession.table(name).collect():
        found.setdefault(row["topic"], []).append(json.loads(bytes(row["value"])))
    dropped = sum(
        each["numRowsDroppedByWatermark"]
        for progress in query.recentProgress
        for each in progress["stateOperators"]
    )
    return found, dropped


def panes_of(found):
    return Counter(
        (
            pane["device"],
            datetime.fromisoformat(pane["window_start"]),
            datetime.fromisoformat(pane["window_end"]),
            tuple(pane["levels"]),
        )
        for pane in found
    )


def test_windows_are_those_of_a_recount_from_the_year_1_to_9999_on_both_ways(spark, tmp_path):
    app = App("times")
    readings = app.stream("readings", Reading, partitions=1, event_time=EventTime(disorder="10m"))
    kind = SlidingWindows(WINDOWS.size, WINDOWS.period, WINDOWS.offset)
    windowed = readings.where("level >= 0").window(kind, by="device")
    once = windowed.trigger(on_watermark())
    results = {"n": count(), "levels": collect("level")}
    native = app.stream("native", once.aggregate(**results))
    app.stream("machine", once.aggregate(**results, median=quantile("level", 0.5)))
    by_native, by_machine = (app.graph.part(f"{name}.windows") for name in ("native", "machine"))
    assert why_not_native(by_native) == []
    assert why_not_native(by_machine)
    scene = times.orderly(1, WINDOWS)
    written(tmp_path / "readings", readings, scene.batches)
    lines = spark.readStream.schema(LINE).option("maxFilesPerTrigger", 1)
    rows = lines.json(str(tmp_path / "readings")).selectExpr(*ROW)
    over, late = times.recount(scene)
    assert late
    found, dropped = run(native_panes(rows, readings, by_native, into=native), tmp_path, "native")
    assert panes_of(found.pop("native")) == over
    assert (found, dropped) == ({}, len({(device, *window) for device, _, *window in late}))
    found, _ = run(streamed_panes(rows, app.graph, by_machine, buckets=2), tmp_path, "machine")
    assert panes_of(found.pop("machine")) == over
    ledger = found.pop(app.graph.late_records.name)
    told = Counter((each["group"], datetime.fromisoformat(each["happened_at"])) for each in ledger)
    wanted = Counter()
    for (device, time, _, _), n in late.items():
        wanted[f'["{device}"]', times.instant(time)] += n
    assert (found, told) == ({}, wanted)
