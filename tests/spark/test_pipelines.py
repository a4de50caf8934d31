"""Pipelines on a real broker and a real Spark: as streams, over ranges, and in real-time mode."""

import json
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock import EventTime, micro_batch, real_time, record
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.parts import Pipeline
from penstock.core.records.codec import JsonCodec
from penstock.core.settings.settings import Settings, SparkSettings
from penstock.core.wiring.lookup import find_part
from penstock.errors import ConfigurationError, DefinitionError
from penstock.pipelines.execution.batch import run_batch
from penstock.pipelines.execution.engine import run_pipelines
from penstock.pipelines.execution.plan import current_run, prepared_query
from penstock.pipelines.gate import sweeper
from penstock.pipelines.history.history import Histories

pytestmark = pytest.mark.timeout(1200)

WAIT_SECONDS = 400


@record(key="word")
class Word:
    word: str


@record(key="word")
class Count:
    word: str
    count: int


@record(key=("room", "day"), time="at")
class Wide:
    room: str
    day: int
    at: datetime
    ratio: float
    amount: Decimal
    payload: bytes
    tags: list[str]
    seen: dict[str, datetime]
    note: str | None = None


@record(time="at")
class Reading:
    device: str
    at: int


@record(key="device")
class Readings:
    device: str
    count: int


def counting(ground) -> None:
    words = ground.app.stream(ground.topic("words"), Word)
    counts = ground.app.table(ground.topic("counts"), Count)

    @ground.app.pipeline(reads=words, writes=counts)
    def count(words: DataFrame) -> DataFrame:
        return words.groupBy("word").count()

    ground.declare()


POISON = [
    (b"x", b"\x00\xff broken"),
    (b"5", b'{"word": 5}'),
    (b"x", b"{}"),
    (None, b'{"word": "a"}'),
    (b"b", b'{"word": "a"}'),
    (b"x", None),
    (b"big", json.dumps({"word": "y" * (5 << 20)}).encode()),
]


def test_counts_go_on_after_a_restart_and_dead_letters_come_once(ground):
    counting(ground)
    ground.words("a", "b", "a")
    ground.send("words", *POISON[:4])
    with ground.running("count"):
        ground.wait("first counts", lambda: ground.table("counts") == {"a": 2, "b": 1})
        # A batch whose end is not noted down when Spark stops is done again, and counted again.
        ground.wait("the batch's end", lambda: ground.reports[-1].counts.dead_lettered == 4)
    ground.words("a", "c")
    ground.send("words", *POISON[4:])
    with ground.running("count"):
        ground.wait("all", lambda: ground.table("counts") == {"a": 3, "b": 1, "c": 1})
        ground.wait("dead letters", lambda: len(ground.read("dead-letters")) >= len(POISON))
    letters = ground.read("dead-letters")
    assert Counter((found.key, found.value) for found in letters) == Counter(POISON)
    for found in letters:
        headers = dict(found.headers)
        assert headers["from"] == b"test"
        assert headers["penstock.topic"] == ground.topic("words").encode()
        assert headers["penstock.part"] == b"count"
        assert headers["penstock.reason"]
    last = ground.reports[-1]
    assert last.state == "stopped"
    assert last.counts.balanced
    assert (last.counts.received, last.counts.dead_lettered) == (5, 3)


def test_the_streams_answer_is_the_batch_answer(ground):
    counting(ground)
    ground.words(*"abracadabra")
    ground.send("words", *POISON[:2])
    with ground.running("count"):
        expected = dict(Counter("abracadabra"))
        ground.wait("counts", lambda: ground.table("counts") == expected)
    result = run_batch(ground.graph, "count", ground.site(threading.Event()), label="x")
    assert result.result == f"{ground.topic('counts')}.replay.x"
    assert ground.table("counts.replay.x") == expected
    assert result.counts.balanced
    assert (result.counts.received, result.counts.dead_lettered) == (13, 2)
    assert len(ground.read("dead-letters.replay.x")) == 2


