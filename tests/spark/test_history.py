"""A stream's archive, and pipelines that read it and then go on with the log.

Long because all of it uses one stream with an archive, and the same ways to fill and to read it.
"""

import json
import os
import random
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import DataFrame

from penstock import App, EventTime, record
from penstock.aggregates import collect, count
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.range import Offset
from penstock.backbone.topics.topics import Topics
from penstock.errors import ConfigurationError
from penstock.pipelines.execution.batch import run_batch
from penstock.pipelines.execution.engine import run_pipelines
from penstock.pipelines.execution.plan import checkpoint_of, program_of
from penstock.pipelines.history import history
from penstock.pipelines.lake.table import lake_path
from penstock.pipelines.rebuild.rebuild import Watching, rebuild_pipeline
from penstock.windows import fixed

pytestmark = pytest.mark.timeout(1200)

DRIVER = Path(__file__).with_name("doomed_history.py")
kit = SimpleNamespace(**runpy.run_path(str(DRIVER)))
SEEDS = [int(seed) for seed in os.environ.get("PENSTOCK_CHAOS_SEEDS", "").split()]

START_AT = datetime(2026, 1, 1, tzinfo=UTC)
WINDOW_SECONDS = 10
WAIT_SECONDS = 400
DEVICES = 8
RANGE_END = 220
"""An offset that is not archived when the history is read."""
END = 10_000
"""When, in seconds, and with which number on, records come that close all windows."""


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    id: int
    note: str | None = "none"


class Readings:
    """The stream of one test: what was sent, and what became of it."""

    def __init__(self, ground, *, seed: int = 7, **options) -> None:
        self.ground = ground
        event_time = EventTime(disorder="3s", idle_after=None)
        options = {"partitions": 2, "event_time": event_time} | options
        self.stream = ground.app.graph.find(ground.topic("readings")) or ground.app.stream(
            ground.topic("readings"), Reading, **options
        )
        archive = ground.app.graph.find(ground.topic("readings.archive"))
        self.archive = archive or ground.app.archive(self.stream)
        self.sent: list[tuple[str, float, int]] = []
        self.chance = random.Random(seed)

    def send(self, number: int) -> None:
        """Send so many more, ten to a second, up to two seconds out of order."""
        begin = len(self.sent)
        self._send(
            (
                f"d{self.chance.randrange(DEVICES)}",
                each / 10 + self.chance.uniform(0, 2),
                each,
            )
            for each in range(begin, begin + number)
        )

    def close_windows(self) -> None:
        self._send((f"d{each}", END, END + each) for each in range(DEVICES))

    def _send(self, several) -> None:
        several = list(several)
        self.ground.send("readings", *(encoded(*each) for each in several))
        self.sent += several

    def windows(self) -> dict[tuple[str, str], list[int]]:
        """The answer, without any of ours: the ids in each window but for those at the end."""
        found = defaultdict(list)
        for device, seconds, number in self.sent:
            start = seconds // WINDOW_SECONDS * WINDOW_SECONDS
            if number < END:
                found[device, instant(start)].append(number)
        return {place: sorted(ids) for place, ids in found.items()}

    def table(self, topic: str) -> dict[tuple[str, str], list[int]]:
        rows = [json.loads(found.value) for found in self.ground.read(topic)]
        return {(row["device"], row["window_start"]): row["ids"] for row in rows}

    def copied(self) -> dict[str, list[int]]:
        """The ids of each device among the copies, in their order."""
        rows = [json.loads(found.value) for found in self.ground.read("copies")]
        return by_device((row["device"], row["id"]) for row in rows)

    def by_place(self, spark) -> dict[tuple[int, int], tuple[str, int]]:
        """Device and id of each record by its offset and partition, archived or on the log."""
        found = {
            (row["_offset"], row["_partition"]): (row["device"], row["id"])
            for row in spark.read.format("delta").load(self.path()).collect()
        }
        for each in LogReader(self.ground.kafka).read(self.stream.topic.name):
            if each.value != b"poison":
                row = json.loads(each.value)
                found[each.offset, each.partition] = (row["device"], row["id"])
        return found

    def path(self) -> str:
        return lake_path(self.archive.name, self.ground.site(threading.Event()))


