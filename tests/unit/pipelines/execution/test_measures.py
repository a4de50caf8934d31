"""What a query's progress comes to. The progress is as Spark 4.2 gives it."""

from datetime import UTC, datetime

import pytest
from pyspark.sql import Row

from penstock.core.status.exposition import CATALOGUE, nested
from penstock.pipelines.execution.measures import Measures

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()


def operator(**given):
    times = {"allUpdatesTimeMs": 10, "allRemovalsTimeMs": 0, "commitTimeMs": 40}
    sizes = {"memoryUsedBytes": 2048, "customMetrics": {"rocksdbSstFileSize": 1_500_000}}
    counts = {"numRowsTotal": 7, "numShufflePartitions": 2, "numRowsDroppedByWatermark": 0}
    return times | sizes | counts | given


def progress(batch=0, *, idle=False, rows=0, **given):
    spent = {"latestOffset": 3, "triggerExecution": 5}
    if not idle:
        spent = {"addBatch": 800, "walCommit": 50, "latestOffset": 3, "triggerExecution": 900}
    return {
        "batchId": batch,
        "timestamp": "2026-01-01T12:00:00.000Z",
        "durationMs": spent,
        "eventTime": {},
        "stateOperators": [],
        "sources": [],
        "sink": {"numOutputRows": -1},
        "numInputRows": rows,
        "observedMetrics": {},
    } | given


def test_rows_are_counted_where_they_are_observed_and_the_law_holds():
    measures = Measures()
    gate = Row(received=10, rejected=2, deletions=1)
    measures.add(progress(rows=20, observedMetrics={"p/in": gate, "p": Row(written=6)}))
    counts = measures.counts()
    assert (counts.received, counts.passed, counts.filtered, counts.in_flight) == (10, 7, 1, 2)
    assert counts.written == 6
    measures.swept(2, late=0, all_rejected=False)
    assert (measures.counts().dead_lettered, measures.counts().in_flight) == (2, 0)
    assert measures.counts().balanced


def test_in_real_time_mode_refused_rows_are_those_that_were_swept():
    measures = Measures()
    measures.add(progress(rows=20, sink={"numOutputRows": 18}))
    measures.swept(2, late=0, all_rejected=True)
    counts = measures.counts()
    assert (counts.received, counts.passed, counts.dead_lettered) == (20, 18, 2)
    assert counts.balanced
    measures.swept(30, late=0, all_rejected=True)
    assert measures.counts().passed == 0


def test_batches_and_their_steps_are_added_up_and_idle_looks_are_none():
    measures = Measures()
    for each in (progress(0), progress(1), progress(2, idle=True)):
        measures.add(each)
    told = nested(measures.series(NOON))
    assert (told["batch_seconds_count"], told["batch_seconds_sum"]) == (2, 1.8)
    assert told["batch_number"] == 1
    assert told["batch_step_seconds_total"] == {
        "add_batch": 1.6,
        "wal_commit": 0.1,
        "latest_offset": 0.006,
    }
    detail = measures.detail(NOON)
    assert detail["batch"] == "1 in 0.900s"
    assert detail["steps"] == "add batch 0.800s, wal commit 0.050s, latest offset 0.003s"


def test_the_watermark_has_a_distance_from_the_clock_and_from_the_newest_event():
    measures = Measures()
    measures.add(progress(eventTime={"watermark": "1970-01-01T00:00:00.000Z"}))
    assert "watermark_timestamp_seconds" not in measures.series(NOON)
    measures.add(
        progress(1, eventTime={"watermark": "2026-01-01T11:58:00Z", "max": "2026-01-01T11:59:00Z"})
    )
    measures.add(
        progress(2, eventTime={"watermark": "2026-01-01T11:58:00Z", "max": "2026-01-01T11:00:00Z"})
    )
    told = measures.series(NOON)
    assert told["watermark_timestamp_seconds"] == NOON - 120
    assert told["watermark_behind_clock_seconds"] == 120
    assert told["watermark_behind_newest_seconds"] == 60
    assert measures.detail(NOON)["watermark"] == (
        "2026-01-01T11:58:00.000Z, 2m00s behind the clock, 1m00s behind the newest event"
    )
    assert "10s ahead of the clock" in measures.detail(NOON - 130)["watermark"]


