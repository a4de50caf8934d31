"""A pipeline whose program was changed: what goes on, what is refused, what is computed anew."""

import hashlib
import json
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from penstock import App, record
from penstock.aggregates import count
from penstock.backbone.topics.topics import Topics
from penstock.errors import ConfigurationError
from penstock.pipelines.execution.engine import run_pipelines
from penstock.pipelines.execution.plan import checkpoint_of
from penstock.pipelines.program.stateful import repeats_alike, state_aspects
from penstock.windows import fixed

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(1200)]


@record(key="word")
class Word:
    word: str


@record(key="word")
class Noted:
    word: str
    note: str | None = None


@record(key="word")
class Count:
    word: str
    count: int


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime


Function = Callable[[DataFrame], DataFrame]


def counted(words: DataFrame) -> DataFrame:
    return words.groupBy("word").count()


def counting(ground, function: Function = counted, *, word=Word, **options):
    """Make one version of the application that counts words the current one of the ground."""
    ground.app = App(ground.name)
    words = ground.app.stream(ground.topic("words"), word)
    counts = ground.app.table(ground.topic("counts"), Count)

    @ground.app.pipeline(reads=words, writes=counts, name="count", **options)
    def count(words: DataFrame) -> DataFrame:
        return function(words)

    ground.declare()


def refused(ground, name: str) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as refusal:
        run_pipelines(ground.graph, [name], ground.site(threading.Event()))
    return refusal.value


def checkpoint(ground, name: str = "count") -> Path:
    site = ground.site(threading.Event())
    return Path(checkpoint_of(ground.graph, ground.graph.part(name), site))