def instant(seconds: float) -> str:
    return (START_AT + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def encoded(device: str, seconds: float, number: int) -> tuple[bytes, bytes]:
    value = {"device": device, "at": instant(seconds), "id": number}
    return device.encode(), json.dumps(value).encode()


def by_device(rows) -> dict[str, list[int]]:
    found = defaultdict(list)
    for device, number in rows:
        found[device].append(number)
    return dict(found)


def define_pipelines(ground, *, copied, **windowed) -> None:
    """Define a pipeline that copies a stream, and windows over streams into tables."""
    copies = ground.app.stream(ground.topic("copies"), Reading)

    @ground.app.pipeline(reads=copied, writes=copies, name="copied")
    def copy(readings: DataFrame) -> DataFrame:
        return readings

    for name, stream in windowed.items():
        by_device = stream.window(fixed("10s"), by="device")
        ground.app.table(ground.topic(name), by_device.aggregate(n=count(), ids=collect("id")))


def refusal(ground, name: str) -> ConfigurationError:
    """Return why a pipeline does not start."""
    with pytest.raises(ConfigurationError) as refused:
        run_pipelines(ground.graph, [name], ground.site(threading.Event()))
    return refused.value


def test_an_archive_holds_every_record_once_with_its_place_on_the_log(ground, spark):
    readings = Readings(ground)
    past, latest = readings.archive.then_live, ground.app.table(ground.topic("latest"), Reading)
    ground.app.pipeline(reads=past, writes=latest, name="latest")(lambda readings: readings)
    define_pipelines(ground, copied=past)
    ground.declare()
    readings.send(30)
    ground.send("readings", (b"x", b"poison"))
    # As long as nothing is archived, all there is is on the log.
    done = rebuild_pipeline(ground.graph, "latest", ground.site(threading.Event()))
    assert done.changed == len({device for device, _, _ in readings.sent})
    with ground.running(readings.archive.filling):
        ground.wait("dead letters", lambda: len(ground.read("dead-letters")) == 1)
        ground.wait("records", lambda: ground.reports[-1].counts.passed == 30)
    readings.send(20)
    with ground.running(readings.archive.filling):
        ground.wait("more", lambda: ground.reports[-1].counts.passed == 20)
    rows = spark.read.format("delta").load(readings.path()).collect()
    assert sorted((row["_partition"], row["_offset"], row["id"]) for row in rows) == sorted(
        (found.partition, found.offset, json.loads(found.value)["id"])
        for found in LogReader(ground.kafka).read(readings.stream.topic.name)
        if found.value != b"poison"
    )
    assert all(row["_appended_at_day"] == row["_appended_at"].date() for row in rows)
    assert {row["note"] for row in rows} == {"none"}
    readings.send(40)
    topics, topic = Topics(ground.kafka), readings.stream.topic.name
    topics.trim(topic, {number: high for number, (_, high) in topics.ends(topic).items()})
    error = refusal(ground, "copied")
    assert error.code == "history.gap"
    assert error.message.startswith(f"40 offsets of {topic} are neither in {topic}.archive nor on")
    assert (f"{topic}[0] wants" in error.detail, f"{topic}[1] wants" in error.detail) == (
        True,
        True,
    )


def test_a_history_and_then_the_log_give_what_the_whole_log_gives(ground, spark, monkeypatch):
    monkeypatch.setattr(history, "PIECE_RECORDS", 100)
    readings = Readings(ground)
    past = readings.archive.then_live
    define_pipelines(ground, copied=past, whole=readings.stream, past=past)
    ground.declare()
    whole, panes = ground.topic("whole.windows"), ground.topic("past.windows")
    readings.send(300)
    ground.send("readings", (b"x", b"poison"))
    with ground.running(readings.archive.filling, whole):
        ground.wait("dead letters", lambda: len(ground.read("dead-letters")) == 2)
    topics, topic = Topics(ground.kafka), readings.stream.topic.name
    ends = {number: high for number, (_, high) in topics.ends(topic).items()}
    # Half of what is archived is still on the log, too; files are rewritten; some come twice.
    topics.trim(topic, {0: ends[0] // 2, 1: ends[1]})
    table = spark.read.format("delta").load(readings.path())
    table.limit(20).write.format("delta").mode("append").save(readings.path())
    spark.sql(f"optimize delta.`{readings.path()}`").collect()
    readings.send(100)
    with ground.running("copied", panes, whole, readings.archive.filling):
        ground.wait("the log", lambda: len(ground.read("copies")) >= 400)
        readings.send(100)
        readings.close_windows()
        ground.wait("copies", lambda: len(ground.read("copies")) >= len(readings.sent))
        for name in ("whole", "past"):
            ground.wait(
                name, lambda name=name: len(readings.table(name)) >= len(readings.windows())
            )
    assert readings.copied() == by_device((each[0], each[2]) for each in readings.sent)
    assert readings.table("past") == readings.table("whole") == readings.windows()
    assert ground.read("late") == []
    assert len(ground.read("dead-letters")) == 2, "the history has none"
    assert_told(ground, "copied", records=300)
    kept = Path(checkpoint_of(ground.graph, ground.graph.part(panes), ground.site(None)))
    assert [each for each in (kept / "history").rglob("*") if each.is_file()] == []

    site = ground.site(threading.Event())
    run_batch(ground.graph, panes, site, label="all")
    assert readings.table("past.replay.all").items() >= readings.windows().items()
    run_batch(ground.graph, "copied", site, start=Offset(10), end=Offset(RANGE_END), label="some")
    some = [json.loads(each.value) for each in ground.read("copies.replay.some")]
    assert by_device((row["device"], row["id"]) for row in some) == by_device(
        each
        for (offset, _), each in sorted(readings.by_place(spark).items())
        if 10 <= offset < RANGE_END
    )
    assert_goes_on_as_it_began(ground, spark)
    assert_rebuilt_piece_by_piece(ground, readings, kept.with_name(f"{kept.name}~1"))


def assert_goes_on_as_it_began(ground, spark) -> None:
    """A pipeline is refused that would go on without its history, or with one."""
    before = ground.graph.part("copied")
    ground.app = App(ground.name)
    readings, whole = Readings(ground), ground.topic("whole.windows")
    define_pipelines(ground, copied=readings.stream, whole=readings.archive.then_live)
    name = readings.stream.name
    for pipeline, change in {
        "copied": f"began with the history of {name}, and would continue without history",
        whole: f"began without history, and would continue with the history of {name}",
    }.items():
        error = refusal(ground, pipeline)
        assert (error.code, error.message) == (
            "history.changed",
            f"pipeline {pipeline!r} {change}",
        )
        assert error.hint.endswith(f"penstock rebuild {pipeline}")
    # Nor does a rebuild go on with the other's checkpoint, if it was interrupted.
    site, now = ground.site(threading.Event()), ground.graph.part("copied")
    assert program_of(before, site, spark) != program_of(now, site, spark)


def assert_rebuilt_piece_by_piece(ground, readings: Readings, checkpoint: Path) -> None:
    """A rebuild has each piece in a batch of its own, also where a clock is among its sources."""
    ground.app = App(ground.name)
    event_time = EventTime(disorder="3s", idle_after=None, closes_after="1h")
    past = Readings(ground, event_time=event_time).archive.then_live
    define_pipelines(ground, copied=past, past=past)
    site, told = ground.site(threading.Event()), []
    watching = Watching(progress=lambda *progress: told.append(progress))
    done = rebuild_pipeline(ground.graph, ground.topic("past.windows"), site, watching=watching)
    assert (done.late.records, done.late.complete) == (0, True)
    assert readings.table("past") == readings.windows()
    (copy,) = json.loads((checkpoint / "history.json").read_text()).values()
    assert copy["pieces"] > copy["records"] // history.PIECE_RECORDS
    batches = {int(each.stem) for each in (checkpoint / "sources" / "0").glob("[0-9]*")}
    assert max(batches) == copy["pieces"] - 1
    ends = Topics(ground.kafka).ends(ground.topic("readings"))
    all_there_is = copy["records"] + sum(high for _, high in ends.values())
    all_there_is -= sum(copy["seam"].values())
    assert {total for _, total in told} == {all_there_is}
    assert told == sorted(told)
    assert told[-1] == (all_there_is, all_there_is)


def assert_told(ground, part: str, *, records: int) -> None:
    """Every report of the part adds up, and those of the history say how far it is."""
    reports = [report for report in ground.reports if report.part == part]
    assert all(report.counts.balanced for report in reports)
    told = [report.metrics for report in reports if "history_records" in report.metrics]
    lefts = [metrics["history_records_left"] for metrics in told]
    assert sorted(lefts, reverse=True) == lefts
    assert (lefts[0] > 0, lefts[-1]) == (True, 0)
    assert {metrics["history_records"] for metrics in told} == {records}
    assert any("of 300 records" in report.detail.get("history", "") for report in reports)
    assert "history" not in reports[-1].detail
    assert reports[-1].counts.received > records


def test_batch_and_speed_layers_merged_give_the_answer_of_history_and_log(ground):
    readings = Readings(ground)
    past = readings.archive.then_live
    define_pipelines(ground, copied=past, speed=readings.stream, kappa=past)
    ground.declare()
    speed, kappa = ground.topic("speed.windows"), ground.topic("kappa.windows")
    readings.send(150)
    with ground.running(readings.archive.filling):
        ground.wait("the archive", lambda: ground.reports[-1].counts.passed == 150)
    topics, topic = Topics(ground.kafka), readings.stream.topic.name
    topics.trim(topic, {number: high for number, (_, high) in topics.ends(topic).items()})
    run_batch(ground.graph, kappa, ground.site(threading.Event()), label="batch")
    readings.send(80)
    readings.close_windows()
    layers = "kappa.replay.batch", "speed"

    def served() -> dict[tuple[str, str], list[int]]:
        found = defaultdict(list)
        for layer in layers:
            for place, ids in readings.table(layer).items():
                found[place] += ids
        return {place: sorted(ids) for place, ids in found.items()}

    with ground.running(speed, kappa):
        ground.wait("serving", lambda: len(served()) >= len(readings.windows()))
        ground.wait("kappa", lambda: len(readings.table("kappa")) >= len(readings.windows()))
        ground.wait("the answer", lambda: served() == readings.windows())
    assert readings.table("kappa") == readings.windows()
    batch, live = (readings.table(layer).keys() for layer in layers)
    assert batch & live, "windows are cut by the boundary"


class Doomed:
    """The pipelines of ``doomed_history.py``, which come and go."""

    def __init__(self, ground) -> None:
        self._ground = ground
        self._out = ground.home / "driver.out"

    def killed(self, step: str, batch: int, readings: Readings) -> None:
        """Let them run in a process, and records come, until it was killed at a step."""
        ground = self._ground
        words = [ground.home, ground.kafka.bootstrap, ground.name, step, batch]
        with self._out.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, DRIVER, *map(str, words)],
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
            )
        try:
            deadline = time.monotonic() + WAIT_SECONDS
            while process.poll() is None:
                assert time.monotonic() < deadline, f"{step}: {self._said()}"
                readings.send(10)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.5)
            assert process.returncode == -signal.SIGKILL, f"{step}: {self._said()}"
        finally:
            process.kill()
            process.wait()

    def failed(self, step: str, batch: int, readings: Readings) -> None:
        """Let them run here, and records come, until they have failed at a step."""
        ground, failed = self._ground, threading.Event()

        def fail() -> None:
            failed.set()
            raise RuntimeError(step)

        def work() -> None:
            with suppress(Exception):  # whatever is made of it: see below
                run_pipelines(ground.graph, names, ground.site(threading.Event()))

        names = [part.name for part in ground.graph.parts]
        with pytest.MonkeyPatch.context() as patch:
            kit.doom(step, batch, ground.home / "checkpoints", die=fail, replace=patch.setattr)
            thread = threading.Thread(target=work)
            thread.start()
            deadline = time.monotonic() + WAIT_SECONDS
            while thread.is_alive():
                assert time.monotonic() < deadline, step
                readings.send(10)
                thread.join(0.5)
        assert failed.is_set(), step

    def _said(self) -> str:
        return self._out.read_text(errors="replace")[-3000:]