def test_a_record_of_every_type_survives_spark(ground):
    wide = ground.app.stream(ground.topic("wide"), Wide)
    copy = ground.app.stream(ground.topic("copy"), Wide)
    lake = ground.app.lake(ground.topic("lake"), Wide, partition_by="room")

    @ground.app.pipeline(reads=wide, writes=copy)
    def copied(wide: DataFrame) -> DataFrame:
        return wide

    @ground.app.pipeline(reads=wide, writes=lake)
    def kept(wide: DataFrame) -> DataFrame:
        return wide

    ground.declare()
    at = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
    codec = JsonCodec(wide.record)
    sent = [
        Wide("a", 1, at, 0.5, Decimal("12.5"), b"\x00\xff", ["x", 'q"'], {"k": at}, None),
        Wide("ä b", -7, at + timedelta(days=400), -1e300, Decimal("-0.01"), b"", [], {}, "né"),
    ]
    ground.send("wide", *((codec.key(each), codec.encode(each)) for each in sent))
    with ground.running("copied", "kept"):
        ground.wait("copies", lambda: len(ground.read("copy")) == len(sent))
        path = ground.home / "lake" / ground.topic("lake")
        ground.wait("the lake", lambda: len(list(path.glob("room=*/*.parquet"))) >= len(sent))
    copies = [codec.accept(found.key, found.value) for found in ground.read("copy")]
    assert sorted(copies, key=lambda each: each.day) == sorted(sent, key=lambda each: each.day)


def test_real_time_mode_passes_records_on_looks_up_and_buries_the_bad(ground):
    words = ground.app.stream(ground.topic("words"), Word, partitions=1)
    quiet = ground.app.table(ground.topic("quiet"), Word)
    loud = ground.app.stream(ground.topic("loud"), Word)
    trigger = real_time(checkpoint_every="5s")

    @ground.app.pipeline(reads=(words, quiet), writes=loud, trigger=trigger)
    def shout(words: DataFrame, quiet: DataFrame) -> DataFrame:
        spoken = words.join(F.broadcast(quiet), "word", "left_anti")
        return spoken.select(F.upper("word").alias("word"))

    ground.declare()
    ground.send("quiet", (b"c", b'{"word": "c"}'))
    ground.words("a", "c", "b")
    ground.send("words", POISON[1])
    with ground.running("shout"):
        ground.wait("loud words", lambda: len(ground.read("loud")) == 2)
        ground.wait("the dead letter", lambda: len(ground.read("dead-letters")) == 1)
        ground.send("quiet", (b"d", b'{"word": "d"}'))
        at = batch(ground)
        ground.wait("a batch that knows of it", lambda: batch(ground) >= at + 2)
        ground.words("d", "e")
        ground.wait("the last", lambda: len(ground.read("loud")) == 3)
    assert sorted(found.key for found in ground.read("loud")) == [b"A", b"B", b"E"]
    assert ground.reports[-1].detail["writes"] == "at least once"


def batch(ground) -> int:
    """Return the number of the last batch that was reported."""
    return int(ground.reports[-1].detail.get("batch", "-1").split()[0])


def test_real_time_mode_is_refused_where_a_partition_would_wait_for_a_slot(ground):
    words = ground.app.stream(ground.topic("words"), Word, partitions=2)
    loud = ground.app.stream(ground.topic("loud"), Word)

    @ground.app.pipeline(reads=words, writes=loud, trigger=real_time(checkpoint_every="5s"))
    def shout(words: DataFrame) -> DataFrame:
        return words

    ground.declare()
    with pytest.raises(ConfigurationError) as caught:
        run_pipelines(ground.graph, ["shout"], ground.site(threading.Event()))
    assert caught.value.code == "spark.slots"
    assert "needs 3 slots" in caught.value.message


def test_real_time_mode_is_refused_with_the_reason_where_the_plan_keeps_state(ground):
    words = ground.app.stream(ground.topic("words"), Word, partitions=1)
    counts = ground.app.table(ground.topic("counts"), Count)

    @ground.app.pipeline(reads=words, writes=counts, trigger=real_time(checkpoint_every="5s"))
    def count(words: DataFrame) -> DataFrame:
        return words.dropDuplicates(["word"]).groupBy("word").count()

    ground.declare()
    with pytest.raises(DefinitionError) as caught:
        run_pipelines(ground.graph, ["count"], ground.site(threading.Event()))
    (problem,) = caught.value.problems
    assert problem.place.file == __file__
    assert "\n\tat " not in str(caught.value)