def test_state_is_as_large_as_it_was_last_said_to_be():
    measures = Measures()
    measures.add(progress(stateOperators=[operator(), operator(numRowsTotal=3)]))
    measures.add(progress(1, stateOperators=[operator(numRowsTotal=1_234)]))
    told = nested(measures.series(NOON))
    assert (told["state_rows"], told["state_partitions"]) == (1_234, 2)
    assert (told["state_memory_bytes"], told["state_disk_bytes"]) == (2048, 1_500_000)
    assert told["state_task_seconds_total"]["commit"] == pytest.approx(0.12)
    assert measures.detail(NOON)["state"] == (
        "1,234 rows, 2.0 KiB in memory, 1.4 MiB on disk, 2 partitions"
    )


def test_panes_of_the_pane_machine_are_those_its_buckets_told_of():
    measures = Measures()
    told = {"early": 3, "on_time": 2, "late": 1, "withdrawn": 4, "late_records": 5}
    times = {"watermark": int(NOON * 1e6), "newest": int(NOON * 1e6) + 5_000_000}
    measures.add(progress(observedMetrics={"p/panes": Row(**told, ahead_records=6, **times)}))
    nothing = dict.fromkeys([*told, "ahead_records", *times])
    measures.add(progress(1, observedMetrics={"p/panes": Row(**nothing)}))
    found = nested(measures.series(NOON))
    assert found["panes_total"] == {"early": 3, "on_time": 2, "late": 1, "withdrawn": 4}
    assert (found["late_records_total"], found["ahead_records_total"]) == (5, 6)
    assert found["watermark_behind_newest_seconds"] == 5
    assert measures.detail(NOON)["late ledger"] == "5 late, 6 ahead"


def test_panes_of_spark_s_own_windows_are_on_time_and_what_they_drop_is_in_the_ledger():
    measures = Measures(native=True)
    late = operator(numRowsDroppedByWatermark=2)
    measures.add(progress(observedMetrics={"p": Row(written=4)}, stateOperators=[late]))
    measures.swept(0, late=3, all_rejected=False)
    found = nested(measures.series(NOON))
    assert found["panes_total"] == {"early": 0, "on_time": 4, "late": 0, "withdrawn": 0}
    assert (found["late_records_total"], found["dropped_rows_total"]) == (3, 0)


def test_rows_that_a_function_drops_behind_its_watermark_are_said():
    measures = Measures()
    measures.add(progress(stateOperators=[operator(numRowsDroppedByWatermark=2)]))
    assert measures.series(NOON)["dropped_rows_total"] == 2
    assert measures.detail(NOON)["dropped"] == "2 rows behind the watermark"


def test_before_the_first_batch_there_is_nothing_to_say():
    measures = Measures()
    measures.add(progress(idle=True))
    assert measures.detail(NOON) == {}
    assert "batch_number" not in measures.series(NOON)


def test_every_series_is_in_the_catalogue():
    measures = Measures()
    told = dict.fromkeys(["early", "on_time", "late", "withdrawn"], 1)
    told |= dict.fromkeys(["late_records", "ahead_records", "watermark", "newest"], 1)
    measures.add(progress(stateOperators=[operator()], observedMetrics={"p/panes": Row(**told)}))
    names = {
        name.removesuffix(end) for name in nested(measures.series(NOON)) for end in _ends(name)
    }
    assert names <= set(CATALOGUE)


def _ends(name):
    return [end for end in ("_bucket", "_sum", "_count") if name.endswith(end)] or [""]


@pytest.mark.parametrize(
    ("shifted", "at"),
    [
        ("1970-01-01T00:00:10.000Z", "0001-01-01T00:00:10+00:00"),
        ("3938-01-01T00:00:00.000Z", "1969-01-01T00:00:00+00:00"),
        ("11968-12-30T23:59:59.000Z", "9999-12-31T23:59:59+00:00"),
    ],
)
def test_event_times_of_spark_s_own_windows_are_told_as_they_were(shifted, at):
    measures = Measures(native=True)
    measures.add(progress(eventTime={"watermark": shifted, "max": shifted}))
    told = measures.series(NOON)
    assert told["watermark_timestamp_seconds"] == datetime.fromisoformat(at).timestamp()
    assert told["newest_event_timestamp_seconds"] == datetime.fromisoformat(at).timestamp()