def digests(directory: Path) -> dict[str, str]:
    return {
        str(file.relative_to(directory)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in directory.rglob("*")
        if file.is_file()
    }


def test_the_same_program_goes_on_and_a_changed_one_is_refused_before_anything_is_touched(ground):
    counting(ground)
    ground.words("a", "b", "a")
    with ground.running("count"):
        ground.wait("counts", lambda: ground.table("counts") == {"a": 2, "b": 1})

    # Another projection behind the state, and a field that may be absent: the same state.
    counting(ground, lambda words: counted(words).where("count < 100"), word=Noted)
    ground.words("a")
    with ground.running("count"):
        ground.wait("counts", lambda: ground.table("counts") == {"a": 3, "b": 1})

    ends = Topics(ground.kafka).ends(ground.topic("counts"))
    before = digests(checkpoint(ground))
    ground.words("a")
    twice = lambda words: words.groupBy("word").agg(F.sum(F.lit(2)).alias("count"))  # noqa: E731
    counting(ground, twice)
    error = refused(ground, "count")
    assert error.code == "pipeline.changed"
    words = ground.topic("words")
    assert error.detail.splitlines()[0] == (
        f"aggregation: was by {words}.word (string): count(1) (bigint), is by {words}.word (string):"
        " sum(2) (bigint)"
    )
    assert "penstock rebuild count" in error.hint

    counting(ground, lambda words: counted(words.where("word <> 'b'")))
    assert "word = 'b'" in refused(ground, "count").detail
    counting(ground, output="complete")
    assert refused(ground, "count").detail == "output mode: was update, is complete"

    assert digests(checkpoint(ground)) == before
    assert Topics(ground.kafka).ends(ground.topic("counts")) == ends


def test_checkpoints_of_the_form_before_are_adopted_or_refused(ground):
    counting(ground)
    readings = ground.app.stream(ground.topic("readings"), Reading, partitions=1)
    windowed = readings.window(fixed("1m"), by="device")
    ground.app.table(ground.topic("windows"), windowed.aggregate(n=count()))
    ground.declare()
    ground.words("a", "b", "a")
    windows = ground.topic("windows.windows")
    with ground.running("count", windows):
        ground.wait("counts", lambda: ground.table("counts") == {"a": 2, "b": 1})

    # As they were written before there were identities.
    files = {name: checkpoint(ground, name) / "penstock.json" for name in ("count", windows)}
    said = {name: json.loads(file.read_text()) for name, file in files.items()}
    for file in files.values():
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    files["count"].unlink()
    files["count"].with_name("penstock-sink.json").write_text(
        json.dumps({"tasks": said["count"]["pieces"]})
    )
    old = {"declaration": said[windows]["state"], "buckets": said[windows]["pieces"]}
    files[windows].write_text(json.dumps(old))
    ground.words("b")
    with ground.running("count", windows):
        ground.wait("counts", lambda: ground.table("counts") == {"a": 2, "b": 2})
    assert {name: json.loads(file.read_text()) for name, file in files.items()} == said

    old["declaration"]["windows"] = "FixedWindows(size 2m, offset 0s)"
    files[windows].with_name(f".{files[windows].name}.crc").unlink(missing_ok=True)
    files[windows].write_text(json.dumps(old))
    error = refused(ground, windows)
    assert (error.code, "was FixedWindows(size 2m" in error.detail) == ("pipeline.changed", True)
    newer = said[windows] | {"format": 3, "penstock": "9.0"}
    files[windows].write_text(json.dumps(newer))
    assert refused(ground, windows).code == "checkpoint.newer"
    files[windows].write_text("half of a")
    assert refused(ground, windows).code == "checkpoint.unknown"
    files[windows].unlink()
    assert refused(ground, windows).code == "checkpoint.unknown"


class Remembering(StatefulProcessor):
    """Keeps nothing; only the plan around it is looked at."""

    def init(self, handle):
        pass

    def handleInputRows(self, _key, _rows, _timers):  # noqa: N802 - Spark's name
        yield pd.DataFrame()

    def close(self):
        pass


def test_what_state_is_made_of_is_told_the_same_way_at_every_start(spark):
    def aspects(make: Function) -> dict[str, str]:
        rate = spark.readStream.format("rate").load()
        frame = rate.selectExpr("timestamp as at", "value as level", "string(value) as word")
        frame = frame.withWatermark("at", "10 seconds").alias("readings")
        found = state_aspects(make(frame), ["readings"])
        assert state_aspects(make(frame), ["readings"]) == found
        return found

    assert aspects(lambda frame: frame.where("level > 3").selectExpr("level + 1")) == {}
    by_window = lambda frame: (  # noqa: E731
        frame.where("level > 3")
        .withColumn("half", F.expr("level / 2"))
        .groupBy(F.window("at", "1 minute", "20 seconds"), "word")
        .agg(F.round(F.avg("half"), 1).alias("mean"), F.count("*").alias("n"))
        .where("n > 1")
    )
    assert aspects(by_window) == {
        "aggregation": "by window (struct<start:timestamp,end:timestamp>), readings.word (string):"
        " avg(half) (double), count(1) (bigint)",
        "aggregation, of": "where (readings.at IS NOT NULL);"
        " with window(readings.at, 60s every 20s);"
        " with (CAST(readings.level AS DOUBLE) / CAST(2 AS DOUBLE)) AS half;"
        " where (readings.level > CAST(3 AS BIGINT)); reads readings",
    }
    assert aspects(lambda frame: frame.dropDuplicates(["word", "level"])) == {
        "deduplication": "by readings.word (string), readings.level (bigint)",
        "deduplication, of": "reads readings",
    }
    within = aspects(lambda frame: frame.dropDuplicatesWithinWatermark(["word"]).groupBy().count())
    assert list(within) == [
        "deduplication within the watermark",
        "deduplication within the watermark, of",
        "aggregation",
        "aggregation, of",
    ]
    assert within["aggregation, of"] == "what the deduplication within the watermark gives"
    joined = aspects(
        lambda frame: frame.alias("a").join(
            frame.select("word", "at").alias("b"), F.expr("a.word = b.word and a.at = b.at")
        )
    )
    assert joined["join of streams"] == (
        "inner on ((a.word = b.word) AND (a.at = b.at)), keeps"
        " a.at (timestamp), a.level (bigint), a.word (string)"
        " and b.word (string), b.at (timestamp)"
    )
    static = spark.range(5).selectExpr("string(id) as word")
    assert aspects(lambda frame: frame.join(static, "word")) == {}
    keyed = aspects(
        lambda frame: frame.groupBy("word").transformWithStateInPandas(
            Remembering(), "word string", "append", "none"
        )
    )
    assert keyed == {
        "keyed state": "by readings.word (string)",
        "keyed state, of": "reads readings; LocalRelation",
    }
    seeded = aspects(lambda frame: frame.groupBy(F.expr("rand() > 0.5 as odd")).count())
    assert "rand() AS" in seeded["aggregation, of"]


def test_rows_that_may_be_others_the_next_time_are_told_from_those_that_are_the_same(
    spark, tmp_path
):
    ticks = spark.readStream.format("rate").load().alias("ticks")
    path = str(tmp_path / "names")
    spark.range(3).write.parquet(path)
    names = spark.read.parquet(path).withColumnRenamed("id", "value")
    counted = ticks.groupBy("timestamp").agg(F.sum("value").alias("value"))

    def alike(frame: DataFrame, *, keyed: bool = True) -> bool:
        return repeats_alike(frame, ["ticks"], keyed=keyed)

    assert alike(ticks.where("value > 1").selectExpr("value", "current_timestamp()"), keyed=False)
    assert alike(ticks.join(spark.range(9).toDF("value"), "value"))
    assert not alike(ticks.where("rand() > 0.5"))
    assert not alike(ticks.join(names, "value"))
    assert alike(counted)
    assert not alike(counted, keyed=False)