def test_every_column_that_does_not_fit_is_named_before_anything_runs(ground):
    words = ground.app.stream(ground.topic("words"), Word)
    counts = ground.app.table(ground.topic("counts"), Count)

    @ground.app.pipeline(reads=words, writes=counts)
    def count(words: DataFrame) -> DataFrame:
        return words.select(F.lit(1).alias("wrod"), F.lit("x").alias("count"))

    ground.declare()
    with pytest.raises(DefinitionError) as caught:
        run_pipelines(ground.graph, ["count"], ground.site(threading.Event()))
    said = [problem.message for problem in caught.value.problems]
    assert len(said) == 3
    assert any("'count' as string" in text for text in said)
    assert any("does not give 'word'" in text for text in said)
    assert any("'wrod'" in text for text in said)


def test_a_mistake_in_the_function_is_shown_with_its_line(ground):
    words = ground.app.stream(ground.topic("words"), Word)
    copy = ground.app.stream(ground.topic("copy"), Word)

    @ground.app.pipeline(reads=words, writes=copy, trigger=micro_batch(every="100ms"))
    def wrong(words: DataFrame) -> DataFrame:
        return words.select("wrod")

    ground.declare()
    with pytest.raises(DefinitionError) as caught:
        run_pipelines(ground.graph, ["wrong"], ground.site(threading.Event()))
    (problem,) = caught.value.problems
    assert "wrod" in problem.message
    assert problem.place.line == wrong.place.line + 2


def test_an_input_that_was_trimmed_stops_the_pipeline_loudly_or_is_skipped_and_counted(ground):
    counting(ground)
    ground.words(*"aabbcc")
    with ground.running("count"):
        ground.wait("counts", lambda: ground.table("counts") == {"a": 2, "b": 2, "c": 2})
    reached = trim(ground, "words")
    ground.words(*"ddee")
    there = trim(ground, "words")
    ground.words(*"ff")
    with pytest.raises(ConfigurationError) as caught:
        run_pipelines(ground.graph, ["count"], ground.site(threading.Event()))
    assert caught.value.code == "offset.trimmed"
    for number, wanted in reached.items():
        if wanted < there[number]:
            place = f"{ground.topic('words')}[{number}]"
            said = f"{place} wants offset {wanted}, the log begins at {there[number]}"
            assert said in caught.value.detail
    gone = sum(there.values()) - sum(reached.values())
    assert f"{gone} offsets" in caught.value.message

    ground.settings = Settings(spark=SparkSettings(on_trimmed="skip"))
    with ground.running("count"):
        ground.wait("the rest", lambda: ground.table("counts").get("f") == 2)
        ground.wait("the count", lambda: "skipped" in ground.reports[-1].detail)
        ground.words("g")
        ground.wait("more, strictly again", lambda: ground.table("counts").get("g") == 1)
    assert ground.reports[-1].detail["skipped"].startswith(f"{gone} offsets")
    assert ground.table("counts") == {"a": 2, "b": 2, "c": 2, "f": 2, "g": 1}


def trim(ground, topic: str) -> dict[int, int]:
    """Delete all records of a topic; return where it begins now."""
    topics = Topics(ground.kafka)
    ends = {number: high for number, (_, high) in topics.ends(ground.topic(topic)).items()}
    topics.trim(ground.topic(topic), ends)
    return ends


def test_dead_letters_that_a_crash_held_up_come_at_the_next_start_without_new_records(
    ground, spark, monkeypatch
):
    monkeypatch.setattr(sweeper, "FEW_OFFSETS", 0)  # looked for by Spark, as in a large batch
    counting(ground)
    ground.words("a")
    ground.send("words", *POISON[:3])
    # The query alone, with nobody to write its dead letters: as if killed right after its batch.
    graph, site = ground.graph, ground.site(threading.Event())
    run = current_run(graph, find_part(graph, "count", Pipeline), site, spark)
    histories = Histories(graph, run.pipeline, site, spark, checkpoint=run.checkpoint)
    query = prepared_query(graph, run, site, spark, histories=histories)()
    try:
        ground.wait("the count", lambda: ground.table("counts") == {"a": 1})
        query.processAllAvailable()
    finally:
        query.stop()
    for _ in range(2):
        with ground.running("count"):
            ground.wait("dead letters", lambda: len(ground.read("dead-letters")) >= 3)
            ground.wait("no lag", lambda: ground.reports[-1:] != [] and ground.reports[-1].lag == 0)
    assert Counter((each.key, each.value) for each in ground.read("dead-letters")) == Counter(
        POISON[:3]
    )
    assert ground.reports[-1].counts.dead_lettered == 0


