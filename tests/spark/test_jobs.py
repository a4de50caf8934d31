"""Jobs on the shared Spark: all there is comes in, a few records come out, each run once."""

import json
import threading

import pytest

from penstock import record
from penstock.errors import FencedError
from penstock.jobs import JobRun
from penstock.pipelines.execution.engine import run_pipelines
from penstock.pipelines.jobs import running

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600)]

WAIT_SECONDS = 200


@record(key="word")
class Word:
    word: str


@record(key="word")
class Total:
    word: str
    count: int


@record()
class Told:
    runs: int
    asked: bool
    read: str


def test_a_job_reads_history_and_tables_writes_at_once_and_keeps_its_pace_over_a_restart(
    ground, monkeypatch
):
    monkeypatch.setattr(running, "_ASK_SECONDS", 0.2)
    app, name = ground.app, ground.topic
    words = app.stream(name("words"), Word, partitions=1)
    archive = app.archive(words)
    asking = app.stream(name("asking"), Word, partitions=1)
    totals, told = app.table(name("totals"), Total), app.stream(name("told"), Told, partitions=1)
    runs: list[JobRun] = []

    @app.job(
        name=name("sum"),
        reads=(archive.then_live, totals),
        writes=(totals, told),
        every="1h",
        asked_by=asking,
        rest="1s",
    )
    def add_up(words, totals, *, run):
        runs.append(run)
        if len(runs) == 2:
            raise RuntimeError("no luck")
        before = {row.word: row["count"] for row in totals.collect()}
        for row in words.groupBy("word").count().collect():
            assert before.get(row.word, 0) <= row["count"]
            yield Total(row.word, row["count"])
        yield Told(len(before), run.asked, run.read_text)

    ground.declare()
    ground.words("a", "b", "a")
    with ground.running(archive.filling, name("sum")):
        ground.wait("the first run", lambda: len(ground.read("told")) == 1)
        assert ground.table("totals") == {"a": 2, "b": 1}
        ground.words("a")
        ground.send("asking", (b"now", b'{"word":"now"}'))
        # The second run fails, is told, and is repeated; the archive goes on.
        ground.wait(
            "a failed run", lambda: any("no luck" in each.reason for each in ground.reports)
        )
        ground.wait("another run", lambda: len(ground.read("told")) == 2)
    assert ground.table("totals") == {"a": 3, "b": 1}
    first, second = (json.loads(each.value) for each in ground.read("told"))
    assert (first["runs"], first["asked"], second["runs"], second["asked"]) == (0, False, 2, True)
    assert f"{words.name} 0: 0-" in second["read"]
    before = len(runs)
    with ground.running(name("sum")):  # its hour has not passed, and nobody asks
        ground.wait("a report", lambda: "last run" in ground.last("sum").detail)
    assert len(runs) == before


def test_a_second_process_of_a_job_stops_the_first_which_then_writes_nothing(ground):
    app, name = ground.app, ground.topic
    totals = app.table(name("totals"), Total)
    told = app.stream(name("told"), Told, partitions=1)
    begun, go_on = threading.Event(), threading.Event()
    stopped: list[FencedError] = []

    @app.job(name=name("tell"), reads=totals, writes=told, every="1h", rest="1s")
    def tell(totals):
        first = not begun.is_set()
        begun.set()
        if first:
            assert go_on.wait(WAIT_SECONDS)
        yield Told(totals.count(), asked=False, read="first" if first else "second")

    def run_first():
        try:
            run_pipelines(ground.graph, [name("tell")], ground.site(threading.Event()))
        except FencedError as error:
            stopped.append(error)

    ground.declare()
    thread = threading.Thread(target=run_first)
    thread.start()
    try:
        ground.wait("the run of the first", begun.is_set)
        with ground.running(name("tell")):
            ground.wait("the record of the second", lambda: len(ground.read("told")) == 1)
            go_on.set()
            thread.join(WAIT_SECONDS)
    finally:
        go_on.set()
        thread.join(WAIT_SECONDS)
    assert [each.code for each in stopped] == ["job.taken-over"]
    assert [json.loads(each.value)["read"] for each in ground.read("told")] == ["second"]
