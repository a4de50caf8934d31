"""Lake tables: kept in shape under their writers, read by others and as they were."""

import json
import os
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import deltalake
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it

from penstock import App, day, record
from penstock.backbone.site import Site
from penstock.cli.main import main
from penstock.core.settings.settings import LakeSettings, Settings
from penstock.errors import ConfigurationError
from penstock.pipelines.lake.snapshot import Snapshot, changes
from penstock.pipelines.lake.table import lake_path, lake_rows, make_table, stored_rows
from penstock.pipelines.lake.upkeep import LONGEST_WRITE, MANY_FILES, maintain, upkeep_session
from penstock.pipelines.sink.destination import stream_writer

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(1200)]

NOW = datetime.now(UTC)
READING = "device string, at timestamp, id bigint"


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    id: int


@record(key="device", time="at")
class LongerReading:
    device: str
    at: datetime
    id: int
    unit: str = "celsius"
    note: str | None = None


@record(key="device", time="at")
class OtherReading:
    device: str
    at: datetime
    id: str


def message(number: int, at: datetime) -> tuple[bytes, bytes]:
    stamp = at.isoformat().replace("+00:00", "Z")
    device = f"d{number % 3}"
    value = {"device": device, "at": stamp, "id": number}
    return device.encode(), json.dumps(value).encode()


def elsewhere(path: str) -> deltalake.DeltaTable:
    """Open a table with a reader that is not Spark."""
    return deltalake.DeltaTable(path)


def ids(path: str) -> Counter:
    return Counter(elsewhere(path).to_pyarrow_table(columns=["id"])["id"].to_pylist())


def files(path: str) -> int:
    return len(elsewhere(path).file_uris())


def add(spark, lake, path: str, *rows: tuple[str, datetime, int], parts: int = 1) -> None:
    naive = [(device, at.astimezone().replace(tzinfo=None), number) for device, at, number in rows]
    frame = spark.createDataFrame(naive, READING)
    writer = stored_rows(frame.repartition(parts), lake).write.format("delta").mode("append")
    # As many files as there are parts.
    writer.option("optimizeWrite", "false").save(path)


def write_stream(frame: DataFrame, lake, site: Site) -> int:
    """Send all there is into a table, as a pipeline does; return how many rows were counted."""
    writer = stream_writer(frame, lake, site).option("checkpointLocation", f"{site.places.home}/c")
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return query.lastProgress["observedMetrics"][lake.name]["written"]


def test_a_table_is_kept_in_shape_under_its_writer_and_its_follower_and_read_elsewhere(
    ground, spark
):
    readings = ground.app.stream(ground.topic("readings"), Reading)
    kept = ground.app.lake("kept", Reading, partition_by=day("at"), retention="30d")
    followed = ground.app.stream(ground.topic("followed"), Reading)

    @ground.app.pipeline(reads=readings, writes=kept)
    def keep(readings: DataFrame) -> DataFrame:
        return readings

    @ground.app.pipeline(reads=kept, writes=followed)
    def follow(kept: DataFrame) -> DataFrame:
        return kept

    path = f"{ground.home}/lake/kept"
    old, new = NOW - timedelta(days=40), NOW - timedelta(days=1)
    ground.settings = Settings(lake=LakeSettings(upkeep_interval=timedelta(seconds=1)))
    ground.declare()
    make_table(spark, kept, path)
    add(spark, kept, path, *(("d", new, n) for n in range(100, 140)), parts=MANY_FILES + 4)
    ground.send("readings", *(message(n, old) for n in range(40)))
    ground.send("readings", *(message(n, new) for n in range(40, 100)))

    def done(what: str) -> bool:
        known = {each.operation for each in changes(spark, path, limit=100)}
        return what in known

    def followed_ids() -> list[int]:
        return sorted(json.loads(each.value)["id"] for each in ground.read("followed"))

    with ground.running("keep", "follow"):
        ground.wait("all rows", lambda: followed_ids() == list(range(140)))
        ground.wait("expired rows", lambda: done("DELETE"))
        ground.wait("compaction", lambda: done("OPTIMIZE"))
        ground.send("readings", *(message(n, new) for n in range(140, 150)))
        ground.wait("more rows", lambda: len(followed_ids()) == 150)
        ground.wait("upkeep", lambda: any("upkeep" in each.detail for each in ground.reports))
    written = {each.part: each.counts.written for each in ground.reports}
    assert written == {"keep": 110, "follow": 150}
    assert followed_ids() == list(range(150))
    assert ids(path) == Counter(range(40, 150))
    assert files(path) < 40
    table = elsewhere(path)
    assert (table.protocol().min_reader_version, table.protocol().min_writer_version) == (1, 2)
    assert table.metadata().partition_columns == ["at_day"]
    assert {each["at_day"] for each in table.partitions()} == {str(new.date())}
    rows = table.to_pyarrow_table().to_pylist()
    assert {row["at_day"] for row in rows} == {new.date()}
    assert all(row["at"] == new for row in rows)