def test_a_stream_used_twice_in_a_plan_is_counted_as_it_is_read(ground):
    words = ground.app.stream(ground.topic("words"), Word)
    both = ground.app.stream(ground.topic("both"), Word)

    @ground.app.pipeline(reads=words, writes=both)
    def twice(words: DataFrame) -> DataFrame:
        return words.union(words.select(F.upper("word").alias("word")))

    ground.declare()
    ground.words("a", "b")
    ground.send("words", POISON[0])
    with ground.running("twice"):
        ground.wait("both", lambda: len(ground.read("both")) == 4)
        ground.wait("the dead letter", lambda: len(ground.read("dead-letters")) == 1)
    assert len(ground.read("dead-letters")) == 1
    last = ground.reports[-1].counts
    assert last.balanced
    assert (last.written, last.in_flight) == (4, 0)


def test_a_lake_table_is_looked_up_beside_a_stream_and_read_as_a_stream_alone(ground):
    words = ground.app.stream(ground.topic("words"), Word)
    known = ground.app.lake(ground.topic("known"), Word)
    fresh = ground.app.stream(ground.topic("fresh"), Word, partition_by="round_robin")
    echoed = ground.app.stream(ground.topic("echoed"), Word)

    @ground.app.pipeline(reads=(words, known), writes=fresh)
    def unknown(words: DataFrame, known: DataFrame) -> DataFrame:
        return words.join(known, "word", "left_anti")

    @ground.app.pipeline(reads=words, writes=known)
    def learn(words: DataFrame) -> DataFrame:
        return words

    @ground.app.pipeline(reads=known, writes=echoed)
    def echo(known: DataFrame) -> DataFrame:
        return known

    ground.declare()
    with ground.running("unknown"):
        ground.words("a", "b")
        ground.wait("new words", lambda: len(ground.read("fresh")) == 2)
    with ground.running("learn", "echo"):
        ground.wait("echoes", lambda: len(ground.read("echoed")) == 2)
    with ground.running("unknown"):
        ground.words("a", "c")
        ground.wait("the new word", lambda: len(ground.read("fresh")) == 3)
    assert sorted(each.key for each in ground.read("fresh")) == [b"a", b"b", b"c"]


def test_the_watermark_follows_all_records_of_a_stream_also_those_that_a_pipeline_leaves_out(
    ground,
):
    readings = ground.app.stream(
        ground.topic("readings"), Reading, partitions=1, event_time=EventTime(disorder="1s")
    )
    closed = ground.app.stream(ground.topic("closed"), Readings)

    @ground.app.pipeline(reads=readings, writes=closed)
    def windows(readings: DataFrame) -> DataFrame:
        boilers = readings.where("device = 'boiler'")
        return boilers.groupBy("device", F.window("at", "10 seconds")).count().drop("window")

    ground.declare()
    late_and_bad = b'{"device": 5, "at": 90000000}'
    with ground.running("windows"):
        for device, at in (("boiler", 1000), ("boiler", 5000), ("pump", 11_000)):
            ground.send("readings", (None, json.dumps({"device": device, "at": at}).encode()))
        ground.send("readings", (None, late_and_bad))
        ground.wait("the window", lambda: len(ground.read("closed")) == 1)
        ground.wait("the dead letter", lambda: len(ground.read("dead-letters")) == 1)
        ground.send("readings", (None, json.dumps({"device": "boiler", "at": 10_500}).encode()))
        ground.send("readings", (None, json.dumps({"device": "pump", "at": 21_000}).encode()))
        ground.wait("the next window", lambda: len(ground.read("closed")) == 2)
    assert [json.loads(found.value)["count"] for found in ground.read("closed")] == [2, 1]