def play(ground, *, seed: int, deaths: list[str], failures: Collection[str] = ()) -> None:
    """End the pipelines at each of these steps and compare what came out with what went in.

    They are killed with their process and JVM. ``failures`` are steps where they fail instead, in
    this process: what lasts is the same, and no Spark has to be started.
    """
    ground.app = kit.application(ground.name)
    readings, doomed = Readings(ground, seed=seed), Doomed(ground)
    ground.declare()
    readings.send(300)
    with ground.running(readings.archive.filling):
        ground.wait("the archive", lambda: ground.reports[-1].counts.passed == 300)
    topics, topic = Topics(ground.kafka), readings.stream.topic.name
    topics.trim(topic, {number: high // 2 for number, (_, high) in topics.ends(topic).items()})
    for step in deaths:
        end = doomed.failed if step in failures else doomed.killed
        end(step, readings.chance.randrange(3), readings)
    readings.close_windows()
    counts = {place: len(ids) for place, ids in readings.windows().items()}

    def panes() -> dict[tuple[str, str], int]:
        rows = [json.loads(found.value) for found in ground.read("panes")]
        return {(row["device"], row["window_start"]): row["n"] for row in rows}

    with ground.running(*(part.name for part in ground.graph.parts)):
        ground.wait("copies", lambda: len(ground.read("copies")) >= len(readings.sent))
        ground.wait("panes", lambda: len(panes()) >= len(counts))
    assert readings.copied() == by_device((each[0], each[2]) for each in readings.sent), seed
    assert panes() == counts, f"seed {seed}"
    assert ground.read("late") == [], f"seed {seed}"
    pieces = ground.home.rglob("history/*/part-*")
    assert list(pieces) == [], "no copy is left"


def test_pipelines_killed_between_history_and_log_lose_and_double_nothing(ground, monkeypatch):
    monkeypatch.setattr(history, "PIECE_RECORDS", kit.PIECE_RECORDS)
    play(ground, seed=1, deaths=["copying", "piece", "switch"], failures={"copying", "piece"})


@pytest.mark.skipif(not SEEDS, reason="long; make chaos plays it (PENSTOCK_CHAOS_SEEDS)")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.timeout(1500)
def test_many_deaths_between_history_and_log_lose_and_double_nothing(ground, monkeypatch, seed):
    monkeypatch.setattr(history, "PIECE_RECORDS", kit.PIECE_RECORDS)
    deaths = [*kit.STEPS, *random.Random(seed).choices(("piece", "live"), k=3)]
    play(ground, seed=seed, deaths=sorted(deaths, key=kit.STEPS.index))