@pytest.fixture
def lake(tmp_path):
    """A table of its own, that no pipeline writes."""
    declared = App("upkeep").lake("kept", Reading, partition_by=("device", day("at")))
    return declared, str(tmp_path / "kept")


def test_a_small_batch_of_many_tasks_makes_one_file_for_each_partition_of_its_table(ground, spark):
    data = App("shop").lake("kept", Reading, partition_by=day("at"))
    given, site = f"{ground.home}/given", ground.site(threading.Event())
    rows = spark.range(320).withColumn("at", F.expr("timestamp_seconds(id % 2 * 86400)"))
    rows.selectExpr("'d' as device", "at", "id").write.parquet(given)
    frame = spark.readStream.schema(READING).parquet(given).repartition(32)

    assert write_stream(frame, data, site) == 320

    path = lake_path("kept", site)
    assert files(path) == 2
    assert ids(path) == Counter(range(320))


def test_a_large_batch_is_still_written_by_several_tasks(ground, spark):
    data = App("shop").lake("kept", Reading)
    given, site = f"{ground.home}/given", ground.site(threading.Event())
    text = "sha2(string(id), 512) as device"
    rows = spark.range(160_000).selectExpr(text, "timestamp_seconds(id) as at", "id")
    rows.write.parquet(given)
    frame = spark.readStream.schema(READING).parquet(given).repartition(32)

    assert write_stream(frame, data, site) == 160_000

    assert 1 < files(lake_path("kept", site)) < 8


def test_only_partitions_with_many_small_files_are_compacted_whatever_their_names(spark, lake):
    data, path = lake
    make_table(spark, data, path)
    odd = "it's ünïcode / a=b%"
    add(spark, data, path, *((odd, NOW, n) for n in range(50)), parts=MANY_FILES)
    add(spark, data, path, *((None, NOW, n) for n in range(50, 100)), parts=MANY_FILES)
    add(spark, data, path, *(("few", NOW, n) for n in range(100, 150)), parts=3)
    before = files(path)

    done = maintain(upkeep_session(spark), data, path, now=NOW)

    by_device = {each.values["device"]: each for each in Snapshot(spark, path).partitions()}
    assert {device: each.files for device, each in by_device.items()} == {odd: 1, None: 1, "few": 3}
    assert {each.rows for each in by_device.values()} == {50}
    assert (done.compacted_files, done.written_files, done.removed_files) == (before - 3, 2, 0)
    assert ids(path) == Counter(range(150))
    again = maintain(upkeep_session(spark), data, path, now=NOW, clean=False)
    assert (str(again), again.version) == ("nothing to do", Snapshot(spark, path).version)


def test_days_expire_whole_and_old_files_go_when_no_version_of_the_history_needs_them(spark, lake):
    data, path = replace(lake[0], retention=timedelta(days=30)), lake[1]
    make_table(spark, data, path)
    edge = (NOW - timedelta(days=30)).replace(hour=0, minute=0, second=0, microsecond=0)
    add(
        spark, data, path, ("a", edge, 1), ("a", edge - timedelta(microseconds=1), 2), ("b", NOW, 3)
    )
    add(spark, data, path, ("a", edge - timedelta(days=400), 4))
    session = upkeep_session(spark)

    done = maintain(session, data, path, now=NOW)

    assert (done.deleted_rows, done.removed_files) == (2, 0)
    assert ids(path) == Counter([1, 3])
    assert str(maintain(session, data, path, now=NOW, clean=False)) == "nothing to do"
    was = spark.read.format("delta").option("versionAsOf", 2).load(path)
    assert sorted(row.id for row in was.select("id").collect()) == [1, 2, 3, 4]
    briefly = replace(data, history=timedelta())
    make_table(spark, briefly, path)
    assert maintain(session, briefly, path, now=NOW).removed_files == 2
    assert ids(path) == Counter([1, 3])


def test_files_of_a_write_that_takes_longer_than_the_history_stay(spark, lake):
    data, path = replace(lake[0], history=timedelta(hours=1)), lake[1]
    make_table(spark, data, path)
    add(spark, data, path, ("a", NOW, 1))
    ages = {"under-way": LONGEST_WRITE / 2, "left-by-a-crash": LONGEST_WRITE * 2}
    for name, age in ages.items():
        file = Path(path, f"{name}.parquet")
        file.write_bytes(b"written, and not committed")
        os.utime(file, times=(then := (NOW - age).timestamp(), then))

    assert maintain(upkeep_session(spark), data, path, now=NOW).removed_files == 1

    assert [name for name in ages if Path(path, f"{name}.parquet").exists()] == ["under-way"]
    assert ids(path) == Counter([1])


def test_two_upkeeps_at_once_lose_and_double_nothing(spark, lake):
    data, path = lake
    make_table(spark, data, path)
    add(spark, data, path, *(("a", NOW, n) for n in range(60)), parts=MANY_FILES + 4)

    with ThreadPoolExecutor(2) as executor:
        turns = [
            executor.submit(maintain, upkeep_session(spark), data, path, now=NOW, clean=False)
            for _ in range(2)
        ]
        done = [turn.result() for turn in turns]
    assert sum(each.written_files > 0 for each in done) >= 1
    assert (ids(path), files(path)) == (Counter(range(60)), 1)


def test_a_table_gains_the_fields_of_its_record_and_any_other_change_is_refused(spark, tmp_path):
    path = str(tmp_path / "kept")
    before, after, other = (
        App("shop").lake("kept", each, partition_by=day("at"))
        for each in (Reading, LongerReading, OtherReading)
    )
    make_table(spark, before, path)
    add(spark, before, path, ("a", NOW, 1))
    found = lake_rows(spark, after, path, streaming=False).collect()
    assert [(row.id, row.unit, row.note) for row in found] == [(1, "celsius", None)]
    with pytest.raises(ConfigurationError) as caught:
        make_table(spark, other, path)
    assert caught.value.code == "lake.changed"
    assert caught.value.detail == "it holds id as bigint; the declaration says string"
    with pytest.raises(ConfigurationError) as caught:
        make_table(spark, replace(before, partition_by=("device",)), path)
    assert caught.value.detail == "it is partitioned by at_day; the declaration says device"


def test_days_are_those_of_utc_whatever_the_time_zone_of_the_session(spark, lake):
    data, path = lake
    make_table(spark, data, path)
    at = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
    east = spark.newSession()
    east.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    add(east, data, path, ("a", at, 1), ("a", datetime(1969, 12, 31, 23, tzinfo=UTC), 2))
    found = {row["id"]: row["at_day"] for row in elsewhere(path).to_pyarrow_table().to_pylist()}
    assert found == {1: date(2026, 3, 1), 2: date(1969, 12, 31)}


APPLICATION = """
from datetime import datetime
from penstock import App, day, record

@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    id: int

app = App("shop")
kept = app.lake("kept", Reading, partition_by=day("at"), retention="30d")
empty = app.lake("empty", Reading)
"""


def test_the_command_shows_tables_and_their_past_and_maintains_them(spark, tmp_path, capsys):
    (tmp_path / "app.py").write_text(APPLICATION)
    data = App("shop").lake("kept", Reading, partition_by=day("at"), retention="30d")
    path = str(tmp_path / "lake" / "kept")
    make_table(spark, data, path)
    add(spark, data, path, ("a", NOW, 1), ("b", NOW, 2), ("a", NOW - timedelta(days=90), 3))

    def run(*words: str, table: str = "") -> Any:
        chosen = [table] if table else []
        where = [str(tmp_path / "app.py"), *chosen, "--json", "--set", f"home={tmp_path}"]
        assert main(["lake", *words, *where]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    ((kept, empty),) = run("list")
    assert (kept["table"], kept["rows"], kept["version"]) == ("kept", 3, 1)
    assert (kept["retention"], kept["history"]) == ("30d", "7d")
    assert (empty["rows"], empty["changed_by"]) == (0, "never written")
    (done,) = run("maintain", table="kept")
    assert (done["deleted_rows"], done["table"]) == (1, "kept")
    (shape,) = run("describe", table="kept")
    assert [each["values"] for each in shape["partitions"]] == [{"at_day": str(NOW.date())}]
    assert shape["fields"]["at_day"] == "date"
    (past,) = run("history", table="kept")
    assert [each["by"] for each in past[::-1]][:3] == ["write", "write", "delete"]
    assert main(["lake", "describe", str(tmp_path / "app.py"), "ketp"]) == 1
    assert "did you mean 'kept'?" in capsys.readouterr().err
